"""kube-scheduler's filters for volumes: VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone.

A claim that names its volume counts as bound: the controller that completes a binding takes no time here. Volumes of
kinds that CSI drivers have taken over are not translated, and CSIStorageCapacity is not looked at. Source: Kubernetes
1.36, plugins/{volumerestrictions,nodevolumelimits,volumebinding,volumezone} and component-helpers `storage/volume`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kerf.model.pods import Pod
from kerf.model.quantities import quantity
from kerf.sim.kubernetes.filters import (
    VOLUME_LIMITS,
    VOLUME_RESTRICTIONS,
    VOLUME_ZONE,
    VOLUMES,
    FilterRefusal,
    PodRefusal,
)
from kerf.sim.kubernetes.rooms import NodePods, Rooms, claim_names, mounts_of
from kerf.sim.kubernetes.selectors import Labels, LabelSelector, volume_terms
from kerf.sim.objects import (
    Json,
    JsonList,
    ObjectLookup,
    annotations_of,
    is_deleting,
    labels_of,
    name_of,
    owners_of,
    uid_of,
)

CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_WAITS = "WaitForFirstConsumer"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}

_IN_USE = FilterRefusal(
    VOLUME_RESTRICTIONS,
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    ),
)
_NO_DISK = FilterRefusal(VOLUME_RESTRICTIONS, ("node(s) had no available disk",))
_TOO_MANY = FilterRefusal(VOLUME_LIMITS, ("node(s) exceed max volume count",))
_OTHER_ZONE = FilterRefusal(VOLUME_ZONE, ("node(s) had no available volume zone",), is_final=True)
_ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
_NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
_LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def _not_found(kind: str, name: str) -> str:
    return f'{kind.lower()} "{name}" not found'


def class_of(claim: Json) -> str:
    """The name of the storage class that a claim or a volume says; empty for none."""
    old: str | None = annotations_of(claim).get(_OLD_CLASS)
    return old if old is not None else claim["spec"].get("storageClassName") or ""


class VolumeRestrictions:
    """A claim of mode ReadWriteOncePod has one pod, and some old kinds of disks one node."""

    plugin = VOLUME_RESTRICTIONS

    def __init__(self, pod: Pod, mounts: JsonList, rooms: Rooms, lonely: frozenset[str]) -> None:
        self._pod, self._rooms, self._lonely = pod, rooms, lonely
        self._disks = [volume for volume in mounts if not volume.keys().isdisjoint(_DISKS)]
        self._uses = sum(bool(rooms.users(pod.namespace, claim)) for claim in lonely)

    @classmethod
    def of(cls, pod: Pod, mounts: JsonList, rooms: Rooms) -> "VolumeRestrictions | PodRefusal | None":
        """None where nothing restricts the pod."""
        lonely = set()
        for name in claim_names(mounts):
            claim = rooms.api.get(CLAIM, pod.namespace, name)
            if claim is None:
                return PodRefusal(VOLUME_RESTRICTIONS, _not_found(CLAIM, name))
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                lonely.add(name)
        made = cls(pod, mounts, rooms, frozenset(lonely))
        return made if made._uses or made._disks else None

    def moved(self, other: Pod, room: NodePods, by: int) -> None:
        """Think a pod onto the node (1) or away from it (-1)."""
        if other.namespace == self._pod.namespace:
            names = claim_names(_mounts(self._rooms, other))
            self._uses += by * sum(name in self._lonely for name in names)

    def copied(self) -> "VolumeRestrictions":
        """The same; neither changes with the other."""
        made = object.__new__(VolumeRestrictions)
        made._pod, made._rooms, made._lonely = self._pod, self._rooms, self._lonely
        made._disks, made._uses = self._disks, self._uses
        return made

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod; None when it can."""
        if self._disks:
            there = [volume for other in room.pods.values() for volume in _mounts(self._rooms, other)]
            if any(_is_in_conflict(mine, theirs) for mine in self._disks for theirs in there):
                return _NO_DISK
        return _IN_USE if self._uses > 0 else None


_DISKS = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("iqn",),
    "rbd": ("pool", "image"),
}
"""Disks that only one node writes to, by what names one."""


def _is_in_conflict(mine: Json, theirs: Json) -> bool:
    for kind, names in _DISKS.items():
        one, other = mine.get(kind), theirs.get(kind)
        if not one or not other or any(one.get(name) != other.get(name) for name in names):
            continue
        if kind == "rbd" and {*one.get("monitors", ())}.isdisjoint(other.get("monitors", ())):
            continue
        # Amazon's may not even be read by two (isVolumeConflict).
        if kind == "awsElasticBlockStore" or not (one.get("readOnly") and other.get("readOnly")):
            return True
    return False


