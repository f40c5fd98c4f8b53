"""How much room a namespace may have kept: what its ResourceQuotas leave, on pools that let it.

Pods are admitted by the API server, room is not: a CronJob, a request or a window only names a number. So the quota
that binds the pods binds their room as well, together with what the pods of the namespace ask already. Where neither a
quota nor a pool bounds it, a namespace has one pod's room kept for all that it asks, hence one node at most at a time.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.engine.place.devices import quota_asked, quota_limits
from kerf.engine.place.shapes import Shape
from kerf.model.causes import (
    Cause,
    MostRoom,
    Name,
    NoPoolNames,
    OverResourceQuota,
    RoomLimited,
    RoomUnbounded,
)
from kerf.model.constraints import NODE_POOL, Requirement, Requirements
from kerf.model.nodepool import NodePool
from kerf.model.placeholders import Placeholder
from kerf.model.pods import Pod, PodSpec
from kerf.model.provisioningrequests import consumed_request
from kerf.model.quantities import NOTHING, Resources
from kerf.model.resourcequotas import COUNTS, counted
from kerf.model.snapshot import ClusterSnapshot, ResourceQuota
from kerf.model.uses import EVERYBODY, Use, namespaces_for
from kerf.sharing.family import Family
from kerf.sharing.registry import families_of

MOST_PODS = 1000
"""For so many pods at most one run, window or request has room kept, whatever number its author writes."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Room for so many pods of this spec, which keeps to the pools that let them; `limited` says why not for more."""

    number: int
    spec: PodSpec
    limited: RoomLimited | None = None


@dataclass(frozen=True, slots=True)
class _Pools:
    """Pools by what they say of a namespace: `named` name it, `silent` have no list, `closed` name only others."""

    named: tuple[str, ...]
    silent: tuple[str, ...]
    closed: tuple[str, ...]


