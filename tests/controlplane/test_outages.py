"""The server goes, forgets, asks for patience or is cut off in the middle of a word, and clocks differ.

Whatever becomes of the way to the cluster, Kerf ends where it would have ended: nothing is bought twice, nothing that
works is taken away, and readiness tells the truth meanwhile. It never has to be started again by anybody.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import FAST, LATENCIES, Cluster, cluster
from tests.controlplane.interposer import Interposer
from tests.controlplane.test_crashes import deployment, short_lived
from tools.controlplane.installation import NAMESPACE, Replica
from tools.controlplane.server import Binaries

Json = dict[str, Any]
QUICK = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
    "--unready-after=2s",
)
SHIFT_S = 30
CONSOLIDATE_AFTER_S = 8


@pytest.fixture
def site(binaries: Binaries) -> Iterator[Cluster]:
    """A pool whose every pod needs a node of its own, and launches during which something can happen."""
    with cluster(binaries, latencies={**LATENCIES, "launch": "2s"}) as made:
        pool = short_lived("plain", "c5.xlarge", {})
        pool["spec"]["disruption"]["budgets"] = [{"nodes": "100%"}]
        made.plane.apply([pool, deployment("one", "plain", 0, {"cpu": "2500m"})])
        yield made


@pytest.fixture
def proxy(site: Cluster) -> Iterator[Interposer]:
    """Between Kerf and the server."""
    with Interposer(site.plane) as made:
        yield made


def scale(site: Cluster, replicas: int) -> None:
    """So many pods."""
    site.plane.kubectl("scale", "deployment/one", f"--replicas={replicas}")


def served(site: Cluster, pods: int, timeout_s: float = 90) -> None:
    """So many pods run, each on a node of its own, and there is nothing besides."""

    def found() -> set[int]:
        claims, nodes = site.names("nodeclaims"), site.names("nodes")
        return {len(site.pods()), len(site.pods("Running")), len(claims), len(nodes), len(site.instances())}

    site.until(lambda: {pods} == found(), f"{pods} pods and nodes", timeout_s)


def uids(site: Cluster) -> set[str]:
    """Of the pods that run."""
    return {pod["metadata"]["uid"] for pod in site.pods("Running")}


def test_a_server_that_freezes_is_missed_soon(site: Cluster) -> None:
    """Its connections stay, and a watch on which nothing comes may be a quiet one; only the lease tells."""
    replica = site.start(*QUICK)
    site.plane.pause("kube-apiserver")
    site.until(lambda: "no answer for" in replica.ready()[1], "it is not ready", 20)

    site.plane.resume("kube-apiserver")
    site.until(lambda: replica.ready()[0], "it is ready again", 30)


def test_a_server_that_dies_in_the_middle_of_a_scale_up_is_waited_for(site: Cluster) -> None:
    """Four claims are being launched when it goes: not ready while it is gone, and then each gets its one machine."""
    replica = site.start(*QUICK)
    before = replica.program.pid
    scale(site, 4)
    site.until(lambda: 4 == len(site.names("nodeclaims")), "four claims")
    site.plane.kill_apiserver()
    site.until(lambda: "lost for" in replica.ready()[1], "it is not ready", 20)

    site.plane.start_apiserver()
    site.until(lambda: replica.ready()[0], "it is ready")
    served(site, 4)
    assert 4 == len(site.created_claims())
    assert before == replica.program.pid
    assert "Traceback" not in replica.program.log.read_text(encoding="utf-8")


@pytest.mark.parametrize("is_frozen", [pytest.param(True, marks=pytest.mark.long), False], ids=["frozen", "cut off"])
def test_what_happened_behind_a_compaction_is_neither_missed_nor_made_up(
    site: Cluster, proxy: Interposer, is_frozen: bool
) -> None:
    """Three pods go, one comes again under its name and one is new, and the server has forgotten how (410)."""
    replica = site.start(*QUICK, f"--kubeconfig={proxy.kubeconfig()}")
    site.plane.apply([pod("twin")])
    scale(site, 5)
    served(site, 6)

    cut_off(site, proxy, replica, is_frozen)
    scale(site, 2)
    site.plane.kubectl("delete", "pod", "twin", "--grace-period=0", "--force")
    site.until(lambda: 2 == len(site.pods()), "two pods are left")
    kept = uids(site)
    site.plane.apply([pod("twin"), pod("late")])
    site.until(lambda: 4 == len(site.pods("Running")), "two new ones run where there is room")
    site.plane.compact()
    if is_frozen:
        site.plane.resume(replica.program.name)
    proxy.faults.is_deaf = False

    served(site, 4)
    assert kept <= uids(site)
    assert 6 == len(site.created_claims())
    assert 1 <= replica.metric("kerf_watch_lists", resource="pods")


def cut_off(site: Cluster, proxy: Interposer, replica: Replica, is_frozen: bool) -> None:
    """From now on it sees nothing: because it stands still, or because nobody answers it, which it says."""
    if is_frozen:
        site.plane.pause(replica.program.name)
    proxy.faults.is_deaf = not is_frozen
    # This ends the watches; else what happens next would wait for it in a socket.
    site.plane.kill_apiserver()
    site.plane.start_apiserver()
    if not is_frozen:
        site.until(lambda: not replica.ready()[0], "it is not ready", 30)


def pod(name: str) -> Json:
    """One pod that needs a node of its own."""
    template = deployment(name, "plain", 1, {"cpu": "2500m"})["spec"]["template"]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def test_a_server_that_asks_for_patience_is_obeyed(site: Cluster, proxy: Interposer) -> None:
    """Ten seconds of 429 in the middle of a scale-up: nobody hammers, and all ends well."""
    site.start(*QUICK, f"--kubeconfig={proxy.kubeconfig()}")
    scale(site, 4)
    site.until(lambda: site.names("nodeclaims"), "a claim")
    proxy.faults.refused_until_s = time.monotonic() + 10
    served(site, 4)

    assert 1 <= proxy.refused <= 500
    assert 4 == len(site.created_claims())


def test_watches_that_are_cut_inside_an_object_hide_nothing(site: Cluster, proxy: Interposer) -> None:
    """Every watch is cut in the middle of its third piece, all the time, up and down."""
    replica = site.start(*QUICK, f"--kubeconfig={proxy.kubeconfig()}")
    proxy.faults.cut_after = 2
    scale(site, 4)
    served(site, 4)
    kept = uids(site)
    scale(site, 1)
    served(site, 1)

    assert uids(site) <= kept
    assert 20 <= proxy.cuts
    assert 4 == len(site.created_claims())
    assert "Traceback" not in replica.program.log.read_text(encoding="utf-8")


def shifted(site: Cluster, name: str, shift_s: float, folder: Path) -> Replica:
    """A replica whose clock is wrong by so much, ready."""
    place = folder / name
    place.mkdir()
    lines = ("import time", "real = time.time", f"time.time = lambda: real() + {shift_s}")
    (place / "sitecustomize.py").write_text("\n".join(lines), encoding="utf-8")
    environment = {"PATH": os.defpath, "PYTHONPATH": str(place), "POD_NAME": name}
    replica = site.installation.run(*FAST, *QUICK, environment=environment)
    site.until(lambda: replica.ready()[0], f"{name} is ready")
    return replica


def seconds(text: str) -> float:
    """Since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def clocks(first_s: float) -> pytest.MarkDecorator:
    """Both ways, the one in the gate and the other where all runs."""
    other = pytest.param(-first_s, marks=pytest.mark.long)
    return pytest.mark.parametrize("shift_s", [first_s, other], ids=lambda at_s: "ahead" if at_s > 0 else "behind")


