"""Batch window, then plan, then act.

A pod counts once kube-scheduler (or HAMi's) has said that it fits nowhere. The window is Karpenter's: it closes one
second after the last new pod, at the latest ten after the first. But pods that go on coming in one namespace keep those
of another waiting no longer (`_Window`). Pods whose node the cloud takes back do not wait.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from kerf.cloudprovider import InterruptionKind
from kerf.config import Settings
from kerf.controllers.actuator import Acts
from kerf.controllers.deciding import Takers, still_holds
from kerf.controllers.elapsed import passed_s
from kerf.controllers.lastline import LastLine, checked_decision
from kerf.controllers.lastword import Expectations
from kerf.controllers.market import MarketBook
from kerf.controllers.moves import SUCCEEDS_S
from kerf.controllers.options import options_of
from kerf.controllers.outsized import Outsized
from kerf.controllers.portions import Portions
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.buy.floors import lacking
from kerf.engine.decision import Decision
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.explain.limits import pools_at_their_limit
from kerf.engine.explain.plan import explain
from kerf.engine.headroom.prewarm import prewarmed
from kerf.engine.lastword import resumed_at
from kerf.engine.leaving import leaving_pods, next_leaving_s
from kerf.engine.place.shapes import queue_order
from kerf.engine.portion import Portion, weight_in_pass
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model import events
from kerf.model.capacitybuffers import CapacityBuffer
from kerf.model.causes import RoomLimited
from kerf.model.cronjobs import CronJob
from kerf.model.groups import PodGroup
from kerf.model.market import Market
from kerf.model.nodeclaim import DISRUPTION_REASON, INITIALIZED, NodeClaim
from kerf.model.nodepool import UNDERUTILIZED, NodePool, is_read_alike
from kerf.model.nodes import Node
from kerf.model.placeholders import Keeper, Placeholder, is_virtual
from kerf.model.plan import Plan, Stage, Unplaced
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import PodTemplate, ProvisioningRequest
from kerf.model.snapshot import ClusterNode, Deleted, Event, Synced, Watched
from kerf.model.windows import OPEN, WARMING, CapacityWindow
from kerf.state import ClusterState
from kerf.telemetry import UNPLACED_PODS

_WAITING, _EXPLAINING = "pods", "why"
"""The keys."""
_INTERRUPTIONS = frozenset(InterruptionKind)
Runs = tuple[tuple[str, float], ...]
"""Runs of CronJobs, by `namespace/name` and the instant at which they are due."""


@dataclass
class _Window:
    """When the pods of the present batch came (`passed_s`); lost at a restart, which only opens another window.

    `first_s` and `last_s` are those of each namespace. The first pod of another namespace keeps all waiting for what
    comes with it; those that follow keep their own namespace waiting, and no other: one that goes on and on would else
    keep everybody waiting as long as a batch may.
    """

    pods: set[str] = field(default_factory=set)
    first_s: dict[str, float] = field(default_factory=dict)
    last_s: dict[str, float] = field(default_factory=dict)

    def add(self, pods: Iterable[Pod], passed: float) -> None:
        """Note those that are new."""
        for pod in pods:
            if pod.uid not in self.pods:
                self.pods.add(pod.uid)
                self.first_s.setdefault(pod.namespace, passed)
                self.last_s[pod.namespace] = passed

    def closes_s(self, idle_s: float, max_s: float) -> float:
        """When the first of the namespaces need not wait any longer; long ago where no pods came."""
        if not self.last_s:
            return -inf
        begun = max(self.first_s.values())
        return min(max(begun, min(self.last_s.values())) + idle_s, min(self.first_s.values()) + max_s)


class Provisioning:
    """Buys nodes for pods that fit nowhere."""

    name = "provisioning"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, actuator: Acts, settings: Settings) -> None:
        self._state, self._ports, self._book, self._actuator, self._settings = state, ports, book, actuator, settings
        self.expectations = Expectations(state)
        self._window = _Window()
        # What the last plan was made from: while that is unchanged, so is the plan.
        self._planned: tuple[int, Market, Runs, tuple[str, ...], frozenset[str]] | None = None
        # When pods of a run, or of a node that goes, begin or cease to count though nothing changes.
        self._turns_s = inf
        self._waits_for_windows = self._seeks_room = False
        self._portions = Portions(state, settings)
        self._last_line = LastLine(self.name, ports.feed)
        self._outsized = Outsized(state, settings.settled_s)
        # The uids of pods that had their turn while others were left for a later pass.
        self._tried: frozenset[str] = frozenset()
        # Claims that the cloud ends and whose pods were planned for: what is evicted of them comes back as a batch.
        self._replaced: frozenset[str] = frozenset()
        # How many decisions in a row did not hold.
        self._dropped = 0
        # What the last decision has left to the next; lost at a restart, which only makes one decision slower.
        self._kept = WarmStart()
        # When this life began to decide.
        self._began_s: float | None = None
        # The last decision; None once nothing waits.
        self._decision: Decision | None = None
        # What plans depend on of each window, as last reported.
        self._turned: dict[str, tuple[object, ...]] = {}

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key for all pods that wait, pools that change, claims that go."""
        if isinstance(event, Synced):
            return (_WAITING,)
        value = event.value
        if isinstance(value, Pod):
            was_waiting = isinstance(previous, Pod) and is_provisionable(previous) and not previous.nominated_to
            is_new = is_provisionable(value) and not value.nominated_to and not was_waiting
            is_room = _moved(event, value, previous) and (self._seeks_room or self._keeps_warm() or self._buffers())
            return (_WAITING,) if is_new or is_room else ()
        if isinstance(value, NodeClaim):
            # A claim that goes takes the places of the pods it was bought for along; one that is up has room.
            is_up = self._seeks_room and value.is_true(INITIALIZED)
            return (_WAITING,) if value.is_deleting or isinstance(event, Deleted) or is_up else ()
        if isinstance(value, Node):
            # Its nominees have lost their room.
            return (_WAITING,) if isinstance(event, Deleted) and self._state.is_any_nominated_to(value.name) else ()
        if isinstance(value, CronJob | PodGroup | PodTemplate | ProvisioningRequest):
            return (_WAITING,)
        if isinstance(value, CapacityBuffer):
            # What is written of it ourselves is no news.
            is_same = isinstance(previous, CapacityBuffer) and previous.asks_as(value)
            return () if is_same and not isinstance(event, Deleted) else (_WAITING,)
        if isinstance(value, CapacityWindow):
            return (_WAITING,) if self._is_turned(event, value) else ()
        if not isinstance(value, NodePool) or (isinstance(previous, NodePool) and is_read_alike(value, previous)):
            return ()
        return (_WAITING,)

    async def reconcile(self, key: str) -> Result:
        """Decide for all waiting pods once the window has closed and act; then, as a key of its own, explain it."""
        if key == _EXPLAINING:
            return await self._explain()
        now = self._ports.clock.now_s()
        waiting = tuple(pod for pod in self._state.pending() if is_provisionable(pod))
        present = self._state.snapshot(now, ())
        going = leaving_pods(present)
        leaving, interrupted = tuple(pod for pod, _ in going), _interrupted(going)
        runs, self._turns_s = self._runs(now, next_leaving_s(present))
        is_asked = self._keeps_warm() or self._books() or self._buffers() or bool(self._lacking())
        if not waiting and not leaving and not runs and not is_asked:
            self._window, self._decision, self._tried = _Window(), None, frozenset()
            _measure(())
            await self._tell_limits({})
            return self._at_turn(DONE, now)
        # Waits of our own are counted by a clock that is never set: set back, it would keep pods waiting for as long.
        passed = passed_s()
        if not leaving and not runs and not is_asked and self._outsized.are_all(waiting, passed):
            self._window = _Window()
            return self._at_turn(Result(self._settings.replan_s), now)
        self._began_s = passed if self._began_s is None else self._began_s
        if self._buffers() and not waiting and not leaving and passed < self._began_s + self._settings.batch_idle_s:
            # What an earlier life has left half done is put right first: a node that it has closed has room again.
            return Result(self._began_s + self._settings.batch_idle_s - passed)
        still_open_s = self._still_open_s((*waiting, *leaving), passed)
        if still_open_s > 0 and interrupted <= self._replaced:
            return Result(still_open_s)
        part = self._portions.of(waiting, self._tried)
        # Before anything is launched: what this pass buys for is promised afterwards.
        is_going_on = self._takes_turns(part)
        snapshot = self._state.snapshot(now, part.pods)
        market = await self._book.market(snapshot)
        made_from = (snapshot.version, market, runs, resumed_at(waiting, now), frozenset(pod.key for pod in leaving))
        if self._planned == made_from:
            self._window = _Window()
            return self._at_turn(self._again(), now)
        options = options_of(self._settings, follows=True)
        world = World(snapshot, market, kept=self._kept)
        checked = await self._ports.deciding.run(partial(checked_decision, world, options))
        decision = checked.decision
        self._kept = decision.kept or self._kept
        self._last_line.note(world, checked.violations)
        if not still_holds(decision, self._state, self._dropped):
            # Decide again at once, from what is there now.
            self._dropped += 1
            return Result(self._settings.batch_idle_s)
        self._dropped, self._window, self._replaced = 0, _Window(), interrupted
        self._ports.feed.launching(decision.launches)
        self._judge_moves(decision, (*_young(waiting, now), *_moving(going)))
        await self._actuator.launch(decision)
        await self._actuator.open(decision)
        # Only now: a decision that could not be carried out is to be made again.
        # What waits for its pool's pace comes with time alone.
        self._planned = None if decision.is_paced or part.left else made_from
        # What a buffer names to be scaled is asked for, not followed.
        self._waits_for_windows = _is_only_held(decision) and not decision.unmet_floors and not self._buffers()
        self._seeks_room = decision.seeks_room
        self._decision = decision
        self._outsized.note(decision, passed_s())
        self.expectations.expect(decision, now)
        again = Result(self._settings.batch_idle_s) if is_going_on else self._again()
        return replace(self._at_turn(again, now), then=(_EXPLAINING,))

    def _takes_turns(self, part: Portion) -> bool:
        """Note which pods have their turn, and tell the others; whether the next pass is to come at once."""
        fresh = (pod for pod in part.pods if pod.uid not in self._tried and not self._portions.is_promised(pod))
        is_going_on = bool(part.left) and any(True for _ in fresh)
        waiting = {pod.uid for pod in (*part.pods, *part.left)}
        tried = (self._tried | {pod.uid for pod in part.pods}) & waiting
        # Once all have had their turn they come in the order of the queue again.
        self._tried = frozenset() if tried == waiting or not part.left else frozenset(tried)
        left: dict[str, list[Pod]] = {}
        for pod in part.left:
            left.setdefault(pod.namespace, []).append(pod)
        for pods in left.values():
            first, most = min(pods, key=queue_order), self._settings.most_shapes
            self._ports.recorder.record(events.left_for_later(first.key, len(pods) - 1, most, weight_in_pass(first)))
        return is_going_on

    async def _explain(self) -> Result:
        """Say why the last decision is as it is; nothing of one that another has followed meanwhile.

        The next decision does not wait for hints: once it is asked for, the rest of them is left untried.
        """
        decision = self._decision
        if decision is None:
            return DONE
        deciding = self._ports.deciding
        tries = Tries(is_wanted=lambda: not deciding.is_awaited())
        plan = await deciding.run(partial(explain, decision, tries), is_urgent=False)
        if decision is not self._decision:
            return DONE
        snapshot = decision.world.snapshot
        _measure(plan.unplaced)
        self._ports.feed.publish(snapshot, plan)
        self._tell(plan, decision)
        await self._tell_limits(pools_at_their_limit(plan))
        return DONE

    def _again(self) -> Result:
        """Soon where something waits; what windows hold waits for one to change, which a watch shows."""
        return DONE if self._waits_for_windows else Result(self._settings.replan_s)

    def _at_turn(self, result: Result, now_s: float) -> Result:
        """The same, or as soon as pods of a run, or held ones of a node that goes, begin or cease to count."""
        if self._turns_s == inf:
            return result
        left_s = max(0.0, self._turns_s - now_s)
        return Result(left_s if result.requeue_after_s is None else min(left_s, result.requeue_after_s))

    def _runs(self, now_s: float, others_s: float) -> tuple[Runs, float]:
        """The runs of CronJobs whose pods count now, and when that changes next, or what changes at `others_s`."""
        cron_jobs = self._state.cron_jobs()
        known = prewarmed(cron_jobs, self._state.pools(), self._state.claims()) if cron_jobs else ()
        turns = [turn_s for each in known if (turn_s := each.next_change_s(now_s)) is not None]
        runs = tuple((each.cron_job.key, due_s) for each in known if (due_s := each.run_at(now_s)) is not None)
        return runs, min([*turns, others_s])

    def _is_turned(self, event: Event, window: CapacityWindow) -> bool:
        """Whether a window has come or gone, was changed, or has another phase or other reservations.

        What we wrote ourselves is in the state before the watch shows it, so `previous` would hide it.
        """
        before = self._turned.pop(window.name, None)
        if isinstance(event, Deleted):
            return True
        status = window.status
        self._turned[window.name] = (window.uid, window.generation, status.phase, status.settled, status.reservations)
        return self._turned[window.name] != before

    def _keeps_warm(self) -> bool:
        return any(window.warm and window.status.phase in (WARMING, OPEN) for window in self._state.windows())

    def _books(self) -> bool:
        return any(each.is_ours and not each.is_over for each in self._state.provisioning_requests())

    def _buffers(self) -> bool:
        return any(each.is_kept for each in self._state.capacity_buffers())

    def _lacking(self) -> Mapping[str, tuple[int, int]]:
        """Pools with fewer nodes than their floors; a floor buys without a pod that waits."""
        return lacking(self._state.pools(), self._state.claims())

    def _judge_moves(self, decision: Decision, moved: Iterable[Pod]) -> None:
        """What is bought for pods that may have been moved is held against what their move saves."""
        pods = {pod.key: pod for pod in moved}
        self._book.let_stay(self._book.moves.failed_by(decision.launches, pods))

    def _still_open_s(self, waiting: Iterable[Pod], passed: float) -> float:
        self._window.add(waiting, passed)
        closes = self._window.closes_s(self._settings.batch_idle_s, self._settings.batch_max_s)
        return closes - passed

    def _tell(self, plan: Plan, decision: Decision) -> None:
        snapshot = decision.world.snapshot
        named = {node.name: _shown(node) for node in snapshot.nodes}
        # The plan was explained meanwhile; a place that has gone is not promised, and the next plan finds one.
        takers = Takers(decision, self._state)
        takes = {node: takers.takes(node) for node in {placement.node for placement in plan.placements}}
        for placement in plan.placements:
            if is_virtual(placement.pod.pod) or not takes[placement.node] or not self._still_waits(placement.pod.pod):
                continue
            target = named.get(placement.node, f"node/{placement.node}")
            self._ports.recorder.record(events.nominated(placement.pod.pod, target))
        for pool, why in plan.unmet_floors:
            self._ports.recorder.record(events.floor_unmet(pool, why))
        for note in decision.notes:
            if isinstance(note, RoomLimited) and note.kept.keeper != Keeper.BUFFER:
                self._ports.recorder.record(_limited(note))
        for unplaced in plan.unplaced:
            occurrence = _occurrence(unplaced)
            if occurrence is not None and self._still_waits(unplaced.pod):
                self._ports.recorder.record(occurrence)

    def _still_waits(self, key: str) -> bool:
        """Whether an event about a pod is still true: a scheduler may have bound it while the plan was explained."""
        held = self._state.pod(key)
        return is_virtual(key) or (held is not None and held.is_pending)

    async def _tell_limits(self, reached: Mapping[str, str]) -> None:
        for pool in self._state.pools():
            await self._actuator.tell_limit(pool, reached.get(pool.name, ""))


