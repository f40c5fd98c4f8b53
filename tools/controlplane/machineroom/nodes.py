"""Whether a machine may join, and the Node that its kubelet registers.

Kubernetes shows of a machine that does not join: nothing. So each reason has a text here, for the tests to look at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kerf.catalog.aws import instance_type, specs
from kerf.catalog.aws_types import AwsRow
from kerf.clouds.kwok.nodes import FAKE_NODE
from kerf.model.constraints import ARCH, HOSTNAME, INSTANCE_TYPE, OS, REGION, ZONE
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.quantities import PODS, quantity_text
from tools.controlplane.machineroom.userdata import Joining, NeverJoins

ROOM_LABEL = "kerf.dev/machine-room"
"""Label of every Node of the room, with the id of its instance."""
_BLANK_INFO = (
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "osImage",
    "systemUUID",
)


@dataclass(frozen=True)
class JoinableCluster:
    """What a machine has to get right: name, endpoint and CA; one of the groups, and one of the roles.

    `groups` are those from which the control plane takes connections, `roles` the names that it maps to nodes. An empty
    one lets all in.
    """

    name: str
    endpoint: str
    ca: str
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ec2Machine:
    """What the cloud says of an instance."""

    id: str
    instance_type: str
    zone: str
    dns_name: str
    groups: Sequence[str] = ()
    role: str = ""

    @property
    def provider_id(self) -> str:
        """As the cloud controller of AWS writes it."""
        return f"aws:///{self.zone}/{self.id}"


def check(machine: Ec2Machine, joining: Joining, cluster: JoinableCluster) -> None:
    """Raises NeverJoins where the machine does not reach the cluster, or is not let in."""
    if joining.endpoint != cluster.endpoint:
        raise NeverJoins(f"no server answers at {joining.endpoint}")
    if joining.ca != cluster.ca:
        raise NeverJoins(f"{cluster.endpoint}: certificate signed by unknown authority")
    if joining.cluster != cluster.name:
        raise NeverJoins(f"a token for the cluster {joining.cluster} is none for {cluster.name}")
    if cluster.groups and not cluster.groups.intersection(machine.groups):
        raise NeverJoins(f"{cluster.endpoint}: i/o timeout; no security group of the instance may connect")
    if cluster.roles and machine.role not in cluster.roles:
        raise NeverJoins(f"Unauthorized: the role {machine.role or '<none>'} is no node of the cluster")


def is_bottlerocket(image: str) -> bool:
    """Whether the image of that name is one of Bottlerocket."""
    return image.startswith("bottlerocket")


def has_driver(image: str) -> bool:
    """Whether NVIDIA's driver is in the image of that name, without which no device plugin finds a card.

    Images of EKS and Bottlerocket say so in their names; any other is taken to have it.
    """
    is_of_aws = image.startswith("amazon-eks-") or is_bottlerocket(image)
    return not is_of_aws or "nvidia" in image or "-gpu-" in image


def spec_of(name: str) -> AwsRow:
    """A type of the packaged catalogue. Raises NeverJoins for one that it lacks."""
    found = next((spec for spec in specs() if spec.name == name), None)
    if found is None:
        raise NeverJoins(f"the catalogue has no instance type {name}")
    return found


def node_of(machine: Ec2Machine, joining: Joining, now: str) -> dict[str, Any]:
    """The Node as kubelet and the cloud controller make it: without GPUs, which the device plugin adds.

    `now` is the time as the API writes it. Raises NeverJoins for a type that the catalogue lacks.
    """
    spec = spec_of(machine.instance_type)
    kind = instance_type(spec)
    if joining.max_pods is not None:
        kind = replace(kind, capacity=kind.capacity.replaced({PODS: joining.max_pods}))
    own = {
        ARCH: spec.arch,
        HOSTNAME: machine.dns_name,
        INSTANCE_TYPE: machine.instance_type,
        OS: "linux",
        REGION: machine.zone.rstrip("abcdefghijklmnopqrstuvwxyz"),
        ZONE: machine.zone,
        ROOM_LABEL: machine.id,
    }
    not_ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": now}
    info = {"architecture": spec.arch, "operatingSystem": "linux", **dict.fromkeys(_BLANK_INFO, "")}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.dns_name, "labels": {**joining.labels, **own}, "annotations": dict(FAKE_NODE)},
        "spec": {"providerID": machine.provider_id, "taints": [dict(taint) for taint in joining.taints]},
        "status": {
            "capacity": _shown(kind.capacity),
            "allocatable": _shown(kind.allocatable),
            "conditions": [not_ready],
            "nodeInfo": info,
        },
    }


def _shown(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: quantity_text(name, amount) for name, amount in sorted(amounts.items()) if name != NVIDIA_GPU}
