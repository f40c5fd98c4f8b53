"""A plan is only worth something if the schedulers follow it: kube-scheduler by reservations, HAMi by pins."""

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kerf.model.nodeclaim import FOLLOW
from kerf.model.nodes import RESERVED_FOR
from kerf.sharing.hami.options import PINNED
from tests.cli.program import kerf
from tests.controlplane.cluster import LATENCIES, Cluster, cluster
from tools.controlplane.installation import Replica
from tools.controlplane.server import Binaries

Json = dict[str, Any]


@pytest.fixture
def plain(binaries: Binaries) -> Iterator[Cluster]:
    """Without HAMi."""
    with cluster(binaries) as made:
        yield made


@pytest.fixture
def shared(binaries: Binaries) -> Iterator[Cluster]:
    """With HAMi, which draws lots among equal nodes."""
    with cluster(binaries, with_hami=True) as made:
        yield made


def pool(instance_type: str, labels: dict[str, str]) -> Json:
    """A pool of one on-demand type."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"metadata": {"labels": labels}, "spec": {"nodeClassRef": reference, "requirements": requirements}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "only"},
        "spec": {"template": template, "disruption": {"consolidateAfter": "Never"}},
    }


def pods(name: str, count: int, resources: dict[str, str]) -> list[Json]:
    """Pods of one size."""
    container = {"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{index:03d}", "namespace": "default"},
            "spec": {"containers": [container]},
        }
        for index in range(count)
    ]


def all_refused(cluster: Cluster, count: int, timeout_s: float = 120) -> None:
    """Every pod has been refused by its scheduler: then Kerf finds one batch, however slowly they were created."""

    def refused() -> int:
        conditions = [each for pod in cluster.pods() for each in pod["status"].get("conditions", ())]
        return sum(each.get("reason") == "Unschedulable" for each in conditions)

    cluster.until(lambda: count == refused(), "all pods are refused", timeout_s)


def as_planned(cluster: Cluster, replica: Replica, count: int, timeout_s: float = 120) -> None:
    """All pods run, on no more nodes than were planned at first, each where it was planned."""
    cluster.until(lambda: count == len(cluster.pods("Running")), "all pods run", timeout_s)
    cluster.until(lambda: count == replica.metric("kerf_pods_followed_total"), "all are counted")
    assert (count, 0, 0) == tuple(outcome(replica, each) for each in ("as-planned", "other-node", "other-cards"))


def test_ordinary_pods_are_bound_where_they_were_planned(plain: Cluster) -> None:
    """Thirty pods fill ten nodes exactly: spread by kube-scheduler alone the small ones take the large ones' room."""
    plain.plane.apply([pool("c5.xlarge", {})])
    small, large = ({"cpu": cpu, "memory": "64Mi"} for cpu in ("700m", "2500m"))
    plain.plane.apply([*pods("small", 20, small), *pods("large", 10, large)])

    all_refused(plain, 30)

    as_planned(plain, plain.start(), 30)

    assert 10 == len(plain.created_claims())


def slices(cluster: Cluster) -> None:
    """Thirty pods that fill fifteen cards if each large one goes with a small one."""
    cluster.plane.apply([pool("g5.xlarge", {"gpu": "on"})])
    small, large = ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory} for memory in ("10500", "12000"))
    cluster.plane.apply([*pods("small", 15, small), *pods("large", 15, large)])


def test_slices_are_bound_on_the_planned_cards(shared: Cluster) -> None:
    """HAMi looks at present use alone, and would put two small slices together: pinned, every pod finds its card."""
    slices(shared)
    all_refused(shared, 30)

    as_planned(shared, shared.start(), 30)

    assert 15 == len(shared.created_claims())


def marks(cluster: Cluster) -> list[str]:
    """What of ours the pods carry that would lead them."""
    keys = [key for pod in cluster.pods() for key in pod["metadata"].get("annotations", ())]
    keys += [each.get("key", "") for pod in cluster.pods() for each in pod["spec"].get("tolerations", ())]
    return sorted({key for key in keys if key in ("nvidia.com/use-gpuuuid", PINNED, RESERVED_FOR)})


