"""Takes a scheduler at its word: a pod that it refuses twice on the node that is planned for it is planned for no more.

"Twice" is what the API shows of attempts, and that is little. kube-scheduler writes the condition `PodScheduled` when
its message changes, and nothing when it says the same again: neither `lastTransitionTime` (the status stays False) nor
`lastProbeTime` (never set). Events of type FailedScheduling are counted up at most once in some minutes, dropped under
load, and may be Kerf's own. So two things are relied on. A message that changes is an attempt. And kube-scheduler
tries each pod again at least every five minutes, which it looks at each thirty seconds, whatever happens
(`podMaxInUnschedulablePodsDuration`): after twice that time it has tried twice. While no scheduler runs at all this is
wrong. Then the pod waits longer for its next node by one pause, and its scheduler binds it to the one that is there as
soon as it is back.

Kerf writes no condition of a pod, so its own words are never taken for the scheduler's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.decision import Decision
from kerf.engine.explain.causes import cause_text
from kerf.model import events
from kerf.model.groups import group_of
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.pods import Pod
from kerf.model.promises import read
from kerf.model.rejections import (
    FREE_TRIES,
    REJECTED,
    BoughtInVain,
    Rejection,
    Workload,
    asked_by,
    rejection_of,
    workload_of,
    written,
)
from kerf.model.snapshot import ClusterNode, Deleted, Event, Synced, Watched
from kerf.ports import Conflict, NotFound
from kerf.sharing.hami.pinning import is_pinned
from kerf.state import ClusterState

_TWO_ATTEMPTS_S = 2 * (300 + 30)
"""After so long any pod was tried twice."""
_AGAIN_S = 30.0
_FORGOTTEN_S = 86_400.0
_LONGER = 12
"""A pause may be so many times as long as that of a type that fails: stock comes back, and a refusal stays as it is."""
_ALL = "pods"


@dataclass
class _Expected:
    """Where a pod is to go, from when its scheduler can know of it, and how often it has said something else since."""

    node: str
    since_s: float
    attempts: int = 0
    lacks: str = ""
    """What the node lacks that was bought for it; empty where it has room."""


@dataclass(frozen=True, slots=True)
class _Tries:
    """How often the pods of a workload were rejected, and what holds for them now. A restart reads it off the pods."""

    times: int
    last: Rejection


class Expectations:
    """Where the last decision puts pods on nodes that are up, and since when it does.

    Lost at a restart. Of a node that was bought for the pod the claim says since when it is up; for others the time
    begins again.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._held: dict[str, _Expected] = {}

    def expect(self, decision: Decision, now_s: float) -> None:
        """Take note of a decision.

        A node from which others must go first takes no pod yet, and a group waits for the last node of its pods. Of a
        node that was bought for a pod and cannot hold it nothing is expected: that is noted.
        """
        busy = {eviction.node for eviction in decision.evictions}
        snapshot, held = decision.world.snapshot, self._held
        there = {each.pod.pod: node for each in decision.placements if (node := snapshot.node(each.node)) is not None}
        up = {key: node for key, node in there.items() if _is_up(node) and node.name not in busy}
        late = {group_of(pod) for pod in decision.pending if pod.key not in up} - {None}
        self._held = {}
        for pod in decision.pending:
            node = up.get(pod.key)
            if node is None or not _is_free(pod) or group_of(pod) in late:
                continue
            before = held.get(pod.uid)
            is_same = before is not None and before.node == node.name and not before.lacks
            self._held[pod.uid] = before if before and is_same else _Expected(node.name, _since_s(pod, node, now_s))

        for refusal in decision.refusals:
            cause = refusal.innermost.cause
            if isinstance(cause, BoughtInVain):
                self._note_in_vain(refusal.pods, cause, snapshot.node(cause.node), held, now_s)

    def _note_in_vain(
        self,
        pods: Sequence[Pod],
        cause: BoughtInVain,
        node: ClusterNode | None,
        held: Mapping[str, _Expected],
        now_s: float,
    ) -> None:
        if node is None or node.claim is None or not _is_up(node):
            return
        promised = read(node.claim.annotations).pods
        for pod in pods:
            if pod.key in promised and not pod.spec.scheduling_gates:
                before = held.get(pod.uid)
                is_same = before is not None and before.node == node.name and bool(before.lacks)
                since_s = before.since_s if before is not None and is_same else now_s
                self._held[pod.uid] = _Expected(node.name, since_s, lacks=cause_text(cause.lacks))

    def attempted(self, pod: Pod) -> None:
        """The scheduler has said something else of the pod."""
        held = self._held.get(pod.uid)
        if held is not None:
            held.attempts += 1

    @property
    def are_in_vain(self) -> bool:
        """Whether a node cannot hold a pod that it was bought for."""
        return any(each.lacks for each in self._held.values())

    def of(self, pod: Pod) -> _Expected | None:
        """What is expected of a pod; None for nothing."""
        return self._held.get(pod.uid)


