"""Only the pools that are ours: a reader that hides the others and their claims from the controllers.

Those are ours that have the labels that were asked for, and whose NodeClass is of the kind of our provider:
beside us may run an autoscaler of another cloud, and our cloud lists none of its instances.

Two owners of one pool is an outage, so what is hidden is as good as absent: a node of a foreign pool is then a node
that Kerf did not make, which it plans with and never touches. A label that comes or goes moves a pool, with all its
claims, in or out at once. The claims of a pool that was deleted outlive it by a drain, and no other controller would
end them: those that Kerf made stay ours.
"""

from collections.abc import AsyncIterator, Iterable, Iterator

from kerf.model.constraints import Requirements
from kerf.model.nodeclaim import NodeClaim, NodeClassRef
from kerf.model.nodepool import NodePool
from kerf.model.promises import is_made_by_kerf
from kerf.model.snapshot import Deleted, Event, Relisted, Report, Synced, Upserted
from kerf.ports import KubeReader
from kerf.telemetry import logger


class ManagedReader:
    """`kerf.ports.KubeReader` with the NodePools that have the labels, and the claims of those pools.

    `kind` is the API group and the kind of the provider's NodeClasses; None where it has none of its own.
    """

    def __init__(self, reader: KubeReader, selector: Requirements, kind: tuple[str, str] | None = None) -> None:
        self._reader, self._selector, self._kind = reader, selector, kind
        # The pools that exist, and whether each is ours; all claims, and the names of those that were reported.
        self._pools: dict[str, bool] = {}
        self._claims: dict[str, NodeClaim] = {}
        self._shown: set[str] = set()
        self._is_synced = False

    def is_foreign(self, identity: str) -> bool:
        """Whether a claim of that uid or provider id exists and is hidden: its instance has an owner, not us."""
        hidden = (claim for claim in self._claims.values() if claim.name not in self._shown)
        return any(identity in (claim.uid, claim.provider_id) for claim in hidden)

    async def events(self) -> AsyncIterator[Report]:
        """As the reader's own, less what is not ours; what ceases to be ours is reported as Deleted."""
        async for event in self._reader.events():
            for shown in self._ours(event):
                yield shown

    def _ours(self, event: Report) -> Iterator[Report]:
        if isinstance(event, Synced):
            # Before, a pool that was not there might only not have been reported yet.
            self._is_synced = True
            yield from self._moved(claim for claim in self._claims.values() if claim.node_pool not in self._pools)
            yield event
        elif isinstance(event, Relisted):
            yield event
        elif isinstance(event.value, NodeClaim):
            yield from self._claim(event, event.value)
        elif isinstance(event.value, NodePool):
            yield from self._pool(event, event.value)
        else:
            yield event

    def _claim(self, event: Event, claim: NodeClaim) -> Iterator[Event]:
        was_shown = claim.name in self._shown
        if isinstance(event, Deleted):
            self._claims.pop(claim.name, None)
            self._shown.discard(claim.name)
            yield from (event,) if was_shown else ()
            return
        self._claims[claim.name] = claim
        if was_shown and self._is_ours(claim):
            yield event
        else:
            yield from self._moved((claim,))

    def _pool(self, event: Event, pool: NodePool) -> Iterator[Event]:
        is_of_kind, is_known = self._is_of_kind(pool.node_class), pool.name in self._pools
        was_ours = self._pools.pop(pool.name, False)
        is_ours = (
            not isinstance(event, Deleted) and is_of_kind and self._selector.unsatisfied_by(pool.own_labels) is None
        )
        if not is_of_kind and not is_known:
            said = "a NodePool is another provider's and left alone"
            logger("managed").info(said, pool=pool.name, group=pool.node_class.group, kind=pool.node_class.kind)
        if not isinstance(event, Deleted):
            self._pools[pool.name] = is_ours
        if is_ours:
            yield event
        yield from self._moved([claim for claim in self._claims.values() if claim.node_pool == pool.name])
        if was_ours and not is_ours:
            yield Deleted(pool)

    def _moved(self, claims: Iterable[NodeClaim]) -> Iterator[Event]:
        """What is to be reported of claims that have become ours, or have ceased to be."""
        for claim in sorted(claims, key=lambda claim: claim.name):
            is_ours = self._is_ours(claim)
            if is_ours and claim.name not in self._shown:
                self._shown.add(claim.name)
                yield Upserted(claim)
            elif not is_ours and claim.name in self._shown:
                self._shown.discard(claim.name)
                yield Deleted(claim)

    def _is_of_kind(self, reference: NodeClassRef) -> bool:
        return self._kind is None or (reference.group, reference.kind) == self._kind

    def _is_ours(self, claim: NodeClaim) -> bool:
        if not self._is_of_kind(claim.node_class) or not self._selector:
            # Without labels to know ours by, every claim is ours, also one whose pool is gone.
            return self._is_of_kind(claim.node_class)
        is_pool_ours = self._pools.get(claim.node_pool)
        if is_pool_ours is None:
            return self._is_synced and is_made_by_kerf(claim.annotations)
        return is_pool_ours
