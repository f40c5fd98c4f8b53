"""Stand-in for kube-scheduler: which pod is tried when, on which node it lands, and what it learns when on none.

Kerf's plans are true only if the scheduler follows them, so what matters is as in kube-scheduler 1.36: the order of the
queue, the filters with their words (`filters`), the back-off, that a nomination reserves room against pods of no
higher priority, and that a failed attempt clears the nomination of the pod that failed. Of nodes with equal scores the
first by name wins. What a pod asks of nodes, other pods and volumes is read from its own document.

A second profile, `hami-scheduler`, leaves HAMi's resources to HAMi's extender (`sim.hami`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.model.nodes import Node
from kerf.model.pods import DEFAULT_SCHEDULER, HAMI_SCHEDULER, Pod
from kerf.model.snapshot import ResourceQuota
from kerf.model.times import instant_text
from kerf.ports import Clock
from kerf.sharing.hami.records import NODE
from kerf.sim.hami import verdicts as hami
from kerf.sim.kubernetes.api import DELETED, InMemoryApi
from kerf.sim.kubernetes.attempts import Judgement, KnownRefusals, Promised, prepared, verdict
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.filters import EXTENDER, Attempt
from kerf.sim.kubernetes.hints import VOLUME_KINDS
from kerf.sim.kubernetes.preemption import preemption
from kerf.sim.kubernetes.provisioner import bind_volumes
from kerf.sim.kubernetes.queueing import SchedulingQueue, Waiting
from kerf.sim.kubernetes.rooms import Rooms
from kerf.sim.kubernetes.scores import best
from kerf.sim.kubernetes.scoring import ScoringStrategy
from kerf.sim.kubernetes.volumes import VolumeBinding
from kerf.sim.kubernetes.webhook import family_of
from kerf.sim.objects import Json, key_of, with_condition


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a pod learns, which plugins have refused it, and the node where others make room for it."""

    message: str
    refused_by: frozenset[str]
    nominated: str = ""


@dataclass(frozen=True)
class _Refusals:
    """Pods that find no node, until a time."""

    namespace: str
    labels: Mapping[str, str]
    message: str
    until_s: float

    def meets(self, pod: Pod, now_s: float) -> bool:
        """Whether the pod is one of them now."""
        is_meant = pod.namespace == self.namespace and self.labels.items() <= pod.labels.items()
        return is_meant and now_s < self.until_s


