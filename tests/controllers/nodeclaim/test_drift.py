"""The condition Drifted: what the cloud says of each claim, and nothing more."""

import pytest

from kerf.clouds.fake import FakeCloud, Latencies
from kerf.controllers.nodeclaim.drift import Drift
from kerf.model.nodeclaim import DRIFTED, NodeClaim
from kerf.model.nodes import DRIFTED_TAINT
from tests.clouds.market import MARKET
from tests.controllers.cluster import Cluster, pool


class Judging(FakeCloud):
    """A cloud that says `reason` of every claim."""

    reason: str | None = "AMIDrift"
    asked = 0

    @property
    def has_drift(self) -> bool:
        """It judges."""
        return True

    async def drift(self, claim: NodeClaim) -> str | None:
        """See CloudProvider."""
        self.asked += 1
        return self.reason


@pytest.fixture
def cloud(cluster: Cluster) -> Judging:
    """The cloud of the cluster."""
    made = Judging(MARKET, cluster.clock, latencies=Latencies(0, 5))
    cluster.use(made)
    return made


def test_a_drifted_claim_says_so_and_stays(cluster: Cluster, cloud: Judging) -> None:
    """Reason of the cloud, one event, one write; it stays for now."""
    cluster.put(pool())
    cluster.running()
    cluster.start(Drift(cluster.state, cluster.ports))
    cluster.at(700)

    assert ("True", "AMIDrift", "") == cluster.condition(DRIFTED)
    assert ["its node is not what its NodePool or NodeClass says now: AMIDrift"] == cluster.said("Drifted")
    assert (3, False) == (cloud.asked, cluster.claim().is_deleting)


def test_the_condition_goes_when_the_drift_does(cluster: Cluster, cloud: Judging) -> None:
    """The NodeClass was changed back."""
    cluster.put(pool())
    cluster.running()
    cluster.start(Drift(cluster.state, cluster.ports))
    cloud.reason = None
    cluster.at(301)

    assert cluster.claim().condition(DRIFTED) is None


def test_kube_scheduler_is_to_prefer_nodes_that_have_not_drifted(cluster: Cluster, cloud: Judging) -> None:
    """A soft taint, which goes when the drift does."""
    cluster.put(pool())
    cluster.running()
    cluster.start(Drift(cluster.state, cluster.ports))
    cluster.at(1)
    marked = cluster.state.nodes()[0].taints
    cloud.reason = None
    cluster.at(301)

    assert ((DRIFTED_TAINT,), "PreferNoSchedule") == (marked, marked[0].effect)
    assert () == cluster.state.nodes()[0].taints


def test_a_claim_without_an_instance_is_not_asked_for(cluster: Cluster, cloud: Judging) -> None:
    """It cannot have drifted before it is launched."""
    cluster.claimed(reached=())
    cluster.start(Drift(cluster.state, cluster.ports))
    cluster.at(301)

    assert 0 == cloud.asked


def test_a_cloud_that_does_not_judge_is_never_asked(cluster: Cluster) -> None:
    """As the acted-out ones: no key, no look."""
    cluster.put(pool())
    cluster.running()
    cluster.start(Drift(cluster.state, cluster.ports))
    cluster.at(301)

    assert cluster.claim().condition(DRIFTED) is None
