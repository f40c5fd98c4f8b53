"""What would help pods that other pods keep from their place: each hint is one change that was decided for again."""

from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.explain.counts import NodeReasons
from kerf.engine.explain.hints import again
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE, Requirement, Requirements, Taint
from kerf.model.nodepool import NodePool
from kerf.model.plan import Unplaced
from kerf.model.pods import Owner, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_container, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
MARKET = a_market(
    an_instance_type("m5.xlarge", price="0.192", zones=(A, B, C)),
    an_instance_type("m5.2xlarge", cpu=8, memory="32Gi", price="0.384", zones=(A, B, C)),
)
WEB = Requirements.of_labels({"app": "web"})


def a_pool_in(*zones: str, types: tuple[str, ...] = ("m5.xlarge",), **given: Any) -> NodePool:
    """A pool that allows these zones and types."""
    stated = [Requirement.of(ZONE, "In", zones), Requirement.of(INSTANCE_TYPE, "In", types)]
    stated.append(Requirement.of(CAPACITY_TYPE, "In", ("on-demand",)))
    return a_pool("common", requirements=Requirements(stated), **given)


def webs(count: int, **given: Any) -> list[Pod]:
    """Replicas of one StatefulSet that ask one core each; `given` are fields of their spec."""
    spec = PodSpec((a_container(cpu=1),), **given)
    owner = Owner("StatefulSet", "web")
    return [a_pod(f"web-{n}", spec=spec, owner=owner, labels={"app": "web"}) for n in range(count)]


def running(app: str, node: str, **given: Any) -> Pod:
    """A pod that runs on a node."""
    return a_pod(f"{app}-on-{node}", labels={"app": app}, node_name=node, phase="Running", **given)


def refused(*pods: Pod, pool: NodePool, nodes: tuple[Any, ...] = ()) -> Unplaced:
    """The first pod that has no place."""
    return plan(a_snapshot(pools=[pool], pods=pods, nodes=nodes), MARKET).unplaced[0]


def spread(**given: Any) -> tuple[TopologySpreadConstraint, ...]:
    """Over zones, of the pods of web."""
    return (TopologySpreadConstraint(ZONE, given.pop("max_skew", 1), WEB, **given),)


def near(key: str, app: str, **given: Any) -> PodAffinity:
    """One required term."""
    return PodAffinity((PodAffinityTerm(key, Requirements.of_labels({"app": app}), **given),))


FULL = a_node("full", labels={ZONE: C}, allocatable={"cpu": "100m", "memory": "1Gi", "pods": 10})


def test_a_zone_of_the_pool_comes_before_a_larger_skew() -> None:
    """A zone with a full node counts 0, and the pool may not buy there: the zone is allowed."""
    found = refused(*webs(4, spread=spread()), pool=a_pool_in(A, B), nodes=(FULL,))

    assert f"allow {ZONE} {C} in NodePool common" == found.hint
    assert found.patch is not None
    assert "NodePool" == found.patch.kind


def test_the_smallest_skew_that_places_all_is_named() -> None:
    """Where nothing can be bought in the third zone, five in two zones need maxSkew 3 and no more."""
    pool = a_pool_in(A, B, types=("m5.xlarge",))
    market = a_market(an_instance_type("m5.xlarge", price="0.192", zones=(A, B)))
    snapshot = a_snapshot(pools=[pool], pods=webs(5, spread=spread()), nodes=(FULL,))
    [found, *_] = plan(snapshot, market).unplaced

    assert f"maxSkew 3 of the topology spread over {ZONE}" == found.hint
    assert found.patch is not None
    change = {"topologySpreadConstraints": [{"topologyKey": ZONE, "maxSkew": 3}]}
    assert {"spec": {"template": {"spec": change}}} == found.patch.change


def test_fewer_domains_help_where_the_zones_are_too_few() -> None:
    """minDomains 3 in one zone lets one pod in; with 1 all come."""
    only_a = Requirements.of_labels({ZONE: A})
    found = refused(*webs(3, spread=spread(min_domains=3), node_selector=only_a), pool=a_pool_in(A, B, C))

    assert f"lower minDomains of the topology spread over {ZONE} to 1" == found.hint


def test_of_two_constraints_on_one_key_the_hint_says_which() -> None:
    """In words alone: kubectl merges them by their key, so a patch could not."""
    only_a, wish = Requirements.of_labels({ZONE: A}), spread(is_required=False)
    both = (*wish, *spread(min_domains=3))
    found = refused(*webs(3, spread=both, node_selector=only_a), pool=a_pool_in(A, B, C))

    assert f"lower minDomains of the DoNotSchedule topology spread over {ZONE} to 1" == found.hint
    assert found.patch is None


def test_nodes_whose_taints_keep_the_pods_off_need_not_count() -> None:
    """A control plane in a zone of its own is a domain, unless the constraint honors taints."""
    market = a_market(an_instance_type("m5.xlarge", price="0.192", zones=(A, B)))
    control = a_node("control", labels={ZONE: C}, taints=(Taint("control", "", "NoSchedule"),))
    snapshot = a_snapshot(pools=[a_pool_in(A, B)], pods=webs(5, spread=spread()), nodes=(control,))
    [found, *_] = plan(snapshot, market).unplaced

    assert found.hint.startswith(f"nodeTaintsPolicy Honor of the topology spread over {ZONE}")


