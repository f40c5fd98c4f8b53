"""Nodes above a price cap of their pool are replaced by one cheaper node, where one holds all their pods.

The new node comes first: nothing is taken away before it is up, and then it is consolidation that moves the pods. What
remembers the intent is the new claim itself, so that a restart buys nothing twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.options import Options
from kerf.engine.decide import decide
from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import ReplacesTooDear
from kerf.engine.disruption.command import Command
from kerf.engine.leaving import unbound, with_leaving
from kerf.engine.supply.caps import excess
from kerf.engine.supply.offered import Supply
from kerf.engine.supply.pricing import cluster_price, present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodeclaim import INITIALIZED, REPLACES, NodeClaim
from kerf.model.nodepool import UNDERUTILIZED, WHEN_EMPTY
from kerf.model.plan import Cost, Launch
from kerf.model.promises import planned_type

_MOST_TRIED = 20
"""Nodes for which a plan is made in one pass; the dearest."""
_PATIENCE_S = 3600
"""For so long an empty node waits for the pods of the one that it replaces; their budgets may hold them back."""


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """Commands that each launch one node in place of one above its cap, the dearest first. Cost: twenty decisions."""
    snapshot, currency = world.snapshot, world.market.currency
    replaced = {
        node.claim.annotations.get(REPLACES)
        for node in snapshot.nodes
        if node.claim is not None and not node.is_deleting and _is_awaited(node.claim, snapshot.taken_at_s)
    }
    allowance = Allowance(snapshot, UNDERUTILIZED)
    # A price that went to and fro must stay above the cap for a while before a node is bought for it.
    paused = {(each.node_pool, each.instance_type) for each in world.market.price_pauses}
    dear = [
        (candidate, over)
        for candidate in candidates
        if may_go(candidate, allowance)
        and candidate.claim.name not in replaced
        and (candidate.pool.name, planned_type(candidate.claim)) not in paused
        and (over := excess(candidate.cluster_node, candidate.pool, world.supply)) is not None
    ]
    dear.sort(key=lambda each: (-present_price(each[0].cluster_node, world.supply), each[0].node.name))
    for candidate, over in dear[:_MOST_TRIED]:
        launch = _replacement(candidate, world)
        if launch is None:
            continue
        saved = present_price(candidate.cluster_node, world.supply) - launch.price_micro
        owner = Name(candidate.node.name), Name(candidate.pool.name)
        cause = ReplacesTooDear(*owner, over, saved, Name(currency))
        before = cluster_price(snapshot.nodes, world.supply)
        cost = Cost(currency, before, before + launch.price_micro)
        bought = replace(launch, name="launch-0", pods=(), allocated=0, replaces=candidate.claim.name, cause=cause)
        yield Command(cost, launches=(bought,))


def _is_awaited(claim: NodeClaim, now_s: float) -> bool:
    """Whether pods may still move to a node that was bought for them; others may have taken its room meanwhile."""
    ready = claim.condition(INITIALIZED)
    return ready is None or not claim.is_true(INITIALIZED) or now_s <= ready.since_s + _PATIENCE_S


def _replacement(candidate: Candidate, world: World) -> Launch | None:
    """The one cheaper node that holds the pods which no other node does; None where they need none, or more."""
    snapshot = with_leaving(world.snapshot)
    others = tuple(node for node in snapshot.nodes if node.name != candidate.node.name)
    alone = replace(
        snapshot, nodes=others, pending=tuple(map(unbound, candidate.pods)), windows=(), windowed=(), cron_jobs=()
    )
    made = decide(World(alone, world.market), Options(with_bound=False))
    bought = [launch for launch in made.launches if launch.pods]
    if len(bought) != 1 or made.refusals or made.relabels or made.evictions:
        return None
    price_micro = present_price(candidate.cluster_node, world.supply)
    is_cheaper = bought[0].price_micro < price_micro
    return bought[0] if is_cheaper and is_allowed(bought[0], Ledger.of(world), world.supply) else None


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node has pods, and its pool lets one more such node go; not whether it is above a cap."""
    pool = candidate.pool
    return bool(candidate.pods) and pool.disruption.policy != WHEN_EMPTY and allowance.is_open(pool.name)


def is_allowed(launch: Launch, ledger: Ledger, supply: Supply) -> bool:
    """Whether the pool's limits have room for the planned type: until the old node has gone, both count."""
    return any(
        each.kind.name == launch.offering.instance_type and ledger.room_for(each) != 0
        for each in supply.by_pool.get(launch.node_pool, ())
    )


def kept_for(candidate: Candidate, world: World) -> str:
    """The node in whose place an empty one was bought and whose pods are still to come; empty for any other."""
    name, ready = candidate.claim.annotations.get(REPLACES), candidate.claim.condition(INITIALIZED)
    if candidate.pods or not name or ready is None or world.snapshot.taken_at_s > ready.since_s + _PATIENCE_S:
        return ""
    old = world.snapshot.node_of_claim(name)
    if old is None or old.claim is None or old.is_deleting:
        return ""
    return old.name if excess(old, world.snapshot.pool(old.claim.node_pool), world.supply) else ""
