"""What of a command still stands in a later snapshot of the same cluster.

A decision on a large cluster takes seconds, and by its end a node may be kept, a budget closed, or a destination full.
The rules are those of the methods that made the command. They must be no stricter: a command that is made again and
again, and never stands, would keep every other from its turn.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from kerf.engine.buy.limits import Ledger
from kerf.engine.disruption import drift, emptiness, repair, staticdrift
from kerf.engine.disruption.budgets import Allowance, Census
from kerf.engine.disruption.candidates import Candidate, candidate_of, may_save, may_save_with_room, moving
from kerf.engine.disruption.command import Command, replacing
from kerf.engine.disruption.obstacles import Obstacles
from kerf.engine.disruption.relocation import may_receive, stays, still_fit
from kerf.engine.disruption.successors import Successors, replaced
from kerf.engine.disruption.wholegroups import WholeGroups
from kerf.engine.world import World
from kerf.model.nodepool import DRIFTED, EMPTY, UNDERUTILIZED, UNHEALTHY, is_read_alike
from kerf.model.plan import Deletion, Launch
from kerf.model.pods import Pod
from kerf.model.quantities import NODES, Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot


def _has_drifted(candidate: Candidate, allowance: Allowance) -> bool:
    return drift.may_go(candidate, allowance) or staticdrift.may_go(candidate, allowance)


_MAY_GO = {EMPTY: emptiness.may_go, UNDERUTILIZED: may_save, DRIFTED: _has_drifted, UNHEALTHY: repair.may_go}
"""What each method asks of a candidate, by the reason of its deletions."""


def standing(command: Command, before: World, now: ClusterSnapshot) -> Command | None:
    """The command without the deletions and launches that do not stand; None where none does.

    The very same command where all of it stands. Nodes that one launch is bought for go together or not at all, and so
    do those of a group of pods. Cost: the pods of its nodes and of the destinations that have changed; and once, for
    budgets, limits and groups, linear in nodes, waiting pods, PodDisruptionBudgets and pods of groups.
    """
    present = _Present(before, now)
    launches = {launch.name: launch for launch in command.launches if present.may_buy(launch)}
    deletions = [each for each in command.deletions if launches.keys() >= {*each.replaced_by} and present.goes(each)]
    while True:
        claims = {deletion.claim for deletion in deletions}
        launches = {name: launch for name, launch in launches.items() if claims.issuperset(launch.replaces)}
        kept = [each for each in deletions if launches.keys() >= {*each.replaced_by}]
        kept = [each for each in kept if not present.breaks_group(each, kept)]
        kept = present.above_floors(kept, launches.values())
        if len(kept) == len(deletions):
            break
        deletions = kept
    if not deletions or not present.fit_together(deletions):
        return None
    if len(deletions) == len(command.deletions) and len(launches) == len(command.launches):
        return command
    bought = tuple(launch for launch in command.launches if launch.name in launches)
    return replacing(before, tuple(deletions), bought)


class _Present:
    """The later snapshot, asked about parts of one command in their order: each takes of the budgets."""

    def __init__(self, before: World, now: ClusterSnapshot) -> None:
        self._before, self._now = before, before.of(now)
        self._obstacles, self._successors = Obstacles(now), Successors(now)
        self._allowances: dict[str, Allowance] = {}

    def goes(self, deletion: Deletion) -> bool:
        """Whether the node may still be deleted for the reason, with its pods where it was decided."""
        was, held = self._before.snapshot.node(deletion.node), self._now.snapshot.node(deletion.node)
        candidate = self._candidate(was, held)
        allowance = self._allowance(deletion.reason)
        if was is None or candidate is None:
            return False
        # A node without pods was underutilised by what buffers keep there.
        is_buffers = deletion.reason == UNDERUTILIZED and not moving(was)
        may_go = may_save_with_room if is_buffers else _MAY_GO[deletion.reason]
        if not may_go(candidate, allowance):
            return False
        moved = {placement.pod.pod for placement in deletion.moved}
        pods = [pod for pod in candidate.pods if pod.key in moved]
        if deletion.replaced_by and len(candidate.pods) != len(moving(was)):
            # For fewer pods other nodes, or none, may do.
            return False
        if not deletion.replaced_by and moved and len(pods) < len(candidate.pods):
            return False
        receives = stays if deletion.reason == DRIFTED else may_receive
        if moved and not still_fit(deletion.moved, pods, self._before.snapshot, self._now, receives):
            return False
        return allowance.take(candidate.pool.name)

    def fit_together(self, deletions: Sequence[Deletion]) -> bool:
        """Whether the pods of all these nodes find the places that were found for them, beside each other."""
        moved = [placement for deletion in deletions for placement in deletion.moved]
        homes = {placement.node for placement in moved}
        if len(deletions) < 2 or all(self._is_unchanged(name) for name in homes):
            # What was decided together holds together; of one node it has been asked.
            return True
        keys = {placement.pod.pod for placement in moved}
        nodes = (self._now.snapshot.node(deletion.node) for deletion in deletions)
        pods = [pod for node in nodes if node is not None for pod in moving(node) if pod.key in keys]
        return still_fit(moved, pods, self._before.snapshot, self._now, lambda node, snapshot: True)

    def _is_unchanged(self, name: str) -> bool:
        return self._now.snapshot.node(name) is self._before.snapshot.node(name)

    def breaks_group(self, deletion: Deletion, others: Iterable[Deletion]) -> bool:
        """Whether a group has some members on the node and others on nodes that stay; a broken node asks no group."""
        if deletion.reason == UNHEALTHY:
            return False
        groups, going = WholeGroups.of(self._now.snapshot), {each.node for each in others}
        return any(group.is_broken_by(going) for group in groups.on(deletion.node))

    def above_floors(self, deletions: Sequence[Deletion], launches: Iterable[Launch]) -> list[Deletion]:
        """Those that leave each pool what it keeps now. Else the last ones stay; a broken node goes all the same."""
        bought, kept = Counter(launch.node_pool for launch in launches), list(deletions)
        for name, going in sorted(Counter(each.node_pool for each in deletions).items()):
            pool = self._now.snapshot.pool(name)
            spare = Census.of(self._now.snapshot).spare(pool) if pool is not None and pool.replicas is None else None
            over = 0 if spare is None else going - bought[name] - spare
            held = [each for each in kept if each.node_pool == name and each.reason != UNHEALTHY]
            kept = [each for each in kept if over <= 0 or each not in held[-over:]]
        return kept

    def may_buy(self, launch: Launch) -> bool:
        """Whether the launch's pool is as it was and may still buy, beside the old nodes, which still count."""
        if not self._is_as_it_was(launch.node_pool):
            return False
        pool = self._now.snapshot.pool(launch.node_pool)
        if pool is not None and pool.replicas is not None:
            most = (pool.limits or Resources()).get(NODES)
            return most is None or self._ledger.used(pool.name).get(NODES, 0) < most
        for offered in self._before.supply.by_pool.get(launch.node_pool, ()):
            if offered.kind.name == launch.offering.instance_type and self._ledger.room_for(offered) != 0:
                # Several launches of one pool take of one limit.
                self._ledger.charge(launch.node_pool, launch.charge)
                return True
        return False

    def _allowance(self, reason: str) -> Allowance:
        if reason not in self._allowances:
            is_repair = reason == UNHEALTHY
            others = Allowance(self._now.snapshot, reason, are_replaced=reason != EMPTY)
            self._allowances[reason] = repair.allowance_of(self._now) if is_repair else others
        return self._allowances[reason]

    def _candidate(self, was: ClusterNode | None, held: ClusterNode | None) -> Candidate | None:
        """The node as a candidate that nothing forbids and no pod has come to; None where it is none."""
        if was is None or held is None or was.claim is None:
            return None
        candidate = candidate_of(held, self._now.snapshot)
        if candidate is None or candidate.claim.uid != was.claim.uid:
            return None
        if self._is_blocked(candidate) or replaced(candidate, self._now.snapshot):
            return None
        if self._successors.awaited_by(candidate):
            return None
        before = {(pod.key, pod.uid): pod for pod in moving(was)}
        is_news = any(_is_news(pod, before.get((pod.key, pod.uid))) for pod in candidate.pods)
        return None if is_news else candidate

    def _is_blocked(self, candidate: Candidate) -> bool:
        if candidate.is_forced:
            return self._obstacles.of_empty(candidate.cluster_node) is not None
        return self._obstacles.of(candidate.cluster_node) is not None

    def _is_as_it_was(self, pool: str) -> bool:
        known, held = self._before.snapshot.pool(pool), self._now.snapshot.pool(pool)
        return known is not None and held is not None and is_read_alike(known, held)

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger.of(self._now)


def _is_news(pod: Pod, before: Pod | None) -> bool:
    """Whether the pod has come since, or was resized."""
    return before is None or not pod.asks_as(before)
