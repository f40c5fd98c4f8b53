"""Nodes of static pools that have drifted are replaced one for one, as their pool and its limit of nodes allow.

Their pods decide nothing: a static pool has its number of nodes for reasons of its own.
"""

from collections.abc import Iterator, Sequence

from kerf.engine.buy.floors import Floors
from kerf.engine.buy.limits import Ledger
from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Drifts, TakesPods
from kerf.engine.disruption.command import Command, replacing
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodeclaim import DRIFTED as CONDITION
from kerf.model.nodepool import DRIFTED
from kerf.model.plan import Deletion, Launch


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """One command for as many nodes as budgets and limits allow, empty ones first, then those that drifted first."""
    allowance = Allowance(world.snapshot, DRIFTED)
    drifted = sorted((each for each in candidates if may_go(each, allowance)), key=_order)
    if not drifted:
        return
    floors = Floors(world, Ledger.of(world))
    deletions: list[Deletion] = []
    launches: list[Launch] = []
    for each in drifted:
        cause = Drifts(Name(each.drift))
        takes = TakesPods(len(each.pods), (Name(each.node.name),))
        if not allowance.is_open(each.pool.name):
            continue
        launch = floors.cheapest(each.pool, f"launch-{len(launches)}", takes, replaces=(each.claim.name,))
        if launch is None:
            continue
        allowance.take(each.pool.name)
        launches.append(launch)
        names, price = (each.node.name, each.claim.name, each.pool.name), present_price(each.cluster_node, world.supply)
        deletions.append(Deletion(*names, price, DRIFTED, cause, replaced_by=(launch.name,)))
    if deletions:
        yield replacing(world, tuple(deletions), tuple(launches))


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node is one of a static pool and has drifted, and its pool lets one more such node go."""
    return candidate.pool.replicas is not None and bool(candidate.drift) and allowance.is_open(candidate.pool.name)


def _order(candidate: Candidate) -> tuple[bool, float, str]:
    condition = candidate.claim.condition(CONDITION)
    return (bool(candidate.pods), condition.since_s if condition is not None else 0.0, candidate.node.name)
