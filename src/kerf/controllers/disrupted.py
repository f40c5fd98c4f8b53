"""Counts of NodeClaims that Kerf deletes, in its own words and in Karpenter's.

Karpenter's dashboards and alerts choose by these words: `spot_interrupted` where the event says SpotInterrupted.
"""

import re

from kerf.model.constraints import CAPACITY_TYPE
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import EMPTY, UNDERUTILIZED, NodePool
from kerf.telemetry import CLAIMS_DISRUPTED, KARPENTER_DISRUPTED

_CONSOLIDATION = (EMPTY, UNDERUTILIZED)


def snake_case(word: str) -> str:
    """`WhenEmptyOrUnderutilized` as Karpenter's metrics write it: `when_empty_or_underutilized`."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", word).lower()


def count_disrupted(claim: NodeClaim, reason: str, counted_as: str, pool: NodePool | None = None) -> None:
    """Count a claim that was deleted for a reason, and `counted_as` Karpenter's word for it.

    `pool` is the claim's, None where it exists no more: its policy is counted with a consolidation alone.
    """
    policy = snake_case(pool.disruption.policy) if pool is not None and reason in _CONSOLIDATION else ""
    CLAIMS_DISRUPTED.labels(claim.node_pool, reason).inc()
    capacity_type = claim.labels.get(CAPACITY_TYPE, "")
    KARPENTER_DISRUPTED.labels(counted_as, claim.node_pool, capacity_type, policy, termination_mode(claim)).inc()


def termination_mode(claim: NodeClaim) -> str:
    """How long pods may hold the end: `graceful` for ever, `eventual` for a time, `forceful` not at all."""
    grace_s = claim.termination_grace_period_s
    if grace_s is None:
        return "graceful"
    return "eventual" if grace_s > 0 else "forceful"
