"""A claim ends at the age that it states."""

import pytest

from kerf.controllers.nodeclaim.drift import Drift
from kerf.controllers.nodeclaim.expiration import Expiration
from kerf.manifests.encode import node_claim_status
from kerf.model.nodeclaim import Condition
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pod, pool

REPLACED: Json = {"kerf.dev/replace-expired": "true"}


def start(cluster: Cluster, *, expire_after_s: int | None = 3600, annotations: Json | None = None) -> None:
    """A node that is in use, and the controllers."""
    cluster.put(pool(annotations=annotations, disruption={"budgets": [{"nodes": "0"}]}))
    cluster.running(expire_after_s=expire_after_s)
    cluster.put(pod(node="node-1"))
    begin(cluster)


def begin(cluster: Cluster) -> None:
    """The controllers, also in a second life."""
    cluster.start(Expiration(cluster.state, cluster.ports, cluster.actuator), Drift(cluster.state, cluster.ports))


def test_a_claim_is_deleted_at_its_age_whatever_budgets_say(cluster: Cluster) -> None:
    """As in Karpenter; a restart in between changes nothing."""
    start(cluster)
    cluster.at(1800)
    cluster.crash()
    begin(cluster)
    cluster.at(3599)
    assert not cluster.claim().is_deleting

    cluster.at(3601)
    assert cluster.claim().is_deleting
    assert ("True", "Expired", "expireAfter 1h is over") == cluster.condition("DisruptionReason")


def test_never_means_never(cluster: Cluster) -> None:
    """A claim without expireAfter stays."""
    start(cluster, expire_after_s=None)
    cluster.at(40 * 86400)

    assert not cluster.claim().is_deleting


def test_a_pool_may_ask_for_replacements_first(cluster: Cluster) -> None:
    """Then the claim counts as drifted, and goes as such."""
    start(cluster, annotations=REPLACED)
    cluster.at(3600 + 301)

    assert not cluster.claim().is_deleting
    assert ("True", "Expired") == cluster.condition("Drifted")[:2]


@pytest.mark.parametrize("annotations", [None, REPLACED], ids=["at once", "others first"])
def test_an_age_below_the_time_to_start_is_said_on_the_pool(cluster: Cluster, annotations: Json | None) -> None:
    """A claim that starts has its deadlines, and goes once it is up; also where others come before it goes."""
    cluster.put(pool(annotations=annotations))
    cluster.claimed(expire_after_s=30, reached=("Launched",))
    begin(cluster)
    cluster.at(120)

    assert not cluster.claim().is_deleting
    goes = "its nodes go when they have been up as long as they took to start"
    said = f"expireAfter 30s is over before a node is ready: {goes}"
    assert [said] == cluster.said("ExpireAfterTooShort")


def test_a_node_serves_as_long_as_it_took_to_start(cluster: Cluster) -> None:
    """It was up after 100 s, longer than expireAfter: it goes at 200 s and not at once."""
    cluster.put(pool())
    claim = cluster.claimed(expire_after_s=30, reached=("Launched",))
    begin(cluster)
    cluster.at(100)
    ready = Condition("Initialized", "True", "Initialized", since_s=cluster.clock.now_s())
    cluster.change("NodeClaim", claim.name, status=node_claim_status(claim.with_condition(ready)))
    cluster.at(195)
    assert not cluster.claim().is_deleting

    cluster.at(211)
    assert cluster.claim().is_deleting
