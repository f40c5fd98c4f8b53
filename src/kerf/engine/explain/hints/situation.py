"""What a decision knew when it refused pods, and the patches that hints are made of."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from kerf.engine.buy.filling import Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.decision import Buy, Evidence
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.place.fit import fit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.weights import weight_of
from kerf.engine.supply.offered import OfferedType, Supply, supply
from kerf.engine.world import World
from kerf.model.constraints import Requirement, Requirements
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.owners import top_owner
from kerf.model.plan import Misfit, Patch
from kerf.model.pods import Owner, Pod, PodSpec
from kerf.model.snapshot import ClusterSnapshot

Change = Mapping[str, object]
"""A JSON merge patch."""

MOST_WORLDS = 8
"""How many changed worlds are kept, each with what it sells."""
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Pod": (),
    "CronJob": ("jobTemplate", "spec", "template", "spec"),
    "Job": ("template", "spec"),
    "Deployment": ("template", "spec"),
    "ReplicaSet": ("template", "spec"),
    "StatefulSet": ("template", "spec"),
}
"""Where the pod's spec stands in the spec of the object that makes it."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A hint and what carries it out: `pool` as it would be, or `spec` as the pods would be; words alone have neither.

    `patch` is for the pool, or for what makes the pod; None with words alone. `change` is the pod's own change where
    the pod changes: equal pods of another workload need it there. `more` are patches of pools that are needed beside.
    `extent` says how far the change helps and how soon, where not all pods are placed at once; `is_partial` that it
    does not place all of them. `effect` is what it does to other pods. Both follow the hint, in this order. `is_cut`:
    `kerf explain` would try more. `parts` are the changes that it was joined from, none for one by itself.
    With `is_exchange` the pods get other GPUs than they ask for now.
    """

    hint: str = ""
    patch: Patch | None = None
    change: Change = field(default_factory=dict)
    pool: NodePool | None = None
    spec: PodSpec | None = None
    more: tuple[Patch, ...] = ()
    extent: str = ""
    effect: str = ""
    is_partial: bool = False
    is_cut: bool = False
    is_exchange: bool = False
    parts: "tuple[Advice, ...]" = ()

    @property
    def text(self) -> str:
        """All of its words."""
        return self.hint + self.extent + self.effect

    @property
    def can_be_tried(self) -> bool:
        """Whether it says a change, and not only words."""
        return self.pool is not None or self.spec is not None

    @property
    def is_words(self) -> bool:
        """Whether it says no change at all, whether that can be tried or not."""
        return not self.can_be_tried and self.patch is None and not self.change

    def changes_as(self, other: "Advice") -> bool:
        """Whether pools and pods are the same with either, however it is said."""
        return self.pool == other.pool and self.spec == other.spec


@dataclass(frozen=True)
class Situation:
    """The evidence of a refusal, how often hints on it may be tried, and those that hold for all of its pods.

    `on_limits` has them by pool and resource. `worlds` are the last with a changed pool: the world before, the pool,
    and the world with it. `bought` has by world what is bought there for the pods as they are, and the limits then.
    `first_left` is how many pods each shape had left before any change; None before the first.
    """

    evidence: Evidence
    tries: Tries = field(default_factory=Tries)
    on_limits: dict[tuple[str, str], Advice] = field(default_factory=dict)
    worlds: list[tuple[World, NodePool, World]] = field(default_factory=list)
    bought: list[tuple[World, Purchase, Ledger]] = field(default_factory=list)
    first_left: tuple[int, ...] | None = None

    @property
    def snapshot(self) -> ClusterSnapshot:
        """The cluster that was decided for."""
        return self.evidence.world.snapshot

    @property
    def market(self) -> Market:
        """What could be bought."""
        return self.evidence.world.market

    @property
    def supply(self) -> Supply:
        """What the pools offered of it."""
        return self.evidence.world.supply

    @property
    def before(self) -> Ledger:
        """The limits before anything was bought."""
        return self.evidence.before

    @property
    def after(self) -> Ledger:
        """The limits when the pods were refused."""
        return self.evidence.after

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All that was to be bought for."""
        return self.evidence.shapes

    @property
    def left(self) -> tuple[int, ...]:
        """How many pods of each shape had no place before any change."""
        return self.evidence.left if self.first_left is None else self.first_left

    @property
    def buy(self) -> Buy:
        """How nodes were chosen."""
        return self.evidence.buy


def with_pool(pool: NodePool, situation: Situation) -> World:
    """The world with the pool as given; the same one for equal pools, because working out what it sells costs most."""
    base = situation.evidence.world
    for before, changed, after in situation.worlds:
        if before is base and changed == pool:
            return after
    situation.worlds.append((base, pool, base.with_pools((pool,))))
    del situation.worlds[:-MOST_WORLDS]
    return situation.worlds[-1][2]


