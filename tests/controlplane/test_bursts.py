"""A thousand pods at once are one batch, one plan, and few requests: counted in the server's audit log."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster, Json, cluster
from tests.controlplane.test_crashes import deployment, short_lived
from tools.controlplane.server import Binaries

PODS, PER_NODE = 1000, 106
"""A c5.24xlarge has 96 cores less what its kubelet keeps; each pod asks for 900m."""
NODES = -(-PODS // PER_NODE)
USER = "system:serviceaccount:kerf-system:kerf"


@pytest.fixture(scope="module")
def site(binaries: Binaries) -> Iterator[Cluster]:
    """A cluster with one pool, and a thousand pods that all run."""
    with cluster(binaries) as made:
        made.plane.apply([short_lived("burst", "c5.24xlarge", {})])
        made.plane.apply([deployment("burst", "burst", PODS, {"cpu": "900m"})])
        # A controller makes twenty pods a second; at once they are there for whoever comes when all are.
        made.until(lambda: PODS == sum(map(is_refused, made.pods("Pending"))), "all wait", 240)
        made.start()
        made.until(lambda: PODS == len(made.pods("Running")), "all run", 240)
        # Events are posted beside the work, and may be late.
        made.until(lambda: PODS <= asked(made)["create", "events"], "all is said", 120)
        yield made


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


def test_they_are_bought_for_once(site: Cluster) -> None:
    """As many nodes as hold them, and all of them in one plan: within one second of each other."""
    claims = site.plane.list("nodeclaims")

    assert NODES == len(site.created_claims()) == len(claims)
    planned = {claim["metadata"]["creationTimestamp"] for claim in claims}
    assert 2 >= len(planned)


def test_the_requests_are_few(site: Cluster) -> None:
    """Of each pod one event or two, that it made us buy and where it will be; none is read or written by itself.

    Of each claim, with its events, reads and writes of its steps: created, launched, registered, initialized, and what
    was seen of its pods. It is read again where a write met another's, which is the more often the slower all is.
    """
    counted = asked(site)
    of_claims = sum(number for (_, resource), number in counted.items() if resource.startswith("nodeclaims"))

    assert PODS <= counted["create", "events"] <= 2 * PODS + 30 * NODES
    assert NODES < of_claims <= 80 * NODES
    assert {"list", "watch"} == {verb for verb, resource in counted if resource.startswith("pods")}
    assert 4 * PODS > sum(counted.values())
