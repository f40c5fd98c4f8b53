"""Nodes for pods that have found no place, where other pods say in which domains and beside whom they may run.

Domains are decided first, then nodes that must be shared, then the rest; last it is proven that all pods can be bound
there in queue order. What does not hold is tried again a few times with what the attempt has shown: how many nodes a
domain had for the pods, and which pods came in each other's way.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from kerf.engine.buy.binding import asked_by, can_serve, charged, limits_of
from kerf.engine.buy.cells import Place
from kerf.engine.buy.company import rest, shared_nodes
from kerf.engine.buy.concerns import Concerns
from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.flexibility import asks
from kerf.engine.buy.following import NONE_COMING, Bought, Coming
from kerf.engine.buy.joining import Joinable
from kerf.engine.buy.launching import Needed, dealt, launches_of
from kerf.engine.buy.limits import Ledger as Limits
from kerf.engine.buy.limits import is_reservation
from kerf.engine.buy.merging import merged
from kerf.engine.buy.precedence import importance, is_better
from kerf.engine.buy.proving import Proof, proven
from kerf.engine.buy.spreading import Assigned, Known, Unassigned, assigned
from kerf.engine.decision import Refusal
from kerf.engine.options import Options
from kerf.engine.outcome import Outcome
from kerf.engine.place.checks import Even
from kerf.engine.place.queueing import Destined
from kerf.engine.place.shapes import Shape, queue_order
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.place.trial import Trial
from kerf.engine.placing import join
from kerf.engine.relaxing import Relaxing
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Cause, Name
from kerf.model.constraints import HOSTNAME, Requirement, Requirements, Taint
from kerf.model.groups import may_name_groups
from kerf.model.nodeclaim import FOLLOW
from kerf.model.plan import Launch
from kerf.model.pods import Pod
from kerf.model.policies import COST

_MOST_ATTEMPTS = 4
_MOST_COUNTS = 12
"""For how many numbers of pods it is tried whether a limit has room for them."""


@dataclass(frozen=True)
class _Order:
    """What is to be bought: shapes, on types, by which options, after what was bought before."""

    made: Outcome
    shapes: tuple[Shape, ...]
    offered_types: Sequence[OfferedType]
    options: Options
    coming: Coming
    ledger: TopologyLedger
    first: int
    """The number of the first node."""
    launches: bool = True
    """Whether launches are asked for, and not only nodes."""
    joinable: Joinable | None = None
    """Nodes that are there, where pods may go that those to be bought let in; None where none may."""
    is_brief: bool = False
    """Whether nodes are chosen with little work, to see which pods get one."""
    limits: Limits | None = None
    """What the nodes that are bought must keep to, where they are chosen as if pools had no limits; else None."""


@dataclass
class _Attempt:
    """What comes of one: nodes, the limits then, and pods that are left of `shapes`, by their numbers.

    `purchases` have a part of the nodes each, with the shapes that it was made for. Launches are made, and the limits
    charged with what other types may take more, of the first `settled` of them: of most attempts neither is asked for.
    `known` is what the attempt went by.
    """

    plan: Assigned
    limits: Limits
    known: Known
    left_out: tuple[Unassigned, ...] = ()
    """Pods without a place for what earlier attempts have shown."""
    purchases: list[tuple[Purchase, Sequence[Shape], list[Bought]]] = field(default_factory=list)
    settled: int = 0
    launches: tuple[Launch, ...] = ()
    bought: tuple[Bought, ...] = ()
    kept: tuple[Unassigned, ...] = ()
    shapes: tuple[Shape, ...] = ()
    left: list[int] = field(default_factory=list)
    notes: tuple[Cause, ...] = ()
    short: dict[int, int] = field(default_factory=dict)
    """By number in the plan's shapes how many pods got no node."""
    is_limited: bool = True
    """Whether limits may be why pods got none."""
    lonely: dict[int, int] = field(default_factory=dict)
    """By number in the plan's shapes how many pods found no room beside those that they must be with."""
    loads: list[Load] = field(default_factory=list)
    """The nodes by the plan's shapes; none where no node must be shared."""
    proof: Proof | None = None

    @property
    def unserved(self) -> dict[str, Pod]:
        """The pods that have no node, or cannot be bound to it, by key."""
        held = zip(self.shapes, self.left, strict=True)
        left = (pod for shape, number in held if number for pod in shape.pods[len(shape) - number :])
        kept = (pod for each in self.kept if each.cause is not None for pod in each.pods)
        wrong = (pod for each in self.wrong.values() for pod in each.pods)
        return {pod.key: pod for pods in (left, kept, wrong) for pod in pods}

    @property
    def wrong(self) -> Mapping[str, Unassigned]:
        """The pods that cannot be bound where they are planned, by key."""
        return self.proof.wrong if self.proof is not None else {}

    @property
    def joined(self) -> tuple[Destined, ...]:
        """The pods that go to nodes which are there."""
        return tuple(each for each in self.plan.joined if each.pod.key not in self.wrong)

    @property
    def rank(self) -> tuple[list[tuple[int, int]], int]:
        """Sort key, the best first: pods without a place, price."""
        price_micro = sum(node.load.offering.price_micro for node in self.bought)
        return importance(self.unserved.values()), price_micro


