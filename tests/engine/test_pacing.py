"""002-11: so many launches a minute, counted from the claims that are there."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.pacing import left
from kerf.model.bounds import MAX_LAUNCHES, bounds_of
from kerf.model.causes import Paced
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.testing.builders import NOON_S, a_claim, a_market, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("m5.xlarge", cpu=4))


def planned(pods: Iterable[Pod], created_s: Iterable[float] = (), pace: str = "3", **given: Any) -> Plan:
    """The plan at noon with a pool of that pace, whose claims were made then; deleted ones, so that none has room."""
    pools = [a_pool(own_annotations={MAX_LAUNCHES: pace, **given.pop("annotations", {})})]
    claims = [a_claim(f"c{i}", created_s=at, deleted_s=at) for i, at in enumerate(created_s)]
    return plan(a_snapshot(pods=pods, pools=pools, claims=claims, **given), MARKET, Options(with_bound=False))


def singles(number: int, **given: Any) -> list[Pod]:
    """Pods of which each takes a node of its own."""
    return [a_pod(f"p{i}", cpu=3, **given) for i in range(number)]


def launched(made: Plan) -> list[str]:
    """The pods that nodes are launched for, by name."""
    return [placed.pod.partition("/")[2] for launch in made.launches for placed in launch.pods]


def test_the_first_in_the_queue_are_served_and_the_others_say_when() -> None:
    """A full bucket holds one minute's launches, and a third of a minute gives the next."""
    made = planned([*singles(5)[1:], a_pod("p0", cpu=3, created_s=5), a_pod("first", cpu=3, priority=9)])

    assert ["first", "p1", "p2"] == launched(made)
    assert ["launch-0", "launch-1", "launch-2"] == [launch.name for launch in made.launches]
    assert {"paced: NodePool pool makes 3 launches a minute; next in 20s"} == {u.reason for u in made.unplaced}
    assert ["default/p0", "default/p3", "default/p4"] == [u.pod for u in made.unplaced]
    assert Paced in {type(each.innermost) for each in made.unplaced}


@pytest.mark.parametrize(
    "created_s, expected",
    [((), 3), ((-60, -60, -60), 3), ((-30, -30, -30), 1), ((0, 0, 0), 0), ((-19, -19, -19), 0), ((-20, -20, -20), 1)],
)
def test_what_was_launched_lately_counts(created_s: tuple[float, ...], expected: int) -> None:
    """Also what has been deleted meanwhile and is still there."""
    assert expected == len(planned(singles(5), [NOON_S + each for each in created_s]).launches)


def test_without_a_pace_nothing_waits() -> None:
    """The annotation of the template goes before the pool's own, as for every other."""
    pool = a_pool(own_annotations={MAX_LAUNCHES: "1"}, annotations={MAX_LAUNCHES: "9"})

    assert 5 == len(plan(a_snapshot(pods=singles(5), pools=[pool]), MARKET).launches)
    assert 5 == len(plan(a_snapshot(pods=singles(5), pools=[a_pool()]), MARKET).launches)


def test_a_group_is_launched_whole_and_overdraws_the_bucket_once() -> None:
    """Four of a group at a pace of two; then nothing until all four are paid back."""
    labels = {"kerf.dev/pod-group": "g", "kerf.dev/pod-group-min": "4"}
    made = planned([*singles(4, labels=labels), a_pod("later", cpu=3, created_s=1)], pace="2")

    assert ["p0", "p1", "p2", "p3"] == launched(made)
    assert ["paced: NodePool pool makes 2 launches a minute; next in 1m30s"] == [u.reason for u in made.unplaced]
    assert 3 == len(planned(singles(5), [NOON_S - 120] * 4, pace="3").launches)


def test_a_group_that_waits_for_the_pace_says_so() -> None:
    """It is not launched in parts."""
    labels = {"kerf.dev/pod-group": "g", "kerf.dev/pod-group-min": "4"}
    made = planned(singles(4, labels=labels), [NOON_S] * 3)

    assert [] == launched(made)
    text = "group g: 0 of 4 have room: paced: NodePool pool makes 3 launches a minute; next in 20s"
    assert {text} == {unplaced.reason for unplaced in made.unplaced}
    assert Paced in {type(each.innermost) for each in made.unplaced}


def test_floors_keep_the_pace_and_come_after_pods() -> None:
    """What is missing is said on the pool."""
    made = planned(singles(2), annotations={"kerf.dev/min-nodes": "6"})

    assert [1, 1, 0] == [len(launch.pods) for launch in made.launches]
    assert (("pool", "paced: NodePool pool makes 3 launches a minute; next in 20s"),) == made.unmet_floors


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "ten", "", "1e3"])
def test_a_pace_that_cannot_be_read_stops_the_pool(text: str) -> None:
    """What was meant is not known."""
    why = f"annotation kerf.dev/max-launches-per-minute: expected a whole number above 0 such as 10, got {text!r}"

    assert why == bounds_of({MAX_LAUNCHES: text}).invalid
    assert [] == launched(planned(singles(1), pace=text))


@given(pace=st.integers(1, 60), ages_s=st.lists(st.integers(0, 600), max_size=30), wait_s=st.integers(0, 600))
def test_no_minute_has_more_than_twice_the_pace(pace: int, ages_s: list[int], wait_s: int) -> None:
    """The bucket never holds more than a minute's launches, grows with time alone, and is full after long enough."""
    created = [NOON_S - age for age in ages_s]
    now, later = left(created, pace, NOON_S), left(created, pace, NOON_S + wait_s)

    assert now <= later <= pace * 60_000
    assert later == min(pace * 60_000, now + wait_s * 1000 * pace)
    assert left([*created, NOON_S], pace, NOON_S) == now - 60_000
