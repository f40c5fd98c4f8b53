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


def test_more_memory_than_the_containers_own_limit_is_not_believed() -> None:
    """The kernel would have killed it; the limit itself may be used up, and one without a limit may use any amount."""
    limited = {key: replace(pod, spec=a_pod(memory="1Ki").spec) for key, pod in PODS.items()}
    counts: dict[SampleFault, int] = {}
    used = [PodUsage("default", name, NOW_S, 15, (ContainerUsage("main", 1, amount),)) for name, amount in USED]

    assert ["here"] == [each.name for each in believed(used, limited, NODES, NOW_S, counts)]
    assert {SampleFault.OVER_LIMIT: 1} == counts
    assert 2 == len(believed(used, PODS, NODES, NOW_S))


USED = (("here", 1024), ("old", 1025))