class Grants:
    """What is granted in one decision: each grant leaves less for the next one of its namespace.

    `limited` is where callers keep why they got less than they asked for. Cost: linear in the pods and quotas of the
    cluster once, and constant in the number that is asked for.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._granted: dict[str, Resources] = {}
        self._used: dict[str, Resources] = {}
        # By namespace, not by who asks: a tenant writes as many CronJobs as it likes.
        self._unbounded: set[str] = set()
        self.limited: list[RoomLimited] = []

    @cached_property
    def _families(self) -> tuple[Family, ...]:
        return families_of(self._snapshot)

    def grant(self, use: Use | None, kept: Placeholder, pod: Pod, wanted: int, whose: str) -> Grant:
        """Room for `wanted` pods like `pod` of the namespace `whose`, empty for any; `kept` names what asks for it.

        `use` None: nothing is bought for it, so only quotas bind.
        """
        asked, quotas = self._asked(pod), self._quotas(whose)
        pools = self._pools(use, whose)
        number = min(wanted, MOST_PODS)
        why: Cause | None = MostRoom(MOST_PODS) if number < wanted else None
        unbounded = None
        bounding = _bounding(asked)
        is_bounded = any(name in quota.hard for quota in quotas for name in bounding)
        if use is not None and self._snapshot.node_pools:
            unbounded = self._unbounded_by(use, whose, bounding, pools) if not is_bounded else None
            if unbounded is not None and unbounded[0] < number:
                number, why = unbounded
        over = self._over(whose, asked, quotas, number)
        if over is not None:
            number, why = over
        self._granted[whose] = self._granted.get(whose, NOTHING) + asked * number
        if number and unbounded is not None:
            self._unbounded.add(whose)
        limited = None if why is None else RoomLimited(kept, wanted, number, why)
        is_only_named = use is not None and not is_bounded and bool(pools.named)
        return Grant(number, _on_pools(pod.spec, pools, is_only_named=is_only_named), limited)

    def mark(self) -> object:
        """What was granted so far, for `restore`."""
        return dict(self._granted), set(self._unbounded)

    def restore(self, mark: object) -> None:
        """Take back what was granted since a `mark`: a request that does not get all gets nothing."""
        assert isinstance(mark, tuple)
        self._granted, self._unbounded = mark

    def _unbounded_by(
        self, use: Use, namespace: str, bounding: Collection[str], pools: _Pools
    ) -> tuple[int, Cause] | None:
        """The most that no quota has to bound, and why; None where a pool names the namespace."""
        if pools.named:
            return None
        if not pools.silent:
            return 0, NoPoolNames(Name(namespace), Name(use))
        resource = min(bounding, key=lambda name: (not name.startswith("requests."), len(name), name))
        return int(namespace not in self._unbounded), RoomUnbounded(Name(namespace), Name(resource), Name(use))

    def _over(
        self, namespace: str, asked: Resources, quotas: Collection[ResourceQuota], wanted: int
    ) -> tuple[int, OverResourceQuota] | None:
        """For how many pods the quotas leave room, with the quota that leaves least; None where for all."""
        found = None
        for quota in quotas:
            limits = quota_limits(quota, self._families)
            used = self._usage(namespace) + quota.used + self._granted.get(namespace, NOTHING)
            for name in sorted(limits):
                more = asked.get(name, 0)
                left = max(0, limits[name] - used.get(name, 0)) // more if more > 0 else wanted
                if left < (wanted if found is None else found[0]):
                    key = Name(quota.namespace), Name(quota.name), Name(name)
                    planned = used.get(name, 0) + left * more
                    found = left, OverResourceQuota(*key, limits[name], planned, more)
        return found

    def _quotas(self, namespace: str) -> tuple[ResourceQuota, ...]:
        # A scope picks some pods by what they are; room has no such pods yet.
        return self._quotas_of.get(namespace, ())

    @cached_property
    def _quotas_of(self) -> dict[str, tuple[ResourceQuota, ...]]:
        found: dict[str, tuple[ResourceQuota, ...]] = {}
        for quota in self._snapshot.quotas:
            if not quota.scopes:
                found[quota.namespace] = (*found.get(quota.namespace, ()), quota)
        return found

    def _pools(self, use: Use | None, namespace: str) -> _Pools:
        said = [(p.name, None if use is None else _lets(p, use, namespace)) for p in self._snapshot.node_pools]
        named, silent, closed = (tuple(name for name, lets in said if lets is asked) for asked in (True, None, False))
        return _Pools(named, silent, closed)

    def _asked(self, pod: Pod) -> Resources:
        """What one pod counts, by the names of a quota."""
        return counted(pod.spec) + quota_asked(Shape((pod,)), self._families)

    def _usage(self, namespace: str) -> Resources:
        """What the namespace's pods ask, by the names of a quota; families count those with a place themselves."""
        if namespace not in self._used:
            specs: dict[int, Pod] = {}
            numbers: Counter[tuple[int, bool]] = Counter()
            for pod in self._pods.get(namespace, ()):
                specs.setdefault(id(pod.spec), pod)
                has_place = bool(pod.node_name) or any(family.booked_node(pod) for family in self._families)
                numbers[id(pod.spec), has_place] += 1
            used = NOTHING
            for (spec, has_place), number in numbers.items():
                pod = specs[spec]
                used = used + (counted(pod.spec) if has_place else self._asked(pod)) * number
            self._used[namespace] = used
        return self._used[namespace]

    @cached_property
    def _pods(self) -> dict[str, list[Pod]]:
        """By namespace, the pods that have not ended, without those that wait for the room of a request."""
        found: dict[str, list[Pod]] = {}
        for pod in self._living():
            found.setdefault(pod.namespace, []).append(pod)
        return found

    def _living(self) -> Iterator[Pod]:
        snapshot = self._snapshot
        awaited = {each.key for each in snapshot.provisioning_requests if each.booked_until_s is None}
        for node in snapshot.nodes:
            yield from (pod for pod in node.pods if not pod.is_ended)
        waiting = {pod.key: pod for pod in (*snapshot.grouped, *snapshot.pending)}
        for pod in waiting.values():
            if not pod.node_name and not pod.is_ended and consumed_request(pod) not in awaited:
                yield pod


def _lets(pool: NodePool, use: Use, namespace: str) -> bool | None:
    """Whether a pool lets a namespace do it; None where it says nothing."""
    try:
        names = namespaces_for(use, pool.stated_annotations)
    except ValueError:
        return False
    return None if names is None else EVERYBODY in names or namespace in names


def _on_pools(spec: PodSpec, pools: _Pools, *, is_only_named: bool) -> PodSpec:
    """The spec with the pools that let it, where some do not."""
    if is_only_named and (pools.silent or pools.closed):
        return _within(spec, "In", pools.named)
    return _within(spec, "NotIn", pools.closed) if pools.closed else spec


def _within(spec: PodSpec, operator: str, names: Collection[str]) -> PodSpec:
    there = Requirements([Requirement.of(NODE_POOL, operator, names)])
    return replace(spec, node_selector=spec.node_selector.intersect(there))


def opportunistic_spec(spec: PodSpec, namespace: str, pools: Collection[NodePool]) -> PodSpec:
    """The spec without the pools that let only other namespaces' pods use what is idle."""
    closed = tuple(pool.name for pool in pools if _lets(pool, Use.OPPORTUNISTIC, namespace) is False)
    return _within(spec, "NotIn", closed) if closed else spec


def _bounding(asked: Mapping[str, int]) -> tuple[str, ...]:
    """The names of a quota of which one must be limited: those of cards where pods ask for some, else cpu, memory."""
    names = [name for name, amount in asked.items() if amount > 0 and name not in COUNTS]
    cards = [name for name in names if "/" in name]
    return tuple(cards or names or COUNTS)
