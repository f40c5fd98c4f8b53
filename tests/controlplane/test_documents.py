"""The documents that Kerf was begun for, lived through on a real control plane: what they promise, step by step."""

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster, Json, cluster
from tools.controlplane.server import Binaries


@pytest.fixture
def plain(binaries: Binaries) -> Iterator[Cluster]:
    """Without HAMi."""
    with cluster(binaries) as made:
        yield made


@pytest.fixture
def shared(binaries: Binaries) -> Iterator[Cluster]:
    """With HAMi."""
    with cluster(binaries, with_hami=True) as made:
        yield made


def test_five_gpu_pods_get_five_nodes(plain: Cluster) -> None:
    """000: with room for them in the limit, each of five whole-GPU pods gets a node of its own, and holds its GPU."""
    # Pods that come over a second are one batch all the same, so each is told of all five nodes.
    replica = plain.start("--batch-idle=2500ms", "--batch-max=15s")
    plain.apply("000-gpu-pools/pool.yaml", lambda text: text.replace("cpu: 10", "cpu: 100"))
    plain.apply("000-gpu-pools/workload.yaml")

    plain.until(lambda: 5 == len(plain.pods("Running")), "five pods run")

    assert 5 == len(plain.names("nodeclaims")) == len(plain.names("nodes")) == len(plain.created_claims())
    assert 5 == len({pod["spec"]["nodeName"] for pod in plain.pods()})
    said = ["pod triggered scale-up: [{gpu-pool-1 0->5 (max: cpu 100)}]"] * 5
    plain.until(lambda: said == plain.events("TriggeredScaleUp"), "each pod is told")
    held = [{"namespace": "default", "pod": p["metadata"]["name"], "node": p["spec"]["nodeName"]} for p in plain.pods()]
    plain.until(lambda: [1] * 5 == [replica.metric("kerf_pod_gpus", **labels) for labels in held], "each holds a GPU")


def test_a_limit_is_named_with_its_figures_and_raising_it_helps_at_once(plain: Cluster) -> None:
    """000: cpu 10 holds one node of 8; each pod says what is lacking, and a patch of the limit brings the rest."""
    plain.start()
    plain.apply("000-gpu-pools/pool.yaml")
    plain.apply("000-gpu-pools/workload.yaml")
    plain.until(lambda: 1 == len(plain.pods("Running")), "one pod runs")
    waiting = [pod["metadata"]["name"] for pod in plain.pods("Pending")]
    plain.until(lambda: all(_said(plain, name) for name in waiting), "each pod says what it lacks")

    assert 4 == len(waiting)
    assert 1 == len(plain.names("nodes"))
    for name in waiting:
        assert "limit cpu 10 of NodePool gpu-pool-1: 8 " in _said(plain, name)[-1]
    plain.until(lambda: "; 4 pods wait" in _limits(plain).get("message", ""), "the pool says it")
    assert _limits(plain)["message"].startswith("limit cpu 10 of NodePool gpu-pool-1: 8 ")

    plain.plane.kubectl("patch", "nodepool", "gpu-pool-1", "--type=merge", "-p", '{"spec": {"limits": {"cpu": 100}}}')
    plain.until(lambda: 5 == len(plain.created_claims()), "the other four claims", 15)
    plain.until(lambda: 5 == len(plain.pods("Running")), "five pods run")
    plain.until(lambda: "WithinLimits" == _limits(plain)["reason"], "the pool says nothing more")


def _limits(cluster: Cluster) -> Json:
    return cluster.condition("NodePool", "gpu-pool-1", "LimitsReached")


def _said(cluster: Cluster, pod: str) -> list[str]:
    """What Kerf, not the scheduler, says about a pod that waits."""
    return [text for text in cluster.events("FailedScheduling", pod) if text.startswith("Failed to schedule pod")]


@pytest.mark.parametrize("is_told_by_hand", [False, True], ids=["slices", "overlay and mock plugin"])
def test_slices_scale_up_and_down(shared: Cluster, is_told_by_hand: bool) -> None:
    """003: 0 -> 3 -> 1 replicas on slices takes two nodes, then one, and leaves nothing behind."""
    shared.start()
    if is_told_by_hand:
        shared.apply("003-hami/nodeoverlay.yaml")
    shared.apply("003-hami/nodepool.yaml", lambda text: text.replace("consolidateAfter: 30s", "consolidateAfter: 3s"))
    shared.apply("003-hami/workload.yaml")
    shared.plane.kubectl("scale", "deployment/gpu-inference", "--replicas=3")
    shared.until(lambda: 3 == len(shared.pods("Running")), "three pods run")

    assert 2 == len(shared.names("nodes")) == len(shared.created_claims())
    assert {"hami-scheduler"} == {pod["spec"]["schedulerName"] for pod in shared.pods()}
    assert [1, 2] == sorted(_pods_by_card(shared).values())

    shared.plane.kubectl("scale", "deployment/gpu-inference", "--replicas=1")
    shared.until(lambda: 1 == len(shared.names("nodeclaims")), "one claim is left")
    shared.until(lambda: 1 == len(shared.names("nodes")), "one node is left")

    assert 1 == len(shared.instances()) == len(shared.pods("Running"))
    gone = shared.plane.list("events", "default")
    claim = next(e["involvedObject"]["name"] for e in gone if e["reason"] == "Terminated")
    assert ["Launched", "Registered", "Initialized", "DisruptionTerminating", "Terminated"] == _story(shared, claim)
    nodes = [event for event in gone if event["involvedObject"]["kind"] == "Node"]
    assert 1 == [event["reason"] for event in nodes].count("DisruptionTerminating")


def _pods_by_card(cluster: Cluster) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pod in cluster.pods():
        card = pod["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].split(",")[0]
        counts[card] = counts.get(card, 0) + 1
    return counts


def _story(cluster: Cluster, claim: str) -> list[str]:
    told = sorted(cluster.plane.list("events", "default"), key=lambda e: int(e["metadata"]["resourceVersion"]))
    return [event["reason"] for event in told if event["involvedObject"]["name"] == claim]


def test_a_gpu_pool_grows_and_shrinks(plain: Cluster) -> None:
    """004: 2 -> 3 -> 1 replicas, found by the pool's label; a node goes some time after its last pod."""
    plain.start("--batch-idle=2500ms", "--batch-max=15s")
    plain.apply("004-ack/nodepool.yaml", lambda text: text.replace("consolidateAfter: 10m", "consolidateAfter: 3s"))
    plain.apply("004-ack/workload.yaml")
    for replicas in (2, 3, 1):
        scaled(plain, replicas)
        shown = plain.plane.kubectl("get", "nodes", "-l", "gpu-spec=NVIDIA-A10", "--no-headers").stdout.splitlines()
        assert replicas == len(shown)

    said = [
        "pod triggered scale-up: [{gpu-a10 0->2 (max: 10)}]",
        "pod triggered scale-up: [{gpu-a10 0->2 (max: 10)}]",
        "pod triggered scale-up: [{gpu-a10 2->3 (max: 10)}]",
    ]
    plain.until(lambda: said == plain.events("TriggeredScaleUp"), "each pod is told")
    assert 3 == len(plain.created_claims())


def scaled(cluster: Cluster, replicas: int) -> None:
    """The deployment has so many running pods, and each has a node."""
    cluster.plane.kubectl("scale", "deployment/gpu-auto-scaler", f"--replicas={replicas}")
    cluster.until(lambda: replicas == len(cluster.pods()) == len(cluster.pods("Running")), f"{replicas} pods run")
    cluster.until(lambda: replicas == len(cluster.names("nodes")), f"{replicas} nodes are there")
