"""What `kerf top` shows: the sums of the cluster, then its nodes or cards."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kerf.cli.exits import DONE
from kerf.cli.fill import Fill, fill_of, percent
from kerf.cli.inputs.input import ReadInput, Source, read_input
from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.inventory import show_gpus
from kerf.cli.output.bars import bar
from kerf.cli.output.screen import Screen, current
from kerf.cli.output.tables import Fitted, unbroken
from kerf.cli.output.written import in_order
from kerf.cli.plan.json import API_VERSION, Json, cards_number
from kerf.cli.render import counted, emit, table
from kerf.engine.study.usage.overload import NodeLoad, load_of
from kerf.engine.supply.pricing import is_priced, present_price
from kerf.model.instancetypes import price_number, price_text
from kerf.model.placeholders import is_virtual
from kerf.model.quantities import CPU, MEMORY, quantity_text
from kerf.model.snapshot import ClusterNode

_BAR, _LONG_BAR = 6, 24
_LINES = 24
_AROUND = 2
"""Lines that a terminal needs below what is drawn."""


@dataclass(frozen=True, slots=True)
class Busy:
    """A node with what is asked of it, what is used where that is known, and its price an hour in millionths."""

    node: ClusterNode
    fill: Fill
    load: NodeLoad | None
    price_micro: int
    is_priced: bool = True


def show(what: str, flags: dict[str, Any], *, is_screen: bool = False) -> int:
    """Print one look; the exit code. With `is_screen` no more lines than the terminal has."""
    flags = dict(flags)
    if what == "gpus":
        return show_gpus({**flags, "names": ()})
    asked = parse_selector(flags["selector"])
    read = read_input(Source.of(flags), with_usage=True)
    nodes = [node for node in read.snapshot.nodes if asked.unsatisfied_by(node.labels) is None]
    supply = read.world.supply
    rows = [
        Busy(node, fill_of(node), load_of(node, read.usage), present_price(node, supply), is_priced(node, supply))
        for node in nodes
    ]
    rows = in_order(rows, lambda row: _object(row), flags["sort_by"])
    waiting = sum(1 for pod in read.snapshot.pending if not is_virtual(pod.key))
    sums = _sums(rows)
    data = {
        "apiVersion": API_VERSION,
        "kind": "Top",
        "currency": read.market.currency,
        "nodes": len(rows),
        "podsWaiting": waiting,
        "perHour": price_number(sum(row.price_micro for row in rows)),
        "fill": _fill_object(sums),
        "items": [_object(row) for row in rows],
    }
    emit(flags["output"], lambda: data, lambda: _lines(rows, sums, waiting, read, is_screen=is_screen))
    return DONE


def _sums(rows: Sequence[Busy]) -> Fill:
    def total(pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        return sum(part for part, _ in pairs), sum(whole for _, whole in pairs)

    fills = [row.fill for row in rows]
    return Fill(total([f.cpu for f in fills]), total([f.memory for f in fills]), total([f.gpus for f in fills]))


def _fill_object(fill: Fill) -> Json:
    return {
        "cpuPercent": percent(*fill.cpu),
        "memoryPercent": percent(*fill.memory),
        "gpus": cards_number(fill.gpus[1]),
        "gpusAllocated": cards_number(fill.gpus[0]),
    }


def _object(row: Busy) -> Json:
    used = {name: None if row.load is None else row.load.used_percent(name) for name in (CPU, MEMORY)}
    return {
        "node": row.node.name,
        **_fill_object(row.fill),
        "cpuUsedPercent": used[CPU],
        "memoryUsedPercent": used[MEMORY],
        "pods": len(row.node.pods),
        "perHour": price_number(row.price_micro) if row.is_priced else None,
    }


def _lines(rows: Sequence[Busy], sums: Fill, waiting: int, read: ReadInput, *, is_screen: bool) -> list[str]:
    screen = current()
    if not screen.has_headers:
        return _table(rows, read.market.currency, screen)
    lines = [*_head(rows, sums, waiting, read, screen), ""]
    table_lines = _table(rows, read.market.currency, screen) if rows else [f"no node in the {read.place}"]
    room = _height() - len(lines) - _AROUND if is_screen else len(table_lines)
    if room < len(table_lines):
        hidden = len(table_lines) - max(2, room) + 1
        table_lines = [*table_lines[: len(table_lines) - hidden], f"and {counted(hidden, 'line')} more"]
    return [*lines, *table_lines]


def _height() -> int:
    try:
        return os.get_terminal_size(1).lines or _LINES
    except OSError:
        return _LINES


def _head(rows: Sequence[Busy], sums: Fill, waiting: int, read: ReadInput, screen: Screen) -> list[str]:
    """What there is, how much of it is asked for, and what it costs."""
    price = price_text(sum(row.price_micro for row in rows))
    title = f"{counted(len(rows), 'node')}, {price} {read.market.currency}/h, {counted(waiting, 'pod')} waiting"
    asked = [
        ("cpu", sums.cpu, quantity_text(CPU, sums.cpu[1])),
        ("memory", sums.memory, f"{sums.memory[1] / 2**30:.1f}Gi"),
        ("GPUs", sums.gpus, f"{cards_number(sums.gpus[1]):g}"),
    ]
    drawn = [
        (name, (unbroken(bar(*pair, _LONG_BAR, screen)),) if screen.is_drawn else (), percent(*pair), whole)
        for name, pair, whole in asked
        if pair[1]
    ]
    cells = [(name, *drawing, f"{share} %", f"of {whole}") for name, drawing, share, whole in drawn]
    if not cells:
        return [title]
    blank = Screen(screen.width, screen.has_colour, screen.is_drawn, has_headers=False)
    fitted = Fitted([""] * len(cells[0]), cells, "  ", blank, is_styled=True)
    return [title, *(line for lines in fitted.lines() for line in lines)]


def _table(rows: Sequence[Busy], currency: str, screen: Screen) -> list[str]:
    headers = ("NODE", "CPU", "USED", "MEMORY", "USED", "GPU", f"{currency}/H", "PODS")
    if not screen.is_drawn:
        return table(headers, (_row(row, None) for row in rows))
    fitted = Fitted(headers, [_row(row, screen) for row in rows], "", screen, is_styled=True)
    return [line for lines in fitted.lines() for line in lines]


def _row(row: Busy, drawn: Screen | None) -> tuple[str, ...]:
    def share(pair: tuple[int, int], text: str) -> str:
        if not pair[1]:
            return "-"
        return text if drawn is None else unbroken(f"{bar(*pair, _BAR, drawn)} {text}")

    used = ["-" if row.load is None else f"{row.load.used_percent(name)}%" for name in (CPU, MEMORY)]
    cpu, memory, cards = row.fill.cpu, row.fill.memory, row.fill.gpus
    return (
        row.node.name,
        share(cpu, f"{percent(*cpu)}%"),
        used[0],
        share(memory, f"{percent(*memory)}%"),
        used[1],
        share(cards, f"{cards_number(cards[0]):g}/{cards[1] // 10_000}"),
        price_text(row.price_micro) if row.is_priced else "unknown",
        str(len(row.node.pods)),
    )
