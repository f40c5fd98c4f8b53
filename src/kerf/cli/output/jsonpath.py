"""kubectl's JSONPath templates: text with paths in braces, `{range .items[*]}{.node}{"\\n"}{end}`.

It is a language of kubectl's own (range, quoted text, a path without `$`), which no library for JSONPath reads. All
that kubectl documents of paths is here: names, wildcards, indexes, slices, unions, descent and filters.
"""

import ast
import json
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kerf.errors import InputError, brief

_Step = Callable[[Sequence[Any]], list[Any]]
_NAME = re.compile(r"\.?((?:\\.|[^.\[\]{}\s\\(),=<>!'\"*?@$])+)")
_SLICE = re.compile(r"(-?[0-9]*):(-?[0-9]*)(?::(-?[0-9]+))?")
_FILTER = re.compile(r"\?\(\s*(@[^=!<>]*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?))?\s*\)", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_COMPARED = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MISSING = object()


class FieldPath:
    """A path, read once and followed in many values."""

    def __init__(self, text: str, flag: str) -> None:
        """Raises InputError, which names the flag and the place in the path."""
        self.text, self._flag = text, flag
        self._steps: list[_Step] = []
        at, end = 1 if text[:1] in ("$", "@") else 0, len(text)
        while at < end:
            at = self._read(at)

    def found(self, value: Any) -> list[Any]:
        """What the path leads to, in order; empty where it leads nowhere."""
        values: list[Any] = [value]
        for step in self._steps:
            values = step(values)
        return values

    def _read(self, at: int) -> int:
        """Reads one step and says where the next one begins."""
        text = self.text
        if text.startswith("..", at):
            self._steps.append(_all_below)
            return at + 1 if text[at + 2 : at + 3] not in ("[",) else at + 2
        if text.startswith((".*", "*"), at):
            self._steps.append(_each)
            return text.index("*", at) + 1
        if text.startswith(".[", at):
            return at + 1
        if text[at] == "[":
            return self._bracket(at)
        name = _NAME.match(text, at)
        if name is not None and (at == 0 or text[at] == "." or text[at - 1] in "$@"):
            self._steps.append(_named((re.sub(r"\\(.)", r"\1", name[1]),)))
            return name.end()
        if text == ".":
            return at + 1
        raise self._refused(at)

    def _bracket(self, at: int) -> int:
        end = _closing(self.text, at)
        if end < 0:
            raise self._refused(at)
        inside = self.text[at + 1 : end].strip()
        self._steps.append(self._inside(inside, at))
        return end + 1

    def _inside(self, inside: str, at: int) -> _Step:
        if inside == "*":
            return _each
        condition = _FILTER.fullmatch(inside)
        if condition is not None:
            return _kept(FieldPath(condition[1], self._flag), condition[2], self._operand(condition[3], at))
        cut = _SLICE.fullmatch(inside)
        if cut is not None:
            return _sliced(slice(*(int(part) if part else None for part in cut.groups())))
        parts = [part.strip() for part in re.split(r",(?=(?:[^']*'[^']*')*[^']*$)", inside)]
        if all(_QUOTED.fullmatch(part) for part in parts):
            return _named(tuple(part[1:-1] for part in parts))
        if all(re.fullmatch(r"-?[0-9]+", part) for part in parts):
            return _indexed(tuple(int(part) for part in parts))
        raise self._refused(at)

    def _operand(self, text: str | None, at: int) -> Any:
        """What a filter compares with: a path or a value."""
        if text is None:
            return _MISSING
        if text.startswith("@"):
            return FieldPath(text, self._flag)
        if _QUOTED.fullmatch(text):
            return text[1:-1]
        try:
            return json.loads(text)
        except ValueError:
            raise self._refused(at) from None

    def _refused(self, at: int) -> InputError:
        wanted = "expected a path such as .items[*].node, ['name'], [0], [1:3], ..name or [?(@.gpus>0)]"
        return InputError(f"{self._flag}: {wanted}, got {brief(self.text[at:])} in {brief(self.text)}")


def _closing(text: str, at: int) -> int:
    """Where the bracket at `at` closes; -1 where it does not. Quoted text counts for nothing."""
    depth, quote = 0, ""
    for index in range(at, len(text)):
        letter = text[index]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
            if depth == 0:
                return index
    return -1


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _each(values: Sequence[Any]) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _all_below(values: Sequence[Any]) -> list[Any]:
    """The values and all that is in them, parents first."""
    found: list[Any] = []
    left = list(reversed(values))
    while left:
        value = left.pop()
        found.append(value)
        left += reversed(_children(value))
    return found


def _named(names: tuple[str, ...]) -> _Step:
    return lambda values: [v[name] for v in values if isinstance(v, dict) for name in names if name in v]


def _indexed(indexes: tuple[int, ...]) -> _Step:
    return lambda values: [
        v[index] for v in values if isinstance(v, list) for index in indexes if -len(v) <= index < len(v)
    ]


def _sliced(cut: slice) -> _Step:
    return lambda values: [each for v in values if isinstance(v, list) for each in v[cut]]


def _kept(path: FieldPath, compared: str | None, operand: Any) -> _Step:
    def holds(value: Any) -> bool:
        left = path.found(value)
        if compared is None or not left:
            return bool(left) and compared is None
        right = operand.found(value) if isinstance(operand, FieldPath) else [operand]
        try:
            return bool(right) and bool(_COMPARED[compared](left[0], right[0]))
        except TypeError:
            return False

    return lambda values: [child for value in values for child in _children(value) if holds(child)]


def relaxed(text: str, flag: str) -> FieldPath:
    """A path as kubectl takes it for columns and order: `node`, `.node`, `{node}` or `{.node}`. Raises InputError."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    return FieldPath(inner, flag)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a template: text, a path, or the begin (`path` and `end`) or the end of a range."""

    text: str = ""
    path: FieldPath | None = None
    end: int | None = None
    is_end: bool = False


class FieldTemplate:
    """Text and paths in braces."""

    def __init__(self, text: str, flag: str) -> None:
        """Without any brace the text is a path. Raises InputError."""
        self._parts: list[_Part] = []
        begun: list[int] = []
        for piece, is_code in _pieces(text if "{" in text else f"{{{text}}}", flag):
            if not is_code:
                self._parts.append(_Part(piece))
            elif _QUOTED.fullmatch(piece):
                self._parts.append(_Part(_unquoted(piece)))
            elif piece == "end":
                if not begun:
                    raise InputError(f"{flag}: expected a {{range PATH}} before {{end}}")
                start = begun.pop()
                self._parts[start] = _Part(path=self._parts[start].path, end=len(self._parts))
                self._parts.append(_Part(is_end=True))
            elif piece.startswith("range "):
                begun.append(len(self._parts))
                self._parts.append(_Part(path=FieldPath(piece.removeprefix("range ").strip(), flag)))
            else:
                self._parts.append(_Part(path=FieldPath(piece, flag)))
        if begun:
            raise InputError(f"{flag}: expected an {{end}} for each {{range PATH}}")

    def of(self, value: Any) -> str:
        """The text for a value; a path that leads nowhere is empty, and several values have a space between them."""
        written: list[str] = []
        loops: list[tuple[list[Any], int, Any]] = []
        at, current = 0, value
        while at < len(self._parts):
            part = self._parts[at]
            if part.is_end:
                values, start, outer = loops.pop()
                if values:
                    current, at = values.pop(), start
                    loops.append((values, start, outer))
                else:
                    current = outer
            elif part.end is not None and part.path is not None:
                values = part.path.found(current if part.path.text[:1] != "$" else value)[::-1]
                if values:
                    outer, current = current, values.pop()
                    loops.append((values, at, outer))
                else:
                    at = part.end
            elif part.path is not None:
                found = part.path.found(current if part.path.text[:1] != "$" else value)
                written.append(" ".join(map(text_of, found)))
            else:
                written.append(part.text)
            at += 1
        return "".join(written)


def _pieces(text: str, flag: str) -> Iterable[tuple[str, bool]]:
    """The text outside of braces, and what is in them."""
    at = 0
    while at < len(text):
        begin = text.find("{", at)
        if begin < 0:
            break
        if begin > at:
            yield text[at:begin], False
        end = _closing(text, begin)
        if end < 0:
            raise InputError(f"{flag}: expected a }} for each {{, got {brief(text[begin:])}")
        yield text[begin + 1 : end].strip(), True
        at = end + 1
    if at < len(text):
        yield text[at:], False


def _unquoted(piece: str) -> str:
    try:
        return str(ast.literal_eval(piece))
    except (SyntaxError, ValueError):
        return piece[1:-1]


def text_of(value: Any) -> str:
    """A value as kubectl prints it: text as it is, all else as JSON; nothing for null."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
