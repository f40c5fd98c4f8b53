"""The controller of usage: what it remembers, what it writes and when, and that nothing stops it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from kerf.controllers import usage
from kerf.controllers.usage import UsageBook, UsageHistory
from kerf.engine.study.usage.history import (
    History,
    WorkloadName,
    entries_of,
    entry_key,
    entry_text,
    history_of,
    shard_of,
)
from kerf.errors import ApiError
from kerf.model.usage import ContainerUsage, PodUsage, Usage
from tests.controllers.cluster import Cluster, pod
from tests.sim.world import START_S

WEB = WorkloadName("default", "StatefulSet", "web")


class Metrics:
    """A metrics server and the ConfigMaps: each pod uses 100m more at each look; `fails` is why nobody answers."""

    def __init__(self, *pods: str) -> None:
        self.pods, self.looks, self.fails = pods, 0, ""
        self.shards: dict[str, dict[str, str]] = {}
        self.written: list[tuple[str, tuple[str, ...]]] = []
        self.age_s = 0.0
        self.clock_s: Callable[[], float] = lambda: START_S

    async def read(self) -> tuple[Usage, tuple[str, ...]]:
        """See UsageSource."""
        self.looks += 1
        if self.fails:
            raise ApiError(self.fails)
        used = (ContainerUsage("main", 100 * self.looks, 2**20),)
        at_s = self.clock_s() - self.age_s
        return Usage({f"default/{name}": PodUsage("default", name, at_s, 15, used) for name in self.pods}), ()

    async def checkpoints(self) -> Mapping[str, Mapping[str, str]]:
        """See UsageSource."""
        if self.fails:
            raise ApiError(self.fails)
        return self.shards

    async def write(self, shard: str, changes: Mapping[str, str | None]) -> None:
        """See UsageSource."""
        held = self.shards.setdefault(shard, {})
        for key, text in changes.items():
            held.pop(key, None)
            if text is not None:
                held[key] = text
        self.written.append((shard, tuple(changes)))

    def history(self, name: WorkloadName = WEB) -> History:
        """What is written of a workload; nothing of it is broken."""
        found, broken = entries_of(self.shards.get(shard_of(name), {}))
        assert not broken
        return found.get(name, History())


def start(cluster: Cluster, metrics: Metrics, *, writes: bool = True) -> UsageBook:
    """The controller alone, with the pods of a StatefulSet and one that nobody controls."""
    metrics.clock_s = cluster.clock.now_s
    cluster.ports = replace(cluster.ports, usage=metrics)
    book = UsageBook()
    cluster.start(UsageHistory(cluster.state, cluster.ports, book, cluster.settings, writes=writes))
    return book


def owned(name: str) -> dict[str, object]:
    """A pod of the StatefulSet `web`."""
    made = pod(name)
    made["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "web", "controller": True}]
    return made


def test_each_minute_is_a_sample_and_each_ten_are_written(cluster: Cluster) -> None:
    """By workload: two pods give two samples a look. A pod that nobody controls, and one that is gone, give none."""
    cluster.put(owned("web-0"), owned("web-1"), pod("bare"))
    metrics = Metrics("web-0", "web-1", "bare", "gone")
    book = start(cluster, metrics)
    cluster.at(9 * 60 + 30)

    assert ([], 10) == (metrics.written, metrics.looks)
    assert {"default/web-0", "default/web-1", "default/bare"} == set(book.usage.pods)

    cluster.at(10 * 60 + 1)
    cpu = metrics.history().sketches["main", "cpu"]
    assert (22, 1100) == (cpu.count, cpu.peak)
    assert [(shard_of(WEB), (entry_key(WEB),))] == metrics.written


def test_a_restart_goes_on_where_the_checkpoint_ended(cluster: Cluster) -> None:
    """What was not yet written is lost, and nothing else."""
    cluster.put(owned("web-0"))
    metrics = Metrics("web-0")
    start(cluster, metrics)
    cluster.at(15 * 60)
    cluster.crash()
    start(cluster, metrics)
    cluster.at(26 * 60)

    assert 11 + 11 == metrics.history().sketches["main", "cpu"].count


def test_only_workloads_that_have_changed_are_written(cluster: Cluster) -> None:
    """Nothing at all where no pod runs any more; and the same sample again is no change."""
    cluster.put(owned("web-0"))
    metrics = Metrics("web-0")
    start(cluster, metrics)
    cluster.at(10 * 60 + 1)
    cluster.remove("Pod", "web-0")
    cluster.at(60 * 60)

    assert 1 == len(metrics.written)


def test_without_a_metrics_server_nothing_stops_and_the_look_is_repeated(cluster: Cluster) -> None:
    """It comes back by itself, and until then nothing is known rather than something old."""
    cluster.put(owned("web-0"))
    metrics = Metrics("web-0")
    book = start(cluster, metrics)
    cluster.at(70)
    metrics.fails = "metrics.k8s.io does not answer"
    cluster.at(130)
    assert {} == book.usage.pods
    metrics.fails = ""
    cluster.at(310)

    assert {"default/web-0"} == set(book.usage.pods)


def test_samples_that_are_too_old_are_not_used(cluster: Cluster) -> None:
    """A kubelet that has stopped leaves its last sample standing."""
    cluster.put(owned("web-0"))
    metrics = Metrics("web-0")
    metrics.age_s = 301
    book = start(cluster, metrics)
    cluster.at(11 * 60)

    assert ({}, []) == (book.usage.pods, metrics.written)


def test_a_broken_checkpoint_is_begun_again_and_hides_no_other(cluster: Cluster) -> None:
    """The entry that cannot be read goes with the next write; what stands beside it is kept."""
    cluster.put(owned("web-0"))
    metrics = Metrics("web-0")
    held = history_of([PodUsage("default", "web-0", START_S - 3600, 15, (ContainerUsage("main", 7, 7),))])
    metrics.shards = {shard_of(WEB): {"junk": "}", entry_key(WEB): entry_text(WEB, held)}, "kerf-usage-99": {"x": "["}}
    start(cluster, metrics)
    cluster.at(11 * 60)

    assert 12 == metrics.history().sketches["main", "cpu"].count
    assert {} == metrics.shards["kerf-usage-99"]


def test_workloads_that_are_gone_for_eight_days_are_removed(cluster: Cluster) -> None:
    """From the API too."""
    cluster.put(owned("web-0"))
    gone, metrics = WorkloadName("default", "Job", "old"), Metrics("web-0")
    held = history_of([PodUsage("default", "x", START_S - 8 * 86_400, 15, (ContainerUsage("main", 7, 7),))])
    metrics.shards = {shard_of(gone): {entry_key(gone): entry_text(gone, held)}}
    start(cluster, metrics)
    cluster.at(11 * 60)

    assert {} == metrics.shards[shard_of(gone)]


def test_a_full_configmap_leaves_out_who_was_seen_longest_ago(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API takes a mebibyte an object; the others are written."""
    cluster.put(owned("web-0"))
    metrics = Metrics("web-0")
    others = (WorkloadName("default", "Job", f"job-{number}") for number in range(1000))
    beside = next(name for name in others if shard_of(name) == shard_of(WEB))
    held = history_of([PodUsage("default", "x", START_S - 60, 15, (ContainerUsage("main", 7, 7),))])
    metrics.shards = {shard_of(WEB): {entry_key(beside): entry_text(beside, held)}}
    monkeypatch.setattr(usage, "MOST_SHARD_BYTES", 300)
    start(cluster, metrics)
    cluster.at(11 * 60)

    assert [entry_key(WEB)] == list(metrics.shards[shard_of(WEB)])


def test_a_dry_run_looks_and_writes_nothing(cluster: Cluster) -> None:
    """Its role would not let it either."""
    cluster.put(owned("web-0"))
    metrics = Metrics("web-0")
    book = start(cluster, metrics, writes=False)
    cluster.at(30 * 60)

    assert ({"default/web-0"}, []) == (set(book.usage.pods), metrics.written)