def _mounts(rooms: Rooms, other: Pod) -> JsonList:
    """The volumes of a pod that runs, or is thought to."""
    if rooms.place_of(other.key):
        return rooms.mounts.get(other.key, [])
    raw = rooms.api.get("Pod", other.namespace, other.name)
    return [] if raw is None else mounts_of(raw)


class NodeVolumeLimits:
    """A driver attaches only so many volumes to a node; what several pods share counts once."""

    plugin = VOLUME_LIMITS

    def __init__(self, pod: Pod, mounts: JsonList, rooms: Rooms) -> None:
        self._rooms = rooms
        self._new = dict(self._volumes(pod, mounts))

    @classmethod
    def of(cls, pod: Pod, mounts: JsonList, rooms: Rooms) -> "NodeVolumeLimits | None":
        """None where the pod mounts nothing that a driver attaches."""
        made = cls(pod, mounts, rooms)
        return made if made._new else None

    def moved(self, other: Pod, room: NodePods, by: int) -> None:
        """Nothing is counted beforehand."""

    def copied(self) -> "NodeVolumeLimits":
        """Itself, since it never changes."""
        return self

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod; None when it can."""
        name = room.node.name
        limits = _limits(self._rooms.api.get("CSINode", "", name))
        if not limits:
            return None
        held: dict[str, str] = {}
        for other in room.pods.values():
            held.update(self._volumes(other, _mounts(self._rooms, other)))
        attached = {**dict(self._attached(name)), **held}
        for driver in sorted({*self._new.values()} & limits.keys()):
            # Only what pods hold is no new volume: an attachment that is left over is counted beside it.
            new = sum(of == driver and handle not in held for handle, of in self._new.items())
            if new and new + sum(of == driver for of in attached.values()) > limits[driver]:
                return _TOO_MANY
        return None

    def _volumes(self, pod: Pod, mounts: JsonList) -> Iterator[tuple[str, str]]:
        """By unique name the driver of each volume."""
        for volume in mounts:
            name = _claim_name(pod, volume)
            claim = self._rooms.api.get(CLAIM, pod.namespace, name) if name else None
            if claim is not None:
                yield from self._driver(claim)

    def _driver(self, claim: Json) -> Iterator[tuple[str, str]]:
        volume = self._rooms.api.get(VOLUME, "", claim["spec"].get("volumeName") or "")
        if volume is not None:
            source = volume["spec"].get("csi")
            if source:
                yield f"{source['driver']}/{source['volumeHandle']}", source["driver"]
            return
        storage = self._rooms.api.get(CLASS, "", class_of(claim))
        if storage is not None:
            handle = f"{claim['metadata'].get('namespace')}/{name_of(claim)}"
            yield f"{storage['provisioner']}/-{handle}", storage["provisioner"]

    def _attached(self, node: str) -> Iterator[tuple[str, str]]:
        for attachment in self._rooms.api.list("VolumeAttachment"):
            if attachment["spec"].get("nodeName") != node:
                continue
            name = attachment["spec"].get("source", {}).get("persistentVolumeName") or ""
            source = (self._rooms.api.get(VOLUME, "", name) or {"spec": {}})["spec"].get("csi")
            if source:
                yield f"{source['driver']}/{source['volumeHandle']}", attachment["spec"]["attacher"]


def _limits(csi_node: Json | None) -> dict[str, int]:
    """By driver, how many volumes the node takes; a driver without a count takes any."""
    drivers = (csi_node or {"spec": {}})["spec"].get("drivers") or ()
    counts = ((each["name"], (each.get("allocatable") or {}).get("count")) for each in drivers)
    return {name: count for name, count in counts if count is not None}


def _claim_name(pod: Pod, volume: Json) -> str:
    """The claim behind a volume, also behind an ephemeral one; empty for none."""
    named = volume.get("persistentVolumeClaim")
    if named:
        return str(named["claimName"])
    return f"{pod.name}-{volume['name']}" if volume.get("ephemeral") else ""


@dataclass(frozen=True)
class VolumeBinding:
    """Bound volumes reach only some nodes, and those that wait for a consumer have to be found or made there.

    `waiting` are claims with their class, `found` the volumes that are there for each class.
    """

    rooms: Rooms
    bound: Sequence[Json]
    waiting: Sequence[Json]
    volumes: dict[str, JsonList] = field(default_factory=dict)
    plugin = VOLUMES

    @classmethod
    def of(cls, pod: Pod, mounts: JsonList, rooms: Rooms) -> "VolumeBinding | PodRefusal | None":
        """None where the pod mounts no claim."""
        claims: list[Json] = []
        for volume in mounts:
            name = _claim_name(pod, volume)
            if name:
                claim = rooms.api.get(CLAIM, pod.namespace, name)
                why = _unusable(pod, volume, name, claim, rooms)
                if why:
                    return PodRefusal(VOLUMES, why)
                assert claim is not None
                claims.append(claim)
        unbound = [claim for claim in claims if not claim["spec"].get("volumeName")]
        if any(not waits(claim, rooms.api) for claim in unbound):
            return PodRefusal(VOLUMES, "pod has unbound immediate PersistentVolumeClaims")
        if not claims:
            return None
        volumes: dict[str, JsonList] = {class_of(claim): [] for claim in unbound}
        for each in rooms.api.list(VOLUME) if unbound else ():
            volumes.get(class_of(each), []).append(each)
        # The smallest first: it takes the smallest volume that fits, and leaves the larger ones.
        unbound.sort(key=_size)
        return cls(rooms, [claim for claim in claims if claim["spec"].get("volumeName")], unbound, volumes)

    def moved(self, other: Pod, room: NodePods, by: int) -> None:
        """Other pods do not count."""

    def copied(self) -> "VolumeBinding":
        """Itself, since it never changes."""
        return self

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod; None when it can."""
        reasons = [self._bound_refusal(room), "" if self.chosen(room) is not None else _NOTHING_TO_BIND]
        found = tuple(reason for reason in reasons if reason)
        order = (_ELSEWHERE, _NOTHING_TO_BIND, _LOST)
        return FilterRefusal(VOLUMES, tuple(sorted(found, key=order.index)), is_final=True) if found else None

    def _bound_refusal(self, room: NodePods) -> str:
        for claim in self.bound:
            volume = self.rooms.api.get(VOLUME, "", claim["spec"]["volumeName"])
            if volume is None:
                return _LOST
            if not _reaches(volume, room.labels):
                return _ELSEWHERE
        return ""

    def chosen(self, room: NodePods) -> list[tuple[Json, Json | None]] | None:
        """By waiting claim the volume that it would get on the node, None for one to be made; None where one cannot."""
        taken: list[tuple[Json, Json | None]] = []
        for claim in self.waiting:
            selected = annotations_of(claim).get(_SELECTED_NODE)
            if selected is not None and selected != room.node.name:
                return None
            names = {name_of(volume) for _, volume in taken if volume is not None}
            volume = None if selected is not None else self._match(claim, room.labels, names)
            if volume is None and not self._can_be_made(claim, room.labels):
                return None
            taken.append((claim, volume))
        return taken

    def _match(self, claim: Json, labels: Labels, taken: set[str]) -> Json | None:
        """The smallest volume that fits the claim on the node, or the one that is kept for it; None for none."""
        best: Json | None = None
        for volume in self.volumes[class_of(claim)]:
            if name_of(volume) in taken or not may_hold(volume, claim):
                continue
            reaches = _reaches(volume, labels)
            if volume["spec"].get("claimRef"):
                return volume if reaches else None
            is_free = (volume.get("status") or {}).get("phase", "Available") == "Available"
            if (
                is_free
                and reaches
                and fits(volume, claim)
                and (best is None or capacity_of(volume) < capacity_of(best))
            ):
                best = volume
        return best

    def _can_be_made(self, claim: Json, labels: Labels) -> bool:
        storage = self.rooms.api.get(CLASS, "", class_of(claim))
        if storage is None or is_by_hand(storage):
            return False
        topologies = storage.get("allowedTopologies") or ()
        return not topologies or any(_is_allowed(each.get("matchLabelExpressions"), labels) for each in topologies)


