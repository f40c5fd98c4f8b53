"""`kerf plan --chart`: the nodes to buy by type, and how full each of their cards is, as one SVG file."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kerf.cli.render import counted, percent_text
from kerf.model.instancetypes import price_text
from kerf.model.plan import Launch, Plan
from kerf.svg import COLOURS, document, number, text

_WIDTH, _EDGE = 960, 24
_CARD, _TALL, _GAP = 14, 64, 3
_NODE_GAP, _ROW = 16, 100
_LEAST_NODE = 44
_MOST_KINDS = 60
"""Of equal nodes of one type that are drawn; the others are counted."""
_WHOLE = 10_000
"""A card, as plans count what is allocated of it."""

_Fills = tuple[tuple[float, ...], ...]
"""By card, the parts of it that pods have."""


def svg(plan: Plan) -> str:
    """Each type with its nodes, those that are bought most first; equal nodes are drawn once."""
    nodes = f"{counted(len(plan.launches), 'node')} to buy"
    title = f"{nodes}: {price_text(sum(each.price_micro for each in plan.launches))} {plan.cost.currency}/h"
    parts, y = [text(_EDGE, 30, title, "font-size='15' font-weight='bold'")], 62
    by_type: dict[str, list[Launch]] = {}
    for launch in plan.launches:
        by_type.setdefault(launch.offering.instance_type, []).append(launch)
    for name, launches in sorted(by_type.items(), key=lambda each: (-len(each[1]), each[0])):
        parts.append(text(_EDGE, y, _heading(name, launches, plan.cost.currency), "font-weight='bold'"))
        kinds = Counter(_fills(launch) for launch in launches).most_common()
        drawn, rows = _nodes(kinds[:_MOST_KINDS], y + 14)
        parts += drawn
        y += 14 + rows * _ROW
        if len(kinds) > _MOST_KINDS:
            left = sum(times for _, times in kinds[_MOST_KINDS:])
            parts.append(text(_EDGE, y + 4, f"and {counted(left, 'node')} more, filled in other ways"))
            y += 24
        y += 18
    return document(title, _WIDTH, y, parts)


def _heading(name: str, launches: Sequence[Launch], currency: str) -> str:
    price = price_text(sum(launch.price_micro for launch in launches))
    cards = sum(len(launch.devices) for launch in launches)
    pods = counted(sum(len(launch.pods) for launch in launches), "pod")
    allocated = 1000 * sum(launch.allocated for launch in launches)
    # Rounded down, as what is not in use is rounded up elsewhere.
    held = f", {percent_text(allocated // (_WHOLE * cards), 1000)} of the GPUs in use" if cards else ""
    return f"{len(launches)} x {name}: {price} {currency}/h, {pods}{held}"


def _fills(launch: Launch) -> _Fills:
    """By card the part that each slice has: of the memory, or of the cores where that is more.

    All of a card have no more than is taken of its memory or of its cores. Time slices take neither: they are equal.
    """
    cards: list[list[tuple[float, float]]] = [[] for _ in launch.devices]
    for part in (part for pod in launch.pods for part in pod.slices):
        memory_mib = launch.devices[part.device].memory_mib
        cards[part.device].append((part.memory_mib / memory_mib if memory_mib else 0.0, part.cores / 100))
    time_slice = launch.allocated / _WHOLE / max(1, sum(map(len, cards)))
    return tuple(_parts(card, time_slice) for card in cards)


def _parts(slices: Sequence[tuple[float, float]], time_slice: float) -> tuple[float, ...]:
    """The parts of one card, largest first, of what slices have of its memory and its cores."""
    larger = [max(each) for each in slices]
    taken = max((sum(amounts) for amounts in zip(*slices, strict=True)), default=0.0)
    found = [share * taken / sum(larger) for share in larger] if taken else [time_slice] * len(slices)
    return tuple(sorted((round(share, 3) for share in found), reverse=True))


def _nodes(kinds: Sequence[tuple[_Fills, int]], top: int) -> tuple[list[str], int]:
    """The drawings, from left to right, and how many rows they take."""
    parts, x, row = list[str](), _EDGE, 0
    for fills, times in kinds:
        width = max(_LEAST_NODE, len(fills) * (_CARD + _GAP) + _GAP)
        if x + width > _WIDTH - _EDGE and x > _EDGE:
            x, row = _EDGE, row + 1
        parts += _node(fills, x, top + row * _ROW, width)
        label = f"{times} x" if times > 1 else "1"
        parts.append(text(x + width / 2, top + row * _ROW + _TALL + 20, label, "text-anchor='middle'"))
        x += width + _NODE_GAP
    return parts, row + 1


def _node(fills: _Fills, x: int, y: int, width: int) -> Iterator[str]:
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{_TALL + 2 * _GAP}" fill="none" stroke="#888"/>'
    for at, card in enumerate(fills):
        left = x + _GAP + at * (_CARD + _GAP)
        yield f'<rect x="{left}" y="{y + _GAP}" width="{_CARD}" height="{_TALL}" fill="#eee"/>'
        bottom = float(y + _GAP + _TALL)
        for place, share in enumerate(card):
            tall = min(share * _TALL, bottom - y - _GAP)
            bottom -= tall
            yield (
                f'<rect x="{left}" y="{number(bottom)}" width="{_CARD}" height="{number(tall)}" '
                f'fill="{COLOURS[place % len(COLOURS)]}" stroke="#fff" stroke-width="0.5"/>'
            )
