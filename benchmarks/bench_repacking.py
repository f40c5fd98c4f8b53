"""What consolidation makes of a fleet that first-fit bought and that has lost 40 % of its pods (`bench_openb`'s trace).

Run as `python -m benchmarks.bench_repacking openb`. The first command is decided from nothing, in CPU seconds and in
loops; then commands follow, each taken for done, until there is none. A plan for the same pods on an empty cluster is
what the end is compared with.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.bench_openb import asking, loop_s, market, pending, rows, snapshot
from kerf.cli.collector import collect_seldom
from kerf.engine.decide import decide
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.options import Options
from kerf.engine.study.steps import done, steps
from kerf.engine.supply.pricing import cluster_price
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.nodepool import Budget, Disruption
from kerf.model.pods import Pod
from kerf.model.policies import FIRST_FIT
from kerf.model.snapshot import ClusterSnapshot

Figures = Iterator[tuple[str, float]]
_AGE_S = 7_200.0


def fleet(sold: Market, pods: list[Pod], budget: str) -> ClusterSnapshot:
    """The nodes that first-fit buys for the pods, without the pods at every third and every tenth place by name,
    and without the nodes that are empty then."""
    left = {pod.key for at, pod in enumerate(sorted(pods, key=lambda pod: pod.name)) if at % 3 and at % 10 != 5}
    held = snapshot(pods)
    (pool,) = held.node_pools
    disruption = Disruption(0, budgets=(Budget(budget),))
    world = World(replace(held, taken_at_s=_AGE_S, node_pools=(replace(pool, disruption=disruption),)), sold)
    made = decide(world, Options(FIRST_FIT, with_bound=False))
    launches = (replace(each, pods=tuple(pod for pod in each.pods if pod.pod in left)) for each in made.launches)
    after = done(Command(made.cost, launches=tuple(launches)), world)
    # Empty ones go without a thought.
    return replace(after, nodes=tuple(node for node in after.nodes if node.pods), pending=())


def openb(variant: str = "default") -> Figures:
    """All nodes at once, then a tenth of them at a time."""
    sold, pods = market(rows("catalogue_aws_16.csv")), pending(asking(variant))
    for name, budget in (("all", "100%"), ("tenth", "10%")):
        held = fleet(sold, pods, budget)
        running = [replace(pod, node_name="", phase="Pending") for node in held.nodes for pod in node.pods]
        fresh = decide(World(snapshot(running), sold), Options())
        world = World(held, sold)
        start = time.process_time()
        first_command(world, candidates(held)[0], tuple)
        seconds = time.process_time() - start
        found = list(steps(World(held, sold)))
        before = cluster_price(held.nodes, world.supply)
        after, moved = found[-1].after_micro if found else before, sum(step.moved for step in found)
        yield f"repacking_{name}_first_s", seconds
        yield f"repacking_{name}_first_loops", seconds / loop_s()
        yield f"repacking_{name}_above_fresh_percent", 100 * (after / fresh.cost.after_micro - 1)
        yield f"repacking_{name}_of_saving_percent", 100 * (before - after) / max(1, before - fresh.cost.after_micro)
        yield f"repacking_{name}_moves_a_pod", moved / max(1, len(running))


SETS = {"openb": openb}


if __name__ == "__main__":
    collect_seldom()
    for figure, value in SETS[sys.argv[1]](*sys.argv[2:]):
        print(json.dumps({figure: round(value, 4)}), flush=True)
