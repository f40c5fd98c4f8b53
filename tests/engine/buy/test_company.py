"""Who begins a node that pods must share, and who follows: no pod is left that had a place in another order."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from random import Random

import pytest

from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, NODE_POOL, ZONE, Requirements
from kerf.model.instancetypes import ON_DEMAND
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.quantities import CPU
from kerf.model.topology import NotNear, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.buy.test_bought_in_order import Spot, checked, unbound
from tests.engine.worlds import only_unplaced, per_hour, planned, refused

ZONES = ("za", "zb")
PRICES = {2: 96, 4: 192, 8: 384}
"""Of nodes by their cores, in thousandths."""
TYPES = [an_instance_type(f"cpu-{cpu}", cpu=cpu, price=f"0.{price:03}", zones=ZONES) for cpu, price in PRICES.items()]
POOLS = [a_pool("a"), a_pool("b")]
Terms = Sequence[tuple[str, str]]


def seeking(name: str, labels: str = "", near: Terms = (), away: Terms = (), at: float = 0, **given: object) -> Pod:
    """A pod with one-letter labels that came at a time; its terms are pairs of a key and the label they mean."""

    def asked(terms: Terms) -> PodAffinity:
        return PodAffinity(tuple(PodAffinityTerm(key, Requirements.of_labels({label: "1"})) for key, label in terms))

    held, kept_off = dict.fromkeys(labels, "1"), asked(away)
    fields = {"cpu": 1, **given}
    return a_pod(name, labels=held, created_s=at, pod_affinity=asked(near), pod_anti_affinity=kept_off, **fields)  # type: ignore[arg-type]


def made(*pods: Pod) -> Plan:
    """The plan with three types, in two zones and two pools."""
    return planned(pods, POOLS, TYPES)


def together(plan: Plan) -> list[list[str]]:
    """The names of the pods on each new node."""
    return sorted(sorted(placed.pod.removeprefix("default/") for placed in each.pods) for each in plan.launches)


IN_A, IN_B = {NODE_POOL: "a"}, {NODE_POOL: "b"}


@pytest.mark.parametrize("ages", list(permutations((0.0, 1.0, 2.0))))
def test_a_pod_follows_one_that_waits_for_a_third(ages: Sequence[float]) -> None:
    """`front` must be with `mid`, which must share a zone with `back`; `front` and `back` may not share a node."""
    plan = made(
        seeking("mid", "y", near=[(ZONE, "o")], at=ages[0]),
        seeking("back", "o", at=ages[1], selector=IN_B),
        seeking("front", near=[(HOSTNAME, "y")], away=[(HOSTNAME, "o")], at=ages[2]),
    )

    assert [["back"], ["front", "mid"]] == together(plan)
    assert 1 == len({launch.offering.zone for launch in plan.launches})


def test_older_pods_follow_the_youngest_to_its_new_node() -> None:
    """Each must be with the next one, which came after it; the node is of the pool that the last of them asks for."""
    names = "dcba"
    pods = [
        seeking(name, name, near=[(HOSTNAME, after)] if after else [], at=at, selector={} if after else IN_B)
        for at, (name, after) in enumerate(zip(names, [*names[1:], ""], strict=True))
    ]

    plan = made(*pods, seeking("other"))

    assert [["a", "b", "c", "d"], ["other"]] == together(plan)
    assert {"a": 0, "b": 1, "c": 2, "d": 3} == {
        placed.pod.removeprefix("default/"): placed.round
        for launch in plan.launches
        for placed in launch.pods
        if placed.pod != "default/other"
    }


def test_two_terms_that_two_pods_meet_let_no_pod_in() -> None:
    """With one pod for each term kube-scheduler refuses it on every node, so no node is bought for it."""
    plan = made(
        seeking("mid", "y", near=[(ZONE, "o")]),
        seeking("back", "o", at=1, selector=IN_B),
        seeking("front", near=[(HOSTNAME, "y"), (ZONE, "o")], away=[(HOSTNAME, "o")], at=2),
    )

    assert ["default/front"] == refused(plan)
    assert isinstance(only_unplaced(plan).cause, NotNear)


def test_the_first_of_its_kind_has_a_node_of_its_own_where_the_others_have_no_room_for_it() -> None:
    """`first` came before `second`, so it may be alone: it does not have to be where `second` is."""
    plan = made(
        seeking("other", "o", near=[(HOSTNAME, "o")], cpu=3),
        seeking("first", "x", near=[(HOSTNAME, "x")], cpu=5, at=1),
        seeking("second", "x", near=[(HOSTNAME, "o")], at=2),
    )

    assert [["first"], ["other", "second"]] == together(plan)


def test_the_first_of_its_kind_begins_a_node_for_those_that_no_other_of_the_kind_may_have() -> None:
    """`alone` keeps off both that must be with an `o`; so these follow the first `o`, and not `alone`."""
    plan = made(
        seeking("large", "ox", near=[(HOSTNAME, "y")], cpu=5),
        seeking("small", "x", near=[(HOSTNAME, "o")], at=1),
        seeking("first", "oy", near=[(HOSTNAME, "o")], at=1),
        seeking("alone", "o", away=[(HOSTNAME, "x")], at=2),
    )

    assert [["alone"], ["first", "large", "small"]] == together(plan)


def test_a_node_begins_with_a_pod_that_does_not_wait_for_those_that_follow_it() -> None:
    """`late` waits for an `x` in its zone, which `large` is, which waits for a `y`: `early` and not `late`."""
    plan = made(
        seeking("late", "y", near=[(ZONE, "x")]),
        seeking("early", "y", at=1, selector=IN_A),
        seeking("large", "x", near=[(HOSTNAME, "y")], cpu=5, at=2),
    )

    assert [] == refused(plan)
    assert ["early", "large"] == together(plan)[0][:2]


def test_one_that_alone_may_follow_a_pod_goes_before_others_that_have_a_choice() -> None:
    """`either` may be beside both; where it takes the room beside `only`, `picky` has none."""
    plan = made(
        seeking("only", "ox"),
        seeking("either", near=[(HOSTNAME, "o")], cpu=3, at=1),
        seeking("picky", near=[(HOSTNAME, "x")], cpu=5, at=1),
        seeking("more", "o", cpu=5, at=2),
    )

    assert [["either", "more"], ["only", "picky"]] == together(plan)


def test_one_that_has_no_room_in_its_zone_is_sought_another() -> None:
    """Both pods with a `y` are of one zone each; that of the first is full of what only may be in pool b."""
    plan = made(
        seeking("a", "x", near=[(HOSTNAME, "y")], cpu=3, at=1, selector=IN_A),
        seeking("first", "oxy", near=[(HOSTNAME, "y")], away=[(ZONE, "o")], at=1),
        seeking("second", "oy", cpu=3, at=2),
        seeking("b", near=[(ZONE, "x"), (HOSTNAME, "x")], at=2, selector=IN_B),
    )

    assert [["a", "second"], ["b", "first"]] == together(plan)


def two_groups(**given: object) -> list[Pod]:
    """Two pairs of pods that must share a node each, of three and of five cores; `given` is for one of the second."""
    return [
        seeking("a", "x", cpu=1),
        seeking("b", near=[(HOSTNAME, "x")], cpu=2),
        seeking("c", "y", cpu=1),
        seeking("d", near=[(HOSTNAME, "y")], cpu=4, **given),  # type: ignore[arg-type]
    ]


def test_two_groups_share_a_node_where_that_costs_less() -> None:
    """Three cores and five are one node of eight: as much as the second group pays alone."""
    plan = made(*two_groups())

    assert ([["a", "b", "c", "d"]], 384_000) == (together(plan), per_hour(plan))


def test_two_groups_that_keep_off_each_other_share_none() -> None:
    """One of the second may not be where the first is."""
    plan = made(*two_groups(away=[(HOSTNAME, "x")]))

    assert [["a", "b"], ["c", "d"]] == together(plan)


def test_two_groups_share_none_where_that_costs_as_much() -> None:
    """Two nodes of four cores cost what one of eight does."""
    plan = made(*two_groups()[:2], seeking("c", "y"), seeking("d", near=[(HOSTNAME, "y")], cpu=2))

    assert [["a", "b"], ["c", "d"]] == together(plan)


def test_a_group_shares_a_node_with_other_pods_where_that_costs_less() -> None:
    """A pod of five cores has no room beside the group on the node that is cheapest for the group."""
    plan = made(*two_groups()[:2], seeking("other", cpu=5))

    assert [["a", "b", "other"]] == together(plan)


def test_groups_share_nodes_of_pools_that_take_them_within_the_limits() -> None:
    """Of three groups two are of pool b: these share one, and the third has its own."""
    groups = [
        (
            seeking(f"{name}1", label, selector=pool),
            seeking(f"{name}2", near=[(HOSTNAME, label)], cpu=cpu, selector=pool),
        )
        for name, label, cpu, pool in (("a", "x", 2, IN_A), ("b", "y", 2, IN_B), ("c", "o", 4, IN_B))
    ]

    plan = planned([pod for group in groups for pod in group], [a_pool("a"), a_pool("b", limits={"cpu": 12})], TYPES)

    assert [["a1", "a2"], ["b1", "b2", "c1", "c2"]] == together(plan)


# Against a search of every plan.


def random_pods(seed: int) -> list[Pod]:
    """Four pods, most of which must be with others; what is random is drawn from the seed alone."""
    draw = Random(seed)
    pods = []
    for number in range(4):
        labels = "".join(label for label in "oxy" if draw.random() < 0.4)
        near = [(draw.choice((ZONE, HOSTNAME, HOSTNAME)), draw.choice("oxy"))] if draw.random() < 0.65 else []
        away = [(HOSTNAME, draw.choice("oxy"))] if draw.random() < 0.3 else []
        selector = {NODE_POOL: draw.choice("ab")} if draw.random() < 0.3 else {}
        cpu, at = draw.choice((1, 1, 1, 3, 5)), float(draw.randrange(3))
        pods.append(seeking(f"p{number}", labels, near, away, at, cpu=cpu, selector=selector))
    return pods


def shared_out(count: int) -> Iterator[tuple[int, ...]]:
    """Every way to share so many pods out among nodes: by pod the number of its node."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(count):
        found = [(*before, node) for before in found for node in range(max(before, default=-1) + 2)]
    yield from found