def _shown(node: ClusterNode) -> str:
    """What an event calls the place of a pod: the claim until its node is up, so the pod gets one event for both."""
    if node.claim is not None and not node.is_initialized:
        return f"nodeclaim/{node.claim.name}"
    return f"node/{node.name}"


def _limited(note: RoomLimited) -> events.Occurrence:
    """The event on a CronJob or a window that has room kept for fewer pods than it asks for."""
    tell = events.prewarm_unplaced if note.kept.keeper == Keeper.RUN else events.warm_unplaced
    return tell(note.kept.name, cause_text(note))


def _occurrence(unplaced: Unplaced) -> events.Occurrence | None:
    """The event on a pod without a place, or on what keeps its room; None where conditions say it already."""
    kept = Placeholder.of(unplaced.pod)
    if kept is not None and kept.keeper in (Keeper.REQUEST, Keeper.CHECK, Keeper.BUFFER):
        return None
    if kept is not None:
        is_run = kept.keeper == Keeper.RUN
        tell = events.prewarm_unplaced if is_run else events.warm_unplaced
        return tell(kept.name, unplaced.reason)
    if unplaced.stage == Stage.WINDOWS:
        return events.held(unplaced.pod, unplaced.reason, unplaced.cause)
    hint = f"; {unplaced.hint}" if unplaced.hint else ""
    return events.failed_scheduling(unplaced.pod, unplaced.reason + hint, unplaced.innermost)


