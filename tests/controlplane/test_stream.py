"""Equal pods that come one after the other while nodes start: the real kube-scheduler takes the oldest first, too.

They are no Jobs, because kwok ends the pods of Jobs at once.
"""

import time
from collections.abc import Iterator

import pytest

from kerf.model.times import instant_s
from kerf.sim.course.report import Waits
from tests.controlplane.cluster import Cluster, Json, cluster
from tests.controlplane.test_following_plans import pods, pool
from tools.controlplane.server import Binaries

PODS, EVERY_S = 32, 0.25
LATENCIES = {"launch": "6s", "register": "1s", "devicesReady": "300ms", "terminate": "300ms"}
ONE_AGE_S = 3
"""Three batches of half a second, and the second to which the server's times are cut, for each of two."""


@pytest.fixture(scope="module")
def site(binaries: Binaries) -> Iterator[Cluster]:
    """Where pods have come while nodes of four each were started, and all of them run."""
    with cluster(binaries, latencies=LATENCIES) as made:
        made.plane.apply([pool("c5.xlarge", {})])
        made.start("--batch-max=500ms")
        for pod in pods("run", PODS, {"cpu": "900m"}):
            made.plane.apply([pod])
            time.sleep(EVERY_S)
        made.until(lambda: PODS == len(made.pods("Running")), "all run", 60)
        yield made


def times(pod: Json) -> tuple[float, float]:
    """When it was made, and bound."""
    conditions = {each["type"]: each["lastTransitionTime"] for each in pod["status"]["conditions"]}
    return instant_s(pod["metadata"]["creationTimestamp"]), instant_s(conditions["PodScheduled"])


def test_pods_start_in_the_order_of_their_age(site: Cluster) -> None:
    """Of the pairs that are not of one age at most one in a hundred the other way round."""
    found = [times(pod) for pod in site.pods("Running")]
    pairs = [(old, new) for old in found for new in found if new[0] - old[0] > ONE_AGE_S]
    late = [pair for pair in pairs if pair[0][1] > pair[1][1]]

    assert len(late) <= len(pairs) / 100


def test_each_pod_is_bought_for_once(site: Cluster) -> None:
    """Exchanged between claims, they need no node more."""
    assert PODS / 4 == len(site.created_claims())


def test_hardly_a_pod_waits_longer_than_one_node_takes_to_start(site: Cluster) -> None:
    """By three tenths of the slowest start at most; the server's times are cut to seconds."""
    claims = site.plane.list("nodeclaims")
    starts = [
        instant_s(site.condition("nodeclaims", claim["metadata"]["name"], "Initialized")["lastTransitionTime"])
        - instant_s(claim["metadata"]["creationTimestamp"])
        for claim in claims
    ]
    waits = [bound - made for made, bound in map(times, site.pods("Running"))]

    assert Waits.of(waits).p95 <= 1.3 * max(starts) + 2
