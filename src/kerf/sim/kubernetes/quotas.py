"""ResourceQuotas: what pods and claims of a namespace ask for in sum, and who is refused because of it.

A workload whose namespace is full has fewer pods than it wants, and no pod that waits: nothing for an autoscaler to do.
What counts by which name, and which quotas with scopes count it, is in `model.resourcequotas`, by which planning from
manifests goes too. Left out: objects other than pods and claims.
"""

from collections.abc import Iterable, Mapping

from kerf.errors import ApiError
from kerf.manifests.decode import decode_object
from kerf.model.pods import Pod
from kerf.model.quantities import Resources, quantity_text
from kerf.model.resourcequotas import OBJECTS, exceeded, is_counted, resource_of, unstated
from kerf.model.snapshot import ResourceQuota, Watched
from kerf.model.volumes import PersistentVolumeClaim
from kerf.sim.kubernetes.admission import Admission
from kerf.sim.kubernetes.api import DELETED, Change
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.reconcilers import Key, Watcher
from kerf.sim.kubernetes.volumes import CLAIM, class_of
from kerf.sim.objects import Json, JsonList, ObjectLookup, is_ended, key_of, name_of, shown

_COUNTED = ("Pod", CLAIM)


class Quotas(Watcher):
    """Keeps the status of ResourceQuotas."""

    kind = "ResourceQuota"

    def notice(self, change: Change) -> Iterable[Key]:
        """A pod or claim that comes, ends or goes changes what its namespace uses; other changes of a pod do not."""
        obj = change.obj
        is_same = obj["kind"] == "Pod" and change.type not in ("ADDED", DELETED) and not is_ended(obj)
        if obj["kind"] not in _COUNTED or is_same:
            return ()
        return [(quota["metadata"]["namespace"], name_of(quota)) for quota in _of_namespace(self.api, obj)]

    def reconcile(self, obj: Json) -> None:
        """Count anew."""
        hard = obj["spec"].get("hard") or {}
        used = _used(self.api, _quota(obj))
        status = {"hard": hard, "used": {name: _text(name, amount) for name, amount in sorted(used.items())}}
        self.api.patch(self.kind, obj["metadata"]["namespace"], name_of(obj), {"status": status}, subresource="status")


def within_quotas(objects: ObjectLookup) -> Admission:
    """Refuse a pod or claim that a ResourceQuota of its namespace has no room for, or that leaves open what it asks."""

    def admit(obj: Json) -> None:
        if obj["kind"] not in _COUNTED:
            return
        quotas = _of_namespace(objects, obj)
        value = decode_object(obj) if quotas else None
        for quota in quotas:
            _check(objects, _quota(quota), obj, value)

    return admit


def _check(objects: ObjectLookup, quota: ResourceQuota, obj: Json, value: Watched | None) -> None:
    asked = _asked(quota, obj, value)
    if asked is None:
        return
    start = f"{shown(key_of(obj))} is forbidden: "
    unsaid = unstated(value.spec, quota.hard) if isinstance(value, Pod) else ()
    if unsaid:
        raise ApiError(f"{start}failed quota: {quota.name}: must specify {','.join(unsaid)}")
    used = _used(objects, quota)
    over = exceeded(quota.hard, used, asked)
    if over:
        exceeding = (
            f"{word}: {','.join(f'{name}={_text(name, amounts[name])}' for name in over)}"
            for word, amounts in (("requested", asked), ("used", used), ("limited", quota.hard))
        )
        raise ApiError(f"{start}exceeded quota: {quota.name}, {', '.join(exceeding)}")


def _asked(quota: ResourceQuota, obj: Json, value: Watched | None) -> Mapping[str, int] | None:
    """What the object counts of what the quota limits; None where that does not count such an object."""
    if isinstance(value, PersistentVolumeClaim):
        return quota.counted_claim(value, class_of(obj))
    if not isinstance(value, Pod):
        return None
    if is_ended(obj):
        # No scope lets a quota count objects that have ended.
        return None if quota.scopes else Resources({name: 1 for name in (OBJECTS,) if name in quota.hard})
    return quota.counted(value.spec)


def _quota(obj: Json) -> ResourceQuota:
    value = decode_object(obj)
    assert isinstance(value, ResourceQuota)
    return value


def _of_namespace(objects: ObjectLookup, obj: Json) -> JsonList:
    namespace = obj["metadata"]["namespace"]
    return [quota for quota in objects.list("ResourceQuota") if quota["metadata"]["namespace"] == namespace]


def _used(objects: ObjectLookup, quota: ResourceQuota) -> dict[str, int]:
    """What pods and claims use of what the quota limits; a name by which none counts is left out."""
    used = {name: 0 for name in quota.hard if is_counted(name)}
    for kind in _COUNTED:
        for obj in objects.list(kind):
            if obj["metadata"]["namespace"] == quota.namespace:
                for name, amount in (_asked(quota, obj, decoded(obj)) or {}).items():
                    used[name] += amount
    return used


def _text(name: str, amount: int) -> str:
    return quantity_text(resource_of(name), amount)
