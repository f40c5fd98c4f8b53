"""Stand-in for kube-scheduler: which pod is tried when, on which node it lands, and what it is told when on none.

Kerf's plans are true only if the scheduler follows them, so what matters is as in kube-scheduler 1.36: the order of the
queue, the filters with their words (`filters`), the back-off, that a nomination reserves room against pods of no
higher priority, and that a failed attempt clears the nomination of the pod that failed. Of the scores those are here
that decide between nodes that Kerf makes; equal ones go by name. Spread between pods is left out.

A second profile, `hami-scheduler`, leaves HAMi's resources to HAMi's extender (`sim.hami`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerf.model.nodes import Node
from kerf.model.pods import DEFAULT_SCHEDULER, HAMI_SCHEDULER, Pod
from kerf.model.snapshot import ResourceQuota
from kerf.model.times import instant_text
from kerf.ports import Clock
from kerf.sharing.hami.records import NODE
from kerf.sim.hami import verdicts as hami
from kerf.sim.kubernetes.api import DELETED, InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.filters import EXTENDER, VOLUMES, Attempt, NodePods, best, refusal
from kerf.sim.kubernetes.preemption import preemption
from kerf.sim.kubernetes.queueing import SchedulingQueue, Waiting
from kerf.sim.kubernetes.relations import Relations, is_averse, is_related
from kerf.sim.kubernetes.webhook import family_of
from kerf.sim.objects import Json, key_of, with_condition

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a pod is told, which plugins have refused it, and the node where others make room for it."""

    message: str
    refused_by: frozenset[str]
    nominated: str = ""


