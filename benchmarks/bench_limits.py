"""What limits cost: those that no plan comes near, for every search that there is; those that bind, as far as they do.

A plan under limits that are far away is the plan without them, and takes as long and as much memory. CPU is the least
of three; memory is what Python has allocated at most, without the libraries. `loops` are seconds in loops of ten
million steps, since machines differ.
"""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

from benchmarks import clusters, diverse
from benchmarks.bench_decisions import aws_market
from benchmarks.bench_openb import loop_s
from kerf.cli.collector import collect_seldom
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import Requirement, Requirements
from kerf.model.market import Market
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY, NODES, Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_pod, a_pool, a_snapshot

Figures = Iterator[tuple[str, float]]
Case = tuple[ClusterSnapshot, Market]
FAR = Resources.parse(diverse.LIMITS)
_FAMILIES = Requirement.of("karpenter.k8s.aws/instance-family", "In", ("m6i", "c6i", "r6i", "m7i", "c7i", "t3"))


def _different(count: int, kinds: int) -> ClusterSnapshot:
    chance = Random(7)
    sizes = [(chance.randrange(1, 80) * 50, chance.randrange(1, 60) * 128) for _ in range(kinds)]
    shapes = [a_pod(cpu=f"{cpu}m", memory=f"{memory}Mi") for cpu, memory in sizes]
    pods: list[Pod] = [replace(chance.choice(shapes), name=f"p-{number}") for number in range(count)]
    return a_snapshot(pools=[a_pool(requirements=Requirements([_FAMILIES]))], pods=pods)


def cases() -> dict[str, Callable[[], Case]]:
    """One for each search: few pods are parted in every way, some kinds are bought by prices, many are mixed."""
    return {
        "few": lambda: (_different(7, 3), aws_market()),
        "kinds": lambda: (_different(600, 60), aws_market()),
        "mixed": lambda: (_different(450, 450), aws_market()),
        "slices": lambda: (clusters.slices(100, 10, 20), aws_market()),
        "diverse_1000": lambda: (diverse.diverse(1_000), diverse.types()),
        "diverse_5000": lambda: (diverse.diverse(5_000), diverse.types()),
    }


def _limited(case: Case, limits: Mapping[str, int] | None) -> World:
    held = None if limits is None else Resources(limits)
    pools = tuple(replace(pool, limits=held) for pool in case[0].node_pools)
    return World(replace(case[0], node_pools=pools), case[1])


def _decided(case: Case, limits: Mapping[str, int] | None, times: int = 3) -> tuple[Decision, float]:
    """The decision, and the least CPU seconds of so many, each from nothing."""
    seconds = []
    for _ in range(times):
        world = _limited(case, limits)
        start = time.process_time()
        made = decide(world, Options())
        seconds.append(time.process_time() - start)
    return made, min(seconds)


def _peak(case: Case, limits: Mapping[str, int] | None) -> int:
    world = _limited(case, limits)
    tracemalloc.start()
    decide(world, Options())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def far() -> Figures:
    """Limits of 10,000,000 cpu and as many Gi beside none: what they add to cost, CPU and memory."""
    for name, made in cases().items():
        case = made()
        # The first decision of a process also loads what the others have.
        _decided(case, None, 1)
        (free, free_s), (limited, limited_s) = _decided(case, None), _decided(case, FAR)
        yield f"limits_far_{name}_above_free_percent", 100 * (limited.cost.after_micro / free.cost.after_micro - 1)
        yield f"limits_far_{name}_cpu_part", limited_s / free_s
        yield f"limits_far_{name}_memory_part", _peak(case, FAR) / _peak(case, None)


def reached() -> Figures:
    """A limit of exactly what the plan without it buys, which changes nothing; then 90 % of that, which binds."""
    for name, made in cases().items():
        if name == "diverse_5000":
            continue
        case = made()
        free, _ = _decided(case, None, 1)
        used = Resources.total((node.load.charge, 1) for node in free.bought)
        exact, _ = _decided(case, {CPU: used[CPU], MEMORY: used[MEMORY], NODES: used[NODES]}, 1)
        yield f"limits_exact_{name}_above_free_percent", 100 * (exact.cost.after_micro / free.cost.after_micro - 1)
        tight, seconds = _decided(case, {CPU: used[CPU] * 9 // 10}, 1)
        yield f"limits_tight_{name}_loops", seconds / loop_s()
        yield f"limits_tight_{name}_left", sum(len(each.pods) for each in tight.refusals)


SETS: dict[str, Callable[[], Figures]] = {"far": far, "reached": reached}

if __name__ == "__main__":
    # As in a command.
    collect_seldom()
    for figure, value in SETS[sys.argv[1]]():
        print(json.dumps({figure: value}), flush=True)
