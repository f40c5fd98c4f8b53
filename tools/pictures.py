"""Draw the pictures of the pages, each from what a command of Kerf gives for files of this checkout.

    python -m tools.pictures

`kerf plan --chart` and `kerf simulate --chart` draw most of them. The cards of a cluster now and after its plan are
drawn here, from the JSON of `kerf gpus` and `kerf plan`. A test draws all of them again and compares.
"""

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerf.cli.main import run
from kerf.svg import COLOURS, document, number, text

ROOT = Path(__file__).parents[1]
FOLDER = Path("docs") / "pictures"
DUMP = "examples/eks-dump/cluster.yaml"
_HAMI = ("-f", "examples/003-hami/nodepool.yaml", "-f", "examples/003-hami/workload.yaml")
CHARTS = {
    "cards.svg": ("plan", *_HAMI, "--replicas", "deployment/default/gpu-inference=7"),
    "cost-over-time.svg": ("simulate", "examples/trace/scenario.yaml"),
}
"""By file, the command whose `--chart` it is."""

_WIDTH, _EDGE, _CARD, _TALL, _GAP, _ROW = 760, 24, 74, 110, 10, 190
_LEFT = 132


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU: its memory, and the memory that each pod has of it."""

    memory_mib: int
    slices: tuple[tuple[str, int], ...]

    @property
    def free_mib(self) -> int:
        """Memory that no pod has."""
        return self.memory_mib - sum(memory_mib for _, memory_mib in self.slices)


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its cards; `is_new` where the plan buys it."""

    name: str
    cards: tuple[Card, ...]
    is_new: bool = False


def output(*arguments: str) -> str:
    """What `kerf ARGUMENTS` prints, run in the root of the checkout."""
    out = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(list(arguments))
    assert code in (0, 3), f"kerf {' '.join(arguments)}: exit {code}"
    return out.getvalue()


def chart(*arguments: str) -> str:
    """The file that `kerf ARGUMENTS --chart` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chart.svg"
        output(*arguments, "--chart", str(path))
        return path.read_text(encoding="utf-8")


def before_and_after() -> str:
    """The cards of a dump now, the pods that wait, and the cards once the plan of the dump is done."""
    gpus, plan = (json.loads(output(command, "-f", DUMP, "-o", "json")) for command in ("gpus", "plan"))
    now, bought = _nodes_now(gpus["items"]), _nodes_bought(plan["launches"])
    waiting = [part for node in bought for card in node.cards for part in card.slices]
    workloads = list(dict.fromkeys(_workload(pod) for node in (*now, *bought) for pod in _pods(node)))
    colours = dict(zip(workloads, COLOURS, strict=False))
    cost = plan["cost"]
    parts = [
        text(_EDGE, 30, _heading(now, waiting), "font-size='15' font-weight='bold'"),
        *_row("now", f"{cost['perHourBefore']} {cost['currency']}/h", now, 60, colours),
        *_waiting(waiting, _LEFT + _width(now) + 2 * _GAP, 60, now, colours),
        *_row("after the plan", f"{cost['perHourAfter']} {cost['currency']}/h", (*now, *bought), 60 + _ROW, colours),
        *_legend(colours, 60 + 2 * _ROW),
    ]
    return document("The cards of a cluster before and after its plan", _WIDTH, 84 + 2 * _ROW, parts)


def _nodes_now(items: Sequence[dict[str, Any]]) -> tuple[Node, ...]:
    cards: dict[str, list[Card]] = {}
    for item in items:
        slices = tuple((each["pod"], each["memoryMiB"]) for each in item["holders"])
        cards.setdefault(item["node"], []).append(Card(item["memoryMiB"], slices))
    return tuple(Node(name, tuple(held)) for name, held in cards.items())


def _nodes_bought(launches: Sequence[dict[str, Any]]) -> tuple[Node, ...]:
    return tuple(
        Node(
            f"new: {launch['instanceType']}",
            tuple(
                Card(device["memoryMiB"], tuple((each["pod"], each["memoryMiB"]) for each in device["slices"]))
                for device in launch["devices"]
            ),
            is_new=True,
        )
        for launch in launches
    )


def _pods(node: Node) -> Iterator[str]:
    yield from (pod for card in node.cards for pod, _ in card.slices)


def _workload(pod: str) -> str:
    """The name that the pods of one ReplicaSet share: `chat` of `team-a/chat-7d9f6b-x2k8q`."""
    return pod.partition("/")[2].rsplit("-", 2)[0]


def _heading(nodes: Sequence[Node], waiting: Sequence[tuple[str, int]]) -> str:
    """Why the sum of a node's free memory says nothing."""
    free = [card.free_mib for node in nodes for card in node.cards]
    most = max(memory_mib for _, memory_mib in waiting)
    return f"{sum(free)} MiB are free in sum, and no card has {most} MiB free"


