"""002-12: what other requests of the same pods would come to."""

from kerf.engine.options import Options
from kerf.engine.study.sizing.compare import FIRST, changed_spec, compared, with_requests
from kerf.engine.world import World
from kerf.model.pods import Container, PodSpec
from kerf.testing.builders import a_market, a_pool, a_snapshot, an_instance_type, resources
from tests.engine.worlds import some

M5 = an_instance_type("m5.xlarge", price="0.192", overhead=resources(cpu="80m"))


def test_one_cpu_needs_nine_nodes_and_900m_seven() -> None:
    """3920m allocatable hold three pods of 1 cpu, and four of 900m: 25 / 4 is no seven with requests of 1."""
    snapshot = a_snapshot(pools=[a_pool()], pods=some(25))

    found = compared(
        World(snapshot, a_market(M5)), Options(), [{FIRST: resources(cpu=1)}, {FIRST: resources(cpu="900m")}]
    )

    assert [(1, 192_000), (9, 1_728_000), (7, 1_344_000)] == [(each.nodes, each.price_micro) for each in found]
    assert [(25, 25), (1, 3), (1, 4)] == [each.pods_a_node for each in found]
    assert [25, 25, 25] == [each.placed for each in found]
    assert {("m5.xlarge", "on-demand"): 9} == found[1].types


def test_only_what_is_named_changes_and_equal_pods_stay_equal() -> None:
    """A plan groups pods by their spec: a copy for each pod would make it slow."""
    snapshot = a_snapshot(pods=some(3, cpu=1, memory="1Gi"))

    changed = with_requests(snapshot, {FIRST: resources(cpu="900m")})

    assert [resources(cpu="900m", memory="1Gi", pods=1)] * 3 == [pod.spec.requests for pod in changed.pending]
    assert 1 == len({id(pod.spec) for pod in changed.pending})


def test_a_limit_rises_to_its_request_and_an_extended_resource_has_both_alike() -> None:
    """The API takes no request above its limit, and no overcommitted slices."""
    spec = PodSpec((Container("a", resources(cpu=1), resources(cpu=1)), Container("b", resources(cpu=1))))

    first, second = changed_spec(spec, {FIRST: resources(cpu=2, memory="1Gi", gpumem=1000)}).containers

    assert resources(cpu=2, memory="1Gi", gpumem=1000) == first.requests
    assert resources(cpu=2, gpumem=1000) == first.limits
    assert resources(cpu=1) == second.requests


def test_no_change_is_the_pods_as_they_are() -> None:
    """The first of the variants has no requests of its own."""
    snapshot = a_snapshot(pods=some(2, cpu=3))

    assert snapshot is with_requests(snapshot, {})