def is_provisionable(pod: Pod) -> bool:
    """Whether nodes may be bought for it: its scheduler has refused it, and no DaemonSet owns it.

    Ask it of pods that wait: one that is nominated to a node which is there has its room (`ClusterState.pending`).
    """
    return pod.is_pending and bool(pod.unschedulable) and not pod.is_daemon


def _young(waiting: Iterable[Pod], now_s: float) -> Iterable[Pod]:
    """Those that may have come in the place of pods which were just evicted."""
    return (pod for pod in waiting if now_s - pod.created_s < SUCCEEDS_S)


def _moving(going: Iterable[tuple[Pod, ClusterNode]]) -> Iterable[Pod]:
    """The pods of nodes that go to save money, while they wait to be evicted: others have taken the places they had."""
    for pod, node in going:
        why = node.claim.condition(DISRUPTION_REASON) if node.claim is not None else None
        if why is not None and why.reason == UNDERUTILIZED and node.claim is not None and node.claim.is_deleting:
            yield pod


def _interrupted(going: Iterable[tuple[Pod, ClusterNode]]) -> frozenset[str]:
    """The claims among the nodes that go which go because the cloud ends their instances."""
    claims = {node.claim.name: node.claim for _, node in going if node.claim is not None}
    held = ((name, claim.condition(DISRUPTION_REASON)) for name, claim in claims.items())
    return frozenset(name for name, why in held if why is not None and why.reason in _INTERRUPTIONS)


def _measure(unplaced: Iterable[Unplaced]) -> None:
    UNPLACED_PODS.clear()
    for stage, number in Counter(each.stage for each in unplaced).items():
        UNPLACED_PODS.labels(stage).set(number)


def _moved(event: Event, pod: Pod, previous: Watched | None) -> bool:
    """Whether a pod has come to a node or left it."""
    held = isinstance(previous, Pod) and bool(previous.node_name) and not previous.is_ended
    holds = bool(pod.node_name) and not pod.is_ended and not isinstance(event, Deleted)
    return held != holds


def _is_only_held(decision: Decision) -> bool:
    """Whether nothing waits except for windows: all else has its place, or is room that they keep.

    What was just bought is looked at once more: a claim of its name may have been there already.
    """
    if decision.launches:
        return False
    placed = [placement.pod.pod for placement in decision.placements]
    return all(map(is_virtual, placed)) and all(each.stage == Stage.WINDOWS for each in decision.refusals)
