"""An EKS cluster on a real control plane: AWS is moto behind the fault proxy, machines join by their user data alone.

Kerf runs as its users run it, with short waits. A test begins with an empty cloud, and what it has made is gone from
cluster and cloud before the next one begins.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.request import Request, urlopen

import yaml

from kerf.clouds.kwok.records import KwokLatencies
from kerf.kube.crds import crds
from kerf.kube.rbac import roles
from kerf.testing.faultproxy.server import FaultProxy, SteppedClock
from tests.awscloud import REGION, AwsCloud
from tests.controlplane.cluster import EXAMPLES, FAST, Cluster
from tools.controlplane.eks import KEY, EksAccount
from tools.controlplane.installation import NAMESPACE, Installation, Replica
from tools.controlplane.server import Binaries
from tools.playground import hosted

SOON_S = 120
KINDS = ("Deployment", "Pod", "NodePool", "EC2NodeClass")
"""What tests make, in the order in which it goes."""
Json = dict[str, Any]
__all__ = ["KEY", "SOON_S", "Eks", "Json", "control_plane", "eks_cluster", "example"]


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


class Eks(EksAccount):
    """The cluster and the account, as one test begins and ends them."""

    def __init__(self, site: Cluster, cloud: AwsCloud) -> None:
        super().__init__(cloud.proxy, site.plane, cloud.client)
        self.site = site
        self._replica: Replica | None = None
        self._ends = ExitStack()

    def begin(self, *flags: str) -> Replica:
        """Kerf and the machines of the cloud, which is in a hurry."""
        latencies = KwokLatencies(devices_ready_s=0.1, poll_s=0.2)
        self.machines = self._ends.enter_context(self.room(0.1, latencies))
        own = (*FAST, *self.flags, "--no-leader-elect", *flags)
        self._replica = self.site.installation.run(*own, environment=self.environment)
        return self._replica

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
