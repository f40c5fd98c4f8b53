"""What can be had: every instance type as each NodePool offers it, and every node there is or will be.

A pool's types are filtered by its requirements, adjusted by NodeOverlays, and lose their sold-out offerings; what falls
out is kept with its reason, because "p3.2xlarge is not sold here" is the answer that a user waits for.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from weakref import WeakValueDictionary

from kerf.engine.place.devices import with_daemons
from kerf.engine.place.fit import admits
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room, Target
from kerf.engine.supply import overlays
from kerf.engine.supply.allowed import NOTHING_OUT, KeepingOut, allowed_types, unsatisfiable
from kerf.engine.supply.offerings import offerings_of
from kerf.model.causes import (
    CardsNeverShown,
    Cause,
    Name,
    NoCards,
    NodeClassNotFound,
    NodeClassUnready,
    OfPool,
    OverlayDisagrees,
    OverlayNotApplied,
    OverlayShares,
    PoolDeleting,
    PoolInvalid,
    PoolStatic,
    Quoted,
    TargetKind,
    TargetName,
)
from kerf.model.constraints import (
    CAPACITY_TYPE,
    RESERVATION,
    RESERVATION_LABELS,
    ZONE,
    ZONE_ID,
    Requirement,
    Requirements,
)
from kerf.model.gpu import NVIDIA_GPU, DeviceShape, DeviceState
from kerf.model.instancetypes import InstanceType, NodeOverlay, Offering, OfferingKey
from kerf.model.large import Large
from kerf.model.market import Market
from kerf.model.nodeclaim import COMING_LABELS
from kerf.model.nodepool import NodePool
from kerf.model.pods import HostPort
from kerf.model.quantities import COST_PER_HOUR, NODES, NOTHING, RESERVED_PREFIX, Resources
from kerf.model.snapshot import ClusterSnapshot, DaemonSet, NodeClass, ResourceQuota
from kerf.sharing.announced import replicas_announced
from kerf.sharing.family import Family
from kerf.sharing.installed import kept_off
from kerf.sharing.nvidia.choice import CONFIGURATION_LABELS, as_chosen, label_choices
from kerf.sharing.registry import double_booked, families_of, owner_of
from kerf.sharing.shown import cores_of_a_device, counted_as_shown, will_show

_KEPT = 16
"""Answers of `supply` that one market keeps."""


@dataclass(frozen=True, eq=False)
class OfferedType:
    """An instance type as one pool offers it.

    `offerings` are those that can be had now, in launch order: reserved, then by price, then zone.
    `sold_out` are the capacity types it would otherwise come in, and `over_price_cap` the offerings that a price
    cap of the pool leaves out, cheapest first. `room` is an empty node of it, daemons taken off. `capacity` is what a
    launch charges against the pool's limits, at the price of its cheapest offering. What a reservation sells of a type
    is an offered type of its own, and so are offerings of another capacity: with `has_own_capacity` machines of the
    type have another one elsewhere. `daemon_sets` run a pod on it, and `shown` is what it shows before they do.
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
    daemon_sets: tuple[DaemonSet, ...] = ()
    has_own_capacity: bool = False
    shown: Resources = NOTHING

    @property
    def order(self) -> tuple[int, str, str]:
        """Sort key: price, then pool, then type."""
        return (self.price_micro, self.pool.name, self.kind.name)

    @property
    def price_micro(self) -> int:
        """Of the first offering; 0 when there is none."""
        return self.offerings[0].price_micro if self.offerings else 0

    @property
    def reservation(self) -> str:
        """The id of the reservation that all its offerings are of; empty for none."""
        return self.offerings[0].reservation if self.offerings else ""

    @cached_property
    def daemon_requests(self) -> Resources:
        """What pods of DaemonSets ask of such a node, of what it shows: what it never shows no claim may wait for."""
        asked = Resources.total((each.pod.spec.requests, 1) for each in self.daemon_sets)
        held = ((name, min(amount, self.shown.get(name, 0))) for name, amount in asked.items())
        return Resources((name, amount) for name, amount in held if amount > 0)

    @cached_property
    def layout(self) -> tuple[object, ...]:
        """What decides how devices take pods; those with equal ones take the same pods."""
        return (self.target.family.name, self.target.neuron_cores, self.room.devices)

    def labels_for(self, requirements: Requirements) -> dict[str, str]:
        """The labels that a node gets because its claim asks for them, and what Kerf has chosen for it.

        What the cloud says of its types is left to the cloud, and what the pool's template says stands there.
        """
        elsewhere = self.kind.requirements.keys() | self.pool.node_labels.keys()
        asked = requirements.own_labels().items()
        return {**{key: value for key, value in asked if key not in elsewhere}, **self.pool.chosen_labels}

    def offering_for(self, requirements: Requirements) -> Offering | None:
        """The first offering that the requirements allow; None when none is left."""
        zones, zone_ids, capacity_types = map(requirements.get, (ZONE, ZONE_ID, CAPACITY_TYPE))
        for offering in self.offerings:
            if offering.is_in(zones, zone_ids) and (
                capacity_types is None or capacity_types.has(offering.capacity_type)
            ):
                return offering
        return None

    def key_of(self, offering: Offering) -> OfferingKey:
        """The name of one of its offerings."""
        return offering.key_of(self.kind.name)