def least_price(pods: Sequence[Pod]) -> int | None:
    """The price of the cheapest nodes to which the scheduler can bind all of them; None where there are none."""
    best: int | None = None
    for nodes in shared_out(len(pods)):
        sizes = [sum(pod.spec.requests[CPU] for pod in on) for on in by_node(pods, nodes)]
        if max(sizes) > 1000 * max(PRICES):
            continue
        price = sum(next(price for cpu, price in PRICES.items() if size <= 1000 * cpu) for size in sizes)
        if (best is None or price < best) and any(not unbound(pods, *placed) for placed in spots(pods, nodes)):
            best = price
    return best


def by_node(pods: Sequence[Pod], nodes: Sequence[int]) -> list[list[Pod]]:
    """The pods of each node."""
    places = list(zip(pods, nodes, strict=True))
    return [[pod for pod, at in places if at == node] for node in sorted(set(nodes))]


def spots(pods: Sequence[Pod], nodes: Sequence[int]) -> Iterator[tuple[Mapping[str, Spot], Sequence[Spot]]]:
    """The pods on their nodes, for each choice of zones and pools."""
    offered = [{ZONE: zone, NODE_POOL: pool, CAPACITY_TYPE: ON_DEMAND} for zone, pool in product(ZONES, "ab")]
    may = [
        [labels for labels in offered if all(pod.spec.node_selector.unsatisfied_by(labels) is None for pod in on)]
        for on in by_node(pods, nodes)
    ]
    for chosen in product(*may):
        found = [Spot({**labels, HOSTNAME: f"n{number}"}) for number, labels in enumerate(chosen)]
        yield {pod.key: found[at] for pod, at in zip(pods, nodes, strict=True)}, found