_RANK = attrgetter("rank")


def purchase(options: Options, made: Outcome, changed: frozenset[str] = frozenset()) -> tuple[Refusal, ...]:
    """Nodes for the pods that have found no place: first those for everybody, then those of each window alone.

    Pods whom the new nodes let onto nodes that are there get their places in the trial of `made`, save on those that
    are `changed`, by name.
    """
    snapshot, supply = made.world.snapshot, made.world.supply
    taints = {window.name: window.taint for window in snapshot.windows}
    coming = _coming(made)
    refusals: list[Refusal] = []
    ledger = made.trial.ledger
    for window, left in ((None, made.places.left), *made.places.exclusive.items()):
        offered_types = supply.available if window is None else _kept_for(taints[window], supply.available)
        joinable = Joinable(made.trial, changed) if window is None else None
        first, has_launches = len(made.bought), not options.quick
        order = _Order(made, left, offered_types, options, coming, ledger, first, has_launches, joinable)
        found = _within_limits(order)
        made.places = join(made.trial, made.places, found.joined)
        launches = _with_what_keeps_off(found, left, joinable, made.trial) if joinable else found.launches
        made.launches, made.bought = (*made.launches, *launches), (*made.bought, *found.bought)
        made.ledger, made.notes = found.limits, (*made.notes, *found.notes)
        refusals += made.left_over(found.shapes, Purchase(left=found.left), made.trial, made.ledger)
        refusals += (Refusal(each.pods, each.stage, each.cause) for each in found.kept if each.cause is not None)
        ledger = found.proof.ledger if found.proof is not None else ledger
    return tuple(refusals)


def _with_what_keeps_off(
    found: _Attempt, shapes: Sequence[Shape], joinable: Joinable, trial: Trial
) -> tuple[Launch, ...]:
    """The launches, those for pods that other pods keep off nodes with room with the constraints that do.

    Cost: for shapes that go by others the kinds of nodes with room.
    """
    by_pod: dict[str, tuple[str, ...]] = {}
    for shape in shapes if found.launches else ():
        fields = tuple(dict.fromkeys(check.field for check in trial.ledger.checks(shape)))
        if fields and joinable.has_room(shape) and (not found.joined or trial.takes_alone(shape)):
            by_pod.update((pod.key, fields) for pod in shape.pods)
    return tuple(_kept_off(launch, by_pod) for launch in found.launches) if by_pod else found.launches


