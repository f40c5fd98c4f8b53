"""Random small clusters with pods that wait and nodes that may go, and plain rules that judge what is decided of them.

A cluster begins with nodes that were bought for some pods, most of which have gone since. The rules know nothing of the
planner: what a pod asks and what a type has are rows of numbers, and the best fleet is found by trying everything.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from kerf.catalog import aws
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.options import Options
from kerf.engine.study.steps import steps, with_places
from kerf.engine.world import World
from kerf.model.constraints import INSTANCE_TYPE, Requirements
from kerf.model.nodeclaim import CONSOLIDATABLE, DO_NOT_DISRUPT
from kerf.model.nodepool import Budget, Disruption
from kerf.model.plan import PlacedPod
from kerf.model.pods import Container, Owner, Pod, PodDisruptionBudget, PodSpec
from kerf.model.quantities import NODES, Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.sharing.nvidia.replicas import REPLICAS_LABEL, STRATEGY_LABEL
from kerf.testing.builders import NOON_S, a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

FAMILIES = ("cpu", "whole", "time-slicing", "hami", "mig")
"""Under `mig` NVIDIA's MIG manager has cut the cards beforehand; under `hami-mig` HAMi cuts them as pods come."""
CARD_MIB = 10_000
REPLICAS = 3
"""Of a card under time-slicing."""
_MIG, _PARTS = "nvidia.com/mig-1g.5gb", 7
"""What kubelet counts of an A100 that is cut into its smallest parts, and how many it has."""
_HALF_MIG_MIB, _WHOLE_MIG_MIB = 19_000, 39_000
"""Half an A100 of 40 GB, and all of it, for HAMi in its mode `mig`."""
_OLD_S = 30 * 86_400.0
_QUICK = Options(with_bound=False)
_MOST_MOVABLE = 7
_A100 = next(shape for kind in aws.load().types if kind.name == "p4d.24xlarge" for shape in kind.devices)
_POOLS: Mapping[str, Mapping[str, Any]] = {
    "cpu": {},
    "whole": {},
    "time-slicing": {"labels": {STRATEGY_LABEL: "time-slicing", REPLICAS_LABEL: str(REPLICAS)}},
    "hami": {"labels": {"gpu": "on"}},
    "mig": {"labels": {"nvidia.com/mig.config": "all-1g.5gb"}},
    "hami-mig": {"labels": {"gpu": "on"}, "annotations": {"kerf.dev/hami-mode": "mig"}},
}


@dataclass(frozen=True)
class Kind:
    """A row of the catalogue: thousandths of a cpu, cards, and what an hour costs in millionths."""

    name: str
    cpu: int
    cards: int
    price: int


@dataclass(frozen=True)
class Ask:
    """A row of a pod: thousandths of a cpu; whole cards, replicas or halves of an A100; MiB of one of HAMi's cards."""

    cpu: int
    units: int = 0
    mib: int = 0


@dataclass(frozen=True)
class Case:
    """A cluster, and the same as rows."""

    family: str
    world: World
    kinds: Mapping[str, Kind]
    asks: Mapping[str, Ask]
    limit: int | None
    budget: int | None
    frozen: frozenset[str]
    """Nodes that may not go to save money."""

    @property
    def snapshot(self) -> ClusterSnapshot:
        """As it is decided on."""
        return self.world.snapshot


