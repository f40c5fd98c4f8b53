"""Two replicas on a real control plane: one acts, and whatever becomes of it the other goes on from there.

The audit log tells them apart by their user agent; nothing else that a process says of itself is believed.
"""

import os
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.controlplane.cluster import FAST, LATENCIES, Cluster, cluster
from tools.controlplane.installation import NAMESPACE, Replica
from tools.controlplane.server import Binaries

WRITES = ("create", "update", "patch", "delete", "deletecollection")
QUICK = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
)
"""Fifteen, ten and two seconds are for real clusters."""
FREEZE_S = 30
CREATED = "kerf_nodeclaims_created_total"


@pytest.fixture
def slow(binaries: Binaries) -> Iterator[Cluster]:
    """A cloud that takes its time, so that a leader can die while machines are on their way."""
    with cluster(binaries, latencies={**LATENCIES, "launch": "3s"}) as made:
        yield made


def start(site: Cluster, name: str, *flags: str) -> Replica:
    """A replica that is called by that name, ready."""
    environment = {"PATH": os.defpath, "POD_NAME": name}
    replica = site.installation.run(*FAST, *flags, environment=environment)
    site.until(lambda: replica.ready()[0], f"{name} is ready")
    return replica


def leads(replica: Replica) -> bool:
    """Whether it says so."""
    return 1 == replica.metric("kerf_leading")


def pair(site: Cluster, *flags: str) -> tuple[Replica, Replica]:
    """A leader and a follower, `kerf-a` and `kerf-b`."""
    first = start(site, "kerf-a", *flags)
    site.until(lambda: leads(first), "the first leads")
    return first, start(site, "kerf-b", *flags)


def writes_of(site: Cluster, name: str, since_s: float = 0) -> list[str]:
    """What a replica has changed since then, by the audit log; refused writes have changed nothing."""
    return [
        f"{event['verb']} {event['objectRef']['resource']}"
        for event in site.plane.audit_events()
        if f"({name})" in event.get("userAgent", "")
        and event["verb"] in WRITES
        and event["responseStatus"]["code"] < 300
        and event["objectRef"]["resource"] != "selfsubjectaccessreviews"
        and datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp() > since_s
    ]


def lease(site: Cluster) -> dict[str, Any]:
    """The spec of Kerf's Lease."""
    found = site.plane.get("Lease", "kerf-leader-election", NAMESPACE)
    assert found is not None
    spec: dict[str, Any] = found["spec"]
    return spec


def scale_up(site: Cluster) -> None:
    """Five pods that need a node each; returns when their claims are there and no node is."""
    site.apply("000-gpu-pools/pool.yaml", lambda text: text.replace("cpu: 10", "cpu: 100"))
    site.apply("000-gpu-pools/workload.yaml")
    site.until(lambda: 5 == len(site.names("nodeclaims")), "five claims")
    assert [] == site.names("nodes")


def end_well(site: Cluster) -> None:
    """Five pods run on five nodes, and nothing was bought twice."""
    site.until(lambda: 5 == len(site.pods("Running")), "five pods run")
    assert 5 == len(site.created_claims()) == len(site.instances()) == len(site.names("nodes"))


def test_one_leads_and_both_are_ready(slow: Cluster) -> None:
    """The follower reads as much and writes nothing at all."""
    first, second = pair(slow, *QUICK)
    scale_up(slow)
    end_well(slow)

    assert (True, False) == (leads(first), leads(second))
    assert ((True, "ok\n"), (True, "ok\n")) == (first.ready(), second.ready())
    assert [] == writes_of(slow, "kerf-b")
    assert lease(slow)["holderIdentity"].startswith("kerf-a_")
    created = {"verb": "create", "resource": "nodeclaims.karpenter.sh", "answer": "201"}
    for replica, count in ((first, 5), (second, 0)):
        assert count == replica.metric("kerf_api_calls_total", **created) == replica.metric(CREATED)
        assert 0 < replica.metric("kerf_api_call_seconds_count", verb="list")
        assert (count > 0) == (replica.metric("kerf_reconciles_total", outcome="done") > 0)


def test_a_killed_leader_is_replaced_in_the_middle_of_a_scale_up(slow: Cluster) -> None:
    """SIGKILL while machines start: the other waits for the lease to end, and finishes what was begun."""
    first, second = pair(slow, *QUICK)
    scale_up(slow)
    first.program.kill()

    slow.until(lambda: leads(second), "the second leads", 15)
    end_well(slow)
    assert 1 == lease(slow)["leaseTransitions"]


def test_a_leader_that_is_asked_to_stop_hands_over_at_once(slow: Cluster) -> None:
    """SIGTERM: exit 0, the lease is given up, and nobody waits the fifteen seconds for its end."""
    first, second = pair(slow)
    scale_up(slow)

    assert 0 == first.program.terminate(8)
    slow.until(lambda: leads(second), "the second leads", 8)
    end_well(slow)


def test_a_leader_that_was_frozen_writes_nothing_when_it_thaws(slow: Cluster) -> None:
    """SIGSTOP for 30 s while it gathers pods: the other takes over and buys for them; the thawed one follows.

    When it thaws its window has long closed, and it knows of no claim: it would buy everything again. By the audit log
    it changes nothing, apart from the one write that may have been on its way.
    """
    first, second = pair(slow, "--batch-idle=5s", "--batch-max=20s")
    slow.apply("000-gpu-pools/pool.yaml", lambda text: text.replace("cpu: 10", "cpu: 100"))
    slow.apply("000-gpu-pools/workload.yaml")
    slow.until(lambda: 5 == len(slow.events("FailedScheduling")), "five pods are refused")
    time.sleep(1)
    slow.plane.pause(first.program.name)
    frozen_s = time.monotonic()
    assert [] == slow.created_claims()
    slow.until(lambda: leads(second), "the second leads", 30)
    end_well(slow)
    time.sleep(max(0.0, frozen_s + FREEZE_S - time.monotonic()))

    thawed_s = time.time()
    slow.plane.resume(first.program.name)
    slow.until(lambda: not leads(first), "the first follows", 15)
    slow.plane.kubectl("scale", "deployment/gpu-app", "--replicas=6")
    slow.until(lambda: 6 == len(slow.pods("Running")), "a sixth pod runs")

    assert len(writes_of(slow, "kerf-a", thawed_s)) <= 1
    assert 6 == len(slow.created_claims()) == writes_of(slow, "kerf-b").count("create nodeclaims")
    assert (True, "ok\n") == first.ready()
    assert lease(slow)["holderIdentity"].startswith("kerf-b_")


@pytest.mark.long
def test_a_server_that_goes_away_takes_the_lead_along_and_gives_it_back(slow: Cluster) -> None:
    """Not ready and not leading while it is gone, both again when it is back; the process goes on all the time."""
    alone = start(slow, "kerf-a", *QUICK, "--unready-after=3s")
    slow.until(lambda: leads(alone), "it leads")
    before = alone.program.pid
    slow.plane.kill_apiserver()
    slow.until(lambda: not leads(alone), "it has lost the lead", 20)
    slow.until(lambda: not alone.ready()[0], "it is not ready", 20)

    assert "nodes: lost for" in alone.ready()[1]
    slow.plane.start_apiserver()
    slow.until(lambda: alone.ready()[0] and leads(alone), "it is ready and leads", 60)
    scale_up(slow)
    end_well(slow)
    assert before == alone.program.pid
    assert "Traceback" not in alone.program.tail(10_000)
