"""Nodes and pods as they come and go: joining, getting ready, running, ending, and losing the machine."""

from collections.abc import Iterator

import pytest

from kerf.sim.objects import Json
from tests.clouds.market import claim
from tests.sim.cluster import Cluster, cpu_pod

NODE = "ip-10-0-0-1"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """An empty cluster; its loop is closed after the test."""
    built = Cluster()
    yield built
    built.loop.close()


@pytest.fixture
def joined(cluster: Cluster) -> Cluster:
    """With a g5.xlarge that was launched at 0 s and joined at 75 s."""
    cluster.launch(claim(types=("g5.xlarge",)))
    cluster.at(78)
    return cluster


def taints(node: Json) -> list[str]:
    """The keys of a node's taints."""
    return [taint["key"] for taint in node["spec"].get("taints") or ()]


def ready(node: Json) -> str:
    """The status of a node's Ready condition."""
    return next(str(c["status"]) for c in node["status"]["conditions"] if c["type"] == "Ready")


def test_a_machine_joins_after_its_latency(cluster: Cluster) -> None:
    """40 s to run, 35 s to join: nothing at 74 s, a node at 75 s."""
    cluster.launch(claim(types=("g5.xlarge",)))
    cluster.at(74)
    assert cluster.api.get("Node", "", NODE) is None

    cluster.at(75)
    assert ["karpenter.sh/unregistered", "node.kubernetes.io/not-ready"] == taints(cluster.node())


def test_a_node_becomes_ready_and_keeps_the_unregistered_taint(joined: Cluster) -> None:
    """Ready takes the not-ready taint away; the other one is Kerf's to take away."""
    assert "False" == ready(joined.node())

    joined.at(81)
    assert ("True", ["karpenter.sh/unregistered"]) == (ready(joined.node()), taints(joined.node()))


def test_a_fresh_node_shows_no_gpu(joined: Cluster) -> None:
    """Kubelet knows cpu and memory of the machine; the cards come with the device plugin."""
    shown = joined.node()["status"]["allocatable"]

    assert {"cpu": "4", "memory": "16Gi", "pods": "58"} == shown


def test_a_node_has_its_machine_s_labels_and_id(joined: Cluster) -> None:
    """What a bootstrap script would give: labels of the instance, hostname, provider id."""
    node = joined.node()

    assert ("g5.xlarge", NODE) == tuple(
        node["metadata"]["labels"][key] for key in ("node.kubernetes.io/instance-type", "kubernetes.io/hostname")
    )
    assert "fake:///us-east-1a/i-000001" == node["spec"]["providerID"]


def test_startup_taints_go_when_their_agents_run(joined: Cluster) -> None:
    """Whoever a startup taint waits for takes it away; here after five seconds."""
    taint = {"key": "cilium", "effect": "NoSchedule"}
    metadata = {"name": "gpu-1"}
    spec = {"startupTaints": [taint], "taints": [], "nodeClassRef": {}, "requirements": []}
    obj = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec}
    joined.api.create(obj)
    joined.at(90, lambda: joined.api.patch("Node", "", NODE, {"spec": {"taints": [taint]}}))

    assert ["cilium"] == taints(joined.node())
    joined.at(96)
    assert [] == taints(joined.node())


def test_a_bound_pod_runs_a_second_later(joined: Cluster) -> None:
    """Pending, then Running and Ready."""
    joined.register(NODE)
    joined.create(cpu_pod("web"))
    assert "Pending" == joined.pod("web")["status"]["phase"]

    joined.at(100)
    status = joined.pod("web")["status"]
    assert ("Running", "True") == (status["phase"], ready(joined.pod("web")))


def test_init_containers_take_time(joined: Cluster) -> None:
    """A pod with init containers runs five seconds later than one without."""
    joined.at(90)
    joined.register(NODE)
    joined.create(cpu_pod("web", initContainers=[{"name": "load"}]))

    joined.at(95)
    assert "Pending" == joined.pod("web")["status"]["phase"]
    joined.at(97)
    assert "Running" == joined.pod("web")["status"]["phase"]


def test_a_job_s_pod_succeeds_after_its_time(joined: Cluster) -> None:
    """`kerf.dev/run-for` ends a pod that is not restarted."""
    joined.register(NODE)
    job = cpu_pod("job", restartPolicy="Never")
    job["metadata"]["annotations"] = {"kerf.dev/run-for": "2m"}
    joined.create(job)

    joined.at(195)
    assert "Running" == joined.pod("job")["status"]["phase"]
    joined.at(210)
    assert "Succeeded" == joined.pod("job")["status"]["phase"]


def test_a_terminating_pod_goes_after_two_seconds(joined: Cluster) -> None:
    """Most programs end long before their grace is over."""
    joined.register(NODE)
    joined.create(cpu_pod("web"))
    joined.at(100, lambda: joined.api.delete("Pod", "default", "web"))

    joined.at(101)
    assert joined.api.get("Pod", "default", "web") is not None
    joined.at(103)
    assert joined.api.get("Pod", "default", "web") is None


def test_a_lost_machine_takes_its_pods_along(joined: Cluster) -> None:
    """The pods end with it; the Node stays, not ready, for as long as Kerf's finalizer holds it."""
    joined.register(NODE)
    joined.at(
        90, lambda: joined.api.patch("Node", "", NODE, {"metadata": {"finalizers": ["karpenter.sh/termination"]}})
    )
    joined.create(cpu_pod("web"))
    joined.cloud.interrupt("fake:///us-east-1a/i-000001", notice_s=30)

    joined.at(130)
    assert joined.api.get("Pod", "default", "web") is None
    assert ("Unknown", ["node.kubernetes.io/unreachable"] * 2) == (ready(joined.node()), taints(joined.node()))


def test_the_node_of_a_lost_machine_goes_when_nothing_holds_it(joined: Cluster) -> None:
    """As the cloud controller manager deletes nodes whose machines are gone."""
    joined.cloud.interrupt("fake:///us-east-1a/i-000001", notice_s=30)

    joined.at(130)
    assert joined.api.get("Node", "", NODE) is None


def test_a_machine_that_ends_first_never_joins(cluster: Cluster) -> None:
    """Terminated between launch and join."""
    instance = cluster.launch(claim(types=("g5.xlarge",)))
    cluster.loop.run_until_complete(cluster.cloud.delete(instance.provider_id))

    cluster.at(100)
    assert [] == cluster.api.list("Node")
