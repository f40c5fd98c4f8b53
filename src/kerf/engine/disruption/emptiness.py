"""Empty nodes go, as many as the budgets allow; nothing has to move."""

from collections.abc import Iterator, Sequence

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import EmptyFor
from kerf.engine.disruption.command import Command, deleting
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.nodeclaim import INITIALIZED
from kerf.model.nodepool import EMPTY
from kerf.model.plan import Deletion


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """One command for every empty node that may go, the most expensive first; none when there is none."""
    allowance = Allowance(world.snapshot, EMPTY)
    empty = [candidate for candidate in candidates if may_go(candidate, allowance)]
    empty.sort(key=lambda c: (-present_price(c.cluster_node, world.supply), c.node.name))
    deletions = tuple(_deletion(c, world) for c in empty if allowance.take(c.pool.name))
    if deletions:
        yield deleting(world, deletions)


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node is empty, and its pool lets one more go."""
    pool = candidate.pool
    if candidate.pods or not candidate.is_quiet:
        return False
    return pool.disruption.consolidate_after_s is not None and allowance.is_open(pool.name)


def _deletion(candidate: Candidate, world: World) -> Deletion:
    saved = present_price(candidate.cluster_node, world.supply)
    since = candidate.claim.condition(INITIALIZED)
    start = max(candidate.claim.last_pod_event_s or 0, since.since_s if since is not None else 0)
    cause = EmptyFor(max(0, int(world.snapshot.taken_at_s - start)))
    return Deletion(candidate.node.name, candidate.claim.name, candidate.pool.name, saved, EMPTY, cause)
