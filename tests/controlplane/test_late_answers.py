"""Answers of a real API server that come late while its watches are fast: nothing sticks, nothing is bought twice."""

import random
from collections.abc import Callable, Iterator

import pytest

from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.interposer import Asked, Interposer
from tests.controlplane.test_crashes import deployment, short_lived
from tools.controlplane.server import Binaries

NODES = 5


@pytest.fixture(scope="module")
def site(binaries: Binaries) -> Iterator[Cluster]:
    """A cluster with one pool; each test leaves it empty."""
    with cluster(binaries) as found:
        found.plane.apply([short_lived("plain", "m5.4xlarge", {})])
        yield found


def late(kind: str, most_s: float) -> Callable[[Asked], float]:
    """Answers to writes of that kind, or to all, come later by chance."""
    chance = random.Random(7)
    return lambda asked: chance.uniform(most_s / 4, most_s) if asked.is_write and kind in str(asked) else 0.0


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("kind", "most_s"),
    [
        ("create nodeclaims", 1.0),
        pytest.param("nodeclaims", 3.0, marks=LONG),
        pytest.param("", 5.0, marks=LONG),
    ],
)
def test_all_pods_run_however_late_answers_come(site: Cluster, kind: str, most_s: float) -> None:
    """Forty pods get five nodes, and all of them go again: no claim is left behind on the way up or down."""
    with Interposer(site.plane) as proxy:
        proxy.faults.answer_s = late(kind, most_s)
        before = len(site.created_claims())
        replica = site.start("--no-leader-elect", f"--kubeconfig={proxy.kubeconfig()}")
        try:
            site.plane.apply([deployment("web", "plain", 40, {"cpu": "1900m"})])
            site.until(lambda: 40 == len(site.pods("Running")), "forty pods run", 180)
            site.until(lambda: all(map(_is_ready, site.plane.list("nodeclaims"))), "each claim is ready", 120)
            assert NODES == len(site.created_claims()) - before

            site.plane.kubectl("scale", "deployment", "web", "--replicas=0")
            site.until(lambda: [] == site.names("nodeclaims") == site.names("nodes"), "all is gone", 240)
            site.plane.kubectl("delete", "deployment", "web")
            assert NODES == len(site.created_claims()) - before
            lines = replica.program.log.read_text(encoding="utf-8").splitlines()
            assert [] == [line for line in lines if "again and again" in line or "reconcile failed" in line]
        finally:
            replica.program.kill()


def _is_ready(claim: dict[str, object]) -> bool:
    status = claim.get("status")
    conditions = status.get("conditions", ()) if isinstance(status, dict) else ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
