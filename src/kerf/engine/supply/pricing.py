"""What the cluster costs, and how much of its cards is allocated."""

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from kerf.engine.supply.offered import Supply
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION, ZONE
from kerf.model.gpu import DeviceState, Slice
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType, Offering, OfferingKey
from kerf.model.market import Market
from kerf.model.nodeclaim import NodeClassRef
from kerf.model.plan import Launch, NodePlacement
from kerf.model.promises import offering_of, planned_type
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_GROUP_CAPACITY = "eks.amazonaws.com/capacityType"
"""EKS's label on nodes of managed node groups: `SPOT`, `ON_DEMAND` or `CAPACITY_BLOCK`."""

CARD = 10_000
"""A whole physical card, in the unit of what is paid and allocated."""


class _Bought(NamedTuple):
    """What a node was bought as; labels that it bears go before what its claim planned."""

    pool: str
    type_name: str
    node_class: NodeClassRef | None
    zone: str
    capacity_type: str
    reservation: str


def present_price(node: ClusterNode, supply: Supply) -> int:
    """Per hour in micro-units, as NodeOverlays correct it for the node's pool; 0 where type or offering is unknown."""
    bought = _bought(node)
    price = supply.prices.get(bought)
    if price is None:
        offering = _offering_of(bought, _present_type(bought, supply))
        price = supply.prices[bought] = 0 if offering is None else offering.price_micro
    return price


def is_priced(node: ClusterNode, supply: Supply) -> bool:
    """Whether anything says what the node costs; some cost nothing."""
    bought = _bought(node)
    return present_price(node, supply) > 0 or _offering_of(bought, _present_type(bought, supply)) is not None


def bought_as(node: ClusterNode) -> OfferingKey:
    """The offering that the node was bought as, as far as labels and claim say it."""
    bought = _bought(node)
    return OfferingKey(bought.type_name, bought.zone, bought.capacity_type, bought.reservation)


def capacity_type_of(node: ClusterNode) -> str:
    """What the node was bought as: a node of no NodePool on demand, unless EKS says spot; empty if unknown."""
    return _bought(node).capacity_type


def present_type(node: ClusterNode, supply: Supply) -> InstanceType | None:
    """The node's type with the prices that it has in its pool; as the market sells it where the pool has it no more."""
    return _present_type(_bought(node), supply)


def _present_type(bought: _Bought, supply: Supply) -> InstanceType | None:
    return supply.type_in(bought.pool, bought.type_name) or supply.market.find(bought.type_name, bought.node_class)


def _sold(node: ClusterNode, market: Market) -> InstanceType | None:
    bought = _bought(node)
    return market.find(bought.type_name, bought.node_class)


_BOUGHT = "bought"


def _bought(node: ClusterNode) -> _Bought:
    if _BOUGHT not in node.findings:
        node.findings[_BOUGHT] = None, _read(node)
    found: _Bought = node.findings[_BOUGHT][1]
    return found


def _read(node: ClusterNode) -> _Bought:
    labels, claim = node.labels, node.claim
    planned = offering_of(claim.annotations) if claim is not None else None
    return _Bought(
        claim.node_pool if claim is not None else "",
        labels.get(INSTANCE_TYPE) or (planned_type(claim) if claim is not None else ""),
        claim.node_class if claim is not None else None,
        labels.get(ZONE) or (planned.zone if planned is not None else ""),
        labels.get(CAPACITY_TYPE) or (planned.capacity_type if planned is not None else _of_no_pool(node)),
        labels.get(RESERVATION) or (planned.reservation if planned is not None else ""),
    )


def _of_no_pool(node: ClusterNode) -> str:
    """A node of no NodePool, such as one of a node group, is taken to be on demand unless EKS says spot."""
    if node.claim is not None or INSTANCE_TYPE not in node.labels:
        return ""
    return SPOT if node.labels.get(_GROUP_CAPACITY) == "SPOT" else ON_DEMAND


def _offering_of(bought: _Bought, kind: InstanceType | None) -> Offering | None:
    """One that lost its offering keeps the price of its capacity type elsewhere."""
    if kind is None:
        return None
    same = sorted(
        (o for o in kind.offerings if o.capacity_type == bought.capacity_type),
        key=lambda o: (o.reservation != bought.reservation, o.price_micro, o.zone),
    )
    return next((o for o in same if o.zone == bought.zone), same[0] if same else None)


def cluster_price(nodes: Iterable[ClusterNode], supply: Supply) -> int:
    """Per hour in micro-units, of all nodes that Kerf launched or is launching."""
    # Most nodes are bought as others are.
    equal: dict[_Bought, tuple[ClusterNode, int]] = {}
    for node in nodes:
        if node.claim is not None:
            bought = _bought(node)
            equal[bought] = node, equal.get(bought, (node, 0))[1] + 1
    return sum(present_price(node, supply) * number for node, number in equal.values())


_CARDS = "cards"
_DEVICES = attrgetter("devices")


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
    taking: dict[str, list[Slice]] = {}
    for placement in placements:
        taking.setdefault(placement.node, []).extend(placement.pod.slices)
    paid = allocated = 0
    for node in snapshot.nodes:
        held = node.devices or (promised or {}).get(node.name, ())
        if held:
            coming, kind = taking.get(node.name, ()), _sold(node, market)
            is_known = held is node.devices and not coming
            own, used = _cards_held(node, kind) if is_known else _cards_in_use(held, kind, coming)
            paid, allocated = paid + own, allocated + used
    return paid, allocated


def _cards_held(node: ClusterNode, kind: InstanceType | None) -> tuple[int, int]:
    """The node's own cards as they are, found once while the node is of that type."""
    known, found = node.findings.get(_CARDS, (None, None))
    if found is None or known is not kind:
        found = _cards_in_use(node.devices, kind, ())
        node.findings[_CARDS] = kind, found
    cards: tuple[int, int] = found
    return cards


def _cards_in_use(held: Iterable[DeviceState], kind: InstanceType | None, taking: Iterable[Slice]) -> tuple[int, int]:
    devices = {device.index: device for device in held}
    for part in taking:
        if part.device in devices:
            devices[part.device] = devices[part.device].taking(part.memory_mib, part.cores)
    paid = allocated = 0
    for index, device in devices.items():
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
    held = list(map(_DEVICES, launches))
    # Launches of one type share them, and are kept by the caller.
    by_id, times = dict(zip(map(id, held), held, strict=True)), Counter(map(id, held))
    return sum(times[key] * sum(shape.eighths * CARD // 8 for shape in devices) for key, devices in by_id.items())