def _width(nodes: Sequence[Node]) -> int:
    return sum(len(node.cards) * (_CARD + _GAP) + _GAP for node in nodes) + 2 * _GAP * (len(nodes) - 1)


def _row(title: str, cost: str, nodes: Sequence[Node], top: int, colours: dict[str, str]) -> Iterator[str]:
    yield text(_EDGE, top + 60, title, "font-weight='bold'")
    yield text(_EDGE, top + 78, cost)
    x = _LEFT
    for node in nodes:
        width = len(node.cards) * (_CARD + _GAP) + _GAP
        frame = "#009E73" if node.is_new else "#888"
        yield f'<rect x="{x}" y="{top}" width="{width}" height="{_TALL + 2 * _GAP}" fill="none" stroke="{frame}"/>'
        yield text(x + width / 2, top + _TALL + 2 * _GAP + 16, node.name, "text-anchor='middle'")
        for at, card in enumerate(node.cards):
            yield from _card(card, x + _GAP + at * (_CARD + _GAP), top + _GAP, colours)
        x += width + 2 * _GAP


def _card(card: Card, x: int, y: int, colours: dict[str, str]) -> Iterator[str]:
    yield f'<rect x="{x}" y="{y}" width="{_CARD}" height="{_TALL}" fill="#eee"/>'
    bottom = float(y + _TALL)
    for part in card.slices:
        height = _TALL * part[1] / card.memory_mib
        bottom -= height
        yield from _slice(part, x, bottom, height, colours)
    if (height := bottom - y) > 14:
        yield text(x + _CARD / 2, y + height / 2 + 4, f"{card.free_mib} free", "text-anchor='middle'")


def _slice(part: tuple[str, int], x: int, y: float, height: float, colours: dict[str, str]) -> Iterator[str]:
    pod, memory_mib = part
    colour = colours[_workload(pod)]
    yield (f'<rect x="{x}" y="{number(y)}" width="{_CARD}" height="{number(height)}" fill="{colour}" stroke="#fff"/>')
    words = "#fff" if colour == COLOURS[0] else "#222"
    yield text(x + _CARD / 2, y + height / 2 + 4, f"{memory_mib} MiB", f"text-anchor='middle' fill='{words}'")


def _waiting(
    parts: Sequence[tuple[str, int]], x: int, top: int, now: Sequence[Node], colours: dict[str, str]
) -> Iterator[str]:
    """The pods that wait, as high as they would be on a card."""
    y = float(top + _GAP)
    for part in parts:
        height = _TALL * part[1] / now[0].cards[0].memory_mib
        yield from _slice(part, x + _GAP, y, height, colours)
        y += height
    yield text(x + _GAP + _CARD / 2, top + _TALL + 2 * _GAP + 16, "waiting", "text-anchor='middle'")


def _legend(colours: dict[str, str], y: int) -> Iterator[str]:
    x = _LEFT
    for name, colour in colours.items():
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>'
        yield text(x + 17, y, name)
        x += 60 + 7 * len(name)


def pictures() -> dict[str, str]:
    """Every picture by the name of its file."""
    return {"before-and-after.svg": before_and_after(), **{name: chart(*command) for name, command in CHARTS.items()}}


def main() -> None:
    """Write all of them."""
    (ROOT / FOLDER).mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (ROOT / FOLDER / name).write_text(drawn, encoding="utf-8")
        sys.stdout.write(f"{FOLDER / name}\n")


if __name__ == "__main__":
    main()
