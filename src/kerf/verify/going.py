"""Nodes go only as their pools, their pods and their budgets let them, and each of their pods has a place then."""

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from cronsim import CronSim

from kerf.model.eviction import Budgets, is_protected
from kerf.model.nodeclaim import CONSOLIDATABLE, DISRUPTED_TAINT, DO_NOT_DISRUPT, DRIFTED
from kerf.model.nodeclaim import UNHEALTHY as UNHEALTHY_CONDITION
from kerf.model.nodepool import DRIFTED as FOR_DRIFT
from kerf.model.nodepool import EMPTY, UNDERUTILIZED, UNHEALTHY, WHEN_EMPTY, Budget, NodePool
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Deletion
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import consumed_request
from kerf.model.rejections import REJECTED
from kerf.model.schedules import MACROS
from kerf.model.snapshot import ClusterNode
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.model.windows import WINDOW_LABEL
from kerf.verify.after import After


def violations(after: After) -> Iterator[Violation]:
    """What forbids that nodes go. Cost: nodes once, and pods of those that go."""
    deletions = after.proposal.deletions
    if not deletions and not any(launch.replaces for launch in after.proposal.launches):
        return
    going = _Going(after)
    for deletion in deletions:
        yield from going.of(deletion)
    yield from going.budgets(deletions)
    yield from going.floors(deletions)
    yield from going.groups_of_launches(deletions)


def needs_place(pod: Pod) -> bool:
    """Whether the pod is made again and must find room: none of a DaemonSet, and none that only fills what is idle."""
    comes_back = pod.owner is not None and pod.owner.kind == "StatefulSet"
    return not (pod.is_daemon or pod.is_opportunistic or pod.is_ended) and (pod.deleted_s is None or comes_back)


_CONDITIONS = {FOR_DRIFT: DRIFTED, UNHEALTHY: UNHEALTHY_CONDITION}
"""Reasons by the condition of the NodeClaim that gives them; the others are that less is paid for."""


