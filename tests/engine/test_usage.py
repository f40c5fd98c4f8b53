"""Which samples of usage speak of the cluster as it is."""

from kerf.engine.usage.samples import STALE_S, joined
from kerf.model.usage import ContainerUsage, NodeUsage, PodUsage, Usage

NOW_S = 1_000_000.0


def pod(name: str, at_s: float = NOW_S) -> PodUsage:
    """A sample of `default/name`."""
    return PodUsage("default", name, at_s, 15, (ContainerUsage("main", 100, 1000),))


def test_samples_of_what_is_gone_and_of_long_ago_are_left_out_and_counted() -> None:
    """A pod that no longer exists, a node that stopped answering, and a clock that runs ahead."""
    pods = {f"default/{one.name}": one for one in (pod("here"), pod("gone"), pod("old", NOW_S - STALE_S - 1))}
    nodes = {"n": NodeUsage("n", NOW_S - STALE_S, 15, 1, 1), "ahead": NodeUsage("ahead", NOW_S + STALE_S + 1, 15, 1, 1)}

    found = joined(Usage(pods, nodes), {"default/here", "default/old"}, {"n", "ahead"}, NOW_S)

    assert (["default/here"], ["n"]) == (list(found.usage.pods), list(found.usage.nodes))
    assert (1, 2) == (found.gone, found.stale)
