"""How many nodes of each pool may be disrupted now: disruption budgets, and the floor that a pool keeps."""

import datetime
from collections import Counter

from cronsim import CronSim

from kerf.model.nodepool import UNHEALTHY, Budget, NodePool
from kerf.model.snapshot import ClusterSnapshot

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_CENSUS = "census"


class Census:
    """The nodes of each pool, counted once for a snapshot; those on their way count for nothing yet.

    `up` are initialised and stay; `going` are on the way out, or initialised and not ready.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._now_s = snapshot.taken_at_s
        self._up, self._going, self._initialised = Counter[str](), Counter[str](), Counter[str]()
        self._leaving = Counter[str]()
        alike = Counter(
            (held.claim.node_pool, held.is_initialized, held.is_deleting, held.node and held.node.is_ready)
            for held in snapshot.nodes
            if held.claim is not None
        )
        for (pool, is_initialized, is_deleting, is_ready), nodes in alike.items():
            stays = nodes if is_initialized and not is_deleting else 0
            self._initialised[pool] += stays
            if is_ready is not None:
                self._up[pool] += stays
                self._leaving[pool] += nodes if is_deleting else 0
                self._going[pool] += nodes if is_deleting or (is_initialized and not is_ready) else 0

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "Census":
        """That of the snapshot, counted when it is first asked for."""
        if _CENSUS not in snapshot.findings:
            snapshot.findings[_CENSUS] = cls(snapshot)
        found: Census = snapshot.findings[_CENSUS]
        return found

    def allowed(self, pool: NodePool, reason: str) -> int | None:
        """How many more nodes of the pool may be disrupted now for a reason; None means any number.

        The least of the active budgets, percentages of initialised nodes rounded up, less nodes that go or are not
        ready; and no more than the pool's floor (`kerf.dev/min-nodes`) leaves.
        """
        counts = self._counts(pool, reason)
        # A broken node is not ready, as a rule, and must not be what keeps it from its own repair.
        going = self._leaving[pool.name] if reason == UNHEALTHY else self._going[pool.name]
        by_budgets = [max(0, min(counts) - going)] if counts else []
        spare = self.spare(pool)
        return min([*by_budgets, *([] if spare is None else [spare])], default=None)

    def lets_go(self, pool: NodePool, reason: str) -> bool:
        """Whether the active budgets let any node of the pool go for a reason, now or once others have gone."""
        return min(self._counts(pool, reason), default=1) > 0

    def _counts(self, pool: NodePool, reason: str) -> list[int]:
        return [
            _of(budget, self._up[pool.name])
            for budget in pool.disruption.budgets
            if (not budget.reasons or reason in budget.reasons) and _is_active(budget, self._now_s)
        ]

    def spare(self, pool: NodePool) -> int | None:
        """How many nodes the pool has beyond its floor; None where it states none.

        A floor that cannot be read keeps every node.
        """
        if pool.bounds.invalid_floor:
            return 0
        if not pool.bounds.min_nodes:
            return None
        return max(0, self._initialised[pool.name] - pool.bounds.min_nodes)


def _of(budget: Budget, total: int) -> int:
    if budget.nodes.endswith("%"):
        return -(-total * int(budget.nodes[:-1]) // 100)
    return int(budget.nodes)


def _is_active(budget: Budget, now_s: float) -> bool:
    """Whether the budget's schedule has begun within its duration; always for one without a schedule. In UTC."""
    if budget.schedule is None or budget.duration_s is None:
        return True
    began = datetime.datetime.fromtimestamp(now_s - budget.duration_s, datetime.UTC)
    following: datetime.datetime = next(CronSim(_MACROS.get(budget.schedule, budget.schedule), began))
    return following.timestamp() <= now_s


class Allowance:
    """What the budgets still allow while a plan is made; each pool is asked once. Of one that `is_open_to_all` all."""

    def __init__(self, snapshot: ClusterSnapshot, reason: str, *, is_open_to_all: bool = False) -> None:
        census, pools = Census.of(snapshot), snapshot.node_pools
        self._left = {pool.name: None if is_open_to_all else census.allowed(pool, reason) for pool in pools}
        self._taken = Counter[str]()

    def is_open(self, pool: str) -> bool:
        """Whether one more node of the pool may go; never of a pool that does not exist."""
        left = self._left.get(pool, 0)
        return left is None or self._taken[pool] < left

    def take(self, pool: str) -> bool:
        """Count one node of the pool; False when no budget allows it."""
        if not self.is_open(pool):
            return False
        self._taken[pool] += 1
        return True
