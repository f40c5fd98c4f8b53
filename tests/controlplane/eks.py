"""An EKS cluster on a real control plane: AWS is moto behind the fault proxy, machines join by their user data alone.

Kerf runs as its users run it, with short waits. A test begins with an empty cloud, and what it has made is gone from
cluster and cloud before the next one begins.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.request import Request, urlopen

import yaml

from kerf.clouds.kwok.records import KwokLatencies
from kerf.kube.crds import crds
from kerf.kube.rbac import roles
from kerf.testing.faultproxy.server import FaultProxy, SteppedClock
from kerf.testing.faultproxy.services import CloudCluster
from tests.awscloud import REGION, AwsCloud
from tests.clouds.aws.eks import ZONES
from tests.controlplane.cluster import EXAMPLES, FAST, Cluster
from tools.controlplane.installation import NAMESPACE, Installation, Replica
from tools.controlplane.machineroom.ec2 import Ec2View
from tools.controlplane.machineroom.nodes import JoinableCluster
from tools.controlplane.machineroom.running import RunningRoom, ca_of
from tools.controlplane.server import Binaries
from tools.playground import hosted

SOON_S = 120
ROLE, QUEUE, KEY = "KerfNode-prod", "interruptions", "kerf"
KINDS = ("Deployment", "Pod", "NodePool", "EC2NodeClass")
"""What tests make, in the order in which it goes."""
Json = dict[str, Any]


@contextmanager
def control_plane(binaries: Binaries, *, with_hami: bool = False) -> Iterator[Cluster]:
    """A control plane of its own: Kerf's kinds and roles are those of AWS."""
    with hosted(binaries, with_hami=with_hami) as plane:
        installation = Installation(plane)
        installation.prepare(crds("aws"), roles(NAMESPACE, "kerf", "aws"), {})
        yield Cluster(installation)


@contextmanager
def empty_cloud(moto_url: str) -> Iterator[AwsCloud]:
    """A cloud on the clock of the machine, as Kerf is."""
    urlopen(Request(f"{moto_url}/moto-api/reset", method="POST")).close()
    with FaultProxy(moto_url, region=REGION) as proxy:
        yield AwsCloud(proxy, SteppedClock())


