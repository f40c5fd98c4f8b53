"""Pending pods -> Plan: what is on its way first, then the nodes to buy, and why for each.

Every pending pod ends in exactly one of launches, placements, unplaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerf.engine import pricing, wording
from kerf.engine.advice import Situation
from kerf.engine.bound import lower_bound
from kerf.engine.explain import refused_early, unplaced_pods
from kerf.engine.filling import Filler, Load, Purchase
from kerf.engine.firstfit import first_fit
from kerf.engine.following import Bought, with_follow
from kerf.engine.limits import Ledger
from kerf.engine.packing import cheapest_nodes
from kerf.engine.quotas import within_quotas
from kerf.engine.shapes import Shape, group, queue_order
from kerf.engine.supply import Candidate, Supply, supply
from kerf.engine.trial import Trial
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, Requirement, Requirements
from kerf.model.market import Market
from kerf.model.plan import Cost, GpuUse, Launch, NodePlacement, PlacedPod, Plan, Unplaced
from kerf.model.pods import Pod
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
    wares = supply(snapshot, market)
    pods = [pod for pod in snapshot.pending if not pod.is_daemon]
    quota_namespaces = frozenset(quota.namespace for quota in snapshot.quotas)
    early, shapes = refused_early(group(pods, quota_namespaces), wares.families)
    over_quota, shapes = within_quotas(shapes, snapshot.quotas, wares.families)
    trial = Trial(snapshot, market)
    placements, shapes = trial.place_as_planned(shapes)
    shapes = _place_on_existing(trial, shapes, placements)
    ledger = Ledger.of(snapshot, market)
    before = ledger.copy()
    buy = cheapest_nodes if options.strategy == COST else first_fit
    purchase = buy(shapes, wares.candidates, ledger)
    launches = _launches(purchase, shapes, (wares, ledger), options)
    late = unplaced_pods(Situation(snapshot, market, wares, trial, before, ledger, purchase, tuple(shapes), buy))
    unplaced = tuple(sorted((*early, *over_quota, *late), key=lambda u: u.pod))
    bound = _bound(purchase, shapes, wares, market) if options.with_bound and not placements else None
    promised = {spot.cluster_node.name: spot.room.devices for spot in trial.spots}
    return _assembled(
        snapshot,
        market,
        pricing.cards_in_use(snapshot, placements.values(), promised),
        (launches, tuple(placements.values()), unplaced, bound),
        Plan(
            options.strategy,
            Cost(market.currency, 0, 0),
            notes=(*wares.notes, *wording.notes(snapshot, market, pods), *wording.estimates(launches)),
        ),
    )


def _place_on_existing(
    trial: Trial, shapes: Sequence[Shape], placements: dict[str, NodePlacement]
) -> tuple[Shape, ...]:
    left = []
    for shape in shapes:
        placed, others = trial.place(shape)
        placements.update(placed)
        if others:
            left.append(Shape(others))
    return tuple(left)


def _launches(
    purchase: Purchase, shapes: Sequence[Shape], world: tuple[Supply, Ledger], options: Options
) -> tuple[Launch, ...]:
    """One Launch a node, pods dealt out in queue order."""
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
            launches.append(replace(template, name=f"launch-{len(launches)}", pods=_named(load, members)))
            bought.append(Bought(load, tuple(pod for _, pod in members)))
    return with_follow(launches, bought, shapes, options.follow)


def _named(load: Load, members: Sequence[tuple[int, Pod]]) -> tuple[PlacedPod, ...]:
    cursors = [iter(slices) for slices in load.slices]
    placed = [
        (queue_order(pod), PlacedPod(pod.key, tuple(replace(part, pod=pod.key) for part in next(cursors[number]))))
        for number, pod in members
    ]
    return tuple(item for _, item in sorted(placed, key=lambda pair: pair[0]))


def _template(load: Load, shapes: Sequence[Shape], alternatives: tuple[str, ...], wares: Supply) -> Launch:
    candidate, offering = load.candidate, load.offering
    requests = Resources()
    for number, count in enumerate(load.counts):
        if count:
            requests = requests + shapes[number].counted(_uncounted(candidate)) * count
    daemons = candidate.kind.allocatable - candidate.room.free
    pods_narrow = load.room.requirements
    requirements = (
        candidate.pool.template_requirements()
        .intersect(pods_narrow)
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
        why=wording.why_launch(load, shapes, wares),
    )


def _uncounted(candidate: Candidate) -> frozenset[str]:
    return candidate.target.uncounted


def _positive(amounts: Resources) -> Resources:
    return Resources({name: amount for name, amount in amounts.items() if amount > 0})


def _asked(kubelet: Resources, load: Load, shapes: Sequence[Shape]) -> Resources:
    """What the pods ask of the resources that the device plugin makes kubelet show; slices stay out of claims."""
    asked = Resources()
    for number, count in enumerate(load.counts):
        if count:
            requests = shapes[number].requests
            asked = asked + {name: requests.get(name, 0) * count for name in kubelet if requests.get(name, 0)}
    return asked


def _alternatives(load: Load, times: int, filler: Filler, wares: Supply, ledger: Ledger) -> tuple[str, ...]:
    """Other types of the pool that hold the same pods on as many cards, cheapest first, as far as limits allow.

    The limits are charged with the largest of them, so that whichever the cloud has, no limit is broken.
    """
    chosen, extra = load.candidate, Resources()
    names: list[str] = []
    for other in wares.by_pool[chosen.pool.name]:
        if other is chosen or len(names) == MOST_ALTERNATIVES or len(other.room.devices) != len(chosen.room.devices):
            continue
        offering = other.offering_for(load.room.requirements)
        if offering is None or offering.capacity_type != load.offering.capacity_type:
            continue
        more = _positive(other.capacity - chosen.capacity)
        if not _still_within(ledger, chosen, more.largest(extra) * times):
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
    shapes = group((pod for pod in snapshot.pending if pod.key in served), quota_namespaces)
    bound = lower_bound(shapes, supply(snapshot, market).candidates) if market.types else 0
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
