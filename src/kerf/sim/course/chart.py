"""The course of a simulation as one self-contained SVG: nodes, cost, GPUs paid and used, pending pods, over time.

Four bands share one time axis, because nodes, money, cards and pods have units of their own. Levels hold until they
change, so the lines are steps. Equal reports give equal bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kerf.model.instancetypes import price_text
from kerf.sim.course.report import Sample, SimulationReport, offset_text
from kerf.svg import document, number, text

_WIDTH, _LEFT, _RIGHT, _TOP = 960, 64, 24, 56
_BAND, _GAP, _FOOT = 130, 46, 44
_PLOT = _WIDTH - _LEFT - _RIGHT
_STEPS_S = (1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800)
_MOST_MARKS = 12


@dataclass(frozen=True, slots=True)
class _Line:
    """One quantity of a band; `is_filled` draws the area under it."""

    label: str
    colour: str
    value: Callable[[Sample], float]
    is_filled: bool = False


@dataclass(frozen=True, slots=True)
class _Band:
    """Lines with one scale."""

    title: str
    lines: tuple[_Line, ...]


# Colours of Okabe and Ito, which people with any colour vision tell apart.
_BANDS = (
    _Band("Nodes", (_Line("nodes", "#0072B2", lambda s: s.nodes),)),
    _Band("Cost", (_Line("per hour", "#CC79A7", lambda s: s.per_hour_micro / 1_000_000, is_filled=True),)),
    _Band(
        "GPUs",
        (
            _Line("paid", "#E69F00", lambda s: s.gpus_paid, is_filled=True),
            _Line("used", "#009E73", lambda s: s.gpus_used / 10_000, is_filled=True),
        ),
    ),
    _Band("Pods", (_Line("pending", "#D55E00", lambda s: s.pending),)),
)


def svg(report: SimulationReport) -> str:
    """The chart of a report, as the text of an SVG file."""
    height = _TOP + len(_BANDS) * (_BAND + _GAP) - _GAP + _FOOT
    cost = price_text(round(report.totals.cost_micro, -4))
    title = f"{report.name}: {cost} {report.currency} in {offset_text(report.duration_s)}"
    parts = [text(_LEFT, 26, title, "font-size='15' font-weight='bold'")]
    for index, band in enumerate(_BANDS):
        parts += _band(band, _TOP + index * (_BAND + _GAP), report)
    parts += _time_axis(report.duration_s, height - _FOOT)
    return document(title, _WIDTH, height, parts)


def _band(band: _Band, top: int, report: SimulationReport) -> list[str]:
    samples = report.samples or (Sample(0, 0, 0, 0, 0, 0),)
    most = max(line.value(sample) for line in band.lines for sample in samples)
    step = _scale_step(most)
    ceiling = max(step, -(-most // step) * step)
    parts = [text(_LEFT, top - 8, band.title, "font-weight='bold'")]
    parts += _legend(band, top)
    for mark in range(0, int(ceiling) + 1, step):
        y = top + _BAND - round(mark * _BAND / ceiling)
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _PLOT}" y2="{y}" stroke="#ddd"/>')
        parts.append(text(_LEFT - 8, y + 4, str(mark), "text-anchor='end'"))
    for line in band.lines:
        parts += _drawn(line, samples, report.duration_s, top, ceiling)
    return parts


def _legend(band: _Band, top: int) -> list[str]:
    parts, x = [], _LEFT + 70
    for line in band.lines:
        parts.append(f'<rect x="{x}" y="{top - 18}" width="12" height="12" fill="{line.colour}"/>')
        parts.append(text(x + 17, top - 8, line.label))
        x += 40 + 7 * len(line.label)
    return parts


def _drawn(line: _Line, samples: Sequence[Sample], duration_s: float, top: int, ceiling: float) -> list[str]:
    def x(at_s: float) -> str:
        return number(_LEFT + _PLOT * at_s / duration_s if duration_s else _LEFT)

    def y(value: float) -> str:
        return number(top + _BAND - value * _BAND / ceiling)

    path = f"M{x(samples[0].at_s)} {y(line.value(samples[0]))}"
    for before, after in pairwise(samples):
        if line.value(before) != line.value(after):
            path += f"H{x(after.at_s)}V{y(line.value(after))}"
    path += f"H{x(duration_s)}"
    parts = []
    if line.is_filled:
        area = f"{path}V{top + _BAND}H{x(samples[0].at_s)}Z"
        parts.append(f'<path d="{area}" fill="{line.colour}" fill-opacity="0.25"/>')
    parts.append(f'<path d="{path}" fill="none" stroke="{line.colour}" stroke-width="2"/>')
    return parts


def _time_axis(duration_s: float, y: int) -> list[str]:
    step = next((s for s in _STEPS_S if duration_s <= s * _MOST_MARKS), _STEPS_S[-1])
    parts = [f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _PLOT}" y2="{y}" stroke="#222"/>']
    for mark in range(0, int(duration_s) + 1, step):
        x = number(_LEFT + _PLOT * mark / duration_s if duration_s else _LEFT)
        parts.append(f'<line x1="{x}" y1="{y}" x2="{x}" y2="{y + 5}" stroke="#222"/>')
        parts.append(f'<text x="{x}" y="{y + 20}" text-anchor="middle">{offset_text(mark)}</text>')
    parts.append(text(_LEFT + _PLOT, y + 38, "time since the start", "text-anchor='end'"))
    return parts


def _scale_step(most: float) -> int:
    """A round step that gives at most five lines."""
    step = 1
    while most > 5 * step:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step