@dataclass(frozen=True, eq=False, repr=False)
class Terms(Large):
    """What an offer depends on beside the market: a part of a snapshot, which is not kept alive for it."""

    pools: tuple[NodePool, ...]
    overlays: tuple[NodeOverlay, ...]
    daemon_sets: tuple[DaemonSet, ...]
    quotas: tuple[ResourceQuota, ...]
    node_classes: tuple[NodeClass, ...]
    assume_node_classes: bool


@dataclass(frozen=True, eq=False, repr=False)
class Supply(Large):
    """Everything that could be bought on a market: the types of all pools, and what a plan should tell of them.

    Worked out when it is first asked for. A look at nodes that are there asks for their types alone (`type_in`), which
    costs little: a catalogue has a thousand types and a cluster a dozen.
    """

    market: Market
    families: tuple[Family, ...]
    terms: Terms
    rest: Hashable = ()
    """All but the pools that an answer of `supply` depends on."""
    parts: "WeakValueDictionary[Hashable, _Part]" = field(default_factory=WeakValueDictionary)
    """What single pools offer under these terms, by pool and the overlays that do not apply.

    Shared with supplies that differ in their pools alone; a part is kept as long as one of them has it.
    """

    @property
    def available(self) -> tuple[OfferedType, ...]:
        """What can be had now, cheapest first. Cost of the first question to any of these: pools x types."""
        return self._collected.available

    @property
    def unavailable(self) -> tuple[OfferedType, ...]:
        """What cannot, by pool, in the order of the types."""
        return self._collected.unavailable

    @property
    def pool_problems(self) -> tuple[tuple[str, Cause], ...]:
        """Why a pool takes no nodes, by the pool's name."""
        return self._collected.problems

    @property
    def sharing_problems(self) -> tuple[tuple[str, Cause], ...]:
        """Which configurations of GPU sharing leave nodes of a pool without a GPU, by the pool's name."""
        return self._collected.sharing

    @property
    def notes(self) -> tuple[Cause, ...]:
        """What a plan should tell beside that, each once."""
        return self._collected.notes

    @cached_property
    def _collected(self) -> "_Collected":
        return _collected(self)

    def part(self, pool: NodePool) -> "_Part":
        """What one of the pools offers, worked out once for equal pools."""
        key = pool.template(), tuple(sorted(self.conflicting))
        known = self.parts.get(key)
        if known is None:
            known = self.parts[key] = _part(self, pool)
        return known

    @cached_property
    def by_pool(self) -> dict[str, tuple[OfferedType, ...]]:
        """Offered types of each pool that has any, in their order."""
        found: dict[str, list[OfferedType]] = {}
        for offered in self.available:
            found.setdefault(offered.pool.name, []).append(offered)
        return {name: tuple(held) for name, held in found.items()}

    @cached_property
    def domains(self) -> dict[str, frozenset[str]]:
        """Zones, their ids and capacity types, by the keys of their labels, of which nodes can be had now."""
        sold = [offering for offered in self.available for offering in offered.offerings]
        return {
            ZONE: frozenset(offering.zone for offering in sold),
            ZONE_ID: frozenset(offering.zone_id for offering in sold if offering.zone_id),
            CAPACITY_TYPE: frozenset(offering.capacity_type for offering in sold),
        }

    def type_in(self, pool: str, name: str) -> InstanceType | None:
        """A type as NodeOverlays correct it for a pool, also where it cannot be had now; None where it is not offered.

        It is not by a pool that is unknown or takes no nodes.
        """
        key = (pool, name)
        if key not in self._types_in_pools:
            self._types_in_pools[key] = self._type_in(pool, name)
        return self._types_in_pools[key]

    def _type_in(self, pool_name: str, name: str) -> InstanceType | None:
        pool = next((p for p in self.terms.pools if p.name == pool_name), None)
        kind = self.market.find(name, pool.node_class) if pool is not None else None
        if kind is None or pool is None or self.problem_of(pool) is not None:
            return None
        return next(iter(self.overlaid(pool, (kind,)).types), None)

    @cached_property
    def prices(self) -> dict[Hashable, int]:
        """Prices of nodes that are there by what they were bought as, as far as `engine.supply.pricing` was asked."""
        return {}

    @cached_property
    def _types_in_pools(self) -> dict[tuple[str, str], InstanceType | None]:
        """The answers of `type_in`."""
        return {}

    def problem_of(self, pool: NodePool) -> Cause | None:
        """Why one of the pools takes no new nodes now; None when it does."""
        problem = pool_problem(pool, self.terms.node_classes, assume_ready=self.terms.assume_node_classes)
        return PoolStatic() if problem is None and pool.replicas is not None else problem

    def overlaid(self, pool: NodePool, types: Sequence[InstanceType]) -> overlays.Overlaid:
        """Those of the types that the pool allows, as NodeOverlays correct them for it."""
        standing = tuple(o for o in self.terms.overlays if o.name not in self.conflicting)
        return overlays.apply(standing, pool, allowed_types(pool, types))

    @cached_property
    def conflicting(self) -> Mapping[str, Cause]:
        """Names of overlays that are applied nowhere, with why."""
        held = self.terms.overlays
        return overlays.conflicts(held, self.terms.pools, self.market) if held else {}


