"""What the tests of clouds and of the embedded cluster buy: two GPU types and one without, at round prices."""

from typing import Any

from kerf.model.constraints import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, REGION, ZONE, Requirement, Requirements
from kerf.model.gpu import DeviceShape, GPUModel
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType, Offering
from kerf.model.nodeclaim import NodeClaim, NodeClassRef
from kerf.model.nodepool import NodePool
from kerf.model.quantities import Resources

A10G = DeviceShape(GPUModel("A10G", registered_as="NVIDIA A10G"), 22888)
NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
ZONES = ("us-east-1a", "us-east-1b")


def instance_type(name: str, on_demand: int, spot: int | None = None, gpus: int = 0, cpu: str = "4") -> InstanceType:
    """A type sold in both zones, at prices in millionths an hour."""
    prices = {ON_DEMAND: on_demand, **({SPOT: spot} if spot is not None else {})}
    fixed = {INSTANCE_TYPE: name, REGION: "us-east-1", ARCH: "amd64", OS: "linux"}
    requirements = [
        *(Requirement.of(key, "In", (value,)) for key, value in fixed.items()),
        Requirement.of(ZONE, "In", ZONES),
        Requirement.of(CAPACITY_TYPE, "In", tuple(prices)),
    ]
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "58", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return InstanceType(
        name,
        Requirements(requirements),
        Resources.parse(amounts),
        offerings=tuple(Offering(zone, kind, price) for zone in ZONES for kind, price in prices.items()),
        devices=(A10G,) * gpus,
    )


G5_XLARGE = instance_type("g5.xlarge", 1_006_000, 400_000, gpus=1)
G5_12XLARGE = instance_type("g5.12xlarge", 5_672_000, 2_000_000, gpus=4, cpu="48")
M5_LARGE = instance_type("m5.large", 96_000, 40_000, cpu="2")
MARKET = (G5_12XLARGE, G5_XLARGE, M5_LARGE)


def pool(name: str = "gpu") -> NodePool:
    """A pool that allows everything."""
    return NodePool(name, NODE_CLASS, Requirements())


def claim(name: str = "gpu-1", uid: str = "uid-1", **labels: tuple[str, ...]) -> NodeClaim:
    """A claim; keywords `types`, `zones`, `capacity_types` say what it allows."""
    keys = {"types": INSTANCE_TYPE, "zones": ZONE, "capacity_types": CAPACITY_TYPE}
    wanted: Any = [Requirement.of(keys[key], "In", values) for key, values in labels.items()]
    return NodeClaim(name, "gpu", NODE_CLASS, Requirements(wanted), uid=uid)