class _Going:
    """The nodes that go, as their pools and pods see it."""

    def __init__(self, after: After) -> None:
        self._after, self._snapshot = after, after.snapshot
        self._launches = {launch.name: launch for launch in after.proposal.launches}

    def of(self, deletion: Deletion) -> Iterator[Violation]:
        """What forbids that this one goes."""
        part, name = PlanPart(PartKind.DELETION, deletion.node), f"node {deletion.node}"
        node = self._snapshot.node(deletion.node)
        if node is None or node.claim is None or node.claim.name != deletion.claim:
            yield violation(PlanRule.NODE_UNUSABLE, name, f"a node of NodeClaim {deletion.claim}", "none", part)
            return
        if node.is_deleting:
            yield violation(PlanRule.NODE_UNUSABLE, name, "a node that stays so far", "one that goes already", part)
            return
        if deletion.node_pool != node.claim.node_pool:
            expected, got = f"a node of NodePool {node.claim.node_pool}", f"of NodePool {deletion.node_pool}"
            yield violation(PlanRule.NODE_UNUSABLE, name, expected, got, part)
        wanted = self._reason_missing(node, deletion)
        if wanted:
            yield violation(PlanRule.REASON, name, wanted, deletion.reason, part)
        missing = [launch for launch in deletion.replaced_by if launch not in self._launches]
        if missing:
            yield violation(PlanRule.POD_LOST, name, f"{missing[0]} in its place", "no such launch", part)
        yield from self._forbidden(node, deletion, name, part)
        yield from self._lost(node, deletion, name, part)

    def _reason_missing(self, node: ClusterNode, deletion: Deletion) -> str:
        """What would have to hold of a node that goes for this reason and does not; empty where all does."""
        claim, reason = node.claim, deletion.reason
        assert claim is not None
        if reason in _CONDITIONS:
            return "" if claim.is_true(_CONDITIONS[reason]) else f"condition {_CONDITIONS[reason]} of its NodeClaim"
        pool = self._snapshot.pool(claim.node_pool)
        if reason not in (EMPTY, UNDERUTILIZED) or pool is None:
            return f"one of {', '.join((EMPTY, UNDERUTILIZED, *_CONDITIONS))}"
        if pool.replicas is not None or pool.disruption.consolidate_after_s is None:
            return f"NodePool {pool.name} that consolidates"
        if reason == UNDERUTILIZED and pool.disruption.policy == WHEN_EMPTY:
            return f"NodePool {pool.name} that consolidates nodes with pods"
        if not claim.is_true(CONSOLIDATABLE):
            return f"condition {CONSOLIDATABLE} of its NodeClaim"
        return "a node without pods that need a place" if reason == EMPTY and any(map(needs_place, node.pods)) else ""

    def _forbidden(self, node: ClusterNode, deletion: Deletion, name: str, part: PlanPart) -> Iterator[Violation]:
        """Whether the node, or a pod that would be evicted, is not to be disrupted."""
        held, claim = node.node, node.claim
        assert claim is not None
        if held is not None and any(taint.key == DISRUPTED_TAINT.key for taint in held.taints):
            yield violation(PlanRule.NODE_UNUSABLE, name, "a node that stays so far", "one that is marked to go", part)
        stated = [held.annotations if held is not None else {}, claim.annotations]
        if any(notes.get(DO_NOT_DISRUPT) == "true" for notes in stated):
            yield violation(PlanRule.DO_NOT_DISRUPT, name, f"no {DO_NOT_DISRUPT}", "true", part)
        if self._is_forced(node, deletion):
            return
        for pod in node.pods:
            if pod.is_ended or pod.deleted_s is not None or pod.is_opportunistic:
                continue
            if is_protected(pod, self._snapshot.taken_at_s):
                expected, got = f"no {DO_NOT_DISRUPT}", pod.annotations.get(DO_NOT_DISRUPT, "")
                yield violation(PlanRule.DO_NOT_DISRUPT, f"{pod.key} on {name}", expected, got, part)
            covering = self._budgets.covering(pod)
            blocking = [each.name for each in covering if each.holds(pod)] if len(covering) == 1 else []
            blocking = [each.name for each in covering] if len(covering) > 1 else blocking
            if blocking:
                got = ", ".join(f"PodDisruptionBudget {each}" for each in sorted(blocking))
                expected = "a pod that may be evicted"
                yield violation(PlanRule.POD_DISRUPTION_BUDGET, f"{pod.key} on {name}", expected, got, part)

    def _is_forced(self, node: ClusterNode, deletion: Deletion) -> bool:
        """Whether the node must go some time whatever its pods say, and its drain ends by itself."""
        claim = node.claim
        assert claim is not None
        if claim.has_broken_node and deletion.reason == UNHEALTHY:
            return True
        is_ill = claim.is_true(DRIFTED) or claim.is_true(UNHEALTHY_CONDITION)
        return is_ill and deletion.reason in (FOR_DRIFT, UNHEALTHY) and claim.termination_grace_period_s is not None

    @cached_property
    def _budgets(self) -> Budgets:
        return Budgets(self._snapshot.disruption_budgets)

    def _lost(self, node: ClusterNode, deletion: Deletion, name: str, part: PlanPart) -> Iterator[Violation]:
        """Whether each of its pods has a place, or is meant to have none."""
        pool = self._snapshot.pool(self._pool_of(deletion))
        if deletion.reason == UNHEALTHY and not deletion.replaced_by:
            # A broken node serves its pods no more: they are better made again, wherever that may be.
            return
        if deletion.reason == FOR_DRIFT and pool is not None and pool.replicas is not None:
            return
        launched = {
            placed.pod
            for each in deletion.replaced_by
            if each in self._launches
            for placed in self._launches[each].pods
        }
        places = {placement.pod.pod for placement in deletion.moved} | launched
        own = {pod.key for pod in node.pods}
        lost = [pod.key for pod in node.pods if needs_place(pod) and pod.key not in places]
        if deletion.reason in (FOR_DRIFT, UNHEALTHY):
            # Of these no plan is made before they come again.
            is_forced = self._is_forced(node, deletion)
            pods = [self._after.pods[key] for key in lost]
            lost = [p.key for p in pods if not _is_judged_later(p) and not (is_forced and self._is_held(p))]
        if lost:
            expected = (
                "a place for each of its pods" if deletion.reason != EMPTY else "a node without pods that need one"
            )
            yield violation(PlanRule.POD_LOST, name, expected, f"none for {lost[0]}", part)
        strange = [each.pod.pod for each in deletion.moved if each.pod.pod not in own and not is_virtual(each.pod.pod)]
        if strange:
            yield violation(PlanRule.POD_UNKNOWN, name, "pods of the node", strange[0], part)

    def _is_held(self, pod: Pod) -> bool:
        """Whether the pod stays until its node must go: it is found a place shortly before."""
        covering = self._budgets.covering(pod)
        is_guarded = len(covering) > 1 or any(each.always_holds(pod) for each in covering)
        return is_guarded or is_protected(pod, self._snapshot.taken_at_s)

    def _pool_of(self, deletion: Deletion) -> str:
        """The pool whose budgets and floor count the node: that of its claim, whatever is said."""
        node = self._snapshot.node(deletion.node)
        return node.claim.node_pool if node is not None and node.claim is not None else deletion.node_pool

    def budgets(self, deletions: Sequence[Deletion]) -> Iterator[Violation]:
        """Whether the budgets of each pool allow as many nodes to go for the reason."""
        by_pool = defaultdict[tuple[str, str], list[Deletion]](list)
        for deletion in deletions:
            by_pool[self._pool_of(deletion), deletion.reason].append(deletion)
        for (name, reason), held in sorted(by_pool.items()):
            pool = self._snapshot.pool(name)
            if pool is None or (reason == UNHEALTHY and self._after.world.repairs_at_once):
                continue
            allowed = self._allowed(pool, reason)
            if allowed is not None and len(held) > allowed:
                parts = [PlanPart(PartKind.DELETION, deletion.node) for deletion in held[allowed:]]
                of, expected = f"NodePool {name}", f"at most {allowed} nodes at once ({reason})"
                yield violation(PlanRule.DISRUPTION_BUDGET, of, expected, f"{len(held)} nodes", *parts)

    def _allowed(self, pool: NodePool, reason: str) -> int | None:
        """How many nodes of the pool may go now; None for any number."""
        counts = []
        total, going, _ = self._census[pool.name]
        leaving = going[reason == UNHEALTHY]
        for budget in pool.disruption.budgets:
            if (not budget.reasons or reason in budget.reasons) and self._is_active(budget):
                counts.append(max(0, _number(budget, total) - leaving))
        return min(counts, default=None)

    def _is_active(self, budget: Budget) -> bool:
        if budget.schedule is None or budget.duration_s is None:
            return True
        before = datetime.datetime.fromtimestamp(self._snapshot.taken_at_s - budget.duration_s, datetime.UTC)
        began: datetime.datetime = next(CronSim(MACROS.get(budget.schedule, budget.schedule), before))
        return began.timestamp() <= self._snapshot.taken_at_s

    @cached_property
    def _census(self) -> "defaultdict[str, tuple[int, tuple[int, int], int]]":
        """Of each pool the nodes that are up, those that go or are not ready and those that go, and those that stay."""
        up, away, leaving, staying = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        for node in self._snapshot.nodes:
            if node.claim is None or not node.is_initialized:
                continue
            name = node.claim.node_pool
            staying[name] += not node.is_deleting
            if node.node is not None:
                up[name] += 1
                leaving[name] += node.is_deleting
                away[name] += node.is_deleting or not node.node.is_ready
        found = {name: (up[name], (away[name], leaving[name]), staying[name]) for name in {*up, *staying}}
        return defaultdict(lambda: (0, (0, 0), 0), found)

    def floors(self, deletions: Sequence[Deletion]) -> Iterator[Violation]:
        """Whether each pool keeps as many nodes as it states: those that are bought in their place count."""
        by_pool = defaultdict[str, list[Deletion]](list)
        for deletion in deletions:
            if deletion.reason != UNHEALTHY:
                by_pool[self._pool_of(deletion)].append(deletion)
        bought = Counter(launch.node_pool for launch in self._after.proposal.launches)
        for name, held in sorted(by_pool.items()):
            pool = self._snapshot.pool(name)
            if pool is None or pool.replicas is not None or not pool.bounds.min_nodes:
                continue
            left = self._census[name][2] + bought[name] - len(held)
            if left < pool.bounds.min_nodes:
                parts = [PlanPart(PartKind.DELETION, deletion.node) for deletion in held]
                expected = f"at least {pool.bounds.min_nodes} nodes"
                yield violation(PlanRule.POOL_FLOOR, f"NodePool {name}", expected, f"{left} nodes", *parts)

    def groups_of_launches(self, deletions: Sequence[Deletion]) -> Iterator[Violation]:
        """Whether what is bought in the place of nodes names nodes that go."""
        claims = {deletion.claim for deletion in deletions}
        for launch in self._after.proposal.launches:
            strange = [claim for claim in launch.replaces if claim not in claims]
            if strange:
                part = PlanPart(PartKind.LAUNCH, launch.name)
                yield violation(PlanRule.NODE_UNUSABLE, launch.name, "NodeClaims that go", strange[0], part)


def _is_judged_later(pod: Pod) -> bool:
    """Whether nothing is planned for the pod before it is made again."""
    return WINDOW_LABEL in pod.labels or bool(consumed_request(pod)) or REJECTED in pod.annotations


def _number(budget: Budget, total: int) -> int:
    """How many nodes a budget allows; a percentage is rounded up."""
    if budget.nodes.endswith("%"):
        return math.ceil(total * int(budget.nodes[:-1]) / 100)
    return int(budget.nodes)
