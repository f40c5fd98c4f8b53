"""Says on a claim that its instance is not what its NodeClass says now. Nothing acts on it.

The cloud judges; here it is only asked again and again, and its answer is the condition Drifted, as Karpenter writes
it, so a person can see what a new image or a changed NodeClass would replace.
"""

from collections.abc import Iterable

from kerf.controllers.runtime import DONE, Ports, Result
from kerf.model import events
from kerf.model.nodeclaim import DRIFTED, LAUNCHED, TRUE, Condition, NodeClaim
from kerf.model.snapshot import Event, NodeClass, Synced, Upserted, Watched
from kerf.state import ClusterState

_AGAIN_S = 300.0


class Drift:
    """One claim at a time; none where the provider does not judge."""

    name = "drift"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """All claims at first, one that is launched, and those of a NodeClass that changes."""
        if not self._ports.cloud.has_drift:
            return ()
        if isinstance(event, Synced):
            return tuple(claim.name for claim in self._state.claims())
        value = event.value
        if isinstance(value, NodeClass):
            reference = value.reference
            return tuple(claim.name for claim in self._state.claims() if claim.node_class == reference)
        is_new = isinstance(value, NodeClaim) and isinstance(event, Upserted) and value.is_true(LAUNCHED)
        was_there = isinstance(previous, NodeClaim) and previous.is_true(LAUNCHED)
        return (value.name,) if isinstance(value, NodeClaim) and is_new and not was_there else ()

    async def reconcile(self, key: str) -> Result:
        """Ask the cloud, and write what has changed."""
        claim = self._state.claim(key)
        if claim is None or claim.is_deleting or not claim.is_true(LAUNCHED):
            return DONE
        reason = await self._ports.cloud.drift(claim)
        # The call took its time: write on the claim as it is now.
        claim = self._state.claim(key)
        if claim is None or claim.is_deleting:
            return DONE
        held = claim.condition(DRIFTED)
        if reason is None and held is not None:
            self._state.note(await self._ports.writer.update_node_claim_status(claim.without_condition(DRIFTED)))
        elif reason is not None and (held is None or held.reason != reason):
            condition = Condition(DRIFTED, TRUE, reason, "", self._ports.clock.now_s())
            self._state.note(await self._ports.writer.update_node_claim_status(claim.with_condition(condition)))
            self._ports.recorder.record(events.drifted(claim.name, reason))
        return Result(_AGAIN_S)
