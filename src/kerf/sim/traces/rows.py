"""Rows of a CSV file, taken one at a time, with the place of everything that is wrong in one."""

import csv
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TextIO

from kerf.errors import DecodeError, InputError, brief
from kerf.manifests.schema import LABEL_VALUE

_MOST = 10**12
_INSTANT = "%Y-%m-%d %H:%M:%S"


class TraceRow:
    """One row. Each getter raises DecodeError with file, line and column's name."""

    __slots__ = ("_fields", "_line", "_path")

    def __init__(self, path: str, line: int, fields: dict[str, str]) -> None:
        self._path, self._line, self._fields = path, line, fields

    def error(self, column: str, expected: str, got: object, hint: str = "") -> DecodeError:
        """The error about a field of this row."""
        return DecodeError(column, expected, got, place=f"{self._path}:{self._line}", hint=hint)

    def text(self, column: str) -> str:
        """What stands there, without space around it; empty where nothing does."""
        return self._fields.get(column, "").strip()

    def filled(self, column: str) -> str:
        """A text that is not empty."""
        text = self.text(column)
        if not text:
            raise self.error(column, "a text", text)
        return text

    def label(self, column: str) -> str:
        """A text that pods can have as the value of a label; not empty."""
        text = self.filled(column)
        if not LABEL_VALUE.accepts(text):
            raise self.error(column, LABEL_VALUE.expected, text)
        return text

    def number(self, column: str) -> float:
        """A finite number that is not negative."""
        found = self.optional(column)
        if found is None:
            raise self.error(column, "a number", "")
        return found

    def optional(self, column: str) -> float | None:
        """The same; None where nothing stands."""
        text = self.text(column)
        if not text:
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if found > _MOST:
            raise self.error(column, f"a number of at most {_MOST}", text)
        if not found >= 0:
            raise self.error(column, "a number from 0 on", text)
        return found

    def whole(self, column: str, most: int = _MOST) -> int:
        """A whole number from 0 to `most`."""
        found = self.number(column)
        if found != int(found) or found > most:
            raise self.error(column, f"a whole number from 0 to {most}", self.text(column))
        return int(found)

    def instant_s(self, column: str) -> int:
        """Seconds since the epoch of a `2024-11-15 16:57:50`, taken as UTC."""
        text = self.text(column)
        try:
            return int(datetime.strptime(text, _INSTANT).replace(tzinfo=UTC).timestamp())
        except ValueError:
            raise self.error(column, "an instant such as 2024-11-15 16:57:50", text) from None


class Table:
    """An open CSV file: its header, then its rows in their order. Raises InputError for what is no text of UTF-8."""

    def __init__(self, path: str, file: TextIO) -> None:
        self.path = path
        self._reader = csv.reader(file, strict=True)
        header = next(self._lines(), [])
        self.header = tuple(name.strip() for name in header)
        self._line: int | None = 1
        twice = [name for number, name in enumerate(self.header) if name and name in self.header[:number]]
        if twice:
            raise InputError(f"{path}:1: expected each column once, got {brief(twice[0])} twice")

    @property
    def place(self) -> str:
        """Of the row that was given last, as `file:line`; the file alone once all were."""
        return self.path if self._line is None else f"{self.path}:{self._line}"

    def rows(self) -> Iterator[TraceRow]:
        """Each row after the header; empty lines are passed over."""
        for fields in self._lines():
            if not fields:
                continue
            line = self._line = self._reader.line_num
            if len(fields) != len(self.header):
                raise InputError(f"{self.path}:{line}: expected {len(self.header)} fields, got {len(fields)}")
            yield TraceRow(self.path, line, dict(zip(self.header, fields, strict=True)))
        self._line = None

    def _lines(self) -> Iterator[Sequence[str]]:
        try:
            yield from self._reader
        except UnicodeDecodeError:
            raise InputError(f"{self.path}: expected text in UTF-8, got other bytes") from None
        except csv.Error as error:
            raise InputError(f"{self.path}:{self._reader.line_num}: expected a CSV file, got: {error}") from None
