"""NodeOverlays applied to instance types, as Karpenter does, except that they never make cards.

Order is weight, then the later name. Prices are corrected per offering, capacities per type and resource, and the first
overlay that speaks of one wins. Two overlays of equal weight that say different things conflict: the later in order is
then applied nowhere (karpenter pkg/controllers/nodeoverlay).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from kerf.model.causes import Cause, Name, OverlayContradicts, OverlayDisagrees, OverlayInvalid, Quoted
from kerf.model.constraints import CAPACITY_TYPE, ZONE, ZONE_ID, Requirements
from kerf.model.gpu import NVIDIA_GPU, NVIDIA_MEMORY
from kerf.model.instancetypes import MICRO, InstanceType, NodeOverlay, Offering
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.quantities import Resources

_CARD_CORES = "nvidia.com/gpucores"


@dataclass(frozen=True)
class Overlaid:
    """The types as one pool sees them; `notes` where an overlay and a card disagree.

    `announced` has, by type, the overlay that speaks of its `nvidia.com/gpu` and how many it says. Whether that is
    right depends on how nodes of the pool share their cards.
    """

    types: tuple[InstanceType, ...]
    notes: tuple[Cause, ...] = ()
    announced: Mapping[str, tuple[str, int]] = field(default_factory=dict, hash=False)


def conflicts(overlays: Iterable[NodeOverlay], pools: Iterable[NodePool], market: Market) -> dict[str, Cause]:
    """Names of overlays that are applied nowhere, with why: they are invalid, or contradict one that is applied."""
    standing: list[NodeOverlay] = []
    found: dict[str, Cause] = {}
    sold = tuple((pool, market.types_of(pool.node_class)) for pool in pools)
    for overlay in sorted(overlays, key=lambda o: o.order):
        if overlay.invalid:
            found[overlay.name] = OverlayInvalid(Quoted(overlay.invalid))
            continue
        against = next((o for o in standing if _conflict(o, overlay, sold)), None)
        if against is None:
            standing.append(overlay)
        else:
            found[overlay.name] = OverlayContradicts(Name(against.name))
    return found


def _conflict(
    first: NodeOverlay, second: NodeOverlay, sold: tuple[tuple[NodePool, tuple[InstanceType, ...]], ...]
) -> bool:
    if first.weight != second.weight:
        return False
    both_price = _speaks_of_price(first) and _speaks_of_price(second)
    both_capacity = any(second.capacity.get(name, amount) != amount for name, amount in first.capacity.items())
    if not (both_price or both_capacity):
        return False
    return any(
        _matches(first, pool, kind)
        and _matches(second, pool, kind)
        and (both_capacity or any(_matches_offering(first, o) and _matches_offering(second, o) for o in kind.offerings))
        for pool, types in sold
        for kind in types
    )


def _speaks_of_price(overlay: NodeOverlay) -> bool:
    return overlay.price is not None or overlay.price_adjustment is not None


def _matches(overlay: NodeOverlay, pool: NodePool, kind: InstanceType) -> bool:
    """Whether type and pool agree with the overlay, offerings aside."""
    known = kind.requirements.intersect(Requirements.of_labels(pool.node_labels))
    wanted = overlay.requirements
    return wanted.conflict(known) is None and wanted.undefined(known, frozenset({ZONE, CAPACITY_TYPE})) is None


def _matches_offering(overlay: NodeOverlay, offering: Offering) -> bool:
    held = {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type}
    held |= {ZONE_ID: offering.zone_id} if offering.zone_id else {}
    return overlay.requirements.conflict(Requirements.of_labels(held)) is None


def adjusted_price(price_micro: int, overlay: NodeOverlay) -> int:
    """The price under an overlay: absolute, plus or minus an amount, or in percent; never below zero."""
    if overlay.price is not None:
        return int(Fraction(overlay.price) * MICRO)
    text = overlay.price_adjustment or "+0"
    if text.endswith("%"):
        changed = price_micro * (1 + Fraction(text[:-1]) / 100)
    else:
        changed = price_micro + Fraction(text) * MICRO
    return max(0, round(changed))


def apply(overlays: Iterable[NodeOverlay], pool: NodePool, types: tuple[InstanceType, ...]) -> Overlaid:
    """The types with the overlays that stand; cost: overlays x types."""
    ordered = sorted(overlays, key=lambda overlay: overlay.order)
    if not ordered:
        return Overlaid(types)
    notes: list[Cause] = []
    changed = []
    announced: dict[str, tuple[str, int]] = {}
    for kind in types:
        matching = [overlay for overlay in ordered if _matches(overlay, pool, kind)]
        changed.append(_with_overlays(kind, matching, notes) if matching else kind)
        speaking = next((overlay for overlay in matching if NVIDIA_GPU in overlay.capacity), None)
        if speaking is not None and kind.devices:
            announced[kind.name] = (speaking.name, speaking.capacity[NVIDIA_GPU])
    return Overlaid(tuple(changed), tuple(notes), announced)


def _with_overlays(kind: InstanceType, overlays: list[NodeOverlay], notes: list[Cause]) -> InstanceType:
    offerings = []
    for offering in kind.offerings:
        pricing = next((o for o in overlays if _speaks_of_price(o) and _matches_offering(o, offering)), None)
        price = (
            offering.price_micro
            if pricing is None or offering.is_final
            else adjusted_price(offering.price_micro, pricing)
        )
        offerings.append(replace(offering, price_micro=price))
    capacity: dict[str, int] = {}
    for overlay in overlays:
        for name, amount in overlay.capacity.items():
            capacity.setdefault(name, amount)
            if kind.devices and capacity[name] == amount:
                notes.extend(_disagreements(overlay, kind, name, amount))
    return replace(kind, offerings=tuple(offerings), capacity=_announced(kind, capacity))


def _announced(kind: InstanceType, capacity: Mapping[str, int]) -> Resources:
    # Cards come from the catalogue; what an overlay says of them is compared with it, never added up.
    cards = {NVIDIA_GPU, NVIDIA_MEMORY, _CARD_CORES} if kind.devices else set()
    return kind.capacity.replaced({name: amount for name, amount in capacity.items() if name not in cards})


def _disagreements(overlay: NodeOverlay, kind: InstanceType, name: str, amount: int) -> list[Cause]:
    cards = len(kind.devices)
    planned = {NVIDIA_MEMORY: sum(shape.memory_mib for shape in kind.devices), _CARD_CORES: 100 * cards}.get(name)
    if planned is None or planned == amount:
        return []
    per_card = kind.devices[0].memory_mib if cards > 1 and name == NVIDIA_MEMORY else 0
    return [OverlayDisagrees(Name(overlay.name), Name(kind.name), Name(name), amount, planned, cards, per_card)]
