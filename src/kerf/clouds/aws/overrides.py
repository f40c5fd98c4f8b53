"""What a launch may become: the offerings that a CreateFleet names, in order and bounded.

EC2 chooses among what it is given, and by its own rules. So it is given only what the claim allows at no more than a
factor over the planned price, and a plan that wanted one machine never gets a much more expensive one. The order of the
filters is Karpenter's (pkg/providers/instance, v1.14.1): reservations, blocks, exotic types, spot over the on-demand
price. A claim with minValues is given the choice that it asks for, whatever that costs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kerf.clouds.aws.minvalues import has_enough, needed
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.instancetypes import (
    CAPACITY_TYPE_ORDER,
    ON_DEMAND,
    RESERVED,
    SPOT,
    InstanceType,
    Offering,
    OfferingKey,
    allowed_offerings,
)
from kerf.model.nodeclaim import NodeClaim
from kerf.model.promises import offering_of

MOST_TYPES = 60
"""Instance types of one launch, as Karpenter's."""
PRICE_FACTOR = 1.5
"""An override costs at most so many times the planned price: a plan weighs what costs more against other pools."""
_EXOTIC = (NVIDIA_GPU, "amd.com/gpu", "habana.ai/gaudi", "aws.amazon.com/neuron")


@dataclass(frozen=True, slots=True)
class Override:
    """One offering that EC2 may choose; a lower `priority` is liked more."""

    kind: InstanceType
    offering: Offering
    priority: int = 0

    @property
    def key(self) -> OfferingKey:
        """The offering with its type."""
        return self.offering.key_of(self.kind.name)


@dataclass(frozen=True, slots=True)
class Overrides:
    """The overrides of a launch, all of one capacity type and reservation, best first; empty where nothing is sold.

    `by_priority` says that the plan's order is not that of the prices here, because a NodeOverlay corrects them, and
    `is_block` that the reservation is a capacity block.
    """

    chosen: tuple[Override, ...]
    by_priority: bool = False
    is_block: bool = False

    @property
    def capacity_type(self) -> str:
        """Of all of them."""
        return self.chosen[0].offering.capacity_type

    @property
    def reservation(self) -> str:
        """The reservation of all of them; empty for none."""
        return self.chosen[0].offering.reservation

    def without(self, keys: Iterable[OfferingKey]) -> "Overrides":
        """Those that are left."""
        gone = frozenset(keys)
        return replace(self, chosen=tuple(each for each in self.chosen if each.key not in gone))


def overrides_of(claim: NodeClaim, types: Iterable[InstanceType], price_factor: float = PRICE_FACTOR) -> Overrides:
    """What the claim may be launched as, of the first capacity type that is sold: reserved, spot, on-demand."""
    allowed = _allowed(claim, types)
    planned = offering_of(claim.annotations)
    if not allowed:
        return Overrides(())
    rank = min(_rank(each) for each in allowed)
    same = [each for each in allowed if _rank(each) == rank]
    same = _of_one_reservation(same, planned)
    same = _flexible(claim, _without_exotic(same, planned), same)
    if rank == CAPACITY_TYPE_ORDER[SPOT]:
        on_demand = [each for each in allowed if _is_on_demand(each)]
        same = _flexible(claim, _within_on_demand(same, on_demand, planned), same)
    ordered = sorted(same, key=lambda each: (each.key != planned, each.offering.price_micro, each.key))
    cheapest = min(each.offering.price_micro for each in ordered)
    limit = ordered[0].offering.price_micro * price_factor
    kept = _bounded(claim, ordered, limit)
    numbered = tuple(Override(each.kind, each.offering, number) for number, each in enumerate(kept))
    return Overrides(numbered, by_priority=ordered[0].offering.price_micro > cheapest)


def _flexible(claim: NodeClaim, filtered: list[Override], before: list[Override]) -> list[Override]:
    """What a filter left, unless the claim has too little choice then (minValues)."""
    return filtered if has_enough(claim.requirements, (each.kind for each in filtered)) else before


def _bounded(claim: NodeClaim, ordered: Sequence[Override], limit: float) -> list[Override]:
    """Those within the price limit, of at most sixty types; beyond it the cheapest that minValues need, if they do."""
    kinds = {each.kind.name: each.kind for each in ordered}
    prices: dict[str, int] = {}
    for each in ordered:
        prices[each.kind.name] = min(each.offering.price_micro, prices.get(each.kind.name, each.offering.price_micro))
    names = list(dict.fromkeys(each.kind.name for each in ordered if each.offering.price_micro <= limit))[:MOST_TYPES]
    extra: set[str] = set()
    if not has_enough(claim.requirements, (kinds[name] for name in names)):
        wanted = [kind.name for kind in needed(claim.requirements, kinds.values())]
        names = list(dict.fromkeys([*wanted, *names]))[:MOST_TYPES]
        extra = set(wanted)
    return [
        each
        for each in ordered
        if each.kind.name in names
        and (
            each.offering.price_micro <= limit
            or (each.kind.name in extra and each.offering.price_micro == prices[each.kind.name])
        )
    ]


def _allowed(claim: NodeClaim, types: Iterable[InstanceType]) -> list[Override]:
    """Every offering that is there and that the claim's requirements allow."""
    names = claim.requirements.get(INSTANCE_TYPE)
    return [
        Override(kind, offering)
        for kind in types
        if (names is None or names.has(kind.name)) and claim.requirements.conflict(kind.requirements) is None
        for offering in allowed_offerings(kind.offerings, claim.requirements)
        if offering.is_available
    ]


def _rank(override: Override) -> int:
    return CAPACITY_TYPE_ORDER.get(override.offering.capacity_type, len(CAPACITY_TYPE_ORDER))


def _of_one_reservation(found: Sequence[Override], planned: OfferingKey | None) -> list[Override]:
    """Of reservations one alone, because a launch template names it: the planned, else the one with most left."""
    if found[0].offering.capacity_type != RESERVED:
        return list(found)
    best = min(found, key=lambda each: (each.key != planned, -(each.offering.most or 0), each.key))
    return [each for each in found if each.offering.reservation == best.offering.reservation]


def _is_on_demand(override: Override) -> bool:
    return override.offering.capacity_type == ON_DEMAND


def _within_on_demand(
    found: Sequence[Override], on_demand: Sequence[Override], planned: OfferingKey | None
) -> list[Override]:
    """Without spot over the lowest price at which the claim can have one of these types on demand.

    All of it where nothing would be left. The planned offering stays.
    """
    names = {each.kind.name for each in found}
    prices = [each.offering.price_micro for each in on_demand if each.kind.name in names]
    kept = [each for each in found if each.key == planned or each.offering.price_micro <= min(prices, default=2**63)]
    return kept or list(found)


def _without_exotic(found: Sequence[Override], planned: OfferingKey | None) -> list[Override]:
    """Without GPUs, accelerators and metal where a plain type is left, unless such a one was planned."""
    plain = [each for each in found if not _is_exotic(each.kind)]
    if not plain or (planned is not None and all(each.key != planned for each in plain)):
        return list(found)
    return plain


def _is_exotic(kind: InstanceType) -> bool:
    return kind.name.endswith(".metal") or "metal-" in kind.name or any(name in kind.capacity for name in _EXOTIC)
