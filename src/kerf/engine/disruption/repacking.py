"""Nodes whose pods cost less elsewhere go together: on room that others have, and on new nodes that cost less.

The fleet is judged as one. A node that costs much more than its pods are worth (`worths`) is wasted, whatever its size.
The nodes that are wasted most are tried first, as many at once as the budgets allow, then fewer; the planner packs
their pods again: one node may become two, and ten become seven. Of what was tried, that is done which saves the largest
share of what its nodes cost, where that is more than what new nodes were seen to stay unfilled (`unfilled`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, islice

from kerf.engine.disruption import emptiness
from kerf.engine.disruption.balanced import Balance
from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate, candidates, may_save, may_save_with_room, moving
from kerf.engine.disruption.causes import Alternative, FloorCostsLess, Lacks, NoAlternative, Repacked, RepackedInTurn
from kerf.engine.disruption.command import Command, replacing
from kerf.engine.disruption.disturbance import MILLION, Restarts, life_s, of_node
from kerf.engine.disruption.lasting import node_price, saved_micro
from kerf.engine.disruption.parts import part_of
from kerf.engine.disruption.substitution import Substitutes, Substitution, real
from kerf.engine.disruption.unfilled import came_lately, unfilled_share
from kerf.engine.disruption.worths import Worths
from kerf.engine.leaving import is_planned
from kerf.engine.supply.pricing import capacity_type_of, present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE
from kerf.model.groups import group_of
from kerf.model.instancetypes import SPOT
from kerf.model.lowerbound import NANO
from kerf.model.nodepool import EMPTY, UNDERUTILIZED
from kerf.model.plan import Launch
from kerf.model.rejections import workload_of

_WASTED = 50
"""A node is looked at where it costs one part in so many more than its pods are worth; prices are no more exact."""
_HOUR_S = 3600
_MOST_ALONE = 10
"""Nodes that are tried one by one where no more of them save anything together."""
SETTLES_S = 1_200.0
"""So long a node that was bought in the place of others is left alone: schedulers fill it as they do."""
_MOST_WORK, _FEWEST_TRIES = 20_000, 3
"""Nodes and pods looked at in one pass, over all tries; and so many tries on any fleet."""
_MOST_WINDOWS = 8
"""So many further groups of nodes are tried where the first saves nothing."""
_AS_GOOD = 0.97
"""Fewer nodes go where so much of the gain is left."""
_FEW = 20
"""So few nodes are looked at again without those that would be bought again, though with fewer pods, and though
somewhat less is gained."""
_MOST_AHEAD = 100
"""Of so many nodes the best end is searched for whatever budgets say, and they choose the part that is done first."""
_MOST_PAIRS = 30
"""So many pairs of few nodes are tried, of those that could go alone."""
_MOST_MIRRORS = 4
"""So many of few nodes that would be bought again are tried as the one that stays."""
_GOOD_ENOUGH = 0.7
"""Fewer nodes are not tried where so much is saved of what is wasted on those that go."""


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """The command that saves most, if any does. Cost: the bound of all their pods, and at most some thirty decisions
    for those of the nodes that go."""
    allowance = Allowance(world.snapshot, UNDERUTILIZED, are_replaced=True)
    may_go = [each for each in candidates if _may_go(each, allowance) and _is_settled(each, world)]
    # One of another kind would keep all that are tried beside it.
    fleet = _Fleet(world, [each for each in may_go if all(map(is_planned, each.pods))])
    if len(fleet.judged) <= _MOST_AHEAD:
        whole = _best(world, fleet, are_budgets_kept=False)
        part = part_of(whole, allowance) if whole is not None else None
        if whole is not None and part is not None and Balance(world).allows(part.victims, part.saved_micro):
            cause = _cause(whole) if part is whole else _cause(whole, len(part.victims))
            yield replacing(world, part.deletions(UNDERUTILIZED, cause), part.launches)
            return
    found = _best(world, fleet)
    if found is not None:
        yield replacing(world, found.deletions(UNDERUTILIZED, _cause(found)), found.launches)


def propose_above_floors(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """The same where an empty node is about to go of a pool that could spare a more expensive one instead.

    What the empty one costs is not all: without it its pool may be at its floor. Nothing of a large fleet. Cost: linear
    in candidates; that of `propose` where there is such a pool.
    """
    if len(candidates) > _MOST_AHEAD:
        return
    empty, allowance = Allowance(world.snapshot, EMPTY), Allowance(world.snapshot, UNDERUTILIZED, are_replaced=True)
    pools = {each.pool.name for each in candidates if each.pool.bounds.min_nodes and emptiness.may_go(each, empty)}
    if any(each.pool.name in pools and may_save(each, allowance) for each in candidates):
        yield from propose(world, candidates)


def _cause(whole: Substitution, going: int | None = None) -> Repacked | RepackedInTurn | FloorCostsLess:
    """Why its nodes go, or so many of them."""
    held = [pod.key for each in whole.victims for pod in each.pods]
    nodes, bought, saved_micro = len(whole.victims), len(whole.launches), whole.saved_micro
    if not held:
        return FloorCostsLess(nodes, bought, saved_micro)
    if going is None:
        return Repacked(real(held), nodes, bought, saved_micro)
    return RepackedInTurn(real(held), nodes, bought, saved_micro, going)


def _may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node may go to save money: an empty one only where its pool keeps some, for else it goes anyway."""
    if may_save(candidate, allowance):
        return True
    return not candidate.pods and candidate.pool.bounds.min_nodes > 0 and may_save_with_room(candidate, allowance)


