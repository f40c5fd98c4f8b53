"""Nodes that are not what their pool or their NodeClass says now go, others first: Karpenter's order.

Empty ones go together, as many as the budgets allow. So do those with pods, at most twenty at once: those that drifted
first, and of those that drifted together the ones with the fewest pods; where the pods of one find no place, the next.
Nodes with members of one group go in one step, once all that is bought for them is up, or wait. What pods need is
bought before anything is taken away.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Blocked, Drifts, NoPlaceFound
from kerf.engine.disruption.command import Command, deleting, replacing
from kerf.engine.disruption.relocation import comes_to_last, lasts, stays
from kerf.engine.disruption.substitution import Substitutes, Substitution
from kerf.engine.disruption.wholegroups import WholeGroups
from kerf.engine.leaving import are_judged_later
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodepool import DRIFTED
from kerf.model.plan import Deletion
from kerf.model.snapshot import ClusterSnapshot

_MOST_TRIED = 20
"""Nodes for which a place is looked for in one pass, those that drifted first; the others have their turn later."""

_MOST_DROPPED = 3
"""So often nodes for which there is no place beside the others are left out, and the others asked again."""

_CHANGE_S = 60.0
"""Nodes that drifted within one minute, as by a change of their pool, drifted together."""


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """One command for all empty nodes that drifted, then one for those with pods that go at once, then one for each.

    Cost: at most six decisions for the second, and twenty for the third where there is no second.
    """
    allowance = Allowance(world.snapshot, DRIFTED, are_replaced=True)
    drifted = _eligible(candidates, allowance, world.snapshot)
    if not drifted:
        return
    above_floors = Allowance(world.snapshot, DRIFTED)
    gone = [each for each in drifted if not each.pods and above_floors.take(each.pool.name)]
    if gone:
        yield deleting(world, tuple(_deletion(each, world) for each in gone))
        return
    steps = _steps(world, drifted, allowance)
    together = _together(world, steps, allowance)
    if together is not None:
        reasons = {each.claim.name: Drifts(Name(each.drift)) for each in together.victims}
        deletions = together.deletions(DRIFTED, Drifts(Name("")))
        yield replacing(world, tuple(replace(each, cause=reasons[each.claim]) for each in deletions), together.launches)
    for step, found in _found(world, steps):
        together = found if len(step) == 1 else found.as_one()
        yield replacing(world, together.deletions(DRIFTED, Drifts(Name(step[0].drift))), together.launches)


def _together(world: World, steps: Sequence[tuple[Candidate, ...]], allowance: Allowance) -> Substitution | None:
    """What holds the pods of as many of these nodes as budgets let go at once, in their order; None for fewer than two.

    Nodes with pods that find no place beside the others wait, and so do those that a node which starts has room for;
    groups go in a step of their own. Cost: at most six decisions.
    """
    victims = [step[0] for step in steps if len(step) == 1 and allowance.take(step[0].pool.name)]
    lasting, coming = Substitutes(world, lasts), Substitutes(world, comes_to_last)
    starting = {node.name for node in world.snapshot.nodes if not node.is_initialized}
    for _ in range(_MOST_DROPPED):
        if len(victims) < 2:
            return None
        found, left_out = lasting.of(victims), lasting.lacking
        if found is not None and found.launches and _are_coming(world):
            awaited = coming.of(victims)
            places = {} if awaited is None else awaited.places
            left_out = frozenset(name for name, own in places.items() if any(each.node in starting for each in own))
        if found is not None and not left_out:
            return found
        if not left_out:
            return None
        victims = [each for each in victims if each.node.name not in left_out]
    return None


def _are_coming(world: World) -> bool:
    snapshot = world.snapshot
    return any(not node.is_initialized and comes_to_last(node, snapshot) for node in snapshot.nodes)


def _steps(world: World, drifted: Sequence[Candidate], allowance: Allowance) -> list[tuple[Candidate, ...]]:
    """The first nodes for which a place is looked for, each with those that have to go together with it."""
    groups, known = WholeGroups.of(world.snapshot), {each.node.name: each for each in drifted}
    steps: list[tuple[Candidate, ...]] = []
    for candidate in drifted:
        step = groups.together(candidate, known, allowance).candidates
        if step and step not in steps:
            steps.append(step)
        if len(steps) == _MOST_TRIED:
            break
    return steps


def waiting(world: World, candidates: Sequence[Candidate]) -> tuple[Blocked, ...]:
    """The nodes that have drifted and stay for a group, part of which is elsewhere; by since when they have drifted.

    Cost: linear in candidates and in the pods of groups.
    """
    drifted = sorted((each for each in candidates if _has_drifted(each)), key=_since)
    if not drifted:
        return ()
    allowance = Allowance(world.snapshot, DRIFTED, are_replaced=True)
    groups, known = WholeGroups.of(world.snapshot), {each.node.name: each for each in drifted}
    found = (groups.together(each, known, allowance).blocked(each) for each in drifted)
    return tuple(chain.from_iterable(found))


def without_place(world: World, staying: Sequence[Candidate]) -> tuple[Blocked, ...]:
    """Of nodes that no method takes, those that have drifted and whose pods were found no place, by node name.

    Those of which none was looked for are left out: not among the first, held by a group or by budgets, or with pods
    that wait for a node which starts. Cost: linear in candidates.
    """
    allowance = Allowance(world.snapshot, DRIFTED, are_replaced=True)
    drifted = _eligible(staying, allowance, world.snapshot)
    if not drifted or _are_coming(world):
        return ()
    tried = chain.from_iterable(_steps(world, drifted, allowance))
    found = (Blocked(Name(each.node.name), NoPlaceFound(len(each.pods))) for each in tried if each.pods)
    return tuple(sorted(found, key=lambda each: each.node))


def _eligible(candidates: Sequence[Candidate], allowance: Allowance, snapshot: ClusterSnapshot) -> list[Candidate]:
    """Those that may go, in their turn; with pods that are judged when they come a node stays, and these end there."""
    drifted = [each for each in candidates if each.drift and may_go(each, allowance)]
    found = (each for each in drifted if not are_judged_later(each.pods, snapshot))
    return sorted(found, key=_since)


def _has_drifted(candidate: Candidate) -> bool:
    return bool(candidate.drift) and candidate.pool.replicas is None


def _found(
    world: World, steps: Sequence[tuple[Candidate, ...]]
) -> Iterator[tuple[tuple[Candidate, ...], Substitution]]:
    """What holds the pods of each: nodes that have not drifted, then nodes to buy; others only where neither does.

    A pod that moved to a node that has drifted would move again. One waits where nodes that start will do instead.
    """
    lasting, coming = Substitutes(world, lasts), Substitutes(world, comes_to_last)
    are_coming = _are_coming(world)
    left = []
    for each in steps:
        found = lasting.of(each)
        if are_coming and (found is None or found.launches):
            awaited = coming.of(each)
            if awaited is not None and (found is None or awaited.after_micro < found.after_micro):
                continue
        if found is None:
            left.append(each)
        else:
            yield each, found
    staying = Substitutes(world, stays)
    for each in left:
        found = staying.of(each)
        if found is not None:
            yield each, found


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node of a pool that is not static has drifted, and the pool lets one more such node go."""
    return _has_drifted(candidate) and allowance.is_open(candidate.pool.name)


def _since(candidate: Candidate) -> tuple[float, int, float, str]:
    """The minute since when it has drifted; of those of one minute the node with the fewest pods first.

    A scheduler that heeds no taint for its preference, as HAMi's, may put its pods on one that goes later.
    """
    condition = candidate.claim.condition(DRIFTED)
    since_s = condition.since_s if condition is not None else 0.0
    return (since_s // _CHANGE_S, len(candidate.pods), since_s, candidate.node.name)


def _deletion(candidate: Candidate, world: World) -> Deletion:
    cause, price_micro = Drifts(Name(candidate.drift)), present_price(candidate.cluster_node, world.supply)
    return Deletion(candidate.node.name, candidate.claim.name, candidate.pool.name, price_micro, DRIFTED, cause)
