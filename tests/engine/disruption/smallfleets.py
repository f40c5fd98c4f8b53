"""Small fleets made of a seed, with a floor and budgets, and the cheapest fleet that holds the same pods.

Any fleet that holds the pods and keeps the floor can be reached one node at a time, so the cheapest one is found by
trying every filling of every type. It knows nothing of the engine: sums of cpu, memory and GPUs alone.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from kerf.engine.study.steps import steps
from kerf.engine.supply.pricing import cluster_price
from kerf.engine.world import World
from kerf.model.bounds import MIN_NODES
from kerf.model.nodepool import Budget
from kerf.model.pods import Owner
from kerf.model.snapshot import Upserted, Watched
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_market, an_instance_type, cards
from tests.engine.disruption.clusters import on, ours, pool_with

_SERVES = Owner("ReplicaSet", "web")
_SETTLED_S, _MOST_ROUNDS = 1_300, 10
"""After so long nodes that came in the place of others are judged as well."""


@dataclass(frozen=True)
class Size:
    """What a type has, or a pod asks: thousandths of cpu, MiB, GPUs."""

    cpu: int
    memory: int
    gpus: int

    def holds(self, asked: Sequence["Size"]) -> bool:
        """Whether there is room for all of these."""
        return (
            sum(each.cpu for each in asked) <= self.cpu
            and sum(each.memory for each in asked) <= self.memory
            and sum(each.gpus for each in asked) <= self.gpus
        )


@dataclass(frozen=True)
class SmallFleet:
    """Types by name with their price in micro-units, nodes by type, and the pods on each."""

    types: tuple[tuple[str, Size, int], ...]
    nodes: tuple[tuple[str, tuple[Size, ...]], ...]
    floor: int
    budget: str

    @property
    def world(self) -> World:
        """The cluster, seen as a live one: its nodes have the cards that they register."""
        annotations = {MIN_NODES: str(self.floor)} if self.floor else {}
        objects: list[Watched] = [replace(pool_with(Budget(self.budget)), own_annotations=annotations)]
        sizes = {name: size for name, size, _ in self.types}
        for number, (kind, pods) in enumerate(self.nodes):
            size, name = sizes[kind], f"n{number}"
            gpus = {"nvidia.com/gpu": size.gpus} if size.gpus else {}
            amounts = {"cpu": f"{size.cpu}m", "memory": f"{size.memory}Mi", "pods": 58, **gpus}
            objects += ours(name, instance_type=kind, allocatable=amounts)
            for at, pod in enumerate(pods):
                asked = {"cpu": f"{pod.cpu}m", "memory": f"{pod.memory}Mi", **({"gpu": pod.gpus} if pod.gpus else {})}
                objects.append(on(name, f"{name}-{at}", owner=_SERVES, created_s=NOON_S - 86_400, **asked))
        state = ClusterState(assume_node_classes=True)
        for each in objects:
            state.apply(Upserted(each))
        sold = [
            an_instance_type(
                name,
                cpu=f"{size.cpu}m",
                memory=f"{size.memory}Mi",
                devices=cards(size.gpus),
                price=f"{price / 1e6:.2f}",
            )
            for name, size, price in self.types
        ]
        return World(state.snapshot(NOON_S), a_market(*sold))

    def cheapest_micro(self) -> int:
        """What the cheapest fleet costs an hour that holds the pods and keeps the floor."""
        counted = Counter(pod for _, pods in self.nodes for pod in pods)
        kinds, cheapest = list(counted), min(price for _, _, price in self.types)

        def fillings(size: Size, left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            for numbers in product(*(range(each + 1) for each in left)):
                held = [kind for kind, number in zip(kinds, numbers, strict=True) for _ in range(number)]
                if held and size.holds(held):
                    yield numbers

        @cache
        def least(left: tuple[int, ...], nodes: int) -> int:
            if not any(left):
                return max(0, self.floor - nodes) * cheapest
            return min(
                price + least(tuple(a - b for a, b in zip(left, taken, strict=True)), min(self.floor, nodes + 1))
                for _, size, price in self.types
                for taken in fillings(size, left)
            )

        return least(tuple(counted.values()), 0)


def small_fleet(seed: int) -> SmallFleet:
    """Three to six nodes of two or three types, from empty to full; the same for every run."""
    chance = random.Random(seed)
    types = []
    for number in range(chance.choice((2, 3))):
        cpu, gpus = chance.choice((4, 8, 16, 32)), chance.choice((0, 1, 1, 4))
        price = round((cpu * 0.048 + gpus * chance.choice((0.5, 0.8, 1.0))) * chance.uniform(0.8, 1.25), 2)
        types.append((f"t{number}", Size(1_000 * cpu, 4_096 * cpu, gpus), round(price * 1e6)))
    kinds = [
        Size(
            chance.choice((500, 1_000, 2_000, 3_000, 3_500)),
            chance.choice((512, 2_048, 4_000, 8_000)),
            chance.choice((0, 0, 1, 1, 2)),
        )
        for _ in range(chance.choice((1, 2, 3)))
    ]
    nodes = list[tuple[str, tuple[Size, ...]]]()
    for _ in range(chance.randint(3, 6)):
        (name, size, _), pods = chance.choice(types), list[Size]()
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            pod = chance.choice(kinds)
            if size.holds([*pods, pod]):
                pods.append(pod)
        nodes.append((name, tuple(pods)))
    floor = min(len(nodes), chance.choice((0, 1, 2, 3, len(nodes) - 1, len(nodes))))
    budget = chance.choice(("1", "1", "2", "3", "50%", "100%"))
    return SmallFleet(tuple(types), tuple(nodes), floor, budget)


def settled(world: World) -> World:
    """The cluster once nothing is left to do, also with the nodes that came in the place of others."""
    for _ in range(_MOST_ROUNDS):
        found = list(steps(world))
        if not found:
            return world
        snapshot = found[-1].after.snapshot
        world = World(replace(snapshot, taken_at_s=snapshot.taken_at_s + _SETTLED_S), world.market)
    raise AssertionError("it comes to no end")


def cost_micro(world: World) -> int:
    """What its nodes cost an hour."""
    return cluster_price(world.snapshot.nodes, world.supply)
