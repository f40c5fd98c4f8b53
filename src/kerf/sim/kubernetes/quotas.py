"""ResourceQuotas: what pods and claims of a namespace ask for in sum, and who is refused because of it.

A workload whose namespace is full has fewer pods than it wants, and no pod that waits: nothing for an autoscaler to do.
What counts by which name, and which quotas with scopes count it, is in `model.resourcequotas`, by which planning from
manifests goes too. Left out: objects other than pods and claims.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from kerf.errors import ApiError
from kerf.manifests.decode import decode_object
from kerf.model.pods import Pod
from kerf.model.quantities import Resources, quantity_text
from kerf.model.resourcequotas import OBJECTS, exceeded, is_counted, resource_of, unstated
from kerf.model.snapshot import ResourceQuota, Watched
from kerf.model.volumes import PersistentVolumeClaim
from kerf.sim.kubernetes.admission import Admission
from kerf.sim.kubernetes.api import DELETED, Change, InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.reconcilers import Key, Watcher
from kerf.sim.kubernetes.volumes import CLAIM, class_of
from kerf.sim.objects import Json, JsonList, ObjectKey, ObjectLookup, is_ended, key_of, name_of, shown, uid_of

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
        """Count again."""
        hard = obj["spec"].get("hard") or {}
        used = _used(self.api, _quota(obj))
        status = {"hard": hard, "used": {name: _text(name, amount) for name, amount in sorted(used.items())}}
        self.api.patch(self.kind, obj["metadata"]["namespace"], name_of(obj), {"status": status}, subresource="status")


def within_quotas(api: InMemoryApi) -> Admission:
    """Refuse a pod or claim that a ResourceQuota of its namespace has no room for, or that leaves open what it asks.

    Cost: the quotas of the namespace, and what has changed since the last time; not the pods that are there.
    """
    usage = _Usage(api)

    def admit(obj: Json) -> None:
        if obj["kind"] not in _COUNTED:
            return
        quotas = _of_namespace(api, obj)
        value = decode_object(obj) if quotas else None
        for quota in quotas:
            _check(usage.of(quota), _quota(quota), obj, value)

    return admit


class _Usage:
    """What is used of each quota, kept up to date by the changes of the API."""

    def __init__(self, api: InMemoryApi) -> None:
        self._api, self._seen = api, 0
        self._quotas: dict[str, tuple[int, ResourceQuota]] = {}
        """By uid the generation that was counted for, and the quota as it was then."""
        self._used: dict[str, Counter[str]] = {}
        self._counted: dict[tuple[str, ObjectKey], Mapping[str, int]] = {}
        """What each object counts of a quota, by the quota's uid."""

    def of(self, raw: Json) -> Mapping[str, int]:
        """As `_used` counts it."""
        changes = self._api.changes_since(self._seen)
        if changes is None:
            # What was forgotten meanwhile is in what is there now.
            self._quotas.clear()
            self._counted.clear()
        for change in changes or ():
            if change.obj["kind"] in _COUNTED:
                self._note(change)
        self._seen = self._api.changes
        uid, generation = uid_of(raw), raw["metadata"]["generation"]
        if self._quotas.get(uid, (0,))[0] != generation:
            self._begin(uid, generation, _quota(raw))
        return self._used[uid]

    def _begin(self, uid: str, generation: int, quota: ResourceQuota) -> None:
        self._quotas[uid], self._used[uid] = (generation, quota), Counter(_nothing(quota))
        for kind in _COUNTED:
            for obj in self._api.list(kind):
                self._count(uid, quota, obj)

    def _note(self, change: Change) -> None:
        for uid, (_, quota) in self._quotas.items():
            self._used[uid].subtract(self._counted.pop((uid, key_of(change.obj)), {}))
            if change.type != DELETED:
                self._count(uid, quota, change.obj)

    def _count(self, uid: str, quota: ResourceQuota, obj: Json) -> None:
        if obj["metadata"]["namespace"] == quota.namespace:
            asked = self._counted[uid, key_of(obj)] = _asked(quota, obj, decoded(obj)) or {}
            self._used[uid].update(asked)


def _check(used: Mapping[str, int], quota: ResourceQuota, obj: Json, value: Watched | None) -> None:
    asked = _asked(quota, obj, value)
    if asked is None:
        return
    start = f"{shown(key_of(obj))} is forbidden: "
    unsaid = unstated(value.spec, quota.hard) if isinstance(value, Pod) else ()
    if unsaid:
        raise ApiError(f"{start}failed quota: {quota.name}: must specify {','.join(unsaid)}")
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
    used = _nothing(quota)
    for kind in _COUNTED:
        for obj in objects.list(kind):
            if obj["metadata"]["namespace"] == quota.namespace:
                for name, amount in (_asked(quota, obj, decoded(obj)) or {}).items():
                    used[name] += amount
    return used


def _nothing(quota: ResourceQuota) -> dict[str, int]:
    return {name: 0 for name in quota.hard if is_counted(name)}


def _text(name: str, amount: int) -> str:
    return quantity_text(resource_of(name), amount)
