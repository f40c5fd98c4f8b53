"""Why a launch is of its type: the same pods on the next best one."""

from kerf.engine.buy.launching import Needed
from kerf.engine.decide import decide
from kerf.engine.explain.choices import with_runners_up
from kerf.engine.world import World
from kerf.model.instancetypes import InstanceType
from kerf.model.plan import Launch, RunnerUp
from kerf.model.pods import Pod
from kerf.testing.builders import a_market, a_pool, a_snapshot, an_instance_type
from tests.engine.worlds import some

SMALL = an_instance_type("small", cpu=4, memory="16Gi", price="0.20")
LARGE = an_instance_type("large", cpu=8, memory="32Gi", price="0.36")
DEAR = an_instance_type("dear", cpu=8, memory="32Gi", price="0.90")


def launches(pods: list[Pod], *types: InstanceType) -> tuple[Launch, ...]:
    """Those of a plan, each with its runner-up."""
    world = World(a_snapshot(pools=[a_pool()], pods=pods), a_market(*types))
    return with_runners_up(decide(world).launches, world)


def test_the_next_best_is_counted_in_whole_nodes() -> None:
    """Six cores are one large node for 0.36, or two small ones for 0.40."""
    (launch,) = launches(some(6, cpu=1), SMALL, LARGE, DEAR)

    assert "large" == launch.offering.instance_type
    assert RunnerUp("small", 2, 400_000) == launch.runner_up


def test_a_type_that_holds_one_of_them_not_is_none() -> None:
    """A pod of five cores is on no small node."""
    (launch,) = launches([*some(1, "a", cpu=5), *some(1, "b", cpu=2)], SMALL, LARGE, DEAR)

    assert RunnerUp("dear", 1, 900_000) == launch.runner_up


def test_each_launch_of_several_kinds_has_its_own() -> None:
    """Whatever the numbers of their shapes: a node may hold the fifth of them alone."""
    cores = (1, 2, 3, 5, 7, 8)
    found = launches([pod for n in cores for pod in some(2, f"p{n}", cpu=n)], SMALL, LARGE, DEAR)

    assert all(launch.runner_up is not None for launch in found)
    assert {"dear"} == {each.runner_up.instance_type for each in found if each.runner_up and _most_cpu(each) > 4_000}


def _most_cpu(launch: Launch) -> int:
    """Of one pod of the node, in milli-cores."""
    assert isinstance(launch.cause, Needed)
    return max(launch.cause.shapes[number].requests["cpu"] for number, _ in launch.cause.load.held)


def test_without_another_type_there_is_none() -> None:
    """Nothing is said then."""
    (launch,) = launches(some(3, cpu=1), LARGE)

    assert launch.runner_up is None


def test_equal_launches_have_one_answer() -> None:
    """Worked out once for a load."""
    found = launches(some(64, cpu=1), LARGE, DEAR)

    assert 8 == len(found)
    assert 1 == len({id(launch.runner_up) for launch in found})
