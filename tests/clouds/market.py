"""What the tests of clouds and of the embedded cluster buy: GPU types and one without, at round prices."""

from collections.abc import Sequence

from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import MICRO, ON_DEMAND, SPOT, InstanceType, Offering
from kerf.model.nodeclaim import NodeClaim
from kerf.testing.builders import AWS_CLASS, an_instance_type, cards

ZONES = ("us-east-1a", "us-east-1b")


def _type(name: str, on_demand: int, spot: int, gpus: int = 0, cpu: int = 4) -> InstanceType:
    prices = {SPOT: spot, ON_DEMAND: on_demand}
    offerings = tuple(Offering(zone, kind, price * MICRO) for zone in ZONES for kind, price in prices.items())
    return an_instance_type(
        name, cpu=cpu, devices=cards(gpus), zones=ZONES, capacity_types=(SPOT, ON_DEMAND), offerings=offerings
    )


G5_XLARGE = _type("g5.xlarge", on_demand=4, spot=2, gpus=1)
G5_12XLARGE = _type("g5.12xlarge", on_demand=20, spot=8, gpus=4, cpu=48)
M5_LARGE = _type("m5.large", on_demand=1, spot=1, cpu=2)
MARKET = (G5_12XLARGE, G5_XLARGE, M5_LARGE)


def claim(
    name: str = "gpu-1",
    uid: str = "uid-1",
    *,
    types: Sequence[str] = (),
    zones: Sequence[str] = (),
    capacity_types: Sequence[str] = (),
) -> NodeClaim:
    """A claim that allows what is given; everything where nothing is."""
    allowed = {INSTANCE_TYPE: types, ZONE: zones, CAPACITY_TYPE: capacity_types}
    wanted = Requirements(Requirement.of(key, "In", values) for key, values in allowed.items() if values)
    return NodeClaim(name, "gpu", AWS_CLASS, wanted, uid=uid)
