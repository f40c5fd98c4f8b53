"""What `kerf shadow` does: the nodes that are there, beside those that Kerf would buy for the same pods.

The fleet is compared from files or a cluster alone. What the leader of a dry run has seen of single purchases is shown
below it, where there is such a leader.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kerf.cli.echo import echo
from kerf.cli.exits import DONE, LOOK
from kerf.cli.inputs.input import ReadInput, Source, read_input
from kerf.cli.inputs.leader import NoLeader, ShadowFleet, ShadowReport, ask_leader
from kerf.cli.inputs.leaderflags import LeaderFlags
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.prices import unpriced_text
from kerf.cli.progress import progress
from kerf.cli.render import counted, emit, some, table
from kerf.cli.run.decisions import fleet_object
from kerf.engine.options import Options
from kerf.engine.study.refit import Fleet, Refit, refit
from kerf.model.instancetypes import price_text

_HEADERS = ("", "NODES", "PER HOUR", "TYPES")
_MOST_TYPES, _MOST_NODES = 6, 3


def show(flags: dict[str, Any]) -> int:
    """Compare and print; the exit code."""
    leader = LeaderFlags.of(flags)
    source = Source.of(flags)
    read = read_input(source)
    nodes = frozenset(node.name for node in read.snapshot.nodes if node.claim is not None or flags["all_nodes"])
    with progress(f"planning the pods of {counted(len(nodes), 'node')}", 0.3 + 0.01 * len(nodes)):
        options, with_any_gpu = Options(flags["strategy"], with_bound=False), flags["any_gpu"]
        made = refit(read.world, nodes, options, with_any_gpu=with_any_gpu)
        advice = list(_advice(made, read, nodes, options, with_any_gpu=with_any_gpu))
    seen = None if source.files and not leader.url else _seen(source, leader)
    emit(flags["output"], lambda: _object(made, seen, read), lambda: _lines(made, seen, read, nodes, advice))
    return LOOK if made.unplaced else DONE


def _seen(source: Source, flags: LeaderFlags) -> ShadowReport | None:
    try:
        return ask_leader(source.kubeconfig, source.context, flags).shadow
    except NoLeader as error:
        echo(f"note: without what a dry run has seen: {error}", err=True)
        return None


def _object(made: Refit, seen: ShadowReport | None, read: ReadInput) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "ShadowReport",
        "currency": read.market.currency,
        "pods": made.pods,
        "present": fleet_object(made.present),
        "planned": fleet_object(made.planned),
        "placedOnOthers": made.placed_on_others,
        "unplaced": made.unplaced,
        "unknownModels": list(made.unknown_models),
        "seen": None if seen is None else msgspec.to_builtins(seen),
    }


def _lines(
    made: Refit, seen: ShadowReport | None, read: ReadInput, nodes: frozenset[str], advice: Sequence[str]
) -> list[str]:
    if not made.present.nodes:
        return [f"no node of a NodePool in the {read.place}", *_without_pool(read), *_seen_lines(seen)]
    rows = (("now", made.present), ("Kerf", made.planned))
    lines = table(_HEADERS, [_row(name, fleet) for name, fleet in rows])
    return [
        *lines,
        "",
        _verdict(made, read, nodes),
        *advice,
        *_seen_lines(seen),
    ]


def _without_pool(read: ReadInput) -> Iterable[str]:
    if read.snapshot.nodes:
        yield "hint: --all-nodes compares the nodes of node groups too; a NodePool, with -f, says what Kerf may buy"


def _row(name: str, fleet: Fleet) -> tuple[str, ...]:
    types = [f"{nodes} x {kind} {capacity_type}".rstrip() for (kind, capacity_type), nodes in fleet.types.items()]
    more = [f"{len(types) - _MOST_TYPES} more"] if len(types) > _MOST_TYPES else []
    text = ", ".join([*types[:_MOST_TYPES], *more]) or "-"
    return (name, str(fleet.nodes), price_text(fleet.price_micro), text)


def _verdict(made: Refit, read: ReadInput, nodes: frozenset[str]) -> str:
    pods, saved = counted(made.pods, "pod"), made.present.price_micro - made.planned.price_micro
    if made.unplaced:
        return f"{pods}: {made.unplaced} would get no place, so the two prices cannot be compared"
    unknown = unpriced_text((node for node in read.snapshot.nodes if node.name in nodes), read)
    if unknown:
        return f"{pods}: {unknown}, so the two prices cannot be compared"
    if saved <= 0:
        return f"{pods}: Kerf would not buy cheaper"
    percent = saved * 100 // made.present.price_micro
    return f"{pods}: Kerf's nodes cost {price_text(saved)} {read.market.currency}/h less, {percent} %"


def _advice(
    made: Refit, read: ReadInput, nodes: frozenset[str], options: Options, *, with_any_gpu: bool
) -> Iterable[str]:
    """What to know or to type beside the verdict. The flag is tried before it is named: one more decision."""
    if with_any_gpu and not made.unplaced:
        yield "note: pods may go to cards of other models here, which may be slower"
    if made.unknown_models:
        cards = "its cards" if len(made.unknown_models) == 1 else "their cards"
        yield (
            f"note: of {counted(len(made.unknown_models), 'node')} ({some(made.unknown_models, _MOST_NODES)}) nothing "
            f"says the model of {cards}: pods of {'it' if len(made.unknown_models) == 1 else 'them'} may go to cards "
            "of any model here, which may be slower"
        )
    if made.unplaced:
        yield "hint: kerf plan, with their workloads instead of the pods, says why"
        if not with_any_gpu and refit(read.world, nodes, options, with_any_gpu=True).unplaced < made.unplaced:
            yield "hint: --any-gpu lets pods go to cards of other models than those that they run on"


def _seen_lines(seen: ShadowReport | None) -> list[str]:
    if seen is None:
        return []
    head = f"since {seen.since[:19]}Z the other autoscaler launched nodes {counted(seen.count, 'time')}"
    if not seen.waves:
        return ["", head]
    total = ("all", str(seen.pods), *_figures(seen.present), *_figures(seen.planned))
    rows = [(each.began[:19] + "Z", str(each.pods), *_figures(each.present), *_figures(each.planned))
            for each in seen.waves]  # fmt: skip
    return ["", head, *table(("BEGAN", "PODS", "NODES", "PER HOUR", "KERF NODES", "KERF PER HOUR"), [*rows, total])]


def _figures(fleet: ShadowFleet) -> tuple[str, str]:
    return str(fleet.nodes), f"{fleet.per_hour:.2f}"