class Scheduler:
    """Both profiles, over the in-memory API."""

    def __init__(self, api: InMemoryApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._rooms: dict[str, NodePods] = {}
        self._queue = SchedulingQueue(clock, self._soon)
        self._place: dict[str, str] = {}
        self._homeless: dict[str, dict[str, Pod]] = {}
        self._averse: dict[str, Pod] = {}
        self._nominees: list[Pod] = []
        self._booked: list[Pod] = []
        self._is_due = False

    def start(self) -> None:
        """Watch pods and nodes from now on."""
        self._api.subscribe(self._on_event)

    # What the API tells.

    def _on_event(self, what: str, obj: Json) -> None:
        if obj["kind"] == "Node":
            self._on_node(what, obj)
        elif obj["kind"] == "Pod":
            self._on_pod(what, obj)
        elif obj["kind"] in ("ResourceQuota", "ConfigMap"):
            self._queue.extender_changed()
        elif obj["kind"] in ("PersistentVolumeClaim", "PersistentVolume"):
            self._queue.volumes_changed()

    def _on_node(self, what: str, obj: Json) -> None:
        name = obj["metadata"]["name"]
        if what == DELETED:
            self._rooms.pop(name, None)
            return
        node = decoded(obj)
        assert isinstance(node, Node)
        room = self._rooms.get(name)
        if room is None:
            room = self._rooms[name] = NodePods(node)
            for pod in self._homeless.pop(name, {}).values():
                room.put(pod)
            self._queue.node_changed(None, node)
            return
        old, room.node = room.node, node
        if _what_counts(old) != _what_counts(node):
            self._queue.node_changed(old, node)

    def _on_pod(self, what: str, obj: Json) -> None:
        pod = decoded(obj)
        assert isinstance(pod, Pod)
        if what == DELETED or pod.is_ended:
            self._queue.drop(pod.key)
            if self._unplace(pod.key):
                self._queue.pod_left(pod)
                self._queue.neighbours_changed()
        elif pod.node_name:
            self._queue.drop(pod.key)
            self._put(pod)
        elif pod.deleted_s is not None or pod.spec.scheduler_name not in (DEFAULT_SCHEDULER, HAMI_SCHEDULER):
            self._queue.drop(pod.key)
        elif pod.spec.scheduling_gates:
            self._queue.hold(pod)
        else:
            self._queue.take(pod, _only_nodes(obj["spec"]))

    def _put(self, pod: Pod) -> None:
        if self._place.get(pod.key) != pod.node_name:
            self._queue.neighbours_changed()
        self._unplace(pod.key)
        self._place[pod.key] = pod.node_name
        if is_averse(pod):
            self._averse[pod.key] = pod
        room = self._rooms.get(pod.node_name)
        if room is not None:
            room.put(pod)
        else:
            self._homeless.setdefault(pod.node_name, {})[pod.key] = pod

    def _unplace(self, key: str) -> bool:
        name = self._place.pop(key, None)
        if name is None:
            return False
        self._averse.pop(key, None)
        self._homeless.get(name, {}).pop(key, None)
        room = self._rooms.get(name)
        if room is not None:
            room.drop(key)
        return True

    # When a pod is tried.

    def _soon(self) -> None:
        # One turn later, so that all events of this instant are in before the queue is sorted.
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
            alike = _alike(waiting)
            failure = failed.get(alike) or self._try(waiting)
            if failure is not None:
                if not failure.nominated:
                    failed[alike] = failure
                self._fail(waiting, failure)

    # One attempt.

    def _try(self, waiting: Waiting) -> _Failure | None:
        """Bind the pod, or say why not; None when it is bound, or gone."""
        pod = waiting.pod
        raw = self._api.get("Pod", pod.namespace, pod.name)
        if raw is None:
            return None
        is_hami = pod.spec.scheduler_name == HAMI_SCHEDULER
        config = family_of(self._api).config if is_hami else None
        ignored = frozenset() if config is None else config.slice_resources | {config.count}
        relations = Relations(pod, raw, self._rooms, self._averse, self._api)
        attempt = Attempt(pod, waiting.only_nodes, ignored, relations.refusal if relations.is_any else None)
        reasons: Counter[str] = Counter()
        refused_by: set[str] = set()
        feasible: list[NodePods] = []
        promised = self._promised(pod)
        for _, room in sorted(self._rooms.items()):
            refused = refusal(attempt, room, promised.get(room.node.name, ()))
            if refused is None:
                feasible.append(room)
            else:
                reasons.update(refused.reasons)
                refused_by.add(refused.plugin)
        missing = relations.missing_claim()
        if missing:
            # The scheduler says so of the pod, not of nodes.
            said = self._message(Counter(), f'persistentvolumeclaim "{missing}" not found')
            return _Failure(said, frozenset({VOLUMES}))
        if is_hami and feasible:
            verdict = self._ask_hami(pod, [room.node for room in feasible])
            if verdict.node:
                self._bind(waiting, verdict.node, verdict)
                return None
            if verdict.error:
                return _Failure(self._message(Counter(verdict.reasons.values())), frozenset())
            if not verdict.passes:
                reasons.update(verdict.reasons.values())
                refused_by.add(EXTENDER)
                feasible = []
        if not feasible:
            node = "" if is_hami else self._preempt(attempt, promised)
            return _Failure(self._message(reasons), frozenset(refused_by), node)
        nominated = [room for room in feasible if room.node.name == pod.nominated_node]
        self._bind(waiting, (nominated or [best(attempt, feasible)])[0].node.name)
        return None

    def _preempt(self, attempt: Attempt, promised: dict[str, list[Pod]]) -> str:
        """Delete pods of lower priority where that gives the pod a place; the node, empty where it does not."""
        pod = attempt.pod
        raw = self._api.get("Pod", pod.namespace, pod.name)
        if raw is None or raw["spec"].get("preemptionPolicy") == "Never":
            return ""
        found = preemption(attempt, (room for _, room in sorted(self._rooms.items())), promised)
        if found is None:
            return ""
        for victim in found.victims:
            self._api.preempt(victim.namespace, victim.name)
            self._place_ending(victim)
        return found.node

    def _place_ending(self, victim: Pod) -> None:
        # What the watch will tell: the next attempt of this cycle must not choose it again.
        room = self._rooms.get(victim.node_name)
        if room is not None:
            room.put(replace(victim, deleted_s=self._clock.now_s()))

    def _promised(self, pod: Pod) -> dict[str, list[Pod]]:
        """By node, the other pods that are nominated there and that this one may not displace.

        Each profile is a scheduler of its own, as in HAMi's chart, and knows nothing of the other's pods.
        """
        promised: dict[str, list[Pod]] = {}
        for other in self._nominees:
            is_of_ours = other.key != pod.key and other.spec.scheduler_name == pod.spec.scheduler_name
            if is_of_ours and other.spec.priority >= pod.spec.priority:
                promised.setdefault(other.nominated_node, []).append(other)
        return promised

    def _ask_hami(self, pod: Pod, nodes: Sequence[Node]) -> hami.Verdict:
        holders = {node.name: list(self._rooms[node.name].pods.values()) for node in nodes}
        for other in self._booked:
            booked = other.annotations[NODE]
            if booked in holders:
                holders[booked].append(other)
        quotas = [q for raw in self._api.list("ResourceQuota") if isinstance(q := decoded(raw), ResourceQuota)]
        family = family_of(self._api)
        return hami.filter_nodes(family, pod, nodes, holders, quotas, self._clock.now_s())

    def _bind(self, waiting: Waiting, node: str, verdict: hami.Verdict | None = None) -> None:
        pod = waiting.pod
        if verdict is not None:
            self._api.patch("Pod", pod.namespace, pod.name, hami.record_patch(verdict))
            self._api.patch("Pod", pod.namespace, pod.name, hami.bind_patch(self._clock.now_s()))
            pod = replace(pod, annotations={**pod.annotations, **verdict.annotations})
        self._api.bind(pod.namespace, pod.name, node)
        self._queue.bound(pod.key)
        self._nominees = [other for other in self._nominees if other.key != pod.key]
        self._booked = [other for other in self._booked if other.key != pod.key]
        self._put(replace(pod, node_name=node, nominated_node=""))

    def _message(self, reasons: Counter[str], of_pod: str = "") -> str:
        if not self._rooms:
            return "no nodes available to schedule pods"
        listed = of_pod or ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"0/{len(self._rooms)} nodes are available: {listed}."

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


def _alike(waiting: Waiting) -> object:
    """Pods of one value fail alike within one cycle, since binding others only takes room away."""
    pod = waiting.pod
    marks = (tuple(sorted(pod.annotations.items())), pod.nominated_node, pod.reserved_for)
    # Interned specs leave out what a pod asks of others; where it asks anything, its labels speak for it.
    related = tuple(sorted(pod.labels.items())) if is_related(pod) else ()
    return id(pod.spec), pod.namespace, waiting.only_nodes, marks, related


def _only_nodes(spec: Json) -> frozenset[str] | None:
    """The node names that the required affinity fixes by `matchFields`; None when some term fixes none."""
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or ()
    names: set[str] = set()
    for term in terms:
        fixed = [f["values"] for f in term.get("matchFields") or () if f["key"] == "metadata.name"]
        if not fixed:
            return None
        names.update(*fixed)
    return frozenset(names) if terms else None
