"""The loops of a provider: when each turn comes, and what Kerf does with its news."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from kerf.cloudprovider import Interruption, InterruptionKind, Loop, News, Throttled
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.controllers.cloudloops import CloudLoops
from kerf.controllers.provisioning import Provisioning
from kerf.model.constraints import CAPACITY_TYPE
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import DISRUPTION_REASON, STAGES, TRUE, Condition, NodeClaim
from kerf.ports import Conflict
from kerf.sim.kubernetes.adapter import SimWriter
from kerf.telemetry import REGISTRY
from tests.clouds.market import MARKET
from tests.controllers.cluster import Cluster, pod, pool

G5 = OfferingKey("g5.xlarge", "us-east-1a", "spot")


@dataclass
class _Queue:
    """A loop of the test: the turns that come, and what each of them says."""

    says: list[News] = field(default_factory=list)
    turns_s: list[float] = field(default_factory=list)
    is_throttled: bool = False


class _Queued(FakeCloud):
    """A cloud with a queue, which acts, and a price list, which only reads."""

    def __init__(self, cluster: Cluster, queue: _Queue) -> None:
        super().__init__(MARKET, cluster.clock, latencies=Latencies(0, 5))
        self._cluster, self._queue = cluster, queue
        self.priced = 0

    @property
    def loops(self) -> Sequence[Loop]:
        """Both."""
        return (Loop("queue", self._turn, 10), Loop("prices", self._price, 600, only_reads=True))

    async def _turn(self) -> News:
        self._queue.turns_s.append(self._cluster.now_s)
        if self._queue.is_throttled:
            self._queue.is_throttled = False
            raise Throttled(3)
        return self._queue.says.pop(0) if self._queue.says else News()

    async def _price(self) -> News:
        self.priced += 1
        return News()


@pytest.fixture
def queue() -> _Queue:
    """A queue that has nothing to say."""
    return _Queue()


@pytest.fixture
def cloud(cluster: Cluster, queue: _Queue) -> _Queued:
    """The cloud of the cluster, with that queue."""
    made = _Queued(cluster, queue)
    cluster.use(made)
    return made


def _start(cluster: Cluster, *, is_dry_run: bool = False) -> None:
    cluster.start(CloudLoops(cluster.state, cluster.ports, cluster.book, is_dry_run=is_dry_run))


@pytest.mark.usefixtures("cloud")
def test_a_turn_follows_the_last_after_the_period(cluster: Cluster, queue: _Queue) -> None:
    """Every ten seconds, and after a throttled turn when the cloud says."""
    queue.is_throttled = True
    _start(cluster)
    cluster.at(30)

    assert [0, 3, 13, 23] == queue.turns_s


@pytest.mark.usefixtures("cloud")
def test_an_interruption_ends_its_claim_within_the_turn(cluster: Cluster, queue: _Queue) -> None:
    """The claim is being deleted before the next turn begins, which deletes the message."""
    held = cluster.running()
    queue.says.append(News({held.provider_id: Interruption(InterruptionKind.SPOT, cluster.clock.now_s() + 120)}))
    counted = {
        "reason": "spot_interrupted",
        "nodepool": "gpu",
        "capacity_type": held.labels.get(CAPACITY_TYPE, ""),
        "consolidation_policy": "",
        "termination_mode": "graceful",
    }
    before = REGISTRY.get_sample_value("karpenter_nodeclaims_disrupted_total", counted) or 0
    _start(cluster)

    assert before + 1 == REGISTRY.get_sample_value("karpenter_nodeclaims_disrupted_total", counted)
    assert [0] == queue.turns_s
    assert ["the cloud interrupts its instance"] == cluster.said("TerminatingOnInterruption")
    assert cluster.claim(held.name).is_deleting
    assert ("True", "SpotInterrupted", "the cloud interrupts its instance") == cluster.condition("DisruptionReason")


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    ("kind", "noted"), [(InterruptionKind.SPOT, "SpotInterrupted"), (InterruptionKind.TERMINATING, "Drifted")]
)
def test_a_notice_for_a_claim_that_goes_already_is_noted_once(
    cluster: Cluster, queue: _Queue, kind: InterruptionKind, noted: str
) -> None:
    """The pods that hold its drain have less time than was said. That an instance ends may be by Kerf itself."""
    reached = tuple(Condition(stage, TRUE, stage) for stage in sorted(STAGES))
    held = cluster.running(conditions=(Condition(DISRUPTION_REASON, TRUE, "Drifted"), *reached))
    cluster.api.delete("NodeClaim", "", held.name)
    cluster.at(cluster.now_s)
    queue.says += [News({held.provider_id: Interruption(kind)}), News({held.provider_id: Interruption(kind)})]
    _start(cluster)
    cluster.at(30)

    assert noted == cluster.condition("DisruptionReason")[1]
    assert ["the cloud interrupts its instance"] * (noted == "SpotInterrupted") == cluster.said(
        "TerminatingOnInterruption"
    )


class _Refusing(SimWriter):
    """A server that refuses so many deletions of one claim, and each write of its status."""

    def __init__(self, cluster: Cluster, claim: str, times: int) -> None:
        super().__init__(cluster.api)
        self._claim, self.times = claim, times

    async def update_node_claim_status(self, claim: NodeClaim) -> NodeClaim:
        """Refuse, or as ever."""
        if claim.name == self._claim:
            raise Conflict("the object has been modified")
        return await super().update_node_claim_status(claim)

    async def delete_node_claim(self, claim: NodeClaim) -> None:
        """Refuse, or as ever."""
        if claim.name == self._claim and self.times > 0:
            self.times -= 1
            raise Conflict("the object has been modified")
        await super().delete_node_claim(claim)


@pytest.mark.parametrize(("refused", "ends"), [(1, True), (4, True), (99, False)])
@pytest.mark.usefixtures("cloud")
def test_a_claim_that_cannot_be_ended_keeps_no_other_and_is_tried_again(
    cluster: Cluster, queue: _Queue, refused: int, ends: bool
) -> None:
    """Before the next turn, which deletes the message; five times at the most, for other notices wait."""
    first, second = cluster.running(), cluster.running(2)
    spot = Interruption(InterruptionKind.SPOT, cluster.clock.now_s() + 120)
    queue.says.append(News({first.provider_id: spot, second.provider_id: spot}))
    cluster.ports = replace(cluster.ports, writer=_Refusing(cluster, first.name, refused))
    _start(cluster)
    assert [False, True] == [cluster.claim(each.name).is_deleting for each in (first, second)]
    assert [0] == queue.turns_s

    cluster.at(60)
    assert ends == cluster.claim(first.name).is_deleting
    assert 1 < len(queue.turns_s)


@pytest.mark.usefixtures("cloud")
def test_pods_of_an_interrupted_node_do_not_wait_for_a_batch(cluster: Cluster, queue: _Queue) -> None:
    """Their replacement is ordered in the instant of the notice, and no more often; other pods form batches as ever."""
    cluster.put(pool())
    held = cluster.running()
    cluster.put(pod("runs", node="node-1"))
    queue.says += [News(), News({held.provider_id: Interruption(InterruptionKind.SPOT, cluster.now_s + 120)})]
    provisioning = Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(CloudLoops(cluster.state, cluster.ports, cluster.book), provisioning)
    cluster.at(9.9)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.at(10)
    assert (2, [10]) == (len(cluster.names("NodeClaim")), [at_s for at_s, _ in cluster.feed.plans])
    cluster.put(pod("new"))
    cluster.at(10.9)
    assert 1 == len(cluster.feed.plans)
    cluster.at(11)
    assert 3 == len(cluster.names("NodeClaim"))


@pytest.mark.usefixtures("cloud")
def test_advice_is_an_event_and_ends_nothing(cluster: Cluster, queue: _Queue) -> None:
    """A rebalance recommendation is shown on the claim; its instance stays."""
    held = cluster.running()
    queue.says.append(News({held.provider_id: Interruption(InterruptionKind.REBALANCE)}))
    _start(cluster)

    assert ["the cloud advises to replace its instance"] == cluster.said("SpotRebalanceRecommendation")
    assert not cluster.claim(held.name).is_deleting


@pytest.mark.usefixtures("cloud")
def test_what_a_loop_says_is_sold_out_rests(cluster: Cluster, queue: _Queue) -> None:
    """An offering from news is left out of plans, with the reason that the cloud gave."""
    queue.says.append(News(sold_out={G5: "interrupted"}))
    _start(cluster)

    (held,) = cluster.at(cluster.now_s, cluster.book.withheld).sold_out
    assert (G5, "interrupted") == (held.offering, held.reason)


def test_a_dry_run_turns_only_loops_that_read(cluster: Cluster, queue: _Queue, cloud: _Queued) -> None:
    """A queue belongs to another while Kerf only watches; prices belong to all."""
    _start(cluster, is_dry_run=True)
    cluster.at(30)

    assert ([], 1) == (queue.turns_s, cloud.priced)
