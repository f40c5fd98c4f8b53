"""A purchase as the nodes to launch: which pods each takes, what its claim asks for, what the cloud may give instead.

The pods of a shape are dealt out in queue order, so the same pods come on the same nodes for the same snapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from kerf.engine.buy.alternatives import Others
from kerf.engine.buy.filling import Filler, Load, Purchase, named
from kerf.engine.buy.flexibility import asks, lacking
from kerf.engine.buy.following import Bought, Coming, Turns, followed
from kerf.engine.buy.limits import Ledger
from kerf.engine.options import Options
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.caps import within_cap
from kerf.engine.supply.offered import OfferedType, Supply
from kerf.engine.world import World
from kerf.model.causes import Cause, Name
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION, ZONE, Requirement, Requirements, Taint
from kerf.model.instancetypes import RESERVED, Offering, allowed_offerings
from kerf.model.plan import PIN, Launch
from kerf.model.policies import FIRST_FIT
from kerf.model.quantities import Resources
from kerf.sharing.shown import Counting


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Needed(Cause):
    """A node is bought for pods: its load by shape, and what else was on offer.

    `kept_off` are the constraints that keep some of them off every node with room, by their names in a manifest.
    """

    load: Load
    shapes: tuple[Shape, ...]
    supply: Supply
    kept_off: tuple[Name, ...] = ()


def dealt(purchase: Purchase, shapes: Sequence[Shape]) -> list[Bought]:
    """The nodes of a purchase, pods dealt out in queue order. Linear in the pods."""
    nodes, dealt_out = list[Bought](), [0] * len(shapes)
    for load, times in purchase.loads:
        parts = []
        for number, count in load.held:
            pods, first = shapes[number].pods, dealt_out[number]
            dealt_out[number] = end = first + count * times
            parts.append([pods[at : at + count] for at in range(first, end, count)])
        if len(parts) == 1:
            nodes += [Bought(load, pods) for pods in parts[0]]
        else:
            nodes += [Bought(load, tuple(chain.from_iterable(each))) for each in zip(*parts, strict=True)]
    return nodes


def launches_of(
    purchase: Purchase,
    nodes: Sequence[Bought],
    shapes: Sequence[Shape],
    available: tuple[World, Ledger],
    options: Options,
    coming: Coming,
    first: int,
) -> tuple[Launch, ...]:
    """One Launch for each of the `dealt` nodes of the purchase, in their order; `first` is the number of the first.

    The limits are charged with what other types that the cloud may take have more.
    """
    (world, ledger), supply = available, available[0].supply
    others = Others(purchase.filler or Filler(shapes, world.holding), supply, ledger)
    marks = followed(nodes, shapes, options.follow, coming)
    templates, turns = _Templates(shapes, supply), Turns(shapes, world.holding)
    launches: list[Launch] = []
    for load, times in purchase.loads:
        alternatives: tuple[str, ...] = ()
        extra = Resources()
        if options.strategy == FIRST_FIT:
            alternatives = tuple(other.kind.name for other in load.needed)
        else:
            alternatives, extra = others.of(load, times)
        template = templates.of(load, alternatives, load.charge + extra)
        for follow, run in groupby(range(len(launches), len(launches) + times), marks.__getitem__):
            numbers = list(run)
            bought = nodes[numbers[0] : numbers[-1] + 1]
            placed = named(load, [node.pods for node in bought], turns.of(bought[0]) if follow == PIN else ())
            for number, pods in zip(numbers, placed, strict=True):
                launches.append(template.another(f"launch-{first + number}", pods, follow))
    return tuple(launches)


@dataclass(frozen=True)
class _Stated:
    """What launches have in common that differ in their pods alone; the load is one of theirs."""

    load: Load
    requirements: Requirements
    is_relaxed: bool
    daemons: Resources
    taints: tuple[Taint, ...]


class _Templates:
    """Launches without names and pods. What does not depend on these is worked out once for all that are alike."""

    def __init__(self, shapes: Sequence[Shape], supply: Supply) -> None:
        self._shapes, self._supply = tuple(shapes), supply
        self._known: dict[tuple[object, ...], _Stated] = {}

    def of(self, load: Load, alternatives: tuple[str, ...], charge: Resources) -> Launch:
        """That of a load with its alternatives. Cost: the shapes on it."""
        cause = Needed(load, self._shapes, self._supply)
        if load.findings is None or asks(load.offered):
            return replace(self._of(load, alternatives, charge), cause=cause)
        question = "template", alternatives, charge
        if question not in load.findings:
            load.findings[question] = self._of(load, alternatives, charge)
        known: Launch = load.findings[question]
        return known.because(cause)

    def _of(self, load: Load, alternatives: tuple[str, ...], charge: Resources) -> Launch:
        """The same without its cause."""
        offered, offering, shapes = load.offered, load.offering, self._shapes
        # What pods ask, and no more: which names a plugin shows beside is not for a claim to wait for.
        asked = Counting(_uncounted(offered))
        stated = self._stated(load, alternatives)
        requests = Resources.total((shapes[number].counted(asked), count) for number, count in load.order)
        kubelet = offered.target.family.kubelet_capacity(load.room.devices)
        held = ((device, offered.kind.eighths_of(device.index)) for device in load.room.devices)
        return Launch(
            name="",
            node_pool=offered.pool.name,
            offering=offered.key_of(offering),
            price_micro=offering.price_micro,
            pods=(),
            requirements=stated.requirements,
            is_relaxed=stated.is_relaxed,
            requests=requests + stated.daemons + _asked(kubelet, load, shapes),
            devices=offered.kind.devices,
            alternatives=alternatives,
            is_estimate=offering.is_estimate,
            allocated=sum(device.allocated_percent_points * eighths // 8 for device, eighths in held),
            labels=offered.labels_for(stated.requirements),
            taints=stated.taints,
            charge=charge,
        )

    def _stated(self, load: Load, alternatives: tuple[str, ...]) -> _Stated:
        # The load is kept, so no other can get the id of what it has.
        key = id(load.offered), id(load.offering), id(load.room.requirements), alternatives
        if key not in self._known:
            self._known[key] = _stated(load, alternatives, self._supply)
        return self._known[key]


def _stated(load: Load, alternatives: tuple[str, ...], supply: Supply) -> _Stated:
    offered, offering = load.offered, load.offering
    requirements = (
        offered.pool.template_requirements()
        .intersect(load.room.requirements)
        .intersect(within_cap(offered, offering))
        .intersect(bought_as(offering, (offered.kind.name, *alternatives)))
        .intersect(_zones_of(offered, offering, load.room.requirements))
    )
    short: dict[str, int] = {}
    if asks(offered):
        sold = (supply.market.find(name, offered.pool.node_class) for name in alternatives)
        others = (kind for kind in sold if kind is not None)
        short = lacking(offered.pool, (offered.kind, *others))
    return _Stated(
        load,
        _least(requirements, short) if asks(offered) else requirements.without_min_values(),
        bool(short),
        offered.daemon_requests,
        tuple(taint for taint in offered.target.taints if taint not in offered.pool.taints),
    )


def bought_as(offering: Offering, types: Iterable[str]) -> Requirements:
    """What a claim asks for that is to become one of these types: its capacity type, and its reservation."""
    asked = [
        Requirement.of(INSTANCE_TYPE, "In", types),
        Requirement.of(CAPACITY_TYPE, "In", (offering.capacity_type,)),
    ]
    if offering.reservation:
        asked.append(Requirement.of(RESERVATION, "In", (offering.reservation,)))
    return Requirements(asked)


def _zones_of(offered: OfferedType, offering: Offering, asked: Requirements) -> Requirements:
    """Where the machines have the planned capacity and cost no more than they would be bought otherwise.

    Nothing to require where that is everywhere. A claim asks for one capacity type, so where the cloud had to turn to a
    zone in which it costs more, it is to say that it is sold out, and the next plan buys the other.
    """
    same = [each for each in offered.offerings if each.capacity_type == offering.capacity_type]
    others = allowed_offerings(offered.offerings, asked)
    least = min((o.price_micro for o in others if o.capacity_type not in (offering.capacity_type, RESERVED)), default=0)
    cheap = same if not least or offering.capacity_type == RESERVED else [o for o in same if o.price_micro <= least]
    if not offered.has_own_capacity and len(cheap) == len(same):
        return Requirements()
    zones = {each.zone for each in cheap} or {offering.zone}
    return Requirements([Requirement.of(ZONE, "In", sorted(zones))])


def _least(requirements: Requirements, short: Mapping[str, int]) -> Requirements:
    """The same with no more minValues than its types have, and than values are left where a plan has chosen some.

    The API refuses a claim that asks for more values than it names.
    """

    def counted(each: Requirement) -> Requirement:
        least = short.get(each.key, each.min_values)
        if least is not None and not each.complement:
            least = min(least, len(each.values))
        return replace(each, min_values=least or None)

    return Requirements(counted(each) for each in requirements.values())


def _uncounted(offered: OfferedType) -> frozenset[str]:
    return offered.target.uncounted


def _asked(kubelet: Resources, load: Load, shapes: Sequence[Shape]) -> Resources:
    """What the pods ask of the cards that the device plugin makes kubelet show; slices stay out of claims."""
    hidden = [name for name in kubelet if name in _uncounted(load.offered)]
    asked = Resources()
    for number, count in load.held if hidden else ():
        requests = shapes[number].requests
        asked = asked + {name: requests.get(name, 0) * count for name in hidden if requests.get(name, 0)}
    return asked
