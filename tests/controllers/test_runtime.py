"""Queues and back-off, seen from a controller that only notes when it is asked."""

from collections.abc import Awaitable, Callable, Iterable

import pytest
from structlog.testing import capture_logs

from kerf.cloudprovider import Throttled
from kerf.controllers.runtime import DONE, Result
from kerf.errors import CloudError, KerfError
from kerf.model.pods import Pod
from kerf.model.snapshot import Event, Synced, Upserted, Watched
from kerf.ports import Conflict, NotFound
from kerf.testing.builders import a_claim
from tests.controllers.cluster import Cluster, pod

Work = Callable[[], Awaitable[Result]]


class Probe:
    """Notes each run with its time and each event; does what it is given to do."""

    name = "probe"

    def __init__(self, cluster: Cluster, work: Work) -> None:
        self._cluster, self._work = cluster, work
        self.runs: list[tuple[float, str]] = []
        self.ends: list[float] = []
        self.events: list[Event] = []

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Pods by name."""
        self.events.append(event)
        return () if isinstance(event, Synced) or not isinstance(event.value, Pod) else (event.value.name,)

    async def reconcile(self, key: str) -> Result:
        """Note it and do the work."""
        self.runs.append((self._cluster.now_s, key))
        result = await self._work()
        self.ends.append(self._cluster.now_s)
        return result

    @property
    def times(self) -> list[float]:
        """When it was asked."""
        return [at_s for at_s, _ in self.runs]


def probe(cluster: Cluster, *outcomes: Exception | Result) -> Probe:
    """A running probe with these outcomes one after the other, the last one for ever."""
    left = list(outcomes)

    async def work() -> Result:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    built = Probe(cluster, work)
    cluster.start(built)
    return built


def slow_probe(cluster: Cluster, seconds: float) -> Probe:
    """A running probe that takes its time."""

    async def work() -> Result:
        await cluster.clock.sleep_until(cluster.clock.now_s() + seconds)
        return DONE

    built = Probe(cluster, work)
    cluster.start(built)
    return built


def touch(cluster: Cluster, name: str, value: str) -> None:
    """Change a pod."""
    cluster.change("Pod", name, metadata={"labels": {"touched": value}})


def test_a_key_runs_once_at_a_time_and_again_when_it_was_touched(cluster: Cluster) -> None:
    """Two touches during a run make one more run after it; another key does not wait."""
    running = slow_probe(cluster, 10)
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    for after_s in (2, 3):
        cluster.at(after_s)
        touch(cluster, "a", str(after_s))
    cluster.at(4, lambda: cluster.api.create(pod("b")))
    cluster.at(100)

    assert [(0, "a"), (4, "b"), (10, "a")] == running.runs


def test_no_more_than_a_thousand_keys_run_at_a_time_and_none_is_lost(cluster: Cluster) -> None:
    """The others begin in their order as those before them end, and one that was touched comes after them."""
    running = slow_probe(cluster, 10)
    names = [f"p-{number:04}" for number in range(1_002)]
    cluster.at(0, lambda: [cluster.api.create(pod(name)) for name in names])
    cluster.at(5)
    touch(cluster, "p-0000", "again")
    cluster.at(100)

    expected = [*((0, name) for name in names[:1_000]), *((10, name) for name in [*names[1_000:], "p-0000"])]
    assert expected == running.runs


@pytest.mark.parametrize(
    ("outcome", "times"),
    [
        (CloudError("no"), [0, 1, 3, 7, 15, 31, 63, 123, 183]),
        (Conflict("old version"), [float(second) for second in range(200)]),
        (Throttled(70), [0, 70, 140]),
        (NotFound("gone"), [0, 1, 3, 7, 15, 31, 63, 123, 183]),
        (Result(60), [0, 60, 120, 180]),
        (DONE, [0]),
    ],
)
def test_when_a_key_is_looked_at_again(cluster: Cluster, outcome: KerfError | Result, times: list[float]) -> None:
    """Errors and vanished objects back off from 1 to 60 s, a conflict waits a second, throttling as long as it says."""
    asked = probe(cluster, outcome)
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    cluster.at(199.5)

    assert times == asked.times


def test_a_conflict_brings_what_is_there(cluster: Cluster) -> None:
    """The object that the write has met is known from then on, although the watch has not shown it yet."""
    cluster.state.apply(Upserted(a_claim("c", uid="u", resource_version="5")))
    current = a_claim("c", uid="u", resource_version="9", provider_id="i-1")
    probe(cluster, Conflict("old version", current))
    cluster.at(0, lambda: cluster.api.create(pod("a")))

    assert current == cluster.state.claim("c")


def test_writes_that_meet_newer_objects_for_a_minute_are_said_once(cluster: Cluster) -> None:
    """A key that does nothing else moves nothing, and a person must be able to see that."""
    with capture_logs() as said:
        probe(cluster, Conflict("old version"))
        cluster.at(0, lambda: cluster.api.create(pod("a")))
        cluster.at(59.5)
        assert [] == said
        cluster.at(600)

    assert [("probe", "a", "old version")] == [(each["controller"], each["key"], each["error"]) for each in said]


def test_a_key_that_fails_for_days_is_looked_at_every_minute(cluster: Cluster) -> None:
    """However often it has failed: what was wrong may be put right at any time."""
    asked = probe(cluster, CloudError("no"))
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    cluster.at(2 * 86_400)

    assert asked.times[-1] > 2 * 86_400 - 60


def test_success_forgets_the_failures(cluster: Cluster) -> None:
    """After two failures and a success the next failure waits one second again."""
    asked = probe(cluster, CloudError("1"), CloudError("2"), DONE, CloudError("3"), DONE)
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    cluster.at(50)
    touch(cluster, "a", "again")
    cluster.at(100)

    assert [0, 1, 3, 50, 51] == asked.times


def test_an_event_comes_before_the_time_that_was_asked_for(cluster: Cluster) -> None:
    """And the old timer is forgotten: the new run says when to look again."""
    asked = probe(cluster, Result(60))
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    cluster.at(20)
    touch(cluster, "a", "again")
    cluster.at(100)

    assert [0, 20, 80] == asked.times


def test_nothing_is_decided_on_a_half_read_cluster(cluster: Cluster) -> None:
    """What exists only fills the state; the first thing that a controller hears is Synced, and then all is there."""
    cluster.put(pod("a"), pod("b"))
    asked = probe(cluster, DONE)

    assert [Synced()] == asked.events
    assert ["default/a", "default/b"] == [held.key for held in cluster.state.pods()]


def test_stop_ends_everything_at_once(cluster: Cluster) -> None:
    """A run in progress, what waits for its time, and the watch: nothing goes on, as after a crash."""
    running = slow_probe(cluster, 10)
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    cluster.at(5, cluster.runtime.stop)
    cluster.at(6, lambda: cluster.api.create(pod("b")))
    cluster.at(100)

    assert ([(0, "a")], [], ()) == (running.runs, running.ends, cluster.api.listeners)


def test_stop_ends_retries(cluster: Cluster) -> None:
    """A timer that is still set does nothing."""
    asked = probe(cluster, CloudError("no"))
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    cluster.at(5, cluster.runtime.stop)
    cluster.at(100)

    assert [0, 1, 3] == asked.times


def test_our_own_mistake_is_reported_and_tried_again(cluster: Cluster) -> None:
    """An unexpected exception ends neither the loop of its key nor anybody else's; the loop's handler is told."""
    told: list[object] = []
    cluster.loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    asked = probe(cluster, RuntimeError("a mistake"))
    cluster.at(0, lambda: cluster.api.create(pod("a")))
    cluster.at(10)

    assert [0, 1, 3, 7] == asked.times
    assert "controller probe failed on 'a'" == told[0]


def test_an_object_that_cannot_be_read_stops_nothing(cluster: Cluster) -> None:
    """HAMi's ConfigMap is broken: what happens to pods is still looked at."""
    asked = probe(cluster, DONE)
    broken = {"device-config.yaml": "nvidia: ["}
    name = {"name": "hami-scheduler-device", "namespace": "kube-system"}
    bad = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": broken}
    cluster.at(0, lambda: cluster.api.create(bad))
    cluster.at(5, lambda: cluster.api.create(pod("a")))
    cluster.at(10)

    assert [5] == asked.times
