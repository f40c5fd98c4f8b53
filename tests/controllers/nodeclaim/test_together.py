"""Who comes first to the nodes of one purchase, and which of these stay closed although their own pods are there."""

import json
from functools import partial
from typing import Any

import pytest

from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pod
from tests.controllers.nodeclaim.test_following import HAMI, OPEN, RESERVED, reserved, state

WEB: Json = {"labelSelector": {"matchLabels": {"app": "web"}}}
BESIDE: Json = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname", **WEB}]
        }
    }
}
SPREAD: Json = {
    "topologySpreadConstraints": [
        {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **WEB}
    ]
}
OF_WEB: Json = {"labels": {"app": "web"}}
LARGE: Json = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "64"}}}]}


def waits(cluster: Cluster, *pods: Json, rounds: Json | None = None) -> None:
    """Pods for which gpu-2 of the same purchase was bought, whose node is still to come."""
    cluster.put(*pods)
    keys: dict[str, list[int]] = {f"default/{each['metadata']['name']}": [] for each in pods}
    notes = {"kerf.dev/follow": "reserve", "kerf.dev/planned-pods": json.dumps(keys)}
    if rounds is not None:
        notes["kerf.dev/planned-rounds"] = json.dumps(rounds)
    cluster.claimed("gpu-2", reached=("Launched",), labels=HAMI, annotations=notes)


@pytest.mark.parametrize(
    ("other", "opened"),
    [
        pytest.param(pod("q", **BESIDE, **OF_WEB), RESERVED, id="it must be beside others, and could come alone"),
        pytest.param(pod("q", **SPREAD, **OF_WEB), RESERVED, id="it is spread with others, and could come here"),
        pytest.param(pod("q", **BESIDE), OPEN, id="nothing that waits goes by it, nor it by that"),
        pytest.param(pod("q", **{**BESIDE, **OF_WEB, **LARGE}), OPEN, id="the node has no room for it"),
        pytest.param(pod("q", **BESIDE, **OF_WEB, nodeSelector={"team": "b"}), OPEN, id="the node is not for it"),
        pytest.param(pod("q"), OPEN, id="it goes by no others"),
    ],
)
def test_a_node_waits_for_pods_that_could_come_there_and_leave_others_alone(
    cluster: Cluster, other: Json, opened: object
) -> None:
    """q is planned elsewhere; once it is there the node opens, whose own pods were all there before."""
    waits(cluster, other)
    reserved(cluster, pod("p"), p=[0])

    cluster.at(1, lambda: cluster.api.bind("default", "p", "node-1"))
    assert opened == state(cluster)

    cluster.at(2, lambda: cluster.api.bind("default", "q", "node-2"))
    assert OPEN == state(cluster)


def test_a_node_waits_for_pods_that_depend_on_its_own(cluster: Cluster) -> None:
    """Though these have no room there: taken by pods of others, it would be where they must not be."""
    waits(cluster, pod("q", **{**BESIDE, **LARGE}))
    reserved(cluster, pod("p", **OF_WEB), p=[0])

    cluster.at(1, lambda: cluster.api.bind("default", "p", "node-1"))
    assert RESERVED == state(cluster)


def test_a_node_does_not_wait_for_the_pods_of_others_for_ever(cluster: Cluster) -> None:
    """Two minutes after its own pod came, when none of those that it waits for has."""
    waits(cluster, pod("q", **BESIDE, **OF_WEB))
    reserved(cluster, pod("p"), p=[0])
    cluster.at(1, lambda: cluster.api.bind("default", "p", "node-1"))
    cluster.at(120)
    assert RESERVED == state(cluster)

    cluster.at(122)
    assert OPEN == state(cluster)


