"""Pending pods -> Plan: what is on its way first, then the nodes to buy, and why for each.

Every pending pod ends in exactly one of launches, placements, unplaced.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.engine import pricing, wording
from kerf.engine.admission import Judged, Place, admissions
from kerf.engine.advice.situation import Situation
from kerf.engine.bound import lower_bound
from kerf.engine.caps import leaks, within_cap
from kerf.engine.explain import refused_early, unplaced_pods
from kerf.engine.filling import Filler, Load, Purchase, charge, named
from kerf.engine.firstfit import first_fit
from kerf.engine.floors import floor_launches
from kerf.engine.following import Bought, with_follow
from kerf.engine.limits import Ledger
from kerf.engine.packing import cheapest_nodes
from kerf.engine.placing import find_places, place_idle
from kerf.engine.quotas import within_quotas
from kerf.engine.relabelling import relabelled
from kerf.engine.shapes import Shape, group
from kerf.engine.supply import Candidate, Supply, supply
from kerf.engine.trial import Trial
from kerf.engine.waiting import waiting_pods
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, Requirement, Requirements, Taint
from kerf.model.gpu import DeviceState
from kerf.model.market import Market
from kerf.model.nodeclaim import FOLLOW
from kerf.model.plan import Admission, Cost, GpuUse, Launch, NodePlacement, Plan, Unplaced
from kerf.model.pods import is_virtual
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot

COST, FIRST_FIT = "cost", "first-fit"
STRATEGIES = (COST, FIRST_FIT)
MOST_ALTERNATIVES = 59
"""With the planned type 60: as many as Karpenter's AWS provider sends with one launch."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan. `follow` is `auto`, or forces `nominate`, `pin` or `off` on every launch."""

    strategy: str = COST
    follow: str = "auto"
    with_bound: bool = True


DEFAULT = Options()


def plan(snapshot: ClusterSnapshot, market: Market, options: Options = DEFAULT) -> Plan:
    """What to do for the pending pods of a snapshot. Cost depends on shapes and types, and linearly on pods."""
    wares, trial = supply(snapshot, market), Trial(snapshot, market)
    promised = {spot.cluster_node.name: spot.room.devices for spot in trial.spots}
    waiting = waiting_pods(snapshot, wares, trial)
    pods = [pod for pod in waiting.pods if not is_virtual(pod.key)]
    quota_namespaces = frozenset(quota.namespace for quota in snapshot.quotas)
    early, shapes = refused_early(group(waiting.pods, quota_namespaces), wares.families)
    over_quota, shapes = within_quotas(shapes, snapshot.quotas, wares.families)
    taints = {window.name: window.taint for window in snapshot.windows}
    places = find_places(trial, shapes, taints)
    changed = relabelled(places.left, trial, snapshot, market, wares.families)
    places.left = changed.left
    places.found.update({placement.pod.pod: placement for placement in changed.placements})
    ledger = Ledger.of(snapshot, market)
    before = ledger.copy()
    buy = cheapest_nodes if options.strategy == COST else first_fit
    on_their_way = (node.claim for node in snapshot.nodes if node.claim is not None and not node.is_initialized)
    coming = {claim.annotations.get(FOLLOW, "") for claim in on_their_way}
    launches: tuple[Launch, ...] = ()
    bought: list[Bought] = []
    late: list[Unplaced] = []
    bound: int | None = None
    for window, left in ((None, places.left), *places.exclusive.items()):
        candidates = wares.candidates if window is None else _kept_for(taints[window], wares.candidates)
        purchase = buy(left, candidates, ledger)
        more, nodes = _launches(purchase, left, (wares, ledger), options, coming, len(launches))
        launches, bought = (*launches, *more), [*bought, *nodes]
        late += unplaced_pods(Situation(snapshot, market, wares, trial, before, ledger, purchase, left, buy))
        if window is None and options.with_bound and not places.found and not places.exclusive:
            bound = _bound(purchase, left, wares, market)
    idle, shapes = refused_early(group(waiting.opportunistic, quota_namespaces), wares.families)
    seekers = place_idle(trial, shapes, places)
    unplaced = tuple(sorted((*waiting.held, *early, *over_quota, *late, *idle, *seekers), key=lambda u: u.pod))
    for_floors, unmet = floor_launches(snapshot, wares, ledger, launches)
    return _assembled(
        snapshot,
        market,
        pricing.cards_in_use(snapshot, places.found.values(), promised),
        ((*launches, *for_floors), tuple(places.found.values()), unplaced, bound),
        Plan(
            options.strategy,
            Cost(market.currency, 0, 0),
            relabels=changed.relabels,
            notes=(
                *wares.notes,
                *(why for _, why in unmet),
                *wording.notes(snapshot, market, pods),
                *wording.estimates(launches),
            ),
            unmet_floors=unmet,
            admissions=_admissions(waiting, places.found, launches, bought, promised, snapshot),
            evictions=places.evictions,
        ),
    )


