"""Which pods get the nodes that limits allow: as many as can, those of higher priority first."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

import pytest

from kerf.engine.buy import serving
from kerf.engine.decide import decide
from kerf.engine.explain.causes import cause_text
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.causes import Cause, SearchFailed, ServedMost
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import a_hami_pool, some

ONE_CARD = an_instance_type("one-card", cpu=8, memory="32Gi", pods=110, devices=cards(1, 16_000, "T4"))
PLAIN = an_instance_type("plain", cpu=8, memory="32Gi", pods=110, price="0.40")
SMALL = an_instance_type("small", cpu=4, memory="16Gi", pods=110, price="0.22")


def mixed(times: int = 1) -> list[Pod]:
    """Slices, whole cards, and pods without a card, of which two nodes of one card hold ten."""
    return [
        *some(10 * times, "slice", cpu=1, memory="1Gi", gpu=1, gpumem=4_000),
        *some(3 * times, "whole", cpu=2, memory="1Gi", gpu=1),
        *some(4 * times, "large", cpu=3, memory="9Gi"),
    ]


def served(pods: Sequence[Pod], *pools: NodePool) -> Counter[str]:
    """By the first word of their names how many pods get a node."""
    made = decide(World(a_snapshot(pools=pools, pods=pods), a_market(ONE_CARD, PLAIN, SMALL)), Options())
    return Counter(pod.name.split("-")[0] for node in made.bought for pod in node.pods)


@pytest.mark.parametrize(
    ("limits", "times", "most"),
    [
        ({"nodes": 1}, 1, 5),
        ({"nodes": 2}, 1, 10),
        ({"nodes": 3}, 1, 14),
        ({"nodes": 7}, 1, 17),
        ({"cpu": 16}, 1, 10),
        ({"memory": "64Gi"}, 1, 10),
        ({"nvidia.com/gpu": 20, "nodes": 2}, 1, 10),
        ({"nodes": 2}, 3, 10),
        ({"nodes": 2}, 60, 10),
        ({"nodes": 100}, 60, 500),
    ],
)
def test_a_limit_is_spent_on_what_serves_most_pods(limits: Mapping[str, int | str], times: int, most: int) -> None:
    """Not on the pods that are most expensive alone: nodes full of slices serve more than nodes for whole cards."""
    pool = a_hami_pool(types=["one-card"], limits=limits)

    assert most == served(mixed(times), pool).total()


def test_a_note_says_how_many_more_pods_are_served_than_by_what_costs_least() -> None:
    """None where no limit binds, and none where the cheapest nodes serve as many."""

    def notes(pods: Sequence[Pod], **limits: int) -> tuple[Cause, ...]:
        pools = [a_hami_pool(types=["one-card"], limits=limits)]
        return decide(World(a_snapshot(pools=pools, pods=pods), a_market(ONE_CARD)), Options()).notes

    (note,) = notes(mixed(), nodes=2)
    assert ServedMost(7, 4) == note
    assert "limits leave 7 pods without a node: these nodes serve 4 pods more than" in cause_text(note)
    assert () == notes(mixed(), nodes=20)
    assert () == notes(some(3, "whole", cpu=2, memory="1Gi", gpu=1), nodes=2)


def test_with_no_work_left_two_ways_to_fill_nodes_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod that has a place has it still, and no limit is broken."""
    monkeypatch.setattr(serving, "_MOST_WORK", 0)
    found = served(mixed(), a_hami_pool(types=["one-card"], limits={"nodes": 2}))

    assert 6 <= found.total() <= 10


def test_pods_of_higher_priority_come_first_however_many_others_could_be_served() -> None:
    """Whole cards of a higher priority take the two nodes; what is beside them goes to as many others as fit."""
    pods = [
        *some(10, "slice", cpu=1, memory="1Gi", gpu=1, gpumem=4_000),
        *some(3, "whole", cpu=2, memory="1Gi", gpu=1, priority=10),
        *some(8, "light", cpu=2, memory="1Gi", priority=-5),
    ]

    assert {"whole": 2, "light": 6} == served(pods, a_hami_pool(types=["one-card"], limits={"nodes": 2}))


def test_each_level_of_priority_is_served_as_far_as_those_above_it_allow() -> None:
    """One pod of the first level leaves six cores: two of the second, none of the many small ones of the third."""
    pods = [
        *some(1, "first", cpu=2, priority=100),
        *some(3, "second", cpu=3, priority=50),
        *some(20, "third", cpu="500m"),
    ]

    assert {"first": 1, "second": 2} == served(pods, a_pool(types=["plain"], limits={"nodes": 1}))


