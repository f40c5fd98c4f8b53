"""A linear program that grows while it is solved: columns are added, and some are bought for good.

Solved by HiGHS on one thread by the simplex method: the same program has the same answer everywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kerf.engine.buy.relaxation import Floats
from kerf.engine.supply.holding import Amounts

_MOST_STEPS = 40_000
"""Of the simplex method each time it is solved."""
_PRIMAL, _DUAL = 4, 1
"""Values of the solver's `simplex_strategy`."""


@dataclass
class _Columns:
    """Columns that wait to be added together."""

    costs: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


class LinearProgram:
    """Costs to be as small as possible, over columns that are not negative and rows that are held between bounds.

    The solver's tolerances are absolute: costs should be about 1.
    """

    def __init__(self) -> None:
        import highspy

        make: Callable[[], Any] = highspy.Highs
        self._solver, self._infinity = make(), highspy.kHighsInf
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("simplex_iteration_limit", _MOST_STEPS),
        ):
            self._solver.setOptionValue(option, value)
        self._good = {highspy.HighsModelStatus.kOptimal}
        self._waiting = _Columns()
        self._known = 0
        self.rows = 0

    @property
    def columns(self) -> int:
        """How many there are, with those that wait to be added."""
        return self._known + len(self._waiting.costs)

    def add_rows(self, low: Floats | None, high: Floats | None) -> None:
        """Rows that are held to at least `low` and at most `high`; None for no bound."""
        count = len(low if low is not None else high if high is not None else ())
        least = np.full(count, -self._infinity) if low is None else low
        most = np.full(count, self._infinity) if high is None else high
        none = np.zeros(0, dtype=np.int32)
        self._solver.addRows(count, least, most, 0, np.zeros(count, dtype=np.int32), none, np.zeros(0))
        self.rows += count

    def add_column(self, cost: float, rows: Sequence[int], values: Sequence[float]) -> None:
        """A column with its values in some rows; added to the solver with all others before it is solved next."""
        waiting = self._waiting
        waiting.costs.append(cost)
        waiting.starts.append(len(waiting.rows))
        waiting.rows.extend(rows)
        waiting.values.extend(values)

    def is_solved(self, *, by_prices: bool = False) -> bool:
        """Add what waits and solve; False where the solver fails or exceeds its steps.

        Where columns were added the last answer is still feasible. Its prices are (`by_prices`) where bounds were
        changed; so are prices of zero where no cost is negative and nothing was solved yet. So another simplex method
        has less to do.
        """
        new, self._waiting = self._waiting, _Columns()
        count = len(new.costs)
        self._known += count
        if count:
            self._solver.addCols(
                count,
                np.array(new.costs),
                np.zeros(count),
                np.full(count, self._infinity),
                len(new.rows),
                np.array(new.starts, dtype=np.int32),
                np.array(new.rows, dtype=np.int32),
                np.array(new.values),
            )
        self._solver.setOptionValue("simplex_strategy", _DUAL if by_prices else _PRIMAL)
        try:
            self._solver.run()
        except Exception:  # a fault of the solver must not take any pod's node
            return False
        return self._solver.getModelStatus() in self._good

    def shut(self, column: int) -> None:
        """Keep a column at zero."""
        self._solver.changeColBounds(column, 0.0, 0.0)

    def drop(self, columns: Amounts) -> None:
        """Remove columns of which the last answer has none; those after them move up."""
        self._solver.deleteCols(len(columns), columns.astype(np.int32))
        self._known -= len(columns)

    def keep_at_least(self, columns: Amounts, least: Floats) -> None:
        """Keep columns at no less than so much."""
        most = np.full(len(columns), self._infinity)
        self._solver.changeColsBounds(len(columns), columns.astype(np.int32), least, most)

    @property
    def steps(self) -> int:
        """How many steps of the simplex method the last answer took."""
        return int(self._solver.getInfo().simplex_iteration_count)

    @property
    def cost(self) -> float:
        """What the last answer costs."""
        return float(self._solver.getObjectiveValue())

    def prices(self) -> Floats:
        """By row, what a unit more of its bound would cost."""
        return np.array(self._solver.getSolution().row_dual)

    def reduced_costs(self) -> Floats:
        """By column, how much more it costs than it is worth at the last prices."""
        return np.array(self._solver.getSolution().col_dual)

    def amounts(self) -> Floats:
        """By column, how much of it the last answer has."""
        return np.array(self._solver.getSolution().col_value)
