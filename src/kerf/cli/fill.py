"""How full nodes are: what their pods ask for of what the node has for pods. `kerf nodes` draws it on a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

from kerf.cli.output.bars import bar
from kerf.cli.output.screen import Screen
from kerf.cli.output.tables import Fitted, Shown, unbroken
from kerf.cli.plan.json import cards_number
from kerf.engine.study.usage.overload import requested_by
from kerf.model.printable import one_line
from kerf.model.quantities import CPU, MEMORY, NOTHING
from kerf.model.snapshot import ClusterNode

_WIDE_BAR, _BAR = 10, 5
_WIDE = 140
"""Columns of a terminal from which bars are long."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What is asked for and what there is: milli-cpus, bytes, and parts of cards in 1/10000."""

    cpu: tuple[int, int]
    memory: tuple[int, int]
    gpus: tuple[int, int]


def fill_of(node: ClusterNode) -> Fill:
    """Of a node; nothing there is 0 of 0. Linear in its pods."""
    has = node.node.allocatable if node.node is not None else NOTHING
    asked = requested_by(node.pods)
    cards = sum(device.allocated_percent_points for device in node.devices), 10_000 * len(node.devices)
    return Fill((asked.get(CPU, 0), has.get(CPU, 0)), (asked.get(MEMORY, 0), has.get(MEMORY, 0)), cards)


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node as a row has it, with its fill."""

    name: str
    stage: str
    fill: Fill
    price: str
    others: tuple[str, ...]


def fill_lines(rows: Sequence[NodeLine], money: str, others: Sequence[str], screen: Screen) -> list[Shown]:
    """The nodes with bars, then as many of the other columns as have room; `-o wide` has all of them."""
    width = _WIDE_BAR if screen.width is None or screen.width >= _WIDE else _BAR
    cells = [
        (
            one_line(row.name),
            row.stage,
            _percent(row.fill.cpu, width, screen),
            _percent(row.fill.memory, width, screen),
            _cards(row.fill.gpus, width, screen),
            row.price,
            *map(one_line, row.others),
        )
        for row in rows
    ]
    headers = ("NODE", "STAGE", "CPU", "MEMORY", "GPU", money, *others)
    fitted = Fitted(headers, cells, "", screen, is_styled=True)
    beside = max(fitted.beside, len(headers) - len(others))
    if beside < len(headers):
        fitted = Fitted(headers[:beside], [row[:beside] for row in cells], "", screen, is_styled=True)
    return [line for lines in fitted.lines() for line in lines]


def percent(part: int, whole: int) -> int:
    """In percent, rounded half up; 0 where there is nothing."""
    return (200 * part + whole) // (2 * whole) if whole else 0


def _percent(pair: tuple[int, int], width: int, screen: Screen) -> str:
    if not pair[1]:
        return "-"
    return unbroken(f"{bar(*pair, width, screen)} {percent(*pair):>3}%")


def _cards(pair: tuple[int, int], width: int, screen: Screen) -> str:
    if not pair[1]:
        return "-"
    return unbroken(f"{bar(*pair, width, screen)} {cards_number(pair[0]):g}/{pair[1] // 10_000}")