def test_no_pod_is_left_where_some_plan_has_a_place_for_all() -> None:
    """Of 100 clusters those where all pods can be bound: each pod of these has a place, for no less than the least."""
    clusters = [random_pods(seed) for seed in range(100)]
    solvable = [(made(*pods), least) for pods in clusters if (least := least_price(pods)) is not None]

    assert len(solvable) > 40
    assert [] == [key for plan, _ in solvable for key in refused(plan)]
    assert all(least * 1000 <= per_hour(plan) for plan, least in solvable)


def test_what_is_bought_can_be_bound_in_queue_order() -> None:
    """Of 100 clusters, also where pods are left, and where nodes were put together."""
    clusters = [random_pods(seed) for seed in range(100)]

    assert [] == [key for pods in clusters for key in checked(made(*pods), pods, (), ())]


CHEAP_IN_A = an_instance_type("cpu-2", cpu=2, price="0.1", zones=("za",))
BIG_IN_B = an_instance_type("cpu-8", cpu=8, price="0.9", zones=("zb",))


def test_all_of_a_company_go_to_another_zone_where_one_node_holds_them() -> None:
    """The cheap zone has no type for three; by its spread each must be in a zone that is known."""
    even = (TopologySpreadConstraint(ZONE, 3, Requirements.of_labels({"d": "1"})),)
    plan = planned(
        [
            *(seeking(f"web-{number}", near=[(HOSTNAME, "d")], at=number) for number in range(2)),
            seeking("db", "d", at=2, cpu="500m", spread=even),
        ],
        POOLS,
        [CHEAP_IN_A, BIG_IN_B],
    )

    assert [["db", "web-0", "web-1"]] == together(plan)
    assert ["zb"] == [launch.offering.zone for launch in plan.launches]


def test_a_pod_of_its_own_company_does_not_begin_apart_from_one_that_comes_before() -> None:
    """The older one seeks nobody; bought for alone, it would keep the other off its own node."""
    even = (TopologySpreadConstraint(ZONE, 3, Requirements.of_labels({"a": "1"})),)
    plan = planned(
        [
            seeking("first", "a", at=0, cpu="1500m", spread=even),
            seeking("second", "a", near=[(HOSTNAME, "a")], at=1, cpu="1500m"),
        ],
        POOLS,
        [CHEAP_IN_A, BIG_IN_B],
    )

    assert [["first", "second"]] == together(plan)


def test_a_company_that_no_zone_holds_stays_where_most_of_it_is() -> None:
    """To move all of it is one more try: what it leaves without a place is not taken."""
    plan = planned(
        [
            *(seeking(f"web-{number}", near=[(HOSTNAME, "d")], at=number) for number in range(2)),
            seeking("db", "d", at=2, cpu="500m"),
        ],
        POOLS,
        [CHEAP_IN_A],
    )

    assert ["default/web-1"] == refused(plan)
