"""002-1, 002-4, 002-8, 002-9: where pods stand, which requests would fit them, and which pools would take them."""

from dataclasses import replace
from typing import Any

from kerf.engine.explain.causes import misfit_reason, missing_text
from kerf.engine.study.sizing.compare import FIRST
from kerf.engine.study.sizing.fitting import Fitting, fitting
from kerf.engine.study.sizing.orchestrators import batches
from kerf.engine.study.sizing.workloads import openings, standing
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.pods import Owner, Pod
from kerf.model.snapshot import ClusterSnapshot, DaemonSet
from kerf.model.usage import NO_USAGE, ContainerUsage, NodeUsage, PodUsage, Usage
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, resources

M5 = an_instance_type("m5.xlarge", price="0.192", overhead=resources(cpu="80m"))
M5_2X = an_instance_type("m5.2xlarge", cpu=8, memory="32Gi", price="0.384", overhead=resources(cpu="90m"))
MARKET = a_market(M5)
MIB = 2**20


def runs(count: int = 25, **given: Any) -> list[Pod]:
    """Pods of a Job on node n1, then on n2 beyond the first 20 where two nodes are there."""
    return [a_pod(f"run-{n:02}", node_name="n1", owner=Owner("Job", "run"), **given) for n in range(count)]


def world(pods: list[Pod], **given: Any) -> ClusterSnapshot:
    """Node n1 with 3920m of 4 cpus, and a DaemonSet's pod."""
    daemon = a_pod("agent", node_name="n1", owner=Owner("DaemonSet", "agent"), cpu="120m")
    node = a_node("n1", capacity=resources(cpu=4), allocatable={"cpu": "3920m", "memory": "14Gi", "pods": 58})
    claims = [a_claim("c1", node_name="n1")]
    return a_snapshot(pools=[a_pool(**given)], nodes=[node], claims=claims, pods=[*pods, daemon])


def used(pods: list[Pod], millis: int, mib: int = 100, node_millis: int | None = None) -> Usage:
    """The same of each pod."""
    samples = {p.key: PodUsage(p.namespace, p.name, 0, 60, (ContainerUsage("main", millis, mib * MIB),)) for p in pods}
    return Usage(samples, {} if node_millis is None else {"n1": NodeUsage("n1", 0, 60, node_millis, 0)})


def fitted(pods: list[Pod], usage: Usage, market: Market = MARKET) -> Fitting | None:
    """What would fit them."""
    snapshot = world(pods)
    return fitting(pods, standing(pods, snapshot, usage), World(snapshot, market), usage)


def test_pods_are_counted_by_node_with_what_they_ask_and_use() -> None:
    """25 pods that ask for nothing on a node at 97 %."""
    pods = runs()
    stand = standing(pods, world(pods), used(pods, 146, node_millis=3802))

    assert (25, 25, resources(), 25 * 146) == (stand.pods, stand.seen, stand.requested, stand.used["cpu"])
    assert [("n1", 25, ("cpu",))] == [(each.node, each.pods, each.overloaded) for each in stand.stands]


def test_on_an_overloaded_node_a_pod_gets_a_core() -> None:
    """What it was seen to use is what it got: 3920m less the DaemonSet's 120m by four cores, and memory as seen."""
    pods = runs()
    fit = fitted(pods, used(pods, 146, node_millis=3802))

    assert fit is not None
    assert resources(cpu="950m", memory="120Mi") == fit.requests
    assert (7, (1, 4)) == (fit.variant.nodes, fit.variant.pods_a_node)
    assert fit.why.startswith("cpu: the node's allocatable cpu divided by its cores: on a saturated node")
    assert not fit.is_no_relief


def test_on_an_overloaded_node_no_pod_is_advised_less_than_it_was_seen_to_use() -> None:
    """1250m and 15 %, where a core is 950m; two of these are on a node then, and not three."""
    pods = runs(3)
    fit = fitted(pods, used(pods, 1250, node_millis=3850))

    assert fit is not None
    assert (1440, (1, 2), False) == (fit.requests["cpu"], fit.variant.pods_a_node, fit.is_no_relief)
    assert fit.why.startswith("cpu: the most that one pod used, plus 15 %, at least: on a saturated node")


