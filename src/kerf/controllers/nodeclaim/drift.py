"""Says on a claim that its node is not what its pool or its NodeClass says now: the condition Drifted, as Karpenter's.

The reasons are asked in Karpenter's order: the pool's template by its digest, its requirements by the node's labels,
then whether the type is sold still, and last the cloud. Which node goes when is decided elsewhere
(`engine.disruption.drift`).
"""

from collections.abc import Iterable
from dataclasses import replace

from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.disruption.outdated import by_age, by_pool
from kerf.model import events
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.nodeclaim import DRIFTED, LAUNCHED, TRUE, Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import DRIFTED_TAINT
from kerf.model.poolhash import is_stamped, stamp
from kerf.model.snapshot import Deleted, Event, NodeClass, Synced, Watched
from kerf.state import ClusterState

_AGAIN_S = 300.0
_SOLD_S = 1800.0
"""What a pool's cloud sells is asked again after so long."""
_YOUNG_S = 3600.0
"""A claim that is younger is not asked whether its type is sold still: it was just bought, and lists lag."""
_POOL = "nodepool/"
TYPE = "InstanceTypeNotFound"


class Drift:
    """One claim at a time; and pools, whose digest is written on them."""

    name = "drift"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports
        self._known: set[str] = set()
        self._sold: dict[str, tuple[float, frozenset[str]]] = {}

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """All claims at first, one that is launched, and those of a pool or NodeClass that changes."""
        if isinstance(event, Synced):
            pools = tuple(_POOL + pool.name for pool in self._state.pools())
            self._known = {claim.uid for claim in self._state.claims() if claim.is_true(LAUNCHED)}
            return (*pools, *(claim.name for claim in self._state.claims()))
        value = event.value
        if isinstance(value, NodeClass):
            reference = value.reference
            return tuple(claim.name for claim in self._state.claims() if claim.node_class == reference)
        if isinstance(value, NodePool):
            if isinstance(event, Deleted) or (isinstance(previous, NodePool) and _is_as_before(previous, value)):
                return ()
            self._sold.pop(value.name, None)
            return (_POOL + value.name, *(claim.name for claim in self._state.claims_of(value.name)))
        if not isinstance(value, NodeClaim):
            return ()
        if isinstance(event, Deleted):
            self._known.discard(value.uid)
            return ()
        # What was there before an event says nothing: the state knows our own writes before the watch has them.
        if value.uid in self._known or not value.is_true(LAUNCHED):
            return ()
        self._known.add(value.uid)
        return (value.name,)

    async def reconcile(self, key: str) -> Result:
        """Look, ask the cloud, and write what has changed."""
        if key.startswith(_POOL):
            return await self._stamp(key.removeprefix(_POOL))
        claim = self._state.claim(key)
        if claim is None or claim.is_deleting or not claim.is_true(LAUNCHED):
            return DONE
        pool = self._state.pool(claim.node_pool)
        if pool is None:
            return Result(_AGAIN_S)
        reason = await self._reason(claim, pool)
        # The call took its time: write on the claim as it is now.
        claim = self._state.claim(key)
        if claim is None or claim.is_deleting:
            return DONE
        if not is_stamped(claim.annotations):
            noted = replace(claim, annotations={**claim.annotations, **stamp(pool)})
            claim = await self._ports.writer.update_node_claim(noted)
            self._state.note(claim)
        held = claim.condition(DRIFTED)
        if reason is None and held is not None:
            self._state.note(await self._ports.writer.update_node_claim_status(claim.without_condition(DRIFTED)))
        elif reason is not None and (held is None or held.reason != reason):
            condition = Condition(DRIFTED, TRUE, reason, "", self._ports.clock.now_s())
            self._state.note(await self._ports.writer.update_node_claim_status(claim.with_condition(condition)))
            self._ports.recorder.record(events.drifted(claim.name, reason))
        await self._mark(claim, is_drifted=reason is not None)
        return Result(_AGAIN_S)

    async def _mark(self, claim: NodeClaim, *, is_drifted: bool) -> None:
        """Have kube-scheduler prefer other nodes to one that has drifted: what comes there would move again."""
        node = self._state.node_of(claim)
        if node is None or node.deleted_s is not None or (DRIFTED_TAINT in node.taints) == is_drifted:
            return
        others = tuple(taint for taint in node.taints if taint != DRIFTED_TAINT)
        changed = replace(node, taints=(*others, DRIFTED_TAINT) if is_drifted else others)
        self._state.note(await self._ports.writer.update_node(changed))

    async def _reason(self, claim: NodeClaim, pool: NodePool) -> str | None:
        node = self._state.node_of(claim)
        reason = by_pool(claim, node.labels if node is not None else {}, pool)
        if reason is not None:
            return reason
        if not await self._is_sold(claim, pool):
            return TYPE
        reason = by_age(claim, pool, self._ports.clock.now_s())
        if reason is not None:
            return reason
        return await self._ports.cloud.drift(claim) if self._ports.cloud.has_drift else None

    async def _is_sold(self, claim: NodeClaim, pool: NodePool) -> bool:
        """Whether the cloud has the claim's type still; True where that cannot be said."""
        now_s, name = self._ports.clock.now_s(), claim.labels.get(INSTANCE_TYPE, "")
        if not name or now_s < claim.created_s + _YOUNG_S:
            return True
        asked_s, sold = self._sold.get(pool.name, (0.0, frozenset[str]()))
        if now_s >= asked_s + _SOLD_S:
            sold = frozenset(kind.name for kind in await self._ports.cloud.instance_types(pool))
            self._sold[pool.name] = now_s, sold
        # A cloud that lists nothing has not been asked rightly, and must not make every node look drifted.
        return not sold or name in sold

    async def _stamp(self, name: str) -> Result:
        pool = self._state.pool(name)
        if pool is not None and pool.deleted_s is None:
            wanted = stamp(pool)
            if any(pool.own_annotations.get(key) != value for key, value in wanted.items()):
                await self._ports.writer.annotate_node_pool(name, wanted)
        return DONE


def _is_as_before(one: NodePool, other: NodePool) -> bool:
    return (one.generation, one.requirements) == (other.generation, other.requirements) and stamp(one) == stamp(other)