def patch_of_pool(pool: NodePool, change: Change) -> Patch:
    """A merge patch of the pool's spec."""
    return Patch("NodePool", pool.name, {"spec": change})


def changing_pool(hint: str, changed: NodePool, change: Change) -> Advice:
    """The hint, with a merge patch that makes the pool what it would be."""
    return Advice(hint, patch_of_pool(changed, change), pool=changed)


def pod_patch(pod: Pod, change: Change, cron_jobs: Container[str] = ()) -> Patch | None:
    """A patch of the pod, moved to the top controller's template; None where Kerf does not know that kind's template.

    Lower controllers get none: their own controller would undo it. `cron_jobs` as for `top_owner`.
    """
    owner = top_owner(pod, cron_jobs) or Owner("Pod", pod.name)
    if owner.kind not in _TEMPLATES:
        return None
    inner: object = change.get("spec", {})
    for step in reversed(_TEMPLATES[owner.kind]):
        inner = {step: inner}
    return Patch(owner.kind, owner.name, {"spec": inner}, pod.namespace)


def changing_pod(hint: str, shape: Shape, spec: PodSpec, change: Change, situation: Situation) -> Advice:
    """The hint, with a patch of whatever makes the pod that merges `change` into its spec, which is `spec` then."""
    patch = pod_patch(shape.pod, {"spec": change}, situation.snapshot.cron_job_keys)
    return Advice(hint, patch, {"spec": change}, spec=spec)


def places(shape: Shape, pool: NodePool, situation: Situation) -> bool:
    """Whether the pool, as given, offers a type that takes the shape, can be bought, and is within its limits.

    One try; False also when there is none left.
    """
    return any(situation.after.room_for(offered) != 0 for offered in takers(shape, pool, situation) or ())


def takers(shape: Shape, pool: NodePool, situation: Situation) -> list[OfferedType] | None:
    """What the pool, as given, offers that takes the shape and can be bought, limits aside.

    One try, which costs beside that what pods ask more than usual; None when there is none left, which says nothing
    of what the pool offers.
    """
    kinds = situation.market.types_of(pool.node_class)
    if not situation.tries.take(len(kinds) * (weight_of(shape.spec) - 1)):
        return None
    others = tuple(pool if p.name == pool.name else p for p in situation.snapshot.node_pools)
    offered_types = supply(replace(situation.snapshot, node_pools=others), situation.market).by_pool.get(pool.name, ())
    takers = []
    for offered in offered_types:
        result = fit(offered.target, offered.room, shape)
        if isinstance(result, Misfit):
            continue
        if offered.offering_for(result.room.requirements) is not None:
            takers.append(offered)
    return takers


def expressions_of(requirement: Requirement) -> list[dict[str, object]]:
    """One requirement as entries of a manifest: several where bounds and excluded values stand together."""
    entries: list[dict[str, object]] = []
    for operator, values in requirement.forms():
        given = {"values": list(values)} if values else {}
        entries.append({"key": requirement.key, "operator": operator, **given})
    return entries


def with_requirement(pool: NodePool, stated: Requirement) -> NodePool:
    """The pool with this requirement in place of those on the same label."""
    others = pool.requirements.without((stated.key,))
    return replace(pool, requirements=others.intersect(Requirements([stated])))


def widened_by(pool: NodePool, asked: Requirement) -> Advice | None:
    """The pool that allows the values of a label that are asked, without a hint; None where it names none itself."""
    held = pool.requirements.get(asked.key)
    if held is None or asked.complement or not asked.values or (held.complement and not held.values & asked.values):
        return None
    if not held.complement:
        allowed = Requirement(asked.key, False, held.values | asked.values, min_values=held.min_values)
        widened = with_requirement(pool, allowed)
    else:
        allowed = replace(held, values=held.values - asked.values)
        is_nothing = allowed == Requirement(asked.key, complement=True)
        others = pool.requirements.without((asked.key,))
        widened = replace(pool, requirements=others) if is_nothing else with_requirement(pool, allowed)
    return changing_pool("", widened, {"template": {"spec": {"requirements": requirements_of(widened)}}})


def requirements_of(pool: NodePool) -> list[dict[str, object]]:
    """The requirements of a pool as entries of its manifest, in the order of their keys."""
    found: list[dict[str, object]] = []
    for key in sorted(pool.requirements):
        requirement = pool.requirements[key]
        for entry in expressions_of(requirement):
            if requirement.min_values is not None:
                entry = {**entry, "minValues": requirement.min_values}
            found.append(entry)
    return found