def _kept_off(launch: Launch, by_pod: Mapping[str, tuple[str, ...]]) -> Launch:
    found = dict.fromkeys(field for placed in launch.pods for field in by_pod.get(placed.pod, ()))
    if not found or not isinstance(launch.cause, Needed):
        return launch
    return replace(launch, cause=replace(launch.cause, kept_off=tuple(map(Name, sorted(found)))))


@dataclass(frozen=True)
class Later:
    """Nodes that were bought after others: the limits then, what pods go by there, and which pods got none.

    `left` are by shape how many pods found no node, `kept` those that others stand against.
    """

    nodes: tuple[Bought, ...]
    limits: Limits
    topology: TopologyLedger
    shapes: tuple[Shape, ...]
    left: tuple[int, ...]
    kept: tuple[Refusal, ...]

    @property
    def unserved(self) -> int:
        """How many pods got no node."""
        return sum(self.left) + sum(len(each.pods) for each in self.kept)


def bought_later(
    made: Outcome,
    shapes: Sequence[Shape],
    offered_types: Sequence[OfferedType],
    limits: Limits,
    topology: TopologyLedger,
    first: int,
) -> Later:
    """Nodes for pods that come after all of a try, which stays as it is; `first` is the number of the first node.

    `topology` has the nodes that were bought before with their pods, and `limits` what these take. No launch is made
    of them.
    """
    beside = replace(made, ledger=limits, dropped={})
    order = _Order(beside, tuple(shapes), offered_types, made.options, NONE_COMING, topology, first, launches=False)
    found = _within_limits(order)
    proof = found.proof or proven(found.bought, topology, first)
    kept = tuple(Refusal(each.pods, each.stage, each.cause) for each in found.kept if each.cause is not None)
    return Later(found.bought, found.limits, proof.ledger, found.shapes, tuple(found.left), kept)


def _coming(made: Outcome) -> Coming:
    """What is on its way: how its plans are followed, and which pods have their places there."""
    nodes = [node for node in made.world.snapshot.nodes if node.claim is not None and not node.is_initialized]
    names = {node.name for node in nodes}
    keys = {key for key, placement in made.places.found.items() if placement.node in names}
    pods = tuple(pod for pod in made.waiting.pods if pod.key in keys) if keys else ()
    modes = frozenset(node.claim.annotations.get(FOLLOW, "") for node in nodes if node.claim)
    return Coming(modes, pods, may_name_groups(made.waiting.of_each_mark))


def _kept_for(taint: Taint, offered_types: Sequence[OfferedType]) -> list[OfferedType]:
    """The same with a taint that keeps others off."""
    return [replace(c, target=replace(c.target, taints=(*c.target.taints, taint))) for c in offered_types]


def _within_limits(order: _Order) -> _Attempt:
    """What is bought as if pools had no limits if these allow it; else what is bought within them.

    Pods that go by no others are bought for at once, where `engine.buy.binding` looks at the same. Others are tried in
    several ways, of which a limit must stop none that leads to nodes it allows.
    """
    made, limits = order.made, order.made.ledger
    counted = limits_of(order.offered_types, limits)
    reservations = [limit for limit in counted if is_reservation(limit)]
    if len(reservations) == len(counted) or _are_plain(order) or not _may_be_free(order):
        return _relaxed(order)
    beside = replace(made, ledger=limits.only(reservations), dropped={})
    found = _relaxed(replace(order, made=beside, limits=limits))
    made.looks = beside.looks
    spent = _spent(limits, found)
    if spent is None:
        return _relaxed(order)
    if not order.launches:
        found.limits = spent
    made.dropped.update(beside.dropped)
    return found


def _are_plain(order: _Order) -> bool:
    """Whether no pods go by others or prefer something."""
    has_forms = any(len(order.made.forms.of(shape.spec)) > 1 for shape in order.shapes)
    return not has_forms and Concerns(order.ledger, order.shapes, order.offered_types).are_none