def _is_up(node: ClusterNode) -> bool:
    return node.node is not None and node.is_initialized


def _is_free(pod: Pod) -> bool:
    """Whether Kerf itself does not keep the pod off: no gate, no pin on a card; it has a right to its place."""
    return not pod.is_opportunistic and not pod.spec.scheduling_gates and not is_pinned(pod)


def _since_s(pod: Pod, node: ClusterNode, now_s: float) -> float:
    """When the node was up for the pod: what was bought for it, once it initialised; any other from now on."""
    claim = node.claim
    if claim is None or REJECTED in pod.annotations or pod.key not in read(claim.annotations).pods:
        return now_s
    ready = claim.condition(INITIALIZED)
    return max(ready.since_s if ready is not None else now_s, pod.created_s)


class LastWord:
    """One key: all pods that are expected somewhere; and each bound pod that bears our note."""

    name = "last-word"

    def __init__(self, state: ClusterState, ports: Ports, expectations: Expectations, settings: Settings) -> None:
        self._state, self._ports, self._expectations, self._settings = state, ports, expectations, settings
        self._tries: dict[Workload, _Tries] = {}

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Pods of which a scheduler says something new, and those that have come to a node with our note."""
        if isinstance(event, Synced):
            return (_ALL,)
        pod = event.value
        if isinstance(pod, NodeClaim):
            # What is known of it goes with it.
            return (_ALL,) if pod.is_deleting and self._expectations.are_in_vain else ()
        if not isinstance(pod, Pod) or isinstance(event, Deleted):
            return ()
        if pod.node_name:
            return (pod.key,) if REJECTED in pod.annotations and workload_of(pod) in self._tries else ()
        said = previous.unschedulable if isinstance(previous, Pod) and previous.uid == pod.uid else ""
        if not pod.unschedulable or pod.unschedulable == said:
            return ()
        self._expectations.attempted(pod)
        return (_ALL,)

    async def reconcile(self, key: str) -> Result:
        """Note what has been refused long enough; forget how often once a pod has its place."""
        if key != _ALL:
            return self._bound(key)
        now_s = self._ports.clock.now_s()
        waiting = [pod for pod in self._state.pending() if pod.unschedulable]
        for pod in waiting:
            expected = self._expectations.of(pod)
            if expected is not None and self._is_refused(expected, now_s):
                await self._reject(pod, expected, now_s)
            elif REJECTED in pod.annotations and (held := rejection_of(pod)) is not None:
                await self._renew(pod, held, now_s)
            elif self._tries:
                await self._inherit(pod, now_s)
        return Result(_AGAIN_S) if waiting else DONE

    def _is_refused(self, expected: _Expected, now_s: float) -> bool:
        """Whether the scheduler has tried twice; an attempt may have begun before the node was there for it."""
        waited_s = now_s - expected.since_s
        if expected.lacks:
            # It may still come: some labels and taints are set by others soon after a node is up.
            node = self._state.cluster_node(expected.node)
            return waited_s >= _AGAIN_S or node is None or node.is_deleting
        is_said = expected.attempts >= 2 and waited_s >= self._settings.pin_deadline_s
        return is_said or waited_s >= _TWO_ATTEMPTS_S

    async def _reject(self, pod: Pod, expected: _Expected, now_s: float) -> None:
        node = self._state.cluster_node(expected.node)
        is_there = node is not None and not node.is_deleting
        if (not is_there and not expected.lacks) or pod.nominated_node:
            return
        before, workload = rejection_of(pod), workload_of(pod)
        tries = self._tries.get(workload)
        if tries is not None and now_s >= tries.last.at_s + max(
            _FORGOTTEN_S, 2 * _LONGER * self._settings.back_off_most_s
        ):
            tries = None
        known = max(before.times if before is not None else 0, tries.times if tries is not None else 0)
        if tries is not None and now_s < tries.last.again_s:
            # Of one wave: each of a hundred equal pods must not double the pause.
            times, again_s = tries.times, tries.last.again_s
        else:
            times, again_s = known + 1, now_s + self._pause_s(known)
        claim = node.claim if node is not None else None
        pools = {claim.node_pool} if claim is not None else set()
        generations = tuple((p.name, p.generation) for p in self._state.pools() if p.name in pools)
        nodes = tuple(dict.fromkeys((*(before.nodes if before is not None else ()), expected.node)))
        said = pod.unschedulable
        made = Rejection(
            pod.uid, asked_by(pod), said, nodes, generations, times, int(now_s), int(again_s), expected.lacks
        )
        self._tries[workload] = _Tries(times, made)
        if await self._note(pod, made):
            self._ports.recorder.record(
                events.rejected(
                    pod.key, pod.spec.scheduler_name, expected.node, said, made.retry_s(pod), expected.lacks, times
                )
            )
            if claim is not None:
                self._ports.recorder.record(events.not_used(claim.name, pod.key, pod.spec.scheduler_name, said))
        await self._extend(workload, made)

    async def _extend(self, workload: Workload, made: Rejection) -> None:
        """The others of the workload that were rejected before wait as long: one pod is tried for all of them."""
        for pod in self._state.pending():
            held = rejection_of(pod) if REJECTED in pod.annotations else None
            if held is None or pod.uid == made.uid or held.again_s >= made.again_s or workload_of(pod) != workload:
                continue
            await self._note(pod, replace(held, times=made.times, again_s=made.again_s))

    async def _renew(self, pod: Pod, held: Rejection, now_s: float) -> None:
        """The pause is over, and the scheduler still says that the pod itself lacks something.

        It counts as another rejection where a node was bought meanwhile. That is so in a cluster without nodes, whose
        scheduler looks at a pod only once there is one.
        """
        if now_s < held.again_s or not held.is_named(pod):
            return
        times = held.times + bool(self._state.claims_for(pod.key))
        again_s = int(now_s + self._pause_s(times - 1))
        made = replace(held, said=pod.unschedulable, times=times, at_s=int(now_s), again_s=again_s)
        self._tries[workload_of(pod)] = _Tries(times, made)
        await self._note(pod, made)

    def _pause_s(self, known: int) -> float:
        """How long nothing is planned after so many earlier rejections."""
        return min(self._settings.back_off_s * float(2 ** min(known, 30)), _LONGER * self._settings.back_off_most_s)

    async def _inherit(self, pod: Pod, now_s: float) -> None:
        """A workload that was rejected many times gets no further try by making its pods again, or changing them."""
        tries = self._tries.get(workload_of(pod))
        if tries is None or tries.times < FREE_TRIES or now_s >= tries.last.again_s:
            return
        await self._note(pod, replace(tries.last, uid=pod.uid, asked=asked_by(pod)))

    async def _note(self, pod: Pod, made: Rejection) -> bool:
        try:
            await self._ports.writer.annotate_pod(pod, written(made))
        except (Conflict, NotFound):
            # The pod is gone, or another by now.
            return False
        return True

    def _bound(self, key: str) -> Result:
        """A pod has its place after all: its workload begins again. The note stays: consolidation reads it."""
        pod = self._state.pod(key)
        if pod is not None and pod.node_name and REJECTED in pod.annotations:
            self._tries.pop(workload_of(pod), None)
        return DONE
