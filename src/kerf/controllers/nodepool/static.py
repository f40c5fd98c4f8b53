"""Static pools have no more nodes than `spec.replicas` states: surplus ones go, whatever budgets say, as in Karpenter.

Which of them go first `engine.disruption.ending` says. What is missing is bought with the next plan
(`engine.buy.floors`).
"""

from collections.abc import Iterable

from kerf.controllers.actuator import Actuator
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.disruption.causes import Surplus
from kerf.engine.disruption.ending import surplus
from kerf.engine.explain.disruption import going_text
from kerf.model.causes import Name
from kerf.model.nodeclaim import DISRUPTION_REASON, TRUE, Condition, NodeClaim
from kerf.model.nodepool import SCALED_DOWN, NodePool
from kerf.model.pods import Pod
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
        now_s = self._ports.clock.now_s()
        for claim in surplus(pool, self._state.claims_of(key), self._pods, now_s):
            why = going_text(Surplus(Name(key), pool.replicas))
            reason = Condition(DISRUPTION_REASON, TRUE, SCALED_DOWN, why, self._ports.clock.now_s())
            await self._actuator.end(await self._ports.writer.update_node_claim_status(claim.with_condition(reason)))
        return DONE

    def _pods(self, claim: NodeClaim) -> Iterable[Pod]:
        return self._state.pods_on(claim.node_name) if claim.node_name else ()