def case(seed: int, *, is_limited: bool = False) -> Case:
    """The cluster of a seed. Cost is compared where nothing but the cluster's own rules binds: `is_limited` adds a
    limit of nodes and a budget, which bind in some of the clusters."""
    random = Random(seed)
    families = (*FAMILIES, "hami-mig") if is_limited else FAMILIES
    family = families[seed % len(families)]
    kinds = _kinds(random, family)
    types = [
        an_instance_type(
            each.name,
            cpu=f"{each.cpu}m",
            memory="512Gi",
            devices=((_A100,) if family in ("mig", "hami-mig") else cards(1, CARD_MIB)) * each.cards,
            price=f"{each.price / 1e6:.6f}",
        )
        for each in kinds.values()
    ]
    pool = replace(a_pool(**_POOLS[family]), disruption=Disruption(0, budgets=(Budget("100%"),)))
    market, asks = a_market(*types), dict[str, Ask]()
    nodes: list[ClusterNode] = []
    for number in range(random.randint(1, 4)):
        pods = [_pod(random, family, f"r{number}-{each}", asks) for each in range(random.randint(1, 4))]
        nodes += _bought(World(a_snapshot(pools=[pool], pods=pods), market), pods, number, random)
    waits = [_pod(random, family, f"w{each}", asks) for each in range(random.randint(0, 3))]
    while sum(len(node.pods) for node in nodes) + len(waits) > _MOST_MOVABLE:
        fullest = max(nodes, key=lambda node: len(node.pods))
        nodes = [node for node in nodes if node is not fullest]
    limit = len(nodes) + random.randint(0, 2) if is_limited and random.random() < 0.6 else None
    budget = random.randint(0, 2) if is_limited and random.random() < 0.6 else None
    if limit is not None:
        pool = replace(pool, limits=Resources({NODES: limit}))
    if budget is not None:
        pool = replace(pool, disruption=Disruption(0, budgets=(Budget(str(budget)),)))
    nodes, budgets, frozen = _protected(random, nodes, may_be_new=is_limited)
    snapshot = a_snapshot(pools=[pool], pods=waits, nodes=nodes, disruption_budgets=budgets)
    return Case(family, World(snapshot, market), kinds, asks, limit, budget, frozen)


