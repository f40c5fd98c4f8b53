"""Bars for terminals: how full something is, and whose parts a card has."""

from collections.abc import Sequence

from kerf.cli.output.screen import Screen
from kerf.cli.output.tables import styled

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FREE = "·"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")


def bar(part: float, whole: float, width: int, screen: Screen) -> str:
    """`part` of `whole` as a bar of `width` columns; more than all of it is a full bar, in red."""
    share = part / whole if whole > 0 else 0.0
    eighths = min(width * 8, max(0, round(share * width * 8)))
    full, rest = divmod(eighths, 8)
    filled = "█" * full + (_EIGHTHS[rest] if rest else "")
    colour = "red" if share > 1 else "cyan"
    return styled(filled, colour, screen) + styled(_FREE * (width - len(filled)), "dim", screen)


def letter(number: int) -> str:
    """`A` for 0; after `Z` it is `*`, as a card hardly has more holders."""
    return LETTERS[number] if number < len(LETTERS) else "*"


def lettered(number: int, screen: Screen) -> str:
    """The letter of a holder in its colour."""
    return styled(letter(number), _COLOURS[number % len(_COLOURS)], screen)


def parts_bar(parts: Sequence[tuple[int, float]], whole: float, width: int, screen: Screen) -> str:
    """Parts of a whole, each with its number: its letter fills its share, and at least a column."""
    text, left = "", width
    done = 0.0
    drawn = 0
    for number, size in parts:
        done += size
        until = round(width * done / whole) if whole > 0 else 0
        columns = min(left, max(1, until - drawn))
        text += styled(letter(number) * columns, _COLOURS[number % len(_COLOURS)], screen)
        left -= columns
        drawn += columns
    return text + styled(_FREE * left, "dim", screen)
