"""Where the dollars above the re-pack bound go in a random fleet: by what each machine is doing at a moment.

What a machine costs beyond what its pods are worth (`kerf.engine.disruption.worths`) is counted under the first of
`WHAT` that is so; over all machines that is what is paid above the bound. Looked at every four virtual minutes: nodes
start in bursts, so fewer looks miss much of these.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.bench_random import REPACK_S
from benchmarks.randomfleet import random_fleet
from kerf.cli.collector import collect_seldom
from kerf.engine.disruption.candidates import moving
from kerf.engine.disruption.obstacles import Obstacles
from kerf.engine.disruption.repacking import SETTLES_S
from kerf.engine.disruption.worths import Worths
from kerf.engine.world import World
from kerf.model.nodeclaim import CONSOLIDATABLE
from kerf.model.snapshot import ClusterNode
from kerf.sim.clock import VirtualLoop
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import Simulation
from kerf.telemetry import silence

_EVERY_S, _HOUR_S = 240, 3_600
_LITTLE = 50
"""One part in so many is no waste."""
WHAT = (
    "ends",
    "starts in the place of others",
    "starts for pods that wait",
    "waits for others in its place",
    "is empty",
    "do-not-disrupt or a budget of pods",
    "a pod came or left lately",
    "rests, for it came in the place of others",
    "is wasted",
    "is hardly wasted",
)


class Watching(Simulation):
    """A run that is looked at between two times, and that adds up what it sees."""

    def __init__(self, *given: Any, looks_s: Sequence[int]) -> None:
        super().__init__(*given)
        self._looks_s = looks_s
        self.paid_micro = self.wasted_micro = 0
        self.wasted: Counter[str] = Counter()

    def _begin(self) -> None:
        super()._begin()
        for at_s in self._looks_s:
            self._at(at_s, self._look)

    def _look(self) -> None:
        assert self._kerf is not None
        market = self._scenario.market
        types = tuple(self._cloud.find(each.name) for each in market.types)
        snapshot = self._kerf.state.snapshot(self._clock.now_s())
        prices = {bill.instance.claim_name: bill.price_micro for bill in self._cloud.bills if bill.until_s is None}
        held = {node.claim.name: node for node in snapshot.nodes if node.claim is not None}
        names = {name: node.name for name, node in held.items() if name in prices and node.node is not None}
        pods = {name: list(self._books.pods_on(node)) for name, node in names.items()}
        came = self._repack._running() if self._repack is not None else []
        worths, obstacles = Worths(World(snapshot, replace(market, types=types)), came), Obstacles(snapshot)
        for name, price in prices.items():
            wasted = price - worths.micro(pods.get(name, ()))
            what = _what(held.get(name), obstacles, snapshot.taken_at_s, is_wasted=wasted * _LITTLE > price)
            self.wasted[what] += wasted
            self.paid_micro += price
            self.wasted_micro += wasted


def _what(node: ClusterNode | None, obstacles: Obstacles, now_s: float, *, is_wasted: bool) -> str:
    claim = node.claim if node is not None else None
    if node is None or claim is None or claim.is_deleting:
        return WHAT[0]
    if not node.is_initialized:
        return WHAT[1] if claim.replaces else WHAT[2]
    if claim.replaced_by:
        return WHAT[3]
    if not moving(node):
        return WHAT[4]
    if obstacles.of(node) is not None:
        return WHAT[5]
    if not claim.is_true(CONSOLIDATABLE):
        return WHAT[6]
    if claim.replaces and now_s - claim.created_s < SETTLES_S:
        return WHAT[7]
    return WHAT[8] if is_wasted else WHAT[9]


def above(seed: int, gpus: int, from_h: float, until_h: float) -> Iterator[tuple[str, float]]:
    """Percent of the bound, all in all and under each of `WHAT`, between two hours of a seed."""
    collect_seldom()
    silence()
    with tempfile.TemporaryDirectory() as folder:
        scenario = read_scenario(str(random_fleet(seed, until_h / 24, gpus).write(Path(folder))))
    settings = replace(scenario.settings, repack_s=REPACK_S)
    looks_s = range(round(from_h * _HOUR_S) + _EVERY_S // 2, round(until_h * _HOUR_S), _EVERY_S)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        seen = Watching(runner.get_loop(), scenario, settings, None, None, looks_s=looks_s)
        runner.run(seen.run())
        seen.stop()
    bound_micro = seen.paid_micro - seen.wasted_micro
    yield "all", 100 * seen.wasted_micro / bound_micro
    for what in WHAT:
        yield what, 100 * seen.wasted[what] / bound_micro


def main(seed: str, gpus: str = "420", from_h: str = "6", until_h: str = "12") -> None:
    """Print a line for each."""
    for what, percent in above(int(seed), int(gpus), float(from_h), float(until_h)):
        print(f"{percent:6.2f} %  {what}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
