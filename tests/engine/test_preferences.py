"""What pods prefer, where nodes are chosen and bought: one rule a test."""

from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, PREFER_NO_SCHEDULE, ZONE, Requirements, Taint
from kerf.model.plan import REPLAY, RESERVE, Plan
from kerf.model.pods import RUNNING, Owner, Pod
from kerf.model.policies import COST, FIRST_FIT, IGNORE
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type
from tests.engine.worlds import bought, refused, some

WEB = Requirements.of_labels({"app": "web"})
ZONES = ("za", "zb", "zc")
TYPES = (an_instance_type("m", cpu=8, price="0.4", zones=ZONES),)
SLOW = Taint("slow", effect=PREFER_NO_SCHEDULE)
both_strategies = pytest.mark.parametrize("strategy", [COST, FIRST_FIT])


def made(pods: list[Pod], **given: Any) -> Plan:
    """The plan with one type in three zones; `given` are options and fields of the snapshot."""
    options = Options(given.pop("strategy", COST), preferences=given.pop("preferences", "Respect"))
    snapshot = a_snapshot(pools=given.pop("pools", [a_pool()]), pods=pods, **given)
    return plan(snapshot, a_market(*TYPES), options)


def webs(count: int, **given: Any) -> list[Pod]:
    """So many pods of one Deployment."""
    return some(count, **{"labels": {"app": "web"}, "cpu": 1, "owner": Owner("StatefulSet", "web"), **given})


def apart(key: str = HOSTNAME, weight: int = 1) -> dict[str, Any]:
    """A preference for no other web pod in the domain."""
    return {"pod_anti_affinity": PodAffinity(preferred=((weight, PodAffinityTerm(key, WEB)),))}


def even(key: str = ZONE, **given: Any) -> dict[str, Any]:
    """A spread that is only preferred."""
    return {"spread": (TopologySpreadConstraint(key, 1, WEB, is_required=False, **given),)}


def rather(*zones: str) -> dict[str, Any]:
    """A preference for each zone, the first the heaviest."""
    terms = enumerate(reversed(zones), 1)
    return {"preferred": tuple((weight, Requirements.of_labels({ZONE: zone})) for weight, zone in terms)[::-1]}


def zones(decided: Plan) -> list[str]:
    """Of each pod that is bought for its zone, sorted."""
    return sorted(launch.offering.zone for launch in decided.launches for _ in launch.pods)


@both_strategies
def test_the_heaviest_term_that_can_be_had_decides(strategy: str) -> None:
    """The first zone is not for sale, so the second counts, and the cheapest or first does not."""
    decided = made(webs(2, **rather("nowhere", "zc", "za")), strategy=strategy)

    assert ["zc", "zc"] == zones(decided)
    assert [
        "2 pods (StatefulSet default/web): planned without a preference that could not be had with a place: "
        "node affinity, weight 3: topology.kubernetes.io/zone In [nowhere]"
    ] == [note for note in decided.notes if "preference" in note]


def test_a_preference_that_holds_is_not_mentioned() -> None:
    """Nothing was dropped."""
    assert not any("preference" in note for note in made(webs(1, **rather("zb"))).notes)


@both_strategies
def test_pods_that_would_rather_be_apart_get_nodes_of_their_own(strategy: str) -> None:
    """Karpenter's rule; ignored they share one."""
    pods = webs(3, **apart())

    assert [("m", 1)] * 3 == bought(made(pods, strategy=strategy))
    assert [("m", 3)] == bought(made(pods, strategy=strategy, preferences=IGNORE))


def test_nodes_bought_for_a_preference_are_kept_for_their_pods() -> None:
    """A scheduler keeps no preference: the node that comes first would take all of them."""
    assert {RESERVE} == {launch.follow for launch in made(webs(2, **apart())).launches}
    assert [REPLAY] == [launch.follow for launch in made(webs(2, **rather("zb"))).launches]


def test_only_pods_that_cannot_have_it_lose_a_preference() -> None:
    """Four pods that would rather be in zones of their own: three are, and the plan says it of one."""
    decided = made(webs(4, **apart(ZONE)))

    assert {"za", "zb", "zc"} == {*zones(decided)}
    assert [True] == [note.startswith("1 pod (") for note in decided.notes if "podAntiAffinity" in note]


def test_a_preferred_spread_is_kept_while_it_can_be() -> None:
    """Over zones; where only one zone is for sale the pods run there all the same."""
    in_one_zone = [a_pool(requirements=Requirements.of_labels({ZONE: "za"}))]

    assert ["za", "za", "zb", "zb", "zc", "zc"] == zones(made(webs(6, **even())))
    assert ["za"] * 6 == zones(made(webs(6, **even()), pools=in_one_zone))
    assert 1 == len(made(webs(6, **even()), preferences=IGNORE).launches)


def test_a_node_preference_does_not_narrow_a_spread() -> None:
    """Required node affinity says which zones count, preferred does not: two of three pods leave their zone."""
    required = TopologySpreadConstraint(ZONE, 1, WEB)
    only = Requirements.of_labels({ZONE: "zb"})

    assert ["za", "zb", "zc"] == zones(made(webs(3, **rather("zb"), spread=(required,))))
    assert ["zb"] * 3 == zones(made(webs(3, affinity=(only,), spread=(required,))))


