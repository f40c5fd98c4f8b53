"""What the API server makes of a new pod before it stores it: defaults, LimitRanges, priority.

A pod that reached the scheduler without these would be another pod than the one in production: limits become
requests, a namespace fills in what a container does not say, and a class name becomes the number that orders queues.
"""

from collections.abc import Callable

from kerf.errors import ApiError, DecodeError
from kerf.manifests.admission import Defaults, admission_of
from kerf.manifests.decode import decode_object
from kerf.manifests.pods.decode import read_spec
from kerf.manifests.pods.refusal import policy_expected, policy_hint
from kerf.manifests.schema import Path, mistake, path_text
from kerf.model.constraints import NO_EXECUTE
from kerf.model.opportunistic import PRIORITY, PRIORITY_CLASS
from kerf.model.volumes import OLD_CLASS, StorageClass, default_class
from kerf.ports import WriteRefused
from kerf.sim.kubernetes.selectors import PREFERRED, REQUIRED
from kerf.sim.objects import DEFAULT_GRACE_S, Json, JsonList, ObjectLookup, annotations_of, key_of, name_of, shown

Admission = Callable[[Json], None]
"""Changes a new object in place, or raises ApiError to refuse it. The object has a name, and no uid yet."""

_BORNE_S = 300
_MAKING_PODS = ("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet")
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def limit_ranges(objects: ObjectLookup) -> Admission:
    """Complete each container's resources from its own limits, then from the LimitRanges of its namespace.

    Refuse a pod that asks for more or less than these allow.
    """

    def admit(obj: Json) -> None:
        if obj["kind"] != "Pod":
            return
        spec = obj["spec"]
        defaults = {
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": DEFAULT_GRACE_S,
        }
        for field, value in defaults.items():
            spec.setdefault(field, value)
        namespace = obj["metadata"]["namespace"]
        ranges = [r for r in objects.list("LimitRange") if r["metadata"]["namespace"] == namespace]
        items = [item for r in ranges for item in r["spec"].get("limits") or () if item.get("type") == "Container"]
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            _complete(container, items)
        if ranges:
            _refuse_out_of_range(obj, ranges)

    return admit


def _refuse_out_of_range(pod: Json, ranges: JsonList) -> None:
    defaults, spec = admission_of([], ranges).defaults(pod["metadata"]["namespace"]), read_spec(pod["spec"], None).spec
    found = None if spec is None else defaults.out_of_range(spec)
    if found is not None:
        why = DecodeError(path_text(("spec", *found.path)), found.expected, found.got)
        raise ApiError(f"{shown(key_of(pod))} is forbidden: {why}")


def _complete(container: Json, items: JsonList) -> None:
    resources = container.get("resources") or {}
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    requests = {**limits, **requests}
    for item in items:
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        default_request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        limits = {**default, **limits}
        requests = {**default_request, **requests}
    found = {"limits": limits, "requests": requests}
    if limits or requests:
        container["resources"] = {**resources, **{name: amounts for name, amounts in found.items() if amounts}}


def priority(objects: ObjectLookup) -> Admission:
    """Turn `priorityClassName`, or the global default class, into the pod's number."""

    def admit(obj: Json) -> None:
        if obj["kind"] != "Pod":
            return
        spec = obj["spec"]
        classes = {name_of(c): c for c in objects.list("PriorityClass")}
        name = spec.get("priorityClassName") or _default_class(classes)
        if not name:
            spec["priority"] = 0
        elif name in _SYSTEM_CLASSES:
            spec["priority"] = _SYSTEM_CLASSES[name]
        elif name == PRIORITY_CLASS and name not in classes:
            spec["priority"], spec["preemptionPolicy"] = PRIORITY, "Never"
        elif name in classes:
            spec["priorityClassName"] = name
            spec["priority"] = classes[name]["value"]
            spec.setdefault("preemptionPolicy", classes[name].get("preemptionPolicy") or "PreemptLowerPriority")
        else:
            raise ApiError(f"{shown(key_of(obj))} is forbidden: no PriorityClass with name {name} was found")

    return admit


