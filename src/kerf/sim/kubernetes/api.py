"""A Kubernetes API server in memory: versions, conflicts, watches, finalizers, graceful deletion, evictions, owners.

It behaves like the real one wherever a controller could notice, because the controllers that run on it are those that
run in production. What it leaves out would not be seen here: schemas, authorisation, namespaces that must exist.

Objects are Kubernetes JSON and never change in place (see `objects`): treat what you get as read-only, and do not
touch what you gave afterwards. `create` alone copies, since admission may rewrite a new object.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from kerf.errors import ApiError
from kerf.model.times import LONGEST_S, instant_s, instant_text
from kerf.ports import AlreadyExists, Clock, Conflict, NotFound
from kerf.sim.kubernetes.admission import (
    Admission,
    default_storage_class,
    limit_ranges,
    merge_label_keys,
    priority,
    refuse_invalid,
    refuse_lost_tolerations,
    runtime_class,
    tolerate_ill_nodes,
)
from kerf.sim.kubernetes.budgets import check_eviction
from kerf.sim.kubernetes.garbage import OwnerIndex
from kerf.sim.kubernetes.gates import gate_pods, refuse_important
from kerf.sim.kubernetes.labels import PodsByLabel
from kerf.sim.objects import (
    DEFAULT_GRACE_S,
    Json,
    JsonList,
    ObjectKey,
    copied,
    is_cluster_wide,
    is_deleting,
    is_ended,
    key_of,
    merged,
    node_of,
    owners_of,
    shown,
    uid_of,
    with_condition,
)

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
STATUS = "status"

Listener = Callable[[str, Json], None]

_SYSTEM_FIELDS = ("uid", "creationTimestamp", "resourceVersion", "generation", "name", "namespace")
_DELETION_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds")

_DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}

_PREEMPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "preempting to accommodate a higher priority pod",
}

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}

# The module that acts these kinds out writes their status. The status of the others (a node as its kubelet announces
# it, a NodeClass whose provider is not played) stays as it was given.
_STATUS_IS_RESET = frozenset(
    {
        "CapacityBuffer",
        "CapacityWindow",
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Job",
        "JobSet",
        "NodeClaim",
        "NodePool",
        "Pod",
        "PodDisruptionBudget",
        "ProvisioningRequest",
        "ReplicaSet",
        "StatefulSet",
    }
)


class Change(NamedTuple):
    """One change: when, ADDED | MODIFIED | DELETED, and the object as it was then."""

    at_s: float
    type: str
    obj: Json


_SAID_S = 3600
"""So long Event objects are kept: the default of the real server."""


class InMemoryApi:
    """The API server. Reads give the state of this moment; errors are those of `kerf.ports`.

    `changes` is how many there were, and `events` are they: all of them, or the last ones and at least `keeps`. With
    `keeps` Event objects are forgotten after an hour, as by the real one.
    """

    def __init__(self, clock: Clock, *, keeps: int | None = None) -> None:
        self._clock, self._keeps = clock, keeps
        self._objects: dict[str, dict[tuple[str, str], Json]] = {}
        self._order: dict[str, list[tuple[str, str]]] = {}
        self._owners, self._labels = OwnerIndex(), PodsByLabel()
        self.listeners: tuple[Listener, ...] = ()
        self._version = 0
        self._created = 0
        self._suffixes: dict[str, int] = {}
        self.admission: list[Admission] = [
            refuse_invalid,
            gate_pods,
            refuse_important,
            limit_ranges(self),
            priority(self),
            tolerate_ill_nodes,
            merge_label_keys,
            runtime_class(self),
            default_storage_class(self),
        ]
        self.events: list[Change] = []
        self.changes = 0
        self._forms: dict[ObjectKey, JsonList] = {}
        self._said: deque[tuple[float, tuple[str, str]]] = deque()

    # Reading.

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """The object, read-only; None when there is none. `namespace` is empty for what is cluster-wide."""
        return self._objects.get(kind, {}).get((namespace, name))

    def list(self, kind: str) -> JsonList:
        """All of a kind by (namespace, name)."""
        held = self._objects.get(kind, {})
        return [held[key] for key in self._order.get(kind, ())]

    def pods_with(self, namespace: str, key: str, value: str) -> JsonList:
        """The pods of a namespace that have a label, by name."""
        return self._labels.bearing(namespace, key, value)

    def forms(self, obj: Json) -> JsonList:
        """Every form that a ConfigMap which is there has had, the newest first; of other kinds none is kept."""
        return self._forms.get(key_of(obj), [])[::-1]

    def changes_since(self, number: int) -> Sequence[Change] | None:
        """The changes after so many of them, in order; None where one of these is forgotten."""
        missed = self.changes - number
        return None if missed > len(self.events) else self.events[len(self.events) - missed :]

    @property
    def version(self) -> str:
        """The resource version of a list that is made now."""
        return str(self._version)

    def kinds(self) -> tuple[str, ...]:
        """The kinds of which objects exist, by name."""
        return tuple(sorted(kind for kind, held in self._objects.items() if held))

    def dependents(self, owner: Json) -> JsonList:
        """The objects that name `owner` among their owners, oldest first."""
        found = (self.get(*key) for key in self._owners.dependents(uid_of(owner)))
        return [obj for obj in found if obj is not None]

    def subscribe(self, listener: Listener) -> None:
        """Tell `listener` of every change from now on: in order, in the loop's next turn, never re-entrant."""
        self.listeners = (*self.listeners, listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Stop telling `listener`; changes that are on their way still arrive."""
        self.listeners = tuple(held for held in self.listeners if held != listener)

    # Writing.

    def create(self, obj: Json) -> Json:
        """Store a copy of `obj`, named by `generateName` when it has no name. Raises AlreadyExists, ApiError."""
        new: Json = copied(obj)
        metadata = new.setdefault("metadata", {})
        for field in ("uid", "resourceVersion", *_DELETION_FIELDS):
            metadata.pop(field, None)
        self._name(new)
        key = key_of(new)
        if self.get(*key) is not None:
            raise AlreadyExists(f"{shown(key)} already exists")
        for admit in self.admission:
            admit(new)
        if new["kind"] in _STATUS_IS_RESET:
            new[STATUS] = self._first_status(new)
        self._created += 1
        metadata["uid"] = f"00000000-0000-4000-8000-{self._created:012d}"
        metadata["creationTimestamp"] = instant_text(self._clock.now_s())
        metadata["generation"] = 1
        stored = self._store(ADDED, None, new)
        if owners_of(stored) and not self._owners.living_owners(stored):
            self._soon(partial(self._collect, key))
        return stored

    def update(self, obj: Json, *, subresource: str = "") -> Json:
        """Replace the object; Conflict when `obj` carries an old resourceVersion or another object's uid.

        Without a sub-resource everything but the status is taken, with `status` nothing else. An update that changes
        nothing makes no new version.
        """
        old = self._found(key_of(obj))
        self._check(old, obj["metadata"])
        if subresource == STATUS:
            return self._commit(old, {**old, STATUS: obj.get(STATUS, {})})
        _refuse_unknown(subresource)
        new = {field: value for field, value in obj.items() if field != STATUS}
        return self._commit(old, {**new, STATUS: old[STATUS]} if STATUS in old else new)

    def patch(self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = "") -> Json:
        """Apply an RFC 7386 merge patch. A `resourceVersion` or `uid` in it is a condition: Conflict when it fails."""
        old = self._found((kind, namespace, name))
        self._check(old, patch.get("metadata") or {})
        if subresource == STATUS:
            return self._commit(old, merged(old, {STATUS: patch.get(STATUS, {})}))
        _refuse_unknown(subresource)
        return self._commit(old, merged(old, {field: value for field, value in patch.items() if field != STATUS}))

    def delete(self, kind: str, namespace: str, name: str, *, grace_s: int | None = None) -> None:
        """Delete, or mark for deletion: a pod on a node has its grace, finalizers hold back anything.

        As in the real API, `deletionTimestamp` of a pod is when its grace ends. A second delete can only shorten it.
        """
        old = self._found((kind, namespace, name))
        grace_s = self._grace_s(old, grace_s)
        held = old["metadata"].get("deletionGracePeriodSeconds")
        if is_deleting(old) and (held is None or grace_s >= held):
            return
        if is_deleting(old):
            end_s = instant_s(old["metadata"]["deletionTimestamp"]) - held + grace_s
        else:
            end_s = math.floor(self._clock.now_s()) + grace_s
        mark = {"deletionTimestamp": instant_text(end_s), "deletionGracePeriodSeconds": grace_s}
        new = {**old, "metadata": {**old["metadata"], **mark}}
        new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        self._settle(old, new)

    def evict(self, namespace: str, name: str) -> None:
        """Mark a pod as disrupted and delete it with its own grace, unless a budget forbids it: EvictionBlocked."""
        pod = self._found(("Pod", namespace, name))
        check_eviction(self, pod)
        if not is_deleting(pod):
            self._commit(pod, {**pod, STATUS: {**pod[STATUS], "conditions": self._conditions(pod, _DISRUPTED)}})
        self.delete("Pod", namespace, name)

    def preempt(self, namespace: str, name: str) -> None:
        """What a scheduler does to a pod of lower priority: mark it as disrupted and delete it, budgets or not."""
        pod = self._found(("Pod", namespace, name))
        if not is_deleting(pod):
            self._commit(pod, {**pod, STATUS: {**pod[STATUS], "conditions": self._conditions(pod, _PREEMPTED)}})
            self.delete("Pod", namespace, name)

    def bind(self, namespace: str, name: str, node: str) -> None:
        """What a scheduler does at last: `spec.nodeName`, and PodScheduled=True. Conflict for one that may not."""
        pod = self._found(("Pod", namespace, name))
        state = f"already assigned to node {node_of(pod)}" if node_of(pod) else ""
        state = "being deleted" if is_deleting(pod) else state
        state = "held by a scheduling gate" if pod["spec"].get("schedulingGates") else state
        if state:
            raise Conflict(f"{shown(key_of(pod))} is {state}")
        status = {**pod[STATUS], "conditions": self._conditions(pod, {"type": "PodScheduled", "status": "True"})}
        status.pop("nominatedNodeName", None)
        self._commit(pod, {**pod, "spec": {**pod["spec"], "nodeName": node}, STATUS: status})

    def remove_pod(self, namespace: str, name: str) -> None:
        """What a kubelet does when a terminating pod has ended; nothing when it is gone already."""
        if self.get("Pod", namespace, name) is not None:
            self.delete("Pod", namespace, name, grace_s=0)

    # Inside.

    def _name(self, new: Json) -> None:
        metadata = new["metadata"]
        if is_cluster_wide(new["kind"]):
            metadata.pop("namespace", None)
        else:
            metadata["namespace"] = metadata.get("namespace") or "default"
        if metadata.get("name"):
            return
        prefix = metadata.get("generateName")
        if not prefix:
            raise ApiError(f"{new['kind']}: metadata.name or metadata.generateName is required")
        number = self._suffixes.get(prefix, 0)
        self._suffixes[prefix] = number + 1
        # Five letters as the real ones, but counted: the same scenario has to give the same names.
        metadata["name"] = f"{prefix}{number:05d}"

    def _first_status(self, new: Json) -> Json:
        if new["kind"] != "Pod":
            return {}
        gated = new["spec"].get("schedulingGates")
        return {"phase": "Pending", **({"conditions": self._conditions({}, _GATED)} if gated else {})}

    def _conditions(self, obj: Json, condition: Json) -> JsonList:
        return with_condition(obj, condition, instant_text(self._clock.now_s()))

    def _found(self, key: ObjectKey) -> Json:
        obj = self.get(*key)
        if obj is None:
            raise NotFound(f"{shown(key)} not found")
        return obj

    def _check(self, old: Json, given: Json) -> None:
        for field in ("resourceVersion", "uid"):
            wanted = given.get(field)
            if wanted and wanted != old["metadata"][field]:
                raise Conflict(
                    f"{shown(key_of(old))} has been modified: {field} is {old['metadata'][field]}, not {wanted}"
                )

    def _grace_s(self, obj: Json, asked_s: int | None) -> int:
        if obj["kind"] != "Pod" or not node_of(obj) or is_ended(obj):
            return 0
        own_s: int = obj["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        grace_s = own_s if asked_s is None else asked_s
        return 1 if grace_s < 0 else min(grace_s, LONGEST_S)

    def _commit(self, old: Json, new: Json) -> Json:
        """Store a change unless there is none: system fields stay, another spec is another generation."""
        metadata = {**new["metadata"], **{f: old["metadata"][f] for f in _SYSTEM_FIELDS if f in old["metadata"]}}
        for field in _DELETION_FIELDS:
            metadata.pop(field, None)
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        new = {**new, "metadata": metadata}
        if new == old:
            return old
        if any(new.get(field) != old.get(field) for field in {**old, **new} if field not in ("metadata", STATUS)):
            metadata["generation"] = old["metadata"]["generation"] + 1
            refuse_lost_tolerations(old, new)
        if is_deleting(old):
            added = set(metadata.get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ())
            if added:
                raise ApiError(f"{shown(key_of(old))} is being deleted: no finalizer can be added ({min(added)})")
        return self._settle(old, new)

    def _settle(self, old: Json, new: Json) -> Json:
        """Store `new`, or drop it when it is being deleted and nothing holds it any more."""
        metadata = new["metadata"]
        if not is_deleting(new) or metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
            return self._store(MODIFIED, old, new)
        stored = self._store(DELETED, old, new)
        orphans = self._owners.dependents(uid_of(new))
        if orphans:
            self._soon(partial(self._collect, *orphans))
        return stored

    def _store(self, type_: str, old: Json | None, new: Json) -> Json:
        """The one place where anything changes; `new["metadata"]` is ours to write."""
        self._version += 1
        new["metadata"]["resourceVersion"] = str(self._version)
        kind, *rest = key_of(new)
        key = (rest[0], rest[1])
        held, order = self._objects.setdefault(kind, {}), self._order.setdefault(kind, [])
        if type_ == DELETED:
            del held[key]
            del order[bisect_left(order, key)]
        else:
            held[key] = new
        if type_ == ADDED:
            insort(order, key)
        if type_ == ADDED and kind == "Event" and self._keeps is not None:
            self._forget_said(key)
        self._owners.replace(old, None if type_ == DELETED else new)
        if kind == "Pod":
            self._labels.replace(old, None if type_ == DELETED else new)
        self.events.append(Change(self._clock.now_s(), type_, new))
        self.changes += 1
        if self._keeps is not None and len(self.events) > 2 * self._keeps:
            del self.events[: -self._keeps]
        if new["kind"] == "ConfigMap":
            # What reads one goes on with an earlier form where it cannot read the last.
            self._forms[key_of(new)] = [] if type_ == DELETED else [*self._forms.get(key_of(new), ()), new]
        if self.listeners:
            self._soon(partial(_tell, self.listeners, type_, new))
        return new

    def _forget_said(self, key: tuple[str, str]) -> None:
        """Drop the Event objects that are too old, now that there is another one; no watch sees it."""
        now_s, held, order = self._clock.now_s(), self._objects["Event"], self._order["Event"]
        self._said.append((now_s, key))
        while self._said[0][0] < now_s - _SAID_S:
            _, old = self._said.popleft()
            gone = held.pop(old, None)
            if gone is not None:
                del order[bisect_left(order, old)]
                self._owners.replace(gone, None)

    def _soon(self, callback: Callable[[], None]) -> None:
        self._clock.call_at(self._clock.now_s(), callback)

    def _collect(self, *keys: ObjectKey) -> None:
        """Background garbage collection: delete what has lost its last owner."""
        for key in keys:
            obj = self.get(*key)
            if obj is None or not owners_of(obj):
                continue
            living = self._owners.living_owners(obj)
            if not living:
                self.delete(*key)
            elif len(living) < len(owners_of(obj)):
                self.patch(*key, {"metadata": {"ownerReferences": living}})


def _refuse_unknown(subresource: str) -> None:
    if subresource:
        raise ApiError(f"the in-memory API has no sub-resource {subresource!r}; it has {STATUS!r}")


def _tell(listeners: tuple[Listener, ...], type_: str, obj: Json) -> None:
    for listener in listeners:
        listener(type_, obj)
