"""What a plan costs that begins with what the last one has left, in CPU seconds; the pods are those of `bench_openb`.

Run as `python -m benchmarks.bench_warm fleet|search [COPIES]` or `waiting [NODES]`. `fleet` plans all pods of the trace
for an empty cluster again and again, after 2, 10, 30 or 60 % of them were replaced by others drawn from the trace;
`search` is the same without what each pod costs: from shapes to nodes, and the bound. In `waiting` the pods wait beside
5,000 full nodes on which 100,000 others run. `loops` are seconds in loops of ten million steps. `pause` is what garbage
collection takes after a plan, which it waits for as in `kerf run`; what falls due during a plan counts with the plan.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks import clusters
from benchmarks.bench_openb import Row, asking, loop_s, market, pending, pod_rows, rows, snapshot, type_rows
from benchmarks.boundcheck import proved
from benchmarks.plancheck import checked
from kerf.cli.collector import collect_seldom
from kerf.cli.plan.json import plan_object
from kerf.controllers.garbage import Garbage
from kerf.engine.buy.bound import proven
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.packing import cheapest_nodes
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.explain.plan import explain
from kerf.engine.options import Options
from kerf.engine.place.shapes import group
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, Upserted
from kerf.state.cluster import ClusterState
from kerf.testing.builders import a_pool

Figures = Iterator[tuple[str, float]]
_PERCENT, _TURNS = (2, 10, 30, 60), 25


def fleet(copies: int = 1) -> Figures:
    """All pods at once; what the last plans cost is checked, and compared with what they cost without anything kept."""
    types, found = rows("catalogue_aws_16.csv"), _copied(asking("default"), copies)
    yield from _replanned(f"warm_x{copies}", market(types), found, types, snapshot)


def waiting(nodes: int = 5_000) -> Figures:
    """The same beside full nodes with twenty pods each."""
    types, found = rows("catalogue_aws_16.csv"), _copied(asking("default"), 1)
    running = clusters.without_room(clusters.spread(nodes, 0, 200))
    pools = (*running.node_pools, a_pool("sliced", labels=clusters.HAMI))
    offered = market(types)
    types_there = tuple(sorted((*offered.types, *clusters.MARKET.types), key=lambda kind: kind.name))

    def beside(pods: list[Any]) -> ClusterSnapshot:
        return replace(running, pending=tuple(pods), node_pools=pools)

    yield from _replanned("warm_waiting", replace(offered, types=types_there), found, (), beside)


def _replanned(
    name: str,
    market_: Market,
    first: Sequence[Row],
    types: Sequence[Row],
    world_of: Callable[[list[Any]], ClusterSnapshot],
) -> Figures:
    garbage, pauses = Garbage(), list[float]()
    loop, start = loop_s(), time.process_time()
    there = _arrived(pending(list(first)))
    made = _decided(World(world_of(there), market_, kept=WarmStart()))
    yield f"{name}_cold_s", time.process_time() - start
    garbage.look()
    seconds, worst, dearest = list[float](), dict[int, float](), 0.0
    for percent in _PERCENT:
        now, kept = _Pods(first, there, percent), made.kept
        for _ in range(_TURNS):
            now.change()
            held = world_of(now.pods)
            start = time.process_time()
            decision = _decided(World(held, market_, kept=kept))
            seconds.append(time.process_time() - start)
            kept = decision.kept
            pauses.append(_looked_s(garbage))
            worst[percent] = max(worst.get(percent, 0.0), _excess_percent(decision))
        if types:
            printed: dict[str, Any] = json.loads(json.dumps(plan_object(explain(decision), decision.world)))
            checked(printed, pod_rows(now.rows), type_rows(list(types)))
            proved(printed, pod_rows(now.rows), type_rows(list(types)))
        cold = _decided(World(held, market_))
        dearest = max(dearest, 100 * (decision.cost.after_micro / cold.cost.after_micro - 1))
    yield from _quantiles(name, seconds, loop)
    yield f"{name}_pause_mean_s", sum(pauses) / len(pauses)
    yield f"{name}_pause_max_s", max(pauses)
    for percent, excess in worst.items():
        yield f"{name}_{percent}_excess_percent", excess
    yield f"{name}_above_cold_percent", dearest


def search(copies: int = 14) -> Figures:
    """From shapes to the nodes that are bought and their bound, without dealing out the pods."""
    found, market_ = _copied(asking("default"), copies), market(rows("catalogue_aws_16.csv"))
    loop, seconds, worst, kept, garbage = loop_s(), list[float](), 0.0, WarmStart(), Garbage()
    for percent in (0, *_PERCENT):
        now = _Pods(found, pending(found), percent)
        for _ in range(_TURNS if percent else 1):
            now.change()
            shapes, world = group(now.pods), World(snapshot([]), market_, kept=kept)
            start = time.process_time()
            bought = cheapest_nodes(shapes, world.supply.available, Ledger.of(world), world.holding)
            # No type takes some few of the trace.
            held = [shape for shape, left in zip(shapes, bought.left, strict=True) if not left]
            bound = proven(held, world.supply.available, world.holding)
            if percent:
                seconds.append(time.process_time() - start)
            kept = WarmStart.of(world.holding)
            garbage.look()
            assert bound is not None
            worst = max(worst, 100 * (bought.rank[1] / bound.micro - 1))
    yield from _quantiles(f"warm_search_x{copies}", seconds, loop)
    yield f"warm_search_x{copies}_excess_percent", worst


def _copied(found: Sequence[Row], copies: int) -> list[Row]:
    return [{**row, "name": f"{row['name']}-{copy}"} for row in found for copy in range(copies)]


class _Pods:
    """Pods of which at each change so many percent are replaced by others that are drawn from the first at random."""

    def __init__(self, rows: Sequence[Row], pods: Sequence[Pod], percent: int) -> None:
        self._first, self._percent, self._random, self._changes = rows, percent, Random(percent), 0
        self.rows, self.pods = list(rows), list(pods)

    def change(self) -> None:
        self._changes += 1
        places = self._random.sample(range(len(self.rows)), len(self.rows) * self._percent // 100)
        for at in places:
            self.rows[at] = {**self._random.choice(self._first), "name": f"new-{self._changes}-{at}"}
        for at, pod in zip(places, _arrived(pending([self.rows[at] for at in places])), strict=True):
            self.pods[at] = pod


def _arrived(pods: list[Pod]) -> list[Pod]:
    """The pods as the state hands them over once their events have come."""
    state = ClusterState()
    for pod in pods:
        state.apply(Upserted(pod))
    return pods


def _decided(world: World) -> Decision:
    return decide(world, Options())


def _looked_s(garbage: Garbage) -> float:
    start = time.process_time()
    garbage.look()
    return time.process_time() - start


def _excess_percent(decision: Decision) -> float:
    assert decision.cost.bound is not None
    bought = decision.cost.after_micro - decision.cost.before_micro
    return 100 * (bought / decision.cost.bound.micro - 1)


def _quantiles(name: str, seconds: Sequence[float], loop: float) -> Figures:
    ordered = sorted(seconds)
    for percent in (50, 99):
        figure = ordered[(len(ordered) - 1) * percent // 100]
        yield f"{name}_p{percent}_s", figure
        yield f"{name}_p{percent}_loops", figure / loop


SETS: dict[str, Callable[..., Figures]] = {"fleet": fleet, "search": search, "waiting": waiting}

if __name__ == "__main__":
    # As in a command.
    collect_seldom()
    for figure, value in SETS[sys.argv[1]](*map(int, sys.argv[2:])):
        print(json.dumps({figure: round(value, 4)}), flush=True)
