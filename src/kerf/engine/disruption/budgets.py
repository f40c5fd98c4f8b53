"""How many nodes of each pool may be disrupted now: disruption budgets, and the floor that a pool keeps."""

import datetime
import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from cronsim import CronSim

from kerf.engine.disruption.causes import HeldBudget, InvalidSchedule, NodePoolBudget
from kerf.model.causes import Name, Quoted
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
_MOST_TIMES = 100


class BudgetHold(NamedTuple):
    """What lets no node of a pool go for a reason.

    `budgets` are the positions, in the order of its spec, of those of its budgets that let none go, one after the other
    until `opens_s`; or of the one that allows the fewest, where nodes that go already use it up. None where no schedule
    ends that.
    """

    budgets: tuple[int, ...]
    opens_s: float | None


class Census:
    """The nodes of each pool, counted once for a snapshot as Karpenter counts them.

    All that are initialised count, those on their way out as well; those on their way up count for nothing yet. `going`
    are on the way out or not ready. One whose instance ends counts until it is gone, for Karpenter no longer: the last
    of a node is not the time to have one more of them on the way.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._now_s = snapshot.taken_at_s
        self._counted, self._going, self._staying = Counter[str](), Counter[str](), Counter[str]()
        self._leaving = Counter[str]()
        alike = Counter(
            (held.claim.node_pool, held.is_deleting, held.node and held.node.is_ready)
            for held in snapshot.nodes
            if held.claim is not None and held.is_initialized
        )
        for (pool, is_deleting, is_ready), nodes in alike.items():
            self._staying[pool] += 0 if is_deleting else nodes
            if is_ready is not None:
                self._counted[pool] += nodes
                self._leaving[pool] += nodes if is_deleting else 0
                self._going[pool] += nodes if is_deleting or not is_ready else 0

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "Census":
        """That of the snapshot, counted when it is first asked for."""
        if _CENSUS not in snapshot.findings:
            snapshot.findings[_CENSUS] = cls(snapshot)
        found: Census = snapshot.findings[_CENSUS]
        return found

    def allowed(self, pool: NodePool, reason: str, *, are_replaced: bool = False) -> int | None:
        """How many more nodes of the pool may be disrupted now for a reason; None means any number.

        The least of the active budgets, percentages of all counted nodes rounded up, less those of them that go or are
        not ready; and no more than the pool's floor (`kerf.dev/min-nodes`) leaves. The floor counts nodes after the
        step, so it holds none where another `are_replaced` by comes first; one that cannot be read holds all.
        """
        floor = 0 if pool.bounds.invalid_floor else None
        bounds = (self.allowed_by_budgets(pool, reason), floor if are_replaced else self.spare(pool))
        return min((each for each in bounds if each is not None), default=None)

    def allowed_by_budgets(self, pool: NodePool, reason: str) -> int | None:
        """The same without the pool's floor."""
        counts = self._counts(pool, reason)
        return max(0, min(counts) - self.going(pool, reason)) if counts else None

    def going(self, pool: NodePool, reason: str) -> int:
        """How many of its nodes count against its budgets already: they go, or are not ready."""
        # A broken node is not ready, as a rule, and must not be what keeps it from its own repair.
        return self._leaving[pool.name] if reason == UNHEALTHY else self._going[pool.name]

    def opens_s(self, pool: NodePool, reason: str) -> float | None:
        """When budgets of the pool that let none of its nodes go now let one go, if no other goes then.

        That is now where only nodes that go already stand in the way. None where no schedule ends that, or none of the
        next hundred times.
        """
        return self.hold(pool, reason).opens_s

    def hold(self, pool: NodePool, reason: str) -> BudgetHold:
        """Which budgets of a pool let none of its nodes go now, and until when, as `opens_s` says."""
        at_s, total = self._now_s, self._counted[pool.name]
        held = list[int]()
        for _ in range(_MOST_TIMES):
            closed = ((index, budget) for index, budget in _for(pool, reason) if _of(budget, total) == 0)
            ends = ((end_s, -index) for index, budget in closed if (end_s := _ends_s(budget, at_s)) is not None)
            end_s, last = max(ends, default=(at_s, 0))
            if end_s == math.inf:
                return BudgetHold((-last,), None)
            if end_s == at_s:
                return BudgetHold(tuple(dict.fromkeys(held)) or self._tightest(pool, reason), at_s)
            held.append(-last)
            at_s = end_s
        return BudgetHold(tuple(dict.fromkeys(held)), None)

    def _tightest(self, pool: NodePool, reason: str) -> tuple[int, ...]:
        """The position of the first active budget that allows the fewest nodes; empty where none is active."""
        total = self._counted[pool.name]
        active = [(_of(budget, total), index) for index, budget in self._active(pool, reason)]
        return (min(active)[1],) if active else ()

    def lets_go(self, pool: NodePool, reason: str) -> bool:
        """Whether the active budgets let any node of the pool go for a reason, now or once others have gone."""
        return min(self._counts(pool, reason), default=1) > 0

    def _counts(self, pool: NodePool, reason: str) -> list[int]:
        return [_of(budget, self._counted[pool.name]) for _, budget in self._active(pool, reason)]

    def _active(self, pool: NodePool, reason: str) -> Iterator[tuple[int, Budget]]:
        return (each for each in _for(pool, reason) if _ends_s(each[1], self._now_s) is not None)

    def spare(self, pool: NodePool) -> int | None:
        """How many nodes the pool has beyond its floor; None where it states none.

        A floor that cannot be read keeps every node.
        """
        if pool.bounds.invalid_floor:
            return 0
        if not pool.bounds.min_nodes:
            return None
        return max(0, self._staying[pool.name] - pool.bounds.min_nodes)