def _may_be_free(order: _Order) -> bool:
    """Whether limits may have room for all of the pods."""
    filler = Filler(order.shapes, order.made.world.holding)
    wanted = asked_by(filler, order.offered_types, [len(shape) for shape in order.shapes])
    return can_serve(order.offered_types, order.made.ledger, wanted)


def _spent(limits: Limits, found: _Attempt) -> Limits | None:
    """What is left of the limits after the nodes; None where they have no room for all."""
    return charged(limits, (load for purchase, _, _ in found.purchases for load in purchase.loads))


def _relaxed(order: _Order) -> _Attempt:
    """What is bought with as many preferences as can be had: see `engine.relaxing`."""
    holding, made = order.made.world.holding, order.made
    relaxing = Relaxing(order.shapes, made.forms, holding, holding.rows(order.offered_types))
    while True:
        found = _joining(replace(order, shapes=relaxing.shapes))
        if not relaxing.relax(found.unserved):
            break
    made.dropped.update(relaxing.dropped())
    return found


def _joining(order: _Order) -> _Attempt:
    """What is bought, with pods on nodes that are there where that leaves no other without a place."""
    found = _reseated(order)
    if not found.plan.joined or not found.unserved:
        return found
    other = _reseated(replace(order, joinable=None))
    return other if is_better(other.unserved, found.unserved) else found


def _reseated(order: _Order) -> _Attempt:
    """What is bought, with pods in other places where that serves more of them: before any preference gives way."""
    found = _bought(order)
    if not found.plan.are_blocked or not found.unserved:
        return found
    plan = _plan(order, Known(reseats=True))
    other = _bought(order, plan) if plan.is_reseated else found
    return other if is_better(other.unserved, found.unserved) else found


def _plan(order: _Order, known: Known) -> Assigned:
    made = order.made
    limits, holding = made.ledger.copy(), made.world.holding
    found = assigned(order.shapes, order.offered_types, order.ledger, limits, holding, known, order.joinable)
    made.looks += found.looks
    return found


def _bought(order: _Order, plan: Assigned | None = None) -> _Attempt:
    """The best of a few attempts: one where no pod goes by others, or all can be bound where they are planned.

    Those after the first are made with little work, and the best of them once more with all of it. `plan` is what the
    first goes by, where pods of it come before others (`engine.buy.precedence`).
    """
    known, wrong = Known(reseats=plan is not None), dict[str, Unassigned]()
    elsewhere: dict[tuple[int, Place], int] = {}
    apart = set[str]()
    together: dict[tuple[int, Place], int] = {}
    first = best = _attempt(order, known, plan or _plan(order, known))
    if not first.plan.are_bound:
        return _finished(order, first)
    brief = replace(order, is_brief=True)
    for number in range(_MOST_ATTEMPTS):
        found = _attempt(brief, known, _plan(order, known)) if number else first
        proof = _proven(order, found, wrong.values())
        best = min(best, found, key=_RANK)
        together |= _of_companies(found)
        ceilings = _ceilings(found, found.short)
        if not proof.wrong and not ceilings and not found.lonely:
            break
        joined = {each.pod.key for each in found.plan.joined}
        # Nodes are bought for those that cannot join others after all.
        apart |= joined & proof.wrong.keys()
        wrong |= {key: each for key, each in proof.wrong.items() if key not in joined}
        # Pods without room beside others come first in the next attempt, and get another domain in the one after it.
        ceilings = {**known.ceilings, **ceilings, **elsewhere}
        lonely = known.lonely.union(found.plan.origins[number][0] for number in found.lonely)
        known = Known(frozenset(wrong), ceilings, proof.sites, lonely, known.reseats, frozenset(apart))
        elsewhere = _ceilings(found, found.lonely)
    if together and best.unserved:
        # With all that they must be with in another domain, where a node may have room for them all.
        known = replace(known, ceilings={**known.ceilings, **together})
        found = _attempt(brief, known, _plan(order, known))
        _proven(order, found, wrong.values())
        best = min(best, found, key=_RANK)
    if first.wrong and first.plan.domains and best.unserved:
        found = _attempt(brief, first.known, _beside_them(order, first.plan))
        _proven(order, found, ())
        best = min(best, found, key=_RANK)
    if best is not first:
        found = _attempt(order, best.known, best.plan)
        _proven(order, found, best.left_out)
        best = min(found, best, key=_RANK)
    best = _evenly_limited(order, first, best)
    return _in_rounds(_without_wrong(_finished(order, _put_together(order, best))))


