"""History of usage: under which workload, merged how, dropped when, and its checkpoints."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.study.usage.history import (
    History,
    WorkloadName,
    entries_of,
    entry_key,
    entry_of,
    entry_text,
    history_of,
    pruned,
    shard_of,
    workload_of,
)
from kerf.engine.study.usage.sketch import DAY_S, DAYS
from kerf.model.pods import Owner, Pod, PodSpec
from kerf.model.usage import ContainerUsage, PodUsage

NOW_S = 20_000.0 * DAY_S
WEB = WorkloadName("default", "Deployment", "web")


def sample(cpu: int, at_s: float = NOW_S, pod: str = "web-1", container: str = "main") -> PodUsage:
    """Of `default/pod`, with a mebibyte for each milli of cpu."""
    return PodUsage("default", pod, at_s, 15, (ContainerUsage(container, cpu, cpu * 2**20),))


def owned(kind: str, name: str, labels: dict[str, str] | None = None) -> Pod:
    """A pod with that controller."""
    return Pod("data", "p", PodSpec(()), labels=labels or {}, owner=Owner(kind, name))


@pytest.mark.parametrize(
    "pod, expected",
    [
        (owned("ReplicaSet", "web-5d9", {"pod-template-hash": "5d9"}), WorkloadName("data", "Deployment", "web")),
        (owned("ReplicaSet", "web-5d9"), WorkloadName("data", "ReplicaSet", "web-5d9")),
        (owned("Job", "nightly-29459040"), WorkloadName("data", "CronJob", "nightly")),
        (owned("Job", "yearly-29459040"), WorkloadName("data", "Job", "yearly-29459040")),
        (owned("Job", "dagster-run"), WorkloadName("data", "Job", "dagster-run")),
        (owned("StatefulSet", "db"), WorkloadName("data", "StatefulSet", "db")),
        (Pod("data", "bare", PodSpec(())), None),
    ],
)
def test_a_pod_counts_for_the_controller_whose_template_it_has(pod: Pod, expected: WorkloadName | None) -> None:
    """As far as a pod alone tells; a Job is a CronJob's only where there is such a CronJob."""
    assert expected == workload_of(pod, {"data/nightly"})


HISTORIES = st.lists(
    st.builds(sample, st.integers(0, 10**6), st.sampled_from((NOW_S, NOW_S + DAY_S)), st.sampled_from(("a", "b"))),
    max_size=8,
).map(history_of)


@given(HISTORIES, HISTORIES, HISTORIES)
def test_histories_merge_in_any_order(one: History, two: History, three: History) -> None:
    """With their times; and an entry of a checkpoint gives back what it was made of."""
    assert one.merged(two) == two.merged(one)
    assert one.merged(two).merged(three) == one.merged(two.merged(three))
    assert (WEB, one) == entry_of(entry_text(WEB, one))


def test_a_sample_counts_once_however_often_it_comes() -> None:
    """Two dumps of one minute hold the same sample of a pod."""
    assert 2 == history_of([sample(5), sample(5), sample(7, pod="web-2")]).sketches["main", "cpu"].count


def test_a_workload_that_is_gone_for_eight_days_is_dropped() -> None:
    """And of the others the days before."""
    old, new = history_of([sample(900, NOW_S - DAYS * DAY_S)]), history_of([sample(100)])

    assert [] == list(pruned({WEB: old}, NOW_S))
    assert [WEB] == list(pruned({WEB: old}, NOW_S - 1))
    assert 100 == old.merged(new).trimmed(NOW_S + DAY_S).sketches["main", "cpu"].peak


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError"),
        (entry_text(WEB, history_of([sample(1)])).replace('"cpu":"', '"cpu":"!'), "Error"),
        (entry_text(WEB, history_of([sample(1)])).replace('"first":"', '"first":"x'), "ValueError"),
        ("[" * 100_000, "Error"),
    ],
)
def test_a_broken_entry_is_reported_and_hides_no_other(text: str, told: str) -> None:
    """Whatever it is, the entries beside it are read."""
    good = history_of([sample(3)])

    found, broken = entries_of({"bad": text, entry_key(WEB): entry_text(WEB, good)})

    assert {WEB: good} == found
    assert ["bad"] == list(broken)
    assert told in broken["bad"]


def test_shards_and_keys_are_names_the_api_takes_and_never_change() -> None:
    """A restart must find what an earlier version wrote."""
    long = WorkloadName("n" * 63, "Job", "x" * 250)

    assert ("kerf-usage-17", "kerf-usage-27") == (shard_of(WEB), shard_of(long))
    assert {32} == {len(entry_key(name)) for name in (WEB, long)}


def test_ten_thousand_workloads_fit_into_forty_megabytes() -> None:
    """By their bytes: what is kept of one, with the entry in its checkpoint, is far below four kilobytes."""
    drawn = random.Random(1)
    usage = [
        sample(int(500 * drawn.lognormvariate(0, 0.35)), NOW_S + day * DAY_S + minute * 60)
        for day in range(8)
        for minute in range(1440)
    ]
    history = history_of(usage)

    assert sum(len(sketch.data) for sketch in history.sketches.values()) < 2000
    assert len(entry_text(WEB, history)) < 3000
