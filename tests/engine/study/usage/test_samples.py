"""Which samples of usage speak of the cluster as it is."""

from dataclasses import replace

from kerf.engine.study.usage.samples import STALE_S, SampleFault, believed, joined
from kerf.model.usage import ContainerUsage, NodeUsage, PodUsage, Usage
from kerf.testing.builders import a_node, a_pod

NOW_S = 1_000_000.0
NODES = {"n": a_node("n", allocatable={"cpu": 4, "memory": "16Gi"})}
PODS = {f"default/{name}": replace(a_pod(name), node_name="n") for name in ("here", "old", "ahead", "huge", "other")}


def sample(name: str, at_s: float = NOW_S, *, cpu: int = 100, container: str = "main") -> PodUsage:
    """A sample of `default/name`."""
    return PodUsage("default", name, at_s, 15, (ContainerUsage(container, cpu, 1000),))


SAMPLES = (
    sample("here"),
    sample("gone"),
    sample("old", NOW_S - STALE_S - 1),
    sample("ahead", NOW_S + STALE_S + 1),
    sample("huge", cpu=8001),
    sample("other", container="another"),
)


def test_samples_that_say_nothing_of_now_are_left_out_and_counted() -> None:
    """A pod that is gone, a container it has not, a clock ahead, more than the machine has, a stopped kubelet."""
    nodes = {"n": NodeUsage("n", NOW_S, 15, 3900, 1), "away": NodeUsage("away", NOW_S, 15, 1, 1)}

    found = joined(Usage({f"default/{one.name}": one for one in SAMPLES}, nodes), PODS, NODES, NOW_S)

    assert (["default/here"], ["n"]) == (list(found.usage.pods), list(found.usage.nodes))
    assert {
        SampleFault.GONE: 3,
        SampleFault.AHEAD: 1,
        SampleFault.IMPOSSIBLE: 1,
        SampleFault.STALE: 1,
    } == found.left_out


def test_what_is_old_may_still_be_evidence() -> None:
    """Of what pods used, if not of how busy nodes are; the other faults make it none."""
    assert ["here", "old"] == [each.name for each in believed(SAMPLES, PODS, NODES, NOW_S)]
