"""A step that moves pods to save money is held to what is bought for these pods afterwards."""

from collections.abc import Iterable

import pytest

from kerf.controllers.moves import Moves
from kerf.model.constraints import Requirements
from kerf.model.instancetypes import OfferingKey
from kerf.model.plan import Launch, PlacedPod
from kerf.model.pods import Owner, Pod
from kerf.model.rejections import Workload
from kerf.testing.builders import a_pod
from tests.controllers.cluster import Cluster

WEB, DB = ("default", "ReplicaSet", "web"), ("default", "ReplicaSet", "db")
SAVED = 500


def made_by(workload: Workload, name: str) -> Pod:
    """A pod of a workload."""
    namespace, kind, owner = workload
    return a_pod(name, namespace=namespace, owner=Owner(kind, owner))


def bought(pods: Iterable[Pod], price_micro: int) -> Launch:
    """A node for these pods."""
    placed = tuple(PlacedPod(pod.key) for pod in pods)
    return Launch("a", "gpu", OfferingKey("g5.xlarge", "a", "spot"), price_micro, placed, Requirements())


def failed(cluster: Cluster, moves: Moves, pods: list[Pod], price_micro: int, *others: Pod) -> list[str]:
    """The names of the workloads that stay after such a purchase for some that were moved, and for others."""
    launch, known = bought([*pods, *others], price_micro), {pod.key: pod for pod in pods}
    found: frozenset[Workload] = cluster.at(cluster.now_s, lambda: moves.failed_by([launch], known))
    return sorted(name for _, _, name in found)


def begun(cluster: Cluster) -> Moves:
    """A step that moves pods of two workloads off a node."""
    moves = Moves()
    pods = [made_by(WEB, "old-web"), made_by(DB, "old-db")]
    cluster.at(0, lambda: moves.begin(["old"], pods, SAVED))
    return moves


def evicted(cluster: Cluster, moves: Moves, at_s: float, claim: str = "old") -> None:
    """A pod of the node is evicted."""
    cluster.at(at_s, lambda: moves.evicted(claim))


@pytest.mark.parametrize(("price_micro", "stay"), [(SAVED - 1, []), (SAVED, ["db", "web"])])
def test_all_that_was_moved_stays_once_what_is_bought_costs_what_was_saved(
    cluster: Cluster, price_micro: int, stay: list[str]
) -> None:
    """A node for one pod of a step that saved ten is no failure of it."""
    moves = begun(cluster)
    evicted(cluster, moves, 100)

    assert stay == failed(cluster, moves, [made_by(WEB, "new-web")], price_micro)


def test_purchases_for_one_step_add_up(cluster: Cluster) -> None:
    """Each counts by the share of its pods that were moved."""
    moves = begun(cluster)
    evicted(cluster, moves, 100)
    other = made_by(("default", "ReplicaSet", "api"), "api")

    assert [] == failed(cluster, moves, [made_by(WEB, "a")], 2 * (SAVED - 100), other)
    assert ["db", "web"] == failed(cluster, moves, [made_by(DB, "b")], 2 * 100, other)


@pytest.mark.parametrize(("after_s", "stay"), [(179, ["db", "web"]), (181, [])])
def test_what_is_bought_later_has_another_reason(cluster: Cluster, after_s: float, stay: list[str]) -> None:
    """Three minutes after the last eviction of the step."""
    moves = begun(cluster)
    evicted(cluster, moves, 100)
    evicted(cluster, moves, 200)
    evicted(cluster, moves, 300, "another")
    cluster.at(200 + after_s)

    assert stay == failed(cluster, moves, [made_by(WEB, "a")], SAVED)


def test_before_the_first_eviction_nothing_is_displaced(cluster: Cluster) -> None:
    """Its nodes are still coming up; and what was never moved has nothing to do with it."""
    moves = begun(cluster)
    assert [] == failed(cluster, moves, [made_by(WEB, "a")], SAVED)

    evicted(cluster, moves, 100)
    assert [] == failed(cluster, moves, [made_by(("other", "ReplicaSet", "web"), "a")], SAVED)


def test_a_workload_that_grows_is_no_failure_of_the_step(cluster: Cluster) -> None:
    """Who scales up after a move cannot keep the pods of others where they are: as many as were moved count."""
    moves = begun(cluster)
    evicted(cluster, moves, 100)
    more = [made_by(WEB, f"web-{n}") for n in range(10)]

    assert [] == failed(cluster, moves, more, 10 * (SAVED - 1))
    assert [] == failed(cluster, moves, [made_by(WEB, "web-10")], SAVED)
    assert ["db", "web"] == failed(cluster, moves, [made_by(DB, "db-0")], 1)
