"""What is done with a decision that breaks a rule: it is counted, said, and its input kept for a report of the bug.

The rules are in `verify`. A controller carries out what passes, and decides again as it always does.
"""

from collections.abc import Callable, Iterable, Sequence

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.asked import Asked
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Blocked
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.explain.violations import RULES, violation_text
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.plan import NodePlacement
from kerf.model.violations import Violation
from kerf.ports import PlanFeed
from kerf.telemetry import DECISIONS_REFUSED, logger
from kerf.verify.passing import Checked, CheckedCommand, first_passing, passing

_MOST_SAID = 5


class LastLine:
    """Of one controller: says each set of breaches once, however often it is decided the same way."""

    def __init__(self, controller: str, feed: PlanFeed) -> None:
        self._logger, self._feed = logger(controller), feed
        self._said: frozenset[str] = frozenset()

    def note(self, world: World, breaches: Iterable[Violation]) -> None:
        """Take note of what was wrong with a decision; nothing where nothing was."""
        found = tuple(breaches)
        if not found:
            self._said = frozenset()
            return
        for rule in sorted({each.rule for each in found}):
            DECISIONS_REFUSED.labels(rule.value).inc()
        self._feed.refuse(world.snapshot, world.market, found)
        texts = list(dict.fromkeys(map(violation_text, found)))
        if self._said == frozenset(texts):
            return
        self._said = frozenset(texts)
        rules = sorted({each.rule for each in found})
        self._logger.error(
            "a decision broke a rule, and that part of it was not carried out",
            rules=[f"{rule}: {RULES[rule]}" for rule in rules],
            breaches=texts[:_MOST_SAID],
            more=max(0, len(texts) - _MOST_SAID),
            hint="this is a bug of Kerf: please report it with the output of kerf snapshot",
        )


def checked_decision(world: World, options: Options) -> Checked:
    """What is decided, as far as it keeps the rules."""
    return passing(decide(world, options))


def checked_command(
    world: World,
    found: Sequence[Candidate],
    placements: Callable[[], tuple[NodePlacement, ...]],
    *,
    repacks: bool,
    asked: Asked | None,
    plan: Callable[[], Decision],
) -> tuple[CheckedCommand, tuple[Blocked, ...]]:
    """The first command that keeps the rules, what was wrong with others, and nodes that stay for pods that wait."""
    held: tuple[Blocked, ...] = ()

    def propose(left_out: frozenset[str]) -> Command | None:
        nonlocal held
        left = [each for each in found if each.node.name not in left_out]
        command, held = first_command(world, left, placements, repacks=repacks, asked=asked, plan=plan)
        return command

    return first_passing(world, propose, placements), held