@clocks(SHIFT_S)
def test_a_wrong_clock_neither_hastens_nor_delays_anything(site: Cluster, shift_s: float, tmp_path: Path) -> None:
    """Conditions and events bear the server's time, and a node goes consolidateAfter after its last pod."""
    after = json.dumps({"spec": {"disruption": {"consolidateAfter": f"{CONSOLIDATE_AFTER_S}s"}}})
    site.plane.kubectl("patch", "nodepool", "plain", "--type=merge", "-p", after)
    shifted(site, "kerf-a", shift_s, tmp_path)
    scale(site, 3)
    served(site, 3)
    dates = [seconds(c["lastTransitionTime"]) for claim in claims(site) for c in claim["status"]["conditions"]]
    created = [seconds(claim["metadata"]["creationTimestamp"]) for claim in claims(site)]
    assert min(created) - 3 <= min(dates) <= max(dates) < max(created) + SHIFT_S - 3

    scale(site, 1)
    served(site, 1, CONSOLIDATE_AFTER_S + SHIFT_S - 3)
    waited_s = min(asked_s(site, "delete", "nodeclaims")) - max(asked_s(site, "patch", "deployments"))
    assert waited_s >= CONSOLIDATE_AFTER_S - 2


def claims(site: Cluster) -> Sequence[Json]:
    """All of them."""
    return site.plane.list("nodeclaims")


def asked_s(site: Cluster, verb: str, resource: str) -> list[float]:
    """When somebody asked for that, by the server's clock."""
    return [
        seconds(event["requestReceivedTimestamp"])
        for event in site.plane.audit_events()
        if (verb, resource) == (event["verb"], event.get("objectRef", {}).get("resource"))
    ]


@clocks(-SHIFT_S)
def test_replicas_whose_clocks_differ_take_over_in_time(site: Cluster, shift_s: float, tmp_path: Path) -> None:
    """The lead is not taken from one that lives, is taken from one that died, and its dates are understood."""
    first = shifted(site, "kerf-a", shift_s, tmp_path)
    site.until(lambda: 1 == first.metric("kerf_leading"), "it leads")
    second = shifted(site, "kerf-b", 0, tmp_path)
    scale(site, 3)
    served(site, 3)
    assert 0 == lease(site)["leaseTransitions"]

    first.program.kill()
    site.until(lambda: 1 == second.metric("kerf_leading"), "the second leads", 15)
    scale(site, 1)
    served(site, 1, SHIFT_S - 3)
    assert 1 == lease(site)["leaseTransitions"]
    assert 3 == len(site.created_claims())


def lease(site: Cluster) -> Json:
    """The spec of Kerf's Lease."""
    found = site.plane.get("Lease", "kerf-leader-election", NAMESPACE)
    assert found is not None
    spec: Json = found["spec"]
    return spec
