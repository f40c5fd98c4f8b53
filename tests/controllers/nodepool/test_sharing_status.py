"""A pool says in a condition what is wrong with its sharing of GPUs: the place and the reason, as long as it is so."""

import pytest

from kerf.controllers.nodepool.sharing import SharingStatus
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pool

CONFIG, LAYOUT = "nvidia.com/device-plugin.config", "nvidia.com/mig.config"
SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %s}]}}\n"


def config_map(**data: str) -> Json:
    """The device plugin's, as its chart calls it."""
    metadata = {"name": "time-slicing-config", "namespace": "gpu-operator"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def start(cluster: Cluster) -> None:
    """The controller alone."""
    cluster.start(SharingStatus(cluster.state, cluster.ports, cluster.book))


def said(cluster: Cluster, name: str = "gpu") -> tuple[str, str] | None:
    """Status and message of the pool's condition; None when it has none."""
    found = next(each for each in cluster.api.list("NodePool") if each["metadata"]["name"] == name)
    for condition in found.get("status", {}).get("conditions", []):
        if condition["type"] == "GPUSharingMisconfigured":
            return condition["status"], condition.get("message", "")
    return None


@pytest.mark.parametrize(
    "text, place, reason",
    [
        ("version: v1\nsharing: [", "ConfigMap gpu-operator/time-slicing-config", "expected YAML"),
        (SHARED % 1, 'data["four"].sharing.timeSlicing.resources[0].replicas', "expected a whole number from 2, got 1"),
        (SHARED % 0, 'data["four"].sharing.timeSlicing.resources[0].replicas', "expected a whole number from 2, got 0"),
    ],
)
def test_a_config_map_that_cannot_be_read_is_reported_on_the_pools_that_need_it(
    cluster: Cluster, text: str, place: str, reason: str
) -> None:
    """Until it can be read again; the pool beside it has no such condition."""
    cluster.put(pool(labels={CONFIG: "four"}), pool("plain"), config_map(four=SHARED % 4, two=SHARED % 2))
    start(cluster)
    assert said(cluster) is None

    cluster.at(
        10, lambda: cluster.api.patch("ConfigMap", "gpu-operator", "time-slicing-config", {"data": {"four": text}})
    )
    cluster.at(11)
    found = said(cluster)
    assert found is not None
    assert "True" == found[0]
    assert place in found[1]
    assert reason in found[1]
    assert said(cluster, "plain") is None

    again = {"data": {"four": SHARED % 2}}
    cluster.at(20, lambda: cluster.api.patch("ConfigMap", "gpu-operator", "time-slicing-config", again))
    cluster.at(21)
    assert ("False", "") == said(cluster)


def test_an_unknown_name_is_reported_beside_good_ones(cluster: Cluster) -> None:
    """The good ones serve, so nothing else would say it."""
    cluster.put(
        pool(annotations={"kerf.dev/device-plugin-configs": "four, fuor"}), config_map(four=SHARED % 4, two=SHARED % 2)
    )
    start(cluster)

    told = (
        "annotation kerf.dev/device-plugin-configs: expected a configuration of NVIDIA's device plugin (four, two), "
        "got fuor"
    )
    assert ("True", told) == said(cluster)


def test_a_layout_that_the_cards_cannot_have_is_reported(cluster: Cluster) -> None:
    """Of A10G nobody makes MIG instances."""
    cluster.put(pool(labels={LAYOUT: "all-1g.5gb"}))
    start(cluster)

    found = said(cluster)
    assert found is not None
    assert "True" == found[0]
    assert "A10G has no MIG" in found[1]


def hami_map(namespace: str, count: int) -> Json:
    """HAMi's, in a namespace."""
    metadata = {"name": "hami-scheduler-device", "namespace": namespace}
    data = {"device-config.yaml": f"nvidia: {{deviceSplitCount: {count}}}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_contradiction_of_two_maps_is_reported_and_a_tenants_map_is_none(cluster: Cluster) -> None:
    """Until one of them goes; the pool's nodes are planned with what was read first."""
    cluster.put(pool(labels={"gpu": "on"}), hami_map("kube-system", 4), hami_map("team-a", 9))
    start(cluster)
    assert said(cluster) is None

    cluster.at(10, lambda: cluster.api.create(hami_map("hami-system", 5)))
    cluster.at(11)
    found = said(cluster)
    assert found is not None
    assert "hami-system/hami-scheduler-device, kube-system/hami-scheduler-device differ" in found[1]

    cluster.at(20, lambda: cluster.api.delete("ConfigMap", "hami-system", "hami-scheduler-device"))
    cluster.at(21)
    assert "False" == (said(cluster) or ("", ""))[0]


def test_a_config_map_that_a_plugin_reads_and_kerf_does_not_is_reported(cluster: Cluster) -> None:
    """Kerf reads by name. The condition ends when a copy of the map is there, under the name that Kerf knows."""
    path = "device-config.yaml"
    container = {
        "name": "device-plugin",
        "image": "projecthami/hami:v2.10.0",
        "volumeMounts": [{"name": "c", "mountPath": f"/{path}", "subPath": path}],
    }
    volumes = [{"name": "c", "configMap": {"name": "gpu-hami-scheduler-device"}}]
    labels = {"app.kubernetes.io/component": "hami-device-plugin"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"nodeSelector": {"gpu": "on"}, "containers": [container], "volumes": volumes},
    }
    daemon = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "gpu-hami-device-plugin", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    cluster.put(pool(labels={"gpu": "on"}), pool("plain"), daemon)
    start(cluster)

    found = said(cluster)
    assert found is not None
    assert "True" == found[0]
    reads = "DaemonSet kube-system/gpu-hami-device-plugin reads the ConfigMap gpu-hami-scheduler-device"
    assert found[1].startswith(f"{reads} of namespace kube-system, and none was read there")
    assert said(cluster, "plain") is None

    copy = {"name": "kerf-gpu-sharing", "namespace": "kube-system"}
    cluster.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": copy, "data": {path: "nvidia: {}"}})
    cluster.at(30)
    assert ("False", "") == said(cluster)
