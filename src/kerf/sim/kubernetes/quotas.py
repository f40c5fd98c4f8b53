"""ResourceQuotas: what the pods of a namespace ask for in sum, and who is refused because of it.

A workload whose namespace is full has fewer pods than it wants, and no pod that waits: nothing for an autoscaler to do.
As in the real one, an extended resource is counted as `requests.NAME` only, and pods that have ended count as
`count/pods` only. Left out: scopes (a quota that has any counts nothing here) and objects other than pods.
"""

from collections.abc import Iterable, Mapping

from kerf.errors import ApiError
from kerf.manifests.decode import decode_object
from kerf.model.pods import Pod
from kerf.model.quantities import NOTHING, quantity_text
from kerf.model.snapshot import ResourceQuota
from kerf.sim.kubernetes.admission import Admission
from kerf.sim.kubernetes.api import DELETED, Change
from kerf.sim.kubernetes.reconcilers import Key, Watcher
from kerf.sim.objects import Json, JsonList, ObjectLookup, is_ended, key_of, name_of, shown

_NATIVE = ("cpu", "memory", "ephemeral-storage")


class Quotas(Watcher):
    """Keeps the status of ResourceQuotas."""

    kind = "ResourceQuota"

    def notice(self, change: Change) -> Iterable[Key]:
        """A pod that comes, ends or goes changes what its namespace uses; other changes of it do not."""
        pod = change.obj
        if pod["kind"] != "Pod" or (change.type not in ("ADDED", DELETED) and not is_ended(pod)):
            return ()
        return [(quota["metadata"]["namespace"], name_of(quota)) for quota in _of_namespace(self.api, pod)]

    def reconcile(self, obj: Json) -> None:
        """Count anew."""
        hard = obj["spec"].get("hard") or {}
        used = _used(self.api, obj, _hard(obj))
        status = {"hard": hard, "used": {name: _text(name, amount) for name, amount in sorted(used.items())}}
        self.api.patch(self.kind, obj["metadata"]["namespace"], name_of(obj), {"status": status}, subresource="status")


def within_quotas(objects: ObjectLookup) -> Admission:
    """Refuse a pod that a ResourceQuota of its namespace has no room for, or that does not say what it asks for."""

    def admit(obj: Json) -> None:
        if obj["kind"] != "Pod":
            return
        for quota in _of_namespace(objects, obj):
            _check(objects, quota, obj)

    return admit


def _check(objects: ObjectLookup, quota: Json, obj: Json) -> None:
    hard, pod = _hard(quota), _pod(obj)
    start = f"{shown(key_of(obj))} is forbidden: "
    unsaid = sorted(name for name in hard if _says_nothing(pod, name))
    if unsaid:
        raise ApiError(f"{start}failed quota: {name_of(quota)}: must specify {','.join(unsaid)}")
    asked, used = _asked(pod), _used(objects, quota, hard)
    over = sorted(name for name in used if 0 < asked.get(name, 0) > hard[name] - used[name])
    if over:
        exceeded = (
            f"{word}: {','.join(f'{name}={_text(name, amounts[name])}' for name in over)}"
            for word, amounts in (("requested", asked), ("used", used), ("limited", hard))
        )
        raise ApiError(f"{start}exceeded quota: {name_of(quota)}, {', '.join(exceeded)}")


def _says_nothing(pod: Pod, name: str) -> bool:
    """Whether a container leaves open how much it takes of cpu or memory that the quota limits."""
    bare = _bare(name)
    if bare not in _NATIVE[:2] or name not in (bare, f"requests.{bare}", f"limits.{bare}"):
        return False
    amounts = (c.limits if name.startswith("limits.") else c.requests for c in pod.spec.containers)
    return any(bare not in held for held in amounts)


def _hard(quota: Json) -> Mapping[str, int]:
    value = decode_object(quota)
    assert isinstance(value, ResourceQuota)
    return value.hard


def _pod(obj: Json) -> Pod:
    value = decode_object(obj)
    assert isinstance(value, Pod)
    return value


def _of_namespace(objects: ObjectLookup, pod: Json) -> JsonList:
    namespace = pod["metadata"]["namespace"]
    found = (quota for quota in objects.list("ResourceQuota") if quota["metadata"]["namespace"] == namespace)
    return [quota for quota in found if not quota["spec"].get("scopes") and not quota["spec"].get("scopeSelector")]


def _used(objects: ObjectLookup, quota: Json, hard: Mapping[str, int]) -> dict[str, int]:
    """What pods use of what the quota limits; a name that no pod can use is left out."""
    pods = [pod for pod in objects.list("Pod") if pod["metadata"]["namespace"] == quota["metadata"]["namespace"]]
    used = {name: 0 for name in hard if _is_counted(name)}
    for pod in pods:
        asked = {"count/pods": 1} if is_ended(pod) else _asked(_pod(pod))
        for name, amount in asked.items():
            if name in used:
                used[name] += amount
    return used


def _is_counted(name: str) -> bool:
    return name in ("pods", "count/pods") or _bare(name) in _NATIVE or (name.startswith("requests.") and "/" in name)


def _asked(pod: Pod) -> dict[str, int]:
    """What a pod counts, by the names of a quota."""
    limits = NOTHING
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        limits = limits + container.limits
    requests = {name: n for name, n in pod.spec.requests.items() if name in _NATIVE or "/" in name}
    asked = {f"requests.{name}": n for name, n in requests.items()}
    asked |= {name: n for name, n in requests.items() if name in _NATIVE}
    asked |= {f"limits.{name}": n for name, n in limits.items() if name in _NATIVE}
    return asked | {"pods": 1, "count/pods": 1}


def _bare(name: str) -> str:
    """The resource that a name of a quota is about."""
    return name.removeprefix("requests.").removeprefix("limits.")


def _text(name: str, amount: int) -> str:
    return quantity_text(_bare(name), amount)
