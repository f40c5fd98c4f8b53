"""Room that ProvisioningRequests ask for, and what their conditions say of it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.explain.plan import plan
from kerf.engine.explain.requests import advanced, verdict
from kerf.engine.headroom.bookings import bookings
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.causes import FieldRefusal, Name, Quoted
from kerf.model.nodeclaim import TRUE, Condition
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import (
    BEST_EFFORT_ATOMIC,
    CHECK_CAPACITY,
    CONSUMES,
    PROVISIONED,
    PodSet,
    PodTemplate,
    ProvisioningRequest,
)
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.uses import Use
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("m5.xlarge", cpu=4))
UP = 2


def a_request(class_name: str = BEST_EFFORT_ATOMIC, count: int = 3, **given: Any) -> ProvisioningRequest:
    """For pods of which each takes a node of its own."""
    fields = {"name": "r", "uid": "r", "created_s": NOON_S - 60, **given}
    return ProvisioningRequest("team", class_name=class_name, pod_sets=(PodSet("big", count),), **fields)


def booked(age_s: float, **given: Any) -> ProvisioningRequest:
    """Provisioned so long ago."""
    return a_request(conditions=(Condition(PROVISIONED, TRUE, "CapacityIsFound", "", NOON_S - age_s),), **given)


def world(*requests: ProvisioningRequest, pods: Iterable[Pod] = (), up: int = UP, **given: Any) -> ClusterSnapshot:
    """A pool, and nodes that are up and empty but for `pods` that name them."""
    pools = [a_pool(limits={"nodes": given.pop("most", 9)}, own_annotations={Use.BOOKING: "team"})]
    nodes, claims = [a_node(f"n{i}") for i in range(up)], [a_claim(f"c{i}", node_name=f"n{i}") for i in range(up)]
    templates = given.pop("templates", (PodTemplate("team", "big", a_pod("big", namespace="team", cpu=3)),))
    grouped = tuple(pod for pod in pods if pod.node_name)
    more = {"pod_templates": templates, "provisioning_requests": requests, "grouped": grouped}
    return a_snapshot(pods=pods, pools=pools, nodes=nodes, claims=claims, **more, **given)


def made(snapshot: ClusterSnapshot) -> Plan:
    """Its plan."""
    return plan(snapshot, MARKET, Options(with_bound=False))


def decided(snapshot: ClusterSnapshot) -> Decision:
    """What is decided for it."""
    return decide(World(snapshot, MARKET), Options(with_bound=False))


def told(snapshot: ClusterSnapshot) -> dict[str, tuple[str, str, str]]:
    """The conditions of its first request."""
    booking = bookings(snapshot)[0]
    seen = verdict(booking, decided(snapshot))
    found = advanced(booking, seen, snapshot.taken_at_s).conditions
    return {each.type: (each.status, each.reason, each.message) for each in found}


def consumer(number: int, node: str = "", **given: Any) -> Pod:
    """A pod that takes the room of the request."""
    key = given.pop("key", CONSUMES[0])
    fields = {"cpu": 3, "uid": f"p{number}", "node_name": node, "phase": "Running" if node else "Pending", **given}
    return a_pod(f"p{number}", namespace="team", annotations={key: "r"}, **fields)


def test_what_is_missing_is_bought_for_all_together() -> None:
    """Two places are there, the third is bought; nothing where the limit leaves no room for it."""
    assert (2, 1) == (len(made(world(a_request())).placements), len(made(world(a_request())).launches))
    assert ((), ()) == (made(world(a_request(), most=2)).placements, made(world(a_request(), most=2)).launches)


def test_it_is_provisioned_once_all_places_are_on_nodes_that_are_up() -> None:
    """Kueue admits the workload then."""
    accepted = ("True", "Accepted", "Kerf looks for room for it")

    assert accepted == told(world(a_request()))["Accepted"]
    assert ("False", "NodesStarting", "2 of 3 places on nodes that are up, the others are starting") == (
        told(world(a_request()))["Provisioned"]
    )
    assert ("True", "CapacityIsFound", "3 places on nodes that are up, kept for 10m") == (
        told(world(a_request(), up=3))["Provisioned"]
    )


def test_without_room_it_waits_and_says_what_is_missing() -> None:
    """Cluster Autoscaler's reason, with the figures of a plan."""
    text = "2 of 3 have room: limit nodes 2 of NodePool pool: 2 in use, 0 planned, 1 more needed"

    assert ("False", "CapacityIsNotFound", text) == told(world(a_request(), most=2))["Provisioned"]
    assert "Failed" not in told(world(a_request(), most=2))