def _beside_them(order: _Order, plan: Assigned) -> Assigned:
    """The same with other pods in the domains that those have which go by others, save pods that can only be elsewhere.

    What is bought for them then opens no domain that stays empty, which would keep pods off that are to be spread.
    Cost: a look at all types for each of their shapes.
    """
    holding = order.made.world.holding
    rows = holding.rows(order.offered_types)
    wanted = Requirements(Requirement.of(key, "In", sorted(values)) for key, values in plan.domains.items())
    shapes = list(plan.shapes)
    for number in set(range(len(shapes))) - plan.origins.keys():
        spec = shapes[number].spec
        affinity = tuple(term.intersect(wanted) for term in spec.affinity) if spec.affinity else (wanted,)
        found = replace(shapes[number], asked=replace(spec, affinity=affinity))
        if holding.alone(found, holding.kind(found), rows)[rows].any():
            shapes[number] = found
    return replace(plan, shapes=tuple(shapes))


def _evenly_limited(order: _Order, all_of: _Attempt, found: _Attempt) -> _Attempt:
    """Where a limit leaves pods over that are to be spread: nodes for as many of the first of the queue as it allows.

    Nodes for `all_of` them are bought in any order, so those that a limit has room for may be in few domains, and not
    in the cheapest. For fewer pods the domains are given again, the cheapest first and as evenly as the pods ask.
    `found` where that serves more. Cost: a brief attempt for each number of pods that is tried.
    """
    plan = all_of.plan
    spread = {n: number for n, (number, _) in plan.origins.items() if _is_spread(order, number)}
    short = {spread[n] for n in all_of.short if n in spread}
    if not short or not all_of.is_limited or _are_unlimited(order):
        return found
    # Pods that count less may have what a limit has room for.
    most = max(order.shapes[number].spec.priority for number in short)
    members = [n for n, at in spread.items() if at in short or order.shapes[at].spec.priority < most]
    left = sum(all_of.short.get(n, 0) for n in members)
    pods = sorted((pod for n in members for pod in plan.shapes[n].pods), key=queue_order)
    keys, brief = {pod.key for pod in pods}, replace(order, is_brief=True)
    few, many, step, best = 0, len(pods) - 1, 1, None
    middle = min(max(1, len(pods) - left), many)
    for _ in range(_MOST_COUNTS):
        if few >= many:
            break
        made = _attempt_for(brief, all_of, {pod.key for pod in pods[middle:]})
        if any(made.plan.shapes[n].pods[0].key in keys for n in made.short):
            many = middle - 1
        else:
            few, best = middle, made
        half, step = (few + many + 1) // 2, step * 2
        middle = min(half, few + step) if best is made else max(half, many + 1 - step)
    if best is None or importance(best.unserved.values()) > found.rank[0]:
        return found
    whole = _attempt_for(order, all_of, {pod.key for pod in pods[few:]})
    return min(whole, best, key=_RANK)


def _are_unlimited(order: _Order) -> bool:
    """Whether any number of nodes of each type may be bought."""
    return all(order.made.ledger.room_for(each) is None for each in order.offered_types)


def _is_spread(order: _Order, number: int) -> bool:
    """Whether pods of the shape are to be spread over more than nodes."""
    checks = order.ledger.checks(order.shapes[number])
    return any(isinstance(check, Even) and check.keys != (HOSTNAME,) for check in checks)