def _kept_for(taint: Taint, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same with a taint that keeps others off."""
    return [replace(c, target=replace(c.target, taints=(*c.target.taints, taint))) for c in candidates]


def _admissions(
    waiting: Judged,
    placements: Mapping[str, NodePlacement],
    launches: Sequence[Launch],
    bought: Sequence[Bought],
    devices: Mapping[str, tuple[DeviceState, ...]],
    snapshot: ClusterSnapshot,
) -> tuple[Admission, ...]:
    """The gates to open; `devices` are the cards of the nodes there are."""
    if not waiting.passed and not waiting.opportunistic:
        return ()
    places: dict[str, Place] = {
        key: (placement.pod.slices, devices.get(placement.node, ())) for key, placement in placements.items()
    }
    for launch, node in zip(launches, bought, strict=True):
        places.update({placed.pod: (placed.slices, node.load.room.devices) for placed in launch.pods})
    pending = {pod.key: pod for pod in snapshot.pending}
    return admissions(waiting, places, pending, snapshot.taken_at_s)


def _launches(
    purchase: Purchase,
    shapes: Sequence[Shape],
    world: tuple[Supply, Ledger],
    options: Options,
    coming: Collection[str],
    first: int,
) -> tuple[tuple[Launch, ...], list[Bought]]:
    """One Launch a node, pods dealt out in queue order; `first` is the number of the first."""
    wares, ledger = world
    queues = [iter(shape.pods) for shape in shapes]
    filler = Filler(shapes)
    launches: list[Launch] = []
    bought: list[Bought] = []
    for load, times in purchase.loads:
        alternatives = () if options.strategy == FIRST_FIT else _alternatives(load, times, filler, wares, ledger)
        template = _template(load, shapes, alternatives, wares)
        for _ in range(times):
            members = [(number, next(queues[number])) for number, count in enumerate(load.counts) for _ in range(count)]
            launches.append(replace(template, name=f"launch-{first + len(launches)}", pods=named(load, members)))
            bought.append(Bought(load, tuple(pod for _, pod in members)))
    return with_follow(launches, bought, shapes, options.follow, coming), bought


def _template(load: Load, shapes: Sequence[Shape], alternatives: tuple[str, ...], wares: Supply) -> Launch:
    candidate, offering = load.candidate, load.offering
    requests = Resources()
    for number, count in enumerate(load.counts):
        if count:
            requests = requests + shapes[number].counted(_uncounted(candidate)) * count
    daemons = candidate.kind.allocatable - candidate.room.free
    requirements = (
        candidate.pool.template_requirements()
        .intersect(load.room.requirements)
        .intersect(within_cap(candidate, offering))
        .intersect(
            Requirements(
                [
                    Requirement.of(INSTANCE_TYPE, "In", (candidate.kind.name, *alternatives)),
                    Requirement.of(CAPACITY_TYPE, "In", (offering.capacity_type,)),
                ]
            )
        )
    )
    kubelet = candidate.target.family.kubelet_capacity(load.room.devices)
    allocated = sum(device.allocated_percent_points for device in load.room.devices)
    return Launch(
        name="",
        node_pool=candidate.pool.name,
        offering=candidate.key_of(offering),
        price_micro=offering.price_micro,
        pods=(),
        requirements=requirements,
        requests=requests + _positive(daemons) + _asked(kubelet, load, shapes),
        devices=candidate.kind.devices,
        alternatives=alternatives,
        is_estimate=offering.is_estimate,
        allocated=allocated,
        labels=candidate.pool.chosen_labels,
        taints=tuple(taint for taint in candidate.target.taints if taint not in candidate.pool.taints),
        why=wording.why_launch(load, shapes, wares),
    )


def _uncounted(candidate: Candidate) -> frozenset[str]:
    return candidate.target.uncounted


def _positive(amounts: Resources) -> Resources:
    return Resources({name: amount for name, amount in amounts.items() if amount > 0})


def _asked(kubelet: Resources, load: Load, shapes: Sequence[Shape]) -> Resources:
    """What the pods ask of the cards that the device plugin makes kubelet show; slices stay out of claims."""
    hidden = [name for name in kubelet if name in _uncounted(load.candidate)]
    asked = Resources()
    for number, count in enumerate(load.counts):
        if count:
            requests = shapes[number].requests
            asked = asked + {name: requests.get(name, 0) * count for name in hidden if requests.get(name, 0)}
    return asked


def _alternatives(load: Load, times: int, filler: Filler, wares: Supply, ledger: Ledger) -> tuple[str, ...]:
    """Other types of the pool that hold the same pods on as many cards, cheapest first, as far as limits allow.

    The limits are charged with the largest of them, so that whichever the cloud has, no limit is broken.
    """
    chosen, extra = load.candidate, Resources()
    used = chosen.room.free - load.room.free
    names: list[str] = []
    for other in wares.by_pool[chosen.pool.name]:
        if other.pool.chosen_labels != chosen.pool.chosen_labels:
            continue
        if (
            other.kind.name == chosen.kind.name
            or len(names) == MOST_ALTERNATIVES
            or len(other.room.devices) != len(chosen.room.devices)
        ):
            continue
        offering = other.offering_for(load.room.requirements)
        if offering is None or offering.capacity_type != load.offering.capacity_type:
            continue
        if leaks(other, load.offering.capacity_type, within_cap(chosen, load.offering)):
            continue
        more = _positive(charge(other, offering, load.room.requirements) - load.charge)
        if not _still_within(ledger, chosen, more.largest(extra) * times):
            continue
        if other.target.uncounted == chosen.target.uncounted and used.shortfall(other.room.free):
            continue
        held = filler.fill(other, load.counts)
        if held is not None and held.counts == load.counts:
            names.append(other.kind.name)
            extra = more.largest(extra)
    ledger.charge(chosen.pool.name, extra, times)
    return tuple(names)


def _still_within(ledger: Ledger, candidate: Candidate, wanted: Resources) -> bool:
    limits = ledger.limit(candidate.pool.name)
    used = ledger.used(candidate.pool.name)
    return limits is None or all(
        used.get(n, 0) + wanted.get(n, 0) <= limit for n, limit in limits.items() if wanted.get(n, 0) > 0
    )


def _bound(purchase: Purchase, shapes: Sequence[Shape], wares: Supply, market: Market) -> int | None:
    """A bound for the pods that are bought for; existing nodes took none of them, so that they need new ones."""
    served = [
        Shape(shape.pods[: len(shape) - left])
        for shape, left in zip(shapes, purchase.left, strict=True)
        if len(shape) > left
    ]
    return lower_bound(served, wares.candidates) if market.types else 0


def bounded(made: Plan, snapshot: ClusterSnapshot, market: Market) -> Plan:
    """A plan made without its bound, with it: for a caller that wants the plan first. The same as `with_bound`."""
    if made.placements:
        return made
    served = {pod.pod for launch in made.launches for pod in launch.pods}
    quota_namespaces = frozenset(quota.namespace for quota in snapshot.quotas)
    wares = supply(snapshot, market)
    pods = waiting_pods(snapshot, wares, Trial(snapshot, market)).pods
    shapes = group((pod for pod in pods if pod.key in served), quota_namespaces)
    bound = lower_bound(shapes, wares.candidates) if market.types else 0
    total = None if bound is None else made.cost.before_micro + bound
    return replace(made, cost=replace(made.cost, bound_micro=total))


def _assembled(
    snapshot: ClusterSnapshot,
    market: Market,
    cards: tuple[int, int],
    decided: tuple[tuple[Launch, ...], tuple[NodePlacement, ...], tuple[Unplaced, ...], int | None],
    plan_: Plan,
) -> Plan:
    """`plan_` with what was decided and what it comes to; `cards` are (paid, allocated) before the launches."""
    launches, placements, unplaced, bound = decided
    before = pricing.cluster_price(snapshot, market)
    after = before + sum(launch.price_micro for launch in launches)
    paid = cards[0] + sum(len(launch.devices) for launch in launches)
    allocated = cards[1] + sum(launch.allocated for launch in launches)
    cost = Cost(market.currency, before, after, None if bound is None else before + bound)
    placed = tuple(sorted(placements, key=lambda p: p.pod.pod))
    return replace(
        plan_, cost=cost, gpus=GpuUse(paid, allocated), launches=launches, placements=placed, unplaced=unplaced
    )
