"""Stand-in for kube-scheduler: which pod is tried when, on which node it lands, and what it is told when on none.

Kerf's plans are true only if the scheduler follows them, so what matters is as in kube-scheduler 1.36: the order of the
queue, the filters with their words (`sim.filters`), the back-off, that a nomination reserves room against pods of no
higher priority, and that a failed attempt clears the nomination of the pod that failed. Of the scores those are here
that decide between nodes that Kerf makes; equal ones go by name. Preemption and spread between pods are left out.

A second profile, `hami-scheduler`, leaves HAMi's resources to HAMi's extender (`sim.hami`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerf.manifests.decode import decode_object
from kerf.model.nodes import Node
from kerf.model.pods import DEFAULT_SCHEDULER, HAMI_SCHEDULER, Pod
from kerf.model.snapshot import ResourceQuota
from kerf.model.times import instant_text
from kerf.ports import Clock
from kerf.sharing.hami_records import NODE
from kerf.sim import hami
from kerf.sim.api import DELETED, InMemoryApi
from kerf.sim.filters import Attempt, Room, best, refusals
from kerf.sim.objects import Json, key_of, with_condition

_FIRST_BACK_OFF_S, _LAST_BACK_OFF_S = 1, 10
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True)
class _Waiting:
    """A pod in the queue. It is tried when `is_active`; until then it waits for something to change."""

    pod: Pod
    only_nodes: frozenset[str] | None
    is_active: bool = True
    attempts: int = 0
    ready_s: float = 0

    @property
    def order(self) -> tuple[int, float, str, str]:
        """kube-scheduler's PrioritySort; equal times by name."""
        return -self.pod.spec.priority, self.pod.created_s, self.pod.namespace, self.pod.name


