"""How to plan: what a caller may choose."""

from dataclasses import dataclass

COST, FIRST_FIT = "cost", "first-fit"
STRATEGIES = (COST, FIRST_FIT)
RESPECT, IGNORE = "Respect", "Ignore"
POLICIES = (RESPECT, IGNORE)


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan. `follow` is `auto`, or forces `reserve`, `pin` or `off` on every launch.

    `preferences` is Karpenter's PREFERENCE_POLICY: what pods prefer is required of a node as long as it can be had
    (`Respect`), or is left out (`Ignore`).
    """

    strategy: str = COST
    follow: str = "auto"
    with_bound: bool = True
    preferences: str = RESPECT


DEFAULT = Options()
