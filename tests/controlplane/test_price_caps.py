"""A cap on prices, on a real server whose NodeOverlays change: what runs above it is marked, and goes where it may."""

from functools import partial
from typing import Any

from tests.controlplane.cluster import Cluster, cluster
from tools.controlplane.server import Binaries

Json = dict[str, Any]


def kept(text: str) -> str:
    """The pool of the example, which keeps nodes that are in use."""
    return text.replace("consolidateAfter: 5m", "consolidateAfter: 1s")


def consolidated(text: str) -> str:
    """The same pool, which may replace them."""
    policy = 'consolidationPolicy: WhenEmptyOrUnderutilized, budgets: [{nodes: "100%"}]'
    return kept(text).replace("consolidationPolicy: WhenEmpty", policy)


def types(site: Cluster) -> list[str]:
    """The types of the nodes that are there and stay, in order."""
    staying = [node for node in site.plane.list("nodes") if "deletionTimestamp" not in node["metadata"]]
    return sorted(node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in staying)


def test_a_node_above_the_cap_is_kept_until_its_pool_may_replace_it(binaries: Binaries) -> None:
    """Below the cap it is bought; above it, the next is of another type; a pool that consolidates replaces it."""
    with cluster(binaries) as site:
        site.apply("001-caps/discount.yaml")
        site.apply("001-caps/nodepool.yaml", kept)
        site.apply("001-caps/workload.yaml")
        site.start()
        site.until(lambda: 1 == len(site.pods("Running")), "it runs")
        assert ["g5.xlarge"] == types(site)

        site.apply("001-caps/discount-ended.yaml")
        (claim,) = site.names("nodeclaims")
        site.until(partial(site.condition, "NodeClaim", claim, "PriceCapExceeded"), "the claim is marked")
        site.plane.kubectl("scale", "deployment/trainer", "--replicas=2")
        site.until(lambda: 2 == len(site.pods("Running")), "the second runs, too")
        assert ["g5.xlarge", "g6.xlarge"] == types(site)

        site.apply("001-caps/nodepool.yaml", consolidated)
        site.until(lambda: ["g6.xlarge"] * 2 == types(site), "it is replaced", 120)
        site.until(lambda: 2 == len(site.pods("Running")), "both run again")
