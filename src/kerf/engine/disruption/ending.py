"""Nodes that go at once, whatever budgets say: those as old as `expireAfter`, and what static pools have too many.

No pod keeps the order to go back. What of its pods may not be evicted holds its drain, until they end or
`terminationGracePeriod` is over.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kerf.engine.buy.floors import staying
from kerf.engine.disruption.causes import Ending, HasExpired, Surplus
from kerf.engine.disruption.disturbance import of_node
from kerf.engine.leaving import is_held, moves
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.eviction import Budgets, is_protected
from kerf.model.nodeclaim import DRIFTED, INITIALIZED, LAUNCHED, NodeClaim
from kerf.model.nodepool import EXPIRED, SCALED_DOWN, NodePool
from kerf.model.plan import Deletion
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot


def surplus(
    pool: NodePool, claims: Sequence[NodeClaim], pods_of: Callable[[NodeClaim], Iterable[Pod]], now_s: float
) -> tuple[NodeClaim, ...]:
    """Those of the claims of a static pool that are too many, in the order in which they go; none of another pool.

    First those that have drifted, which would be replaced anyway. Among equals claims without a node come first, then
    empty nodes, then those whose pods are disturbed least, then the older ones; one with a pod that may not be
    disrupted is the last of all. One that was bought in the place of another counts in its stead.
    """
    if pool.replicas is None or pool.deleted_s is not None:
        return ()
    held = staying(claims)
    coming = {name for claim in claims for name in claim.replaced_by}

    def order(claim: NodeClaim) -> tuple[bool, bool, bool, bool, bool, int, float, str]:
        pods = [pod for pod in pods_of(claim) if moves(pod)]
        is_kept = any(is_protected(pod, now_s) for pod in pods)
        has_node, stays_on = claim.is_true(LAUNCHED), not claim.is_true(DRIFTED)
        disturbs = bool(pods), of_node(pods)
        return (claim.name in coming, is_kept, stays_on, has_node, *disturbs, claim.created_s, claim.name)

    return tuple(sorted(held, key=order)[: max(0, len(held) - pool.replicas)])


def endings(snapshot: ClusterSnapshot) -> Mapping[str, Ending]:
    """By node that goes at once why it does; not those that go already. Cost: linear in nodes, and in pods of nodes of
    static pools that have too many."""
    by_claim = {held.claim.name: held for held in snapshot.nodes if held.claim is not None}
    by_pool: dict[str, list[NodeClaim]] = {}
    found: dict[str, Ending] = {}
    for held in snapshot.nodes:
        if held.claim is None:
            continue
        if _has_expired(held, snapshot):
            found[held.name] = HasExpired(held.claim.expire_after_s or 0)
        else:
            by_pool.setdefault(held.claim.node_pool, []).append(held.claim)
    for pool in snapshot.node_pools:
        many = surplus(pool, by_pool.get(pool.name, ()), lambda claim: by_claim[claim.name].pods, snapshot.taken_at_s)
        for claim in many:
            found[by_claim[claim.name].name] = Surplus(Name(pool.name), pool.replicas or 0)
    return found


def _has_expired(held: ClusterNode, snapshot: ClusterSnapshot) -> bool:
    claim = held.claim
    if claim is None or held.is_deleting or claim.expires_s is None or not claim.is_true(INITIALIZED):
        return False
    pool = snapshot.pool(claim.node_pool)
    return snapshot.taken_at_s >= claim.expires_s and (pool is None or not pool.replaces_expired)


def ended(world: World) -> tuple[Deletion, ...]:
    """The deletions of those of them whose drain can come to an end, by name; where their pods go is decided later."""
    snapshot = world.snapshot
    found = endings(snapshot)
    if not found:
        return ()
    budgets, deletions = Budgets(snapshot.disruption_budgets), list[Deletion]()
    for held in snapshot.nodes:
        cause, claim = found.get(held.name), held.claim
        if cause is None or claim is None:
            continue
        is_forced = claim.termination_grace_period_s is not None
        if not is_forced and any(is_held(pod, budgets, snapshot.taken_at_s) for pod in held.pods):
            continue
        reason = EXPIRED if isinstance(cause, HasExpired) else SCALED_DOWN
        price_micro = present_price(held, world.supply)
        deletions.append(Deletion(held.name, claim.name, claim.node_pool, price_micro, reason, cause))
    return tuple(deletions)
