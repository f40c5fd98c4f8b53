"""All rules, asked one after the other."""

from collections.abc import Callable, Iterator

from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.world import World
from kerf.model.plan import NodePlacement
from kerf.model.violations import Violation
from kerf.verify import cards, changes, figures, going, groups, nodes, offers, once, outcomes, quotas, topology, windows
from kerf.verify.after import After
from kerf.verify.proposal import Proposal, of_command, of_decision

RULES: tuple[Callable[[After], Iterator[Violation]], ...] = (
    once.violations,
    outcomes.violations,
    windows.violations,
    nodes.violations,
    nodes.attached,
    cards.violations,
    offers.violations,
    quotas.violations,
    changes.violations,
    groups.violations,
    topology.violations,
    going.violations,
    figures.violations,
)


def violations(proposal: Proposal) -> tuple[Violation, ...]:
    """Every breach of a rule, in the order of the rules; none where the proposal holds.

    Cost: linear in the pods that it places, in the pods of nodes that get or lose some, and in nodes.
    """
    after = After(proposal)
    return tuple(found for rule in RULES for found in rule(after))


def of_plan(decision: Decision) -> tuple[Violation, ...]:
    """What is wrong with a decision for waiting pods."""
    return violations(of_decision(decision))


def of_going(world: World, command: Command, coming: tuple[NodePlacement, ...] = ()) -> tuple[Violation, ...]:
    """What is wrong with a command that takes nodes away, beside the places that waiting pods are promised."""
    return violations(of_command(world, command, coming))