@pytest.mark.parametrize(
    ("coming", "opened"),
    [pytest.param({}, OPEN, id="of another tenant"), pytest.param({**SPREAD, **OF_WEB}, RESERVED, id="its own")],
)
def test_only_pods_that_it_waits_for_keep_a_node_longer(cluster: Cluster, coming: Json, opened: object) -> None:
    """One tenant's pods that never come keep another's node for two minutes, however many others come meanwhile."""
    waits(cluster, pod("never", **SPREAD, **OF_WEB), *(pod(f"c{number}", **coming) for number in range(3)))
    reserved(cluster, pod("p"), p=[0])
    cluster.at(1, lambda: cluster.api.bind("default", "p", "node-1"))
    for number in range(3):
        cluster.at(40 * (number + 1), partial(cluster.api.bind, "default", f"c{number}", "node-2"))
    cluster.at(122)

    assert opened == state(cluster)


def let_in(cluster: Cluster, *names: str) -> list[bool]:
    """Which pods have the toleration of node-1."""
    return [cluster.pod(name).reserved_for == ("gpu-1",) for name in names]


def test_a_pod_that_counts_in_the_spread_of_others_comes_after_them(cluster: Cluster) -> None:
    """It asks for none itself, so it would come when its node does and keep the others off; one of theirs need not."""
    waits(cluster, pod("a", **SPREAD, **OF_WEB))
    reserved(cluster, pod("counted", **OF_WEB), pod("equal", **SPREAD, **OF_WEB), counted=[0], equal=[0])
    assert [False, True] == let_in(cluster, "counted", "equal")

    cluster.at(1, lambda: cluster.api.bind("default", "equal", "node-1"))
    assert ([False], RESERVED) == (let_in(cluster, "counted"), state(cluster))

    cluster.at(2, lambda: cluster.api.bind("default", "a", "node-2"))
    assert ([True], RESERVED) == (let_in(cluster, "counted"), state(cluster))


@pytest.mark.parametrize(
    ("name", "given", "rounds"),
    [
        pytest.param("z", {}, None, id="it is behind in the queue"),
        pytest.param("a", {}, {"default/a": 1}, id="it comes in a later round"),
        pytest.param("a", {"labels": {"app": "other"}}, None, id="another tenant's"),
    ],
)
def test_a_pod_waits_for_none_that_comes_later_or_that_it_cannot_keep_off(
    cluster: Cluster, name: str, given: Any, rounds: Json | None
) -> None:
    """The order is the plan's: who has to wait for it must not be waited for."""
    selector = {"matchLabels": given.get("labels", {"app": "web"})}
    spread: Json = {
        "topologySpreadConstraints": [{**SPREAD["topologySpreadConstraints"][0], "labelSelector": selector}]
    }
    waits(cluster, pod(name, **spread, **given), rounds=rounds)
    reserved(cluster, pod("counted", **OF_WEB), counted=[0])

    assert [True] == let_in(cluster, "counted")


def test_a_pod_of_a_later_round_comes_after_those_that_it_goes_by(cluster: Cluster) -> None:
    """Before them it would be the first of its kind, may run anywhere, and the one planned first could nowhere."""
    waits(cluster, pod("a", **BESIDE, **OF_WEB))
    own = pod("counted", **OF_WEB), pod("second", **BESIDE, **OF_WEB)
    reserved(cluster, *own, rounds={"default/second": 1}, counted=[0], second=[1])
    assert [False, False] == let_in(cluster, "counted", "second")

    cluster.at(1, lambda: cluster.api.bind("default", "a", "node-2"))
    assert [True, False] == let_in(cluster, "counted", "second")

    cluster.at(2, lambda: cluster.api.bind("default", "counted", "node-1"))
    assert [True] == let_in(cluster, "second")


def test_a_pod_that_is_kept_back_comes_with_the_opening_of_its_node(cluster: Cluster) -> None:
    """Two minutes later, where the others do not come."""
    waits(cluster, pod("a", **SPREAD, **OF_WEB))
    reserved(cluster, pod("counted", **OF_WEB), counted=[0])
    cluster.at(119)
    assert RESERVED == state(cluster)

    cluster.at(121)
    assert OPEN == state(cluster)
