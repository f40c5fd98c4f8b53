"""Static pools have no more nodes than `spec.replicas` states: surplus ones go, whatever budgets say, as in Karpenter.

First those that have drifted, which would be replaced anyway. Among equals claims without a node come first, then empty
nodes, then those whose pods are disturbed least, then the older ones; one with a pod that may not be disrupted is the
last of all. What is missing is bought with the next plan (`engine.buy.floors`).
"""

from collections.abc import Iterable

from kerf.controllers.actuator import Actuator
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.buy.floors import stays
from kerf.engine.disruption.disturbance import of_node
from kerf.engine.leaving import moves
from kerf.model.eviction import is_protected
from kerf.model.nodeclaim import DISRUPTION_REASON, DRIFTED, LAUNCHED, TRUE, Condition, NodeClaim
from kerf.model.nodepool import SCALED_DOWN, NodePool
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.state import ClusterState


class StaticPools:
    """One static pool at a time."""

    name = "static-nodepools"

    def __init__(self, state: ClusterState, ports: Ports, actuator: Actuator) -> None:
        self._state, self._ports, self._actuator = state, ports, actuator

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Static pools that change, and those whose claims do."""
        if isinstance(event, Synced):
            return tuple(pool.name for pool in self._state.pools() if pool.replicas is not None)
        value = event.value
        if isinstance(value, NodePool) and not isinstance(event, Deleted):
            return (value.name,) if value.replicas is not None else ()
        pool = self._state.pool(value.node_pool) if isinstance(value, NodeClaim) else None
        return (pool.name,) if pool is not None and pool.replicas is not None else ()

    async def reconcile(self, key: str) -> Result:
        """Delete what is too much."""
        pool = self._state.pool(key)
        if pool is None or pool.replicas is None or pool.deleted_s is not None:
            return DONE
        held = [claim for claim in self._state.claims_of(key) if stays(claim)]
        # One that was bought in the place of another counts in its stead.
        coming = {name for claim in self._state.claims_of(key) for name in claim.replaced_by}
        held.sort(key=lambda claim: (claim.name in coming, *self._order(claim)))
        why = f"NodePool {key} states {pool.replicas} replicas"
        for claim in held[: max(0, len(held) - pool.replicas)]:
            reason = Condition(DISRUPTION_REASON, TRUE, SCALED_DOWN, why, self._ports.clock.now_s())
            await self._actuator.end(await self._ports.writer.update_node_claim_status(claim.with_condition(reason)))
        return DONE

    def _order(self, claim: NodeClaim) -> tuple[bool, bool, bool, bool, int, float, str]:
        pods = [pod for pod in self._state.pods_on(claim.node_name) if moves(pod)] if claim.node_name else []
        is_kept = any(is_protected(pod, self._ports.clock.now_s()) for pod in pods)
        has_node, stays_on = claim.is_true(LAUNCHED), not claim.is_true(DRIFTED)
        return (is_kept, stays_on, has_node, bool(pods), of_node(pods), claim.created_s, claim.name)
