"""Phases of windows, and which pods they let in."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.engine.headroom.windows.phases import Turn, next_change_s, turn_of
from kerf.engine.headroom.windows.warm import still_needed
from kerf.engine.options import Options
from kerf.model.constraints import Requirements, Toleration
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode
from kerf.model.uses import Use
from kerf.model.windows import (
    ALLOW,
    CLOSED,
    OPEN,
    WARMING,
    WINDOW_GATE,
    WINDOW_LABEL,
    CapacityWindow,
    Quota,
    Reservation,
    WarmCapacity,
    WindowStatus,
)
from kerf.sharing.nvidia.whole import Whole
from kerf.sharing.registry import FAMILIES
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, cards

HOUR = 3600
GPU_HOUR = 10_000 * HOUR
LETS: Any = {Use.WINDOW: "*"}
MARKET = a_market(an_instance_type("gpu", devices=cards(1), cpu=4))


def a_window(name: str = "day", *, opens: int = 12, hours: int = 2, **given: Any) -> CapacityWindow:
    """Opens every day at an hour of UTC, by default at the time of every snapshot; `status` counts as current."""
    status = replace(given.pop("status", WindowStatus()), observed_generation=1)
    selector = Requirements.of_labels({WINDOW_LABEL: name})
    fields = {"selector": selector, "lead_time_s": 600, "status": status, **given}
    return CapacityWindow(name, f"0 {opens} * * *", "UTC", hours * HOUR, **fields)


def held(name: str, window: str = "day", **given: Any) -> Pod:
    """A pod that waits for a window and asks for a whole card."""
    gates = (WINDOW_GATE, *given.pop("gates", ()))
    labels = {WINDOW_LABEL: window, **given.pop("labels", {})}
    asked = {"gpu": 1, "uid": name, "labels": labels, "scheduling_gates": gates, **given}
    return a_pod(name, **asked)


def planned(*windows: CapacityWindow, pods: tuple[Pod, ...] = (), **given: Any) -> Plan:
    """The plan at noon, with one pool of one-card nodes."""
    made = {"pools": [a_pool("gpu", own_annotations=LETS)], **given}
    windowed = tuple(pod for pod in pods if pod.node_name)
    snapshot = a_snapshot(pods=pods, windows=tuple(sorted(windows, key=lambda w: w.name)), windowed=windowed, **made)
    return plan(snapshot, MARKET, Options(with_bound=False))


def warm(replicas: int, **given: Any) -> tuple[WarmCapacity, ...]:
    """So many places for a card."""
    exclusive = given.pop("is_exclusive", False)
    tolerations = (Toleration(WINDOW_LABEL, "Equal", "day", "NoSchedule"),) if exclusive else ()
    return (WarmCapacity(replicas, a_pod("t", namespace="", gpu=1, tolerations=tolerations), exclusive),)


def reasons(made: Plan) -> dict[str, str]:
    """The code of each pod that is held."""
    return {each.pod: each.reason.partition(":")[0] for each in made.unplaced}


# Phases.


@pytest.mark.parametrize(
    "offset_s, phase, opens_s",
    [(-601, CLOSED, 0), (-600, WARMING, 0), (-1, WARMING, 0), (0, OPEN, 0), (7199, OPEN, 0), (7200, CLOSED, 86400)],
)
def test_phases_follow_the_schedule(offset_s: int, phase: str, opens_s: int) -> None:
    """Warming from the lead time before, open from the second of its opening to that of its end."""
    expected = Turn(phase, NOON_S + opens_s, NOON_S + opens_s + 2 * HOUR)

    assert expected == turn_of(a_window(), NOON_S + offset_s)


def test_what_is_over_does_not_begin_again_when_the_clock_goes_back() -> None:
    """The latest opening that began is remembered, and nothing before it opens."""
    over = WindowStatus(CLOSED, last_opened_s=NOON_S, last_closed_s=NOON_S + 2 * HOUR)

    turn = turn_of(a_window(status=over), NOON_S + HOUR)

    assert (CLOSED, NOON_S + 86400) == (turn.phase, turn.opens_s)


def test_what_is_open_stays_open_when_the_clock_goes_back() -> None:
    """Its pods run; closing and opening anew would charge them to another opening."""
    begun = WindowStatus(OPEN, NOON_S, NOON_S + 2 * HOUR, last_opened_s=NOON_S)

    assert Turn(OPEN, NOON_S, NOON_S + 2 * HOUR) == turn_of(a_window(status=begun), NOON_S - 300)


def test_a_window_that_was_changed_may_open_again() -> None:
    """Who makes today's window longer after its end wants it to open."""
    over = WindowStatus(CLOSED, last_opened_s=NOON_S, last_closed_s=NOON_S + 2 * HOUR)
    longer = replace(a_window(hours=4, status=over), generation=2)

    assert OPEN == turn_of(longer, NOON_S + 3 * HOUR).phase


