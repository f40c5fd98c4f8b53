"""Broken nodes go, others first where that can be had: asked before all other methods, as Karpenter 1.15 does.

A node is broken once a condition of it has been what its provider does not tolerate for too long (the condition
Unhealthy of its claim). Where more than a fifth of a pool is broken something else is at fault, and none of it goes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Broken
from kerf.engine.disruption.command import Command, deleting, replacing
from kerf.engine.disruption.substitution import Substitutes
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodeclaim import UNHEALTHY as CONDITION
from kerf.model.nodepool import UNHEALTHY
from kerf.model.plan import Deletion
from kerf.model.snapshot import ClusterSnapshot

_MOST_OF = 5
"""One node in so many may be broken; rounded up: of a small pool one always may."""
_MOST_TRIED = 20


@dataclass(frozen=True, slots=True)
class TooManyBroken:
    """A pool of which too much is broken for a repair to help."""

    pool: str
    broken: int
    nodes: int


def too_many(snapshot: ClusterSnapshot) -> tuple[TooManyBroken, ...]:
    """The pools of which no node is repaired now, by name. Cost: linear in nodes."""
    nodes, broken = Counter[str](), Counter[str]()
    for held in snapshot.nodes:
        if held.claim is not None and held.is_initialized and not held.is_deleting:
            nodes[held.claim.node_pool] += 1
            broken[held.claim.node_pool] += held.claim.is_true(CONDITION)
    return tuple(
        TooManyBroken(pool, broken[pool], nodes[pool])
        for pool in sorted(broken)
        if broken[pool] > -(-nodes[pool] // _MOST_OF)
    )


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """One command for each broken node, the one that broke first first. Cost: at most twenty decisions.

    Where nothing can take its pods the node goes all the same: it serves them no more. Where budgets do not count all
    go by one command, and what is bought for their pods comes afterwards.
    """
    allowance = allowance_of(world)
    broken = sorted((each for each in candidates if may_go(each, allowance)), key=_since)
    if not broken:
        return
    held = {each.pool for each in too_many(world.snapshot)}
    broken = [each for each in broken if each.pool.name not in held]
    if broken and world.repairs_at_once:
        yield deleting(world, tuple(_deletion(world, each) for each in broken))
        return
    substitutes = Substitutes(world)
    for candidate in broken[:_MOST_TRIED]:
        found = substitutes.of([candidate]) if candidate.pods else None
        if found is not None:
            yield replacing(world, found.deletions(UNHEALTHY, Broken(Name(candidate.unhealthy))), found.launches)
        else:
            yield deleting(world, (_deletion(world, candidate),))


def allowance_of(world: World) -> Allowance:
    """How many broken nodes may go."""
    return Allowance(world.snapshot, UNHEALTHY, is_open_to_all=world.repairs_at_once)


def _deletion(world: World, candidate: Candidate) -> Deletion:
    names = candidate.node.name, candidate.claim.name, candidate.pool.name
    price = present_price(candidate.cluster_node, world.supply)
    return Deletion(*names, price, UNHEALTHY, Broken(Name(candidate.unhealthy)))


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node is broken, and its pool lets one more such node go."""
    return bool(candidate.unhealthy) and allowance.is_open(candidate.pool.name)


def _since(candidate: Candidate) -> tuple[float, str]:
    condition = candidate.claim.condition(CONDITION)
    return (condition.since_s if condition is not None else 0.0, candidate.node.name)
