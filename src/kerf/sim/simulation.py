"""Runs a scenario: the controllers of production on an embedded cluster in virtual time.

Everything is put together here and nowhere else: API, cloud, nodes, schedulers, workload controllers, Kerf, and those
who watch. Kerf can be killed and started again at any event; the rest goes on, as a cluster does.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from kerf.clouds.fake import CloudEvent, FakeCloud, Latencies
from kerf.config import Settings
from kerf.controllers.composition import compose
from kerf.controllers.runtime import Ports, Runtime
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.sim.clock import VirtualClock, VirtualLoop
from kerf.sim.course.arrivals import Arrivals
from kerf.sim.course.books import Books
from kerf.sim.course.expectations import outcome_of, text_of
from kerf.sim.course.invariants import Invariants
from kerf.sim.course.observer import Observer, PlanNotes
from kerf.sim.course.repack import Repack
from kerf.sim.course.report import CheckedExpectation, Replayed, SimulationReport
from kerf.sim.course.scenario import Scenario
from kerf.sim.course.steps import EventExpected, Expectation, Restart, Step
from kerf.sim.course.timeline import Timeline
from kerf.sim.kubernetes.adapter import SimReader, SimRecorder, SimScalables, SimWriter
from kerf.sim.kubernetes.answers import Way, over
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.device_plugins import DevicePlugins
from kerf.sim.kubernetes.kubelet import Kubelets, NodeLatencies
from kerf.sim.kubernetes.reconcilers import Key
from kerf.sim.kubernetes.scheduler import Scheduler
from kerf.sim.kubernetes.webhook import webhook
from kerf.sim.kubernetes.workloads import Workloads
from kerf.sim.objects import Json, shown
from kerf.telemetry import silence

_KEPT = 10_000
"""So many changes are kept of a trace, which has a million: what reads them is never further behind."""


class Moment(NamedTuple):
    """Where a run stands at an API event; `number` counts these events from 0.

    `changes` is how often the API has changed, `steps` how often the cloud has. From two moments that differ in
    `number` alone, a Kerf that was started again finds the same.
    """

    number: int
    at_s: float
    changes: int
    steps: int


def run(
    scenario: Scenario,
    *,
    settings: Settings | None = None,
    restart_at: Callable[[Moment], bool] | None = None,
    progress: Callable[[float], None] | None = None,
    watch: Callable[[str, Json], None] | None = None,
    way_of: Callable[[str], Way] | None = None,
) -> SimulationReport:
    """Run it to its end.

    Kerf is killed and started again after every API event whose moment `restart_at` says yes to.
    `progress` gets the time since the start after every event, `watch` every event itself as the API server reports it
    (ADDED | MODIFIED | DELETED, and the object, which is not to be changed). `way_of` says how long each write of
    Kerf and its answer take; without it they take no time. Raises InvariantBroken, and InputError for a step that names
    an object which is not there.
    """
    silence()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        simulation = Simulation(loop, scenario, settings or scenario.settings, restart_at, progress, way_of)
        if watch is not None:
            simulation.watch(watch)
        try:
            reports: list[SimulationReport] = []

            async def main() -> None:
                # Not the task's result: at its end asyncio makes a repr of that.
                reports.append(await simulation.run())

            runner.run(main())
            return reports[0]
        finally:
            simulation.stop()


class Simulation:
    """One run of one scenario."""

    def __init__(
        self,
        loop: VirtualLoop,
        scenario: Scenario,
        settings: Settings,
        restart_at: Callable[[Moment], bool] | None,
        progress: Callable[[float], None] | None,
        way_of: Callable[[str], Way] | None = None,
    ) -> None:
        self._scenario, self._settings = scenario, settings
        self._restart_at, self._progress, self._way_of = restart_at, progress, way_of
        self._loop, self._clock = loop, VirtualClock(loop, scenario.start_s)
        self._failure: asyncio.Future[None] = loop.create_future()
        self._api = InMemoryApi(self._clock, keeps=None if scenario.replay is None else _KEPT)
        self._cloud = _cloud(scenario, self._clock)
        self._plugins = DevicePlugins(self._api, self._clock, self._cloud, scenario.cloud.devices_ready_s)
        self._plans, self._books = PlanNotes(), Books()
        replay = scenario.replay
        self._observer = Observer(
            self._api,
            self._clock,
            self._cloud,
            self._books,
            self._plans,
            keeps_rows=replay is None,
            keeps_said=any(isinstance(each.expected, EventExpected) for each in scenario.expectations),
        )
        self._invariants = Invariants(self._api, self._clock, self._cloud, self._books)
        self._scheduler = Scheduler(self._api, self._clock, scenario.scoring)
        self._timeline = Timeline(self._scheduler, self._clock, self._cloud, self._plugins, self._observer)
        self._workloads = Workloads(self._api, self._clock, self._refused)
        self._arrivals: Arrivals | None = None
        self._repack: Repack | None = None
        if replay is not None:
            comes = replay.arrivals(scenario.seed)
            restart_s = replay.source.restart_s
            self._arrivals = Arrivals(self._api, self._clock, self._observer, comes, restart_s)
            if scenario.bound_interval_s:
                self._repack = Repack(scenario.market, self._cloud, self._books, self._clock, self._snapshot)
        self._outcomes: list[CheckedExpectation] = []
        self._events = self._cloud_steps = 0
        self._is_over = False
        self._kerf: Runtime | None = None

    async def run(self) -> SimulationReport:
        """Begin, let time pass, look at the end."""
        self._loop.set_exception_handler(lambda _, context: self._fail(context.get("exception")))
        self._loop.set_task_factory(self._task)
        self._begin()
        end_s = self._scenario.start_s + self._scenario.duration_s
        end = asyncio.ensure_future(self._clock.sleep_until(end_s))
        await asyncio.wait((end, self._failure), return_when=asyncio.FIRST_COMPLETED)
        if self._failure.done():
            self._failure.result()
        self._invariants.at_end(self._workloads.is_refused)
        return self._report()

    def watch(self, listener: Callable[[str, Json], None]) -> None:
        """Tell `listener` of every API event from now on."""
        self._api.subscribe(listener)

    def stop(self) -> None:
        """Kill Kerf for good: what the loop still has to do when it is closed starts it no more."""
        self._is_over = True
        if self._kerf is not None:
            self._kerf.stop()

    def _begin(self) -> None:
        self._cloud.subscribe(self._observer.on_cloud)
        self._cloud.subscribe(self._invariants.on_cloud)
        self._cloud.subscribe(self._count_step)
        self._api.subscribe(self._on_event)
        self._api.admission.append(webhook(self._api))
        times = self._scenario.cloud
        latencies = NodeLatencies(times.register_s, times.ready_s, times.devices_ready_s)
        self._plugins.start()
        Kubelets(self._api, self._clock, self._cloud, self._plugins, latencies).start()
        self._scheduler.start()
        self._workloads.start()
        # Before all other timers, so of two things at one time the scenario's comes first.
        for expectation in self._scenario.expectations:
            self._at(expectation.at_s, self._checker(expectation))
        for step in self._scenario.timeline:
            self._at(step.at_s, self._actor(step))
        for obj in self._scenario.objects:
            self._timeline.create(obj)
        if self._repack is not None:
            self._repack.begin(self._scenario.bound_interval_s, self._scenario.duration_s)
        if self._arrivals is not None:
            self._arrivals.start()
        self._start_kerf()

    def _refused(self, kind: str, key: Key, why: str) -> None:
        self._observer.note("refused", shown((kind, *key)), why)

    def _at(self, offset_s: float, act: Callable[[], None]) -> None:
        self._clock.call_at(self._scenario.start_s + offset_s, act)

    def _actor(self, step: Step) -> Callable[[], None]:
        return lambda: self._act(step)

    def _checker(self, expectation: Expectation) -> Callable[[], None]:
        return lambda: self._check(expectation)

    def _act(self, step: Step) -> None:
        if isinstance(step.action, Restart):
            self._observer.note("restart", "kerf", "killed and started again")
            self._start_kerf()
        else:
            self._timeline.act(step)

    def _check(self, expectation: Expectation) -> None:
        outcome = outcome_of(expectation, self._observer, self._cloud, self._books, self._clock.now_s())
        self._outcomes.append(outcome)
        verdict = "as expected" if outcome.is_met else f"expected {text_of(outcome.expected)}"
        self._observer.note("checked", " ".join(outcome.expected), f"{text_of(outcome.got)}, {verdict}")

    # Kerf.

    def _start_kerf(self) -> None:
        if self._is_over:
            return
        if self._kerf is not None:
            self._kerf.stop()
        writer = SimWriter(self._api)
        ports = Ports(
            clock=self._clock,
            reader=SimReader(self._api),
            writer=writer if self._way_of is None else over(writer, self._way_of),
            recorder=SimRecorder(self._api, self._clock, keeps_posted=False),
            cloud=self._cloud,
            feed=self._plans,
            scalables=SimScalables(self._api),
        )
        self._kerf = compose(ports, self._settings, assume_node_classes=True)
        self._kerf.start()
        self._kerf.lead()

    def _snapshot(self) -> ClusterSnapshot:
        assert self._kerf is not None
        return self._kerf.state.snapshot(self._clock.now_s(), ())

    # Watching.

    def _on_event(self, type_: str, obj: Json) -> None:
        self._observer.close()
        value = self._books.note(type_, obj)
        self._observer.on_event(type_, obj, value)
        if self._repack is not None and isinstance(value, Pod):
            self._repack.on_event(type_, value)
        self._invariants.on_event(type_, obj)
        if self._progress is not None:
            self._progress(self._clock.now_s() - self._scenario.start_s)
        moment = Moment(self._events, self._clock.now_s(), self._api.changes, self._cloud_steps)
        self._events += 1
        if self._restart_at is not None and self._restart_at(moment):
            self._start_kerf()

    def _count_step(self, _: CloudEvent) -> None:
        self._cloud_steps += 1

    def _fail(self, error: BaseException | None) -> None:
        if error is not None and not self._failure.done():
            self._failure.set_exception(error)

    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
        """A task whose unexpected end is the end of the simulation, instead of a line in a log."""
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
        task.add_done_callback(lambda done: None if done.cancelled() else self._fail(done.exception()))
        return task

    def _report(self) -> SimulationReport:
        totals, replay = self._observer.totals(), self._scenario.replay
        return SimulationReport(
            name=self._scenario.name,
            start_s=self._scenario.start_s,
            duration_s=self._scenario.duration_s,
            currency=self._cloud.currency,
            totals=totals,
            rows=tuple(self._observer.rows),
            counts=self._observer.counts(),
            samples=tuple(self._observer.samples),
            outcomes=tuple(self._outcomes),
            notes=(*self._scenario.warnings, *(replay.notes if replay is not None else ())),
            events=self._events,
            replayed=self._replayed(),
            unplaced=self._observer.unplaced(),
        )

    def _replayed(self) -> Replayed | None:
        arrivals = self._arrivals
        if arrivals is None:
            return None
        bound = None if self._repack is None else self._repack.result()
        return Replayed(arrivals.came, arrivals.again, arrivals.ended, bound)


def _cloud(scenario: Scenario, clock: VirtualClock) -> FakeCloud:
    times = scenario.cloud
    latencies = Latencies(times.launch_s, times.terminate_s, times.jitter_s)
    market = scenario.market
    return FakeCloud(market.types, clock, currency=market.currency, latencies=latencies, seed=scenario.seed)
