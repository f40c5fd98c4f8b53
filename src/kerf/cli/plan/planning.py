"""What `kerf plan` does: it reads, decides, and prints a plan or what was asked for in its place."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import click
from click.core import ParameterSource

from kerf.catalog import is_known
from kerf.cli.echo import echo, write_file
from kerf.cli.exits import DONE, LOOK
from kerf.cli.heldjobs import deadline_notes
from kerf.cli.inputs.gaps import unread_budgets
from kerf.cli.inputs.input import (
    ReadInput,
    Source,
    read_input,
    selected,
)
from kerf.cli.plan.calendar import calendar_lines, calendar_object, calendar_of
from kerf.cli.plan.chart import svg
from kerf.cli.plan.comparison import (
    check_containers,
    compared_with_care,
    comparison_lines,
    comparison_object,
)
from kerf.cli.plan.consolidation import forced_of, steps_lines, steps_object
from kerf.cli.plan.json import plan_parts
from kerf.cli.plan.strategies import strategies_lines, strategies_object, tried
from kerf.cli.plan.text import plan_lines
from kerf.cli.prices import unpriced_text
from kerf.cli.progress import progress
from kerf.cli.render import counted, emit, some
from kerf.cli.timings import Stopwatch
from kerf.engine.bounding import bounded
from kerf.engine.buy.floors import lacking
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.causes import HasExpired
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.ending import endings
from kerf.engine.disruption.first import first_command
from kerf.engine.explain.choices import with_runners_up
from kerf.engine.explain.disruption import explained as command_explained
from kerf.engine.explain.draining import forced_text
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.explain.plan import explain as explained
from kerf.engine.explain.violations import left_out_notes
from kerf.engine.options import Options
from kerf.engine.place.shapes import group
from kerf.engine.place.weights import weight_of
from kerf.engine.study.sizing.compare import compared
from kerf.engine.study.steps import ConsolidationStep, proven_micro, steps, with_homes
from kerf.engine.supply.pricing import cards_bought, cards_of, present_price
from kerf.engine.world import World
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.dump import ClusterDump
from kerf.model.instancetypes import price_text
from kerf.model.nodepool import EXPIRED, SCALED_DOWN
from kerf.model.plan import NodePlacement, Plan
from kerf.model.violations import Violation
from kerf.verify.check import of_going
from kerf.verify.passing import first_passing, passing

_MOST_NODES = 3
_DECIDED, _BOUNDED = 0.6, 0.7
"""How much of planning is done once it is decided, and once the bound is known."""
_AT_LEAST_S, _A_POD_S, _A_KIND_S, _A_NODE_S = 0.3, 0.0001, 0.003, 0.01
"""What planning takes, about: only guesses of how far it is rest on it."""


def _about_s(read: ReadInput) -> float:
    pods = read.snapshot.pending
    kinds = {id(pod.spec): weight_of(pod.spec) for pod in pods}
    return _AT_LEAST_S + _A_POD_S * len(pods) + _A_KIND_S * sum(kinds.values())


def show(flags: dict[str, Any]) -> int:
    """Make and print what the flags ask for; the exit code. Raises InputError and ClusterUnreachable."""
    watch = Stopwatch(is_wanted=flags["timings"])
    namespace = None if flags["all_namespaces"] else flags["namespace"]
    source = Source.of(flags)
    whole = read_input(source)
    read = selected(whole, namespace, flags["selector"])
    watch.lap("read_s")
    output = flags["output"]
    if flags["calendar_s"] is not None:
        entries = calendar_of(read, flags["calendar_s"])
        emit(output, lambda: calendar_object(entries, read), lambda: calendar_lines(entries, read))
        return LOOK if any(entry.kept.unserved for entry in entries) else DONE
    if flags["consolidate"]:
        return _consolidate(whole, _options(flags, whole.decoded.dump if source.replay else None), flags["output"])
    options = _options(flags, read.decoded.dump if source.replay else None)
    if flags["compare"]:
        return _compare(read, options, flags)
    if flags["strategies"]:
        with progress(f"planning {_planned_for(read)} by each strategy", 3 * _about_s(read)):
            found = tried(read.snapshot, read.market, options)
        emit(output, lambda: strategies_object(found), lambda: strategies_lines(found))
        return LOOK if any(each.decision.unserved for each in found) else DONE
    with progress(f"planning {_planned_for(read)}", 1.75 * _about_s(read)) as meter:
        meter.guess(_DECIDED, _about_s(read))
        decision = decide(World(read.snapshot, read.market), options)
        watch.lap("plan_s")
        meter.guess(_BOUNDED, _about_s(read) / 4)
        checked = passing(bounded(decision))
        decision = checked.decision
        watch.lap("bound_s")
        meter.guess(1.0, _about_s(read) / 2)
        worded = explained(decision, Tries.for_all(), tell=meter.part(_BOUNDED, 1.0))
        made = with_deletions(worded, decision, read, whole)
        beside = (*deadline_notes(read), *_ending_notes(read), *_price_notes(read), *assumed(read))
        unread = unread_budgets(whole.snapshot, [each.node for each in made.deletions])
        made = replace(made, notes=(*made.notes, *left_out_notes(checked.violations), *beside, *unread))
        if output != "table":
            made = replace(made, launches=with_runners_up(made.launches, read.world))
    watch.lap("plan_s")
    if flags["chart"] is not None:
        write_file("--chart", flags["chart"], svg(made))
    emit(
        output,
        lambda: plan_parts(made, read.world),
        lambda: plan_lines(made, read.world, is_wide=output == "wide"),
    )
    watch.lap("render_s")
    watch.tell(pods=len(read.snapshot.pending), shapes=len(group(read.snapshot.pending)))
    return LOOK if made.unplaced else DONE


def _options(flags: dict[str, Any], dump: ClusterDump | None) -> Options:
    """As the flags say; of a replay the dump says what they leave open."""
    names = ("strategy", "follow", "preference_policy", "min_values_policy")
    taken = {} if dump is None else {name: getattr(dump, name) for name in names}
    context = click.get_current_context()
    is_open = {name for name in taken if context.get_parameter_source(name) == ParameterSource.DEFAULT}
    asked = {name: taken[name] if name in is_open else flags[name] for name in names}
    return Options(
        asked["strategy"],
        asked["follow"],
        with_bound=False,
        preferences=asked["preference_policy"],
        min_values=asked["min_values_policy"],
        budget=flags["budget"],
    )


def _consolidate(read: ReadInput, options: Options, output: str) -> int:
    """Print the steps for all nodes that were read, whatever pods were chosen."""
    world = World(read.snapshot, read.market, options)
    with progress(f"looking at {counted(len(read.snapshot.nodes), 'node')}", _A_NODE_S * len(read.snapshot.nodes)):
        found, wrong = passing_steps(steps(world))
        bound_micro = proven_micro(found, world)
    notes = tuple(left_out_notes(wrong))
    emit(
        output,
        lambda: steps_object(found, world, bound_micro, notes),
        lambda: steps_lines(found, world, bound_micro, notes),
    )
    return DONE


def passing_steps(found: Iterable[ConsolidationStep]) -> tuple[list[ConsolidationStep], tuple[Violation, ...]]:
    """The steps up to the first that breaks a rule, and which it breaks: those after it build on it.

    Of nodes that go at once, whatever is planned, nothing is decided. Cost: as the steps.
    """
    passed: list[ConsolidationStep] = []
    for step in found:
        is_decided = step.command.deletions[0].reason not in (EXPIRED, SCALED_DOWN)
        wrong = of_going(step.before, step.decided) if is_decided else ()
        if wrong:
            return passed, wrong
        passed.append(step)
    return passed, ()


def _compare(read: ReadInput, options: Options, flags: dict[str, Any]) -> int:
    """Print one row for the requests as they are and for each that was given."""
    pending = read.snapshot.pending
    check_containers(pending, flags["compare"], read.place)
    with progress(f"planning {counted(len(pending), 'pod')}", (1 + len(flags["compare"])) * _about_s(read)):
        variants = compared(read.world, options, flags["compare"])
    if not pending:
        echo(f"note: no pod of the {read.place} waits for a node, so there is nothing to compare", err=True)
        running = sum(1 for pod in read.pods if pod.node_name and not pod.is_ended and not pod.is_daemon)
        if running:
            running_text = f"{counted(running, 'pod')} of it {'has' if running == 1 else 'have'} a node"
            echo(f"hint: {running_text}: give their Job or Deployment without its pods, with -f", err=True)
    for note in compared_with_care(pending, flags["compare"]):
        echo(f"note: {note}", err=True)
    emit(flags["output"], lambda: comparison_object(variants), lambda: comparison_lines(variants))
    return LOOK if any(variant.plan.unserved for variant in variants) else DONE


def _planned_for(read: ReadInput) -> str:
    """What nodes are looked for: the pods that wait, and nodes that pools keep and do not have."""
    snapshot = read.snapshot
    pods = counted(len(snapshot.pending), "pod")
    claims = (node.claim for node in snapshot.nodes if node.claim is not None and not node.is_going)
    short = sum(floor - held for held, floor in lacking(snapshot.node_pools, claims).values())
    return f"{pods} and {counted(short, 'node')} that NodePools keep" if short else pods


def _ending_notes(read: ReadInput) -> list[str]:
    """Which nodes go at once whatever is planned: a plan says what is decided, and these are no decision."""
    by_why: dict[str, list[str]] = {}
    for node, cause in sorted(endings(read.snapshot).items()):
        why = "as old as expireAfter" if isinstance(cause, HasExpired) else "more than their static pool states"
        by_why.setdefault(why, []).append(node)
    return [
        f"{counted(len(nodes), 'node')} {'is' if len(nodes) == 1 else 'are'} {why} and "
        f"{'goes' if len(nodes) == 1 else 'go'} at once: {some(nodes, _MOST_NODES)}; "
        "`kerf plan --consolidate` has what becomes of their pods"
        for why, nodes in by_why.items()
    ]


def _price_notes(read: ReadInput) -> list[str]:
    """Which nodes the cost leaves out, or has at no price."""
    # A node without a type is no machine that a cloud sells.
    others = [node for node in read.snapshot.nodes if node.claim is None and INSTANCE_TYPE in node.labels]
    known = sum(present_price(node, read.world.supply) for node in others)
    notes = []
    if others:
        unknown = unpriced_text(others, read)
        price = f"{price_text(known)} {read.market.currency}/h" if known else ""
        what = ", and ".join(filter(None, (price, unknown))) or "0.00"
        verb = "is" if len(others) == 1 else "are"
        notes.append(f"{counted(len(others), 'node')} of no NodePool {verb} not in the cost: {what}")
    unknown = unpriced_text((node for node in read.snapshot.nodes if node.claim is not None), read)
    return [*notes, f"{unknown}: the cost has none of it"] if unknown else notes


def assumed(read: ReadInput) -> list[str]:
    """What the plan assumes and no node has shown."""
    snapshot = read.snapshot
    seen = {(each.group, each.kind, each.name) for each in snapshot.node_classes}
    wanted = {(p.node_class.group, p.node_class.kind, p.node_class.name) for p in snapshot.node_pools}
    # A catalogue file is taken to be that of the provider.
    is_packaged = bool(read.market.provider)
    unknown = ((pool.name, pool.node_class.group) for pool in snapshot.node_pools if is_packaged and not is_known(pool))
    return [
        *read.missing,
        *(f"{kind} {name} is not in the {read.place} and taken to be ready" for _, kind, name in sorted(wanted - seen)),
        *(
            f"NodePool {pool}: Kerf knows no provider of {group}, so its types and prices are those of another"
            for pool, group in sorted(unknown)
        ),
    ]


def decided(read: ReadInput, options: Options, asked: Container[str] = ()) -> tuple[Decision, Plan]:
    """What is decided for the pending pods, and the plan that says it, with the nodes that may go.

    Hints are tried first for pods that are `asked` about, by key.
    """
    checked = passing(decide(World(read.snapshot, read.market), options))
    made = with_deletions(explained(checked.decision, asked=asked), checked.decision, read)
    return checked.decision, replace(made, notes=(*made.notes, *left_out_notes(checked.violations)))


def _later_notes(command: Command, world: World, decision: Decision, after_micro: int) -> Iterator[str]:
    """Which pods of nodes that go are ended by force, when, and what is bought for those that have no place yet."""
    gone = [each.node for each in command.deletions]
    for name, forced in forced_of(gone, world)[:_MOST_NODES]:
        yield f"the drain of {name} ends by terminationGracePeriod: {forced_text(forced)}"
    homes = with_homes(command, world, decision)
    bought = homes.launches[len(command.launches) :]
    moved = sum(len(each.moved) for each in homes.deletions) - sum(len(each.moved) for each in command.deletions)
    pods = moved + sum(len(launch.pods) for launch in bought)
    if not pods:
        return
    types = Counter(launch.offering.instance_type for launch in bought)
    named = ", ".join(f"{number} x {kind}" for kind, number in sorted(types.items()))
    then_micro = after_micro + sum(launch.price_micro for launch in bought)
    price = f"{price_text(then_micro)} {world.market.currency}/h"
    what = f"{named} is bought then, and the cost is {price}" if named else "there is room for them on other nodes"
    goes = "is planned for when it has" if pods == 1 else "are planned for when they have"
    yield f"{counted(pods, 'pod')} of {some(gone, _MOST_NODES)} {goes} to leave: {what}"


def with_deletions(made: Plan, decision: Decision, read: ReadInput, whole: ReadInput | None = None) -> Plan:
    """The plan of a decision with what the controller would take away beside it.

    `whole` is the input with all pods that wait, where the plan was made for some of them: the others have a right to
    room, too.
    """
    everything, options = whole or read, decision.options
    snapshot, world = everything.snapshot, World(everything.snapshot, everything.market, options)

    @cache
    def placements() -> tuple[NodePlacement, ...]:
        if snapshot.pending == read.snapshot.pending:
            return made.placements
        others = decide(world, replace(options, with_bound=False))
        return (*made.placements, *others.placements)

    found = candidates(snapshot)[0]

    def propose(left_out: frozenset[str]) -> Command | None:
        left = [each for each in found if each.node.name not in left_out]
        return first_command(world, left, placements, plan=lambda: decision)[0]

    checked = first_passing(world, propose, placements)
    command, made = checked.command, replace(made, notes=(*made.notes, *left_out_notes(checked.violations)))
    if command is None:
        return made
    first = command_explained(command)
    names = {each.name: f"launch-{len(made.launches) + number}" for number, each in enumerate(first.launches)}
    launches = (replace(each, name=names[each.name]) for each in first.launches)
    deletions = (replace(each, replaced_by=tuple(names[name] for name in each.replaced_by)) for each in first.deletions)
    gone = {deletion.node for deletion in first.deletions}
    cards = cards_of((node for node in snapshot.nodes if node.name in gone), everything.market)
    after = made.cost.after_micro + first.cost.after_micro - first.cost.before_micro
    # The bound counts every node of today as kept; it says nothing once some of them go.
    return replace(
        made,
        notes=(*made.notes, *_later_notes(command, world, decision, after)),
        cost=replace(made.cost, after_micro=after, bound=None),
        gpus=replace(made.gpus, paid=made.gpus.paid + cards_bought(first.launches) - cards),
        launches=(*made.launches, *launches),
        deletions=tuple(deletions),
    )
