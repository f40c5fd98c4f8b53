"""What the cluster costs, and how much of its cards is allocated."""

from collections.abc import Iterable, Mapping

from kerf.engine.supply.offered import Supply
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION, ZONE
from kerf.model.gpu import DeviceState
from kerf.model.instancetypes import InstanceType, Offering
from kerf.model.market import Market
from kerf.model.plan import Launch, NodePlacement
from kerf.model.promises import offering_of, planned_type
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

CARD = 10_000
"""A whole physical card, in the unit of what is paid and allocated."""


def present_price(node: ClusterNode, supply: Supply) -> int:
    """Per hour in micro-units, as NodeOverlays correct it for the node's pool; 0 where type or offering is unknown."""
    offering = _offering_of(node, present_type(node, supply))
    return 0 if offering is None else offering.price_micro


def present_type(node: ClusterNode, supply: Supply) -> InstanceType | None:
    """The node's type with the prices that it has in its pool; as the market sells it where the pool has it no more."""
    pool, name = node.claim.node_pool if node.claim is not None else "", _type_name(node)
    return supply.type_in(pool, name) or _sold(node, supply.market)


def _sold(node: ClusterNode, market: Market) -> InstanceType | None:
    return market.find(_type_name(node), node.claim.node_class if node.claim is not None else None)


def _type_name(node: ClusterNode) -> str:
    return node.labels.get(INSTANCE_TYPE) or (planned_type(node.claim) if node.claim is not None else "")


def _offering_of(node: ClusterNode, kind: InstanceType | None) -> Offering | None:
    """What the node was bought as. One that lost its offering keeps the price of its capacity type elsewhere."""
    if kind is None:
        return None
    labels = node.labels
    planned = offering_of(node.claim.annotations) if node.claim is not None else None
    zone = labels.get(ZONE) or (planned.zone if planned is not None else "")
    capacity_type = labels.get(CAPACITY_TYPE) or (planned.capacity_type if planned is not None else "")
    reservation = labels.get(RESERVATION) or (planned.reservation if planned is not None else "")
    same = sorted(
        (o for o in kind.offerings if o.capacity_type == capacity_type),
        key=lambda o: (o.reservation != reservation, o.price_micro, o.zone),
    )
    return next((o for o in same if o.zone == zone), same[0] if same else None)


def cluster_price(nodes: Iterable[ClusterNode], supply: Supply) -> int:
    """Per hour in micro-units, of all nodes that Kerf launched or is launching."""
    return sum(present_price(node, supply) for node in nodes if node.claim is not None)


def cards_in_use(
    snapshot: ClusterSnapshot,
    market: Market,
    placements: Iterable[NodePlacement] = (),
    promised: Mapping[str, tuple[DeviceState, ...]] | None = None,
) -> tuple[int, int]:
    """Cards of all nodes, and how much of them is allocated, in 1/10000 of a physical card, with the placements done.

    `promised` are cards of nodes on their way whose claims do not say which they will have. What the market says of a
    node's type decides which part of a card it has: neither the node nor its claim does.
    """
    kinds = {node.name: _sold(node, market) for node in snapshot.nodes}
    held = {node.name: node.devices or (promised or {}).get(node.name, ()) for node in snapshot.nodes}
    devices = {(name, device.index): device for name, cards in held.items() for device in cards}
    for placement in placements:
        for part in placement.pod.slices:
            key = (placement.node, part.device)
            if key in devices:
                devices[key] = devices[key].taking(part.memory_mib, part.cores)
    paid = allocated = 0
    for (name, index), device in devices.items():
        kind = kinds[name]
        eighths = 8 if kind is None else kind.eighths_of(index)
        paid += eighths * CARD // 8
        allocated += device.allocated_percent_points * eighths // 8
    return paid, allocated


def cards_of(nodes: Iterable[ClusterNode], market: Market) -> int:
    """Cards of these nodes in 1/10000 of a physical card."""
    return sum(
        (8 if kind is None else kind.eighths_of(device.index)) * CARD // 8
        for node in nodes
        for kind in (_sold(node, market),)
        for device in node.devices
    )


def cards_bought(launches: Iterable[Launch]) -> int:
    """Cards of these launches in 1/10000 of a physical card."""
    return sum(shape.eighths * CARD // 8 for launch in launches for shape in launch.devices)