def test_a_window_that_was_moved_ends() -> None:
    """An opening that its new schedule does not have is over."""
    begun = WindowStatus(OPEN, NOON_S, NOON_S + 2 * HOUR, last_opened_s=NOON_S)
    moved = replace(a_window(opens=20, status=begun), generation=2)

    assert Turn(CLOSED, NOON_S + 8 * HOUR, NOON_S + 10 * HOUR) == turn_of(moved, NOON_S + HOUR)


def test_a_shorter_lead_time_lets_nothing_go() -> None:
    """It is learned while the first nodes come: what is kept ready then stays."""
    begun = WindowStatus(WARMING, NOON_S, NOON_S + 2 * HOUR)

    assert WARMING == turn_of(a_window(lead_time_s=60, status=begun), NOON_S - 500).phase


def test_the_next_change_is_known() -> None:
    """When to look again, without polling."""
    assert [-600, 0, 7200] == [(next_change_s(a_window(), NOON_S + at) or 0) - NOON_S for at in (-900, -600, 60)]


def test_an_invalid_window_never_opens() -> None:
    """Nobody knows when it should."""
    assert Turn(CLOSED) == turn_of(a_window(invalid="spec.schedule: expected"), NOON_S)


# Pods.


def test_an_open_window_lets_its_pods_in() -> None:
    """Bought for without the gate, and the gate may be opened since there is a place."""
    made = planned(a_window(), pods=(held("p"),))

    assert (["default/p"], {}) == ([p.pod for launch in made.launches for p in launch.pods], reasons(made))
    assert [("default/p", (WINDOW_GATE,), "day", NOON_S)] == [
        (each.pod, each.gates, each.window, each.opened_s) for each in made.admissions
    ]


def test_a_pod_without_a_place_is_not_let_in() -> None:
    """Its gate stays closed; the reason is that of any pod."""
    made = planned(a_window(), pods=(held("p", gpu=9),))

    assert ((), ["default/p"]) == (made.admissions, [each.pod for each in made.unplaced])


@pytest.mark.parametrize(
    "windows, code",
    [
        ((a_window(opens=13),), "WindowClosed"),
        ((), "WindowNotFound"),
        ((a_window("other"),), "WindowNotFound"),
        ((a_window(namespaces=("research",)),), "WindowNotFound"),
        ((a_window(invalid="spec.timeZone: no"),), "WindowInvalid"),
        ((a_window(quota=Quota(GPU_HOUR)),), "QuotaExhausted"),
    ],
)
def test_a_held_pod_learns_why(windows: tuple[CapacityWindow, ...], code: str) -> None:
    """Nothing is bought, and nothing opens."""
    made = planned(*windows, pods=(held("p"),))

    assert ({"default/p": code}, (), ()) == (reasons(made), made.launches, made.admissions)
    assert ["windows"] == [each.stage.value for each in made.unplaced]


def test_the_next_opening_is_named() -> None:
    """Of several windows the one that opens first, on its own clock."""
    made = planned(replace(a_window(opens=8), time_zone="Asia/Shanghai"), pods=(held("p"),))

    assert "CapacityWindow day is closed and opens at 2026-01-06 08:00 Asia/Shanghai" in made.unplaced[0].reason


