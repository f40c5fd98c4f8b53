"""How to plan: what a caller may choose."""

from dataclasses import dataclass

from kerf.model.defaultspread import DefaultSpread
from kerf.model.policies import AUTO, BEST_EFFORT, BUDGETS, COST, RESPECT, SHORT, STRICT


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan. `follow` is `auto`, or forces `reserve`, `pin` or `off` on every launch.

    `preferences` is Karpenter's PREFERENCE_POLICY: what pods prefer is required of a node as long as it can be had
    (`Respect`), or is left out (`Ignore`). `default_spread` are the constraints that the scheduler gives pods.
    `min_values` is its MIN_VALUES_POLICY: whether a pool may go below its minValues for pods that it could not take
    otherwise (`BestEffort`), or not (`Strict`). `budget` is how long to look for cheaper nodes, counted in work: the
    same pods get the same plan on every machine. Without `with_cost` the decision does not say what it comes to, and
    that is not worked out: who only asks where pods go has no use for it. What is `quick` only asks which pods get
    nodes: these may cost somewhat more, and where limits leave pods over, others may be served.
    """

    strategy: str = COST
    follow: str = AUTO
    with_bound: bool = True
    with_cost: bool = True
    preferences: str = RESPECT
    default_spread: DefaultSpread = ()
    min_values: str = STRICT
    budget: str = SHORT
    quick: bool = False

    @property
    def rounds(self) -> int:
        """Rounds of prices that may be spent on one purchase."""
        return BUDGETS[self.budget]

    @property
    def relaxes(self) -> bool:
        """Whether minValues may be relaxed."""
        return self.min_values == BEST_EFFORT


DEFAULT = Options()
