"""The status of a window: what begins, ends, is learned and is charged."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.headroom.windows.openings import Seen, advanced, is_over, learned_lead_s, settled
from kerf.engine.headroom.windows.phases import turn_of
from kerf.model.nodeclaim import INITIALIZED, TRUE, Condition, NodeClaim
from kerf.model.pods import RUNNING, SUCCEEDED, Pod
from kerf.model.windows import (
    ADMITTED,
    CLOSED,
    CLOSING,
    OPEN,
    WARMING,
    WINDOW_GATE,
    WINDOW_LABEL,
    CapacityWindow,
    Quota,
    Reservation,
    WindowStatus,
)
from kerf.testing.builders import NOON_S, a_claim, a_pod
from tests.engine.headroom.windows.test_windows import GPU_HOUR, HOUR, a_window, warm

CARD = 10_000


def after(window: CapacityWindow, offset_s: float, **seen: Any) -> CapacityWindow:
    """The window with its status as it is so many seconds after noon."""
    found = Seen(turn_of(window, NOON_S + offset_s), seen.pop("pools", ("gpu",)), **seen)
    return replace(window, status=advanced(window, found, NOON_S + offset_s))


def told(window: CapacityWindow, condition: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    held = window.status.condition(condition)
    assert held is not None
    return held.status, held.reason, held.message


def test_an_opening_is_remembered_from_its_beginning_to_its_end() -> None:
    """And what the one before has used is forgotten when the next begins."""
    window = a_window(quota=Quota(GPU_HOUR), status=WindowStatus(settled=(("default", 5),)))
    warming = after(window, -60)
    opened = after(warming, 1)
    closed = after(replace(opened, status=replace(opened.status, settled=(("default", 7),))), 2 * HOUR)

    assert [WARMING, OPEN, CLOSED] == [each.status.phase for each in (warming, opened, closed)]
    assert [(("default", 5),), (), (("default", 7),)] == [each.status.settled for each in (warming, opened, closed)]
    assert [(NOON_S, None), (NOON_S, NOON_S + 2 * HOUR)] == [
        (each.status.last_opened_s, each.status.last_closed_s) for each in (opened, closed)
    ]


def test_the_same_look_gives_the_same_status() -> None:
    """Nothing is written when nothing has changed."""
    once = after(a_window(warm=warm(2)), 60, warm=(2, 1))

    assert once.status == after(once, 90, warm=(2, 1)).status


def test_an_opening_that_was_slept_through_is_closed_and_the_next_one_opens() -> None:
    """Kerf was down for a day."""
    opened = after(a_window(), 1)
    later = after(opened, 86400 + 1)

    assert (OPEN, NOON_S + 86400, None) == (later.status.phase, later.status.last_opened_s, later.status.last_closed_s)


def test_pods_that_are_left_make_it_closing() -> None:
    """Closed, and not yet over."""
    assert CLOSING == after(after(a_window(), 1), 2 * HOUR, is_ending=True).status.phase


@pytest.mark.parametrize(
    "window, pools, expected",
    [
        (a_window(), (), ("True", "Ready", "")),
        (a_window(invalid="spec.schedule: bad"), (), ("False", "Invalid", "it opens nothing: spec.schedule: bad")),
        (
            a_window(node_pools=("gpu-pol",)),
            ("cpu", "gpu-pool"),
            (
                "False",
                "NodePoolNotFound",
                "spec.nodePools[0]: expected a NodePool of the cluster, got 'gpu-pol' (hint: is `gpu-pool` meant?)",
            ),
        ),
        (
            a_window(node_pools=("x",)),
            ("gpu",),
            (
                "False",
                "NodePoolNotFound",
                "spec.nodePools[0]: expected a NodePool of the cluster, got 'x' (hint: there is gpu)",
            ),
        ),
    ],
)
def test_ready_says_what_keeps_it_from_being_followed(
    window: CapacityWindow, pools: tuple[str, ...], expected: tuple[str, str, str]
) -> None:
    """With the place, what came and a hint."""
    assert expected == told(after(window, 1, pools=pools), "Ready")


def test_warm_ready_counts() -> None:
    """False until all of it is there, and when nothing is kept."""
    window = a_window(warm=warm(4))

    assert ("False", "Closed", "nothing is kept ready now") == told(after(window, -HOUR), "WarmReady")
    assert ("False", "Warming", "3 of 4 ready") == told(after(window, 1, warm=(4, 3)), "WarmReady")
    assert ("True", "Ready", "4 of 4 ready") == told(after(window, 1, warm=(4, 4)), "WarmReady")


# Lead times.


@pytest.mark.parametrize(
    "seconds, lead_s",
    [([], 600), ([125], 180), ([90], 120), ([91], 180), ([60] * 19 + [900], 120), ([60] * 9 + [900], 960)],
)
def test_a_lead_time_is_the_95th_percentile_in_whole_minutes(seconds: list[int], lead_s: int) -> None:
    """With half a minute for the decision itself; ten minutes before any node was seen."""
    assert lead_s == learned_lead_s(seconds)


def joined(name: str, took_s: int, at_s: float = NOON_S) -> NodeClaim:
    """A claim whose node and devices were ready so long after it."""
    up = Condition(INITIALIZED, TRUE, INITIALIZED, since_s=at_s)
    return a_claim(name, pool="gpu", created_s=at_s - took_s, conditions=(up,))


def test_lead_times_are_learned_and_outlive_the_nodes() -> None:
    """What nodes took is kept in the status when they have gone, the latest last, and none is counted twice."""
    window = after(a_window(lead_time_s=None), 1, claims=(joined("b", 130, NOON_S + 2), joined("a", 70)))
    again = after(window, 2, claims=(joined("c", 80, NOON_S + 9), joined("b", 130, NOON_S + 2)))

    assert (("a", 70), ("b", 130)) == window.status.lead_times_s
    assert ((("a", 70), ("b", 130), ("c", 80)), 180) == (again.status.lead_times_s, again.status.lead_time_s)


def test_only_so_many_are_kept() -> None:
    """The latest twenty."""
    claims = tuple(joined(f"c-{n:02}", 60, NOON_S + n) for n in range(30))

    assert ("c-10", "c-29", 20) == (
        (kept := after(a_window(), 1, claims=claims).status.lead_times_s)[0][0],
        kept[-1][0],
        len(kept),
    )


# Quota.


def pod(**given: Any) -> Pod:
    """A pod that was let in at noon."""
    return a_pod(
        "p", uid="u", annotations={ADMITTED: "day@2026-01-05T12:00:00Z"}, labels={WINDOW_LABEL: "day"}, **given
    )


def charged(held: Pod | None, offset_s: float) -> tuple[tuple[tuple[str, int], ...], int]:
    """What is settled, and how many reservations are left, of a card reserved for an hour from noon."""
    reservation = Reservation("default/p", "u", CARD, NOON_S, NOON_S + HOUR)
    window = a_window(quota=Quota(GPU_HOUR), status=WindowStatus(reservations=(reservation,)))
    found = settled(window.status, window, lambda _: held, NOON_S + offset_s)
    return found.settled, len(found.reservations)


def test_a_pod_that_runs_keeps_its_reservation() -> None:
    """Whole, also after the window has closed."""
    assert ((), 1) == charged(pod(node_name="n", phase=RUNNING), 5 * HOUR)


def test_a_pod_that_has_ended_gives_back_what_it_did_not_use() -> None:
    """It ran from 12:05 to 12:15 of its hour."""
    ended = pod(node_name="n", phase=SUCCEEDED, started_s=NOON_S + 300)

    assert ((("default", CARD * 600),), 0) == charged(ended, 900)


def test_use_after_the_end_is_charged_too() -> None:
    """Two hours of one that were reserved."""
    assert ((("default", CARD * 2 * HOUR),), 0) == charged(pod(node_name="n", phase=SUCCEEDED), 2 * HOUR)


def test_a_pod_that_is_gone_unseen_has_used_its_time() -> None:
    """Kerf was down: nobody knows when it ended."""
    assert ((("default", CARD * 1800),), 0) == charged(None, 1800)


def test_another_pod_of_its_name_is_not_the_one() -> None:
    """A StatefulSet has made it anew."""
    assert ((("default", CARD * 60),), 0) == charged(replace(pod(), uid="other"), 60)


@pytest.mark.parametrize("offset_s, left", [(30, 1), (90, 0)])
def test_a_gate_that_was_never_opened_gives_all_back(offset_s: int, left: int) -> None:
    """Its opener may be at work, or has died: after a minute nobody is."""
    held = pod(scheduling_gates=(WINDOW_GATE,))

    assert ((), left) == charged(held, offset_s)


@pytest.mark.parametrize(
    "opened, offset_s, expected",
    [
        ("day@2026-01-05T12:00:00Z", 60, False),
        ("day@2026-01-05T12:00:00Z", 2 * HOUR, True),
        ("day@2026-01-04T12:00:00Z", 60, True),
        ("day", 2 * HOUR, False),
    ],
)
def test_an_opening_is_over_for_the_pods_that_it_let_in(opened: str, offset_s: int, expected: bool) -> None:
    """Those of an earlier one too; not those that came outside of any."""
    window = after(after(a_window(), 1), offset_s)

    assert expected == is_over(window, replace(pod(), annotations={ADMITTED: opened}), NOON_S + offset_s)
