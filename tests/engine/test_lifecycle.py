"""The stage a claim is in, what it lacks and when it is given up, read off claim and node alone."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.config import Settings
from kerf.controllers.nodeclaim.stages import deadlines_of, message_of, reason_of
from kerf.engine.lifecycle import (
    ClaimStage,
    DevicesMissing,
    EphemeralTaintLeft,
    FewerCards,
    FewerParts,
    Missing,
    NodeNotReady,
    NoNode,
    NoRegister,
    NotLaunched,
    SmallerCard,
    StartupTaintLeft,
    TooLittle,
    UnhealthyCards,
    cards_missing,
    drain_deadline_s,
    is_learnt,
    is_on_its_way,
    progress,
    stage_of,
)
from kerf.model.constraints import Taint
from kerf.model.gpu import DeviceState, Partition
from kerf.model.nodeclaim import INITIALIZED, LAUNCHED, REGISTERED, RELABELLED, TRUE, Condition, NodeClaim
from kerf.model.nodes import Node
from kerf.model.promises import Promises, written
from kerf.model.times import instant_text
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import a_claim, a_node, cards, resources
from tests.engine.worlds import HAMI, a_hami_node

MINUTE_S = 60
AT_S = 10_000.0
HAMI_FAMILY, WHOLE = family_named("hami", FAMILIES), family_named("whole", FAMILIES)
STARTUP, TEAM = Taint("cilium", "", "NoSchedule"), Taint("team", "ml", "NoSchedule")
PROMISED = written(Promises(devices=cards(1)))


def registered(**given: Any) -> NodeClaim:
    """A claim whose node has joined at 10,000 s."""
    reached = tuple(Condition(stage, TRUE, since_s=AT_S) for stage in (LAUNCHED, REGISTERED))
    return a_claim(conditions=reached, created_s=1, **given)


def missing(claim: NodeClaim, node: Node | None) -> Missing | None:
    """What keeps a registered claim from being initialised, on a node of HAMi's."""
    found = progress(claim, node, HAMI_FAMILY, deadlines_of(Settings()))
    assert found is not None
    return found.missing


@pytest.mark.parametrize(
    ("reached", "stage"),
    [
        ((), ClaimStage.LAUNCHED),
        ((LAUNCHED,), ClaimStage.REGISTERED),
        ((LAUNCHED, REGISTERED), ClaimStage.INITIALIZED),
        # A relabelled node initialises anew, whatever stands after it.
        ((LAUNCHED, INITIALIZED), ClaimStage.REGISTERED),
        ((LAUNCHED, REGISTERED, INITIALIZED), None),
    ],
)
def test_a_claim_is_in_the_first_stage_it_has_not_reached(reached: tuple[str, ...], stage: ClaimStage | None) -> None:
    """In the order of its life, which is not that of the conditions' names."""
    assert stage == stage_of(a_claim(reached=reached))


def test_a_launch_has_five_minutes_from_the_claim() -> None:
    """As in Karpenter; the node is looked at later."""
    found = progress(a_claim(reached=(), created_s=100), None, WHOLE, deadlines_of(Settings()))

    assert found is not None
    assert (ClaimStage.LAUNCHED, 100, 100 + 5 * MINUTE_S) == (found.stage, found.since_s, found.deadline_s)
    assert NotLaunched() == found.missing
    assert [False, True] == [found.is_overdue(at_s) for at_s in (399.9, 400)]


def test_a_node_has_fifteen_minutes_from_its_launch_to_join() -> None:
    """Nothing is missing any more once it is there."""
    claim = a_claim(conditions=(Condition(LAUNCHED, TRUE, since_s=AT_S),), created_s=1)
    absent, there = (progress(claim, node, WHOLE, deadlines_of(Settings())) for node in (None, a_node()))

    assert absent is not None
    assert there is not None
    assert (ClaimStage.REGISTERED, AT_S, AT_S + 15 * MINUTE_S) == (absent.stage, absent.since_s, absent.deadline_s)
    assert (NoNode(), None) == (absent.missing, there.missing)


def test_devices_have_ten_minutes_from_the_node_being_ready() -> None:
    """Not from its registration: the DaemonSet of the device plugin starts on a ready node."""
    claim, node = registered(annotations=PROMISED), a_node(labels=HAMI, ready_since_s=AT_S + 300)
    found = progress(claim, node, HAMI_FAMILY, deadlines_of(Settings()))

    assert found is not None
    assert (ClaimStage.DEVICES, INITIALIZED) == (found.stage, found.stage.condition)
    assert (AT_S + 300, AT_S + 300 + 10 * MINUTE_S) == (found.since_s, found.deadline_s)


def test_a_relabelled_node_has_ten_minutes_from_then() -> None:
    """An instant that a person broke counts as never."""
    node = a_node(labels=HAMI, ready_since_s=AT_S)

    def deadline_s(text: str) -> float:
        claim = registered(annotations={**PROMISED, RELABELLED: text})
        found = progress(claim, node, HAMI_FAMILY, deadlines_of(Settings()))
        assert found is not None
        return found.deadline_s

    assert AT_S + 500 + 600 == deadline_s(instant_text(AT_S + 500))
    assert AT_S + 600 == deadline_s("yesterday")