def test_without_following_no_pod_is_led(shared: Cluster) -> None:
    """What HAMi makes of it is a matter of luck: it draws lots among equal nodes, and more may be bought."""
    slices(shared)
    all_refused(shared, 30)
    shared.start("--follow=off")
    shared.until(lambda: 30 == len(shared.pods("Running")), "all pods run", 120)

    assert [] == marks(shared)
    assert {"replay"} == {claim["metadata"]["annotations"][FOLLOW] for claim in shared.plane.list("nodeclaims")}


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("count", [200, 1000])
def test_many_pods_at_once_are_bound_where_they_were_planned(plain: Cluster, count: int) -> None:
    """Nodes that fill exactly open by the hundred while every pod waits: none goes elsewhere, no node is added."""
    plain.plane.apply([pool("c5.xlarge", {})])
    small, large = ({"cpu": cpu, "memory": "64Mi"} for cpu in ("700m", "2500m"))
    plain.plane.apply([*pods("small", count * 2 // 3 + 1, small), *pods("large", count // 3, large)])
    all_refused(plain, count, 600)
    replica = plain.start()

    as_planned(plain, replica, count, 600)

    assert math.ceil(count / 3) == len(plain.created_claims())


UNEVEN = {**LATENCIES, "launch": "2s", "jitter": "8s"}
"""Nodes that are bought together come one after the other."""


def of_any_size(kind: str, count: int, chance: Random) -> list[Json]:
    """Pods of fifty sizes at most, each with a name that tells nothing of its age."""
    made: list[Json] = []
    for number in range(count):
        resources = {"cpu": f"{chance.randrange(3, 26)}00m", "memory": "64Mi"}
        if kind == "slices":
            cores = {"nvidia.com/gpucores": "25"} if chance.random() < 0.3 else {}
            memory = str(chance.randrange(2, 24) * 500)
            resources = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory, **cores}
        (pod,) = pods(f"burst-{chance.randrange(10**6):06d}-{number}", 1, resources)
        made.append(pod)
    return made


EVEN = [("cpu", 200, LATENCIES), ("cpu", 1000, LATENCIES), ("slices", 200, LATENCIES)]
BURSTS = [*EVEN, *((kind, count, UNEVEN) for kind, count, _ in EVEN), ("slices", 1000, UNEVEN)]


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize(
    ("kind", "count", "latencies"),
    [pytest.param(*each, id=f"{each[0]}-{each[1]}-{'un' * (each[2] is UNEVEN)}even") for each in BURSTS],
)
def test_a_burst_follows_the_plan_of_all(binaries: Binaries, kind: str, count: int, latencies: dict[str, str]) -> None:
    """Pods of random sizes come while Kerf runs: it buys at most a node more than one plan of all.

    And no fewer than are proven to be needed: pods that come in two batches may be put together better than all at
    once. Of a hundred, 99 are bound where they were planned.
    """
    is_shared = kind == "slices"
    given = [pool("g5.xlarge", {"gpu": "on"}) if is_shared else pool("c5.4xlarge", {})]
    burst = of_any_size(kind, count, Random(count))
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*given, *burst]})
    plan = kerf("plan", "-o", "json", "-f", "-", stdin=stdin).data
    planned, price = len(plan["launches"]), plan["launches"][0]["perHour"]
    least = math.ceil(round(plan["cost"]["perHourLowerBound"] / price, 6))
    with cluster(binaries, with_hami=is_shared, latencies=latencies) as site:
        site.plane.apply(given)
        replica = site.start("--batch-idle=2s", "--batch-max=30s")
        for pod in burst:
            site.plane.request("POST", "/api/v1/namespaces/default/pods", pod).good("create a pod")
        # HAMi binds two or three a second here, for it locks each node while it does.
        site.until(lambda: count == len(site.pods("Running")), "all pods run", 1800)
        # A pod that a later plan puts on a node that is up already is not among those that are counted.
        site.until(lambda: 0.9 * count <= outcome(replica, "as-planned"), "nearly all are counted")

        assert least <= len(site.created_claims()) <= planned + 1
        assert 0.01 * count >= outcome(replica, "other-node") + outcome(replica, "other-cards")


def outcome(replica: Replica, name: str) -> float:
    """How many pods of claims went so."""
    return replica.metric("kerf_pods_followed_total", outcome=name)
