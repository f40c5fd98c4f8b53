"""Pods that spread over domains: the stand-in refuses and prefers as kube-scheduler's PodTopologySpread does."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.sim.objects import Json
from tests.sim.cluster import Cluster, cpu_pod, ready_node, said

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes of zone z1, one of z2, and one that is in none."""
    made = Cluster()
    zones = {"a": "z1", "b": "z1", "c": "z2"}
    made.create(*(ready_node(name, labels={ZONE: zone}) for name, zone in zones.items()), ready_node("d"))
    yield made
    made.loop.close()


def spread(name: str, cpu: str = "1", selector: Json | None = None, **constraint: Any) -> Json:
    """A pod labelled `app: web` that spreads over zones with pods like it."""
    given = {"labelSelector": {"matchLabels": {"app": "web"}} if selector is None else selector}
    fields = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **given, **constraint}
    pod = cpu_pod(name, cpu, topologySpreadConstraints=[fields])
    pod["metadata"]["labels"] = {"app": "web", "version": name}
    return pod


def zones(cluster: Cluster) -> list[str]:
    """The zones of all pods that have a place."""
    return sorted("z2" if node == "c" else "z1" for node in cluster.placed().values() if node)


def test_no_zone_gets_ahead_of_the_emptiest(cluster: Cluster) -> None:
    """Zone z2 is full with two; so the sixth pod waits, though a node of z1 has room. A node without a zone is none."""
    cluster.create(*(spread(f"p{number}", "2") for number in range(6)))

    assert ["z1", "z1", "z1", "z2", "z2"] == zones(cluster)
    (waiting,) = [name for name, node in cluster.placed().items() if not node]
    spread_out = "1 node(s) didn't match pod topology spread constraints"
    expected = f"{spread_out}, {spread_out} (missing required label), 2 Insufficient cpu"
    assert f"0/4 nodes are available: {expected}." == said(cluster, waiting)


def test_too_few_domains_count_as_an_empty_one(cluster: Cluster) -> None:
    """With minDomains 3 no zone may have more than one pod here."""
    cluster.create(*(spread(f"p{number}", minDomains=3) for number in range(3)))

    assert ["z1", "z2"] == zones(cluster)


@pytest.mark.parametrize(("policy", "places"), [("Honor", ["z1", "z1"]), ("Ignore", ["z1"])])
def test_a_zone_that_the_pod_cannot_reach_counts_where_it_says_so(
    cluster: Cluster, policy: str, places: list[str]
) -> None:
    """Its affinity keeps it in z1: only where the policy ignores that does z2 hold it back."""
    for number in range(2):
        pod = spread(f"p{number}", nodeAffinityPolicy=policy)
        pod["spec"]["nodeSelector"] = {ZONE: "z1"}
        cluster.create(pod)

    assert places == zones(cluster)


@pytest.mark.parametrize(("policy", "places"), [("Honor", ["z1", "z1"]), ("Ignore", ["z1"])])
def test_a_tainted_zone_counts_where_it_says_so(cluster: Cluster, policy: str, places: list[str]) -> None:
    """By default taints are ignored."""
    taint = {"key": "gone", "effect": "NoSchedule"}
    cluster.at(0, lambda: cluster.api.patch("Node", "", "c", {"spec": {"taints": [taint]}}))
    cluster.create(*(spread(f"p{number}", nodeTaintsPolicy=policy) for number in range(2)))

    assert places == zones(cluster)


def test_only_pods_of_one_version_count(cluster: Cluster) -> None:
    """Each pod here is its own version, so all find room in any zone."""
    cluster.create(*(spread(f"p{number}", "100m", matchLabelKeys=["version"]) for number in range(6)))

    assert 6 == len(zones(cluster))


def test_a_pod_comes_when_the_other_zone_fills(cluster: Cluster) -> None:
    """The queue tries it when a pod comes that counts."""
    wants_z1: Json = {"nodeSelector": {ZONE: "z1"}}
    first, second = spread("p0", nodeAffinityPolicy="Ignore"), spread("p1", nodeAffinityPolicy="Ignore")
    first["spec"] |= wants_z1
    second["spec"] |= wants_z1
    cluster.create(first, second)
    assert ["z1"] == zones(cluster)

    cluster.create(spread("p2"))
    cluster.at(1)
    assert ["z1", "z1", "z2"] == zones(cluster)


def test_a_pod_that_would_rather_spread_does(cluster: Cluster) -> None:
    """ScheduleAnyway decides between nodes, and refuses none."""
    cluster.create(*(spread(f"p{number}", whenUnsatisfiable="ScheduleAnyway") for number in range(2)))

    assert ["z1", "z2"] == zones(cluster)
