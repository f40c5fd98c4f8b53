"""Nodes above a price cap of their pool are replaced by cheaper ones, where such hold all their pods.

A node with some members of a group stays: the group would lose them for a while.
"""

from collections.abc import Iterator, Sequence

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate, may_save
from kerf.engine.disruption.causes import ReplacesTooDear
from kerf.engine.disruption.command import Command, replacing
from kerf.engine.disruption.substitution import Substitutes
from kerf.engine.disruption.wholegroups import WholeGroups
from kerf.engine.supply.caps import excess
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodepool import UNDERUTILIZED
from kerf.model.promises import planned_type

_MOST_TRIED = 20
"""Nodes for which a plan is made in one pass; the most expensive."""


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """Commands that each replace one node above its cap, the most expensive first. Cost: twenty decisions."""
    allowance, substitutes = Allowance(world.snapshot, UNDERUTILIZED, are_replaced=True), Substitutes(world)
    # A price that went to and fro must stay above the cap for a while before a node is bought for it.
    paused = {(each.node_pool, each.instance_type) for each in world.market.price_pauses}
    over_cap = [
        (candidate, over)
        for candidate in candidates
        if candidate.pool.bounds.has_cap
        and may_save(candidate, allowance)
        and (candidate.pool.name, planned_type(candidate.claim)) not in paused
        and (over := excess(candidate.cluster_node, candidate.pool, world.supply)) is not None
    ]
    groups = WholeGroups.of(world.snapshot) if over_cap else None
    over_cap = [each for each in over_cap if groups and groups.broken_by([each[0].node.name]) is None]
    over_cap.sort(key=lambda each: (-present_price(each[0].cluster_node, world.supply), each[0].node.name))
    for candidate, over in over_cap[:_MOST_TRIED]:
        found = substitutes.of([candidate], must_save=True)
        if found is None or not found.launches:
            continue
        owner = Name(candidate.node.name), Name(candidate.pool.name)
        cause = ReplacesTooDear(*owner, over, found.saved_micro, Name(world.market.currency))
        yield replacing(world, found.deletions(UNDERUTILIZED, cause), found.launches)