@dataclass(frozen=True)
class _Part:
    problem: Cause | None
    offered: tuple[OfferedType, ...] = ()
    sharing: tuple[tuple[str, Cause], ...] = ()
    notes: tuple[Cause, ...] = ()
    unsatisfiable: KeepingOut = NOTHING_OUT
    """Where nothing is offered: what of the pool no type of the market satisfies together."""


@dataclass(frozen=True)
class _Collected:
    parts: tuple[_Part, ...]
    """Held here alone: `Supply.parts` forgets a part that no supply has any more."""
    available: tuple[OfferedType, ...]
    unavailable: tuple[OfferedType, ...]
    problems: tuple[tuple[str, Cause], ...]
    sharing: tuple[tuple[str, Cause], ...]
    notes: tuple[Cause, ...]


def supply(snapshot: ClusterSnapshot, market: Market) -> Supply:
    """What every usable pool offers, the same value for equal pools and the same market.

    The last answers are kept on the market: controllers plan every few seconds, prices change every few hours, and
    advice asks for the same pools with one thing changed.
    """
    families = families_of(snapshot)
    rest = (
        families,
        snapshot.overlays,
        snapshot.daemon_sets_as_running,
        snapshot.config_maps,
        snapshot.quotas,
        snapshot.node_classes,
        snapshot.assume_node_classes,
    )
    key = (tuple(pool.template() for pool in snapshot.node_pools), rest)
    kept = market.supplies
    known = kept.get(key)
    if isinstance(known, Supply):
        return known
    akin = next((held for held in kept.values() if isinstance(held, Supply) and held.rest == rest), None)
    if len(kept) >= _KEPT:
        kept.pop(next(iter(kept)))
    terms = Terms(
        snapshot.node_pools,
        snapshot.overlays,
        snapshot.daemon_sets_as_running,
        snapshot.quotas,
        snapshot.node_classes,
        snapshot.assume_node_classes,
    )
    parts = WeakValueDictionary[Hashable, _Part]() if akin is None else akin.parts
    found = kept[key] = Supply(market, families, terms, rest, parts)
    return found


