"""What can be had: every instance type as each NodePool offers it, and every node there is or will be.

A pool's types are filtered by its requirements, adjusted by NodeOverlays, and lose their sold-out offerings; what falls
out is kept with its reason, because "p3.2xlarge is not sold here" is the answer somebody is waiting for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from kerf.engine.place.devices import with_parts
from kerf.engine.place.fit import admits
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room, Target
from kerf.engine.supply import overlays
from kerf.engine.supply.offerings import offerings_of
from kerf.model.causes import (
    CardsNeverShown,
    Cause,
    Name,
    NoCards,
    NodeClassNotFound,
    NodeClassUnready,
    OfPool,
    OverlayNotApplied,
    PoolDeleting,
    PoolInvalid,
    PoolStatic,
    Quoted,
    TargetKind,
    TargetName,
)
from kerf.model.constraints import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ZONE,
    Requirements,
)
from kerf.model.gpu import DeviceShape, DeviceState
from kerf.model.instancetypes import InstanceType, Offering, OfferingKey
from kerf.model.large import Large
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.pods import HostPort
from kerf.model.quantities import COST_PER_HOUR, NODES, Resources
from kerf.model.snapshot import ClusterSnapshot, NodeClass
from kerf.sharing.family import Family
from kerf.sharing.nvidia.choice import CONFIGURATION_LABELS, as_chosen, label_choices
from kerf.sharing.registry import configured, double_booked, owner_of

_KEPT = 16
"""Answers of `supply` that one market keeps."""


@dataclass(frozen=True, eq=False)
class OfferedType:
    """An instance type as one pool offers it.

    `offerings` are those that can be had now, in launch order: reserved, spot, on-demand, each by price, then zone.
    `sold_out` are the capacity types it would otherwise come in, and `over_price_cap` the offerings that a price
    cap of the pool leaves out, cheapest first. `room` is an empty node of it, daemons taken off. `capacity` is what a
    launch charges against the pool's limits, at the price of its cheapest offering.
    """

    target: Target
    pool: NodePool
    kind: InstanceType
    offerings: tuple[Offering, ...]
    room: Room
    capacity: Resources
    refused: Cause | None = None
    retry_at_s: float = 0
    sold_out: tuple[str, ...] = ()
    over_price_cap: tuple[Offering, ...] = ()

    @property
    def order(self) -> tuple[int, str, str]:
        """Sort key: price, then pool, then type."""
        return (self.price_micro, self.pool.name, self.kind.name)

    @property
    def price_micro(self) -> int:
        """Of the first offering; 0 when there is none."""
        return self.offerings[0].price_micro if self.offerings else 0

    @cached_property
    def layout(self) -> tuple[object, ...]:
        """What decides how devices take pods; those with equal ones take the same pods."""
        return (self.target.family.name, self.room.devices)

    def offering_for(self, requirements: Requirements) -> Offering | None:
        """The first offering that the requirements allow; None when none is left."""
        zone, capacity_type = requirements.get(ZONE), requirements.get(CAPACITY_TYPE)
        for offering in self.offerings:
            if (zone is None or zone.has(offering.zone)) and (
                capacity_type is None or capacity_type.has(offering.capacity_type)
            ):
                return offering
        return None

    def key_of(self, offering: Offering) -> OfferingKey:
        """The name of one of its offerings."""
        return OfferingKey(self.kind.name, offering.zone, offering.capacity_type)


@dataclass(frozen=True, eq=False, repr=False)
class Supply(Large):
    """Everything that could be bought on a market: the types of all pools, and what a plan should tell of them.

    `pool_problems` are why a pool takes no nodes, `sharing_problems` which of its configurations of GPU sharing leave
    nodes without a GPU; both by the pool's name.
    """

    market: Market
    available: tuple[OfferedType, ...]
    unavailable: tuple[OfferedType, ...] = ()
    families: tuple[Family, ...] = ()
    pool_problems: tuple[tuple[str, Cause], ...] = ()
    notes: tuple[Cause, ...] = ()
    sharing_problems: tuple[tuple[str, Cause], ...] = ()

    @cached_property
    def by_pool(self) -> dict[str, tuple[OfferedType, ...]]:
        """Offered types of each pool that has any, in their order."""
        found: dict[str, list[OfferedType]] = {}
        for offered in self.available:
            found.setdefault(offered.pool.name, []).append(offered)
        return {name: tuple(held) for name, held in found.items()}

    @cached_property
    def types_in_pools(self) -> Mapping[tuple[str, str], InstanceType]:
        """Types as NodeOverlays correct them, by pool and name of the type; also those that cannot be had now."""
        return {(each.pool.name, each.kind.name): each.kind for each in (*self.unavailable, *self.available)}


@dataclass
class _Collected:
    available: list[OfferedType] = field(default_factory=list)
    unavailable: list[OfferedType] = field(default_factory=list)
    problems: list[tuple[str, Cause]] = field(default_factory=list)
    sharing: list[tuple[str, Cause]] = field(default_factory=list)
    notes: list[Cause] = field(default_factory=list)


def supply(snapshot: ClusterSnapshot, market: Market) -> Supply:
    """What every usable pool offers. Cost: pools x types, once for equal pools and the same market.

    The last answers are kept on the market: controllers plan every few seconds, prices change every few hours, and
    advice asks for the same pools with one thing changed.
    """
    key = (
        tuple(pool.template() for pool in snapshot.node_pools),
        snapshot.overlays,
        snapshot.daemon_sets,
        snapshot.config_maps,
        snapshot.quotas,
        snapshot.node_classes,
        snapshot.assume_node_classes,
    )
    kept = market.supplies
    known = kept.get(key)
    if isinstance(known, Supply):
        return known
    if len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    found = kept[key] = _supply(snapshot, market)
    return found


def _supply(snapshot: ClusterSnapshot, market: Market) -> Supply:
    families = configured(snapshot.config_maps)
    collected = _Collected()
    conflicting = overlays.conflicts(snapshot.overlays, snapshot.node_pools, market.types) if snapshot.overlays else {}
    standing = tuple(o for o in snapshot.overlays if o.name not in conflicting)
    collected.notes.extend(OverlayNotApplied(Name(name), why) for name, why in sorted(conflicting.items()))
    for pool in sorted(snapshot.node_pools, key=lambda p: p.order):
        problem = pool_problem(pool, snapshot.node_classes, assume_ready=snapshot.assume_node_classes)
        if problem is not None:
            collected.problems.append((pool.name, problem))
            continue
        overlaid = overlays.apply(standing, pool, allowed_types(pool, market.types))
        collected.notes.extend(overlaid.notes)
        variants = {has_mig: _variants(pool, families, has_mig=has_mig) for has_mig in (False, True)}
        offers = [(kind, variants[any(shape.profiles for shape in kind.devices)]) for kind in overlaid.types]
        useless, problems = _sharing_problems(offers, families)
        collected.notes.extend(OfPool(Name(pool.name), problem) for problem in useless)
        collected.sharing.extend((pool.name, problem) for problem in problems)
        for kind, among in offers:
            for variant in among:
                _offer(variant, kind, (snapshot, market, families), collected)
    return Supply(
        market,
        tuple(sorted(collected.available, key=lambda c: c.order)),
        tuple(collected.unavailable),
        families,
        tuple(collected.problems),
        tuple(dict.fromkeys(collected.notes)),
        tuple(collected.sharing),
    )


def _variants(pool: NodePool, families: Sequence[Family], *, has_mig: bool) -> tuple[NodePool, ...]:
    """The pool once for each set of labels that its nodes may get: of equal price the first is taken."""
    found = []
    for choice in label_choices(pool.labels, pool.stated_annotations, has_mig=has_mig):
        labels = {**pool.labels, **choice}
        for assumed in owner_of(labels, pool.stated_annotations, families).assumptions(labels):
            added = {**choice, **assumed}
            found.append(replace(pool, labels={**labels, **assumed}, chosen_labels=added) if added else pool)
    return tuple(found)


def pool_problem(pool: NodePool, node_classes: Iterable[NodeClass], *, assume_ready: bool) -> Cause | None:
    """Why a pool takes no new nodes now; None when it does.

    `assume_ready`: a NodeClass that nobody gave is taken as ready.
    """
    if pool.deleted_s is not None:
        return PoolDeleting()
    if pool.invalid or pool.bounds.invalid:
        return PoolInvalid(Quoted(pool.invalid), Quoted(pool.bounds.invalid))
    if pool.replicas is not None:
        return PoolStatic()
    reference = pool.node_class
    kind, name = Name(reference.kind), Name(reference.name)
    wanted = (reference.group, reference.kind, reference.name)
    found = next((each for each in node_classes if (each.group, each.kind, each.name) == wanted), None)
    if found is None:
        return None if assume_ready else NodeClassNotFound(kind, name)
    return None if found.is_ready else NodeClassUnready(kind, name, Quoted(found.reason))


def allowed_types(pool: NodePool, types: Sequence[InstanceType]) -> tuple[InstanceType, ...]:
    """The types that the pool's requirements admit, offerings and overlays aside; in the order of `types`."""
    named = pool.requirements.get(INSTANCE_TYPE)
    wanted = pool.template_requirements().without_min_values()
    return tuple(
        kind
        for kind in types
        if (named is None or named.has(kind.name))
        and wanted.without(pool.labels).conflict(kind.requirements) is None
        and _defines(kind, pool)
        and (not kind.is_fractional or _names_fraction(pool, kind))
    )


