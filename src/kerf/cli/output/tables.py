"""Tables and lines for a terminal: they fit its width, wrap between words, and have colour.

A table of a pipe is as wide as its text. On a terminal columns of several words wrap first; where even their longest
words do not fit beside each other, the last columns go below their row, each with its name.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from kerf.cli.output.screen import Screen
from kerf.model.printable import one_line

_GAP = 2
_NO_BREAK = "\N{NO-BREAK SPACE}"
_BELOW = "    "
_STYLES = {
    "launch": "green",
    "relabel": "yellow",
    "replace": "yellow",
    "delete": "red",
    "ready": "green",
    "ok": "green",
    "yes": "green",
    "launching": "cyan",
    "registering": "cyan",
    "initialising": "cyan",
    "deleting": "yellow",
    "given-up": "yellow",
    "not-ready": "bold red",
    "no-node": "bold red",
    "MISSED": "bold red",
    "error": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "failed": "bold red",
    "check": "yellow",
}
"""Cells that are one of these words have this style."""
_PREFIXES = {
    "error:": "bold red",
    "warning:": "yellow",
    "hint:": "cyan",
    "note:": "dim",
    "cost:": "bold",
    "GPUs:": "bold",
    "advice:": "green",
    "overloaded:": "red",
}
"""Lines that begin like this have their first word in this style."""
_COMMANDS = ("kubectl ", "# kubectl ", "kerf ")
"""A line with one of these is for copying: it stays one line."""


class Shown(str):
    """A line that is safe on a terminal already, with its styles."""

    __slots__ = ()


@lru_cache(maxsize=64)
def _parsed(style: str) -> Style:
    return Style.parse(style)


def styled(text: str, style: str, screen: Screen) -> str:
    """The text in a style of rich (`bold red`), where there is colour."""
    return _parsed(style).render(text) if screen.has_colour and style and text else text


def unbroken(text: str) -> str:
    """The text as one word of a table, which shows its spaces."""
    return text.replace(" ", _NO_BREAK)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, cut between words; a longer word stays whole."""
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _widest_word(text: str) -> int:
    return max(map(cell_len, text.split(" ")))


class Fitted:
    """A table fitted to a screen; text is counted as it is shown, a wide letter as two columns."""

    def __init__(
        self, headers: Sequence[str], rows: Sequence[Sequence[str]], indent: str, screen: Screen, *, is_styled: bool
    ) -> None:
        """With `is_styled` cells have styles of their own, and are measured without."""
        self._headers = headers
        self._rows = [tuple(row if is_styled else map(one_line, row)) for row in rows]
        self._indent, self._screen, self._is_styled = indent, screen, is_styled
        self._widths = self._fit()

    @property
    def beside(self) -> int:
        """How many columns stand beside each other; the others go below."""
        return len(self._widths)

    def _plain(self, cell: str) -> str:
        return Text.from_ansi(cell).plain if "\x1b" in cell else cell

    def _fit(self) -> list[int]:
        """The widths of the columns that stand beside each other; the others go below."""
        lines = [tuple(self._headers), *(tuple(map(self._plain, row)) for row in self._rows)]
        columns = list(zip(*lines, strict=True))
        natural = [max(map(cell_len, column)) for column in columns]
        least = [max(map(_widest_word, column)) for column in columns]
        width = self._screen.width
        if width is None:
            return natural
        kept = len(natural)
        while kept > 1 and self._needed(least[:kept]) > width:
            kept -= 1
        widths = least[:kept]
        left = width - self._needed(widths)
        # Who needs least gets all of it, so short columns stay on one line and the long text takes what is left.
        for column in sorted(range(kept), key=lambda each: natural[each] - least[each]):
            more = max(0, min(left, natural[column] - least[column]))
            widths[column] += more
            left -= more
        return widths

    def _needed(self, widths: Sequence[int]) -> int:
        return cell_len(self._indent) + sum(widths) + _GAP * (len(widths) - 1)

    def lines(self) -> Iterator[list[Shown]]:
        """The lines of the headers, where they are wanted, then those of each row."""
        if self._screen.has_headers:
            yield list(self._row(self._headers, "bold"))
        for row in self._rows:
            yield [*self._row(row, ""), *self._below(row)]

    def _row(self, cells: Sequence[str], style: str) -> Iterator[Shown]:
        parts = [self._cell(cell, width) for cell, width in zip(cells, self._widths, strict=False)]
        for number in range(max(map(len, parts))):
            texts = [part[number] if number < len(part) else "" for part in parts]
            yield Shown(self._indent + self._joined(texts, cells, style))

    def _cell(self, cell: str, width: int) -> list[str]:
        if self._is_styled and cell_len(self._plain(cell)) <= width:
            return [cell]
        return wrapped(self._plain(cell), width)

    def _joined(self, texts: Sequence[str], cells: Sequence[str], style: str) -> str:
        """One line; padding stands outside of the style, and nothing after the last cell."""
        last = max((index for index, text in enumerate(texts) if text), default=-1)
        line = ""
        for index, text in enumerate(texts[: last + 1]):
            line += styled(text, style or _STYLES.get(cells[index], ""), self._screen)
            if index < last:
                line += " " * (self._widths[index] - cell_len(self._plain(text)) + _GAP)
        return line.replace(_NO_BREAK, " ") if self._is_styled else line

    def _below(self, cells: Sequence[str]) -> Iterator[Shown]:
        """The columns that had no room, with their names; short ones share a line."""
        first = len(self._widths)
        pieces = [(name, self._plain(cell)) for name, cell in zip(self._headers[first:], cells[first:], strict=True)]
        indent = self._indent + _BELOW
        room = max(1, (self._screen.width or 0) - cell_len(indent))
        line = ""
        for name, cell in pieces:
            piece = f"{name} {cell}".replace(_NO_BREAK, " ") if self._is_styled else f"{name} {cell}"
            if line and cell_len(line) + _GAP + cell_len(piece) <= room:
                line += " " * _GAP + piece
                continue
            yield from (Shown(indent + each) for each in wrapped(line, room) if each)
            line = piece
        yield from (Shown(indent + each) for each in wrapped(line, room) if each)


def fitted_line(line: str, screen: Screen) -> list[Shown]:
    """A line of text, safe already, in lines that fit; what goes on stands two columns further in."""
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    if isinstance(line, Shown) or not text:
        return [Shown(line)]
    lines = [line]
    if screen.width is not None and not text.startswith(_COMMANDS):
        room = max(1, screen.width - len(indent))
        first, *_ = wrapped(text, room)
        rest = text[len(first) :].lstrip(" ")
        lines = [indent + first]
        if rest:
            lines += [f"{indent}  {each}" for each in wrapped(rest, max(1, room - 2))]
    for prefix, style in _PREFIXES.items():
        if text.startswith(prefix):
            lines[0] = indent + styled(prefix, style, screen) + lines[0][len(indent) + len(prefix) :]
    return [Shown(each) for each in lines]
