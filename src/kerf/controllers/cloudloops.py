"""What a provider wants done beside its calls: its loops, turn after turn, and what Kerf does with their news.

An interruption gives two minutes at most, so its claim goes at once: its pods are planned for while the node drains.
What a turn says is acted on before the next one begins, because a provider deletes its messages then.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from kerf.cloudprovider import Interruption, Loop
from kerf.controllers.disrupted import count_disrupted
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import Ports, Result
from kerf.errors import ApiError, KerfError
from kerf.model import events
from kerf.model.nodeclaim import DISRUPTION_REASON, INSTANCE_ENDS, TRUE, Condition, NodeClaim
from kerf.model.snapshot import Event, Synced, Watched
from kerf.ports import NotFound
from kerf.state import ClusterState

_MOST_TRIES = 5
"""Half a minute of back-off. A claim that cannot be ended then must not keep off the notices of others."""


@dataclass
class _Left:
    """Interruptions of a turn that could not be acted on, and how often that was tried."""

    interruptions: dict[str, Interruption]
    tries: int = 0


class CloudLoops:
    """Every loop of the provider; in a dry run those that only read, and their interruptions end nothing."""

    name = "cloud-loops"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, *, is_dry_run: bool = False) -> None:
        self._state, self._ports, self._book, self._is_dry_run = state, ports, book, is_dry_run
        self._left: dict[str, _Left] = {}
        self._loops: dict[str, Loop] = {
            loop.name: loop for loop in ports.cloud.loops if loop.only_reads or not is_dry_run
        }

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Begins with the first full state; goes on by its own requeue."""
        return tuple(self._loops) if isinstance(event, Synced) else ()

    async def reconcile(self, key: str) -> Result:
        """One turn of the loop of that name, or what the last one has left to do."""
        left = self._left.pop(key, None)
        if left is None:
            news = await self._loops[key].turn()
            self._book.mark_sold_out(news.sold_out)
            left = _Left({} if self._is_dry_run else dict(news.interruptions))
        failed = await self._end(left.interruptions)
        if failed is not None:
            left.tries += 1
            if left.tries < _MOST_TRIES:
                # The next turn would say that Kerf has acted.
                self._left[key] = left
            raise failed
        return Result(self._loops[key].period_s)

    async def _end(self, interruptions: dict[str, Interruption]) -> KerfError | None:
        """End the claims of these instances, each by itself; what was done is taken out. The first failure, or None."""
        by_instance = {claim.provider_id: claim for claim in self._state.claims() if claim.provider_id}
        failed: KerfError | None = None
        for provider_id, interruption in sorted(interruptions.items()):
            claim = by_instance.get(provider_id)
            try:
                if claim is not None and is_news(claim, interruption):
                    await interrupt(self._ports, claim, interruption)
            except KerfError as error:
                failed = failed or error
            else:
                del interruptions[provider_id]
        return failed


def is_news(claim: NodeClaim, interruption: Interruption) -> bool:
    """Whether it changes what becomes of the claim: of one that goes already only a notice does, which comes before the
    end. Pods that hold its drain cannot stay as long as was said."""
    if not claim.is_deleting:
        return True
    reason = claim.condition(DISRUPTION_REASON)
    return interruption.kind.is_notice and (reason is None or reason.reason not in INSTANCE_ENDS)


async def interrupt(ports: Ports, claim: NodeClaim, interruption: Interruption) -> None:
    """End a claim whose instance the cloud ends, and note why on it; mere advice is an event and no more.

    By that note provisioning knows that the pods of its node cannot wait for a batch. A claim on which it cannot be
    written ends without: the end is what the deadline is for. One that goes already has the note alone.
    """
    if interruption.kind.is_advice:
        ports.recorder.record(events.advised(claim.name, interruption.kind, interruption.detail))
        return
    why = "the cloud interrupts its instance"
    ports.recorder.record(events.interrupted(claim.name, why))
    reason = Condition(DISRUPTION_REASON, TRUE, interruption.kind, why, ports.clock.now_s())
    try:
        if claim.is_deleting:
            await ports.writer.update_node_claim_status(claim.with_condition(reason))
            return
        with suppress(ApiError):
            claim = await ports.writer.update_node_claim_status(claim.with_condition(reason))
        await ports.writer.delete_node_claim(claim)
    except NotFound:
        return
    count_disrupted(claim, interruption.kind, interruption.counted_as)
