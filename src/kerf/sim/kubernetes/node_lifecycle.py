"""The parts of the controller manager that follow nodes: taints for what a node says of itself, and who leaves it.

A node that is cordoned or not ready is closed twice, by its own field and by a taint that arrives a moment later and
goes a moment later. Between the two a scheduler tries pods in vain, which costs them their nominations; so the taints
are here as real as the fields. Left out: NoExecute for a node that reports itself not ready, which the real one puts
on at a rate that depends on how many nodes of the zone are ill.
"""

from collections.abc import Callable, Iterable

from kerf.model.constraints import NO_EXECUTE, NO_SCHEDULE
from kerf.model.times import instant_text
from kerf.ports import Clock
from kerf.sim.kubernetes.api import DELETED, InMemoryApi
from kerf.sim.objects import (
    Json,
    JsonList,
    condition_of,
    is_deleting,
    is_ended,
    key_of,
    name_of,
    node_of,
    uid_of,
    with_condition,
)

_PREFIX = "node.kubernetes.io/"
_BY_CONDITION = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
_OURS = {*_BY_CONDITION.values(), "unschedulable"}
_EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


class NodeLifecycle:
    """Over the in-memory API; `start` once."""

    def __init__(self, api: InMemoryApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._pods: dict[str, dict[tuple[str, str], str]] = {}
        self._leaves_s: dict[str, float] = {}

    def start(self) -> None:
        """Taint new nodes that are not ready from their first moment on, and follow all from now on."""
        self._api.admission.append(_close_new)
        self._api.subscribe(self._on_event)

    def _on_event(self, what: str, obj: Json) -> None:
        if obj["kind"] == "Node" and what != DELETED:
            name = name_of(obj)
            self._judge_all(name)
            # Two turns later, since a scheduler sees a change before a controller has answered it.
            self._soon(lambda: self._soon(lambda: self._taint(name)))
        elif obj["kind"] == "Pod":
            self._on_pod(what, obj)

    def _on_pod(self, what: str, pod: Json) -> None:
        _, namespace, name = key_of(pod)
        if what == DELETED or is_ended(pod):
            self._pods.get(node_of(pod), {}).pop((namespace, name), None)
            self._leaves_s.pop(uid_of(pod), None)
        elif node_of(pod):
            self._pods.setdefault(node_of(pod), {})[namespace, name] = uid_of(pod)
            self._judge(pod, self._no_execute(node_of(pod)))

    def _soon(self, act: Callable[[], None]) -> None:
        self._clock.call_at(self._clock.now_s(), act)

    # Taints.

    def _taint(self, name: str) -> None:
        node = self._api.get("Node", "", name)
        if node is None:
            return
        held = node["spec"].get("taints") or []
        wanted = _wanted(node)
        present = {_identity(taint) for taint in held}
        kept = [taint for taint in held if not _is_ours(taint) or _identity(taint) in wanted]
        now = instant_text(self._clock.now_s())
        added = [
            {"key": key, "effect": effect, **({"timeAdded": now} if effect == NO_EXECUTE else {})}
            for key, effect in wanted
            if (key, effect) not in present
        ]
        if added or len(kept) < len(held):
            self._api.patch("Node", "", name, {"spec": {"taints": [*kept, *added] or None}})

    # Who leaves.

    def _no_execute(self, name: str) -> JsonList:
        node = self._api.get("Node", "", name)
        taints: JsonList = (node or {"spec": {}})["spec"].get("taints") or []
        return [taint for taint in taints if taint["effect"] == NO_EXECUTE]

    def _judge_all(self, name: str) -> None:
        taints = self._no_execute(name)
        for key in self._pods.get(name, {}):
            pod = self._api.get("Pod", *key)
            if pod is not None and (taints or uid_of(pod) in self._leaves_s):
                self._judge(pod, taints)

    def _judge(self, pod: Json, taints: JsonList) -> None:
        """Set when a pod has to leave; a date that is set already stays while the pod has to leave at all."""
        uid, stays_s = uid_of(pod), _stays_s(pod, taints)
        if stays_s is None:
            self._leaves_s.pop(uid, None)
        elif uid not in self._leaves_s:
            when_s = self._leaves_s[uid] = self._clock.now_s() + stays_s
            self._clock.call_at(when_s, self._eviction(key_of(pod), uid, when_s))

    def _eviction(self, key: tuple[str, str, str], uid: str, when_s: float) -> Callable[[], None]:
        def evict() -> None:
            pod = self._api.get(*key)
            if self._leaves_s.get(uid) != when_s or pod is None or uid_of(pod) != uid or is_deleting(pod):
                return
            conditions = with_condition(pod, _EVICTED, instant_text(self._clock.now_s()))
            self._api.patch(*key, {"status": {"conditions": conditions}}, subresource="status")
            self._api.delete(*key)

        return evict


def _close_new(obj: Json) -> None:
    """What the admission plug-in TaintNodesByCondition does, which a node that is ready would not notice."""
    if obj["kind"] == "Node" and (condition_of(obj, "Ready") or {}).get("status") in ("False", "Unknown"):
        taints = (obj.setdefault("spec", {}).get("taints")) or []
        key = f"{_PREFIX}not-ready"
        if all(_identity(taint) != (key, NO_SCHEDULE) for taint in taints):
            obj["spec"]["taints"] = [*taints, {"key": key, "effect": NO_SCHEDULE}]


def _wanted(node: Json) -> list[tuple[str, str]]:
    """The taints of the control plane that a node should have now, by key and effect."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    found = [_BY_CONDITION.get((c["type"], c["status"])) for c in conditions]
    states = [state for state in found if state is not None]
    closed = ["unschedulable"] if node["spec"].get("unschedulable") else []
    wanted = [(f"{_PREFIX}{state}", NO_SCHEDULE) for state in (*states, *closed)]
    return [*wanted, *((f"{_PREFIX}{state}", NO_EXECUTE) for state in states if state == "unreachable")]


def _is_ours(taint: Json) -> bool:
    return taint["key"].removeprefix(_PREFIX) in _OURS and taint["key"].startswith(_PREFIX)


def _identity(taint: Json) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def _stays_s(pod: Json, taints: Iterable[Json]) -> float | None:
    """How long a pod bears all of these taints; None for ever."""
    shortest: float | None = None
    for taint in taints:
        matching = [t for t in pod["spec"].get("tolerations") or () if _tolerates(t, taint)]
        if not matching:
            return 0
        for toleration in matching:
            seconds = toleration.get("tolerationSeconds")
            if seconds is not None:
                shortest = max(0, min(seconds, seconds if shortest is None else shortest))
    return shortest


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")
