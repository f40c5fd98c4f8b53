"""Says of each claim whether its node has the shape that the cloud promised: at least nine tenths of each resource.

Karpenter compares every ten minutes; here a node is compared when its claim initialises and when its capacity changes,
so a shape that shrinks is seen at once. Nothing is decided by it. The cards of a claim that was bought for some are
left to its device register, which knows each of them.
"""

from collections.abc import Iterable

from kerf.controllers.nodeclaim.stages import consistent_condition
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.lifecycle import shape_gaps
from kerf.model import events
from kerf.model.nodeclaim import CONSISTENT_STATE_FOUND, FALSE, INITIALIZED, NodeClaim
from kerf.model.nodes import Node
from kerf.model.snapshot import Event, Synced, Watched
from kerf.state import ClusterState


class Consistency:
    """Keeps the condition ConsistentStateFound of claims that are initialised."""

    name = "consistency"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """The claim of a node whose capacity changes, and one that has no condition yet; all at the start."""
        if isinstance(event, Synced):
            return tuple(claim.name for claim in self._state.claims())
        value = event.value
        if isinstance(value, NodeClaim):
            is_new = value.is_true(INITIALIZED) and value.condition(CONSISTENT_STATE_FOUND) is None
            return (value.name,) if is_new else ()
        if not isinstance(value, Node) or (isinstance(previous, Node) and previous.capacity == value.capacity):
            return ()
        claim = self._state.claim_of(value)
        return (claim.name,) if claim is not None else ()

    async def reconcile(self, key: str) -> Result:
        """Compare, and write the condition where it says something else."""
        claim = self._state.claim(key)
        node = self._state.node_of(claim) if claim is not None else None
        if claim is None or node is None or claim.is_deleting or not claim.is_true(INITIALIZED):
            return DONE
        condition = consistent_condition(shape_gaps(claim, node), self._ports.clock.now_s())
        held = claim.condition(CONSISTENT_STATE_FOUND)
        if held is not None and (held.status, held.message) == (condition.status, condition.message):
            return DONE
        self._state.note(await self._ports.writer.update_node_claim_status(claim.with_condition(condition)))
        if condition.status == FALSE:
            self._ports.recorder.record(events.failed_consistency_check(claim.name, condition.message))
        return DONE