def test_two_terms_of_affinity_may_mean_different_pods() -> None:
    """A pod beside a cache and a store: no one pod is both."""
    terms = tuple((1, PodAffinityTerm(ZONE, Requirements.of_labels({"app": app}))) for app in ("cache", "store"))
    there = [a_node("full", labels={ZONE: "zb"}, allocatable={"cpu": "1m"})]
    running = [a_pod(app, labels={"app": app}, node_name="full", phase=RUNNING) for app in ("cache", "store")]

    decided = made([a_pod("new", cpu=1, pod_affinity=PodAffinity(preferred=terms)), *running], nodes=there)

    assert ["zb"] == zones(decided)
    assert not any("preference" in note for note in decided.notes)


def test_a_pool_with_a_preferred_taint_comes_last() -> None:
    """Where another pool can have the pod that one does, though it weighs less; alone the tainted one does."""
    tainted = a_pool("tainted", taints=(SLOW,), weight=50)

    both, alone = made(webs(1), pools=[tainted, a_pool("plain")]), made(webs(1), pools=[tainted])

    assert ["plain"] == [launch.node_pool for launch in both.launches]
    assert ["tainted"] == [launch.node_pool for launch in alone.launches]
    assert any("no node with a PreferNoSchedule taint" in note for note in alone.notes)


def test_other_preferences_are_dropped_before_a_preferred_taint_is_tolerated() -> None:
    """Karpenter's order, where the only pool has the taint."""
    decided = made(webs(2, **apart()), pools=[a_pool(taints=(SLOW,))])

    assert [("m", 2)] == bought(decided)


def test_no_node_is_bought_for_a_preference_beside_one_that_is_there() -> None:
    """The scheduler binds the pod to the node that is there, whatever it prefers; the plan says what does not hold."""
    nodes = [a_node("n", labels={ZONE: "za"})]

    decided = made(webs(1, **rather("zb")), nodes=nodes)

    assert ["n"] == [placement.node for placement in decided.placements]
    assert () == decided.launches
    assert any("node affinity, weight 1" in note for note in decided.notes)


def test_of_nodes_that_are_there_the_preferred_comes_first() -> None:
    """In the zone it prefers, and without a taint that it would rather not meet."""
    nodes = [
        a_node("a", labels={ZONE: "za"}),
        a_node("b", labels={ZONE: "zb"}, taints=(SLOW,)),
        a_node("c", labels={ZONE: "zb"}),
    ]

    assert ["c"] == [placement.node for placement in made(webs(1, **rather("zb")), nodes=nodes).placements]


def test_a_relaxed_pod_fills_up_what_is_bought_anyway() -> None:
    """A pod whose preference cannot be had costs no node of its own."""
    decided = made([*webs(1), *webs(1, name="other", **rather("nowhere"))])

    assert [("m", 2)] == bought(decided)


def test_a_limit_serves_pods_before_preferences() -> None:
    """Nodes for preferences would use it up: then all preferences are given up, and each pod has a place."""
    decided = made(webs(3, **apart()), pools=[a_pool(limits={"cpu": 16})])

    assert [] == refused(decided)
    assert any("podAntiAffinity, weight 1" in note for note in decided.notes)


def nowhere(number: int) -> dict[str, Any]:
    """Twelve preferences of a pod's own: six of spread over labels that no node has, six for absent pods."""
    own = [Requirements.of_labels({"app": f"none-{number}-{each}"}) for each in range(6)]
    return {
        "labels": {"app": f"own-{number}"},
        "pod_affinity": PodAffinity(preferred=tuple((1, PodAffinityTerm(ZONE, each)) for each in own)),
        "spread": tuple(
            TopologySpreadConstraint(f"example.com/{number}-{each}", 1, WEB, is_required=False) for each in range(6)
        ),
    }


def test_preferences_that_no_place_can_meet_are_dropped_before_anything_is_tried() -> None:
    """Named as all that are dropped; the looks at pods are those of a plan that ignores preferences."""
    pods = [a_pod(f"p-{number}", cpu=1, **nowhere(number)) for number in range(8)]
    snapshot = a_snapshot(pools=[a_pool()], pods=pods)
    world = World(snapshot, a_market(*TYPES))

    heeded, ignored = (decide(world, Options(COST, preferences=each)) for each in ("Respect", IGNORE))

    assert ignored.work == heeded.work
    assert {pod.key: 12 for pod in pods} == {key: len(dropped) for key, dropped in heeded.dropped.items()}
    assert len(ignored.launches) == len(heeded.launches)


def test_a_preference_of_spread_over_a_label_of_a_pool_is_heeded() -> None:
    """Two pools with a label of their own are two domains; an affinity term to its own kind holds for a pod alone."""
    pools = [a_pool(name, labels={"example.com/row": name}) for name in ("a", "b")]
    mine = {"pod_affinity": PodAffinity(preferred=((1, PodAffinityTerm("example.com/row", WEB)),))}

    decided = made(webs(2, **even("example.com/row")), pools=pools)
    beside = made(webs(2, **mine), pools=pools)

    assert {"a", "b"} == {launch.node_pool for launch in decided.launches}
    assert not any("preference" in note for each in (decided, beside) for note in each.notes)
