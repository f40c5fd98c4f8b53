"""What a decision costs after one change of a large fleet, and what the first one costs, in CPU seconds.

Run as `python -m benchmarks.bench_changes changes [NODES CHANGES]`. The fleet is full and in use: nothing may go and
nothing waits, as in most moments. Each change is one of a pod or a node, drawn at random from a seed; the plan for the
pods that wait and a look at all nodes that may go follow. `loops` are seconds in loops of ten million steps.
"""

import json
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from benchmarks import clusters
from benchmarks.bench_openb import loop_s
from kerf.cli.collector import collect_seldom
from kerf.engine.decide import decide
from kerf.engine.disruption.asked import Asked, Repacks
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.first import first_command
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.pods import PENDING, RUNNING
from kerf.model.snapshot import Deleted, Event, Upserted
from kerf.state import ClusterState

Figures = Iterator[tuple[str, float]]
_POLL_S = 10.0


class _Fleet:
    """The fleet, and what its controllers keep from one decision to the next."""

    def __init__(self, nodes: int) -> None:
        self.state, self.now_s = ClusterState(assume_node_classes=True), 1_000_000.0
        objects, self._market = clusters.fleet(nodes)
        for value in objects:
            self.state.apply(Upserted(value))
        self._asked, self._repacks = Asked(), Repacks(300)

    @property
    def market(self) -> Market:
        return self._market

    def planned_s(self) -> float:
        """Seconds for the snapshot and the plan for what waits."""
        start = time.process_time()
        decide(World(self.state.snapshot(self.now_s), self._market), Options())
        return time.process_time() - start

    def looked_s(self) -> float:
        """Seconds for the snapshot and a look at all nodes that may go."""
        self.now_s += _POLL_S
        start = time.process_time()
        snapshot = self.state.snapshot(self.now_s)
        found, _ = candidates(snapshot)
        are_due = self._repacks.are_due(snapshot, self._market, found)
        command, _ = first_command(World(snapshot, self._market), found, tuple, repacks=are_due, asked=self._asked)
        if are_due and command is None:
            self._repacks.found_none(snapshot, self._market, found)
        return time.process_time() - start


def _changes(fleet: _Fleet, random: Random, count: int) -> Iterator[Event]:
    """A pod ends, another like it waits, that one is bound in its place, and a node is cordoned or let in again."""
    state = fleet.state
    for number in range(0, count, 4):
        pods, nodes = state.pods(), state.nodes()
        pod, node = pods[random.randrange(len(pods))], nodes[random.randrange(len(nodes))]
        yield Deleted(pod)
        waiting = replace(pod, name=f"new-{number}", uid=f"new-{number}", node_name="", phase=PENDING)
        yield Upserted(waiting)
        yield Upserted(replace(waiting, node_name=pod.node_name, phase=RUNNING))
        yield Upserted(replace(node, is_unschedulable=not node.is_unschedulable))


def changes(nodes: int = 5_000, count: int = 300) -> Figures:
    """The first decisions, and of those after each change the one that all but one in a hundred stay below."""
    before = _peak_mib()
    fleet, random = _Fleet(nodes), Random(7)
    yield f"changes_{nodes}_cold_plan_s", fleet.planned_s()
    yield f"changes_{nodes}_cold_look_s", fleet.looked_s()
    plans, looks = [], []
    for event in _changes(fleet, random, count):
        fleet.state.apply(event)
        plans.append(fleet.planned_s())
        looks.append(fleet.looked_s())
    loop = loop_s()
    for name, seconds in (("plan", plans), ("look", looks)):
        seconds.sort()
        for percent in (50, 99):
            figure = seconds[(len(seconds) - 1) * percent // 100]
            yield f"changes_{nodes}_{name}_p{percent}_s", figure
            yield f"changes_{nodes}_{name}_p{percent}_loops", figure / loop
    yield f"changes_{nodes}_mib", _peak_mib() - before


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


SETS = {"changes": changes}


if __name__ == "__main__":
    collect_seldom()
    for figure, value in SETS[sys.argv[1]](*map(int, sys.argv[2:])):
        print(json.dumps({figure: round(value, 4)}), flush=True)