def _collected(supply: Supply) -> _Collected:
    pools = sorted(supply.terms.pools, key=lambda pool: pool.order)
    parts = tuple(map(supply.part, pools))
    standing = (OverlayNotApplied(Name(name), why) for name, why in sorted(supply.conflicting.items()))
    offered = [each for part in parts for each in part.offered]
    return _Collected(
        parts,
        tuple(sorted((each for each in offered if each.offerings), key=lambda c: c.order)),
        tuple(each for each in offered if not each.offerings),
        tuple((pool.name, part.problem) for pool, part in zip(pools, parts, strict=True) if part.problem is not None),
        tuple(each for part in parts for each in part.sharing),
        tuple(dict.fromkeys((*standing, *(note for part in parts for note in part.notes)))),
    )


def _part(supply: Supply, pool: NodePool) -> _Part:
    problem, families = supply.problem_of(pool), supply.families
    if problem is not None:
        return _Part(problem)
    types = supply.market.types_of(pool.node_class)
    overlaid = supply.overlaid(pool, types)
    notes = [*overlaid.notes]
    variants = {has_mig: _variants(pool, families, has_mig=has_mig) for has_mig in (False, True)}
    offers = []
    for kind in overlaid.types:
        among = variants[any(shape.profiles for shape in kind.devices)]
        if kind.name in overlaid.announced:
            among, said = _as_announced(among, kind, overlaid.announced[kind.name], families)
            notes.extend(said)
        offers.append((kind, among))
    useless, wrong = _sharing_problems(offers, families)
    notes.extend(OfPool(Name(pool.name), each) for each in useless)
    return _Part(
        None,
        tuple(
            each
            for kind, among in offers
            for variant in among
            for sold in _by_capacity(kind)
            for each in _by_reservation(_offer(variant, sold, supply, has_own_capacity=kind.has_capacities))
        ),
        tuple((pool.name, each) for each in wrong),
        tuple(notes),
        NOTHING_OUT if offers else unsatisfiable(pool, types),
    )


@dataclass(frozen=True, eq=False)
class _Variant:
    """A pool with labels that its nodes may get, and what follows of that for every type."""

    pool: NodePool
    family: Family
    requirements: Requirements


def _variants(pool: NodePool, families: Sequence[Family], *, has_mig: bool) -> tuple[_Variant, ...]:
    """The pool once for each set of labels that its nodes may get: of equal price the first is taken."""
    found = []
    for choice in label_choices(pool.labels, pool.stated_annotations, has_mig=has_mig):
        labels = {**pool.node_labels, **choice}
        for assumed in owner_of(labels, pool.stated_annotations, families).assumptions(labels):
            added = {**choice, **assumed}
            mine = replace(pool, labels={**pool.labels, **added}, chosen_labels=added) if added else pool
            family = owner_of(mine.node_labels, mine.stated_annotations, families)
            found.append(_Variant(mine, family, mine.template_requirements().intersect(COMING_LABELS)))
    return tuple(found)


