"""Kubernetes objects as the API's JSON, and the few questions the simulation asks of them.

An object is never changed in place: a change makes new dictionaries along its path and shares all else. So a reader
may keep what it was given, and an unchanged part is recognised by identity.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from kerf.manifests.pods.decode import selector_of
from kerf.model.times import instant_s

Json = dict[str, Any]
JsonList = list[Json]
ObjectKey = tuple[str, str, str]
"""(kind, namespace, name); the namespace of a cluster-wide object is empty."""

_CLUSTER_WIDE = frozenset(
    {
        "CapacityWindow",
        "ClusterRole",
        "ClusterRoleBinding",
        "CSINode",
        "CustomResourceDefinition",
        "DeviceClass",
        "Namespace",
        "Node",
        "NodeClaim",
        "NodeOverlay",
        "NodePool",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "RuntimeClass",
        "StorageClass",
        "VolumeAttachment",
    }
)

DEFAULT_GRACE_S = 30
"""How long a pod that says nothing may take to end."""


class ObjectLookup(Protocol):
    """Where the stand-ins for Kubernetes' own controllers look objects up: the API."""

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """One object, None when there is none."""
        ...

    def list(self, kind: str) -> JsonList:
        """All objects of a kind."""
        ...

    def pods_with(self, namespace: str, key: str, value: str) -> JsonList:
        """The pods of a namespace that have a label, by name."""
        ...


def is_cluster_wide(kind: str) -> bool:
    """Whether objects of the kind have no namespace; every provider's NodeClass is one."""
    return kind in _CLUSTER_WIDE or kind.endswith("NodeClass")


def key_of(obj: Json) -> ObjectKey:
    """What identifies `obj`; a missing namespace means `default`."""
    metadata = obj["metadata"]
    kind = obj["kind"]
    return kind, "" if is_cluster_wide(kind) else metadata.get("namespace") or "default", metadata["name"]


def shown(key: ObjectKey) -> str:
    """The key for people: `Pod default/web-0`, `Node ip-10-0-0-7`."""
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def copied(value: Any) -> Any:
    """A deep copy of plain JSON; a null field is left out, as the API server reads it."""
    if isinstance(value, dict):
        return {key: copied(held) for key, held in value.items() if held is not None}
    if isinstance(value, list | tuple):
        return [copied(held) for held in value]
    return value


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386: `patch` laid over `target`; None removes a key, lists are replaced whole."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def uid_of(obj: Json) -> str:
    """Its uid; empty before the API has seen it."""
    uid: str = obj["metadata"].get("uid", "")
    return uid


def name_of(obj: Json) -> str:
    """Its name."""
    name: str = obj["metadata"]["name"]
    return name


def labels_of(obj: Json) -> dict[str, str]:
    """Its labels, read-only."""
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Json) -> dict[str, str]:
    """Its annotations, read-only."""
    return obj["metadata"].get("annotations") or {}


def owners_of(obj: Json) -> Sequence[Json]:
    """Its owner references."""
    return obj["metadata"].get("ownerReferences") or ()


def controller_of(obj: Json) -> Json | None:
    """The owner reference that is its controller; None when it has none."""
    return next((owner for owner in owners_of(obj) if owner.get("controller")), None)


def owner_reference(owner: Json) -> Json:
    """A reference that makes `owner` the controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_deleting(obj: Json) -> bool:
    """Whether its deletion was asked for."""
    return "deletionTimestamp" in obj["metadata"]


def node_of(pod: Json) -> str:
    """The node a pod is bound to; empty while it waits for one."""
    return pod["spec"].get("nodeName") or ""


def phase_of(pod: Json) -> str:
    """Pending, Running, Succeeded or Failed."""
    return pod.get("status", {}).get("phase") or "Pending"


def is_ended(pod: Json) -> bool:
    """Whether a pod has run to its end, good or bad."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Json) -> bool:
    """Whether a pod counts as a replica: it has not ended and is not on its way out."""
    return not is_ended(pod) and not is_deleting(pod)


def condition_of(obj: Json, type_: str) -> Json | None:
    """The status condition of that type; None when it was never set."""
    return next((c for c in obj.get("status", {}).get("conditions") or () if c["type"] == type_), None)


def is_ready(obj: Json) -> bool:
    """Whether its condition Ready is True."""
    condition = condition_of(obj, "Ready")
    return condition is not None and condition["status"] == "True"


def ready_since_s(pod: Json) -> float:
    """When it became ready, in seconds since the epoch; 0 when it is not."""
    condition = condition_of(pod, "Ready")
    if condition is None or condition["status"] != "True":
        return 0
    return instant_s(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else 0


def with_condition(obj: Json, condition: Mapping[str, Any], at: str) -> list[Json]:
    """The conditions of `obj` with one of them set; `lastTransitionTime` becomes `at` only when the status changes."""
    held = obj.get("status", {}).get("conditions") or []
    old = condition_of(obj, condition["type"])
    since = old["lastTransitionTime"] if old is not None and old["status"] == condition["status"] else at
    new = {**condition, "lastTransitionTime": since}
    if old is None:
        return [*held, new]
    return [new if c["type"] == condition["type"] else c for c in held]


def selected(selector: Json | None, objects: Iterable[Json]) -> list[Json]:
    """Those that a label selector takes: all with an empty one, none with None."""
    if selector is not None and not selector.get("matchExpressions"):
        # Hundreds of budgets and workloads look at all pods again and again.
        pairs = (selector.get("matchLabels") or {}).items()
        return [obj for obj in objects if pairs <= labels_of(obj).items()]
    wanted = selector_of(selector)
    return [obj for obj in objects if wanted.unsatisfied_by(labels_of(obj)) is None]
