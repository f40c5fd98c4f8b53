"""Short builders of model values: a test states what its case is about, the builder fills in the rest.

Every further keyword is a field of the value that is built. Amounts are Kubernetes quantities, prices in units of the
currency per hour.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

from kerf.model.constraints import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    ZONE,
    Requirement,
    Requirements,
)
from kerf.model.gpu import NVIDIA_GPU, DeviceShape, GPUModel
from kerf.model.instancetypes import MICRO, ON_DEMAND, InstanceType, Offering
from kerf.model.market import Market
from kerf.model.nodeclaim import INITIALIZED, LAUNCHED, READY, REGISTERED, TRUE, Condition, NodeClaim, NodeClassRef
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import CPU, MEMORY, PODS, Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

NOON_S = 1_767_614_400.0
"""2026-01-05T12:00:00Z, the time of every snapshot that states none."""

AWS_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
GPUMEM, GPUCORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
_POD_FIELDS = {field.name for field in fields(Pod)}
_Amount = str | int


def resources(**amounts: _Amount) -> Resources:
    """Resources by short names: cpu, memory, pods, nodes, gpu, gpumem, cores."""
    names = {"gpu": NVIDIA_GPU, "gpumem": GPUMEM, "cores": GPUCORES}
    return Resources.parse({names.get(short, short): amount for short, amount in amounts.items()})


def a_container(name: str = "main", **amounts: _Amount) -> Container:
    """A container whose requests and limits are the same."""
    asked = resources(**amounts)
    return Container(name, asked, asked)


def a_pod(name: str = "p", *, namespace: str = "default", **given: Any) -> Pod:
    """A pending pod of one container.

    `given`: amounts (cpu, memory, gpu, gpumem, cores), `selector` (labels of the node), fields of Pod and of PodSpec.
    """
    amounts = {key: given.pop(key) for key in ("cpu", "memory", "gpu", "gpumem", "cores") if key in given}
    selector: Mapping[str, str] = given.pop("selector", {})
    of_pod = {key: given.pop(key) for key in list(given) if key in _POD_FIELDS}
    of_spec = {"containers": (a_container(**amounts),), "node_selector": Requirements.of_labels(selector), **given}
    return Pod(namespace, name, of_pod.pop("spec", None) or PodSpec(**of_spec), **of_pod)


def a_pool(
    name: str = "pool",
    *,
    types: Sequence[str] = (),
    capacity_types: Sequence[str] = (ON_DEMAND,),
    limits: Mapping[str, _Amount] | None = None,
    **given: Any,
) -> NodePool:
    """A NodePool of AWS; no types means every type, no capacity types both. `given` are fields of NodePool."""
    asked = [(INSTANCE_TYPE, types), (CAPACITY_TYPE, capacity_types)]
    requirements = Requirements(Requirement.of(key, "In", values) for key, values in asked if values)
    return NodePool(
        name,
        given.pop("node_class", AWS_CLASS),
        requirements.intersect(given.pop("requirements", Requirements())),
        limits=None if limits is None else Resources.parse(limits),
        **given,
    )


def cards(count: int, memory_mib: int = 22888, model: str = "A10G") -> tuple[DeviceShape, ...]:
    """So many equal cards of an instance type."""
    return (DeviceShape(GPUModel(model, registered_as=f"NVIDIA {model}"), memory_mib),) * count


def an_instance_type(
    name: str = "m5.xlarge",
    *,
    cpu: _Amount = 4,
    memory: _Amount = "16Gi",
    devices: Sequence[DeviceShape] = (),
    price: str = "1.00",
    **given: Any,
) -> InstanceType:
    """A type that is sold at one price everywhere.

    `given`: `zones` (us-east-1a), `capacity_types` (on-demand), `labels`, `pods` (58), and fields of InstanceType.
    """
    zones: Sequence[str] = given.pop("zones", ("us-east-1a",))
    capacity_types: Sequence[str] = given.pop("capacity_types", (ON_DEMAND,))
    labels = {INSTANCE_TYPE: name, ARCH: "amd64", OS: "linux", **given.pop("labels", {})}
    sold = [Requirement.of(ZONE, "In", zones), Requirement.of(CAPACITY_TYPE, "In", capacity_types)]
    amounts = {CPU: cpu, MEMORY: memory, PODS: given.pop("pods", 58)}
    capacity = Resources.parse({**amounts, NVIDIA_GPU: len(devices)} if devices else amounts)
    offerings = tuple(Offering(z, c, int(Decimal(price) * MICRO)) for z in zones for c in capacity_types)
    requirements = Requirements([*Requirements.of_labels(labels).values(), *sold])
    return InstanceType(
        name,
        given.pop("requirements", requirements),
        given.pop("capacity", capacity),
        offerings=given.pop("offerings", offerings),
        devices=tuple(devices),
        **given,
    )


def a_market(*types: InstanceType, **given: Any) -> Market:
    """A market of some types; `given` are fields of Market."""
    return Market(tuple(sorted(types, key=lambda instance_type: instance_type.name)), **given)


def a_node(
    name: str = "node",
    *,
    pool: str = "pool",
    instance_type: str = "m5.xlarge",
    allocatable: Mapping[str, _Amount] | None = None,
    **given: Any,
) -> Node:
    """A ready node in us-east-1a, on-demand, of 4 cores and 16 GiB; `given` are fields of Node."""
    labels = {
        HOSTNAME: name,
        NODE_POOL: pool,
        INSTANCE_TYPE: instance_type,
        ZONE: "us-east-1a",
        CAPACITY_TYPE: ON_DEMAND,
        ARCH: "amd64",
        OS: "linux",
        **given.pop("labels", {}),
    }
    free = Resources.parse(allocatable or {CPU: 4, MEMORY: "16Gi", PODS: 58})
    return Node(name, labels, capacity=given.pop("capacity", free), allocatable=free, **given)


def a_claim(
    name: str = "claim",
    *,
    pool: str = "pool",
    instance_type: str = "m5.xlarge",
    reached: Iterable[str] = (LAUNCHED, REGISTERED, INITIALIZED, READY),
    **given: Any,
) -> NodeClaim:
    """A claim that has reached these stages, by default all; `given` are fields of NodeClaim."""
    labels = {
        NODE_POOL: pool,
        INSTANCE_TYPE: instance_type,
        ZONE: "us-east-1a",
        CAPACITY_TYPE: ON_DEMAND,
        **given.pop("labels", {}),
    }
    conditions = given.pop("conditions", tuple(Condition(stage, TRUE, stage) for stage in sorted(reached)))
    requirements = given.pop("requirements", Requirements.of_labels({INSTANCE_TYPE: instance_type}))
    node_class = given.pop("node_class", AWS_CLASS)
    return NodeClaim(name, pool, node_class, requirements, labels=labels, conditions=conditions, **given)


def a_snapshot(
    *,
    pools: Iterable[NodePool] = (),
    pods: Iterable[Pod] = (),
    nodes: Iterable[Node | ClusterNode] = (),
    claims: Iterable[NodeClaim] = (),
    **given: Any,
) -> ClusterSnapshot:
    """A snapshot: pods go on the node that they are bound or nominated to, claims with the node they name, or alone.

    A ClusterNode is taken as it is; a Node gets no devices. `given` are fields of ClusterSnapshot.
    """
    all_pods, waiting = sorted(pods, key=lambda pod: pod.key), list(claims)
    joined = []
    for node in nodes:
        if isinstance(node, Node):
            claim = next((c for c in waiting if c.node_name == node.name), None)
            waiting = [c for c in waiting if c is not claim]
            there = tuple(pod for pod in all_pods if node.name in (pod.node_name, pod.nominated_to))
            node = ClusterNode(node, claim, there)
        joined.append(node)
    names = {each.name for each in joined}
    joined += [ClusterNode(None, claim) for claim in waiting]
    return ClusterSnapshot(
        given.pop("taken_at_s", NOON_S),
        node_pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        nodes=tuple(sorted(joined, key=lambda node: node.name)),
        pending=tuple(pod for pod in all_pods if pod.is_pending and pod.nominated_to not in names),
        **given,
    )