def _attempt_for(order: _Order, all_of: _Attempt, out: Container[str]) -> _Attempt:
    """An attempt without some pods, which are left in the domains that they have in one for all."""
    shapes = (replace(shape, pods=pods) for shape in order.shapes if (pods := _others(shape.pods, out)))
    fewer = replace(order, shapes=tuple(shapes))
    known = Known(reseats=all_of.plan.is_reseated)
    found = _attempt(fewer, known, _plan(fewer, known))
    _proven(fewer, found, ())
    parts = ((shape, tuple(pod for pod in shape.pods if pod.key in out)) for shape in all_of.plan.shapes)
    more = [replace(shape, pods=pods) for shape, pods in parts if pods]
    found.shapes, found.left = (*found.shapes, *more), [*found.left, *map(len, more)]
    return found


def _proven(order: _Order, found: _Attempt, wrong: Iterable[Unassigned]) -> Proof:
    """What of the attempt can be bound; `wrong` are pods that it left out for what earlier ones have shown."""
    found.left_out = tuple(wrong)
    found.kept = (*found.kept, *found.left_out)
    found.proof = proven(found.bought, order.ledger, order.first, found.plan.joined)
    return found.proof


def _of_companies(found: _Attempt) -> dict[tuple[int, Place], int]:
    """No pods in the places of pods that found no room beside others, and of all that these must be with."""
    groups = (group.members for group in found.plan.companies if not found.lonely.keys().isdisjoint(group.members))
    return {found.plan.origins[number]: 0 for members in groups for number in members}


def _finished(order: _Order, found: _Attempt) -> _Attempt:
    """The attempt that was chosen, with its launches and the limits as they are then, where they are asked for."""
    if order.launches:
        _settle(order, found)
    return found


def _attempt(order: _Order, known: Known, plan: Assigned) -> _Attempt:
    made, limits = order.made, order.made.ledger.copy()
    found = _Attempt(plan, limits, known, kept=plan.kept)
    numbers: tuple[int, ...] = tuple(range(len(plan.shapes)))
    others = plan.shapes
    if plan.companies:
        urgent = _numbered(plan, known.lonely)
        shared = shared_nodes(plan.companies, plan.shapes, order.offered_types, limits, made.world.holding, urgent)
        _take(found, shared.purchase, plan.shapes)
        found.loads = [load for load, _ in shared.purchase.loads]
        found.kept += tuple(shared.kept.values())
        found.lonely = {number: len(kept.pods) for number, kept in shared.kept.items()}
        numbers, taken = rest(plan.shapes, shared.purchase)
        left, pods = shared.purchase.left, {n: plan.shapes[n].pods[int(taken[n]) :] for n in numbers}
        others = tuple(replace(plan.shapes[n], pods=pods[n][: left[n]]) for n in numbers)
    if others and order.launches and order.limits is None:
        _settle(order, found)
    buy = made.buy_briefly if order.is_brief else made.buy
    purchase = buy(others, order.offered_types, limits)
    _take(found, purchase, others)
    found.is_limited = purchase.binding is None or bool(purchase.binding)
    if found.loads:
        more = ((_renumbered(load, numbers, len(plan.shapes)), times) for load, times in purchase.loads)
        found.loads += [load for load, times in more for _ in range(times)]
    found.short = {number: left for number, left in zip(numbers, purchase.left, strict=True) if left}
    unserved = [each.pods for each in plan.kept if each.cause is None]
    found.shapes = (*others, *map(Shape, unserved))
    found.left, found.notes = [*purchase.left, *map(len, unserved)], purchase.notes
    return found


def _take(found: _Attempt, purchase: Purchase, shapes: Sequence[Shape]) -> None:
    nodes = dealt(purchase, shapes)
    found.purchases.append((purchase, shapes, nodes))
    found.bought = (*found.bought, *nodes)


