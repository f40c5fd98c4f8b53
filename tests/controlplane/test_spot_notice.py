"""Spot notices for twenty pods in slices on a real control plane: in what order Kerf writes, and that none is lost.

HAMi locks a node while it binds a pod there, so twenty on one node would take minutes: there are four nodes.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.interposer import Interposer
from tests.controlplane.test_crashes import Lives, deployment, short_lived
from tools.controlplane.server import Binaries

Json = dict[str, Any]
SLICE = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4500"}
"""Of which a card of 24 GB holds five."""
PODS = {"low": (0, 8), "middle": (500, 6), "high": (1000, 6)}
"""By the name of the Deployment its priority and how many it has."""


@pytest.fixture(scope="module")
def lives(binaries: Binaries) -> Iterator[Lives]:
    """Kerf, dead, on a cluster whose nodes have one card each."""
    with cluster(binaries, with_hami=True) as site, Interposer(site.plane) as proxy:
        site.plane.apply([short_lived("slices", "g5.xlarge", {"gpu": "on"})])
        site.plane.apply([_class(name, value) for name, (value, _) in PODS.items() if value])
        yield Lives(site, proxy)


def _class(name: str, value: int) -> Json:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**head, "metadata": {"name": name}, "value": value}


def workload(name: str) -> Json:
    """One of the three Deployments."""
    value, replicas = PODS[name]
    made = deployment(name, "slices", replicas, SLICE)
    if value:
        made["spec"]["template"]["spec"]["priorityClassName"] = name
    return made


def writes(site: Cluster) -> list[tuple[str, str]]:
    """Claims that were created and pods that were evicted with success, in the order in which the server did it."""
    found = []
    for event in site.plane.audit_events():
        asked = event.get("objectRef", {})
        named = asked.get("resource", ""), asked.get("subresource", "")
        is_done = event["verb"] == "create" and event.get("responseStatus", {}).get("code") == 201
        if is_done and named in (("nodeclaims", ""), ("pods", "eviction")):
            found.append((event["stageTimestamp"], named[0], asked.get("name", "")))
    return [(what, name) for _, what, name in sorted(found)]


@pytest.mark.long
def test_new_nodes_are_asked_for_first_and_the_least_priority_goes_first(lives: Lives) -> None:
    """In the end all twenty run on their slices again, on four other nodes."""
    site = lives.site
    lives.begin()
    site.plane.apply([workload(name) for name in PODS])
    lives.until(lambda: 20 == len(site.pods("Running")), "twenty pods run")
    homes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in site.pods()}
    nodes, before = sorted(set(homes.values())), len(writes(site))
    assert 4 == len(nodes)

    site.plane.kubectl("annotate", "node", *nodes, "kerf.dev/interrupt=true")
    lives.until(lambda: not {*nodes} & {*site.names("nodes")}, "the nodes are gone")
    lives.until(lambda: 20 == len(site.pods("Running")), "twenty pods run again")

    done = writes(site)[before:]
    evicted = [name for what, name in done if what == "pods"]
    assert "nodeclaims" == done[0][0]
    assert sorted(homes) == sorted(evicted)
    for node in nodes:
        order = [PODS[name.partition("-")[0]][0] for name in evicted if homes[name] == node]
        assert sorted(order) == order
    assert 4 == len(site.names("nodes"))

    site.plane.kubectl("delete", "deployments", "--all")
    lives.until(lambda: [] == site.names("nodeclaims") == site.instances(), "all is gone")
    lives.end()
