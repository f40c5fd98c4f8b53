"""Copies of a trace: what is moved, and what stays."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.errors import InputError
from kerf.sim.traces.replay import Replay, TraceSource, read_replay
from kerf.sim.traces.timedpods import PodForm, TimedPod
from tests.examples import examples

FORM = PodForm({"cpu": "1"}, {})
HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"


def replay(times: list[int], copies: int = 1, span_s: int = 1000) -> Replay:
    """Of pods that come at these times."""
    pods = (TimedPod(f"p{number}", at_s, 60, FORM) for number, at_s in enumerate(sorted(times)))
    return Replay(TraceSource("t.csv", copies=copies), tuple(pods), span_s)


def source(folder: Path, **options: Any) -> TraceSource:
    """Four pods at 10, 20, 30 and 40 s, which run for 100 s."""
    rows = "".join(f"p{at_s},1,1,0,0,{at_s},{at_s + 100},{at_s}\n" for at_s in (40, 10, 30, 20))
    (folder / "t.csv").write_text(HEADER + rows, encoding="utf-8")
    return TraceSource(str(folder / "t.csv"), **options)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=30), st.integers(1, 5), st.integers(0, 100))
@examples(100)
def test_copies_move_the_trace_around_its_span(times: list[int], copies: int, seed: int) -> None:
    """Each copy has every pod once, in the span, all moved by one offset; all come in order, and copy 0 as it is."""
    found = list(replay(times, copies).arrivals(seed))
    ats = [each.at_s for each in found]

    assert sorted(ats) == ats
    assert 0 <= min(ats) <= max(ats) < 1000
    assert len({each.name for each in found}) == len(found) == copies * len(times)
    for copy in range(copies):
        suffix = f"-c{copy}" if copy else ""
        own = {each.name: each.at_s for each in found if each.name.partition("-")[2] == suffix[1:]}
        moved = {(own[f"p{n}{suffix}"] - at_s) % 1000 for n, at_s in enumerate(sorted(times))}
        assert 1 == len(moved)
        assert copy or moved == {0}


def test_the_same_seed_gives_the_same_offsets() -> None:
    """And another seed others."""
    one = replay([0], 20)

    assert list(one.arrivals(7)) == list(one.arrivals(7))
    assert Counter(each.at_s for each in one.arrivals(7)) != Counter(each.at_s for each in one.arrivals(8))


def test_a_part_of_a_trace_begins_at_zero(tmp_path: Path) -> None:
    """What comes before it or after is left out, with a note."""
    found = read_replay(source(tmp_path, skip_s=15, span_s=20))

    assert [("p20", 5), ("p30", 15)] == [(pod.name, pod.came_s) for pod in found.pods]
    assert ("2 pods come before or after the part of the trace that is replayed",) == found.notes


def test_no_pod_runs_longer_than_the_longest(tmp_path: Path) -> None:
    """A trace of months is replayed for days."""
    assert {60} == {pod.runs_s for pod in read_replay(source(tmp_path, longest_s=60)).pods}
    assert {100} == {pod.runs_s for pod in read_replay(source(tmp_path)).pods}


def test_a_trace_lasts_until_its_last_pod(tmp_path: Path) -> None:
    """Unless a span is given."""
    assert 41 == read_replay(source(tmp_path)).span_s


def test_a_part_without_pods_is_refused(tmp_path: Path) -> None:
    """Nothing would happen, and the time is likely to be meant otherwise."""
    with pytest.raises(InputError, match="expected pods in the part that is replayed, got none, and 4 outside it"):
        read_replay(source(tmp_path, skip_s=50))