class Eks:
    """The cluster `prod` in AWS, and what its EC2NodeClasses select. `group` is that from which nodes may connect."""

    def __init__(self, site: Cluster, cloud: AwsCloud) -> None:
        self.site, self.plane, self.cloud, self.proxy = site, site.plane, cloud, cloud.proxy
        self.ca = ca_of(self.plane.ca_file)
        self.ec2, self.iam = cloud.client("ec2"), cloud.client("iam")
        self.proxy.services.cluster(CloudCluster("prod", self.plane.url, self.ca))
        self.image = self.proxy.images.release_al2023("1.34", "v20261101", variant="nvidia").id
        self.image_without_driver = self.proxy.images.release_al2023("1.34", "v20261101").id
        in_zones = [{"Name": "availability-zone", "Values": list(ZONES)}]
        subnets = [each["SubnetId"] for each in self.ec2.describe_subnets(Filters=in_zones)["Subnets"]]
        self.group = self.security_group("nodes")
        self.ec2.create_tags(
            Resources=[*subnets, self.group], Tags=[{"Key": "karpenter.sh/discovery", "Value": "prod"}]
        )
        self.role(ROLE)
        cloud.client("sqs").create_queue(QueueName=QUEUE)
        self.proxy.queue = QUEUE
        self._replica: Replica | None = None
        self._ends = ExitStack()

    def security_group(self, name: str) -> str:
        """Another one, by its id."""
        return str(self.ec2.create_security_group(GroupName=name, Description=name)["GroupId"])

    def role(self, name: str) -> None:
        """A role that instances may have; whether it is one of nodes is said in `begin`."""
        self.iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")

    def begin(self, *flags: str) -> Replica:
        """Kerf and the machines of the cloud; those of the group and role of the guide are let in."""
        joins = JoinableCluster("prod", self.plane.url, self.ca, frozenset({self.group}), frozenset({ROLE}))
        latencies = KwokLatencies(devices_ready_s=0.1, poll_s=0.2)
        view = Ec2View(self.ec2, self.iam)
        self.room = self._ends.enter_context(
            RunningRoom(self.plane.kubeconfig(), view, joins, boot_s=0.1, latencies=latencies)
        )
        self._replica = self.site.installation.run(
            *FAST,
            "--cloud=aws",
            "--cluster-name=prod",
            f"--region={REGION}",
            f"--aws-endpoint={self.proxy.url}",
            f"--interruption-queue={QUEUE}",
            "--no-leader-elect",
            *flags,
            environment=self.environment,
        )
        return self._replica

    @property
    def environment(self) -> dict[str, str]:
        """Of a program that calls the cloud."""
        keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "secret"}
        return {"PATH": os.defpath, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **keys}

    def node_class(self, name: str, **spec: Any) -> None:
        """Apply an EC2NodeClass: that of the guide with this name, `spec` over it."""
        made = example("nodeclass")
        made["metadata"]["name"] = name
        made["spec"].update(spec)
        self.plane.apply([made])

    def pool(self, name: str, *types: str, node_class: str = "", **given: Any) -> None:
        """Apply a pool of these types, on demand unless `capacity_type` says another; `labels` are of its template."""
        values = {"karpenter.sh/capacity-type": [given.get("capacity_type", "on-demand")]}
        values |= {"node.kubernetes.io/instance-type": list(types)}
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class or name}
        requirements = [{"key": key, "operator": "In", "values": value} for key, value in values.items()]
        template = {
            "metadata": {"labels": given.get("labels", {})},
            "spec": {"nodeClassRef": reference, "requirements": requirements},
        }
        disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "2s"}
        spec = {"template": template, "disruption": disruption}
        kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
        self.plane.apply([{**kind, "spec": spec}])

    def deployment(self, name: str, pool: str, replicas: int, resources: Json, **labels: str) -> None:
        """Apply pods of one container, for the nodes of a pool, which end at once when they are asked to."""
        spec = {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"karpenter.sh/nodepool": pool},
            "containers": [{"name": "main", "image": "main", "resources": {"limits": resources}}],
        }
        metadata = {"labels": {"app": name, **labels}}
        selector = {"matchLabels": {"app": name}}
        deployment = {"replicas": replicas, "selector": selector, "template": {"metadata": metadata, "spec": spec}}
        kind = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"}}
        self.plane.apply([{**kind, "spec": deployment}])

    def until(self, holds: Any, what: str) -> None:
        """Wait until it holds."""
        self.site.until(holds, what, SOON_S)

    @property
    def left(self) -> tuple[int, int, int]:
        """How many instances, launch templates and instance profiles there are."""
        templates = self.ec2.describe_launch_templates()["LaunchTemplates"]
        profiles = self.iam.list_instance_profiles()["InstanceProfiles"]
        return len(self.proxy.instances.living()), len(templates), len(profiles)

    def clear(self) -> None:
        """All that the test has made goes, and Kerf leaves nothing in the cloud."""
        for kind in KINDS:
            for name in self._names(kind):
                self.plane.delete(kind, name, "default" if kind in ("Deployment", "Pod") else "")
        self.until(lambda: (0, 0, 0) == self.left, "nothing is left in AWS")
        self.until(lambda: not any(map(self._names, (*KINDS, "NodeClaim", "Node"))), "nothing is left in the cluster")

    def end(self) -> None:
        """Kerf ends, and so do the machines."""
        if self._replica is not None:
            self._replica.program.terminate(10)
        self._ends.close()

    def _names(self, kind: str) -> list[str]:
        found = self.plane.list(kind, "default") if kind in ("Deployment", "Pod") else self.plane.list(kind)
        return [each["metadata"]["name"] for each in found]


@contextmanager
def eks_cluster(site: Cluster, moto_url: str) -> Iterator[Eks]:
    """For one test, which begins it; at its end nothing may be left."""
    with empty_cloud(moto_url) as cloud:
        made = Eks(site, cloud)
        try:
            yield made
            made.clear()
        finally:
            made.end()


def example(name: str) -> Json:
    """An object of docs/guides/eks.md."""
    found: Json = yaml.safe_load((EXAMPLES / "eks" / f"{name}.yaml").read_text(encoding="utf-8"))
    return found
