"""Kerf with the cloud aws on a real control plane: instances join by their user data, run pods, and leave nothing."""

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.eks import Eks, Json, control_plane, eks_cluster, example
from tools.controlplane.server import Binaries

OWN_WEBHOOK = {"hami.io/webhook": "ignore"}
"""Labels of pods that ask for whole GPUs where HAMi is installed."""
WHOLE = {"nvidia.com/gpu": "1"}


@pytest.fixture(scope="module")
def site(binaries: Binaries) -> Iterator[Cluster]:
    """With HAMi; each test leaves it as empty as it was."""
    with control_plane(binaries, with_hami=True) as made:
        yield made


@pytest.fixture
def eks(site: Cluster, moto_url: str) -> Iterator[Eks]:
    """An empty cluster; no instance, launch template, profile or object of a test may be left at its end."""
    with eks_cluster(site, moto_url) as made:
        yield made


def _nodes_by_pod(eks: Eks) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in eks.site.pods()}


def test_the_first_pod_of_the_guide_runs(eks: Eks) -> None:
    """The objects of docs/guides/eks.md, unchanged: from no node to a bound pod. Every condition is as it should be."""
    pod = example("pod")
    pod["metadata"]["labels"] = OWN_WEBHOOK
    eks.plane.apply([example("nodeclass"), example("nodepool"), pod])
    eks.begin()
    eks.until(lambda: [pod["metadata"]["name"]] == [p["metadata"]["name"] for p in eks.site.pods("Running")], "it runs")

    (claim,) = eks.plane.list("NodeClaim")
    (instance,) = eks.proxy.instances.living()
    assert claim["status"]["providerID"].endswith(instance.id)
    assert {} == eks.machines.refusals
    assert [] == [c for c in claim["status"]["conditions"] if c["type"] == "Drifted"]
    held = eks.plane.get("EC2NodeClass", "gpu")
    assert held is not None
    assert ["karpenter.k8s.aws/termination"] == held["metadata"]["finalizers"]
    assert {"True"} == {c["status"] for c in held["status"]["conditions"]}


def test_five_gpu_pods_get_five_nodes_and_a_limit_is_named(eks: Eks) -> None:
    """000: a limit of 10 cpu holds one node of 8; once it is raised each of the five pods has a node of its own."""
    eks.node_class("default")
    eks.site.apply("000-gpu-pools/pool.yaml")
    eks.site.apply(
        "000-gpu-pools/workload.yaml",
        lambda text: text.replace("labels: {app: gpu-app}", 'labels: {app: gpu-app, hami.io/webhook: "ignore"}'),
    )
    eks.begin("--batch-idle=2500ms", "--batch-max=15s")
    eks.until(lambda: 1 == len(eks.site.pods("Running")), "one pod runs")
    limits = "limit cpu 10 of NodePool gpu-pool-1: 8 "
    eks.until(lambda: _limit(eks).get("message", "").startswith(limits), "the pool says what it lacks")
    assert 1 == len(eks.proxy.instances.living())

    eks.plane.kubectl("patch", "nodepool", "gpu-pool-1", "--type=merge", "-p", '{"spec": {"limits": {"cpu": 100}}}')
    eks.until(lambda: 5 == len(eks.site.pods("Running")), "five pods run")
    assert 5 == len(set(_nodes_by_pod(eks).values())) == len(eks.proxy.instances.living())


def _limit(eks: Eks) -> Json:
    return eks.site.condition("NodePool", "gpu-pool-1", "LimitsReached")


def test_slices_scale_up_and_down(eks: Eks) -> None:
    """003: 0 -> 3 -> 1 replicas on slices of one A10G each: two instances, then one."""
    eks.node_class("default")
    eks.site.apply("003-hami/nodepool.yaml", lambda text: text.replace("consolidateAfter: 30s", "consolidateAfter: 3s"))
    eks.site.apply("003-hami/workload.yaml")
    eks.begin()
    eks.plane.kubectl("scale", "deployment/gpu-inference", "--replicas=3")
    eks.until(lambda: 3 == len(eks.site.pods("Running")), "three pods run")
    assert {"hami-scheduler"} == {pod["spec"]["schedulerName"] for pod in eks.site.pods()}
    assert 2 == len(eks.proxy.instances.living())

    eks.plane.kubectl("scale", "deployment/gpu-inference", "--replicas=1")
    eks.until(lambda: 1 == len(eks.proxy.instances.living()) == len(eks.plane.list("NodeClaim")), "one node is left")
    assert 1 == len(eks.site.pods("Running"))


def test_a_slice_of_an_l4_is_bought_for_what_fits_it(eks: Eks) -> None:
    """g6f.large has 2,861 MiB of an L4: 2,500 run there, 3,000 are refused with that figure."""
    eks.node_class("slices")
    eks.pool("slices", "g6f.large", labels={"gpu": "on"})
    eks.deployment("fits", "slices", 1, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2500"})
    eks.deployment("large", "slices", 1, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"})
    eks.begin()
    eks.until(lambda: 1 == len(eks.site.pods("Running")), "the pod that fits runs")
    (refused,) = eks.site.pods("Pending")
    eks.until(lambda: _said(eks, refused["metadata"]["name"]), "the other one is told")

    assert "fits" == eks.site.pods("Running")[0]["metadata"]["labels"]["app"]
    assert any("2861" in text for text in _said(eks, refused["metadata"]["name"]))
    assert ["g6f.large"] == [each.instance_type for each in eks.proxy.instances.living()]


def _said(eks: Eks, pod: str) -> list[str]:
    found = eks.site.events("FailedScheduling", pod)
    return [text for text in found if text.startswith("Failed to schedule pod")]


def test_a_plain_gpu_pod_gets_a_slice_as_its_card(eks: Eks) -> None:
    """One nvidia.com/gpu on g6f, which EC2 counts as no GPU at all."""
    eks.node_class("plain")
    eks.pool("plain", "g6f.large")
    eks.deployment("plain", "plain", 1, WHOLE, **OWN_WEBHOOK)
    eks.begin()
    eks.until(lambda: 1 == len(eks.site.pods("Running")), "it runs")

    assert ["g6f.large"] == [each.instance_type for each in eks.proxy.instances.living()]
