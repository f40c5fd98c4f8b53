"""Fields of a NodePool that are accepted, because Karpenter has them, and that nothing acts on yet.

The one list: plan, lint and condition say what is in it. A field leaves it in the change that serves it.
"""

from enum import StrEnum

from kerf.model.nodepool import BALANCED, NodePool


class Unserved(StrEnum):
    """Such a field, as it is written."""

    EXPIRE_AFTER = "expireAfter"
    BALANCED = "consolidationPolicy: Balanced"


def unserved(pool: NodePool) -> tuple[Unserved, ...]:
    """What the pool states of them with a value that should do something, in the order of the list.

    `Never` asks for nothing. A static pool is not consolidated, whatever its policy.
    """
    found = {
        Unserved.EXPIRE_AFTER: pool.states_expiry and pool.expire_after_s is not None,
        Unserved.BALANCED: pool.disruption.policy == BALANCED and pool.replicas is None,
    }
    return tuple(field for field, is_stated in found.items() if is_stated)