def _kinds(random: Random, family: str) -> Mapping[str, Kind]:
    """Two or three types, the prices of which differ by much more than what a move must save."""
    found = {}
    for number in range(random.randint(2, 3)):
        count = 0 if family == "cpu" else 1 if family in ("hami", "mig", "hami-mig") or random.random() < 0.6 else 2
        cpu = random.choice((2_000, 4_000, 8_000, 16_000))
        price = (cpu // 1_000) * random.choice((40, 50, 64)) * 1_000 + count * random.choice((700, 900)) * 1_000
        found[f"type-{number}"] = Kind(f"type-{number}", cpu, count, price)
    return found


def _pod(random: Random, family: str, name: str, asks: dict[str, Ask]) -> Pod:
    cpu = random.choice((250, 500, 1_000, 1_500))
    asked: dict[str, Any] = {
        "cpu": f"{cpu}m",
        "owner": Owner("ReplicaSet", "web"),
        "uid": name,
        "created_s": NOON_S - _OLD_S,
    }
    key = f"default/{name}"
    asks[key] = Ask(cpu)
    if family == "cpu" or random.random() < 0.2:
        return a_pod(name, **asked)
    if family == "hami":
        mib = random.choice((1_900, 2_500, 3_300, 4_700, 6_000))
        asks[key] = Ask(cpu, mib=mib)
        return a_pod(name, gpu=1, gpumem=mib, scheduler_name="hami-scheduler", **asked)
    if family == "mig":
        units = random.choice((1, 1, 2, 3))
        asks[key] = Ask(cpu, units)
        amounts = Resources({"cpu": cpu, _MIG: units})
        return a_pod(
            name, spec=PodSpec((Container("main", amounts, amounts),)), **{k: asked[k] for k in asked if k != "cpu"}
        )
    if family == "hami-mig":
        is_whole = random.random() < 0.3
        asks[key] = Ask(cpu, 2 if is_whole else 1)
        mib = _WHOLE_MIG_MIB if is_whole else _HALF_MIG_MIB
        return a_pod(name, gpu=1, gpumem=mib, scheduler_name="hami-scheduler", **asked)
    units = 1 if family == "whole" else random.choice((1, 1, 2))
    asks[key] = Ask(cpu, units)
    return a_pod(name, gpu=units, **asked)


def _bought(world: World, pods: Sequence[Pod], number: int, random: Random) -> list[ClusterNode]:
    """Nodes that were bought for these pods, with some of them; the others have ended."""
    made = decide(world, _QUICK)
    stay = {pod.key for pod in pods if random.random() < 0.6}
    launches = [
        replace(each, name=f"n{number}-{at}", pods=tuple(placed for placed in each.pods if placed.pod in stay))
        for at, each in enumerate(made.launches)
    ]
    empty = replace(world.snapshot, pending=())
    nodes = with_places(world.of(empty), (), launches, {pod.key: pod for pod in pods}).nodes
    return [_aged(node) for node in nodes]


def _aged(node: ClusterNode) -> ClusterNode:
    """The same, bought a month ago."""
    assert node.claim is not None
    conditions = tuple(replace(each, since_s=NOON_S - _OLD_S) for each in node.claim.conditions)
    return replace(
        node, claim=replace(node.claim, created_s=NOON_S - _OLD_S, conditions=conditions, expire_after_s=None)
    )


def _protected(
    random: Random, nodes: Sequence[ClusterNode], *, may_be_new: bool
) -> tuple[list[ClusterNode], tuple[PodDisruptionBudget, ...], frozenset[str]]:
    """Some of the nodes may not go: not quiet yet, a pod that must not be disrupted, a budget that allows nothing, or
    part of a group whose other part is on another node that stays."""
    found, budgets, frozen = [], list[PodDisruptionBudget](), set[str]()
    for node in nodes:
        why = random.random()
        if why < 0.08 and node.pods and may_be_new:
            assert node.claim is not None
            node = replace(node, claim=node.claim.without_condition(CONSOLIDATABLE))
        elif why < 0.16 and node.pods:
            node = replace(node, pods=(replace(node.pods[0], annotations={DO_NOT_DISRUPT: "true"}), *node.pods[1:]))
        elif why < 0.24 and node.pods:
            label = {"app": node.name}
            node = replace(node, pods=(replace(node.pods[0], labels=label), *node.pods[1:]))
            budgets.append(PodDisruptionBudget("default", node.name, Requirements.of_labels(label), is_blocking=True))
        else:
            found.append(node)
            continue
        found.append(node)
        frozen.add(node.name)
    return found, tuple(budgets), frozenset(frozen)


# The rules.


def fits(family: str, kind: Kind, asks: Sequence[Ask]) -> bool:
    """Whether a node of the type holds these pods, however they come."""
    if sum(each.cpu for each in asks) > kind.cpu:
        return False
    if family == "hami":
        return _in_cards(tuple(sorted((each.mib for each in asks if each.mib), reverse=True)), (CARD_MIB,) * kind.cards)
    a_card = {"whole": 1, "time-slicing": REPLICAS, "mig": _PARTS, "hami-mig": 2}.get(family, 0)
    return sum(each.units for each in asks) <= kind.cards * a_card


@cache
def _in_cards(parts: tuple[int, ...], free: tuple[int, ...]) -> bool:
    if not parts:
        return True
    return any(
        _in_cards(parts[1:], tuple(sorted((*free[:at], left - parts[0], *free[at + 1 :]))))
        for at, left in enumerate(free)
        if left >= parts[0]
    )


def cheapest(held: Case, arrived: Mapping[str, str]) -> int | None:
    """What an hour costs at least once all pods have places and all nodes have gone that may: in millionths.

    None where some pod fits no type and no node. Nodes that may not go keep their pods and may get others; they keep
    those of the waiting pods, too, that have `arrived` there: schedulers bind a pod to a node where it fits, and it is
    moved only with its node.
    """
    kinds, asks = held.kinds, held.asks
    fixed = [node for node in held.snapshot.nodes if node.name in held.frozen]
    stay = {key: node for key, node in arrived.items() if node in held.frozen}
    free = [node for node in held.snapshot.nodes if node.name not in held.frozen]
    keys = sorted(pod.key for pod in held.snapshot.pending if pod.key not in stay)
    keys += sorted(pod.key for node in free for pod in node.pods)
    everyone = (1 << len(keys)) - 1
    rows = [asks[key] for key in keys]

    def of(mask: int) -> list[Ask]:
        return [row for at, row in enumerate(rows) if mask >> at & 1]

    alone = [
        min((kind.price for kind in kinds.values() if fits(held.family, kind, of(mask))), default=None)
        for mask in range(everyone + 1)
    ]

    @cache
    def bought(mask: int) -> int | None:
        if not mask:
            return 0
        first, best, part = mask & -mask, None, mask
        while part:
            price = alone[part] if part & first else None
            rest = bought(mask & ~part) if price is not None else None
            if price is not None and rest is not None:
                best = price + rest if best is None else min(best, price + rest)
            part = (part - 1) & mask
        return best

    @cache
    def best_from(at: int, mask: int) -> int | None:
        """From the fixed node of that number on, for these pods."""
        if at == len(fixed):
            return bought(mask)
        node, found, part = fixed[at], None, mask
        kind, here = kinds[node.labels[INSTANCE_TYPE]], [asks[pod.key] for pod in node.pods]
        here += [asks[key] for key, name in sorted(stay.items()) if name == node.name]
        while True:
            if fits(held.family, kind, [*here, *of(part)]):
                rest = best_from(at + 1, mask & ~part)
                if rest is not None:
                    found = kind.price + rest if found is None else min(found, kind.price + rest)
            if not part:
                return found
            part = (part - 1) & mask

    return best_from(0, everyone)


def problems(held: Case, made: Decision, command: Command | None) -> list[str]:
    """What of both together cannot be carried out, by the rules; empty for nothing."""
    snapshot, deletions = held.snapshot, () if command is None else command.deletions
    launches = [*made.launches, *(command.launches if command is not None else ())]
    gone, found = {each.node for each in deletions}, list[str]()
    places: list[tuple[str, PlacedPod]] = [(each.node, each.pod) for each in made.placements]
    places += [(each.node, each.pod) for deletion in deletions for each in deletion.moved]
    places += [(f"new/{at}", placed) for at, launch in enumerate(launches) for placed in launch.pods]
    seen = Counter(placed.pod for _, placed in places)
    moving = {pod.key for node in snapshot.nodes if node.name in gone for pod in node.pods}
    refused = {pod.key for refusal in made.refusals for pod in refusal.pods}
    found += [f"{key} has {count} places" for key, count in sorted(seen.items()) if count > 1]
    expected = moving | {pod.key for pod in snapshot.pending} - refused
    found += [f"{key} is lost" for key in sorted(expected - seen.keys())]
    found += [f"{key} runs and is moved" for key in sorted(seen.keys() - expected)]
    found += [f"{name} may not go" for name in sorted(gone & held.frozen)]
    found += [f"{node} goes and gets {placed.pod}" for node, placed in places if node in gone]
    if held.budget is not None and len(gone) > held.budget:
        found.append(f"{len(gone)} nodes go, the budget allows {held.budget}")
    if held.limit is not None and launches and len(snapshot.nodes) + len(launches) > held.limit:
        found.append(f"{len(snapshot.nodes)} nodes and {len(launches)} to be, the limit is {held.limit}")
    coming = defaultdict[str, list[PlacedPod]](list)
    for node, placed in places:
        coming[node].append(placed)
    types = {node.name: node.labels[INSTANCE_TYPE] for node in snapshot.nodes}
    types |= {f"new/{at}": launch.offering.instance_type for at, launch in enumerate(launches)}
    there = {node.name: [pod.key for pod in node.pods] for node in snapshot.nodes}
    for name, arrived in sorted(coming.items()):
        rows = [held.asks[key] for key in (*there.get(name, ()), *(placed.pod for placed in arrived))]
        if not fits(held.family, held.kinds[types[name]], rows):
            found.append(f"{name} of {types[name]} does not hold {rows}")
        found += _over_cards(held, name, snapshot.node(name), arrived)
    return found


def _over_cards(held: Case, name: str, node: ClusterNode | None, arrived: Iterable[PlacedPod]) -> list[str]:
    """Cards that the slices as they were planned overfill."""
    if held.family != "hami":
        return []
    used = Counter({device.index: device.used_memory_mib for device in node.devices} if node is not None else {})
    for placed in arrived:
        for part in placed.slices:
            used[part.device] += part.memory_mib
    return [f"card {card} of {name} has {mib} MiB" for card, mib in sorted(used.items()) if mib > CARD_MIB]


def settled_cost(held: Case, made: Decision) -> int:
    """What an hour costs once the decision is carried out and consolidation has come to its end."""
    world, pods = held.world, {pod.key: pod for pod in held.snapshot.pending}
    after = with_places(world, made.placements, made.launches, pods)
    world = world.of(replace(after, pending=()))
    price = sum(held.kinds[node.labels[INSTANCE_TYPE]].price for node in after.nodes)
    for step in steps(world):
        price = step.after_micro
    return price
