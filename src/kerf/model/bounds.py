"""Floors and caps that a NodePool's annotations state: how few nodes it keeps, the highest price, how many at once.

An annotation is free text to the API server, so a broken one is only found here. It is never taken for absent:
without its cap a pool could buy anything, and without its floor a node could go that was meant to stay.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kerf.errors import brief
from kerf.model.causes import OverPriceCap
from kerf.model.instancetypes import InstanceType, Offering
from kerf.model.quantities import COST_PER_HOUR, money_text, quantity_of

MIN_NODES = "kerf.dev/min-nodes"
"""Annotation of a NodePool: it never has fewer nodes, empty or not."""
MAX_PRICE = "kerf.dev/max-price-per-hour"
"""Annotation of a NodePool: no offering above this price is bought, in the catalogue's currency."""
MAX_GPU_PRICE = "kerf.dev/max-price-per-gpu-hour"
"""The same for the price over the number of physical cards; a fraction of a card counts as what it is."""
MAX_LAUNCHES = "kerf.dev/max-launches-per-minute"
"""Annotation of a NodePool: so many nodes are launched a minute, at most; more at once only for one group of pods."""

_COUNT = re.compile(r"[0-9]{1,6}", re.ASCII)
_PRICE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the annotations state; prices in micro-units per hour, None without a cap.

    `max_launches` is per minute, None without a pace.
    `invalid` says which price or pace cannot be read, so the pool takes no nodes; `invalid_floor` that the number
    of nodes cannot be, so none of them is taken away. Both are empty for a pool whose annotations can be read.
    """

    min_nodes: int = 0
    max_price_micro: int | None = None
    max_gpu_price_micro: int | None = None
    max_launches: int | None = None
    invalid: str = ""
    invalid_floor: str = ""

    @property
    def has_cap(self) -> bool:
        """Whether any price is too high for the pool."""
        return self.max_price_micro is not None or self.max_gpu_price_micro is not None

    def excess(self, kind: InstanceType, price_micro: int) -> OverPriceCap | None:
        """Which cap a type at a price exceeds; None when it is not. A type without GPUs has no price of one."""
        if self.max_price_micro is not None and price_micro > self.max_price_micro:
            return OverPriceCap(price_micro, self.max_price_micro)
        eighths, cap = kind.gpu_eighths, self.max_gpu_price_micro
        if cap is not None and eighths and 8 * price_micro > cap * eighths:
            # Rounded up, so no price is shown that is within the cap.
            return OverPriceCap(-(-8 * price_micro // eighths), cap, per_gpu=True)
        return None

    def needed_for(self, kind: InstanceType, offering: Offering) -> dict[str, str]:
        """The annotations that would let the offering in, each with the least value that does."""
        found = {}
        if self.max_price_micro is not None and offering.price_micro > self.max_price_micro:
            found[MAX_PRICE] = money_text(offering.price_micro)
        eighths, cap = kind.gpu_eighths, self.max_gpu_price_micro
        if cap is not None and eighths and 8 * offering.price_micro > cap * eighths:
            found[MAX_GPU_PRICE] = money_text(-(-8 * offering.price_micro // eighths))
        return found


def bounds_of(annotations: Mapping[str, str]) -> Bounds:
    """What the annotations of a pool (`NodePool.stated_annotations`) say; a broken value with what to write."""
    prices: dict[str, int | None] = {}
    broken = []
    for key in (MAX_PRICE, MAX_GPU_PRICE):
        text = annotations.get(key)
        prices[key] = None if text is None else _price(text)
        if text is not None and prices[key] is None:
            broken.append(
                f"annotation {key}: expected a price above 0 with at most six decimals such as 0.90, "
                f"got {brief(text)}; write the number alone, in the catalogue's currency"
            )
    pace = annotations.get(MAX_LAUNCHES)
    is_pace = pace is not None and _COUNT.fullmatch(pace) is not None and int(pace) > 0
    if pace is not None and not is_pace:
        broken.append(f"annotation {MAX_LAUNCHES}: expected a whole number above 0 such as 10, got {brief(pace)}")
    count = annotations.get(MIN_NODES, "0")
    is_count = _COUNT.fullmatch(count) is not None
    floor = f"annotation {MIN_NODES}: expected a whole number of nodes such as 2, got {brief(count)}"
    return Bounds(
        min_nodes=int(count) if is_count else 0,
        max_price_micro=prices[MAX_PRICE],
        max_gpu_price_micro=prices[MAX_GPU_PRICE],
        max_launches=int(pace) if is_pace and pace is not None else None,
        invalid="; ".join(broken),
        invalid_floor="" if is_count else floor,
    )


def _price(text: str) -> int | None:
    return (quantity_of(COST_PER_HOUR, text) or None) if _PRICE.fullmatch(text) else None
