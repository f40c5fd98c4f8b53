"""`kerf plan --strategies`: what each way to choose nodes comes to, side by side."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kerf.cli.plan.json import API_VERSION, Json, cards_number
from kerf.cli.render import percent_text, table
from kerf.engine.bounding import bounded
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.instancetypes import price_number, price_text
from kerf.model.market import Market
from kerf.model.policies import BUDGETS, COST, FIRST_FIT
from kerf.model.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class Tried:
    """A decision by one strategy, and the CPU seconds that it took with its bound."""

    strategy: str
    budget: str
    decision: Decision
    seconds: float

    @property
    def above_micro(self) -> tuple[int, int] | None:
        """How much it costs above what its pods cost at least, and that least; None where there is no bound."""
        cost = self.decision.cost
        return None if not cost.bound_micro else (cost.after_micro - cost.bound_micro, cost.bound_micro)


def tried(snapshot: ClusterSnapshot, market: Market, options: Options) -> list[Tried]:
    """First-fit, as Karpenter chooses, then the cheapest for each budget; each from nothing."""
    found = []
    for strategy, budget in ((FIRST_FIT, ""), *((COST, budget) for budget in BUDGETS)):
        asked = replace(options, strategy=strategy, budget=budget or options.budget)
        start = time.process_time()
        decision = bounded(decide(World(snapshot, market), asked))
        found.append(Tried(strategy, budget, decision, time.process_time() - start))
    return found


def strategies_object(found: Sequence[Tried]) -> Json:
    """All of them, in the order in which they were tried."""
    return {"apiVersion": API_VERSION, "kind": "Strategies", "items": [_object(each) for each in found]}


def _object(each: Tried) -> Json:
    cost, gpus = each.decision.cost, each.decision.gpus
    return {
        "strategy": each.strategy,
        **({"budget": each.budget} if each.budget else {}),
        "nodes": len(each.decision.launches),
        "currency": cost.currency,
        "perHourAfter": price_number(cost.after_micro),
        "perHourLowerBound": None if cost.bound_micro is None else price_number(cost.bound_micro),
        "gpus": {"paid": cards_number(gpus.paid), "allocated": cards_number(gpus.allocated)},
        "unplaced": each.decision.unserved,
        "seconds": round(each.seconds, 2),
    }


def strategies_lines(found: Sequence[Tried]) -> Iterator[str]:
    """A row a strategy."""
    money = f"{found[0].decision.cost.currency}/H"
    headers = ("STRATEGY", "NEW NODES", money, "ABOVE BOUND", "GPU UNUSED", "PODS LEFT", "CPU SECONDS")
    yield from table(headers, map(_row, found))


def _row(each: Tried) -> tuple[str, ...]:
    cost, gpus, above = each.decision.cost, each.decision.gpus, each.above_micro
    return (
        f"{each.strategy}, {each.budget}" if each.budget else each.strategy,
        str(len(each.decision.launches)),
        price_text(cost.after_micro),
        "-" if above is None else percent_text(*above),
        percent_text(gpus.paid - gpus.allocated, gpus.paid) if gpus.paid else "-",
        str(each.decision.unserved),
        f"{each.seconds:.2f}",
    )
