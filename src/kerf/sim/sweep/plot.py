"""A sweep as one self-contained SVG: for each measure a row for each group, its mean and its interval.

As the chart of a simulation it loads nothing, and equal sweeps give equal bytes.
"""

from collections.abc import Sequence

from kerf.sim.sweep.summary import Mean, SeedGroup
from kerf.svg import COLOURS, document, number, text

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW, _GAP = 960, 300, 40, 56, 26, 56
_PLOT = _WIDTH - _LEFT - _RIGHT
_TITLES = {"cost": "cost, {currency}", "waitP95Seconds": "95 % of waits, s", "moves": "evictions"}


def svg(name: str, groups: Sequence[SeedGroup]) -> str:
    """The text of an SVG file."""
    height = _TOP + len(_TITLES) * (len(groups) * _ROW + _GAP)
    title = f"{name}: means of {max((len(group.seeds) for group in groups), default=0)} seeds with 95 % intervals"
    parts = [text(20, 26, title, "font-size='15' font-weight='bold'")]
    top = _TOP
    for measure, words in _TITLES.items():
        currency = groups[0].currency if groups else ""
        parts += _panel(measure, words.format(currency=currency), groups, top)
        top += len(groups) * _ROW + _GAP
    return document(title, _WIDTH, height, parts)


def _panel(measure: str, title: str, groups: Sequence[SeedGroup], top: int) -> list[str]:
    most = max((_high(group.means[measure]) for group in groups if measure in group.means), default=0.0) or 1.0
    bottom = top + len(groups) * _ROW
    parts = [text(20, top - 6, title, "font-weight='bold'")]
    for quarter in range(5):
        x = number(_LEFT + _PLOT * quarter / 4)
        parts.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(
            text(_LEFT + _PLOT * quarter / 4, bottom + 16, f"{most * quarter / 4:.4g}", "text-anchor='middle'")
        )
    colours = {policy: COLOURS[n % len(COLOURS)] for n, policy in enumerate(dict.fromkeys(g.policy for g in groups))}
    for row, group in enumerate(groups):
        y = top + row * _ROW + _ROW // 2
        label = ", ".join(word for word in (group.policy, group.trace, group.price) if word)
        parts.append(text(_LEFT - 10, y + 4, label[:44], "text-anchor='end'"))
        if measure in group.means:
            parts += _dot(group.means[measure], most, y, colours[group.policy])
    return parts


def _dot(mean: Mean, most: float, y: int, colour: str) -> list[str]:
    def x(value: float) -> str:
        return number(_LEFT + _PLOT * max(0.0, value) / most)

    parts = []
    if mean.half is not None:
        low, high = x(mean.mean - mean.half), x(mean.mean + mean.half)
        parts.append(f'<line x1="{low}" y1="{y}" x2="{high}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
    parts.append(f'<circle cx="{x(mean.mean)}" cy="{y}" r="5" fill="{colour}"/>')
    return parts


def _high(mean: Mean) -> float:
    return mean.mean + (mean.half or 0.0)