def test_gates_of_others_hold_all_the_same() -> None:
    """Ours is not opened as long as somebody else holds the pod."""
    made = planned(a_window(), pods=(held("p", gates=("example.com/other",)),))

    assert (["held"], ()) == ([each.stage.value for each in made.unplaced], made.admissions)


def test_outside_of_its_hours_a_window_may_let_pods_through() -> None:
    """Without an opening and without a quota."""
    made = planned(a_window(opens=20, outside=ALLOW, quota=Quota(1)), pods=(held("p"),))

    assert [("day", None, None)] == [(each.window, each.opened_s, each.until_s) for each in made.admissions]


def test_an_open_window_admits_where_another_is_closed() -> None:
    """Any open one does, and is charged."""
    both = Requirements.of_labels({WINDOW_LABEL: "x"})
    windows = (a_window("early", opens=2, selector=both), a_window("late", selector=both))

    assert ["late"] == [each.window for each in planned(*windows, pods=(held("p", "x"),)).admissions]


def test_a_pod_that_no_api_has_seen_counts_as_held() -> None:
    """A manifest with the label is planned as the admission policy would make it."""
    pod = a_pod("p", gpu=1, labels={WINDOW_LABEL: "day"})

    assert {"default/p": "WindowClosed"} == reasons(planned(a_window(opens=20), pods=(pod,)))


# Quota.


def test_a_quota_is_reserved_before_anything_runs() -> None:
    """Twenty pods of one card in a window of two hours with three GPU-hours: one is let in, not twenty."""
    made = planned(a_window(quota=Quota(3 * GPU_HOUR)), pods=tuple(held(f"p-{n}") for n in range(20)))

    assert (["default/p-0"], 19, 1) == ([a.pod for a in made.admissions], len(made.unplaced), len(made.launches))
    assert [(10_000, NOON_S + 2 * HOUR)] == [(each.share, each.until_s) for each in made.admissions]


def test_a_deadline_makes_a_reservation_smaller() -> None:
    """Pods that end after half an hour need half a GPU-hour."""
    pods = tuple(held(f"p-{n}", active_deadline_s=1800) for n in range(5))

    assert 4 == len(planned(a_window(quota=Quota(2 * GPU_HOUR)), pods=pods).admissions)


def test_what_is_reserved_and_used_counts() -> None:
    """One GPU-hour is used, another reserved: of three one is left, which lasts half of what the pod may take."""
    other = Reservation("default/x", "x", 10_000, NOON_S, NOON_S + HOUR)
    status = WindowStatus(settled=(("default", GPU_HOUR),), reservations=(other,))
    made = planned(a_window(quota=Quota(3 * GPU_HOUR), status=status), pods=(held("p"),))

    assert "has 1 GPU-hours left for namespace default, the pod would reserve 2 GPU-hours" in made.unplaced[0].reason


@pytest.mark.parametrize("per, admitted", [("Namespace", 2), ("Window", 1)])
def test_a_quota_is_of_each_namespace_or_of_all(per: str, admitted: int) -> None:
    """As `per` says."""
    pods = (held("p"), held("q", namespace="research"))

    assert admitted == len(planned(a_window(quota=Quota(3 * GPU_HOUR, per)), pods=pods).admissions)


def test_what_an_opener_reserved_before_it_died_is_the_pods_own() -> None:
    """The next life lets it in with that, and not beside it."""
    own = Reservation("default/p", "p", 10_000, NOON_S - 5, NOON_S + 2 * HOUR)
    made = planned(
        a_window(quota=Quota(2 * GPU_HOUR + 50_000), status=WindowStatus(reservations=(own,))), pods=(held("p"),)
    )

    assert ["default/p"] == [each.pod for each in made.admissions]


# Order.


def test_an_open_window_with_priority_comes_first() -> None:
    """001-11: before the pod's own priority: one node is left, and the pod of the window gets it."""
    pods = (a_pod("strong", gpu=1, uid="s", priority=1000), held("weak"))
    made = planned(a_window(queue_priority=5), pods=pods, pools=[], nodes=[node()])

    assert ["default/weak"] == [placement.pod.pod for placement in made.placements]


# Warm capacity.


