"""How to plan: what a caller may choose."""

from dataclasses import dataclass

COST, FIRST_FIT = "cost", "first-fit"
STRATEGIES = (COST, FIRST_FIT)


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan. `follow` is `auto`, or forces `reserve`, `pin` or `off` on every launch."""

    strategy: str = COST
    follow: str = "auto"
    with_bound: bool = True


DEFAULT = Options()
