"""Random workloads with all constraints on the real scheduler: what was planned for an empty cluster is what comes."""

import pytest

from tests.controlplane.cluster import cluster
from tests.controlplane.test_following_plans import all_refused
from tests.differential.bought import key_of, settled
from tests.differential.workloads import ALL
from tools.controlplane.server import Binaries

KINDS = ALL - {"volumes"}
"""Nothing here makes volumes."""
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("seed", "pods"),
    [(0, 100), *(pytest.param(seed, 100, marks=pytest.mark.long) for seed in (1, 2, 3))],
)
def test_what_is_bought_is_followed(binaries: Binaries, seed: int, pods: int) -> None:
    """Every pod that the plan placed is bound, none waits, and there is no node beyond the plan."""
    workloads, nodes = settled(seed, pods, KINDS)
    keys = {key_of(pod) for pod in workloads.pods}
    with cluster(binaries) as site:
        site.plane.apply(workloads.objects)
        for pod in workloads.pods:
            site.plane.request("POST", PODS, pod).good("create a pod")
        all_refused(site, len(keys), 240)
        site.start("--batch-max=20s")
        site.until(
            lambda: keys == {key_of(pod) for pod in site.pods() if pod["spec"].get("nodeName")} & keys, "all", 300
        )

        assert keys <= {key_of(pod) for pod in site.pods()}
        assert nodes == len(site.created_claims())
