"""Takes nodes away: asks each method in turn, waits, looks again, then acts; the first command wins.

As in Karpenter a decision rests fifteen seconds, because pods that were just created may be on their way to the very
node. Then it must come out the same again; one that buys nodes is put to the rules again instead.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial

from kerf.config import IGNORE_BUDGETS, Settings
from kerf.controllers.actuator import Acts
from kerf.controllers.deciding import still_goes
from kerf.controllers.elapsed import passed_s
from kerf.controllers.lastline import LastLine, checked_command
from kerf.controllers.market import MarketBook
from kerf.controllers.options import options_of
from kerf.controllers.portions import Portions
from kerf.controllers.provisioning import is_provisionable
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.asked import Asked, Repacks
from kerf.engine.disruption.budgets import Census, holding
from kerf.engine.disruption.candidates import Candidate, candidates, moving
from kerf.engine.disruption.causes import Blocked, NodePoolBudget, RepackedInTurn
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.consolidation import unconsolidatable
from kerf.engine.disruption.drift import waiting as drift_waiting
from kerf.engine.disruption.drift import without_place
from kerf.engine.disruption.obstacles import protected, unprotected, unprotected_nodes
from kerf.engine.disruption.repair import too_many
from kerf.engine.disruption.staticdrift import waiting as static_waiting
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.disruption import (
    blocking_budget_text,
    explained,
    in_its_place_text,
    obstacle_text,
    unconsolidatable_text,
)
from kerf.engine.explain.violations import violation_text
from kerf.engine.leaving import moves
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model import events
from kerf.model.nodeclaim import CONSOLIDATABLE, DISRUPTED_TAINT, DRIFTED, UNHEALTHY, NodeClaim
from kerf.model.nodepool import DRIFTED as REASON_DRIFTED
from kerf.model.nodepool import EMPTY, UNDERUTILIZED, WHEN_EMPTY
from kerf.model.nodepool import UNHEALTHY as REASON_UNHEALTHY
from kerf.model.plan import NodePlacement
from kerf.model.snapshot import ClusterSnapshot, Deleted, Event, Synced, Watched
from kerf.model.violations import PartKind, Violation
from kerf.state import ClusterState
from kerf.telemetry import DISRUPTION_DECISIONS, DISRUPTION_ELIGIBLE, DISRUPTION_SECONDS, DISRUPTIONS_ALLOWED

_NODES, _EXPLAINING = "nodes", "why"
"""The keys."""
_TELL_S = 60.0
"""What keeps nodes is reported so often, while none of them may go."""

_NEWS_S = 3600.0
"""An event lives for an hour. After a restart nothing that is older is said again."""

_MOST_NAMED = 100
"""Of so many nodes it is said in a minute why they are not consolidated; each event is a write."""


def any_may_go(state: ClusterState) -> bool:
    """Whether any method could ask for any node, whatever its pods forbid: a quiet one that is empty, or of a pool
    whose nodes may go with pods on them.

    In a pool that keeps what is in use that is seldom so, while its pods come and go all the time. Cost: a look at
    each claim; no node is joined for it.
    """
    keeping = {pool.name for pool in state.pools() if pool.disruption.policy == WHEN_EMPTY and not pool.bounds.has_cap}
    for claim in state.claims():
        is_quiet = claim.is_true(CONSOLIDATABLE)
        is_ill = claim.is_true(DRIFTED) or claim.is_true(UNHEALTHY)
        node = state.node_of(claim) if is_quiet or is_ill else None
        if node is None:
            continue
        if is_ill or claim.node_pool not in keeping or not state.is_any_on(node.name, moves):
            return True
    return False


class DisruptionController:
    """One pass over all nodes, every ten seconds and when the time of a node's consolidateAfter is over."""

    name = "disruption"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, actuator: Acts, settings: Settings) -> None:
        self._state, self._ports, self._book, self._actuator, self._settings = state, ports, book, actuator, settings
        self._portions = Portions(state, settings)
        self._last_line = LastLine(self.name, ports.feed)
        # Times here are those that have passed, whatever the clock is set to (`passed_s`).
        # What was decided and when; lost at a restart, which only means deciding once more.
        self._resting: tuple[tuple[str, ...], float] | None = None
        # Claims whose time is over, and those whose deletion is under way: the watch may not tell of it yet.
        self._ripe: set[str] = set()
        self._going: set[str] = set()
        # A command that buys nodes, with what it was decided from, and since when it rests. On a busy cluster the next
        # decision is another one, as a rule: this one is put to the rules again after its rest, as in Karpenter.
        self._kept: tuple[Command, World, float] | None = None
        self._repacks = Repacks(settings.repack_s)
        # How many commands in a row did not stand.
        self._dropped = 0
        # Until when the cluster as it is at a version needs no second look.
        self._settled: tuple[int, float] = (-1, 0)
        # What looks so far have found of nodes whose pods fit nowhere else.
        self._asked = Asked()
        # What decisions of the last look have left to those of the next.
        self._columns = WarmStart()
        # The last node of which it was said why it is not consolidated, and when.
        self._last_named, self._named_s = "", float("-inf")
        # The command that was acted on last, until it has its words, and what it was decided from.
        self._acted_on: tuple[Command, ClusterSnapshot] | None = None
        # When all nodes were looked at last.
        self._looked_s = float("-inf")

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Begins with the first full state; goes on by its own requeue, and at once when a node may go.

        Not while a decision rests: with every further node it would rest again.
        """
        if isinstance(event, Synced):
            self._ripe = {claim.name for claim in self._state.claims() if claim.is_true(CONSOLIDATABLE)}
            return (_NODES,)
        value = event.value
        if not isinstance(value, NodeClaim):
            return ()
        was_ripe = value.name in self._ripe
        if isinstance(event, Deleted) or not value.is_true(CONSOLIDATABLE):
            self._ripe.discard(value.name)
            return ()
        self._ripe.add(value.name)
        return () if was_ripe or self._resting is not None else (_NODES,)

    async def reconcile(self, key: str) -> Result:
        """Decide; act on what was decided the same way a rest ago. Then, as a key of its own, say what was done."""
        if key == _EXPLAINING:
            return self._explain()
        result = await self._look()
        return result if self._acted_on is None else replace(result, then=(_EXPLAINING,))

    async def _look(self) -> Result:
        now, poll = self._ports.clock.now_s(), Result(self._settings.disruption_poll_s)
        began_s = passed_s()
        version, until_s = self._settled
        if version == self._state.version and began_s < until_s:
            return poll
        if self._kept is not None:
            return await self._carry_out(*self._kept)
        await self._release_leftovers()
        if self._resting is None and began_s < self._looked_s + _TELL_S and not any_may_go(self._state):
            return poll
        snapshot, version = self._state.snapshot(now), self._state.version
        self._looked_s = began_s
        snapshot = replace(snapshot, pending=self._portions.of(snapshot.pending).pods)
        for held in snapshot.nodes:
            if held.problem is not None:
                self._ports.recorder.record(events.cards_not_understood(held.name, cause_text(held.problem)))
        for pod, problem in unprotected(snapshot):
            self._ports.recorder.record(events.protection_invalid("Pod", pod.key, problem))
        for kind, name, value in unprotected_nodes(snapshot):
            self._ports.recorder.record(events.node_protection_invalid(kind, name, value))
        self._tell_of_protection(snapshot)
        command, world = await self._first_command(snapshot)
        DISRUPTION_SECONDS.observe(passed_s() - began_s)
        if command is None or world is None:
            self._resting, self._dropped = None, 0
            quiet_s = min(self._settings.settled_s, _opens_s(snapshot) - now, _unprotected_s(snapshot) - now)
            if now < self._repacks.next_s:
                quiet_s = min(quiet_s, self._repacks.next_s - now)
            # What has changed while it was decided has not been looked at.
            self._settled = (version, began_s + (quiet_s if self._asked.is_through else 0))
            return poll
        if command.launches:
            self._kept = (command, world, began_s)
            return Result(self._settings.validation_s)
        names = tuple(deletion.claim for deletion in command.deletions)
        if self._resting is None or self._resting[0] != names:
            self._resting = (names, began_s)
            return Result(self._settings.validation_s)
        if began_s < self._resting[1] + self._settings.validation_s:
            return Result(self._resting[1] + self._settings.validation_s - began_s)
        self._resting = None
        return await self._act(command, world)

    async def _carry_out(self, command: Command, world: World, since_s: float) -> Result:
        """Act on a command that has rested; nothing else is decided meanwhile."""
        left_s = since_s + self._settings.validation_s - passed_s()
        if left_s > 0:
            return Result(left_s)
        self._kept = None
        return await self._act(command, world)

    async def _act(self, command: Command, world: World) -> Result:
        """Do what still stands of a command that has rested."""
        left = still_goes(command, world, self._state, self._ports.clock.now_s(), self._dropped)
        if left is None:
            # Decide again soon, from what is there then; that rests, too.
            self._dropped += 1
            return Result(self._settings.batch_idle_s)
        self._dropped = 0
        snapshot = world.snapshot
        self._ports.feed.launching(left.launches)
        going = {deletion.claim for deletion in left.deletions if not deletion.replaced_by}
        self._going |= going
        if left.deletions[0].reason == UNDERUTILIZED:
            self._begin_move(left, snapshot)
        try:
            await self._actuator.exchange(left, snapshot)
        finally:
            # A claim whose deletion failed stays: its node is opened, and all is decided again.
            self._going -= {name for name in going if (c := self._state.claim(name)) is not None and not c.is_deleting}
            self._acted_on = left, snapshot
        _count(left)
        return Result(self._settings.disruption_poll_s)

    def _explain(self) -> Result:
        """Publish the command that was acted on last, with its words; once."""
        acted_on, self._acted_on = self._acted_on, None
        if acted_on is not None:
            command, snapshot = acted_on
            self._ports.feed.publish(snapshot, explained(command))
        return DONE

    def _begin_move(self, command: Command, snapshot: ClusterSnapshot) -> None:
        nodes = [snapshot.node_of_claim(deletion.claim) for deletion in command.deletions]
        pods = (pod for node in nodes if node is not None for pod in moving(node))
        bought_micro = sum(launch.price_micro for launch in command.launches)
        saved_micro = sum(deletion.saved_micro for deletion in command.deletions) - bought_micro
        cause = command.deletions[0].cause
        # What goes in turn may save nothing before all have gone.
        saved_micro = cause.saved_micro if isinstance(cause, RepackedInTurn) else saved_micro
        self._book.moves.begin((deletion.claim for deletion in command.deletions), pods, saved_micro)

    async def _release_leftovers(self) -> None:
        # A tainted node whose claim stays was left by a crash, or by a write that failed.
        self._going = {name for name in self._going if self._state.claim(name) is not None}
        for node in self._state.nodes():
            if not any(taint.key == DISRUPTED_TAINT.key for taint in node.taints):
                continue
            held = self._state.cluster_node(node.name)
            if held is None or held.claim is None or held.is_deleting or held.claim.name in self._going:
                continue
            await self._actuator.release(node)

    async def _first_command(self, snapshot: ClusterSnapshot) -> tuple[Command | None, World | None]:
        """The command, and what it was decided from; neither where there is no candidate."""
        found, blocked = candidates(snapshot)
        self._tell(blocked)
        _measure(found, snapshot)
        self._tell_of_budgets(found, snapshot)
        policies = self._ports.cloud.repair_policies if self._settings.node_repair != "Off" else ()
        monitored = frozenset((policy.condition, policy.status) for policy in policies)
        for each in too_many(snapshot, monitored):
            self._ports.recorder.record(events.node_repair_blocked(each.pool, each.broken, each.nodes))
        if not found:
            return None, None
        market = await self._book.market(snapshot)
        settings = self._settings
        world = World(
            snapshot,
            market,
            options_of(settings),
            kept=self._columns,
            replaces_spot=settings.spot_to_spot_consolidation == "On",
            repairs_at_once=settings.node_repair == IGNORE_BUDGETS,
            monitored=monitored,
        )
        waiting = tuple(pod for pod in self._state.pending() if is_provisionable(pod))
        coming = World(self._state.snapshot(snapshot.taken_at_s, self._portions.of(waiting).pods), market)

        @cache
        def plan() -> Decision:
            """The next plan, also for pods for which windows, runs and requests keep room."""
            return decide(coming, replace(options_of(self._settings), with_bound=False, with_cost=False))

        def placements() -> tuple[NodePlacement, ...]:
            return plan().placements

        repacks = self._repacks.are_due(snapshot, market, found)
        self._tell(drift_waiting(world, found))
        for pool in static_waiting(world, found):
            text = f"nodes have drifted and wait: {in_its_place_text(pool, 'their')}"
            self._ports.recorder.record(events.disruption_blocked("NodePool", str(pool.pool), text))
        work = partial(checked_command, world, found, placements, repacks=repacks, asked=self._asked, plan=plan)
        checked, held = await self._ports.deciding.run(work)
        command = checked.command
        self._last_line.note(world, checked.violations)
        for node, why in _kept_by(checked.violations):
            self._ports.recorder.record(events.disruption_blocked("Node", node, why))
        if command is None and repacks:
            self._repacks.found_none(snapshot, market, found)
        self._columns = world.left() or self._columns
        self._tell(held)
        self._tell_of_staying(world)
        return command, world

    def _tell_of_staying(self, world: World) -> None:
        """Nodes that a look took nothing of, once all were asked; of many some a minute, in turn."""
        staying = self._asked.staying if self._asked.is_through else ()
        if not staying or passed_s() < self._named_s + _TELL_S:
            return
        self._named_s = passed_s()
        self._tell(without_place(world, staying))
        names = [each.node.name for each in staying]
        first = bisect_right(names, self._last_named) % len(names)
        named = [*staying[first:], *staying[:first]][:_MOST_NAMED]
        self._last_named = named[-1].node.name
        for left in unconsolidatable(world, named):
            self._ports.recorder.record(events.unconsolidatable(left.node, unconsolidatable_text(left)))

    def _tell(self, blocked: Iterable[Blocked]) -> None:
        for each in blocked:
            text = obstacle_text(each.cause)
            self._ports.recorder.record(events.disruption_blocked("Node", each.node, text))

    def _tell_of_protection(self, snapshot: ClusterSnapshot) -> None:
        """Pods that are protected for a time, and those whose time was over lately: an older end is no news."""
        now_s = snapshot.taken_at_s
        for pod, until_s in protected(snapshot):
            if now_s < until_s:
                self._ports.recorder.record(events.protected_until(pod.key, until_s))
            elif now_s < until_s + _NEWS_S:
                self._ports.recorder.record(events.protection_elapsed(pod.key, until_s))

    def _tell_of_budgets(self, found: Sequence[Candidate], snapshot: ClusterSnapshot) -> None:
        """Each pool with nodes that would go for a reason for which its budgets allow none, as Karpenter does.

        Nodes that go already and use a budget up are no news: their turn ends by itself.
        """
        pools = {each.pool.name: each.pool for each in found}
        waiting = {(each.pool.name, reason) for each in found for reason in _reasons(each)}
        for name, reason in sorted(waiting):
            if reason == REASON_UNHEALTHY and self._settings.node_repair == IGNORE_BUDGETS:
                continue
            held = holding(snapshot, pools[name], reason)
            if held is not None and not (isinstance(held, NodePoolBudget) and held.going):
                text = blocking_budget_text(held, reason)
                self._ports.recorder.record(events.disruption_blocked("NodePool", name, text))


def _kept_by(breaches: Iterable[Violation]) -> Iterable[tuple[str, str]]:
    """The nodes that stay because their going would break a rule, each with the first breach."""
    found: dict[str, str] = {}
    for breach in breaches:
        for part in breach.parts:
            if part.kind == PartKind.DELETION:
                found.setdefault(part.name, f"Kerf refused its own plan, which broke a rule: {violation_text(breach)}")
    return sorted(found.items())


def _opens_s(snapshot: ClusterSnapshot) -> float:
    """When the next schedule lets budgets open that let no node of their pool go now; infinite where none does."""
    census = Census.of(snapshot)
    times = (
        census.opens_s(pool, reason)
        for pool in snapshot.node_pools
        for reason in (EMPTY, UNDERUTILIZED, REASON_DRIFTED, REASON_UNHEALTHY)
    )
    return min((each for each in times if each is not None and each > snapshot.taken_at_s), default=float("inf"))


def _unprotected_s(snapshot: ClusterSnapshot) -> float:
    """When the next pod may be disrupted that is protected for a time; infinite where none is."""
    return min((until_s for _, until_s in protected(snapshot) if until_s > snapshot.taken_at_s), default=float("inf"))


def _reasons(candidate: Candidate) -> Iterable[str]:
    """The reasons for which the node may go."""
    if candidate.is_quiet and (not candidate.pods or candidate.pool.disruption.policy != WHEN_EMPTY):
        yield UNDERUTILIZED if candidate.pods else EMPTY
    if candidate.drift:
        yield REASON_DRIFTED
    if candidate.unhealthy:
        yield REASON_UNHEALTHY


def _measure(found: Sequence[Candidate], snapshot: ClusterSnapshot) -> None:
    eligible = {
        EMPTY: sum(1 for each in found if each.is_quiet and not each.pods),
        UNDERUTILIZED: sum(1 for each in found if each.is_quiet and each.pods),
        REASON_DRIFTED: sum(1 for each in found if each.drift),
        REASON_UNHEALTHY: sum(1 for each in found if each.unhealthy),
    }
    census = Census.of(snapshot)
    for reason, number in eligible.items():
        DISRUPTION_ELIGIBLE.labels(reason.lower()).set(number)
        for pool in snapshot.node_pools:
            allowed = census.allowed(pool, reason, are_replaced=reason != EMPTY)
            DISRUPTIONS_ALLOWED.labels(pool.name, reason).set(float("inf") if allowed is None else allowed)


def _count(command: Command) -> None:
    """One decision, with the kind of consolidation that it is in Karpenter's words."""
    first = command.deletions[0]
    kinds = {EMPTY: "empty", UNDERUTILIZED: "single" if len(command.deletions) == 1 else "multi"}
    decision = "replace" if command.launches else "delete"
    DISRUPTION_DECISIONS.labels(decision, first.reason.lower(), kinds.get(first.reason, "")).inc()
