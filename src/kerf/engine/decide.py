"""Decide what to do for the pods that wait. No word of it: `engine.explain` says why, from the same values."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from kerf.engine.admitting import admitted, not_admitted
from kerf.engine.bounding import bounded
from kerf.engine.buy.floors import floor_launches
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.relabelling import Relabelling, relabelled
from kerf.engine.decision import Decision, Refusal
from kerf.engine.defaulting import with_default_spread
from kerf.engine.eligible import never_first, refused_early
from kerf.engine.freed import freed, served
from kerf.engine.gangs import gangs, whole
from kerf.engine.headroom.waiting import waiting_pods
from kerf.engine.headroom.windows.admission import Judged, Place, admissions
from kerf.engine.invain import bought_in_vain
from kerf.engine.lastword import heeded
from kerf.engine.mounting import mounted
from kerf.engine.options import DEFAULT, Options
from kerf.engine.outcome import Outcome
from kerf.engine.ownplaces import keep_own_places
from kerf.engine.pacing import Pacing, paced
from kerf.engine.place.preferences import Forms
from kerf.engine.place.shapes import Readings, Shape, group
from kerf.engine.place.trial import Trial
from kerf.engine.place.volumes import Volumes
from kerf.engine.place.weights import weight_of
from kerf.engine.place.wishable import Wishable
from kerf.engine.placing import Places, find_places, join_again, place_idle, unbought
from kerf.engine.purchasing import purchase
from kerf.engine.quotas import within_quotas
from kerf.engine.supply import pricing
from kerf.engine.world import World
from kerf.model.causes import Cause, FarFromBound
from kerf.model.constraints import Taint
from kerf.model.placeholders import VIRTUAL
from kerf.model.plan import Admission, Cost, GpuUse
from kerf.model.pods import Pod
from kerf.model.policies import BUDGETS, COST, IGNORE
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.volumecauses import ClaimInUse
from kerf.sharing.family import Family

_NODE_NAME, _DEVICES = attrgetter("cluster_node.name"), attrgetter("room.devices")
_TAINTS = attrgetter("target.taints")
_MOST_PASSED_OVER = 3
"""How often pods without a place make way for others that want the claims they would have alone."""


def decide(world: World, options: Options = DEFAULT) -> Decision:
    """What to do for the pending pods of a snapshot, and for those that leave their nodes (`engine.leaving`).

    Cost depends on shapes and types, and linearly on pods.
    """
    world = world.with_leaving()
    if options.default_spread:
        world = replace(world, snapshot=with_default_spread(world.snapshot, options.default_spread))
    groups = gangs(world.snapshot)
    work: list[int] = []
    # What prices choose is rounded, so more work may cost more in the end: what less work finds counts, too.
    quick = partial(_counted, world, replace(options, quick=True), work)
    wholly = [partial(_counted, world, replace(options, budget=each), work) for each in _budgets(options)]
    tries = [whole(groups, each, quick) for each in wholly]
    chosen = min(tries, key=lambda each: each.outcome.rank)
    made = chosen.outcome
    has_swapped = keep_own_places(made)
    floors, unmet = floor_launches(world, made.ledger, made.launches)
    now = paced((*made.launches, *floors), made.bought, world.snapshot, world.market.probed)
    idle = _idle(world, made)
    decision = Decision(
        world,
        options,
        Cost(world.market.currency, 0, 0),
        launches=now.launches,
        bought=now.bought,
        placements=tuple(sorted(made.places.found.values(), key=lambda placement: placement.pod.pod)),
        relabels=made.relabels,
        evictions=made.places.evictions,
        admissions=_admissions(made, now, world.snapshot),
        refusals=(*made.refusals, *chosen.grouped(now.refusals), *chosen.refusals, *idle),
        unmet_floors=(*unmet, *now.floors),
        everyone=chosen.everyone,
        notes=_notes(made, options),
        dropped={key: dropped for key, dropped in made.dropped.items() if made.holds(key)},
        pending=_real(made.waiting),
        work=sum(work) * _mean_weight(world.snapshot.pending),
    )
    if options.with_cost:
        decision = _priced(decision, made)
    if options.with_bound:
        are_as_bought = not has_swapped and now.bought is made.bought
        decision = bounded(decision, _bought_for(made) if are_as_bought else ())
    return replace(decision, kept=world.left())


def _notes(made: Outcome, options: Options) -> tuple[Cause, ...]:
    """What the searches say, which ones with less work do not know: whether more work could have been asked for."""
    is_longest = options.budget == max(BUDGETS, key=BUDGETS.__getitem__)
    return tuple(replace(e, is_longest=is_longest) if isinstance(e, FarFromBound) else e for e in made.notes)


def _bought_for(made: Outcome) -> tuple[Shape, ...]:
    """The shapes that were to be bought for without the pods that got no node, the last ones of their shapes."""
    out = {pod.key for each in made.refusals for pod in each.pods}
    pods = ([p for p in e.pods if p.key not in out] if e.pods[-1].key in out else e.pods for e in made.places.left)
    return tuple(Shape(tuple(each)) for each in pods if each)


def _real(waiting: Judged) -> tuple[Pod, ...]:
    """Those of the pods that exist: often all of them, which their namespaces say."""
    pods, are_virtual = waiting.pods, any(VIRTUAL in pod.namespace for pod in waiting.of_each_mark)
    return tuple([pod for pod in pods if VIRTUAL not in pod.namespace] if are_virtual else pods)


def _budgets(options: Options) -> tuple[str, ...]:
    """The budgets that are spent, the largest first: with it all that are less."""
    if options.strategy != COST:
        return (options.budget,)
    return tuple(sorted((each for each in BUDGETS if BUDGETS[each] <= options.rounds), key=BUDGETS.__getitem__)[::-1])


def _mean_weight(pods: Sequence[Pod]) -> int:
    """As how many ordinary pods one of these counts."""
    return max(1, sum(weight_of(pod.spec) for pod in pods) // max(1, len(pods)))


def _counted(world: World, options: Options, work: list[int], out: frozenset[str]) -> Outcome:
    """A try; what it cost is added to `work`."""
    made = _tried(world, options, out)
    work.append(made.work)
    return made


def _tried(world: World, options: Options, out: frozenset[str]) -> Outcome:
    """Places and purchases that heed what pods prefer, as long as that leaves no more pods without a place.

    Nodes that are bought for a preference can take what a pool's limit has left for others. Cost: where pods are left
    and others have preferences, one more try without these.
    """
    made = place_and_buy(world, options, out)
    if not made.are_preferring or not made.is_short:
        return made
    other = place_and_buy(world, replace(options, preferences=IGNORE), out)
    if other.rank[0] >= made.rank[0]:
        return made
    given_up = {pod.key: made.forms.of(shape.spec)[-1].dropped for shape in other.planned_for for pod in shape.pods}
    other.dropped = {key: dropped for key, dropped in given_up.items() if dropped and other.holds(key)}
    return other


def place_and_buy(world: World, options: Options, out: frozenset[str] = frozenset()) -> Outcome:
    """Places on nodes there are, then nodes to buy, without the pods that are left `out`; it knows of no group.

    Where idle nodes take pods as they are and others are bought, it is tried once more with those nodes under other
    labels, all of them together; the cheaper of both counts, and of equals the first. So this costs at most one more
    relabelling and one more purchase, however many nodes and pods there are.

    Where a pod without a place comes before another with a claim that one pod alone may use, it is tried once more, a
    few times at most, with the next one in its place: kube-scheduler gives such a claim to the first that it binds.
    """
    made, passed = _place_and_buy(world, options, out, world.volumes), dict[str, Refusal]()
    for _ in range(_MOST_PASSED_OVER):
        more = _in_the_way(made) - passed.keys()
        if not more:
            break
        passed |= {
            pod.key: replace(each, pods=(pod,)) for each in made.refusals for pod in each.pods if pod.key in more
        }
        made = _place_and_buy(world, options, out, Volumes(world.snapshot, frozenset(passed)))
        # What stood against them before others came first is why they have no place.
        others = (replace(each, pods=left) for each in made.refusals if (left := _without(each.pods, passed)))
        made.refusals = (*others, *(each for key, each in passed.items() if not made.holds(key)))
    return made


def _without(pods: Iterable[Pod], keys: Container[str]) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods if pod.key not in keys)


def _in_the_way(made: Outcome) -> frozenset[str]:
    """The pods that have no place, and for whose sake others were refused a claim; those that run have it."""
    snapshot = made.world.snapshot
    keys = {each.cause.pod for each in made.turned_away if isinstance(each.cause, ClaimInUse)}
    waiting = {pod.key for pod in snapshot.pending} - snapshot.leaving.keys() if keys else set[str]()
    return frozenset(key for key in keys & waiting if not made.holds(key))


def _place_and_buy(world: World, options: Options, out: frozenset[str], volumes: Volumes) -> Outcome:
    snapshot, supply = world.snapshot, world.supply
    trial = Trial(snapshot, world.market, volumes=volumes)
    promised = dict(zip(map(_NODE_NAME, trial.spots), map(_DEVICES, trial.spots), strict=True))
    waiting = waiting_pods(snapshot, supply, trial, out)
    quotas = not_admitted(waiting.pods, snapshot, volumes)
    rejected, pods = heeded(waiting.pods, waiting.of_each_mark, snapshot)
    of_each_mark = waiting.of_each_mark if pods is waiting.pods else None
    unmounted, pods = mounted(pods, volumes, snapshot.leaving, quotas.claims, of_each_mark)
    early, shapes = refused_early(group(pods, Readings.of(snapshot)), supply.families)
    unadmitted, shapes = admitted(shapes, quotas)
    over_quota, shapes = within_quotas(shapes, snapshot.quotas, supply.families, partial(_most_cards, world))
    circular, shapes = never_first(shapes, trial.ledger, snapshot.pending)
    can_hold = Wishable(partial(_label_keys, trial, world), partial(_everyone, snapshot, pods))
    forms = Forms(_taints(trial, snapshot), are_ignored=options.preferences == IGNORE, can_hold=can_hold)
    places = find_places(trial, shapes, {window.name: window.taint for window in snapshot.windows}, forms)
    in_vain, places.left = bought_in_vain(places.left, trial)
    none_bought = unbought(trial, places.unbought, {each.key for each in snapshot.provisioning_requests})

    def bought(places: Places, changed: Relabelling) -> Outcome:
        found = {**places.found, **{placement.pod.pod: placement for placement in changed.placements}}
        settled = replace(places, found=found, left=changed.left)
        made = Outcome(world, trial, waiting, Ledger.of(world), settled, promised, quotas, options)
        made.planned_for = shapes
        made.turned_away = (*waiting.held, *rejected, *unmounted, *early, *unadmitted, *over_quota, *circular, *in_vain)
        made.relabels, made.notes = changed.relabels, tuple(waiting.notes)
        made.forms, made.dropped = forms, dict(places.dropped)
        relabelled_nodes = frozenset(placement.node for placement in changed.placements)
        made.refusals = (*made.turned_away, *purchase(options, made, relabelled_nodes), *none_bought)
        return made

    mark = trial.mark()
    made = bought(places, relabelled(places.left, trial, world))
    again = freed(trial, places, shapes, world) if made.bought else None
    if again is None:
        return made
    trial.undo_to(mark)
    other = served(again, trial, world)
    if other is not None:
        cheaper = bought(*other)
        if cheaper.rank < made.rank:
            return cheaper
        trial.undo_to(mark)
    join_again(trial, made.places)
    return made


def _taints(trial: Trial, snapshot: ClusterSnapshot) -> Iterator[Taint]:
    """Those that pods can meet: of nodes there are, and of pools."""
    held = list(map(_TAINTS, trial.spots))
    # Most nodes have those of others.
    for taints in dict(zip(map(id, held), held, strict=True)).values():
        yield from taints
    for pool in snapshot.node_pools:
        yield from pool.taints


def _label_keys(trial: Trial, world: World) -> Iterator[str]:
    """The labels that nodes have or may get: of nodes there are, and of what is for sale."""
    for spot in trial.spots:
        yield from spot.target.requirements
    for offered in world.supply.available:
        yield from offered.target.requirements
        yield from offered.pool.chosen_labels


def _everyone(snapshot: ClusterSnapshot, pods: Sequence[Pod]) -> Iterator[Pod]:
    """All pods that run or wait, and those to plan for."""
    for node in snapshot.nodes:
        yield from node.pods
    yield from (*snapshot.pending, *snapshot.grouped, *pods)


def _most_cards(world: World, family: Family) -> int:
    """Of any node that the family has, or could have; 0 where it can have none."""
    offered = (*world.supply.available, *world.supply.unavailable)
    sizes = [len(each.room.devices) for each in offered if each.target.family.name == family.name]
    return max(sizes + [len(node.devices) for node in world.snapshot.nodes if node.family == family.name], default=0)


def _idle(world: World, made: Outcome) -> tuple[Refusal, ...]:
    """Places for opportunistic pods on what is left; why others of them have none."""
    unmounted, pods = mounted(made.waiting.opportunistic, world.volumes, missing=made.quotas.claims)
    shapes = group(pods, Readings.of(world.snapshot))
    refused, shapes = refused_early(shapes, world.supply.families)
    unadmitted, shapes = admitted(shapes, made.quotas)
    return (*unmounted, *refused, *unadmitted, *place_idle(made.trial, shapes, made.places))


def _admissions(made: Outcome, now: Pacing, snapshot: ClusterSnapshot) -> tuple[Admission, ...]:
    """The gates to open."""
    waiting = made.waiting
    if not waiting.passed and not waiting.opportunistic:
        return ()
    places: dict[str, Place] = {
        key: (placement.pod.slices, made.promised.get(placement.node, ()))
        for key, placement in made.places.found.items()
    }
    for launch, node in zip(now.launches, now.bought, strict=False):
        places.update({placed.pod: (placed.slices, node.load.room.devices) for placed in launch.pods})
    pending = {pod.key: pod for pod in snapshot.pending}
    return admissions(waiting, places, pending, snapshot.taken_at_s)


def _priced(decision: Decision, made: Outcome) -> Decision:
    """The decision with what it comes to."""
    world, launches = decision.world, decision.launches
    paid, allocated = pricing.cards_in_use(world.snapshot, world.market, decision.placements, made.promised)
    paid += pricing.cards_bought(launches)
    allocated += sum(launch.allocated for launch in launches)
    before = pricing.cluster_price(world.snapshot.nodes, world.supply)
    cost = Cost(world.market.currency, before, before + sum(launch.price_micro for launch in launches))
    return replace(decision, cost=cost, gpus=GpuUse(paid, allocated))
