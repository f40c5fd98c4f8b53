"""What a provider wants done beside its calls: its loops, turn after turn, and what Kerf does with their news.

An interruption gives two minutes at most, so its claim goes at once: its pods are planned for while the node drains.
What a turn says is acted on before the next one begins, because a provider deletes its messages then.
"""

from collections.abc import Iterable

from kerf.cloudprovider import Interruption, Loop
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import Ports, Result
from kerf.model import events
from kerf.model.nodeclaim import DISRUPTION_REASON, TRUE, Condition, NodeClaim
from kerf.model.snapshot import Event, Synced, Watched
from kerf.ports import NotFound
from kerf.state import ClusterState


class CloudLoops:
    """Every loop of the provider; in a dry run those that only read, and their interruptions end nothing."""

    name = "cloud-loops"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, *, is_dry_run: bool = False) -> None:
        self._state, self._ports, self._book, self._is_dry_run = state, ports, book, is_dry_run
        self._loops: dict[str, Loop] = {
            loop.name: loop for loop in ports.cloud.loops if loop.only_reads or not is_dry_run
        }

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Begins with the first full state; goes on by its own requeue."""
        return tuple(self._loops) if isinstance(event, Synced) else ()

    async def reconcile(self, key: str) -> Result:
        """One turn of the loop of that name."""
        news = await self._loops[key].turn()
        self._book.mark_sold_out(news.sold_out)
        if not self._is_dry_run:
            by_instance = {claim.provider_id: claim for claim in self._state.claims() if claim.provider_id}
            for provider_id, interruption in sorted(news.interruptions.items()):
                claim = by_instance.get(provider_id)
                if claim is not None and not claim.is_deleting:
                    await interrupt(self._ports, claim, interruption)
        return Result(self._loops[key].period_s)


async def interrupt(ports: Ports, claim: NodeClaim, interruption: Interruption) -> None:
    """End a claim whose instance the cloud ends, and note why on it; mere advice is an event and no more.

    By that note provisioning knows that the pods of its node cannot wait for a batch.
    """
    if interruption.kind.is_advice:
        ports.recorder.record(events.advised(claim.name, interruption.kind, interruption.detail))
        return
    why = "the cloud interrupts its instance"
    ports.recorder.record(events.interrupted(claim.name, why))
    reason = Condition(DISRUPTION_REASON, TRUE, interruption.kind, why, ports.clock.now_s())
    try:
        claim = await ports.writer.update_node_claim_status(claim.with_condition(reason))
        await ports.writer.delete_node_claim(claim)
    except NotFound:
        return