def test_pods_that_a_pool_without_a_limit_takes_leave_the_limited_one_to_others() -> None:
    """The pool with cards comes first and has one node: slices, which only it can serve, get that."""
    pods = [*some(8, "web", cpu=1, memory="1Gi"), *some(4, "slice", cpu=2, memory="1Gi", gpu=1, gpumem=4_000)]
    pools = a_hami_pool("cards", types=["one-card"], limits={"nodes": 1}, weight=10), a_pool("plain", types=["plain"])

    assert {"web": 8, "slice": 4} == served(pods, *pools)


def test_two_pools_with_limits_serve_together() -> None:
    """A node of each: one with slices, one with whatever needs no card."""
    pools = (
        a_hami_pool("cards", types=["one-card"], limits={"nodes": 1}),
        a_pool("plain", types=["plain"], limits={"cpu": 8}),
    )

    assert {"slice": 4, "large": 3} == served(mixed(), *pools)


def test_of_purchases_that_serve_as_many_the_cheapest_is_made() -> None:
    """Two pods, of which one node is allowed: on the smaller machine, which holds one as well."""
    pool = a_pool(types=["plain", "small"], limits={"nodes": 1})
    made = decide(World(a_snapshot(pools=[pool], pods=some(2, cpu=1, memory="14Gi")), a_market(PLAIN, SMALL)))
    alone = decide(World(a_snapshot(pools=[pool], pods=some(3, cpu=4, memory="15Gi")), a_market(SMALL)))

    assert [("plain", 2)] == [(node.load.offered.kind.name, len(node.pods)) for node in made.bought]
    assert [("small", 1)] == [(node.load.offered.kind.name, len(node.pods)) for node in alone.bought]


Order = Callable[[Pod], tuple[int, ...]]


def _cpu(pod: Pod) -> int:
    return int(pod.spec.containers[0].requests[CPU])


def _memory(pod: Pod) -> int:
    return int(pod.spec.containers[0].requests[MEMORY])


ORDERS: dict[str, Order] = {
    "queue": lambda pod: (),
    "cpu, largest first": lambda pod: (-_cpu(pod), -_memory(pod)),
    "cpu, smallest first": lambda pod: (_cpu(pod), _memory(pod)),
    "memory, smallest first": lambda pod: (_memory(pod), _cpu(pod)),
}


def _first_fit(pods: Sequence[Pod], nodes: int) -> int:
    """How many pods so many nodes of the plain type hold, each pod on the first with room."""
    free, placed = [[8_000, 32 << 30] for _ in range(nodes)], 0
    for pod in pods:
        for room in free:
            if _cpu(pod) <= room[0] and _memory(pod) <= room[1]:
                room[0], room[1], placed = room[0] - _cpu(pod), room[1] - _memory(pod), placed + 1
                break
    return placed


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("count", [7, 20, 21, 50, 300])
def test_no_fewer_pods_are_served_than_first_fit_serves_in_any_order(seed: int, count: int) -> None:
    """Random pods by cpu and memory, on one, three or seven nodes."""
    random = Random(seed * 1_000 + count)
    pods: list[Pod] = []
    while len(pods) < count:
        cpu, memory = random.choice(("500m", "1", "2", "3", "4")), random.choice(("1Gi", "4Gi", "9Gi", "14Gi"))
        pods += some(random.randint(1, 5), f"g{len(pods)}", cpu=cpu, memory=memory)
    random.shuffle(pods)
    nodes = random.choice((1, 3, 7))

    found = served(pods, a_pool(types=["plain"], limits={"nodes": nodes})).total()

    for name, order in ORDERS.items():
        assert found >= _first_fit(sorted(pods, key=order), nodes), name


def test_pods_left_for_another_reason_than_limits_change_nothing() -> None:
    """A pod that no type holds is left; a limit that has room for the others is no reason to buy other nodes."""
    pods = [*mixed(), a_pod("never", cpu=100)]

    assert {"slice": 10, "whole": 3, "large": 4} == served(pods, a_hami_pool(limits={"nodes": 50}))


def test_types_that_cost_nothing_are_no_fault_of_the_search() -> None:
    """Prices say nothing of them; full nodes serve as many as they can."""
    free = an_instance_type("free", cpu=8, memory="32Gi", pods=110, devices=cards(1, 16_000, "T4"), price="0")
    pool = a_hami_pool(types=["free", "plain"], limits={"nodes": 2})
    made = decide(World(a_snapshot(pools=[pool], pods=mixed(3)), a_market(free, PLAIN)))

    assert not [note for note in made.notes if isinstance(note, SearchFailed)]
    assert 10 == sum(len(node.pods) for node in made.bought)
