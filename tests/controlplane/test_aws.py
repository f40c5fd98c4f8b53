"""Kerf with the cloud aws on a real control plane: an instance joins by its user data, runs a pod, and leaves nothing.

The objects are those of docs/guides/eks.md. AWS is moto behind the fault proxy; the machine room makes a Node of an
instance only if its user data is right.
"""

import os
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

from kerf.clouds.kwok.records import KwokLatencies
from kerf.kube.crds import crds
from kerf.kube.rbac import roles
from kerf.testing.faultproxy.server import FaultProxy, SteppedClock
from kerf.testing.faultproxy.services import CloudCluster
from tests.awscloud import REGION, AwsCloud
from tests.cli.program import ROOT
from tests.clouds.aws.eks import ZONES
from tools.controlplane.installation import NAMESPACE, Installation
from tools.controlplane.machineroom.ec2 import Ec2View
from tools.controlplane.machineroom.nodes import JoinableCluster
from tools.controlplane.machineroom.running import RunningRoom, ca_of
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneOptions
from tools.playground import FAST

SOON_S = 120
EXAMPLES = ROOT / "examples" / "eks"
ROLE = "KerfNode-prod"
Json = dict[str, Any]


@pytest.fixture
def cloud(moto_url: str) -> Iterator[AwsCloud]:
    """An empty cloud on the clock of the machine, as Kerf is."""
    urlopen(Request(f"{moto_url}/moto-api/reset", method="POST")).close()
    with FaultProxy(moto_url, region=REGION) as proxy:
        yield AwsCloud(proxy, SteppedClock())


@pytest.fixture
def plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane of its own: Kerf's kinds and roles are those of AWS."""
    with ControlPlane(binaries, ControlPlaneOptions(audit=True)) as made:
        yield made


class Eks:
    """The cluster in AWS, and what its EC2NodeClass selects."""

    def __init__(self, plane: ControlPlane, cloud: AwsCloud) -> None:
        self.plane, self.cloud, self.ca = plane, cloud, ca_of(plane.ca_file)
        proxy, ec2, self.iam = cloud.proxy, cloud.client("ec2"), cloud.client("iam")
        proxy.services.cluster(CloudCluster("prod", plane.url, self.ca))
        proxy.images.release_al2023("1.34", "v20261101", variant="nvidia")
        proxy.images.release_al2023("1.34", "v20261101")
        in_zones = [{"Name": "availability-zone", "Values": list(ZONES)}]
        subnets = [each["SubnetId"] for each in ec2.describe_subnets(Filters=in_zones)["Subnets"]]
        self.group = ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"]
        ec2.create_tags(Resources=[*subnets, self.group], Tags=[{"Key": "karpenter.sh/discovery", "Value": "prod"}])
        self.iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
        cloud.client("sqs").create_queue(QueueName="interruptions")
        proxy.queue, self.ec2 = "interruptions", ec2

    def room(self) -> RunningRoom:
        """The machines of the cloud."""
        joins = JoinableCluster("prod", self.plane.url, self.ca, frozenset({self.group}), frozenset({ROLE}))
        latencies = KwokLatencies(devices_ready_s=0.1, poll_s=0.2)
        view = Ec2View(self.ec2, self.iam)
        return RunningRoom(self.plane.kubeconfig(), view, joins, boot_s=0.1, latencies=latencies)

    @property
    def left(self) -> tuple[int, int, int]:
        """How many instances, launch templates and instance profiles there are."""
        templates = self.ec2.describe_launch_templates()["LaunchTemplates"]
        profiles = self.iam.list_instance_profiles()["InstanceProfiles"]
        return len(self.cloud.proxy.instances.living()), len(templates), len(profiles)


def _of_the_guide(name: str) -> Json:
    found: Json = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def test_a_pod_gets_an_instance_that_joins_and_nothing_is_left_of_it(plane: ControlPlane, cloud: AwsCloud) -> None:
    """From no node to a bound pod, and back: no instance, launch template or profile remains."""
    eks, installation = Eks(plane, cloud), Installation(plane)
    installation.prepare(crds("aws"), roles(NAMESPACE, "kerf", "aws"), {})
    plane.apply([_of_the_guide(name) for name in ("nodeclass", "nodepool", "pod")])
    keys = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret"}
    environment = {"PATH": os.defpath, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **keys}
    flags = ("--cloud=aws", "--cluster-name=prod", f"--region={REGION}", f"--aws-endpoint={cloud.proxy.url}")
    with eks.room() as room:
        kerf = installation.run(*FAST, *flags, "--interruption-queue=interruptions", environment=environment)
        plane.wait_until(lambda: _phase(plane) == "Running", SOON_S, "the pod runs")
        (claim,) = plane.list("NodeClaim")
        (instance,) = cloud.proxy.instances.living()
        assert claim["status"]["providerID"].endswith(instance.id)
        assert {} == room.refusals
        assert [] == [c for c in claim["status"]["conditions"] if c["type"] == "Drifted"]
        held = plane.get("EC2NodeClass", "gpu")
        assert held is not None
        assert ["karpenter.k8s.aws/termination"] == held["metadata"]["finalizers"]
        assert {"True"} == {c["status"] for c in held["status"]["conditions"]}

        plane.delete("Pod", "first-gpu", "default")
        plane.delete("NodePool", "gpu")
        plane.delete("EC2NodeClass", "gpu")
        plane.wait_until(lambda: eks.left == (0, 0, 0), SOON_S, "nothing is left in AWS")
        plane.wait_until(lambda: plane.get("EC2NodeClass", "gpu") is None, SOON_S, "the EC2NodeClass is gone")
        kerf.program.terminate(10)


def _phase(plane: ControlPlane) -> str:
    pod = plane.get("Pod", "first-gpu", "default") or {}
    return str(pod.get("status", {}).get("phase", ""))
