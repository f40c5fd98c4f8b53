"""Many pods at once are one batch, one plan, and few requests: counted in the server's audit log."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.controlplane.cluster import Cluster, Json, cluster
from tests.controlplane.test_crashes import deployment, short_lived
from tools.controlplane.server import Binaries

PER_NODE = 106
"""A c5.24xlarge has 96 cores less what its kubelet keeps; each pod asks for 900m."""
USER = "system:serviceaccount:kerf-system:kerf"


@dataclass(frozen=True)
class Burst:
    """So many pods, and where they came."""

    site: Cluster
    pods: int

    @property
    def nodes(self) -> int:
        """As many as hold them."""
        return -(-self.pods // PER_NODE)


@pytest.fixture(scope="module", params=[300, pytest.param(1000, marks=(pytest.mark.long, pytest.mark.alone))])
def burst(binaries: Binaries, request: pytest.FixtureRequest) -> Iterator[Burst]:
    """A cluster with one pool, and the pods, which all run."""
    pods: int = request.param
    with cluster(binaries) as made:
        made.plane.apply([short_lived("burst", "c5.24xlarge", {})])
        made.plane.apply([deployment("burst", "burst", pods, {"cpu": "900m"})])
        # A controller makes twenty pods a second; at once they are there for whoever comes when all are.
        made.until(lambda: pods == sum(map(is_refused, made.pods("Pending"))), "all wait", 240)
        # They are made over a minute on a slow machine, and are of one age all the same: no node is reserved.
        made.start("--batch-max=20s")
        made.until(lambda: pods == len(made.pods("Running")), "all run", 240)
        # Events are posted beside the work, and may be late.
        made.until(lambda: pods <= asked(made)["create", "events"], "all is said", 120)
        yield Burst(made, pods)


def is_refused(pod: Json) -> bool:
    """Whether its scheduler has found no node for it."""
    return any(each["reason"] == "Unschedulable" for each in pod["status"].get("conditions", ()))


def asked(site: Cluster) -> Counter[tuple[str, str]]:
    """How often Kerf made which request, by verb and resource."""
    found: Counter[tuple[str, str]] = Counter()
    for event in site.plane.audit_events():
        if event["user"]["username"] == USER:
            target = event.get("objectRef", {})
            found[event["verb"], "/".join(filter(None, (target.get("resource"), target.get("subresource"))))] += 1
    return found


def test_they_are_bought_for_once(burst: Burst) -> None:
    """As many nodes as hold them, and all of them in one plan: within one second of each other."""
    claims = burst.site.plane.list("nodeclaims")

    assert burst.nodes == len(burst.site.created_claims()) == len(claims)
    planned = {claim["metadata"]["creationTimestamp"] for claim in claims}
    assert 2 >= len(planned)


def test_the_requests_are_few(burst: Burst) -> None:
    """Of each pod two events or three: that it made us buy, on which claim it will be, and on which node where it still
    waits once that is up. None is read or written by itself.

    Of each claim, with its events, reads and writes of its steps: created, launched, registered, initialized, and what
    was seen of its pods. It is read again where a write met another's, which is the more often the slower all is.
    """
    counted = asked(burst.site)
    of_claims = sum(number for (_, resource), number in counted.items() if resource.startswith("nodeclaims"))

    assert burst.pods <= counted["create", "events"] <= 3 * burst.pods + 30 * burst.nodes
    assert burst.nodes < of_claims <= 80 * burst.nodes
    assert {"list", "watch"} == {verb for verb, resource in counted if resource.startswith("pods")}
    assert 5 * burst.pods > sum(counted.values())