def _is_settled(candidate: Candidate, world: World) -> bool:
    """Whether the node may be judged: not one that has just come in the place of others, nor one with pods of a group.

    Schedulers fill a new node by their own rules and not always as planned, and the same must not be tried again at
    once. A group moves as a whole or not at all.
    """
    claim = candidate.claim
    if claim.replaces and world.snapshot.taken_at_s - claim.created_s < SETTLES_S:
        return False
    return all(group_of(pod) is None for pod in candidate.pods) and not _was_displaced(candidate, world)


def _was_displaced(candidate: Candidate, world: World) -> bool:
    """Whether pods like some of the node's were moved lately and not placed as planned, so nothing was saved."""
    staying = world.market.staying_workloads
    return bool(staying) and any(workload_of(pod) in staying for pod in candidate.pods)


class _Judged:
    """A candidate, what an hour of it costs beyond what its pods are worth, and what these lose when they move."""

    def __init__(self, world: World, candidate: Candidate, worths: Worths, restarts: Restarts) -> None:
        now_s, pods = world.snapshot.taken_at_s, candidate.pods
        self.candidate = candidate
        self.price_micro = node_price(candidate.cluster_node, world)
        self.has_risen = self.price_micro < present_price(candidate.cluster_node, world.supply)
        self.worth_micro = worths.micro(pods)
        self.waste_micro = self.price_micro - self.worth_micro
        self.lost_micro = sum(int(worths.nano(pod) * restarts.lost_s(pod, now_s)) for pod in pods) // NANO // _HOUR_S
        # An empty node stays for as long as its pool is to have so many: as long again as it has been there.
        self.life_s = life_s(pods or (candidate.claim,), now_s)

    @property
    def is_wasted(self) -> bool:
        """Whether it costs much more than its pods are worth, and their move pays while they may be expected to run."""
        if self.waste_micro * _WASTED <= self.price_micro:
            return False
        return self.waste_micro * self.life_s > self.lost_micro * _HOUR_S

    @property
    def order(self) -> tuple[int, str]:
        """Sort key: the most waste for what the move disturbs first."""
        return (-self.waste_micro * MILLION // of_node(self.candidate.pods), self.candidate.node.name)

    @property
    def by_share(self) -> tuple[float, str]:
        """Sort key: the largest share of the price wasted first."""
        return (-self.waste_micro / self.price_micro, self.candidate.node.name)


class _Fleet:
    """Nodes that may go, the most wasted first, without those with a pod that nothing for sale holds, which must stay;
    and which share of what is bought stays unfilled, by the nodes that came lately."""

    def __init__(self, world: World, may_go: Sequence[Candidate]) -> None:
        new, asked = came_lately(world) if may_go else [], {each.node.name for each in may_go}
        pods = [pod for each in may_go for pod in each.pods]
        pods += [pod for each in new if each.name not in asked for pod in moving(each)]
        worths, names = Worths(world, pods), {each.name for each in new}
        others = (each.cluster_node for each in may_go if each.node.name not in names)
        self.unfilled = unfilled_share(world, worths, new, others)
        self.made = dict[frozenset[str], Substitution | None]()
        """What was tried already: names of nodes, and what comes of their end."""
        restarts = Restarts(pods)
        held = (each for each in may_go if each.pods or each.pool.bounds.min_nodes)
        found = (_Judged(world, each, worths, restarts) for each in held if worths.knows(each.pods))
        self.judged = sorted(
            (each for each in found if each.is_wasted or not each.has_risen), key=lambda each: each.order
        )


def _best(world: World, fleet: _Fleet, *, are_budgets_kept: bool = True) -> Substitution | None:
    """What saves the largest share of what its nodes cost, else what others save, else single ones, else few nodes all;
    as many nodes as budgets let go at once, where they are kept.

    Of two orders those first in each are tried. Where most are wasted all go together if they can: what the others keep
    would be missing beside the rest.
    """
    tries, judged = _Tries(world, fleet.unfilled, fleet.made), fleet.judged
    wasted = [each for each in judged if each.is_wasted]
    within = partial(_within, world) if are_budgets_kept else list[_Judged]
    first, *others = _windows(wasted, within) or [[]]
    if len(wasted) > len(judged) // 2:
        together = within(judged)
        found = tries.of(together) if len(together) > len(first) else None
        if found is not None:
            return found
    largest = within(sorted(wasted, key=lambda each: each.by_share))
    best = [*tries.halving(first), *tries.halving(largest)]
    if not are_budgets_kept and len(judged) <= _FEW:
        # Of two nodes that fill one together the bound may give all of its price to the pods of one.
        whole = tries.of(judged)
        going_alone = [each for each in judged if tries.of([each]) is not None]
        best += filter(None, (whole, *map(tries.of, ([each] for each in going_alone))))
        best += _grown(tries, going_alone)
    if best:
        return max(best if are_budgets_kept else _largest(best), key=lambda each: each.share_saved)
    several = (window for window in others[:_MOST_WINDOWS] if len(window) > 1)
    for chosen in (*several, *([each] for each in wasted[:_MOST_ALONE])):
        found = tries.of(chosen)
        if found is not None:
            return found
    # Of two nodes that fill one together the bound may give all of its price to the pods of one.
    return tries.of(within(judged)) if wasted and len(judged) <= _FEW else None


def _grown(tries: "_Tries", going_alone: Sequence[_Judged]) -> Iterator[Substitution]:
    """What two of them save together, and then further ones with the two that save most.

    The pods of each of them alone find the room that only one can have, and which of them has it decides what is left
    for the others.
    """
    found = list[tuple[Substitution, Sequence[_Judged]]]()
    for pair in islice(combinations(going_alone, 2), _MOST_PAIRS):
        both = tries.of(pair)
        if both is not None:
            found.append((both, pair))
    yield from (made for made, _ in found)
    if not found:
        return
    made, chosen = max(found, key=lambda each: each[0].saved_micro)
    for each in going_alone:
        more = tries.of([*chosen, each]) if each not in chosen else None
        if more is not None and more.saved_micro > made.saved_micro:
            made, chosen = more, [*chosen, each]
            yield made


def _largest(found: Sequence[Substitution]) -> list[Substitution]:
    """Those that save nearly the most: what saves a large share of little may stand in the way of more."""
    most = max(each.saved_micro for each in found)
    return [each for each in found if each.saved_micro >= _AS_GOOD * most]


class _Tries:
    """What goes together and what is saved by it. Each set of nodes is tried once.

    A try costs a look at all nodes and at the pods that move, so of a large fleet there are few.
    """

    def __init__(self, world: World, unfilled: float, made: dict[frozenset[str], Substitution | None]) -> None:
        self._world, self._unfilled = world, unfilled
        self._substitutes, self._balance = Substitutes(world), Balance(world)
        self._nodes, self._spent, self._number = len(world.snapshot.nodes), 0, 0
        self._made = made

    def of(self, chosen: Sequence[_Judged]) -> Substitution | None:
        """What these come to; None where they save nothing, or too much was tried."""
        names = frozenset(each.candidate.node.name for each in chosen)
        spent = self._spent + self._nodes + sum(len(each.candidate.pods) for each in chosen)
        if names in self._made:
            # Both orders may begin with the same nodes: fewer of them are looked at only where these are not enough.
            return self._made[names]
        if self._number >= _FEWEST_TRIES and spent > _MOST_WORK:
            return None
        self._spent, self._number = spent, self._number + 1
        self._made[names] = self._tried(chosen)
        return self._made[names]

    def halving(self, first: Sequence[_Judged]) -> Iterator[Substitution]:
        """Of the first, half of these, and so on, until enough of what is wasted is saved."""
        for power in range(len(first).bit_length() - 1):
            chosen = first[: len(first) >> power]
            found = self.of(chosen)
            if found is None:
                continue
            yield found
            if found.saved_micro >= _GOOD_ENOUGH * sum(max(0, each.waste_micro) for each in chosen):
                return

    def _tried(self, wasted: Sequence[_Judged]) -> Substitution | None:
        """How these nodes' end gains something while their pods run; None where nothing is gained.

        Nodes that would be bought again as they are stay, and others fill them: that moves fewer pods. Of many nodes
        another look costs as much as the first, so there most of what is bought must be such nodes.
        """
        gain, found = self._gained(wasted)
        while found is not None:
            fewer = self._fewer(wasted, gain, found)
            if fewer is None:
                break
            wasted, gain, found = fewer
        return found

    def _fewer(
        self, wasted: Sequence[_Judged], gain: float, found: Substitution
    ) -> tuple[Sequence[_Judged], float, Substitution] | None:
        """The same without nodes that would be bought again as they are, where that is about as good. Of few
        nodes some of these are tried alone as well: the pods of one may fit on another, and not the other way round."""
        fewer, is_few = _without_mirrored(wasted, found), len(wasted) <= _FEW
        stay = len(wasted) - len(fewer)
        if not stay or (not is_few and 2 * stay < len(found.launches)):
            return None
        choices = [fewer]
        if is_few:
            bought = Counter(map(_kind_bought, found.launches))
            alike = [each for each in reversed(wasted) if bought[_kind(each)]]
            choices += ([each for each in wasted if each is not one] for one in alike[:_MOST_MIRRORS])
        for chosen in filter(None, choices):
            less, again = self._gained(chosen)
            # Pods that stay may be older than those that move. That makes the nodes together gain for longer, not more.
            is_as_good = again is not None and again.saved_micro >= found.saved_micro
            if again is not None and (is_as_good or (is_few and less >= _AS_GOOD * gain)):
                return chosen, less, again
        return None

    def _gained(self, wasted: Sequence[_Judged]) -> tuple[float, Substitution | None]:
        substitutes, victims = self._substitutes, [each.candidate for each in wasted]
        found = substitutes.of(victims, must_save=True)
        if found is None or _needs_turns(found) or not self._balance.allows(victims, found.saved_micro):
            return 0.0, None
        going = {each.node.name for each in found.victims}
        moved = [each for each in wasted if each.candidate.node.name in going]
        lasting_micro = _saved_micro(found, self._world, self._unfilled)
        gain = _gain(moved, found, substitutes.start_s, lasting_micro)
        return (0.0, None) if gain <= 0 or _is_noise(found, lasting_micro) else (gain, found)


_Within = Callable[[Sequence[_Judged]], list[_Judged]]
"""The first of these that may go at once."""


def _windows(wasted: Sequence[_Judged], within: _Within) -> list[list[_Judged]]:
    """As many at a time as the budgets allow, the most wasted first; the first few of these."""
    found: list[list[_Judged]] = []
    left = list(wasted)
    while left and len(found) <= _MOST_WINDOWS:
        window = within(left)
        if not window:
            break
        taken = {id(each) for each in window}
        found.append(window)
        left = [each for each in left if id(each) not in taken]
    return found


def nearest(world: World, candidate: Candidate, unfilled: float = 0.0) -> Alternative | NoAlternative:
    """What would take the pods of a node that stays, and what stands against it, where such a share of new nodes stays
    unfilled. Cost: two decisions for its pods."""
    substitutes, pods = Substitutes(world), len(candidate.pods)
    found = substitutes.of([candidate])
    if found is None:
        return NoAlternative(pods)
    types = Counter(launch.offering.instance_type for launch in found.launches)
    named = tuple((Name(name), number) for name, number in sorted(types.items()))
    bought = {launch.name for launch in found.launches}
    places = {place.node for places in found.places.values() for place in places}
    lacks = _lacks(world, substitutes, candidate, found, unfilled)
    if lacks is Lacks.NOTHING and not found.launches:
        # It is asked of a node whose pods fit on no other: there is room for them where something else is first.
        lacks = Lacks.ROOM
    there = tuple(map(Name, sorted(places - bought)))
    return Alternative(pods, named, found.after_micro, found.before_micro, lacks, there)


def _gate(world: World, candidate: Candidate, found: Substitution) -> Lacks:
    """Why what costs less may not be bought: spot by spot, or a node that is as the one that goes."""
    is_spot = all(each.offering.capacity_type == SPOT for each in found.launches) and found.launches
    if capacity_type_of(candidate.cluster_node) != SPOT or not is_spot:
        return Lacks.AGAIN
    kind = candidate.cluster_node.labels.get(INSTANCE_TYPE, "")
    if len(found.launches) == 1 and found.launches[0].offering.instance_type == kind:
        return Lacks.AGAIN
    return Lacks.SPOT_TYPES if world.replaces_spot else Lacks.SPOT


def _lacks(world: World, substitutes: Substitutes, candidate: Candidate, found: Substitution, unfilled: float) -> Lacks:
    if found.saved_micro <= 0:
        return Lacks.SAVING
    if any(group_of(pod) is not None for pod in candidate.pods):
        return Lacks.GROUP
    if _was_displaced(candidate, world):
        return Lacks.DISPLACED
    if not _is_settled(candidate, world):
        return Lacks.REST
    if _lasting_saved_micro(found, world) <= 0:
        return Lacks.PRICE
    if not all(map(is_planned, candidate.pods)):
        return Lacks.PLAN
    saving = substitutes.of([candidate], must_save=True)
    if saving is None:
        return _gate(world, candidate, found)
    if _needs_turns(saving):
        return Lacks.TURNS
    lasting_micro = _saved_micro(saving, world, unfilled)
    if _is_noise(saving, lasting_micro):
        return Lacks.MARGIN
    if not Balance(world).allows([candidate], saving.saved_micro):
        return Lacks.BALANCE
    judged = _Fleet(world, [candidate]).judged
    return Lacks.NOTHING if judged and _gain(judged, saving, substitutes.start_s, lasting_micro) > 0 else Lacks.WORTH


def unfilled_of(world: World) -> float:
    """Which share of what is bought in the place of others stays unfilled. Cost: the bound of all pods that may go."""
    return _Fleet(world, candidates(world.snapshot)[0]).unfilled


def _within(world: World, wasted: Sequence[_Judged]) -> list[_Judged]:
    allowance = Allowance(world.snapshot, UNDERUTILIZED, are_replaced=True)
    return [each for each in wasted if allowance.take(each.candidate.pool.name)]


def _gain(moved: Sequence[_Judged], found: Substitution, start_s: float, saved_micro: float) -> float:
    """What is saved while the pods may be expected to run, less what they lose and what the new nodes cost until they
    are up, in micro-units."""
    life = sum(each.life_s for each in moved) / max(1, len(moved))
    twice_micro = found.after_micro * start_s
    return (saved_micro * life - twice_micro) / _HOUR_S - sum(each.lost_micro for each in moved)


def _saved_micro(found: Substitution, world: World, unfilled: float) -> float:
    """What is saved an hour by prices that last, where such a share of the new nodes stays unfilled: other nodes are
    needed beside them."""
    return _lasting_saved_micro(found, world) - found.after_micro * unfilled


def _lasting_saved_micro(found: Substitution, world: World) -> int:
    return saved_micro((each.cluster_node for each in found.victims), found.launches, world)


def _needs_turns(found: Substitution) -> bool:
    """Whether pods fit the cards that are bought only in an order: pods that are made again come in none.

    Some would find no place, a node would be bought for these, and the same would be tried again.
    """
    return any(placed.turn for launch in found.launches for placed in launch.pods)


def _is_noise(found: Substitution, saved_micro: float) -> bool:
    return saved_micro * _WASTED <= found.before_micro


def _without_mirrored(wasted: Sequence[_Judged], found: Substitution) -> list[_Judged]:
    """Those for which no node of their own kind is bought; of equals the least wasted stay."""
    mirrored, kept = Counter(map(_kind_bought, found.launches)), []
    for each in reversed(wasted):
        if mirrored[_kind(each)]:
            mirrored[_kind(each)] -= 1
        else:
            kept.append(each)
    return kept[::-1]


def _kind(judged: _Judged) -> tuple[str, str, str]:
    """What a node is sold as: its pool, its type and its capacity type."""
    labels = judged.candidate.cluster_node.labels
    return judged.candidate.pool.name, labels.get(INSTANCE_TYPE, ""), labels.get(CAPACITY_TYPE, "")


def _kind_bought(launch: Launch) -> tuple[str, str, str]:
    return launch.node_pool, launch.offering.instance_type, launch.offering.capacity_type
