"""002-1: a node that is busy although little is asked of it."""

from typing import Any

import pytest

from kerf.engine.study.usage.overload import crowd_text, crowds, is_calm, load_of, load_text, node_loads
from kerf.model.pods import SUCCEEDED, Owner, Pod
from kerf.model.snapshot import ClusterNode
from kerf.model.usage import NO_USAGE, ContainerUsage, NodeUsage, PodUsage, Usage
from kerf.testing.builders import a_claim, a_node, a_pod, a_snapshot, resources

GIB = 2**30


def pods(count: int, owner: str = "runs", **given: Any) -> list[Pod]:
    """Pods of a Job on node n1."""
    return [a_pod(f"{owner}-{n}", node_name="n1", owner=Owner("Job", owner), **given) for n in range(count)]


def used(node: tuple[int, int] | None = None, **millis: int) -> Usage:
    """Of the node (cpu in milli, memory in bytes), and of pods by name with `_` for `-`; each has 100 MiB."""
    samples = {name.replace("_", "-"): (ContainerUsage("main", cpu, 100 * 2**20),) for name, cpu in millis.items()}
    return Usage(
        {f"default/{name}": PodUsage("default", name, 0, 60, containers) for name, containers in samples.items()},
        {} if node is None else {"n1": NodeUsage("n1", 0, 60, *node)},
    )


def node(*held: Pod) -> ClusterNode:
    """Node n1 of 4 cpu and 16 GiB."""
    return ClusterNode(a_node("n1"), a_claim("c1", node_name="n1"), held)


@pytest.mark.parametrize(
    ("use", "asked", "found"),
    [
        ((3600, 0), "0", ("cpu",)),
        ((3599, 0), "0", ()),
        ((3600, 0), "1999m", ("cpu",)),
        ((3600, 0), "2", ()),
        ((0, 15 * GIB), "0", ("memory",)),
        ((4000, 16 * GIB), "0", ("cpu", "memory")),
    ],
)
def test_much_used_and_little_asked_is_overload(use: tuple[int, int], asked: str, found: tuple[str, ...]) -> None:
    """From 90 % of allocatable on, while less than half of it is asked for."""
    load = load_of(node(*pods(1, cpu=asked)), used(use))

    assert load is not None
    assert found == load.overloaded()


def test_what_was_overloaded_stays_so_until_it_is_calm() -> None:
    """Use that sways about the bound is one episode: it ends below 80 %."""
    swaying, calm = load_of(node(), used((3200, 0))), load_of(node(), used((3199, 0)))

    assert swaying is not None
    assert calm is not None
    assert ((), ("cpu",)) == (swaying.overloaded(), swaying.overloaded(was=True))
    assert () == calm.overloaded(was=True)


def test_the_sum_of_its_pods_stands_in_for_a_node() -> None:
    """Where nothing is known of the node itself; nothing at all is no load."""
    load = load_of(node(*pods(2)), used(None, runs_0=1000, runs_1=500))

    assert load is not None
    assert resources(cpu="1500m", memory="200Mi") == load.used
    assert None is load_of(node(*pods(2)), NO_USAGE)
    assert None is load_of(ClusterNode(None, a_claim("c1")), used((4000, 0)))


def test_percentages_are_rounded_to_the_nearest() -> None:
    """3802m of 3920m are 97 %."""
    held = ClusterNode(a_node("n1", allocatable={"cpu": "3920m", "memory": "16Gi"}), None)
    load = load_of(held, used((3802, 0)))

    assert load is not None
    assert (97, 0) == (load.used_percent("cpu"), load.requested_percent("cpu"))
    assert "uses 97 % of its cpu and is asked for 0 %" == load_text(load, ["cpu"])


def test_the_crowd_is_whose_pods_ask_less_than_they_use() -> None:
    """By owner, the most used first; who asks enough, has ended, or is a daemon is none of it."""
    honest = pods(1, "honest", cpu=2)
    ended = pods(1, "ended", phase=SUCCEEDED)
    daemon = [a_pod("d", node_name="n1", owner=Owner("DaemonSet", "agent"))]
    alone = [a_pod("alone", node_name="n1")]
    held = node(*pods(2, cpu="10m"), *honest, *ended, *daemon, *alone)

    found = crowds(held.pods, used(None, runs_0=500, runs_1=700, honest_0=1900, alone=1300, d=900), ["cpu"])

    assert [
        "Pod default/alone asks 0 cpu and uses 1300m cpu",
        "2 pods of Job default/runs ask 20m cpu and use 1200m cpu",
    ] == [crowd_text(each, ["cpu"]) for each in found]


def test_without_use_of_pods_the_crowd_asks_for_nothing() -> None:
    """A node's sample alone says that somebody uses it."""
    found = crowds([*pods(3), *pods(1, "honest", cpu=1)], used((4000, 0)), ["cpu"])

    assert ["3 pods of Job default/runs ask 0 cpu"] == [crowd_text(each, ["cpu"]) for each in found]


def test_only_nodes_of_which_something_is_known_have_a_load() -> None:
    """By name."""
    snapshot = a_snapshot(nodes=[a_node("n1"), a_node("n2")])

    assert ["n1"] == list(node_loads(snapshot, used((1, 1))))


@pytest.mark.parametrize(
    ("use", "is_so"), [((3199, 0), True), ((3200, 0), False), ((0, 13 * GIB), False), (None, False)]
)
def test_a_calm_node_is_known_without_its_pods(use: tuple[int, int] | None, is_so: bool) -> None:
    """Below 80 % of both; nothing is known of one that was not measured."""
    assert is_so == is_calm(node(*pods(2)), used(use, runs_0=1))
