"""kube-scheduler's queue: which pods wait for what, and in which order they are tried.

A failed attempt costs a pod its nomination, so it matters that kube-scheduler tries a pod again only after a change
that may cure what the pod was refused for (its queueing hints), and not after any change. Since 1.33 a pod whose
back-off has not ended is tried as well when there is nothing better to do; the back-off then only decides the order.
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.ports import Clock
from kerf.sim.kubernetes.filters import (
    EXTENDER,
    NODE_PORTS,
    POD_AFFINITY,
    RESOURCES,
    SPREAD,
    TAINTS,
    UNSCHEDULABLE,
    Attempt,
    bears_cordons,
    has_common_port,
    may_help,
    tolerations_of,
)
from kerf.sim.kubernetes.hints import cured_by_coming, cured_by_leaving, cured_by_volume, is_of_others, marks_of
from kerf.sim.kubernetes.selectors import NodeTerms, node_terms
from kerf.sim.objects import Json

_FIRST_BACK_OFF_S, _LAST_BACK_OFF_S = 1, 10
_LONGEST_S, _FLUSH_S = 300, 30
_API_S = 0.01
_FREED = frozenset({RESOURCES, NODE_PORTS, EXTENDER})


@dataclass(slots=True)
class Waiting:
    """A pod in the queue. It is tried when `is_active`; until then it waits for something to change.

    `number` grows with each entry to the queue; `refused_by` are the plugins that refused it on some node. `wanted` is
    what it requires of nodes, and `marks` tell it apart from others where it asks anything of other pods or volumes.
    """

    pod: Pod
    raw: Json
    wanted: NodeTerms
    marks: str
    number: int
    is_active: bool = True
    attempts: int = 0
    ready_s: float = 0
    refused_by: frozenset[str] = field(default=frozenset())

    def order(self, now_s: float) -> tuple[int, int, int]:
        """First those that do not back off, by priority, then by who came first; then by the second it ends in."""
        window = math.floor(self.ready_s) if self.ready_s > now_s else 0
        return window, -self.pod.spec.priority, self.number


class SchedulingQueue:
    """The pods that have no node yet. `soon` is called whenever one of them is to be tried."""

    def __init__(self, clock: Clock, soon: Callable[[], None]) -> None:
        self._clock, self._soon = clock, soon
        self._waiting: dict[str, Waiting] = {}
        self._held: dict[str, Pod] = {}
        self._number = 0

    def pods(self) -> Iterator[Pod]:
        """All of them, those that a gate holds too."""
        yield from (waiting.pod for waiting in self._waiting.values())
        yield from self._held.values()

    def due(self) -> list[Waiting]:
        """Those that are to be tried now, in order."""
        now_s = self._clock.now_s()
        due = [waiting for waiting in self._waiting.values() if waiting.is_active]
        return sorted(due, key=lambda waiting: waiting.order(now_s))

    # What the API shows.

    def hold(self, pod: Pod) -> None:
        """A gate holds it; what it is nominated to is reserved all the same."""
        self._waiting.pop(pod.key, None)
        self._held[pod.key] = pod

    def take(self, pod: Pod, raw: Json) -> None:
        """It is new, or has changed."""
        self._held.pop(pod.key, None)
        held = self._waiting.get(pod.key)
        marks = marks_of(raw) if is_of_others(raw) else ""
        if held is None or held.pod.uid != pod.uid:
            self._waiting[pod.key] = Waiting(pod, raw, node_terms(raw["spec"]), marks, self._next())
            self._soon()
            return
        old, held.pod, held.raw, held.marks = held.pod, pod, raw, marks
        if old.nominated_node and old.nominated_node != pod.nominated_node:
            self._unreserved(old)
        # A nomination alone is no reason to try it, nor is any other change of the pod's own but these.
        reasons = set()
        if tolerations_of(old) != tolerations_of(pod):
            reasons = {TAINTS, EXTENDER} | ({UNSCHEDULABLE} if bears_cordons(pod) else set())
        elif (old.labels, old.annotations) != (pod.labels, pod.annotations):
            reasons = {EXTENDER} | ({SPREAD, POD_AFFINITY} if old.labels != pod.labels else set())
        if held.refused_by & reasons:
            self._activate(held)

    def drop(self, key: str) -> None:
        """It is gone, bound, or of no concern here any more."""
        held = self._waiting.pop(key, None)
        gated = self._held.pop(key, None)
        pod = held.pod if held is not None else gated
        if pod is not None and pod.nominated_node:
            self._unreserved(pod)

    def bound(self, key: str) -> None:
        """It waits no more, and what was promised to it is now held by it."""
        del self._waiting[key]

    def node_changed(self, old: Node | None, new: Node) -> None:
        """A node is new (`old` is None) or has changed: try those whom that may help."""
        for waiting in self._waiting.values():
            attempt = Attempt(waiting.pod, waiting.wanted)
            if not waiting.is_active and may_help(attempt, waiting.refused_by, old, new):
                self._activate(waiting)

    def node_left(self) -> None:
        """A node is gone, and its domain may be with it."""
        self._try_refused_by(SPREAD)

    def pod_left(self, pod: Pod, raw: Json) -> None:
        """A pod has left its node: try those who lacked what it had, or did not bear it."""
        for waiting in self._waiting.values():
            has_port = NODE_PORTS in waiting.refused_by and has_common_port(waiting.pod, pod)
            if has_port or waiting.refused_by & {RESOURCES, EXTENDER}:
                self._activate(waiting)
            elif waiting.marks or waiting.refused_by & {POD_AFFINITY}:
                self._try_cured(waiting, cured_by_leaving(waiting.raw, waiting.pod, pod, raw))

    def pod_came(self, pod: Pod) -> None:
        """A pod has come to a node, or has other labels there: try those who wait for its like."""
        for waiting in self._waiting.values():
            if waiting.marks:
                self._try_cured(waiting, cured_by_coming(waiting.raw, pod))

    def volume_changed(self, changed: Json) -> None:
        """A claim is there, a volume, or something else on which volumes depend."""
        for waiting in self._waiting.values():
            if waiting.marks:
                self._try_cured(waiting, cured_by_volume(waiting.raw, changed))

    def _try_cured(self, waiting: Waiting, cured: frozenset[str]) -> None:
        if waiting.refused_by & cured:
            self._activate(waiting)

    def _try_refused_by(self, plugin: str) -> None:
        for waiting in self._waiting.values():
            if plugin in waiting.refused_by:
                self._activate(waiting)

    def extender_changed(self) -> None:
        """Something changed that only an extender knows how to value."""
        self._try_refused_by(EXTENDER)

    def _unreserved(self, pod: Pod) -> None:
        """The room that was promised to a pod is free for its equals and lower ones.

        They learn of it by the API, which takes a moment: pods that clear each other's nominations, while another
        keeps writing them again, would otherwise never let time go on.
        """
        numbers = {
            waiting.number
            for waiting in self._waiting.values()
            if waiting.pod.spec.priority <= pod.spec.priority and waiting.refused_by & _FREED
        }
        if numbers:
            self._clock.call_at(self._clock.now_s() + _API_S, lambda: self._activate_all(numbers))

    def _activate_all(self, numbers: Collection[int]) -> None:
        for waiting in self._waiting.values():
            if waiting.number in numbers:
                self._activate(waiting)

    # What came of an attempt.

    def fail(self, waiting: Waiting, refused_by: frozenset[str]) -> None:
        """It waits until something changes that may help it, and at most five minutes.

        Where no plugin refused it, since there are no nodes or something went wrong, it waits for its back-off instead.
        """
        back_off_s = min(_FIRST_BACK_OFF_S * 2 ** min(waiting.attempts, 10), _LAST_BACK_OFF_S)
        now_s, old = self._clock.now_s(), waiting.pod
        waiting.is_active, waiting.attempts = False, waiting.attempts + 1
        waiting.ready_s, waiting.refused_by = now_s + back_off_s, refused_by
        waiting.number = number = self._next()
        waiting.pod = replace(old, nominated_node="")
        if old.nominated_node:
            self._unreserved(old)
        flush_s = math.ceil((now_s + _LONGEST_S) / _FLUSH_S) * _FLUSH_S
        # Back-offs are looked at every second, and one counts as over after the second in which it ends.
        again_s = flush_s if refused_by else math.floor(waiting.ready_s) + 1
        self._clock.call_at(again_s, lambda: self._activate(waiting) if waiting.number == number else None)

    def _activate(self, waiting: Waiting) -> None:
        if not waiting.is_active:
            waiting.is_active = True
            self._soon()

    def _next(self) -> int:
        self._number += 1
        return self._number
