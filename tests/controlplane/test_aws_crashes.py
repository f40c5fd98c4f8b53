"""kill -9 of Kerf at every kind of call of AWS, before the cloud has heard of it and before Kerf has heard the answer.

Its next life finds what is there: one instance for each claim, and at the end nothing is left. The kinds are those of a
scale-up and a scale-down from an empty account and back; a kind that is new fails the first test.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from kerf.clouds.aws.tagging import CLAIM_UID
from kerf.testing.faultproxy.faults import AFTER, BEFORE, Hold
from tests.controlplane.cluster import Cluster
from tests.controlplane.eks import KEY, SOON_S, Eks, control_plane, eks_cluster
from tools.controlplane.process import Program
from tools.controlplane.server import Binaries

GROUPS = {
    "buying": ("CreateInstanceProfile", "AddRoleToInstanceProfile", "CreateLaunchTemplate", "CreateFleet"),
    "ending": (
        "TerminateInstances",
        "DeleteLaunchTemplate",
        "RemoveRoleFromInstanceProfile",
        "DeleteInstanceProfile",
    ),
    "asking": (
        "CreateFleet (dry run)",
        "CreateLaunchTemplate (dry run)",
        "RunInstances (dry run)",
        "DescribeCluster",
        "DescribeImages",
        "DescribeInstanceStatus",
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeInstances",
        "DescribeLaunchTemplates",
        "DescribeSecurityGroups",
        "DescribeSpotPriceHistory",
        "DescribeSubnets",
        "GetInstanceProfile",
        "GetParameter",
        "GetProducts",
        "GetQueueUrl",
        "ListInstanceProfiles",
        "ReceiveMessage",
    ),
}
_LIFE_S = 20
"""A life more takes no longer."""
QUICK = ("buying",)
"""The groups that the gate runs; the others are long."""


@pytest.fixture(scope="module")
def site(binaries: Binaries) -> Iterator[Cluster]:
    """Each test leaves it as empty as it was."""
    with control_plane(binaries) as made:
        yield made


@pytest.fixture
def lives(site: Cluster, moto_url: str) -> Iterator["Lives"]:
    """Kerf on an empty cluster; nothing may be left at its end."""
    with eks_cluster(site, moto_url) as made:
        yield Lives(made)


class Lives:
    """Kerf, which is started again whenever it was killed at one of the holds."""

    def __init__(self, eks: Eks) -> None:
        self.eks = eks
        self.holds: list[Hold] = []

    def begin(self, *kills: tuple[str, str]) -> None:
        """The first life; it and those after it are killed at these calls, (action, when)."""
        self.holds = [self.eks.proxy.faults.hold(*each, KEY) for each in kills]
        self._program: Program = self.eks.begin().program
        self._struck: set[int] = set()

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until it holds, through as many lives as that takes."""
        self.eks.site.until(lambda: self._strike() and holds(), what, SOON_S + _LIFE_S * len(self.holds))

    def _strike(self) -> bool:
        for number, hold in enumerate(self.holds):
            if hold.reached.is_set() and number not in self._struck:
                self._struck.add(number)
                self._program.kill()
                hold.drop()
        if self._program.pid is None:
            self._program.start()
        return True


def grow_and_shrink(lives: Lives) -> None:
    """Two pods come to two nodes and go, and so do pool and EC2NodeClass: one instance a claim, and nothing is left."""
    eks = lives.eks
    eks.node_class("gpu")
    eks.pool("gpu", "g5.xlarge")
    eks.deployment("gpu", "gpu", 2, {"nvidia.com/gpu": "1"})
    lives.until(lambda: 2 == len(eks.site.pods("Running")), "two pods run")
    lives.until(lambda: 2 == len(eks.proxy.instances.living()), "two instances run")

    eks.plane.delete("Deployment", "gpu", "default")
    lives.until(lambda: [] == eks.proxy.instances.living(), "no instance runs")
    eks.plane.delete("NodePool", "gpu")
    eks.plane.delete("EC2NodeClass", "gpu")
    lives.until(lambda: (0, 0, 0) == eks.left, "nothing is left in AWS")
    lives.until(lambda: [] == eks.plane.list("NodeClaim") == eks.plane.list("Node"), "nothing is left in the cluster")
    claims = Counter(each.tags[CLAIM_UID] for each in eks.proxy.instances.all())
    assert {1} == set(claims.values())


def test_every_kind_of_call_is_tried(lives: Lives) -> None:
    """An undisturbed run makes no call that is not listed above, so that none is forgotten."""
    lives.begin()
    grow_and_shrink(lives)

    # A call is on record once it is answered, and a look at the queue lasts up to 20 s.
    lives.until(lambda: lives.eks.proxy.count("ReceiveMessage") > 0, "the queue has answered")
    calls = [call for call in lives.eks.proxy.calls if call.access_key == KEY]
    dry = {True: " (dry run)", False: ""}
    made = {call.name.partition(":")[2] + dry[call.parameters.get("DryRun") == "true"] for call in calls}
    assert made == {action for group in GROUPS.values() for action in group}


@pytest.mark.parametrize(
    "group", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in GROUPS]
)
def test_a_kill_at_a_call_changes_nothing_that_counts(lives: Lives, group: str) -> None:
    """Each kind of the group, before and after, in as many lives: the same end. What only asks has one moment."""
    moments = (AFTER,) if group == "asking" else (BEFORE, AFTER)
    kills = [(action, when) for action in GROUPS[group] for when in moments]
    lives.begin(*kills)
    grow_and_shrink(lives)

    assert [] == [kill for kill, hold in zip(kills, lives.holds, strict=True) if not hold.reached.is_set()]


def test_lost_replies_change_nothing_that_counts(lives: Lives) -> None:
    """Of every call that changes something."""
    for action in (*GROUPS["buying"], *GROUPS["ending"]):
        lives.eks.proxy.faults.lose_reply(action)
    lives.begin()
    grow_and_shrink(lives)
