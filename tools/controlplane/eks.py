"""The EKS cluster of docs/guides/eks.md in an account of the fault proxy, and the machines that join it."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from kerf.clouds.kwok.records import KwokLatencies
from kerf.testing.faultproxy.server import FaultProxy
from kerf.testing.faultproxy.services import CloudCluster
from tools.controlplane.machineroom.ec2 import Ec2View
from tools.controlplane.machineroom.nodes import JoinableCluster
from tools.controlplane.machineroom.running import RunningRoom, ca_of
from tools.controlplane.server import ControlPlane

CLUSTER, REGION, ROLE, QUEUE = "prod", "us-east-1", "KerfNode-prod", "interruptions"
KEY = "kerf"
"""The access key with which Kerf signs."""
_ZONES = ("us-east-1a", "us-east-1b")
_DISCOVERY = {"Key": "karpenter.sh/discovery", "Value": CLUSTER}


class EksAccount:
    """The cluster as EKS describes it, with the control plane as its server, and what its EC2NodeClasses select.

    `client` makes a client of boto3 for a service. `group` is the security group from which nodes may connect, `image`
    that of AL2023 with NVIDIA's driver.
    """

    def __init__(self, proxy: FaultProxy, plane: ControlPlane, client: Callable[[str], Any]) -> None:
        self.proxy, self.plane, self.ca = proxy, plane, ca_of(plane.ca_file)
        self.ec2, self.iam = client("ec2"), client("iam")
        proxy.services.cluster(CloudCluster(CLUSTER, plane.url, self.ca))
        self.image = proxy.images.release_al2023("1.34", "v20261101", variant="nvidia").id
        self.image_without_driver = proxy.images.release_al2023("1.34", "v20261101").id
        in_zones = [{"Name": "availability-zone", "Values": list(_ZONES)}]
        subnets = [each["SubnetId"] for each in self.ec2.describe_subnets(Filters=in_zones)["Subnets"]]
        self.group = self.security_group("nodes")
        self.ec2.create_tags(Resources=[*subnets, self.group], Tags=[_DISCOVERY])
        self.role(ROLE)
        client("sqs").create_queue(QueueName=QUEUE)
        proxy.queue = QUEUE

    def security_group(self, name: str) -> str:
        """Another one, by its id; the control plane does not know it."""
        return str(self.ec2.create_security_group(GroupName=name, Description=name)["GroupId"])

    def role(self, name: str) -> None:
        """A role that instances may have; that of the guide alone is one of nodes."""
        self.iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")

    def room(self, boot_s: float, latencies: KwokLatencies) -> RunningRoom:
        """The machines: those of the group and the role of the guide are let in."""
        joins = JoinableCluster(CLUSTER, self.plane.url, self.ca, frozenset({self.group}), frozenset({ROLE}))
        view = Ec2View(self.ec2, self.iam)
        return RunningRoom(self.plane.kubeconfig(), view, joins, boot_s=boot_s, latencies=latencies)

    @property
    def flags(self) -> tuple[str, ...]:
        """Of `kerf run` for this cluster."""
        return (
            "--cloud=aws",
            f"--cluster-name={CLUSTER}",
            f"--region={REGION}",
            f"--aws-endpoint={self.proxy.url}",
            f"--interruption-queue={QUEUE}",
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """Of a program that calls the cloud."""
        keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "secret"}
        return {"PATH": os.defpath, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **keys}