class Scheduler:
    """Both profiles, over the in-memory API."""

    def __init__(self, api: InMemoryApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._rooms: dict[str, Room] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._place: dict[str, str] = {}
        self._homeless: dict[str, dict[str, Pod]] = {}
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
            self._wake()

    def _on_node(self, what: str, obj: Json) -> None:
        name = obj["metadata"]["name"]
        if what == DELETED:
            self._rooms.pop(name, None)
            return
        node = decode_object(obj)
        assert isinstance(node, Node)
        room = self._rooms.get(name)
        if room is None:
            room = self._rooms[name] = Room(node)
            for pod in self._homeless.pop(name, {}).values():
                room.put(pod)
            self._wake()
            return
        old, room.node = room.node, node
        if _what_counts(old) != _what_counts(node):
            self._wake()

    def _on_pod(self, what: str, obj: Json) -> None:
        pod = decode_object(obj)
        assert isinstance(pod, Pod)
        if what == DELETED or pod.is_ended:
            self._waiting.pop(pod.key, None)
            if self._unplace(pod.key):
                self._wake()
        elif pod.node_name:
            self._waiting.pop(pod.key, None)
            self._put(pod)
        elif pod.deleted_s is None and not pod.spec.scheduling_gates:
            self._queue(pod, obj)
        else:
            self._waiting.pop(pod.key, None)

    def _queue(self, pod: Pod, obj: Json) -> None:
        held = self._waiting.get(pod.key)
        if held is None or held.pod.uid != pod.uid:
            if pod.spec.scheduler_name in (DEFAULT_SCHEDULER, HAMI_SCHEDULER):
                self._waiting[pod.key] = _Waiting(pod, _only_nodes(obj["spec"]))
                self._soon()
            return
        old, held.pod = held.pod, pod
        # As kube-scheduler, which sees a change of status (a nomination) without trying the pod again for it.
        if (old.labels, old.annotations, old.spec) != (pod.labels, pod.annotations, pod.spec):
            self._activate(held)

    def _put(self, pod: Pod) -> None:
        self._unplace(pod.key)
        self._place[pod.key] = pod.node_name
        room = self._rooms.get(pod.node_name)
        if room is not None:
            room.put(pod)
        else:
            self._homeless.setdefault(pod.node_name, {})[pod.key] = pod

    def _unplace(self, key: str) -> bool:
        name = self._place.pop(key, None)
        if name is None:
            return False
        self._homeless.get(name, {}).pop(key, None)
        room = self._rooms.get(name)
        if room is not None:
            room.drop(key)
        return True

    # When a pod is tried.

    def _wake(self) -> None:
        """Something changed that may let a pod in: try all that wait, each after its back-off."""
        for waiting in self._waiting.values():
            self._activate(waiting)

    def _activate(self, waiting: _Waiting) -> None:
        if not waiting.is_active:
            waiting.is_active = True
            self._clock.call_at(max(waiting.ready_s, self._clock.now_s()), self._soon)

    def _soon(self) -> None:
        # One turn later, so that all events of this instant are in before the queue is sorted.
        if not self._is_due:
            self._is_due = True
            self._clock.call_at(self._clock.now_s(), self._cycle)

    def _cycle(self) -> None:
        self._is_due = False
        now_s = self._clock.now_s()
        due = [w for w in self._waiting.values() if w.is_active and w.ready_s <= now_s]
        failed: dict[object, str] = {}
        pods = [waiting.pod for waiting in self._waiting.values()]
        self._nominees = [pod for pod in pods if pod.nominated_node]
        self._booked = [pod for pod in pods if NODE in pod.annotations]
        for waiting in sorted(due, key=lambda w: w.order):
            alike = _alike(waiting)
            message = failed.get(alike) or self._try(waiting)
            if message:
                failed[alike] = message
                self._fail(waiting, message)

    # One attempt.

    def _try(self, waiting: _Waiting) -> str:
        """Bind the pod, or say why not; empty when it is bound."""
        if self._api.get("Pod", waiting.pod.namespace, waiting.pod.name) is None:
            return ""
        pod = waiting.pod
        is_hami = pod.spec.scheduler_name == HAMI_SCHEDULER
        config = hami.family_of(self._api).config if is_hami else None
        ignored = frozenset() if config is None else config.slice_resources | {config.count}
        attempt = Attempt(pod, waiting.only_nodes, ignored)
        reasons: Counter[str] = Counter()
        feasible: list[Room] = []
        promised = self._promised(pod)
        for _, room in sorted(self._rooms.items()):
            refused = refusals(attempt, room, promised.get(room.node.name, ()))
            reasons.update(refused)
            if not refused:
                feasible.append(room)
        if is_hami and feasible:
            verdict = self._ask_hami(pod, [room.node for room in feasible])
            if verdict.node:
                return self._bind(waiting, verdict.node, verdict)
            if not verdict.passes:
                reasons.update(verdict.reasons.values())
                feasible = []
        if not feasible:
            return self._message(reasons)
        nominated = [room for room in feasible if room.node.name == pod.nominated_node]
        return self._bind(waiting, (nominated or [best(attempt, feasible)])[0].node.name)

    def _promised(self, pod: Pod) -> dict[str, list[Pod]]:
        """By node, the other pods that are nominated there and that this one may not displace."""
        promised: dict[str, list[Pod]] = {}
        for other in self._nominees:
            if other.key != pod.key and other.spec.priority >= pod.spec.priority:
                promised.setdefault(other.nominated_node, []).append(other)
        return promised

    def _ask_hami(self, pod: Pod, nodes: Sequence[Node]) -> hami.Verdict:
        holders = {node.name: list(self._rooms[node.name].pods.values()) for node in nodes}
        for other in self._booked:
            booked = other.annotations[NODE]
            if booked in holders:
                holders[booked].append(other)
        quotas = [q for raw in self._api.list("ResourceQuota") if isinstance(q := decode_object(raw), ResourceQuota)]
        family = hami.family_of(self._api)
        return hami.filter_nodes(family, pod, nodes, holders, quotas, self._clock.now_s())

    def _bind(self, waiting: _Waiting, node: str, verdict: hami.Verdict | None = None) -> str:
        pod = waiting.pod
        if verdict is not None:
            self._api.patch("Pod", pod.namespace, pod.name, hami.record_patch(verdict))
            self._api.patch("Pod", pod.namespace, pod.name, hami.bind_patch(self._clock.now_s()))
            pod = replace(pod, annotations={**pod.annotations, **verdict.annotations})
        self._api.bind(pod.namespace, pod.name, node)
        self._forget(pod)
        self._put(replace(pod, node_name=node, nominated_node=""))
        return ""

    def _forget(self, pod: Pod) -> None:
        """It is bound: it waits no more, and what was promised to it or booked for it is now held by it."""
        del self._waiting[pod.key]
        self._nominees = [other for other in self._nominees if other.key != pod.key]
        self._booked = [other for other in self._booked if other.key != pod.key]

    def _message(self, reasons: Counter[str]) -> str:
        if not self._rooms:
            return "no nodes available to schedule pods"
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"0/{len(self._rooms)} nodes are available: {listed}."

    def _fail(self, waiting: _Waiting, message: str) -> None:
        back_off_s = min(_FIRST_BACK_OFF_S * 2 ** min(waiting.attempts, 10), _LAST_BACK_OFF_S)
        waiting.is_active, waiting.attempts = False, waiting.attempts + 1
        waiting.ready_s = self._clock.now_s() + back_off_s
        self._nominees = [other for other in self._nominees if other.key != waiting.pod.key]
        waiting.pod = replace(waiting.pod, nominated_node="")
        pod = self._api.get("Pod", waiting.pod.namespace, waiting.pod.name)
        if pod is None:
            return
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        conditions = with_condition(pod, condition, instant_text(self._clock.now_s()))
        status = {"conditions": conditions, "nominatedNodeName": None}
        _, namespace, name = key_of(pod)
        self._api.patch("Pod", namespace, name, {"status": status}, subresource="status")


def _what_counts(node: Node) -> tuple[object, ...]:
    return node.labels, node.annotations, node.taints, node.allocatable, node.is_unschedulable, node.is_ready


def _alike(waiting: _Waiting) -> object:
    """Pods of one value fail alike within one cycle, since binding others only takes room away."""
    pod = waiting.pod
    return id(pod.spec), pod.namespace, waiting.only_nodes, tuple(sorted(pod.annotations.items())), pod.nominated_node


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
