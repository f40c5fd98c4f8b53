"""What plans for many pods cost above their bound, and in CPU seconds: equal pods, many kinds, few pods, busy clusters.

Decided with the bound, without words. Each figure in seconds is the least of three; `loops` are seconds in loops of ten
million steps, since machines differ.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from benchmarks import clusters
from benchmarks.bench_decisions import aws_market
from benchmarks.bench_openb import asking, loop_s, market, pending, rows, snapshot
from kerf.cli.collector import collect_seldom
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.quantities import CPU, Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

Figures = Iterator[tuple[str, float]]
_ONE_CARD = an_instance_type("one-card", cpu=4, memory="16Gi", pods=50, devices=cards(1, 24_576, "A10G"), price="1.00")


def _decided(held: ClusterSnapshot, market_: Market, times: int = 3) -> tuple[Decision, float]:
    """The decision, and the least CPU seconds of so many times, each from nothing."""
    seconds = []
    for _ in range(times):
        world = World(held, market_)
        start = time.process_time()
        made = decide(world, Options())
        seconds.append(time.process_time() - start)
    assert not made.refusals, f"{sum(len(each.pods) for each in made.refusals)} unplaced"
    return made, min(seconds)


def _excess_percent(made: Decision) -> float:
    """What the nodes that are bought cost above their bound."""
    cost = made.cost
    assert cost.bound is not None
    return 100 * ((cost.after_micro - cost.before_micro) / cost.bound.micro - 1)


def equal(*counts: int) -> Figures:
    """Pods of one kind on one type, four a node."""
    for count in counts or (1_000, 10_000, 100_000):
        first = a_pod("p", cpu="500m", memory="1Gi", gpu=1, gpumem=6_000)
        pods = [replace(first, name=f"p-{number}") for number in range(count)]
        held = a_snapshot(pools=[a_pool(labels=clusters.HAMI)], pods=pods)
        seconds = _decided(held, a_market(_ONE_CARD))[1]
        yield f"equal_{count}_s", seconds
        yield f"equal_{count}_loops", seconds / loop_s()


def kinds(few: int = 100, many: int = 500, most: int = 1_000, copies: int = 10) -> Figures:
    """So many kinds of pods with a slice each, so many of every one and one of most, on the whole AWS catalogue."""
    for shapes, times in ((few, copies), (many, copies), (most, 1)):
        made, seconds = _decided(clusters.slices(shapes, times, 20), aws_market(), 1)
        yield f"kinds_{shapes}_x{times}_s", seconds
        yield f"kinds_{shapes}_x{times}_loops", seconds / loop_s()
        yield f"kinds_{shapes}_x{times}_excess_percent", _excess_percent(made)


def beside(nodes: int = 5_000, shapes: int = 200, copies: int = 50) -> Figures:
    """Pods of many kinds with a slice each, on the AWS catalogue, beside full nodes with twenty pods each."""
    running = clusters.without_room(clusters.spread(nodes, 0, shapes))
    pools = (*running.node_pools, a_pool(capacity_types=(), labels=clusters.HAMI))
    held = replace(running, pending=clusters.slices(shapes, copies, 20).pending, node_pools=pools)
    made, seconds = _decided(held, aws_market(), 1)
    yield f"beside_{nodes}_s", seconds
    yield f"beside_{nodes}_loops", seconds / loop_s()
    yield f"beside_{nodes}_excess_percent", _excess_percent(made)


def few(*counts: int) -> Figures:
    """Random pods of openb, a mean of ten draws; the trace is that of `bench_openb`."""
    types, found = market(rows("catalogue_aws_16.csv")), asking("default")
    for count in counts or (10, 100, 1_000):
        made = [_decided_of(found, count, seed, types) for seed in range(10)]
        yield f"few_{count}_excess_percent", statistics.mean(excess for excess, _ in made)
        seconds = statistics.median(each for _, each in made)
        yield f"few_{count}_s", seconds
        yield f"few_{count}_loops", seconds / loop_s()


def _decided_of(found: list[dict[str, str]], count: int, seed: int, types: Market) -> tuple[float, float]:
    drawn = Random(seed).sample(found, count)
    start = time.process_time()
    made = decide(World(snapshot(pending(drawn)), types), Options())
    return _excess_percent(made), time.process_time() - start


def limited(*percent: int) -> Figures:
    """All pods of openb in a pool with a limit: so many percent of the cpu of the nodes that a plan without it buys.

    The cost is that above the nodes of the plan without a limit; pods that no type takes are left by both.
    """
    types, pods = market(rows("catalogue_aws_16.csv")), pending(asking("default"))
    free = decide(World(snapshot(pods), types), Options())
    cpu = Resources.total((launch.charge, 1) for launch in free.launches)[CPU]
    for each in percent or (97, 90):
        world = World(snapshot(pods, limits=Resources({CPU: cpu * each // 100})), types)
        start = time.process_time()
        made = decide(world, Options())
        seconds = time.process_time() - start
        yield f"limited_{each}_loops", seconds / loop_s()
        yield f"limited_{each}_above_free_percent", 100 * (made.cost.after_micro / free.cost.after_micro - 1)
        yield f"limited_{each}_more_left", _left(made) - _left(free)


def _left(made: Decision) -> int:
    """How many pods have no node."""
    return sum(len(refusal.pods) for refusal in made.refusals)


SETS: dict[str, Callable[..., Figures]] = {
    "equal": equal,
    "kinds": kinds,
    "beside": beside,
    "few": few,
    "limited": limited,
}

if __name__ == "__main__":
    # As in a command.
    collect_seldom()
    for name, value in SETS[sys.argv[1]]():
        print(json.dumps({name: value}), flush=True)