def node(name: str = "n", **given: Any) -> ClusterNode:
    """A node with one card, free."""
    amounts: dict[str, str | int] = {"cpu": 4, "memory": "16Gi", "pods": 58, "nvidia.com/gpu": 1}
    there = a_node(name, pool="gpu", instance_type="gpu", allocatable=amounts, **given)
    return ClusterNode(there, claim(name), (), Whole().inventory(there) or (), "whole")


def claim(name: str = "n") -> NodeClaim:
    """The claim of such a node."""
    return a_claim(f"c-{name}", pool="gpu", instance_type="gpu", node_name=name)


@pytest.mark.parametrize("opens, launches", [(13, 0), (12, 2)])
def test_capacity_is_kept_from_the_lead_time_on(opens: int, launches: int) -> None:
    """Nothing an hour before, all of it when the window is open."""
    assert launches == len(planned(a_window(opens=opens, warm=warm(2))).launches)


def test_capacity_is_bought_before_the_opening() -> None:
    """A lead time of more than an hour: the window opens at 13:00."""
    made = planned(a_window(opens=13, lead_time_s=2 * HOUR, warm=warm(2)))

    assert ["CapacityWindow day keeps 1 place ready for 1 GPU; no GPU in the cluster has that free"] * 2 == [
        launch.why for launch in made.launches
    ]


def test_what_its_own_pods_use_counts_towards_it() -> None:
    """Four places, one pod runs and one is let in now: two more places are kept."""
    running = replace(held("r"), node_name="n", spec=replace(held("r").spec, scheduling_gates=()))
    made = planned(a_window(warm=warm(4)), pods=(running, held("p")))
    pods = [placed.pod for launch in made.launches for placed in launch.pods]

    assert ["capacitywindow:day/warm-0-0", "capacitywindow:day/warm-0-1", "default/p"] == sorted(pods)


def test_small_pods_take_parts_of_a_place() -> None:
    """Two that together ask for half of it leave the other places alone."""
    window = a_window(warm=(WarmCapacity(2, a_pod("w", gpu=4)),))
    small = [a_pod(name, gpu=1) for name in ("a", "b")]

    assert [1] == still_needed(window, small, FAMILIES)
    assert [2] == still_needed(window, (), FAMILIES)


def test_pods_come_before_what_is_only_kept() -> None:
    """One node is there: the pod has it, and the place is bought anew."""
    made = planned(a_window(warm=warm(2)), pods=(held("p"),), nodes=[node()])

    assert {"default/p": "n"} == {p.pod.pod: p.node for p in made.placements}
    assert ["capacitywindow:day/warm-0-0"] == [p.pod for launch in made.launches for p in launch.pods]


def test_exclusive_capacity_is_on_nodes_of_its_own() -> None:
    """They get the taint, and a node without it does not do."""
    made = planned(a_window(warm=warm(1, is_exclusive=True)), nodes=[node()])

    assert [("kerf.dev/window=day:NoSchedule",)] == [tuple(map(str, launch.taints)) for launch in made.launches]


def test_an_exclusive_node_that_is_there_is_used() -> None:
    """Nothing is bought twice."""
    window = a_window(warm=warm(1, is_exclusive=True))
    made = planned(window, nodes=[node(taints=(window.taint,))])

    assert ((), ["n"]) == (made.launches, [placement.node for placement in made.placements])


def test_places_that_nothing_holds_are_said() -> None:
    """With the reason of any pod."""
    made = planned(a_window(warm=warm(2)), pools=[a_pool("gpu", limits={"nodes": 1}, own_annotations=LETS)])

    assert (1, ["limits"]) == (len(made.launches), [each.stage.value for each in made.unplaced])


def test_a_place_is_bought_once_while_its_node_starts() -> None:
    """The claim names the places that it was bought for."""
    annotations = {
        "kerf.dev/planned-pods": '{"capacitywindow:day/warm-0-0": [0]}',
        "kerf.dev/planned-offering": "gpu/z/c",
    }
    starting = a_claim("c", pool="gpu", instance_type="gpu", reached=(), annotations=annotations)

    assert not starting.is_true(INITIALIZED)
    assert () == planned(a_window(warm=warm(1)), claims=[starting]).launches