def test_advice_that_spreads_nothing_is_known_as_such() -> None:
    """Two pods that others crowd go on one new node together."""
    pods = runs(2)
    fit = fitted(pods, used(pods, 100, node_millis=3850))

    assert fit is not None
    assert (2, True) == (fit.crowd, fit.is_no_relief)


def test_a_daemon_set_counts_whose_pods_are_not_shown() -> None:
    """Beside the 120m of the one that is: 3920m less 270m by four cores."""
    pods = runs(25)
    snapshot = world(pods)
    snapshot = replace(snapshot, daemon_sets=(DaemonSet("kube-system", "log", a_pod("log", cpu="150m")),))
    usage = used(pods, 146, node_millis=3802)
    fit = fitting(pods, standing(pods, snapshot, usage), World(snapshot, MARKET), usage)

    assert fit is not None
    assert 912 == fit.requests["cpu"]


def test_elsewhere_the_most_that_was_seen_counts_with_a_margin() -> None:
    """15 % for cpu, in steps of 10m, and 20 % for memory, in MiB."""
    pods = runs(4)
    fit = fitted(pods, used(pods, 501, 101))

    assert fit is not None
    assert resources(cpu="580m", memory="122Mi") == fit.requests


def test_who_asks_enough_or_is_not_known_gets_no_advice() -> None:
    """And no request is made smaller by one look."""
    enough = runs(2, cpu=1, memory="1Gi")

    assert None is fitted(enough, used(enough, 500))
    assert None is fitted(runs(2), NO_USAGE)
    some = runs(2, cpu=1)
    fit = fitted(some, used(some, 500))
    assert fit is not None
    assert resources(memory="120Mi") == fit.requests


def test_a_pool_says_its_largest_type_and_what_its_limits_allow() -> None:
    """One node of four cpus counts already."""
    pods = runs(1)
    [opening] = openings(
        pods[0], {FIRST: resources(cpu=1)}, World(world(pods, limits={"cpu": 16}), a_market(M5, M5_2X))
    )

    assert ("m5.2xlarge", 7910, 3) == (opening.largest, opening.allocatable["cpu"], opening.room)
    assert None is openings(pods[0], {}, World(world(pods), MARKET))[0].room


def test_a_pool_that_does_not_take_the_pod_says_why() -> None:
    """002-7: its node selector; 002-9: its size against the largest type."""
    pod = runs(1, selector={"disk": "ssd"})[0]
    [by_label] = openings(pod, {}, World(world([pod]), MARKET))
    [by_size] = openings(runs(1)[0], {FIRST: resources(cpu=6)}, World(world([]), MARKET))

    assert by_label.misfit is not None
    assert by_size.misfit is not None
    assert "the pod asks disk In [ssd], NodePool pool has no label disk" == misfit_reason(by_label.misfit)
    assert ("Insufficient cpu", "2080m cpu") == (misfit_reason(by_size.misfit), missing_text(by_size.misfit))


def test_runs_of_orchestrators_are_known_by_their_labels() -> None:
    """002-5: one Job a run and many at once; or by the name that Dagster gives its Jobs."""

    def pod(name: str, labels: dict[str, str], owner: str = "") -> Pod:
        return a_pod(name, labels=labels, owner=Owner("Job", owner or name), node_name="n1")

    dagster = [pod(f"d{n}", {"dagster/job": "etl", "dagster/run-id": str(n)}) for n in range(25)]
    argo = [pod("a0", {"workflows.argoproj.io/workflow": "w1"}), pod("a1", {"workflows.argoproj.io/workflow": "w2"})]
    airflow = [pod("t", {"dag_id": "daily", "task_id": "load"})]
    others = [pod("x", {"app": "x"}), pod("y", {"dag_id": "no-task"})]

    assert [("Dagster", 25, 25, ("etl",)), ("Argo Workflows", 2, 2, ("w1", "w2")), ("Airflow", 1, 1, ("daily",))] == [
        (each.orchestrator.name, each.pods, each.owners, each.groups)
        for each in batches([*others, *dagster, *argo, *airflow])
    ]
    [bare] = batches([a_pod("b", labels={"dag_id": "daily", "task_id": "load"}, node_name="n1")])
    assert (1, 0) == (bare.pods, bare.owners)
    [named] = batches([pod("p", {}, "dagster-run-1")])
    assert ("Dagster", 1, ()) == (named.orchestrator.name, named.pods, named.groups)
