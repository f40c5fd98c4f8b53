"""Whether a node is still what its NodePool says: the part of drift that no cloud is asked for."""

from collections.abc import Mapping

from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import EXPIRED, NodePool
from kerf.model.poolhash import has_drifted

TEMPLATE, REQUIREMENTS = "NodePoolDrifted", "RequirementsDrifted"


def by_pool(claim: NodeClaim, labels: Mapping[str, str], pool: NodePool) -> str | None:
    """The reason of the condition Drifted by the pool's template and requirements, in Karpenter's order; None where
    they ask for what the node is. `labels` are those of the node; one that it does not have says nothing."""
    if has_drifted(claim, pool):
        return TEMPLATE
    have = {**claim.labels, **labels}
    outside = any(not each.has(have[key]) for key, each in pool.requirements.items() if key in have)
    return REQUIREMENTS if outside else None


def by_age(claim: NodeClaim, pool: NodePool, now_s: float) -> str | None:
    """The same by age, where the pool lets an old node go only once others are up in its place."""
    is_old = claim.expires_s is not None and now_s >= claim.expires_s
    return EXPIRED if pool.replaces_expired and is_old else None