def _unusable(pod: Pod, volume: Json, name: str, claim: Json | None, rooms: Rooms) -> str:
    """Why a claim cannot be mounted yet, whatever the node; empty when it can."""
    is_ephemeral = bool(volume.get("ephemeral"))
    if claim is None:
        waits = "waiting for ephemeral volume controller to create the " if is_ephemeral else ""
        return f'{waits}persistentvolumeclaim "{name}"' + ("" if is_ephemeral else " not found")
    if (claim.get("status") or {}).get("phase") == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim["spec"]["volumeName"]}"'
    if is_deleting(claim):
        return f'persistentvolumeclaim "{name}" is being deleted'
    if is_ephemeral and not any(owner.get("uid") == pod.uid for owner in owners_of(claim)):
        return f"PVC {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
    return ""


def waits(claim: Json, api: ObjectLookup) -> bool:
    """Whether an unbound claim is bound for its pod's sake."""
    storage = api.get(CLASS, "", class_of(claim))
    return storage is not None and storage.get("volumeBindingMode") == _WAITS


def is_by_hand(storage: Json) -> bool:
    """Whether no program makes volumes of the StorageClass."""
    return storage.get("provisioner") in (None, "", _NO_PROVISIONER)


def _reaches(volume: Json, labels: Labels) -> bool:
    # Only labels are looked at: a volume's terms have no fields, and an empty name matches none.
    terms = volume_terms(volume["spec"].get("nodeAffinity"))
    return terms is None or any(term.matches("", labels) for term in terms)


