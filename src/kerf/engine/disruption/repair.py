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
from kerf.model.nodeclaim import FALSE, GPUS_HEALTHY
from kerf.model.nodeclaim import UNHEALTHY as CONDITION
from kerf.model.nodepool import UNHEALTHY
from kerf.model.plan import Deletion
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_MOST_OF = 5
"""One node in so many may be broken; rounded up: of a small pool one always may."""
_MOST_TRIED = 20


@dataclass(frozen=True, slots=True)
class TooManyBroken:
    """A pool of which too much is broken for a repair to help."""

    pool: str
    broken: int
    nodes: int


def too_many(
    snapshot: ClusterSnapshot, monitored: frozenset[tuple[str, str]] = frozenset()
) -> tuple[TooManyBroken, ...]:
    """The pools of which some node would be repaired and none is now, by name. Cost: linear in nodes.

    A node counts as broken as soon as one of the `monitored` conditions is bad, or a card; not only once that has been
    tolerated for long enough. Else the first of many that break within minutes would go all the same.
    """
    if not any(held.claim is not None and held.claim.is_true(CONDITION) for held in snapshot.nodes):
        return ()
    nodes, broken, due = Counter[str](), Counter[str](), set[str]()
    for held in snapshot.nodes:
        if held.claim is not None and held.is_initialized and not held.is_deleting:
            pool, is_due = held.claim.node_pool, held.claim.is_true(CONDITION)
            nodes[pool] += 1
            broken[pool] += is_due or _is_bad(held, monitored)
            if is_due:
                due.add(pool)
    return tuple(
        TooManyBroken(pool, broken[pool], nodes[pool])
        for pool in sorted(due)
        if broken[pool] > -(-nodes[pool] // _MOST_OF)
    )


def _is_bad(held: ClusterNode, monitored: frozenset[tuple[str, str]]) -> bool:
    """Whether a condition is bad for which the node is repaired in the end; never where nodes are not repaired."""
    if not monitored or held.claim is None:
        return False
    cards = held.claim.condition(GPUS_HEALTHY)
    if cards is not None and cards.status == FALSE:
        return True
    conditions = held.node.conditions if held.node is not None else ()
    return any((condition.type, condition.status) in monitored for condition in conditions)


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """One command for each broken node, the one that broke first first. Cost: at most twenty decisions.

    Where nothing can take its pods, or its pool can have no other node for its floor, the node goes all the same: it
    serves no more. Where budgets do not count all go by one command, and what is bought comes afterwards.
    """
    allowance = allowance_of(world)
    broken = sorted((each for each in candidates if may_go(each, allowance)), key=_since)
    if not broken:
        return
    held = {each.pool for each in too_many(world.snapshot, world.monitored)}
    broken = [each for each in broken if each.pool.name not in held]
    if broken and world.repairs_at_once:
        yield deleting(world, tuple(_deletion(world, each) for each in broken))
        return
    substitutes = Substitutes(world)
    for candidate in broken[:_MOST_TRIED]:
        found = substitutes.of([candidate]) if candidate.pods or candidate.pool.bounds.min_nodes else None
        if found is not None:
            yield replacing(world, found.deletions(UNHEALTHY, Broken(Name(candidate.unhealthy))), found.launches)
        else:
            yield deleting(world, (_deletion(world, candidate),))


def allowance_of(world: World) -> Allowance:
    """How many broken nodes may go; another comes for one that a floor counts, before it or after it."""
    return Allowance(world.snapshot, UNHEALTHY, are_replaced=True, is_open_to_all=world.repairs_at_once)


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
