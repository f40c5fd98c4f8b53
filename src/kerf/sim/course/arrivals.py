"""Makes the pods of a trace as they come, and takes them away once they have run.

It stands for their controllers, as a Job would for each of them: a pod that was evicted, or whose node is gone,
comes again at once under another name, and one that has run to its end is deleted. A pod that comes again runs from its
beginning, or what was left of its time and what a restart costs. In the second case it says so, as a pod with
checkpoints does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kerf.engine.disruption.disturbance import RESTART_COST
from kerf.errors import ApiError
from kerf.model.times import instant_s
from kerf.ports import Clock
from kerf.sim.course.observer import Observer
from kerf.sim.kubernetes.api import DELETED, InMemoryApi
from kerf.sim.kubernetes.kubelet import RUN_FOR
from kerf.sim.objects import Json, name_of, phase_of
from kerf.sim.traces.replay import Arrival
from kerf.sim.traces.timedpods import PodForm

NAMESPACE = "trace"


@dataclass(frozen=True, slots=True)
class _Run:
    """A pod that is there, which time it has come, and how long it is to run."""

    arrival: Arrival
    runs_s: int | None
    number: int = 0


class Arrivals:
    """One for each run; `comes` are the pods of the trace in the order in which they come.

    `came` of them are there or were, `again` came another time, and `ended` have run to their end. `restart_s` is what
    a pod that comes again loses of its time; None where it begins again.
    """

    def __init__(
        self,
        api: InMemoryApi,
        clock: Clock,
        observer: Observer,
        comes: Iterator[Arrival],
        restart_s: int | None = None,
    ) -> None:
        self._api, self._clock, self._observer, self._restart_s = api, clock, observer, restart_s
        self._comes, self._next = comes, next(comes, None)
        self._start_s = clock.now_s()
        self._runs: dict[str, _Run] = {}
        self._forms: dict[int, tuple[PodForm, Json]] = {}
        self.came = self.again = self.ended = 0

    def start(self) -> None:
        """Watch pods from now on; the first come at their time."""
        self._api.subscribe(self._on_event)
        self._wait()

    def _wait(self) -> None:
        # One timer at a time: a trace has a hundred thousand pods.
        if self._next is not None:
            self._clock.call_at(self._start_s + self._next.at_s, self._come)

    def _come(self) -> None:
        while self._next is not None and self._start_s + self._next.at_s <= self._clock.now_s():
            self.came += 1
            self._make(_Run(self._next, self._next.runs_s))
            self._next = next(self._comes, None)
        self._wait()

    def _make(self, run: _Run) -> None:
        name = run.arrival.name + (f"-r{run.number}" if run.number else "")
        form = self._object(run.arrival.form)
        metadata: Json = {"name": name, "namespace": NAMESPACE, "labels": form["labels"]}
        if run.runs_s is not None:
            metadata["annotations"] = {RUN_FOR: f"{run.runs_s}s"}
        if self._restart_s is not None:
            metadata.setdefault("annotations", {})[RESTART_COST] = f"{self._restart_s}s"
        self._runs[name] = run
        try:
            self._api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": form["spec"]})
        except ApiError as error:
            del self._runs[name]
            self._observer.note("refused", f"pod/{NAMESPACE}/{name}", str(error))

    def _object(self, form: PodForm) -> Json:
        held = self._forms.get(id(form))
        if held is None:
            held = self._forms[id(form)] = form, form.object()
        return held[1]

    def _on_event(self, what: str, obj: Json) -> None:
        if obj["kind"] != "Pod" or obj["metadata"]["namespace"] != NAMESPACE:
            return
        name = name_of(obj)
        run = self._runs.get(name)
        if run is None:
            return
        if phase_of(obj) == "Succeeded" and what != DELETED:
            del self._runs[name]
            self.ended += 1
            self._api.delete("Pod", NAMESPACE, name)
        elif what == DELETED:
            del self._runs[name]
            self.again += 1
            self._make(_Run(run.arrival, self._left_s(run, obj), run.number + 1))

    def _left_s(self, run: _Run, obj: Json) -> int | None:
        """How long the pod is to run when it comes again: never longer than from its beginning."""
        started = obj.get("status", {}).get("startTime")
        if run.runs_s is None or run.arrival.runs_s is None or self._restart_s is None or not started:
            return run.runs_s
        has_run_s = int(self._clock.now_s() - instant_s(started))
        return min(run.arrival.runs_s, max(0, run.runs_s - has_run_s) + self._restart_s)
