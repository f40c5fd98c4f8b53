"""Nodes of static pools that have drifted are replaced one for one, as their pool and its limit of nodes allow.

Their pods decide nothing: a static pool has its number of nodes for reasons of its own. Only the nodes of a group of
pods are replaced in one step, or wait.
"""

from collections.abc import Iterator, Sequence

from kerf.engine.buy.floors import Floors, staying
from kerf.engine.buy.limits import Ledger
from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Drifts, NoneInItsPlace, OfStaticPool, TakesPods
from kerf.engine.disruption.command import Command, replacing
from kerf.engine.disruption.settled import Settled
from kerf.engine.disruption.wholegroups import WholeGroups
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodeclaim import DRIFTED as CONDITION
from kerf.model.nodepool import DRIFTED, NodePool
from kerf.model.plan import Deletion, Launch


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """One command for as many nodes as budgets and limits allow, empty ones first, then those that drifted first."""
    allowance = Allowance(world.snapshot, DRIFTED, are_replaced=True)
    drifted = sorted((each for each in candidates if may_go(each, allowance)), key=_order)
    if not drifted:
        return
    floors, groups = Floors(world, Settled.of(world).ledger), WholeGroups.of(world.snapshot)
    deletions: list[Deletion] = []
    launches: list[Launch] = []
    done, known = set[str](), {each.node.name: each for each in drifted}
    for each in drifted:
        chosen = () if each.node.name in done else groups.together(each, known, allowance).candidates
        bought = _bought(chosen, floors, len(launches)) if allowance.is_open(each.pool.name) else ()
        if not bought:
            continue
        for candidate in chosen:
            done.add(candidate.node.name)
            allowance.take(candidate.pool.name)
            names = candidate.node.name, candidate.claim.name, candidate.pool.name
            price, cause = present_price(candidate.cluster_node, world.supply), Drifts(Name(candidate.drift))
            taken = tuple(launch.name for launch in bought)
            deletions.append(Deletion(*names, price, DRIFTED, cause, replaced_by=taken))
        launches.extend(bought)
    if deletions:
        yield replacing(world, tuple(deletions), tuple(launches))


def _bought(chosen: Sequence[Candidate], floors: Floors, first: int) -> tuple[Launch, ...]:
    """One node for each, which all of them wait for; none where one of them can have none."""
    claims, found = tuple(each.claim.name for each in chosen), list[Launch]()
    for at, each in enumerate(chosen):
        takes = TakesPods(len(each.pods), (Name(each.node.name),))
        launch = floors.cheapest(each.pool, f"launch-{first + at}", takes, replaces=claims)
        if launch is None:
            return ()
        found.append(launch)
    return tuple(found)


def waiting(world: World, candidates: Sequence[Candidate]) -> tuple[NoneInItsPlace, ...]:
    """The static pools of which nodes have drifted and none can be replaced, by name.

    Not while one of their nodes goes: what it holds of a limit is free after it. Cost: for such a pool what is for sale
    in it, and a look at all nodes.
    """
    allowance = Allowance(world.snapshot, DRIFTED, are_replaced=True)
    pools = {each.pool.name: each.pool for each in candidates if may_go(each, allowance)}
    if not pools:
        return ()
    held = [node.claim for node in world.snapshot.nodes if node.claim is not None]
    staying_names = {claim.name for claim in staying(held)}
    changing = {claim.node_pool for claim in held if claim.name not in staying_names}
    found = (in_its_place(world, pool) for name, pool in sorted(pools.items()) if name not in changing)
    return tuple(each for each in found if each is not None)


def in_its_place(world: World, pool: NodePool) -> NoneInItsPlace | None:
    """What keeps a node of the static pool, or of one at its floor, from having another in its place, which comes
    first; None where nothing does."""
    floors = Floors(world, Ledger.of(world))
    launch = floors.cheapest(pool, "launch-0", OfStaticPool(Name(pool.name), pool.replicas or 0))
    nodes = 0 if pool.replicas is not None else pool.bounds.min_nodes
    return None if launch is not None else NoneInItsPlace(Name(pool.name), floors.obstacle(pool), nodes)


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node is one of a static pool and has drifted, and its pool lets one more such node go."""
    return candidate.pool.replicas is not None and bool(candidate.drift) and allowance.is_open(candidate.pool.name)


def _order(candidate: Candidate) -> tuple[bool, float, str]:
    condition = candidate.claim.condition(CONDITION)
    return (bool(candidate.pods), condition.since_s if condition is not None else 0.0, candidate.node.name)