@pytest.mark.parametrize(
    "given, reason",
    [
        ({"parameters": {"noRetry": "true"}}, "CapacityIsNotFound"),
        ({"parameters": {"ValidUntilSeconds": "60"}}, "Expired"),
        ({"created_s": NOON_S - 7 * 24 * 3600}, "Expired"),
    ],
)
def test_it_fails_where_it_may_not_wait_longer(given: dict[str, Any], reason: str) -> None:
    """At once, after the time that it states, or after seven days."""
    status, found, message = told(world(a_request(**given), most=2))["Failed"]

    assert ("True", reason) == (status, found)
    assert "limit nodes 2 of NodePool pool" in message


@pytest.mark.parametrize(
    "parameters", [{}, {"noRetry": "false"}, {"ValidUntilSeconds": "x"}, {"ValidUntilSeconds": "61"}]
)
def test_else_it_does_not_fail(parameters: dict[str, str]) -> None:
    """A parameter that makes no sense counts as none."""
    assert "Failed" not in told(world(a_request(parameters=parameters), most=2))


def test_a_pace_is_no_failure() -> None:
    """The room comes by itself, so that a request that may not be tried again waits for it."""
    snapshot = world(a_request(parameters={"noRetry": "true"}))
    (pool,) = snapshot.node_pools
    slow = replace(pool, own_annotations={**pool.own_annotations, "kerf.dev/max-launches-per-minute": "1"})
    now = [replace(n, claim=n.claim and replace(n.claim, created_s=NOON_S)) for n in snapshot.nodes]

    assert "Failed" not in told(replace(snapshot, node_pools=(slow,), nodes=tuple(now)))


def test_a_check_buys_nothing() -> None:
    """It is told what the nodes that are up have, all or none."""
    assert () == made(world(a_request(CHECK_CAPACITY))).launches
    assert () == made(world(a_request(CHECK_CAPACITY))).placements
    status, reason, message = told(world(a_request(CHECK_CAPACITY)))["Provisioned"]
    assert ("False", "CapacityIsNotFound") == (status, reason)
    assert message.startswith("2 of 3 have room: no node that is up has room: node n0: ")
    assert "True" == told(world(a_request(CHECK_CAPACITY, 2)))["Provisioned"][0]


def test_a_check_does_not_count_nodes_on_their_way() -> None:
    """Somebody else may have bought them."""
    kind = MARKET.types[0]
    coming = a_claim("late", reached=(), capacity=kind.capacity, allocatable=kind.allocatable)
    snapshot = world(a_request(CHECK_CAPACITY, 1), up=0)

    assert () == made(replace(snapshot, nodes=a_snapshot(claims=[coming]).nodes)).placements


@pytest.mark.parametrize("key", CONSUMES)
def test_pods_that_come_for_it_take_its_room(key: str) -> None:
    """One virtual pod fewer for each, and nothing is bought for any: not even for one too many."""
    snapshot = world(booked(0), pods=[consumer(i, key=key) for i in range(4)], up=3)
    found = made(snapshot)

    assert () == bookings(snapshot)[0].pods
    assert () == found.launches
    assert ["team/p0", "team/p1", "team/p2"] == [each.pod.pod for each in found.placements]
    (late,) = found.unplaced
    assert late.reason.startswith("ProvisioningRequest team/r has no room for it: node n0: ")


@pytest.mark.parametrize("key", CONSUMES)
def test_a_pod_that_names_a_request_which_is_not_there_says_so(key: str) -> None:
    """Room is not what it lacks; the hint is to apply the request."""
    found = made(replace(world(booked(0), pods=[consumer(0, key=key)], up=0), provisioning_requests=()))
    (late,) = found.unplaced

    assert "ProvisioningRequest team/r, whose room it asks for, does not exist" == late.reason
    assert late.hint.startswith("apply the request")


@pytest.mark.parametrize("number", [1, 3, 5])
def test_pods_that_wait_for_a_request_leave_it_all_its_places(number: int) -> None:
    """They take places once it is provisioned; until then a place is theirs only where they are on a node."""
    snapshot = world(a_request(), pods=[consumer(i) for i in range(number)])
    found = made(snapshot)

    assert (2, 1) == (len(found.placements), len(found.launches))
    assert {"waits until ProvisioningRequest team/r is provisioned, and takes a place of it"} == {
        each.reason for each in found.unplaced
    }
    assert number == len(found.unplaced)
    assert ("False", "NodesStarting") == told(snapshot)["Provisioned"][:2]


def test_pods_on_nodes_count_for_a_request_that_is_not_provisioned() -> None:
    """The scheduler binds them as soon as a node comes up; all of them there is all places there."""
    one, all_ = ([consumer(i, f"n{i}") for i in range(number)] for number in (1, 3))

    assert (
        "2 of 3 places on nodes that are up, the others are starting"
        == told(world(a_request(), pods=one))["Provisioned"][2]
    )
    assert "2 of 3 have room: limit" in told(world(a_request(), pods=one, most=2))["Provisioned"][2]
    assert "3 places on nodes that are up, kept for 10m" == told(world(a_request(), pods=all_, up=3))["Provisioned"][2]


