"""Pending pods -> Plan: what is on its way first, then the nodes to buy, and why for each.

Every pending pod ends in exactly one of launches, placements, unplaced.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from kerf.engine import pricing
from kerf.engine.explain import launches as wording
from kerf.engine.explain.hints.groups import with_limits_for_all
from kerf.engine.explain.hints.situation import Situation
from kerf.engine.bound import lower_bound
from kerf.engine.explain.refusals import refused_early, unplaced_pods
from kerf.engine.filling import Purchase
from kerf.engine.firstfit import first_fit
from kerf.engine.floors import floor_launches
from kerf.engine.following import Bought
from kerf.engine.gangs import gangs, whole
from kerf.engine.launching import launches_of
from kerf.engine.limits import Ledger
from kerf.engine.options import COST, DEFAULT, FIRST_FIT, STRATEGIES, Options
from kerf.engine.pacing import Paced, paced
from kerf.engine.packing import cheapest_nodes
from kerf.engine.placing import Places, find_places, place_idle, unbought
from kerf.engine.quotas import within_quotas
from kerf.engine.relabelling import relabelled
from kerf.engine.shapes import Shape, group
from kerf.engine.supply import Candidate, Supply, supply
from kerf.engine.trial import Trial
from kerf.engine.waiting import waiting_pods
from kerf.engine.windows.admission import Judged, Place, admissions
from kerf.model.constraints import Taint
from kerf.model.gpu import DeviceState
from kerf.model.market import Market
from kerf.model.nodeclaim import FOLLOW
from kerf.model.nodepool import NodePool
from kerf.model.plan import Admission, Cost, GpuUse, Launch, NodePlacement, Plan, Unplaced
from kerf.model.placeholders import is_virtual
from kerf.model.snapshot import ClusterSnapshot

__all__ = ["COST", "DEFAULT", "FIRST_FIT", "STRATEGIES", "Options", "bounded", "plan"]


def plan(snapshot: ClusterSnapshot, market: Market, options: Options = DEFAULT) -> Plan:
    """What to do for the pending pods of a snapshot. Cost depends on shapes and types, and linearly on pods."""
    found = gangs(snapshot)
    if not found:
        return _plan(snapshot, market, options)
    unbounded = replace(options, with_bound=False)

    def attempt(pools: tuple[NodePool, ...] = ()) -> Callable[[frozenset[str]], Plan]:
        changed = {pool.name: pool for pool in pools}
        world = replace(snapshot, node_pools=tuple(changed.get(p.name, p) for p in snapshot.node_pools))
        return cache(lambda out: _plan(world, market, unbounded, out))

    tried = attempt()
    made = whole(found, tried)
    if made.unplaced:
        own = {pool.name: pool for pool in snapshot.node_pools}
        made = with_limits_for_all(made, tried(frozenset()), own, lambda pools: whole(found, attempt(pools)))
    return bounded(made, snapshot, market) if options.with_bound else made


def _plan(snapshot: ClusterSnapshot, market: Market, options: Options, out: frozenset[str] = frozenset()) -> Plan:
    """The plan without the pods that are left `out`; of groups it knows nothing."""
    wares, trial = supply(snapshot, market), Trial(snapshot, market)
    promised = {spot.cluster_node.name: spot.room.devices for spot in trial.spots}
    waiting = waiting_pods(snapshot, wares, trial, out)
    pods = [pod for pod in waiting.pods if not is_virtual(pod.key)]
    quota_namespaces = frozenset(quota.namespace for quota in snapshot.quotas)
    early, shapes = refused_early(group(waiting.pods, quota_namespaces), wares.families)
    over_quota, shapes = within_quotas(shapes, snapshot.quotas, wares.families)
    taints = {window.name: window.taint for window in snapshot.windows}
    places = find_places(trial, shapes, taints)
    changed = relabelled(places.left, trial, snapshot, market, wares.families)
    places.left = changed.left
    none_bought = unbought(trial, places.unbought)
    places.found.update({placement.pod.pod: placement for placement in changed.placements})
    bought = _purchases(snapshot, market, options, (wares, trial), places)
    for_floors, unmet = floor_launches(snapshot, wares, bought.ledger, bought.launches)
    now = paced((*bought.launches, *for_floors), bought.nodes, snapshot)
    unmet = tuple(sorted((*unmet, *now.floors)))
    idle, shapes = refused_early(group(waiting.opportunistic, quota_namespaces), wares.families)
    seekers = place_idle(trial, shapes, places)
    refused = (*waiting.held, *early, *over_quota, *bought.left, *none_bought, *now.unplaced, *idle, *seekers)
    unplaced = tuple(sorted(refused, key=lambda u: u.pod))
    return _assembled(
        snapshot,
        market,
        pricing.cards_in_use(snapshot, places.found.values(), promised),
        (now.launches, tuple(places.found.values()), unplaced, None if now.unplaced else bought.bound),
        Plan(
            options.strategy,
            Cost(market.currency, 0, 0),
            relabels=changed.relabels,
            notes=(
                *wares.notes,
                *(why for _, why in unmet),
                *wording.notes(snapshot, market, pods),
                *wording.estimates(now.launches),
            ),
            unmet_floors=unmet,
            admissions=_admissions(waiting, places.found, now, promised, snapshot),
            evictions=places.evictions,
        ),
    )


@dataclass
class _Purchases:
    """The nodes to buy, why others of the pods get none, and what counts against limits after that."""

    ledger: Ledger
    launches: tuple[Launch, ...] = ()
    nodes: tuple[Bought, ...] = ()
    left: tuple[Unplaced, ...] = ()
    bound: int | None = None


def _purchases(
    snapshot: ClusterSnapshot, market: Market, options: Options, world: tuple[Supply, Trial], places: Places
) -> _Purchases:
    """Nodes for the pods that have found no place: first those for everybody, then those of each window alone."""
    wares, trial = world
    made = _Purchases(Ledger.of(snapshot, market))
    before = made.ledger.copy()
    buy = cheapest_nodes if options.strategy == COST else first_fit
    taints = {window.name: window.taint for window in snapshot.windows}
    on_their_way = (node.claim for node in snapshot.nodes if node.claim is not None and not node.is_initialized)
    coming = {claim.annotations.get(FOLLOW, "") for claim in on_their_way}
    for window, left in ((None, places.left), *places.exclusive.items()):
        candidates = wares.candidates if window is None else _kept_for(taints[window], wares.candidates)
        purchase = buy(left, candidates, made.ledger)
        more, nodes = launches_of(purchase, left, (wares, made.ledger), options, coming, len(made.launches))
        made.launches, made.nodes = (*made.launches, *more), (*made.nodes, *nodes)
        known = Situation(snapshot, market, wares, trial, before, made.ledger, purchase, left, buy)
        made.left = (*made.left, *unplaced_pods(known))
        if window is None and options.with_bound and not places.found and not places.exclusive:
            made.bound = _bound(purchase, left, wares, market)
    return made


def _kept_for(taint: Taint, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same with a taint that keeps others off."""
    return [replace(c, target=replace(c.target, taints=(*c.target.taints, taint))) for c in candidates]


def _admissions(
    waiting: Judged,
    placements: Mapping[str, NodePlacement],
    now: Paced,
    devices: Mapping[str, tuple[DeviceState, ...]],
    snapshot: ClusterSnapshot,
) -> tuple[Admission, ...]:
    """The gates to open; `devices` are the cards of the nodes there are."""
    if not waiting.passed and not waiting.opportunistic:
        return ()
    places: dict[str, Place] = {
        key: (placement.pod.slices, devices.get(placement.node, ())) for key, placement in placements.items()
    }
    for launch, node in zip(now.launches, now.bought, strict=False):
        places.update({placed.pod: (placed.slices, node.load.room.devices) for placed in launch.pods})
    pending = {pod.key: pod for pod in snapshot.pending}
    return admissions(waiting, places, pending, snapshot.taken_at_s)


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