def holding(snapshot: ClusterSnapshot, pool: NodePool, reason: str) -> InvalidSchedule | NodePoolBudget | None:
    """Whether budgets let no further node of the pool go for a reason: which, and until when; its floor aside."""
    census, name = Census.of(snapshot), Name(pool.name)
    if census.allowed_by_budgets(pool, reason) != 0:
        return None
    if pool.invalid_schedule:
        return InvalidSchedule(name, Quoted(pool.invalid_schedule))
    hold, stated = census.hold(pool, reason), pool.disruption.budgets
    budgets = tuple(_held(None if len(stated) == 1 else index, stated[index]) for index in hold.budgets)
    if hold.opens_s == snapshot.taken_at_s:
        return NodePoolBudget(name, Name(reason), going=census.going(pool, reason), budgets=budgets)
    return NodePoolBudget(name, Name(reason), hold.opens_s, budgets=budgets)


def _held(index: int | None, budget: Budget) -> HeldBudget:
    schedule = "" if budget.schedule is None else budget.stated_schedule or budget.schedule
    return HeldBudget(
        index, Quoted(budget.nodes), tuple(map(Name, budget.reasons)), Quoted(schedule), budget.duration_s or 0
    )


def _of(budget: Budget, total: int) -> int:
    if budget.nodes.endswith("%"):
        return -(-total * int(budget.nodes[:-1]) // 100)
    return int(budget.nodes)


def _for(pool: NodePool, reason: str) -> Iterator[tuple[int, Budget]]:
    """The budgets that count for the reason, each with its position in the spec."""
    stated = enumerate(pool.disruption.budgets)
    return ((index, budget) for index, budget in stated if not budget.reasons or reason in budget.reasons)


def _ends_s(budget: Budget, now_s: float) -> float | None:
    """When the budget ceases to count, if its schedule does not begin again before; None where it does not count now.

    It counts while its schedule has begun within its duration, in UTC; one without a schedule always, so it ends never.
    """
    if budget.schedule is None or budget.duration_s is None:
        return math.inf
    before = datetime.datetime.fromtimestamp(now_s - budget.duration_s, datetime.UTC)
    began: datetime.datetime = next(CronSim(_MACROS.get(budget.schedule, budget.schedule), before))
    return began.timestamp() + budget.duration_s if began.timestamp() <= now_s else None


class Allowance:
    """What the budgets still allow while a plan is made; each pool is asked once. Of one that `is_open_to_all` all.

    A pool's floor counts, but not where nodes `are_replaced`: the caller then buys what the floor lacks.
    """

    def __init__(
        self, snapshot: ClusterSnapshot, reason: str, *, are_replaced: bool = False, is_open_to_all: bool = False
    ) -> None:
        census, pools = Census.of(snapshot), snapshot.node_pools
        self._left = {
            pool.name: None if is_open_to_all else census.allowed(pool, reason, are_replaced=are_replaced)
            for pool in pools
        }
        self._taken = Counter[str]()

    def is_open(self, pool: str) -> bool:
        """Whether one more node of the pool may go; never of a pool that does not exist."""
        left = self._left.get(pool, 0)
        return left is None or self._taken[pool] < left

    def left(self, pool: str) -> int | None:
        """How many more nodes of the pool may go; None for any number, 0 for a pool that does not exist."""
        left = self._left.get(pool, 0)
        return None if left is None else max(0, left - self._taken[pool])

    def take(self, pool: str) -> bool:
        """Count one node of the pool; False when no budget allows it."""
        if not self.is_open(pool):
            return False
        self._taken[pool] += 1
        return True
