"""Nodes that are not what their pool or their NodeClass says now go, others first: Karpenter's order.

Empty ones go together, as many as the budgets allow. Of those with pods one goes at a time, the one that drifted first;
where its pods find no place, the next. What its pods need is bought before anything is taken away.
"""

from collections.abc import Iterator, Sequence

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Drifts
from kerf.engine.disruption.command import Command, deleting, replacing
from kerf.engine.disruption.relocation import comes_to_last, lasts, stays
from kerf.engine.disruption.substitution import Substitutes, Substitution
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodepool import DRIFTED
from kerf.model.plan import Deletion

_MOST_TRIED = 20
"""Nodes for which a place is looked for in one pass, those that drifted first; the others have their turn later."""


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """One command for all empty nodes that drifted, then one for each with pods. Cost: at most twenty decisions."""
    allowance = Allowance(world.snapshot, DRIFTED)
    drifted = sorted((each for each in candidates if may_go(each, allowance)), key=_since)
    gone = [each for each in drifted if not each.pods and allowance.take(each.pool.name)]
    if gone:
        yield deleting(world, tuple(_deletion(each, world) for each in gone))
        return
    for candidate, found in _found(world, drifted[:_MOST_TRIED]):
        yield replacing(world, found.deletions(DRIFTED, Drifts(Name(candidate.drift))), found.launches)


def _found(world: World, drifted: Sequence[Candidate]) -> Iterator[tuple[Candidate, Substitution]]:
    """What holds the pods of each: nodes that have not drifted, then nodes to buy; others only where neither does.

    A pod that moved to a node that has drifted would move again. One waits where nodes that start will do instead.
    """
    lasting, coming = Substitutes(world, lasts), Substitutes(world, comes_to_last)
    are_coming = any(not node.is_initialized and comes_to_last(node, world.snapshot) for node in world.snapshot.nodes)
    left = []
    for each in drifted:
        found = lasting.of([each])
        if are_coming and (found is None or found.launches):
            awaited = coming.of([each])
            if awaited is not None and (found is None or awaited.after_micro < found.after_micro):
                continue
        if found is None:
            left.append(each)
        else:
            yield each, found
    staying = Substitutes(world, stays)
    for each in left:
        found = staying.of([each])
        if found is not None:
            yield each, found


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node of a pool that is not static has drifted, and the pool lets one more such node go."""
    return bool(candidate.drift) and candidate.pool.replicas is None and allowance.is_open(candidate.pool.name)


def _since(candidate: Candidate) -> tuple[float, str]:
    condition = candidate.claim.condition(DRIFTED)
    return (condition.since_s if condition is not None else 0.0, candidate.node.name)


def _deletion(candidate: Candidate, world: World) -> Deletion:
    cause, price_micro = Drifts(Name(candidate.drift)), present_price(candidate.cluster_node, world.supply)
    return Deletion(candidate.node.name, candidate.claim.name, candidate.pool.name, price_micro, DRIFTED, cause)