def runtime_class(objects: ObjectLookup) -> Admission:
    """What a RuntimeClass says of its pods: their overhead, and which nodes can run them. Raises ApiError."""

    def admit(obj: Json) -> None:
        name = obj["spec"].get("runtimeClassName") if obj["kind"] == "Pod" else None
        if not name:
            return
        found = objects.get("RuntimeClass", "", name)
        if found is None:
            raise ApiError(f'{shown(key_of(obj))} is forbidden: pod rejected: RuntimeClass "{name}" not found')
        spec, scheduling = obj["spec"], found.get("scheduling") or {}
        overhead = (found.get("overhead") or {}).get("podFixed")
        if overhead:
            spec["overhead"] = dict(overhead)
        selector = scheduling.get("nodeSelector") or {}
        for key, value in selector.items():
            asked = (spec.get("nodeSelector") or {}).get(key, value)
            if asked != value:
                said = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {asked}"
                raise ApiError(f"{shown(key_of(obj))} is forbidden: conflict: {said}")
        if selector:
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **selector}
        if scheduling.get("tolerations"):
            spec["tolerations"] = [*(spec.get("tolerations") or []), *scheduling["tolerations"]]

    return admit


def default_storage_class(objects: ObjectLookup) -> Admission:
    """A claim that names no class gets the default one, where there is one."""

    def admit(obj: Json) -> None:
        if obj["kind"] != "PersistentVolumeClaim" or OLD_CLASS in annotations_of(obj):
            return
        if (obj.get("spec") or {}).get("storageClassName") is None:
            classes = (decode_object(each) for each in objects.list("StorageClass"))
            found = default_class(each for each in classes if isinstance(each, StorageClass))
            if found is not None:
                obj["spec"] = {**(obj.get("spec") or {}), "storageClassName": found.name}

    return admit


def refuse_invalid(obj: Json) -> None:
    """Refuse a pod as planning from manifests does, and a workload whose pods can have no such restartPolicy.

    What else is wrong in the template of a workload a server takes: no pod ever comes of it. Raises WriteRefused.
    """
    kind, found = obj["kind"], None
    if kind == "Pod":
        path: Path = ("spec",)
        reading = read_spec(obj["spec"], Defaults())
        found = next(iter(reading.problems), reading.invalid)
    elif kind in _MAKING_PODS:
        path = (
            ("spec", "jobTemplate", "spec", "template", "spec") if kind == "CronJob" else ("spec", "template", "spec")
        )
        spec = obj
        for step in path:
            spec = spec.get(step) or {}
        if policy_expected(kind, spec):
            policy = spec.get("restartPolicy")
            found = mistake(("restartPolicy",), policy_expected(kind, spec), policy, policy_hint(kind))
    if found is not None:
        why = DecodeError(path_text((*path, *found.path)), found.expected, found.got, hint=found.hint)
        raise WriteRefused(f"{shown(key_of(obj))} is invalid: {why}")


def merge_label_keys(obj: Json) -> None:
    """Into the selectors of affinity and spread go the values that a pod's own labels have for the keys they name.

    Once, at its creation: what becomes of the labels later changes nothing (registry/core/pod/strategy.go).
    """
    if obj["kind"] != "Pod":
        return
    labels, affinity = obj["metadata"].get("labels") or {}, obj["spec"].get("affinity") or {}
    terms = list(obj["spec"].get("topologySpreadConstraints") or ())
    for kind in ("podAffinity", "podAntiAffinity"):
        asked = affinity.get(kind) or {}
        terms += asked.get(REQUIRED) or ()
        terms += [each["podAffinityTerm"] for each in asked.get(PREFERRED) or ()]
    for term in terms:
        selector = term.get("labelSelector")
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            keys = [key for key in term.get(field) or () if key in labels]
            if selector is not None and keys:
                added = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys]
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def tolerate_ill_nodes(obj: Json) -> None:
    """A pod bears a node that is not ready or not reachable for five minutes, unless it says for how long it does."""
    if obj["kind"] != "Pod":
        return
    held = obj["spec"].get("tolerations") or []
    for state in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{state}"
        if not any(t.get("key") in (None, "", key) and t.get("effect") in (None, "", NO_EXECUTE) for t in held):
            ill = {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": _BORNE_S}
            held = [*held, ill]
    obj["spec"]["tolerations"] = held


def refuse_lost_tolerations(old: Json, new: Json) -> None:
    """Of a pod that exists tolerations can be added, and none taken away. Raises WriteRefused."""
    if old["kind"] != "Pod":
        return
    kept = new["spec"].get("tolerations") or []
    if any(toleration not in kept for toleration in old["spec"].get("tolerations") or []):
        raise WriteRefused(f"{shown(key_of(old))} is invalid: spec.tolerations: only additions are allowed")


def _default_class(classes: dict[str, Json]) -> str:
    found = [(held["value"], name) for name, held in classes.items() if held.get("globalDefault")]
    return min(found)[1] if found else ""