def _defines(kind: InstanceType, pool: NodePool) -> bool:
    # A requirement on a label of the cloud (gpu-count Gt 0) leaves out types that do not have the label at all.
    for key, requirement in pool.requirements.items():
        if key not in kind.requirements and not requirement.allows_absence and _is_cloud_label(key):
            return False
    return True


def _is_cloud_label(key: str) -> bool:
    return key.partition("/")[0] in ("karpenter.k8s.aws", "karpenter.k8s.alibabacloud", "karpenter.kwok.sh")


def _names_fraction(pool: NodePool, kind: InstanceType) -> bool:
    for key, requirement in pool.requirements.items():
        if requirement.complement:
            continue
        if key == INSTANCE_TYPE and kind.name in requirement.values:
            return True
        if key.endswith("/instance-family") and kind.family in requirement.values:
            return True
    return False


def _offer(
    pool: NodePool, kind: InstanceType, given: tuple[ClusterSnapshot, Market, tuple[Family, ...]], out: _Collected
) -> None:
    """Add one type of one pool to `out`, as available or with the reason why it is not."""
    snapshot, market, families = given
    requirements = pool.template_requirements().intersect(kind.requirements)
    sold = offerings_of(pool, kind, requirements, market)
    family = owner_of(pool.labels, pool.stated_annotations, families)
    obstacle = _obstacle(pool, kind, families, family)
    shapes, devices = _cards(pool, replace(kind, devices=_as_observed(pool, kind, market)), family, obstacle)
    target = Target(
        TargetName(TargetKind.NODE_POOL, Name(pool.name), Name(kind.name)),
        requirements,
        pool.taints,
        family,
        families,
        pool.name,
        quotas=snapshot.quotas,
        no_devices=obstacle,
        sold=tuple((o.zone, o.capacity_type) for o in sold.available),
    )
    room = _empty_room(target, with_parts(kind.allocatable, family, devices), snapshot)
    offered = OfferedType(
        target,
        pool,
        replace(kind, devices=shapes),
        sold.available,
        replace(room, devices=devices),
        kind.capacity + {NODES: 1} + _cost(pool, sold.available),
        sold.refused,
        sold.retry_at_s,
        sold.sold_out,
        sold.over_price_cap,
    )
    (out.available if sold.available else out.unavailable).append(offered)


