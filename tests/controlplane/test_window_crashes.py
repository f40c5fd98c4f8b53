"""kill -9 of Kerf at every kind of write that windows make, before the server has heard of it and after.

No pod is lost, no gate stays closed, nothing is reserved or bought twice.
"""

from collections.abc import Iterator

import pytest

from kerf.model.windows import WINDOW_LABEL
from tests.controlplane.cluster import cluster
from tests.controlplane.interposer import AFTER, BEFORE, Interposer, Kill
from tests.controlplane.test_crashes import Lives, deployment, short_lived
from tests.controlplane.test_windows import gates, window
from tools.controlplane.server import Binaries

KINDS = (
    "patch capacitywindows/status: status.phase",
    "create nodeclaims",
    "patch capacitywindows/status: status.reservations",
    "patch pods: remove=/spec/schedulingGates/0",
    "create pods/eviction",
)
QUICK = KINDS[2:4]
"""The kinds that the gate tries; the others are long."""
ALL_YEAR = {"schedule": "0 0 1 1 *", "duration": "8759h"}


@pytest.fixture(scope="module")
def lives(binaries: Binaries) -> Iterator[Lives]:
    """Kerf, dead, on a cluster with one pool."""
    with cluster(binaries) as site, Interposer(site.plane) as proxy:
        site.plane.apply([short_lived("plain", "c5.xlarge", {})])
        yield Lives(site, proxy)


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS]
)
def test_a_kill_at_a_write_leaves_no_gate_closed(lives: Lives, kind: str) -> None:
    """Two pods are let in and counted once; the window is moved, and both are evicted and held again."""
    site = lives.site
    work = deployment("work", "plain", 2, {"cpu": "1500m"})
    work["spec"]["template"]["metadata"]["labels"][WINDOW_LABEL] = "w"
    kills = [Kill(kind, when) for when in (BEFORE, AFTER)]
    lives.begin(*kills)
    site.plane.apply([window("w", **ALL_YEAR, atEnd="Evict", quota={"gpuHours": "1"}), work])
    lives.until(lambda: 2 == len(site.pods("Running")), "both pods run")
    status = (site.plane.get("cwin", "w") or {})["status"]
    uids = sorted(pod["metadata"]["uid"] for pod in site.pods())

    assert uids == sorted(held["uid"] for held in status["reservations"])
    assert (1, 1) == lives.bought()

    site.plane.apply([window("w", schedule="0 0 1 1 *", duration="1m", atEnd="Evict", quota={"gpuHours": "1"})])
    lives.until(lambda: [["kerf.dev/window"]] * 2 == [gates(pod) for pod in site.pods()], "both are held again")
    assert [] == [f"{kill.when} {kill.kind}" for kill in kills if kill.struck is None]

    site.plane.delete("cwin", "w")
    site.plane.delete("deployment", "work", "default")
    lives.until(lambda: [] == site.names("nodeclaims") == site.instances(), "all is gone")
    assert (1, 1) == lives.bought()
    lives.end()
