"""Each rule, broken on purpose: it is caught by its name, and nothing is left of it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.world import World
from kerf.model.nodepool import EMPTY
from kerf.model.plan import GpuUse
from kerf.model.violations import PlanRule
from kerf.verify.check import of_going, of_plan
from kerf.verify.passing import passing, passing_command
from tests.verify.faults import COMMANDS, DECISIONS, fleet, instances, placed, plain, promised_card, slices

Made = Callable[[], tuple[World, Command]]


@pytest.mark.parametrize("decide", [slices, plain, placed, instances])
def test_what_is_decided_holds(decide: Callable[[], Decision]) -> None:
    """The decisions in which faults are planted break no rule, and are handed on as they are."""
    decision = decide()

    assert () == of_plan(decision)
    assert passing(decision).decision is decision


def test_a_command_that_is_decided_holds() -> None:
    """The same of the command."""
    world, command = fleet()

    assert () == of_going(world, command)
    assert passing_command(world, command).command is command


@pytest.mark.parametrize("rule, plant", DECISIONS)
def test_a_planted_fault_is_caught_by_its_rule(rule: PlanRule, plant: Callable[[], Decision]) -> None:
    """A decision that breaks a rule is named by it, with what was expected and what came."""
    found = [each for each in of_plan(plant()) if each.rule == rule]

    assert [] != found
    assert all(each.object and each.expected != each.got for each in found)


@pytest.mark.parametrize("rule, plant", COMMANDS)
def test_a_planted_fault_of_a_command_is_caught_by_its_rule(rule: PlanRule, plant: Made) -> None:
    """The same of nodes that go."""
    assert rule in {each.rule for each in of_going(*plant())}


@pytest.mark.parametrize("rule, plant", DECISIONS)
def test_what_is_left_of_a_decision_holds(rule: PlanRule, plant: Callable[[], Decision]) -> None:
    """Nothing that breaks a rule is left, every pod is placed once or refused, and the breach is told."""
    decision = plant()
    checked = passing(decision)
    left = checked.decision

    assert rule in {each.rule for each in checked.violations}
    assert () == of_plan(left)
    placed_pods = [each.pod for launch in left.launches for each in launch.pods]
    placed_pods += [each.pod.pod for each in left.placements]
    refused = [pod.key for refusal in left.refusals for pod in refusal.pods]
    assert {pod.key for pod in left.world.snapshot.pending} <= {*placed_pods, *refused}
    assert not {*placed_pods} & {*refused}


@pytest.mark.parametrize("rule, plant", COMMANDS)
def test_no_node_goes_by_a_command_that_breaks_a_rule(rule: PlanRule, plant: Made) -> None:
    """What is left of it holds; where nothing is left there is no command."""
    checked = passing_command(*plant())

    assert rule in {each.rule for each in checked.violations}
    assert checked.command is None or checked.command.deletions
    assert checked.command is None or () == of_going(plant()[0], checked.command)


def test_every_rule_is_broken_once() -> None:
    """A rule that no fault is known of may be one that nothing breaks."""
    assert set(PlanRule) == {rule for rule, _ in (*DECISIONS, *COMMANDS)}


@pytest.mark.parametrize("running_mib, waiting_mib", [(9000, 12000), (9000, 13000), (11000, 11000)])
def test_a_card_is_promised_once(running_mib: int, waiting_mib: int) -> None:
    """A node whose pod would move to a card that is promised to a pod that waits stays."""
    world, command, coming = promised_card(running_mib, waiting_mib)

    assert {PlanRule.CARD_MEMORY} == {each.rule for each in of_going(world, command, coming)}
    assert passing_command(world, command, coming).command is None


def test_a_card_that_holds_both_is_enough() -> None:
    """Where the card holds the pods that run and the one that waits, the node goes."""
    world, command, coming = promised_card(9000, 4000)

    assert () == of_going(world, command, coming)


def test_a_pod_that_ends_with_its_node_is_no_breach() -> None:
    """A node without pods that need a place goes with one that ends there and still holds its card: the figures of the
    command count that card, which is paid for no more."""
    world, command = fleet()
    node, other = world.snapshot.nodes
    ending = tuple(replace(pod, deleted_s=world.snapshot.taken_at_s + 30) for pod in node.pods)
    there = World(replace(world.snapshot, nodes=(replace(node, pods=ending), other)), world.market)
    first = replace(command.deletions[0], reason=EMPTY, moved=())

    assert () == of_going(there, replace(command, deletions=(first,), gpus=GpuUse(0, 10_000)))
