"""How to plan: what a caller may choose."""

from dataclasses import dataclass

COST, FIRST_FIT = "cost", "first-fit"
STRATEGIES = (COST, FIRST_FIT)
STRICT, BEST_EFFORT = "Strict", "BestEffort"
MIN_VALUES_POLICIES = (STRICT, BEST_EFFORT)


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan. `follow` is `auto`, or forces `reserve`, `pin` or `off` on every launch.

    `min_values` is BestEffort where a pool may go below its minValues for pods that it could not take otherwise.
    """

    strategy: str = COST
    follow: str = "auto"
    with_bound: bool = True
    min_values: str = STRICT

    @property
    def relaxes(self) -> bool:
        """Whether minValues may be relaxed."""
        return self.min_values == BEST_EFFORT


DEFAULT = Options()
