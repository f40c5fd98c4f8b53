"""Warnings about what was read: those that say the same of many objects are one line, with the first of these."""

import re
from collections.abc import Iterable, Iterator

from kerf.cli.render import counted

_MOST_ALONE, _MOST_NAMED = 3, 2
_LEFT_OUT = "left out: "
_VALUES = re.compile(r", got .*|\[[0-9]+\]")


def grouped(warnings: Iterable[str]) -> Iterator[str]:
    """The warnings, each `PLACE: what is wrong` with or without `left out: ` before it, in their order.

    Where more than three say the same except for values, the first two stand for all, and one line counts the others.
    """
    groups: dict[tuple[bool, str], list[str]] = {}
    for warning in warnings:
        is_left_out = warning.startswith(_LEFT_OUT)
        _, _, what = warning.removeprefix(_LEFT_OUT).partition(": ")
        groups.setdefault((is_left_out, _VALUES.sub("", what) or warning), []).append(warning)
    for (_, what), found in groups.items():
        if len(found) <= _MOST_ALONE:
            yield from found
            continue
        yield from found[:_MOST_NAMED]
        left = len(found) - _MOST_NAMED
        yield f"{counted(left, 'more warning')} of the same: {what}"
