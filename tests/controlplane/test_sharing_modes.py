"""Time-slicing and MIG on the real control plane: what is planned for is what its scheduler finds on the node."""

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster, cluster
from tools.controlplane.server import Binaries

GPU_OPERATOR = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-operator"}}


@pytest.fixture
def site(binaries: Binaries) -> Iterator[Cluster]:
    """With the configurations of NVIDIA's plugins."""
    with cluster(binaries) as made:
        made.plane.apply([GPU_OPERATOR])
        made.apply("001-sharing/configs.yaml")
        yield made


def test_eight_pods_share_a_card_and_the_ninth_has_another(site: Cluster) -> None:
    """001-1 and 001-24: kubelet shows eight GPUs where there is one."""
    site.apply("001-sharing/time-slicing.yaml")
    site.start()

    site.until(lambda: 8 == len(site.pods("Running")), "eight pods run", 120)
    (node,) = [node for node in site.plane.list("nodes") if "nvidia.com/gpu" in node["status"]["allocatable"]]
    assert "8" == node["status"]["allocatable"]["nvidia.com/gpu"]

    site.plane.kubectl("scale", "deployment/notebook", "-n", "default", "--replicas=9")
    site.until(lambda: 9 == len(site.pods("Running")), "the ninth runs", 120)
    assert 2 == len(site.created_claims())


def test_an_idle_node_is_cut_again(site: Cluster) -> None:
    """For pods that need other instances; the node is closed until they are there, and nothing is launched."""
    site.apply("001-sharing/mig.yaml", lambda text: text.replace("replicas: 4", "replicas: 0"))
    site.start()
    site.until(lambda: 8 == len(site.pods("Running")), "the small instances are in use", 120)

    site.plane.kubectl("scale", "deployment/embed", "-n", "default", "--replicas=0")
    site.until(lambda: not site.pods(), "the node is idle", 60)
    site.plane.kubectl("scale", "deployment/train", "-n", "default", "--replicas=9")
    site.until(lambda: 9 == len(site.pods("Running")), "the halves are in use", 180)

    assert 1 == len(site.created_claims())
    (node,) = [node for node in site.plane.list("nodes") if "nvidia.com/mig.config" in node["metadata"]["labels"]]
    assert "halves" == node["metadata"]["labels"]["nvidia.com/mig.config"]
    assert {"nvidia.com/mig-1g.5gb": "0", "nvidia.com/mig-3g.20gb": "16"} == {
        name: amount for name, amount in node["status"]["allocatable"].items() if "mig-1g" in name or "mig-3g" in name
    }
    assert not node["spec"].get("unschedulable")
    site.until(lambda: 1 == len(site.events("GPUSharingChanged")), "it is said, once")