def test_a_label_that_differs_by_typing_is_corrected() -> None:
    """Affinity to app=databse finds no pod; there is app=database."""
    seeker = webs(1, pod_affinity=near(ZONE, "databse"))
    node = a_node("node", labels={ZONE: A})
    found = refused(*seeker, running("database", "node"), pool=a_pool_in(A), nodes=(node,))

    assert 'write app: "database" instead of "databse" in the pod affinity of the pod' == found.hint
    assert found.patch is not None


def test_affinity_that_no_pod_meets_says_so() -> None:
    """Without any pod that is like it no change helps."""
    found = refused(*webs(1, pod_affinity=near(ZONE, "cache")), pool=a_pool_in(A), nodes=(a_node("node"),))

    assert "no pod matches, neither one that runs nor one that waits: it comes when there is one" == found.hint
    assert found.patch is None


def test_terms_that_no_pod_meets_together_are_said_together() -> None:
    """Beside each of two pods, one for each term: kube-scheduler asks for one that both terms mean."""
    both = PodAffinity(near(ZONE, "db").required + near(ZONE, "queue").required)
    node, there = a_node("n", labels={ZONE: A}), (running("db", "n"), running("queue", "n"))

    found = refused(*webs(1, pod_affinity=both), *there, pool=a_pool_in(A), nodes=(node,))

    assert "has no pod with app In [db] in namespace default that its other terms mean as well (app In [queue])" in (
        found.reason
    )
    assert "no pod is meant by all of its affinity terms" in found.hint


def test_a_pod_that_chose_the_zone_of_those_it_avoids_may_choose_another() -> None:
    """The pool allows the other zone, and the pod's own selector is in the way."""
    pods = [*webs(1, pod_anti_affinity=near(ZONE, "db"), node_selector=Requirements.of_labels({ZONE: A}))]
    there = a_node("node", labels={ZONE: A})
    found = refused(*pods, running("db", "node"), pool=a_pool_in(A, B), nodes=(there,))

    assert f'let the pod ask {ZONE} "{B}"' == found.hint
    assert found.patch is not None
    assert {"spec": {"template": {"spec": {"nodeSelector": {ZONE: B}}}}} == found.patch.change


def test_who_keeps_a_pod_off_is_named() -> None:
    """The only zone that is sold has a pod that it must be away from."""
    market = a_market(an_instance_type("m5.xlarge", price="0.192", zones=(A,)))
    pods = [*webs(1, pod_anti_affinity=near(ZONE, "db")), running("db", "node")]
    snapshot = a_snapshot(pools=[a_pool_in(A)], pods=pods, nodes=(a_node("node", labels={ZONE: A}),))
    [found] = plan(snapshot, market).unplaced

    missing = "a further zone is what is missing, and Kerf found no change that brings one"
    assert f"it must be away from default/db-on-node (node node): {missing}" == found.hint
    assert found.patch is None


def test_a_pod_that_has_no_place_either_keeps_no_other_off() -> None:
    """Of three that differ, and must be apart, the first has the only zone; the others are away from it alone."""
    market = a_market(an_instance_type("m5.xlarge", price="0.192", zones=(A,)))
    apart = near(ZONE, "web")
    pods = [a_pod(f"p{n}", cpu=n, labels={"app": "web"}, pod_anti_affinity=apart) for n in (1, 2, 3)]
    found = plan(a_snapshot(pools=[a_pool_in(A)], pods=pods), market)
    [placed] = [pod.pod for launch in found.launches for pod in launch.pods]

    assert 2 == len(found.unplaced)
    for each in found.unplaced:
        assert each.hint.startswith(f"it must be away from {placed} (placed in the same plan): a further zone")


def test_where_two_can_never_share_a_node_no_room_is_blamed() -> None:
    """The pod that it must be with is on another type of node."""
    types = ("m5.xlarge", "m5.2xlarge")
    away = a_pod("db", labels={"app": "db"}, selector={INSTANCE_TYPE: types[0]})
    seeker = a_pod("web", selector={INSTANCE_TYPE: types[1]}, pod_affinity=near(HOSTNAME, "db"))
    found = refused(away, seeker, pool=a_pool_in(A, types=types))

    assert "a pod with app In [db] in namespace default, and no node that can be bought can have both" in found.reason
    assert found.hint.startswith("both must agree on zone, labels, volumes and neighbours, and Kerf found no change")


def test_where_two_chose_different_zones_the_one_asks_for_that_of_the_other() -> None:
    """They must share a node."""
    away = a_pod("db", labels={"app": "db"}, selector={ZONE: A})
    seeker = a_pod("web", selector={ZONE: B}, pod_affinity=near(HOSTNAME, "db"))

    assert f'let the pod ask {ZONE} "{A}"' == refused(away, seeker, pool=a_pool_in(A, B)).hint


