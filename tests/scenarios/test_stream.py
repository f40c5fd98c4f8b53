"""In a steady stream of equal Jobs the oldest pod goes first, and none waits much longer than one node takes to start.

kube-scheduler tries the pods last that it has tried in vain most often, which are the oldest. Left alone, the first of
twenty Jobs a minute waited four starts (322 s for 80 s), and with 100 a minute nodes were bought twice for them.
"""

from pathlib import Path

import pytest

from tests.scenarios.stream import CPU, SLICES, Stream, Workload, played

HOUR = Stream(a_minute=100, minutes=60, run_s=180)


@pytest.mark.parametrize(
    ("workload", "stream"), [(CPU, Stream(20, 8, 1200)), (SLICES, Stream(12, 6, 1200))], ids=["cpu", "slices"]
)
def test_pods_start_in_the_order_of_their_age(tmp_path: Path, workload: Workload, stream: Stream) -> None:
    """At most one pair in a hundred the other way round: pods that came within half a minute are of one age.

    No pod ends meanwhile, so each has its place on a node that opens.
    """
    came = played(tmp_path, stream, workload)

    assert stream.a_minute * stream.minutes == len(came.bound_s)
    assert came.inversions <= 0.01
    assert came.p95_s <= 1.3 * workload.start_s


@pytest.mark.long
@pytest.mark.parametrize("workload", [CPU, SLICES], ids=["cpu", "slices"])
def test_an_hour_of_100_jobs_a_minute_starts_in_the_order_of_their_age(tmp_path: Path, workload: Workload) -> None:
    """Pods that end make room as well, which kube-scheduler gives to whom it likes; of neighbours as of all pairs."""
    came = played(tmp_path, HOUR, workload)

    assert 6000 == len(came.bound_s)
    assert (came.inversions, came.neighbours) <= (0.01, 0.01)
    assert came.neighbours <= 0.01
    assert came.p95_s <= 1.3 * workload.start_s
    assert max(bound - made for made, bound in zip(came.made_s, came.bound_s, strict=True)) <= 1.3 * workload.start_s
