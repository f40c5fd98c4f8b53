"""NodeRegistrationHealthy: what the last four claims of a pool say of it."""

import pytest

from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.controllers.nodepool.registration import RegistrationHealth
from kerf.manifests.decode import decode_object
from kerf.model.nodeclaim import Condition
from kerf.model.nodepool import NODE_REGISTRATION_HEALTHY, NodePool
from kerf.sim.objects import Json
from tests.controllers.cluster import FRESH, Cluster, pool

MINUTE = 60
NODE_CLASS: Json = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {"role": "one"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


def begin(cluster: Cluster) -> RegistrationHealth:
    """What watches pools, and the claims' own controller, on a pool `gpu`."""
    health = RegistrationHealth(cluster.state, cluster.ports)
    cluster.start(health, Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings, health))
    return health


def condition(cluster: Cluster) -> Condition | None:
    """The condition of the pool, without its time."""
    raw = cluster.api.get("NodePool", "", "gpu")
    value = decode_object(raw) if raw is not None else None
    assert isinstance(value, NodePool)
    return next((each for each in value.conditions if each.type == NODE_REGISTRATION_HEALTHY), None)


def said(cluster: Cluster) -> tuple[str, str]:
    """Status and reason of the condition."""
    held = condition(cluster)
    assert held is not None
    return held.status, held.reason


def outcomes(cluster: Cluster, health: RegistrationHealth, told: str) -> None:
    """Claims come out one after the other: `+` registered, `-` did not."""
    for each in told:
        call = health.registered("gpu") if each == "+" else health.failed("gpu", "RegistrationFailed", "why")
        cluster.done(call)


@pytest.mark.parametrize(
    "told, status",
    [
        ("+", "True"),
        ("--", "False"),
        ("+-", "True"),
        ("+--", "False"),
        ("--++", "False"),
        ("--+++", "True"),
        ("-+-", "False"),
        ("+++-+++-", "True"),
    ],
)
def test_two_failures_of_the_last_four_are_too_many(cluster: Cluster, told: str, status: str) -> None:
    """As in Karpenter, whose buffer has four places and whose threshold is half of them."""
    cluster.put(pool())
    outcomes(cluster, begin(cluster), told)

    assert status == said(cluster)[0]


def test_one_failure_says_nothing(cluster: Cluster) -> None:
    """A pool that never registered a node has no condition yet."""
    cluster.put(pool())
    outcomes(cluster, begin(cluster), "-")

    assert condition(cluster) is None


def test_a_restart_goes_on_from_what_the_pool_says(cluster: Cluster) -> None:
    """False counts as two failures, True as one success: one more failure does not end it, and three successes do."""
    cluster.put(pool())
    outcomes(cluster, begin(cluster), "--")
    cluster.crash()
    health = begin(cluster)
    outcomes(cluster, health, "++")
    assert ("False", "RegistrationFailed") == said(cluster)

    outcomes(cluster, health, "+")
    assert ("True", NODE_REGISTRATION_HEALTHY) == said(cluster)


@pytest.mark.parametrize("kind, name", [("NodePool", "gpu"), ("EC2NodeClass", "default")])
def test_what_was_known_ends_with_the_spec_it_was_known_of(cluster: Cluster, kind: str, name: str) -> None:
    """A change of the pool or of its NodeClass may be the fix; the failures before it count no more."""
    cluster.put(pool(), NODE_CLASS)
    health = begin(cluster)
    outcomes(cluster, health, "--")
    cluster.change(kind, name, spec={"weight": 7} if kind == "NodePool" else {"role": "other"})
    assert "Unknown" == said(cluster)[0]

    outcomes(cluster, health, "-")
    assert "Unknown" == said(cluster)[0]
    outcomes(cluster, health, "-")
    assert "False" == said(cluster)[0]


def test_a_status_that_is_written_changes_nothing(cluster: Cluster) -> None:
    """Only a new generation does."""
    cluster.put(pool(), NODE_CLASS)
    outcomes(cluster, begin(cluster), "--")
    cluster.change("EC2NodeClass", "default", status={"conditions": [{"type": "Ready", "status": "False"}]})

    assert "False" == said(cluster)[0]


def test_nodes_that_never_register_are_said_on_their_pool(cluster: Cluster) -> None:
    """Two claims are given up after fifteen minutes; the third registers, which does not outweigh them."""
    cluster.put(pool())
    for name in ("gpu-1", "gpu-2", "gpu-3"):
        claim = cluster.claimed(name, reached=("Launched",))
    cluster.joined(claim, **FRESH)
    begin(cluster)
    assert ("True", NODE_REGISTRATION_HEALTHY) == said(cluster)
    cluster.at(16 * MINUTE)

    held = condition(cluster)
    assert held is not None
    told = ("False", "RegistrationFailed", "its node never registered with the cluster")
    assert told == (held.status, held.reason, held.message)


def test_launches_that_fail_are_said_with_the_reason_of_the_cloud(cluster: Cluster) -> None:
    """It is the reason of the claims' own condition Launched."""
    cluster.put(pool())
    failed = Condition("Launched", "Unknown", "LaunchFailed", "quota of 0 vCPUs", cluster.clock.now_s())
    for name in ("gpu-1", "gpu-2"):
        cluster.claimed(name, conditions=(failed,), reached=())
    cluster.cloud.throttle(float("inf"))
    begin(cluster)
    cluster.at(6 * MINUTE)

    held = condition(cluster)
    assert held is not None
    assert ("False", "LaunchFailed", "quota of 0 vCPUs") == (held.status, held.reason, held.message)