def _cards(
    pool: NodePool, kind: InstanceType, family: Family, obstacle: Cause | None
) -> tuple[tuple[DeviceShape, ...], tuple[DeviceState, ...]]:
    """The cards of a new node as a claim remembers them, and as they will be registered: none behind an obstacle."""
    devices = () if obstacle is not None else family.predict(kind.devices, pool.labels, pool.stated_annotations)
    if any(device.partitions or device.profiles for device in devices):
        return kind.devices, devices
    # Claims remember the cards of their type: MIG tables only where cards are cut by them.
    return tuple(replace(shape, profiles=(), pci_ids=()) for shape in kind.devices), devices


def _cost(pool: NodePool, available: Sequence[Offering]) -> dict[str, int]:
    """The least that a node counts of a limited cost; nothing where the pool does not limit it."""
    if pool.limits is None or COST_PER_HOUR not in pool.limits:
        return {}
    return {COST_PER_HOUR: min((o.price_micro for o in available), default=0)}


def _as_observed(pool: NodePool, kind: InstanceType, market: Market) -> tuple[DeviceShape, ...]:
    """The type's cards, with no more memory than was seen on a node of it in this pool."""
    observed_mib = market.observed_memory_mib.get((pool.name, kind.name))
    if observed_mib is None:
        return kind.devices
    return tuple(
        replace(shape, memory_mib=observed_mib, memory_source="observed on a node of this pool")
        if observed_mib < shape.memory_mib
        else shape
        for shape in kind.devices
    )


