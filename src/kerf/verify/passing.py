"""The largest part of a plan that passes: what breaks a rule is left out, and the rest is put to the rules again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kerf.engine.decision import Decision, Refusal
from kerf.engine.disruption.command import Command
from kerf.engine.world import World
from kerf.model.large import Large
from kerf.model.nodepool import UNDERUTILIZED
from kerf.model.plan import Cost, GpuUse, NodePlacement, Stage
from kerf.model.pods import Pod
from kerf.model.violations import PartKind, PlanPart, Violation
from kerf.verify.after import After
from kerf.verify.check import violations
from kerf.verify.figures import gpu_use
from kerf.verify.proposal import of_command, of_decision

_MOST_REFUSED = 3
"""Commands in a row of which nothing passes; then nothing goes until the next look."""
_MOST_ROUNDS = 12
"""So often parts are left out before all of it is: what is left out may break another rule, as that of a group."""


@dataclass(frozen=True, eq=False, repr=False)
class Checked(Large):
    """A decision as far as it passes, and what was wrong with all of it, in the order in which it was found."""

    decision: Decision
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class CheckedCommand(Large):
    """The same of a command; None where nothing of it passes."""

    command: Command | None
    violations: tuple[Violation, ...] = field(default=())


def passing(decision: Decision) -> Checked:
    """The decision without what breaks a rule; the very same where nothing does.

    Pods that lose their place so are refused for the first breach that concerned it.
    """
    found: list[Violation] = []
    for _ in range(_MOST_ROUNDS):
        wrong = violations(of_decision(decision))
        if not wrong:
            return Checked(decision, tuple(found))
        found += wrong
        if not all(each.parts for each in wrong):
            break
        decision = without(decision, wrong)
    return Checked(_emptied(decision, found), tuple(found))


def passing_command(world: World, command: Command, coming: tuple[NodePlacement, ...] = ()) -> CheckedCommand:
    """The command without the nodes whose going breaks a rule; the very same where none does."""
    found: list[Violation] = []
    for _ in range(_MOST_ROUNDS):
        wrong = violations(of_command(world, command, coming))
        if not wrong:
            return CheckedCommand(command, tuple(found))
        found += wrong
        left = _command_without(world, command, _parts_of(wrong)) if all(each.parts for each in wrong) else None
        if left is None:
            break
        command = left
    return CheckedCommand(None, tuple(found))


def first_passing(
    world: World,
    propose: Callable[[frozenset[str]], Command | None],
    coming: Callable[[], tuple[NodePlacement, ...]],
) -> CheckedCommand:
    """The first proposed command of which anything passes, beside the places that pods which wait are promised.

    `propose` is given the nodes that are left out: those whose going broke a rule. A wrong command must not keep every
    other from its turn; but after a few of them nothing goes.
    """
    found: list[Violation] = []
    left_out = frozenset[str]()
    for _ in range(_MOST_REFUSED):
        command = propose(left_out)
        if command is None:
            break
        checked = passing_command(world, command, coming())
        found += checked.violations
        if checked.command is not None:
            return CheckedCommand(checked.command, tuple(found))
        left_out |= {deletion.node for deletion in command.deletions}
    return CheckedCommand(None, tuple(found))


def _parts_of(wrong: Iterable[Violation]) -> dict[PlanPart, Violation]:
    """The parts to leave out, each with the first breach that asks for it."""
    parts: dict[PlanPart, Violation] = {}
    for each in wrong:
        for part in each.parts:
            parts.setdefault(part, each)
    return parts


def without(decision: Decision, wrong: Sequence[Violation]) -> Decision:
    """The decision without the parts that the violations name, its figures counted again."""
    parts = _parts_of(wrong)
    launches = [
        (at, each) for at, each in enumerate(decision.launches) if PlanPart(PartKind.LAUNCH, each.name) not in parts
    ]
    placements = tuple(p for p in decision.placements if PlanPart(PartKind.PLACEMENT, p.pod.pod) not in parts)
    relabels = tuple(r for r in decision.relabels if PlanPart(PartKind.RELABEL, r.node) not in parts)
    gone_nodes = {r.node for r in decision.relabels} - {r.node for r in relabels}
    placements = tuple(p for p in placements if p.node not in gone_nodes)
    kept = {part.pod for _, launch in launches for part in launch.pods} | {p.pod.pod for p in placements}
    lost = _lost(decision, kept, parts)
    bought = tuple(decision.bought[at] for at, _ in launches if at < len(decision.bought))
    is_bound_wrong = PlanPart(PartKind.BOUND) in parts or len(launches) < len(decision.launches)
    cost = decision.cost
    after_micro = cost.before_micro + sum(launch.price_micro for _, launch in launches)
    left = replace(
        decision,
        launches=tuple(launch for _, launch in launches),
        bought=bought,
        placements=placements,
        relabels=relabels,
        evictions=tuple(e for e in decision.evictions if e.for_pod in kept),
        admissions=tuple(a for a in decision.admissions if a.pod in kept),
        refusals=(*_refusals(decision, parts), *lost),
        cost=Cost(cost.currency, cost.before_micro, after_micro, None if is_bound_wrong else cost.bound),
    )
    if not decision.options.with_cost:
        return replace(left, cost=replace(cost, bound=left.cost.bound))
    return replace(left, gpus=gpu_use(After(of_decision(left))))


def _refusals(decision: Decision, parts: dict[PlanPart, Violation]) -> list[Refusal]:
    """What was refused, without pods of which that is false."""
    false = {part.name for part in parts if part.kind == PartKind.REFUSAL}
    if not false:
        return list(decision.refusals)
    left = [(each, tuple(pod for pod in each.pods if pod.key not in false)) for each in decision.refusals]
    return [each if len(pods) == len(each.pods) else replace(each, pods=pods) for each, pods in left if pods]


def _lost(decision: Decision, kept: set[str], parts: dict[PlanPart, Violation]) -> list[Refusal]:
    """Why the pods have no place that had one before, by breach and in the order of their keys."""
    pods = {pod.key: pod for node in decision.bought for pod in node.pods}
    pods |= {pod.key: pod for pod in decision.world.snapshot.pending}
    why: dict[Violation, list[Pod]] = {}
    for launch in decision.launches:
        breach = parts.get(PlanPart(PartKind.LAUNCH, launch.name))
        for placed in launch.pods:
            if breach is not None and placed.pod not in kept and placed.pod in pods:
                why.setdefault(breach, []).append(pods[placed.pod])
    for placement in decision.placements:
        breach = parts.get(PlanPart(PartKind.PLACEMENT, placement.pod.pod)) or parts.get(
            PlanPart(PartKind.RELABEL, placement.node)
        )
        if breach is not None and placement.pod.pod not in kept and placement.pod.pod in pods:
            why.setdefault(breach, []).append(pods[placement.pod.pod])
    for part, breach in parts.items():
        if part.kind == PartKind.REFUSAL and part.name not in kept and part.name in pods:
            why.setdefault(breach, []).append(pods[part.name])
    return [Refusal(tuple(held), Stage.HELD, breach) for breach, held in why.items()]


def _emptied(decision: Decision, found: Sequence[Violation]) -> Decision:
    """Nothing of the decision: every pod that had a place is refused."""
    parts = [PlanPart(PartKind.LAUNCH, launch.name) for launch in decision.launches]
    parts += [PlanPart(PartKind.PLACEMENT, placement.pod.pod) for placement in decision.placements]
    parts += [PlanPart(PartKind.RELABEL, relabel.node) for relabel in decision.relabels]
    first = replace(found[-1], parts=(*parts, PlanPart(PartKind.BOUND)))
    emptied = without(decision, [first])
    return replace(emptied, evictions=(), admissions=())


def _command_without(world: World, command: Command, parts: dict[PlanPart, Violation]) -> Command | None:
    """The command without these nodes, and without what is bought for none of the others; None where none is left.

    Nodes that one launch is bought for go together or stay together, and so do those that go to save money: only all of
    them save what is said.
    """
    gone = {part.name for part in parts if part.kind == PartKind.DELETION}
    unbought = {part.name for part in parts if part.kind == PartKind.LAUNCH}
    while True:
        staying = {each.claim for each in command.deletions if each.node in gone}
        more = {launch.name for launch in command.launches if not staying.isdisjoint(launch.replaces)} - unbought
        unbought |= more
        held = {each.node for each in command.deletions if not unbought.isdisjoint(each.replaced_by)} - gone
        gone |= held
        if not more and not held:
            break
    if any(each.node in gone and each.reason == UNDERUTILIZED for each in command.deletions):
        return None
    deletions = tuple(each for each in command.deletions if each.node not in gone)
    launches = tuple(each for each in command.launches if each.name not in unbought)
    is_figure_wrong = any(part.kind == PartKind.FIGURES for part in parts)
    if not deletions or (len(deletions) == len(command.deletions) and not unbought and not is_figure_wrong):
        return None
    bought = sum(launch.price_micro for launch in launches)
    before = command.cost.before_micro
    after_micro = before + bought - sum(each.saved_micro for each in deletions)
    cost = Cost(command.cost.currency, before, after_micro)
    left = replace(command, deletions=deletions, launches=launches, cost=cost, gpus=GpuUse())
    return replace(left, gpus=gpu_use(After(of_command(world, left))))