class Scheduler:
    """Both profiles, over the in-memory API; both score resources by the same strategy."""

    def __init__(self, api: InMemoryApi, clock: Clock, scoring: ScoringStrategy | None = None) -> None:
        self._api, self._clock, self._scoring = api, clock, scoring or ScoringStrategy()
        self._rooms = Rooms(api)
        self._occupancies, self._refused = hami.Occupancies(), KnownRefusals()
        self._queue = SchedulingQueue(clock, self._soon)
        self._refusals: list[_Refusals] = []
        self._bindings = 0
        self._nominees: list[Pod] = []
        self._booked: list[Pod] = []
        self._is_due = False

    @property
    def api(self) -> InMemoryApi:
        """Where it reads pods and binds them."""
        return self._api

    def refuse(self, namespace: str, labels: Mapping[str, str], message: str, until_s: float) -> None:
        """Take no node for pods with these labels from now, as a plugin or extender would that Kerf does not know."""
        self._refusals.append(_Refusals(namespace, labels, message, until_s))

    def start(self) -> None:
        """Watch pods and nodes from now on."""
        self._api.subscribe(self._on_event)

    # What the API shows.

    def _on_event(self, what: str, obj: Json) -> None:
        if obj["kind"] == "Node":
            self._on_node(what, obj)
        elif obj["kind"] == "Pod":
            self._on_pod(what, obj)
        elif obj["kind"] in ("ResourceQuota", "ConfigMap"):
            self._queue.extender_changed()
        elif obj["kind"] in VOLUME_KINDS:
            self._queue.volume_changed(obj)

    def _on_node(self, what: str, obj: Json) -> None:
        name = obj["metadata"]["name"]
        if what == DELETED:
            self._rooms.drop_node(name)
            self._occupancies.forget(name)
            self._queue.node_left()
            return
        node = decoded(obj)
        assert isinstance(node, Node)
        old = self._rooms.set_node(node)
        if old is None or _what_counts(old) != _what_counts(node):
            self._queue.node_changed(old, node)

    def _on_pod(self, what: str, obj: Json) -> None:
        pod = decoded(obj)
        assert isinstance(pod, Pod)
        if what == DELETED or pod.is_ended:
            self._queue.drop(pod.key)
            if self._rooms.drop(pod.key):
                self._queue.pod_left(pod, obj)
        elif pod.node_name:
            self._queue.drop(pod.key)
            self._put(pod, obj)
        elif pod.deleted_s is not None or pod.spec.scheduler_name not in (DEFAULT_SCHEDULER, HAMI_SCHEDULER):
            self._queue.drop(pod.key)
        elif pod.spec.scheduling_gates:
            self._queue.hold(pod)
        else:
            self._queue.take(pod, obj)

    def _put(self, pod: Pod, raw: Json) -> None:
        before = self._rooms.pod(pod.key)
        self._rooms.put(pod, raw)
        if before is None or before.node_name != pod.node_name:
            self._queue.pod_came(pod)
        elif before.labels != pod.labels:
            # What met a term before may meet it no more, and the other way round.
            self._queue.pod_left(before, raw)
            self._queue.pod_came(pod)

    # When a pod is tried.

    def _soon(self) -> None:
        # One turn later, so all events of this instant are in before the queue is sorted.
        if not self._is_due:
            self._is_due = True
            self._clock.call_at(self._clock.now_s(), self._cycle)

    def _cycle(self) -> None:
        self._is_due = False
        failed: dict[object, _Failure] = {}
        pods = list(self._queue.pods())
        self._nominees = [pod for pod in pods if pod.nominated_node]
        self._booked = [pod for pod in pods if NODE in pod.annotations]
        for waiting in self._queue.due():
            alike = self._alike(waiting)
            failure = failed.get(alike) or self._try(waiting)
            if failure is not None:
                if not failure.nominated:
                    failed[alike] = failure
                self._fail(waiting, failure)

    def _alike(self, waiting: Waiting) -> object:
        """Pods of one value fail alike within one cycle, since binding others only takes room away.

        For those that ask anything of other pods it may also be what they wait for.
        """
        pod = waiting.pod
        marks = (tuple(sorted(pod.annotations.items())), pod.nominated_node, pod.reserved_for)
        related = (waiting.marks, self._bindings) if waiting.marks else None
        # Pods that others keep off have to be known by their labels.
        labels = tuple(sorted(pod.labels.items())) if self._rooms.related or self._refusals else ()
        return id(pod.spec), pod.namespace, waiting.wanted, marks, related, labels

    # One attempt.

    def _try(self, waiting: Waiting) -> _Failure | None:
        """Bind the pod, or say why not; None when it is bound, or gone."""
        pod = waiting.pod
        raw = self._api.get("Pod", pod.namespace, pod.name)
        if raw is None:
            return None
        if raw["spec"].get("nodeName"):
            # An older event may come after that of the binding; kube-scheduler skips such a pod, too.
            self._queue.drop(pod.key)
            return None
        is_hami = pod.spec.scheduler_name == HAMI_SCHEDULER
        config = family_of(self._api).config if is_hami else None
        ignored = frozenset() if config is None else config.slice_resources | {config.count}
        attempt = prepared(pod, raw, self._rooms, ignored)
        promised = self._promised(pod)
        found = self._after_refusals(pod, verdict(attempt, self._rooms, promised, self._refused))
        if is_hami and found.feasible:
            assert isinstance(attempt, Attempt)
            return self._try_hami(waiting, attempt, found)
        if isinstance(attempt, Attempt) and found.feasible:
            nominated = [room for room in found.feasible if room.node.name == pod.nominated_node]
            room = (nominated or [best(attempt, raw, found.feasible, self._rooms, self._scoring)])[0]
            self._bind_volumes(attempt, room.node.name)
            self._bind(waiting, room.node.name)
            return None
        is_meek = is_hami or raw["spec"].get("preemptionPolicy") == "Never"
        node = "" if is_meek or not isinstance(attempt, Attempt) else self._preempt(attempt, found, promised)
        return self._failure(found, node)

    def _after_refusals(self, pod: Pod, found: Judgement) -> Judgement:
        for each in self._refusals:
            if each.meets(pod, self._clock.now_s()) and found.feasible:
                reasons = found.reasons + Counter({each.message: len(found.feasible)})
                return Judgement(reasons=reasons, refused_by=found.refused_by | {EXTENDER})
        return found

    def _try_hami(self, waiting: Waiting, attempt: Attempt, found: Judgement) -> _Failure | None:
        """What HAMi's extender makes of the nodes that can take the pod; None when it is bound."""
        asked = self._ask_hami(waiting.pod, [room.node for room in found.feasible])
        if asked.node:
            self._bind_volumes(attempt, asked.node)
            self._bind(waiting, asked.node, asked)
            return None
        if asked.error:
            return self._failure(Judgement(reasons=Counter(asked.reasons.values())))
        if not asked.passes:
            reasons = found.reasons + Counter(asked.reasons.values())
            return self._failure(Judgement(reasons=reasons, refused_by=found.refused_by | {EXTENDER}))
        node = best(attempt, waiting.raw, found.feasible, self._rooms, self._scoring).node.name
        self._bind_volumes(attempt, node)
        self._bind(waiting, node)
        return None

    def _bind_volumes(self, attempt: Attempt, node: str) -> None:
        for each in attempt.others:
            if isinstance(each, VolumeBinding):
                bind_volumes(self._api, each, self._rooms.by_name[node])

    def _preempt(self, attempt: Attempt, refused: Judgement, promised: Promised) -> str:
        """Delete pods of lower priority where that gives the pod a place; the node, empty where it does not."""
        found = preemption(attempt, refused.open, promised)
        if found is None:
            return ""
        for victim in found.victims:
            self._api.preempt(victim.namespace, victim.name)
            self._place_ending(victim)
        return found.node

    def _place_ending(self, victim: Pod) -> None:
        # What the watch will tell: the next attempt of this cycle must not choose it again.
        room = self._rooms.by_name.get(victim.node_name)
        if room is not None:
            room.put(replace(victim, deleted_s=self._clock.now_s()))

    def _promised(self, pod: Pod) -> dict[str, list[Pod]]:
        """By node, the other pods that are nominated there and that this one may not displace.

        Each profile is a scheduler of its own, as in HAMi's chart, and knows nothing of the other's pods.
        """
        promised: dict[str, list[Pod]] = {}
        for other in self._nominees:
            is_ours = other.key != pod.key and other.spec.scheduler_name == pod.spec.scheduler_name
            if is_ours and other.spec.priority >= pod.spec.priority:
                promised.setdefault(other.nominated_node, []).append(other)
        return promised

    def _ask_hami(self, pod: Pod, nodes: Sequence[Node]) -> hami.Verdict:
        holders = {node.name: self._rooms.by_name[node.name].listed() for node in nodes}
        for other in self._booked:
            booked = other.annotations[NODE]
            if booked in holders:
                holders[booked] = (*holders[booked], other)
        quotas = [q for raw in self._api.list("ResourceQuota") if isinstance(q := decoded(raw), ResourceQuota)]
        family = family_of(self._api)
        return hami.filter_nodes(family, pod, nodes, holders, quotas, self._clock.now_s(), self._occupancies)

    def _bind(self, waiting: Waiting, node: str, verdict: hami.Verdict | None = None) -> None:
        pod = waiting.pod
        if verdict is not None:
            self._api.patch("Pod", pod.namespace, pod.name, hami.record_patch(verdict))
            self._api.patch("Pod", pod.namespace, pod.name, hami.bind_patch(self._clock.now_s()))
            pod = replace(pod, annotations={**pod.annotations, **verdict.annotations})
        self._api.bind(pod.namespace, pod.name, node)
        self._queue.bound(pod.key)
        self._bindings += 1
        self._nominees = [other for other in self._nominees if other.key != pod.key]
        self._booked = [other for other in self._booked if other.key != pod.key]
        self._put(replace(pod, node_name=node, nominated_node=""), waiting.raw)

    def _failure(self, found: Judgement, nominated: str = "") -> _Failure:
        said = found.message(len(self._rooms)) if len(self._rooms) else "no nodes available to schedule pods"
        return _Failure(said, found.refused_by, nominated)

    def _fail(self, waiting: Waiting, failure: _Failure) -> None:
        self._nominees = [other for other in self._nominees if other.key != waiting.pod.key]
        self._queue.fail(waiting, failure.refused_by)
        pod = self._api.get("Pod", waiting.pod.namespace, waiting.pod.name)
        if pod is None:
            return
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": failure.message}
        conditions = with_condition(pod, condition, instant_text(self._clock.now_s()))
        status = {"conditions": conditions, "nominatedNodeName": failure.nominated or None}
        _, namespace, name = key_of(pod)
        self._api.patch("Pod", namespace, name, {"status": status}, subresource="status")


def _what_counts(node: Node) -> tuple[object, ...]:
    return node.labels, node.annotations, node.taints, node.allocatable, node.is_unschedulable, node.is_ready