def test_room_is_kept_until_it_is_taken_or_the_time_is_over() -> None:
    """What is left of it: one place of three, then none."""
    there = [consumer(0, "n0"), consumer(1, "n1")]

    assert 1 == len(bookings(world(booked(0), pods=there))[0].pods)
    assert 0 == len(bookings(world(booked(600)))[0].pods)
    assert "CapacityReservationTimeExpired" == told(world(booked(600)))["BookingExpired"][1]
    assert "BookingExpired" not in told(world(booked(599)))
    all_there = [*there, consumer(2, "n2")]
    assert "CapacityBookingConsumed" == told(world(booked(0), pods=all_there, up=3))["BookingExpired"][1]


def test_each_pod_takes_of_the_set_that_asks_the_same() -> None:
    """A small pod leaves the large place alone."""
    templates = tuple(PodTemplate("team", name, a_pod(name, cpu=cpu)) for name, cpu in (("big", 3), ("small", 1)))
    request = replace(a_request(), pod_sets=(PodSet("big", 1), PodSet("small", 2)))
    snapshot = world(request, pods=[consumer(0, "n0", cpu=1)], templates=templates)

    assert ["0-0", "1-0"] == [pod.name for pod in bookings(snapshot)[0].pods]


WRONG = FieldRefusal(Name("cpu"), Quoted("1"), Quoted("2"))


@pytest.mark.parametrize(
    "templates, problem",
    [
        ((), "there is no PodTemplate team/big"),
        ((PodTemplate("other", "big", a_pod()),), "there is no PodTemplate team/big"),
        (
            (PodTemplate("team", "big", a_pod(invalid=WRONG)),),
            "PodTemplate team/big: cpu: expected 1, got 2",
        ),
    ],
)
def test_a_template_that_is_missing_or_wrong_fails_it(templates: tuple[PodTemplate, ...], problem: str) -> None:
    """Not at once: the template may be late."""
    assert ("True", "FailedToCreatePods", problem) == told(world(a_request(), templates=templates))["Failed"]
    assert {} == told(world(a_request(created_s=NOON_S - 29), templates=templates))


def test_a_plan_says_at_once_that_a_template_is_missing() -> None:
    """Files do not come late, and nobody waits half a minute for the answer of a command."""
    snapshot = world(a_request(created_s=NOON_S), templates=())

    assert 3 == len(made(snapshot).unplaced)
    assert {"ProvisioningRequest team/r: there is no PodTemplate team/big"} == {
        each.reason for each in made(snapshot).unplaced
    }
    assert "there is no PodTemplate team/big" == verdict(bookings(snapshot)[0], decided(snapshot)).refusal


@pytest.mark.parametrize(
    "parameters, said",
    [
        (
            {"ValidUntilSeconds": "abc"},
            "parameters.ValidUntilSeconds is ignored: expected seconds, 1 or more, got 'abc'",
        ),
        ({"ValidUntilSeconds": ""}, "parameters.ValidUntilSeconds is ignored: expected seconds, 1 or more, got ''"),
        ({"noRetry": "maybe"}, """parameters.noRetry is ignored: expected "true" or "false", got 'maybe'"""),
    ],
)
def test_a_parameter_that_makes_no_sense_is_reported(parameters: dict[str, str], said: str) -> None:
    """With what was expected, where whoever wrote it looks."""
    assert f"Kerf looks for room for it; {said}" == told(world(a_request(parameters=parameters)))["Accepted"][2]


@pytest.mark.parametrize("over", ["Failed", "BookingExpired", "CapacityRevoked"])
def test_what_is_over_is_left_alone(over: str) -> None:
    """So are requests of other classes, and those that are being deleted."""
    gone = (
        a_request(conditions=(Condition(over, TRUE),)),
        a_request("queued-provisioning.gke.io"),
        a_request(deleted_s=NOON_S),
    )

    assert () == bookings(world(*gone))


def test_older_requests_come_first_and_pods_before_them() -> None:
    """Two places: a pod takes one, the older request the other, the younger none."""
    requests = (a_request(count=1, name="a"), a_request(count=1, name="b", created_s=NOON_S - 90))
    found = made(world(*requests, pods=[a_pod("p", cpu=3)], most=2))

    placed = {each.pod.pod for each in found.placements}
    assert {"default/p", "provisioningrequest:team.b/0-0"} == placed
    assert [Placeholder(Keeper.REQUEST, "team/a")] == [Placeholder.of(each.pod) for each in found.unplaced]
