"""How long a node must still see no pod come or go before it may be consolidated."""

from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.nodepool import NodePool


def remaining_s(claim: NodeClaim, pool: NodePool, now_s: float) -> float | None:
    """Seconds until the node may be consolidated; None for never, as in a static pool; 0 or less when it may."""
    after = None if pool.replicas is not None else pool.disruption.consolidate_after_s
    initialized = claim.condition(INITIALIZED)
    if after is None or initialized is None:
        return None
    return max(initialized.since_s, claim.last_pod_event_s or 0) + after - now_s
