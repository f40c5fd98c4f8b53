"""Comments of a YAML text, by the line they are about.

A parser throws them away. A comment at the end of a line is about that line, and lines of comments are about the next
line that holds something. A `#` inside a scalar is none, so the scanner's positions of scalars are asked.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import yaml

from kerf.manifests.yaml_nodes import LOADER


@dataclass(frozen=True)
class Comments:
    """Per line, from zero: the lines of comments above it and the comment at its end. `tail` follows the last line."""

    above: dict[int, tuple[str, ...]] = field(default_factory=dict)
    after: dict[int, str] = field(default_factory=dict)
    tail: tuple[str, ...] = ()


def comments_of(text: str) -> Comments:
    """All comments of a text that can be parsed."""
    inside = _scalars(text)
    above: dict[int, tuple[str, ...]] = {}
    after: dict[int, str] = {}
    waiting: list[str] = []
    for number, line in enumerate(text.split("\n")):
        start = next((at for at in _signs(line) if not _is_within(inside[number], at)), None)
        comment = line[start:].rstrip() if start is not None else ""
        rest = line[:start].strip() if start is not None else line.strip()
        if comment and not rest and not inside[number]:
            waiting.append(comment)
        elif rest or inside[number]:
            if waiting and not rest.startswith(("---", "%")):
                above[number] = tuple(waiting)
                waiting = []
            if comment:
                after[number] = comment
    return Comments(above, after, tuple(waiting))


def _signs(line: str) -> list[int]:
    return [at for at, sign in enumerate(line) if sign == "#" and (at == 0 or line[at - 1] in " \t")]


def _is_within(spans: list[tuple[int, int]], at: int) -> bool:
    return any(start <= at < end for start, end in spans)


def _scalars(text: str) -> dict[int, list[tuple[int, int]]]:
    """The columns that scalars cover, by line."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for token in yaml.scan(text, Loader=LOADER):
        if not isinstance(token, yaml.ScalarToken):
            continue
        first, last = token.start_mark, token.end_mark
        for number in range(first.line, last.line + 1):
            end = last.column if number == last.line else 1 << 30
            if number < last.line or end:
                found[number].append((first.column if number == first.line else 0, end))
    return found
