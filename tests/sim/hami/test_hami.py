"""HAMi's stand-in: webhook, choice of node and card, and the records it leaves."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.errors import ApiError
from kerf.sim.objects import Json
from tests.clouds.market import claim
from tests.sim.cluster import Cluster, gpu_pod

ALLOCATED, PHASE = "hami.io/vgpu-devices-allocated", "hami.io/bind-phase"
FIRST, SECOND = "ip-10-0-0-1", "ip-10-0-0-2"


def installed() -> Json:
    """HAMi's ConfigMap, with the chart's defaults."""
    metadata = {"name": "hami-scheduler-device", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"device-config.yaml": "nvidia: {}"}}


def cluster_of(*types: str) -> Cluster:
    """A cluster with HAMi and a node of each type, whose cards register at 140 s."""
    cluster = Cluster()
    cluster.create(installed())
    for number, name in enumerate(types, 1):
        cluster.loop.create_task(cluster.cloud.create(claim(f"c{number}", f"uid-{number}", types=(name,))))
    cluster.at(90)
    for number in range(1, len(types) + 1):
        cluster.register(f"ip-10-0-0-{number}", gpu="on")
    cluster.at(150)
    return cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes of one A10G each."""
    built = cluster_of("g5.xlarge", "g5.xlarge")
    yield built
    built.loop.close()


def annotations(cluster: Cluster, name: str) -> dict[str, str]:
    """A pod's annotations."""
    found: dict[str, str] = cluster.pod(name)["metadata"]["annotations"]
    return found


def message(cluster: Cluster, name: str) -> Any:
    """Why a pod waits."""
    return next(c["message"] for c in cluster.pod(name)["status"]["conditions"] if c["type"] == "PodScheduled")


def test_the_webhook_completes_a_pod(cluster: Cluster) -> None:
    """A pod that asks for memory alone asks for one GPU, and is HAMi's scheduler's."""
    cluster.create(gpu_pod("p", gpumem=1000))

    spec = cluster.pod("p")["spec"]
    assert "hami-scheduler" == spec["schedulerName"]
    assert {"nvidia.com/gpumem": "1000", "nvidia.com/gpu": "1"} == spec["containers"][0]["resources"]["limits"]


def test_the_webhook_refuses_a_privileged_pod(cluster: Cluster) -> None:
    """As HAMi's: a container that sees all cards cannot be limited."""
    pod = gpu_pod("p", gpu=1)
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}

    with pytest.raises(ApiError, match="privileged"):
        cluster.create(pod)


@pytest.mark.parametrize("part", ["pod", "namespace"])
def test_the_webhook_leaves_what_is_excluded(cluster: Cluster, part: str) -> None:
    """The label hami.io/webhook=ignore, on the pod or on its namespace."""
    label = {"hami.io/webhook": "ignore"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": label}}
    pod = gpu_pod("p", gpumem=1000)
    pod["metadata"]["labels"] = label
    cluster.create(*([namespace, gpu_pod("p", gpumem=1000)] if part == "namespace" else [pod]))

    assert "default-scheduler" == cluster.pod("p")["spec"]["schedulerName"]


def test_without_hami_a_slice_waits_for_ever() -> None:
    """kube-scheduler knows no gpumem, and no webhook takes the pod over."""
    cluster = Cluster()
    cluster.launch(claim(types=("g5.xlarge",)))
    cluster.at(80)
    cluster.register(FIRST)
    cluster.create(gpu_pod("p", gpumem=1000))

    assert "default-scheduler" == cluster.pod("p")["spec"]["schedulerName"]
    assert "0/1 nodes are available: 1 Insufficient nvidia.com/gpumem." == message(cluster, "p")
    cluster.loop.close()


def test_two_slices_share_a_card(cluster: Cluster) -> None:
    """003-1: two pods of 50 cores on one card by the binpack of nodes, the third on the other."""
    cluster.create(*(gpu_pod(f"p{i}", gpu=1, gpumem=1000, gpucores=50) for i in range(3)))

    assert {"p0": FIRST, "p1": FIRST, "p2": SECOND} == cluster.placed()
    assert [f"GPU-{FIRST}-0,NVIDIA,1000,50:;"] * 2 == [annotations(cluster, p)[ALLOCATED] for p in ("p0", "p1")]


def test_a_card_that_is_full_refuses_in_hami_s_words(cluster: Cluster) -> None:
    """The extender's reasons stand among kube-scheduler's."""
    cluster.create(*(gpu_pod(f"p{i}", gpumem=20000) for i in range(3)))

    assert "0/2 nodes are available: 2 1/1 CardInsufficientMemory." == message(cluster, "p2")


def test_the_device_plugin_ends_the_bind(cluster: Cluster) -> None:
    """`allocating` until the pod starts, then `success`, and nothing is left to allocate."""
    cluster.create(gpu_pod("p", gpumem=1000))
    assert "allocating" == annotations(cluster, "p")[PHASE]

    cluster.at(152)
    assert ("success", "") == tuple(
        annotations(cluster, "p")[key] for key in (PHASE, "hami.io/vgpu-devices-to-allocate")
    )


def test_a_pinned_card_is_obeyed() -> None:
    """`nvidia.com/use-gpuuuid` decides, also where the policy would choose another card."""
    cluster = cluster_of("g5.12xlarge")
    pinned = f"GPU-{FIRST}-2"
    cluster.create(gpu_pod("p", gpumem=1000, annotations={"nvidia.com/use-gpuuuid": pinned}))

    assert f"{pinned},NVIDIA,1000,0:;" == annotations(cluster, "p")[ALLOCATED]
    cluster.loop.close()


def test_a_pod_that_goes_gives_its_slice_back(cluster: Cluster) -> None:
    """What waited gets it at the next try."""
    cluster.create(*(gpu_pod(f"p{i}", gpumem=20000) for i in range(3)))
    cluster.at(160, lambda: cluster.api.delete("Pod", "default", "p0"))

    cluster.at(165)
    assert {"p1": SECOND, "p2": FIRST} == cluster.placed()


def test_a_dropped_request_passes_anywhere(cluster: Cluster) -> None:
    """`gpumem: 4Gi` is no MiB number: HAMi drops it and lets the pod run without a slice."""
    pod = gpu_pod("p")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpumem": "4Gi"}}
    cluster.create(pod)

    assert {"p": FIRST} == cluster.placed()
    assert ALLOCATED not in annotations(cluster, "p")


def test_a_node_without_cards_is_unregistered() -> None:
    """The normal state of a fresh node, in HAMi's word for it."""
    cluster = Cluster()
    cluster.create(installed())
    cluster.launch(claim(types=("g5.xlarge",)))
    cluster.at(90)
    cluster.register(FIRST, gpu="on")
    cluster.create(gpu_pod("p", gpumem=1000))

    assert "0/1 nodes are available: 1 node unregistered." == message(cluster, "p")
    cluster.loop.close()
