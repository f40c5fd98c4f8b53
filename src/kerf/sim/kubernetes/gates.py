"""The admission policies that come with Kerf's manifests, acted out: gates at creation, and who may be opportunistic.

The rules are those of `kerf.kube.policies`, which a test on a real API server compares with these.
"""

from kerf.errors import ApiError
from kerf.model.opportunistic import OPPORTUNISTIC, PRIORITY_CLASS
from kerf.model.windows import WINDOW_GATE, WINDOW_LABEL
from kerf.sim.objects import Json, key_of, labels_of, shown


def gate_pods(obj: Json) -> None:
    """Give a new pod the gate that its label asks for, and what lets it onto the nodes that its window keeps."""
    if obj["kind"] != "Pod" or obj["spec"].get("nodeName"):
        return
    labels, spec = labels_of(obj), obj["spec"]
    if WINDOW_LABEL in labels:
        _add_gate(spec, WINDOW_GATE)
        toleration = {"key": WINDOW_LABEL, "operator": "Equal", "value": labels[WINDOW_LABEL], "effect": "NoSchedule"}
        spec["tolerations"] = [*(spec.get("tolerations") or []), toleration]
    if labels.get(OPPORTUNISTIC) == "true":
        _add_gate(spec, OPPORTUNISTIC)


def _add_gate(spec: Json, name: str) -> None:
    held = spec.get("schedulingGates") or []
    if all(gate["name"] != name for gate in held):
        spec["schedulingGates"] = [*held, {"name": name}]


def refuse_important(obj: Json) -> None:
    """An opportunistic pod must be of the class that everybody else may displace."""
    if obj["kind"] != "Pod" or labels_of(obj).get(OPPORTUNISTIC) != "true":
        return
    if obj["spec"].get("priorityClassName") != PRIORITY_CLASS:
        raise ApiError(
            f"{shown(key_of(obj))} is forbidden: a pod with the label {OPPORTUNISTIC} must have "
            f"priorityClassName {PRIORITY_CLASS}"
        )