def test_a_further_node_is_a_higher_limit() -> None:
    """Replicas that are apart by node need as many nodes as the limit must allow."""
    pool = a_pool_in(A, limits=Resources.parse({"nodes": 1}))
    found = refused(*webs(3, pod_anti_affinity=near(HOSTNAME, "web")), pool=pool)

    assert found.patch is not None
    assert {"spec": {"limits": {"nodes": "3"}}} == found.patch.change


def test_two_changes_are_said_where_each_alone_does_not_help() -> None:
    """The pool has a taint, and the zone where the others are is not one of its own."""
    pool = a_pool_in(A, taints=(Taint("team", "a", "NoSchedule"),))
    found = refused(*webs(1, pod_affinity=near(ZONE, "db")), running("db", "full"), pool=pool, nodes=(FULL,))

    assert f"add a toleration for team=a:NoSchedule to the pod; and allow {ZONE} {C} in NodePool common" == found.hint
    assert 2 == len(found.patches)


def test_a_larger_machine_makes_room_beside_others() -> None:
    """Six that must share a node need one of eight cores."""
    found = refused(*webs(6, pod_affinity=near(HOSTNAME, "web")), pool=a_pool_in(A))

    assert f"allow {INSTANCE_TYPE} m5.2xlarge in NodePool common" == found.hint


def test_a_larger_size_that_the_pool_chooses_by_a_label_of_types_makes_room() -> None:
    """The pool names no types: it allows one size of them."""
    size = "karpenter.k8s.aws/instance-cpu"
    kinds = (an_instance_type(f"m.{n}", cpu=n, memory="64Gi", price=f"0.{n}", labels={size: str(n)}) for n in (4, 8))
    stated = Requirements([Requirement.of(size, "In", ["4"]), Requirement.of(CAPACITY_TYPE, "In", ["on-demand"])])
    pods, pool = webs(6, pod_affinity=near(HOSTNAME, "web")), a_pool("common", requirements=stated)

    found = plan(a_snapshot(pools=[pool], pods=pods), a_market(*kinds)).unplaced[0]

    assert f"allow {size} 8 in NodePool common" == found.hint
    assert found.patch is not None


def test_reasons_of_nodes_are_counted_in_the_words_of_kube_scheduler() -> None:
    """A full node, one in a zone that has too many, one with a taint, and a cordoned one."""
    nodes = (
        a_node("a", labels={ZONE: A}),
        a_node("b", labels={ZONE: B}, taints=(Taint("x", "", "NoSchedule"),)),
        a_node("cordoned", labels={ZONE: B}, is_unschedulable=True),
        FULL,
    )
    [pod] = webs(1, spread=spread())
    pods = (pod, running("web", "a"))
    snapshot = a_snapshot(pods=pods, nodes=nodes)
    counts = NodeReasons(decide(World(snapshot, MARKET))).of(pod)

    assert (
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    ) == str(counts)


@pytest.mark.parametrize(
    "limit, created_s, more",
    [
        ("2", 9.0, "; and 6 is the smallest cpu limit of NodePool pool that places all 3 pods"),
        ("2", -9.0, "; and 4 is the smallest cpu limit of NodePool pool that places all 3 pods"),
        ("4", 9.0, "; and 6 is the smallest cpu limit of NodePool pool that places all 3 pods"),
        ("4", -9.0, ""),
    ],
)
def test_a_pod_that_goes_by_none_is_tried_beside_those_that_spread_within_a_limit(
    limit: str, created_s: float, more: str
) -> None:
    """These are bought for in their turn, so a purchase alone does not show who gets what the limit allows."""
    small = an_instance_type("small", cpu=2, price="0.2", zones=(A, B))
    pods = [*webs(2, spread=spread()), a_pod("large", cpu=3, created_s=created_s)]
    found = plan(a_snapshot(pools=[a_pool(limits={"cpu": limit})], pods=pods), a_market(small)).unplaced

    (large,) = (each for each in found if each.pod == "default/large")
    assert f"2 cpu of container main is the most that fits in NodePool pool{more}" == large.hint


def test_of_many_constraints_a_few_are_loosened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change is a decision for all pods, and a tenant may state hundreds of constraints."""
    made: list[World] = []

    def counted(world: World, options: Options) -> Decision:
        made.append(world)
        return decide(world, options)

    monkeypatch.setattr(again, "decide", counted)
    many = tuple(TopologySpreadConstraint(f"example.com/{n}", 1, WEB) for n in range(60))

    found = refused(*webs(1, spread=many), pool=a_pool_in(A))

    assert found.patch is None
    assert len(made) < 60


def test_pods_that_come_too_late_name_the_constraint_with_its_figures() -> None:
    """Another pod opens a zone where they may not go and which counts: with none there, one is the most elsewhere."""
    two = (Requirements([Requirement.of(ZONE, "In", (A, B))]),)
    pods = webs(3, affinity=two, spread=spread(honors_affinity=False))
    other = a_pod("other", selector={ZONE: C})

    found = refused(*pods, other, pool=a_pool_in(A, B, C))

    assert "default/web-2" == found.pod
    assert "the fewest is 0, so the skew would be 2 (maxSkew 1; " in found.reason
