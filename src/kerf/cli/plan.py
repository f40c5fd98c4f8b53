"""`kerf plan`: what would be bought, on which card each slice lands, what is refused and why."""

from dataclasses import replace
from typing import Any

import click

from kerf.cli.exits import DONE, LOOK
from kerf.cli.inputs import Source, World, input_options, output_option, pod_options, progress, read_world, selected
from kerf.cli.plan_json import plan_object
from kerf.cli.plan_text import plan_lines
from kerf.cli.render import counted, emit
from kerf.cli.timings import Stopwatch
from kerf.engine.disruption import METHODS
from kerf.engine.disruption.candidates import candidates
from kerf.engine.provisioning import COST, STRATEGIES, Options, bounded
from kerf.engine.provisioning import plan as provision
from kerf.engine.shapes import group
from kerf.model.plan import Plan

FOLLOWING = ("auto", "nominate", "pin", "off")


@click.command()
@input_options
@pod_options
@output_option
@click.option("--strategy", type=click.Choice(STRATEGIES), default=COST, show_default=True, help="How to choose nodes.")
@click.option("--follow", type=click.Choice(FOLLOWING), default="auto", show_default=True, help="How plans are kept.")
@click.option("--timings", is_flag=True, help="One JSON line on stderr: seconds and bytes.")
def plan(**flags: Any) -> int:
    """What Kerf would do now with these manifests; changes nothing.

    Exit code 0 when every pod has a place, 3 when some have none.
    """
    watch = Stopwatch(is_wanted=flags["timings"])
    namespace = None if flags["all_namespaces"] else flags["namespace"]
    world = selected(read_world(Source.of(flags)), namespace, flags["selector"])
    watch.lap("read_s")
    options = Options(flags["strategy"], flags["follow"], with_bound=False)
    with progress(f"planning {counted(len(world.snapshot.pending), 'pod')}"):
        made = provision(world.snapshot, world.market, options)
        watch.lap("plan_s")
        made = bounded(made, world.snapshot, world.market)
        watch.lap("bound_s")
        made = with_deletions(made, world)
    watch.lap("plan_s")
    output = flags["output"]
    emit(
        output,
        lambda: plan_object(made, world.snapshot),
        lambda: plan_lines(made, world.snapshot, is_wide=output == "wide"),
    )
    watch.lap("render_s")
    watch.tell(pods=len(world.snapshot.pending), shapes=len(group(world.snapshot.pending)))
    return LOOK if made.unplaced else DONE


def decide(world: World, options: Options) -> Plan:
    """The plan for the pending pods, and with it the nodes that may go."""
    return with_deletions(provision(world.snapshot, world.market, options), world)


def with_deletions(made: Plan, world: World) -> Plan:
    """The plan with the first disruption that a method proposes for nodes on which it places nothing."""
    snapshot, market = world.snapshot, world.market
    used = {placement.node for placement in made.placements}
    free = [candidate for candidate in candidates(snapshot)[0] if candidate.node.name not in used]
    first = next((p for propose in METHODS for p in propose(snapshot, market, free) if p.deletions), None)
    if first is None:
        return made
    gone = {deletion.node for deletion in first.deletions}
    cards = sum(len(node.devices) for node in snapshot.nodes if node.name in gone)
    saved = sum(deletion.saved_micro for deletion in first.deletions)
    # The bound counts every node of today as kept; it says nothing once some of them go.
    cost = replace(made.cost, after_micro=made.cost.after_micro - saved, bound_micro=None)
    gpus = replace(made.gpus, paid=made.gpus.paid - cards)
    return replace(made, cost=cost, gpus=gpus, deletions=first.deletions)