def _as_announced(
    variants: tuple[_Variant, ...], kind: InstanceType, announced: tuple[str, int], families: Sequence[Family]
) -> tuple[tuple[_Variant, ...], tuple[Cause, ...]]:
    """The variants with the replicas that an overlay's number of GPUs means; what is to be said of the number."""
    (overlay, amount), cards = announced, len(kind.devices)
    shown = [_shown(variant, kind) for variant in variants]
    if not variants or amount in shown:
        return variants, ()
    found: list[_Variant] = []
    notes: list[Cause] = []
    for variant, planned in zip(variants, shown, strict=True):
        pool = variant.pool
        added = replicas_announced(amount, cards, pool.node_labels, pool.stated_annotations, families)
        if added is None:
            found.append(variant)
            name, resource = Name(kind.name), Name(NVIDIA_GPU)
            notes.append(OverlayDisagrees(Name(overlay), name, resource, amount, planned, cards, 0))
            continue
        labels, chosen = {**pool.labels, **added}, {**pool.chosen_labels, **added}
        mine = replace(pool, labels=labels, chosen_labels=chosen)
        family = owner_of(mine.node_labels, mine.stated_annotations, families)
        found.append(_Variant(mine, family, mine.template_requirements().intersect(COMING_LABELS)))
        notes.append(OverlayShares(Name(overlay), Name(kind.name), amount, cards, amount // cards))
    return tuple(found), tuple(notes[:1])


def _shown(variant: _Variant, kind: InstanceType) -> int:
    """How many GPUs kubelet shows on a node of the type."""
    pool = variant.pool
    devices = variant.family.predict(kind.devices, pool.node_labels, pool.stated_annotations)
    return variant.family.kubelet_capacity(devices).get(NVIDIA_GPU, 0)


def pool_problem(pool: NodePool, node_classes: Iterable[NodeClass], *, assume_ready: bool) -> Cause | None:
    """Why a pool takes no new nodes now; None when it does.

    `assume_ready`: a NodeClass that was not given is taken as ready.
    """
    if pool.deleted_s is not None:
        return PoolDeleting()
    if pool.invalid or pool.bounds.invalid:
        return PoolInvalid(Quoted(pool.invalid), Quoted(pool.bounds.invalid))
    reference = pool.node_class
    kind, name = Name(reference.kind), Name(reference.name)
    wanted = (reference.group, reference.kind, reference.name)
    found = next((each for each in node_classes if (each.group, each.kind, each.name) == wanted), None)
    if found is None:
        return None if assume_ready else NodeClassNotFound(kind, name)
    return None if found.is_ready else NodeClassUnready(kind, name, Quoted(found.reason))


def _offer(variant: _Variant, kind: InstanceType, supply: Supply, *, has_own_capacity: bool) -> OfferedType:
    """One type of one pool, with the reason where it cannot be had now."""
    pool, family, families, terms = variant.pool, variant.family, supply.families, supply.terms
    requirements = variant.requirements.intersect(kind.requirements)
    sold = offerings_of(pool, kind, requirements, supply.market)
    obstacle = _obstacle(pool, kind, families, family)
    shapes, devices = _cards(pool, _as_observed(pool, kind, supply.market), family, obstacle)
    target = Target(
        TargetName(TargetKind.NODE_POOL, Name(pool.name), Name(kind.name)),
        requirements,
        pool.taints,
        family,
        families,
        pool.name,
        quotas=terms.quotas,
        no_devices=obstacle,
        sold=tuple((o.zone, o.capacity_type, o.zone_id) for o in sold.available),
        neuron_cores=cores_of_a_device(kind.allocatable),
    )
    daemon_sets = tuple(each for each in terms.daemon_sets if admits(target, Shape((each.pod,))))
    shown = will_show(kind.allocatable, family, families, devices)
    return OfferedType(
        target,
        pool,
        # What a type has worked out about itself is lost in a copy.
        replace(kind, devices=shapes) if shapes != kind.devices else kind,
        sold.available,
        _empty_room(target, shown, devices, daemon_sets),
        counted_as_shown(kind.capacity, family, devices) + {NODES: 1} + _cost(pool, sold.available),
        sold.refused,
        sold.retry_at_s,
        sold.sold_out,
        sold.over_price_cap,
        daemon_sets,
        has_own_capacity,
        shown,
    )


def _by_capacity(kind: InstanceType) -> Iterator[InstanceType]:
    """The type once for each capacity that its offerings give it, with these offerings alone.

    What a pod asks for and what sells it must agree in one of them (Karpenter: `AllocatableOfferingsList` of a type).
    """
    if not kind.has_capacities:
        yield kind
        return
    groups: dict[Resources, list[Offering]] = {}
    for offering in kind.offerings:
        groups.setdefault(offering.capacity, []).append(offering)
    for capacity, offerings in groups.items():
        yield replace(kind, offerings=tuple(offerings), capacity=kind.capacity.replaced(capacity))


def _by_reservation(offered: OfferedType) -> Iterator[OfferedType]:
    """The type once for each reservation, and once for what is sold without one; as it is where there is none.

    A purchase takes reservations first and counts them, so it must know which one a node is of.
    """
    ids = dict.fromkeys(offering.reservation for offering in offered.offerings)
    if not any(ids):
        yield offered
        return
    for name in ids:
        offerings = tuple(offering for offering in offered.offerings if offering.reservation == name)
        target, counted = offered.target, offered.capacity
        if name:
            held = {RESERVATION: name, **dict(offerings[0].reservation_labels)}
            wanted = Requirements.of_labels(held)
            counted = counted + {RESERVED_PREFIX + name: 1}
        else:
            # What is bought otherwise has no such labels, whatever its pool asks for.
            wanted = Requirements(Requirement.of(key, "DoesNotExist") for key in RESERVATION_LABELS)
        target = replace(
            target,
            requirements=target.requirements.intersect(wanted),
            sold=tuple((o.zone, o.capacity_type, o.zone_id) for o in offerings),
        )
        counted = counted.replaced(_cost(offered.pool, offerings))
        yield replace(offered, target=target, offerings=offerings, capacity=counted)


def _cards(
    pool: NodePool, shapes: tuple[DeviceShape, ...], family: Family, obstacle: Cause | None
) -> tuple[tuple[DeviceShape, ...], tuple[DeviceState, ...]]:
    """The cards of a new node as a claim remembers them, and as they will be registered: none behind an obstacle."""
    devices = () if obstacle is not None else family.predict(shapes, pool.node_labels, pool.stated_annotations)
    if any(device.partitions or device.profiles for device in devices):
        return shapes, devices
    # Claims remember the cards of their type: MIG tables only where cards are cut by them.
    return tuple(replace(shape, profiles=(), pci_ids=()) for shape in shapes), devices


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


def with_others(found: Sequence[tuple[str, Cause]]) -> tuple[Cause, ...]:
    """These causes, by instance type, each with the other reasons for which types of the pool show no card."""
    reasons: dict[Cause, str] = {}
    for name, cause in sorted(found, key=lambda each: each[0]):
        if isinstance(cause, CardsNeverShown):
            reasons.setdefault(cause.problem, name)
    others = tuple((Name(name), problem) for problem, name in reasons.items())
    return tuple(
        replace(cause, others=tuple(each for each in others if each[1] != cause.problem))
        if isinstance(cause, CardsNeverShown)
        else cause
        for _, cause in found
    )


def _sharing_problems(
    offers: Sequence[tuple[InstanceType, Sequence[_Variant]]], families: Sequence[Family]
) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """Choices of the pool under which a type shows no GPU, whatever else is assumed; and all that is wrong with it.

    That also holds why no type at all shows its cards. A type that cannot be cut beside one that can is no problem.
    """
    useless: list[Cause] = []
    hidden: list[tuple[str, Cause]] = []
    is_any_shown = False
    for kind, variants in offers:
        by_choice: dict[tuple[str | None, ...], list[Cause | None]] = {}
        for variant in variants if kind.devices else ():
            choice = tuple(variant.pool.chosen_labels.get(label) for label in CONFIGURATION_LABELS)
            by_choice.setdefault(choice, []).append(_obstacle(variant.pool, kind, families, variant.family))
        for choice, found in by_choice.items():
            problems = [problem for problem in found if problem is not None]
            if len(problems) < len(found):
                is_any_shown = True
                continue
            hidden.append((kind.name, problems[0]))
            if any(choice):
                useless.append(problems[0])
    # What is wrong with a choice is said of that choice.
    whole = () if is_any_shown or useless else with_others(hidden)
    wrong = [*whole[:1], *useless]
    return tuple(dict.fromkeys(useless)), tuple(dict.fromkeys(wrong))


def _obstacle(pool: NodePool, kind: InstanceType, families: Sequence[Family], family: Family) -> Cause | None:
    """Why nodes of the type show no GPU in this pool; None where they do."""
    if not kind.devices:
        return NoCards(Name(kind.name))
    problem: Cause | None = double_booked(pool.node_labels, pool.stated_annotations, families)
    if problem is None:
        problem = family.obstacle(kind.devices, pool.node_labels, pool.stated_annotations)
    if problem is None and pool.taints:
        problem = kept_off(family.plugins, pool.node_labels, pool.taints)
    chosen = as_chosen(problem, pool.chosen_labels)
    return None if chosen is None else CardsNeverShown(chosen)


def _empty_room(
    target: Target, free: Resources, devices: tuple[DeviceState, ...], daemon_sets: Iterable[DaemonSet]
) -> Room:
    """An empty node with that much allocatable and these cards, less what the DaemonSets of such nodes take there."""
    ports: list[HostPort] = []
    for daemon in daemon_sets:
        free = free - target.counting.of(daemon.pod.spec.requests)
        ports.extend(daemon.pod.spec.host_ports)
    return Room(free, with_daemons(target, devices, (daemon.pod for daemon in daemon_sets)), tuple(ports))