def _settle(order: _Order, found: _Attempt) -> None:
    """Make the launches, and charge the limits with what other types may take more.

    None where the nodes were chosen as if pools had no limits, and these do not allow them.
    """
    if order.limits is not None:
        spent = _spent(order.limits, found)
        if spent is None:
            return
        found.limits = spent
    available = order.made.world, found.limits
    coming = replace(order.coming, pods=(*order.coming.pods, *(each.pod for each in found.plan.joined)))
    for purchase, shapes, nodes in found.purchases[found.settled :]:
        first = order.first + len(found.launches)
        more = launches_of(purchase, nodes, shapes, available, order.options, coming, first)
        found.launches = (*found.launches, *more)
    found.settled = len(found.purchases)


def _numbered(plan: Assigned, shapes: frozenset[int]) -> frozenset[int] | None:
    """The numbers that such shapes have in the plan; None where there are none."""
    return frozenset(n for n, origin in plan.origins.items() if origin[0] in shapes) if shapes else None


def _ceilings(found: _Attempt, short: Mapping[int, int]) -> dict[tuple[int, Place], int]:
    """How many pods got a node in each domain that had too few; none for shapes that go by no others.

    `short` are by number the pods that got none.
    """
    origins = found.plan.origins
    missing = ((number, left) for number, left in short.items() if number in origins)
    return {origins[number]: len(found.plan.shapes[number]) - left for number, left in missing}


def _renumbered(load: Load, numbers: Sequence[int], shapes: int) -> Load:
    """The load by other numbers of its shapes, of so many."""
    held, order = (tuple((numbers[n], count) for n, count in pairs) for pairs in (load.held, load.order))
    slices = {numbers[n]: each for n, each in load.slices.items()}
    return replace(load, shapes=shapes, held=held, slices=slices, order=order)


def _put_together(order: _Order, found: _Attempt) -> _Attempt:
    """The same with fewer nodes where some must be shared, others cost less as one, and all pods can still be bound."""
    if not found.loads or found.proof is None or found.proof.wrong or order.options.strategy != COST:
        return found
    shapes, types = found.plan.shapes, order.offered_types
    loads = merged(found.loads, Filler(shapes, order.made.world.holding, keeps_choice=any(map(asks, types))), types)
    if loads is None:
        return found
    made = replace(found, limits=order.made.ledger.copy(), purchases=[], settled=0, launches=(), bought=())
    for load in loads:
        if made.limits.room_for(load.offered, load.charge) == 0:
            return found
        made.limits.charge(load.offered.pool.name, load.charge)
    _take(made, Purchase([(load, 1) for load in loads]), shapes)
    made.proof = proven(made.bought, order.ledger, order.first, made.plan.joined)
    return made if made.rank < found.rank else found


def _in_rounds(found: _Attempt) -> _Attempt:
    """The same where pods say in which round of the scheduler they come."""
    late = found.proof.late if found.proof is not None else {}
    if late and found.launches:
        rounds = ([pod._replace(round=late.get(pod.pod, 0)) for pod in launch.pods] for launch in found.launches)
        found.launches = tuple(replace(e, pods=tuple(p)) for e, p in zip(found.launches, rounds, strict=True))
    return found


def _without_wrong(found: _Attempt) -> _Attempt:
    """The same without pods that cannot be bound where they are planned, and nodes that had no other."""
    wrong = found.wrong
    if not wrong:
        return found
    kept = [(at, pods) for at, node in enumerate(found.bought) if (pods := _others(node.pods, wrong))]
    if found.launches:
        found.launches = tuple(_holding(found.launches[at], pods) for at, pods in kept)
    found.bought = tuple(Bought(found.bought[at].load, pods) for at, pods in kept)
    found.kept = (*found.kept, *(each for key, each in wrong.items()))
    return found


def _others(pods: Iterable[Pod], wrong: Container[str]) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods if pod.key not in wrong)


def _holding(launch: Launch, pods: Iterable[Pod]) -> Launch:
    keys = {pod.key for pod in pods}
    return replace(launch, pods=tuple(each for each in launch.pods if each.pod in keys))