def test_an_initialised_claim_makes_no_progress() -> None:
    """Nothing is awaited, and nothing is given up."""
    assert progress(a_claim(), None, WHOLE, deadlines_of(Settings())) is None


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (None, NoNode()),
        (a_node(is_ready=False, taints=(STARTUP,)), NodeNotReady()),
        (a_node(taints=(STARTUP,), labels=HAMI), StartupTaintLeft(STARTUP)),
        (
            a_node(taints=(Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),)),
            EphemeralTaintLeft(Taint("node.kubernetes.io/not-ready", "", "NoSchedule")),
        ),
        (a_node(labels=HAMI), NoRegister(1, TEAM)),
        (a_hami_node(a_node(allocatable={"cpu": 4})), TooLittle("example.com/licence", 0, 2)),
        (a_hami_node(a_node(allocatable={"cpu": 4, "example.com/licence": 2})), None),
    ],
)
def test_the_first_thing_that_is_missing_is_named(node: Node | None, expected: Missing | None) -> None:
    """In Karpenter's order, the cards after the taints, the requests last."""
    asked = resources(cpu=1, **{"example.com/licence": 2})
    claim = registered(annotations=PROMISED, requests=asked, taints=(TEAM,), startup_taints=(STARTUP,))

    assert expected == missing(claim, node)


def test_requests_of_a_relabelled_node_are_of_another_configuration() -> None:
    """They were those of the pods it was bought for."""
    claim = registered(requests=resources(**{"nvidia.com/gpu": 1}), annotations={RELABELLED: instant_text(AT_S)})

    assert missing(claim, a_node()) is None


def test_what_a_register_lacks_is_found_card_by_card() -> None:
    """Fewer cards, unhealthy ones, and a smaller one; more is nothing, and so is a register without memory."""
    predict = HAMI_FAMILY.predict
    two, small, one = predict(cards(2), {}, {}), predict(cards(2, 22000), {}, {}), predict(cards(1), {}, {})

    assert cards_missing(two, two) is cards_missing(one, two) is None
    assert FewerCards(1, 2) == cards_missing(two, one)
    assert SmallerCard(22000, 22888) == cards_missing(two, (two[0], small[1]))
    assert UnhealthyCards(1, 2) == cards_missing(two, (two[0], replace(two[1], healthy=False)))
    assert cards_missing(two, tuple(replace(d, memory_mib=0) for d in two)) is None


def test_parts_of_gpus_are_counted_by_their_resource() -> None:
    """Kubelet shows sums only, so no card is compared with another."""

    def cut(count: int) -> DeviceState:
        part = Partition("nvidia.com/mig-1g.5gb", count, memory_mib=4864, cores=14)
        return replace(HAMI_FAMILY.predict(cards(1), {}, {})[0], partitions=(part,))

    assert cards_missing((cut(2),), (cut(2),)) is None
    assert FewerParts("nvidia.com/mig-1g.5gb", 1, 2, has_all_cards=True) == cards_missing((cut(2),), (cut(1),))


ALL: tuple[DevicesMissing, ...] = (
    NoRegister(1),
    FewerCards(1, 2),
    UnhealthyCards(1, 2),
    SmallerCard(1, 2),
    FewerParts("r", 1, 2, has_all_cards=True),
    FewerParts("r", 1, 2, has_all_cards=False),
    TooLittle("r", 1, 2),
)


def test_only_cards_that_are_there_and_smaller_are_learnt() -> None:
    """The pool notes their size; what is not there may come the next time."""
    assert [False, False, False, True, True, False, False] == list(map(is_learnt, ALL))


def test_each_lack_has_its_words() -> None:
    """The reason is one CamelCase word, because conditions demand it."""
    node = (NotLaunched(), NoNode(), NodeNotReady(), StartupTaintLeft(TEAM), EphemeralTaintLeft(TEAM))

    assert all(reason_of(each).isalpha() and message_of(each) for each in (*node, *ALL))
    assert "0 of 1 GPUs registered: the device plugin has not reported yet (does it tolerate the taint " in message_of(
        NoRegister(1, TEAM)
    )


def test_a_claim_is_on_its_way_until_its_node_registers_or_it_goes() -> None:
    """Its pods wait for it as long."""
    launched = a_claim(reached=(LAUNCHED,))

    assert [True, False, False] == [is_on_its_way(c) for c in (launched, a_claim(), replace(launched, deleted_s=1))]


def test_a_drain_ends_by_the_grace_period_of_the_claim() -> None:
    """Without one it waits for its pods for ever."""
    going = a_claim(deleted_s=100, termination_grace_period_s=60)

    assert 160 == drain_deadline_s(going)
    assert drain_deadline_s(replace(going, termination_grace_period_s=None)) is None
    assert drain_deadline_s(replace(going, deleted_s=None)) is None