def may_hold(volume: Json, claim: Json) -> bool:
    """Whether a volume is free or kept for the claim, large enough, of its mode, and stays."""
    kept = volume["spec"].get("claimRef")
    if kept:
        meta = claim["metadata"]
        if (kept.get("namespace"), kept.get("name")) != (meta.get("namespace"), meta["name"]):
            return False
        if kept.get("uid") and kept["uid"] != uid_of(claim):
            return False
    modes = [each["spec"].get("volumeMode") or "Filesystem" for each in (volume, claim)]
    attributes = [each["spec"].get("volumeAttributesClassName") or "" for each in (volume, claim)]
    is_same = modes[0] == modes[1] and attributes[0] == attributes[1]
    return capacity_of(volume) >= _size(claim) and is_same and not is_deleting(volume)


def fits(volume: Json, claim: Json) -> bool:
    """Whether a volume that is kept for no claim has the labels and the access modes of the claim."""
    selector = claim["spec"].get("selector")
    if selector is not None and not LabelSelector.of(selector).matches(labels_of(volume)):
        return False
    return {*(claim["spec"].get("accessModes") or ())} <= {*(volume["spec"].get("accessModes") or ())}


def _size(claim: Json) -> int:
    asked = (claim["spec"].get("resources") or {}).get("requests") or {}
    return quantity(asked.get("storage", "0"), milli=True)


def capacity_of(volume: Json) -> int:
    """Of a volume, in thousandths of bytes."""
    return quantity((volume["spec"].get("capacity") or {}).get("storage", "0"), milli=True)


def _is_allowed(expressions: Sequence[Json] | None, labels: Labels) -> bool:
    return bool(expressions) and all(labels.get(each["key"]) in each["values"] for each in expressions or ())


@dataclass(frozen=True)
class VolumeZone:
    """The labels of bound volumes for zone and region are those of the node, where that has any."""

    wanted: Sequence[tuple[str, frozenset[str]]]
    plugin = VOLUME_ZONE

    @classmethod
    def of(cls, pod: Pod, mounts: JsonList, rooms: Rooms) -> "VolumeZone | PodRefusal | None":
        """None where no volume has such a label."""
        wanted: list[tuple[str, frozenset[str]]] = []
        for name in claim_names(mounts):
            claim = rooms.api.get(CLAIM, pod.namespace, name)
            if claim is None:
                return PodRefusal(VOLUME_ZONE, _not_found(CLAIM, name))
            volume_name = claim["spec"].get("volumeName")
            if not volume_name:
                continue
            volume = rooms.api.get(VOLUME, "", volume_name)
            if volume is None:
                return PodRefusal(VOLUME_ZONE, _not_found(VOLUME, volume_name))
            labels = labels_of(volume)
            wanted += [(key, frozenset(labels[key].split("__"))) for key in _GA_LABELS if key in labels]
        return cls(wanted) if wanted else None

    def moved(self, other: Pod, room: NodePods, by: int) -> None:
        """Other pods do not count."""

    def copied(self) -> "VolumeZone":
        """Itself, since it never changes."""
        return self

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod; None when it can."""
        if room.labels.keys().isdisjoint(_GA_LABELS):
            return None
        for key, values in self.wanted:
            if room.labels.get(key, room.labels.get(_GA_LABELS[key])) not in values:
                return _OTHER_ZONE
        return None