def _sharing_problems(
    offers: Sequence[tuple[InstanceType, Sequence[NodePool]]], families: Sequence[Family]
) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """Choices of the pool under which a type shows no GPU, whatever else is assumed; and all that is wrong with it.

    That also holds why no type at all shows its cards. A type that cannot be cut beside one that can is no problem.
    """
    useless: list[Cause] = []
    hidden: list[Cause] = []
    is_any_shown = False
    for kind, variants in offers:
        by_choice: dict[tuple[str | None, ...], list[Cause | None]] = {}
        for pool in variants if kind.devices else ():
            choice = tuple(pool.chosen_labels.get(label) for label in CONFIGURATION_LABELS)
            family = owner_of(pool.labels, pool.stated_annotations, families)
            by_choice.setdefault(choice, []).append(_obstacle(pool, kind, families, family))
        for choice, found in by_choice.items():
            problems = [problem for problem in found if problem is not None]
            if len(problems) < len(found):
                is_any_shown = True
                continue
            hidden.append(problems[0])
            if any(choice):
                useless.append(problems[0])
    wrong = useless if is_any_shown else hidden[:1] + useless
    return tuple(dict.fromkeys(useless)), tuple(dict.fromkeys(wrong))


def _obstacle(pool: NodePool, kind: InstanceType, families: Sequence[Family], family: Family) -> Cause | None:
    """Why nodes of the type show no GPU in this pool; None where they do."""
    if not kind.devices:
        return NoCards(Name(kind.name))
    problem: Cause | None = double_booked(pool.labels, pool.stated_annotations, families)
    if problem is None:
        problem = family.obstacle(kind.devices, pool.labels, pool.stated_annotations)
    chosen = as_chosen(problem, pool.chosen_labels)
    return None if chosen is None else CardsNeverShown(chosen)


def _empty_room(target: Target, free: Resources, snapshot: ClusterSnapshot) -> Room:
    """An empty node with that much allocatable, less what DaemonSets take there."""
    ports: list[HostPort] = []
    for daemon in snapshot.daemon_sets:
        spec = daemon.pod.spec
        if admits(target, Shape((daemon.pod,))):
            free = free - spec.requests.without(target.uncounted)
            ports.extend(spec.host_ports)
    return Room(free, (), tuple(ports))
