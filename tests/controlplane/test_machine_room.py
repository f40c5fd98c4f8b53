"""Instances of the proxy's cloud on the real API server: they join, run pods with their GPU, and go."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.clouds.kwok.records import KwokLatencies
from tests.awscloud import AwsCloud
from tests.machineroom.documents import encoded, mime, node_config
from tests.testing.faultproxy.fleets import ids
from tools.controlplane.machineroom.ec2 import Ec2View
from tools.controlplane.machineroom.nodes import ROOM_LABEL, JoinableCluster
from tools.controlplane.machineroom.running import RunningRoom, ca_of
from tools.controlplane.server import ControlPlane

SOON_S = 60


class Site:
    """A cluster whose group and role are in the cloud, and instances from templates."""

    def __init__(self, plane: ControlPlane, cloud: AwsCloud) -> None:
        self.plane, self.ec2, self.iam = plane, cloud.client("ec2"), cloud.client("iam")
        self.group = self.ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"]
        self.iam.create_instance_profile(InstanceProfileName="nodes")
        self.iam.create_role(RoleName="KerfNode", AssumeRolePolicyDocument="{}")
        self.iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="KerfNode")
        self.cluster = JoinableCluster(
            "prod", plane.url, ca_of(plane.ca_file), frozenset({self.group}), frozenset({"KerfNode"})
        )
        self.view = Ec2View(self.ec2, self.iam)
        self._templates = 0

    def launch(self, group: str = "", **cluster: str) -> str:
        """An instance with one A10G that is to join; with another group or another cluster it does not."""
        self._templates += 1
        name = f"template-{self._templates}"
        named = {"apiServerEndpoint": self.plane.url, "certificateAuthority": self.cluster.ca, **cluster}
        data = {
            "ImageId": "ami-1",
            "SecurityGroupIds": [group or self.group],
            "IamInstanceProfile": {"Name": "nodes"},
            "UserData": encoded(mime(node_config("karpenter.sh/nodepool=gpu", **named))),
        }
        self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        template = {"LaunchTemplateName": name, "Version": "$Latest"}
        reply = self.ec2.create_fleet(
            Type="instant",
            LaunchTemplateConfigs=[
                {"LaunchTemplateSpecification": template, "Overrides": [{"InstanceType": "g5.xlarge"}]}
            ],
            TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        )
        (instance,) = ids(reply)
        return instance

    def node(self, instance: str) -> dict[str, Any]:
        """The Node of an instance; empty where there is none."""
        return next(iter(self.plane.list("Node", selector=f"{ROOM_LABEL}={instance}")), {})

    def until(self, holds: Any, what: str) -> None:
        """Wait until it holds."""
        self.plane.wait_until(holds, SOON_S, what)


@pytest.fixture
def site(control_plane: ControlPlane, aws_cloud: AwsCloud) -> Iterator[Site]:
    """A site; its instances end with the test, and their Nodes with them."""
    yield Site(control_plane, aws_cloud)
    for node in control_plane.list("Node", selector=ROOM_LABEL):
        control_plane.delete("Node", node["metadata"]["name"])


def test_an_instance_joins_only_if_everything_is_right(site: Site, namespace: str) -> None:
    """The right one runs a pod with its GPU; those with another CA and another group never become Nodes."""
    other = site.ec2.create_security_group(GroupName="other", Description="other")["GroupId"]
    wrong = (site.launch(certificateAuthority="eA=="), site.launch(group=other))
    instance = site.launch()
    latencies = KwokLatencies(devices_ready_s=0.1, poll_s=0.2)
    with RunningRoom(site.plane.kubeconfig(), site.view, site.cluster, boot_s=0.1, latencies=latencies) as room:
        site.until(lambda: site.node(instance), "its Node")
        name = site.node(instance)["metadata"]["name"]
        patch = {"spec": {"taints": None}}
        kind = "application/merge-patch+json"
        site.until(lambda: _ready(site.node(instance)), "the Node is ready")
        site.plane.request("PATCH", f"/api/v1/nodes/{name}", patch, content_type=kind).good("patch node")
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        spec = {"containers": [{"name": "c", "image": "none", "resources": limits}]}
        metadata = {"name": "p", "namespace": namespace}
        site.plane.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
        site.until(lambda: _phase(site.plane, namespace) == ("Running", name), "the pod runs there")
        refusals = room.refusals
        site.ec2.terminate_instances(InstanceIds=[instance])
        site.until(lambda: not site.node(instance), "the Node is gone")

    assert sorted(wrong) == sorted(refusals)
    assert ("unknown authority", "i/o timeout") == tuple(
        next(text for text in ("unknown authority", "i/o timeout") if text in refusals[name]) for name in wrong
    )
    assert site.plane.get("Pod", "p", namespace) is None


def _ready(node: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


def _phase(plane: ControlPlane, namespace: str) -> tuple[str, str]:
    pod: Any = plane.get("Pod", "p", namespace)
    return pod["status"].get("phase", ""), pod["spec"].get("nodeName", "")
