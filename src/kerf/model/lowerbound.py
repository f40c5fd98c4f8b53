"""The proof of a lower bound: prices of what nodes have, at which nodes cost no less than what pods are worth."""

from dataclasses import dataclass
from enum import StrEnum

from kerf.model.large import Large

NANO = 1_000
"""Nano-units in a micro-unit of the currency."""


class Ignored(StrEnum):
    """What a bound takes no notice of: with it the pods may cost more, and never less."""

    OTHER_PODS = "other pods"
    LIMITS = "limits"
    MIN_VALUES = "minValues"
    OTHER_PRICES = "other prices"
    RESERVATIONS = "reservations"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class PieceWorth:
    """What one slice is worth: MiB and percent points of one card, or a MIG profile in their place."""

    memory_mib: int
    cores: int
    profile: str
    nano: int


@dataclass(frozen=True, slots=True)
class PriceSplit:
    """The price of one type, split over what its node has; in nano-units per hour.

    `parts` are by resource for all that the node has of it, `card` is for each of its `cards`, and no set of slices
    that a card holds together is worth more. All sum to no more than `price_micro`. Types with other amounts and as
    many such cards may be held to the same prices of one unit. Where `whole_cards` is stated, it is of nodes on which
    pods with several whole cards take so many, and `cards` are those that are left for the others.
    """

    node_pool: str
    instance_type: str
    price_micro: int
    parts: tuple[tuple[str, int], ...]
    cards: int
    card: int
    pieces: tuple[PieceWorth, ...]
    whole_cards: int | None = None


@dataclass(frozen=True, slots=True)
class WholeType:
    """A type whose price needs no split: whatever pods one of its nodes holds, they are worth no more than it costs.

    Where `whole_cards` is stated, that is said of nodes on which pods with several whole cards take so many.
    """

    node_pool: str
    instance_type: str
    whole_cards: int | None = None


@dataclass(frozen=True, slots=True)
class PodWorth:
    """So many equal pods, of which `pod` is the first: each costs that much at least, wherever it goes."""

    pod: str
    count: int
    nano: int


@dataclass(frozen=True, repr=False)
class LowerBound(Large):
    """What nodes for the pods cost at least, in micro-units per hour, with the prices that prove it.

    `node_micro` is the least price of a node that a certain pod fits on.
    """

    micro: int
    node_micro: int
    splits: tuple[PriceSplit, ...] = ()
    whole: tuple[WholeType, ...] = ()
    worths: tuple[PodWorth, ...] = ()
    ignored: tuple[Ignored, ...] = ()
