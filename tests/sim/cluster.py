"""A cluster without Kerf: API, cloud, nodes and schedulers in virtual time."""

import asyncio
from typing import Any

from kerf.cloudprovider import Instance
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.model.nodeclaim import NodeClaim
from kerf.sim.kubernetes.device_plugins import DevicePlugins
from kerf.sim.kubernetes.kubelet import Kubelets, NodeLatencies
from kerf.sim.kubernetes.scheduler import Scheduler
from kerf.sim.kubernetes.scoring import ScoringStrategy
from kerf.sim.kubernetes.webhook import webhook
from kerf.sim.objects import Json
from tests.clouds.market import MARKET
from tests.sim.world import World

LATENCIES = NodeLatencies(register_s=35, ready_s=5, devices_ready_s=50)


class Cluster(World):
    """Machines take 40 s to run, 35 s to join, 5 s to get ready; cards 50 s from the end of the unregistered taint."""

    def __init__(self, scoring: ScoringStrategy | None = None) -> None:
        super().__init__()
        self.cloud = FakeCloud(MARKET, self.clock, latencies=Latencies(40, 5))
        self.plugins = DevicePlugins(self.api, self.clock, self.cloud, LATENCIES.devices_ready_s)
        self.kubelets = Kubelets(self.api, self.clock, self.cloud, self.plugins, LATENCIES)
        self.scheduler = Scheduler(self.api, self.clock, scoring)
        self.api.admission.append(webhook(self.api))
        for part in (self.plugins, self.kubelets, self.scheduler):
            part.start()

    def launch(self, claim: NodeClaim) -> Instance:
        """The instance, once its launch is over."""
        return self.loop.run_until_complete(self.cloud.create(claim))

    def register(self, name: str, **labels: str) -> None:
        """What Kerf does when a node has joined: labels on it, and the unregistered taint away."""
        node = self.node(name)
        kept = [taint for taint in node["spec"].get("taints", ()) if taint["key"] != "karpenter.sh/unregistered"]
        patch = {"metadata": {"labels": labels}, "spec": {"taints": kept}}
        self.at(0, lambda: self.api.patch("Node", "", name, patch))

    def node(self, name: str = "ip-10-0-0-1") -> Json:
        """A Node that is there."""
        found = self.api.get("Node", "", name)
        assert found is not None
        return found

    def pod(self, name: str) -> Json:
        """A Pod of the default namespace that is there."""
        found = self.api.get("Pod", "default", name)
        assert found is not None
        return found

    def placed(self) -> dict[str, str]:
        """The node of each pod; empty for those that wait."""
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self.api.list("Pod")}

    def create(self, *objects: Json) -> None:
        """Create all, in this order and at once, and give everybody a turn."""
        self.at(0, lambda: [self.api.create(obj) for obj in objects])
        self.loop.run_until_complete(asyncio.sleep(0.001))


def gpu_pod(name: str = "gpu-0", *, annotations: dict[str, str] | None = None, **limits: int) -> Json:
    """A pod that asks `gpu`, `gpumem`, `gpucores` of nvidia.com."""
    resources = {"limits": {f"nvidia.com/{key}": str(amount) for key, amount in limits.items()}}
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": resources}]}
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def cpu_pod(name: str, cpu: str = "500m", **spec: Any) -> Json:
    """A pod that asks for cpu only."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def ready_node(name: str, *, cpu: str = "4", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """A node that is ready and empty."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def said(cluster: Cluster, name: str) -> str:
    """What the scheduler said of a pod of the default namespace last; empty while it has not refused it."""
    conditions = cluster.pod(name)["status"].get("conditions", [])
    return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")
