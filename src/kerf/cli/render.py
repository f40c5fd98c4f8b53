"""What commands print: the form of `-o`, or lines of text; the same bytes in every pipe, fitted on a terminal."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from kerf.cli.echo import echo, echo_styled
from kerf.cli.output.forms import JSONPATH, NAME, is_of_fields
from kerf.cli.output.screen import Screen, current
from kerf.model.plan import Patch
from kerf.model.printable import printable

_IN_PLACE = ("NodePool", "Deployment", "StatefulSet", "ReplicaSet", "CronJob")
"""Kinds whose change takes effect; a Pod and a Job's template cannot be changed, only made again."""
_AT_ONCE = 1 << 16
"""Characters that are printed at once."""


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Lines of a table: upper-case headers, two spaces between columns, nothing after the last.

    Without headers where `--no-headers` is given. On a terminal it fits the width, and a row may be several lines.
    """
    return [line for lines in table_rows(headers, rows, indent) for line in lines]


def table_rows(
    headers: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "", on: Screen | None = None
) -> list[list[str]]:
    """The same with the lines of each row together, those of the headers first. `on`: another screen."""
    body, screen = list(map(tuple, rows)), on or current()
    if screen.width is not None or screen.has_colour:
        from kerf.cli.output.tables import Fitted

        return [list(lines) for lines in Fitted(headers, body, indent, screen, is_styled=False).lines()]
    all_rows = [tuple(headers), *body] if screen.has_headers else body
    widths = [max((len(row[column]) for row in all_rows), default=0) for column in range(len(headers))]
    return [
        [(indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()]
        for row in all_rows
    ]


def emit(output: str, data: Callable[[], Mapping[str, Any]], text: Callable[[], Iterable[str]]) -> None:
    """Write what `data` gives in the form of `-o`, or the lines of `text`, to stdout; the other is not computed.

    A value of `data` may be an iterator: it is a list of which JSON and YAML never hold all items at once.
    Raises InputError for a form that does not fit.
    """
    if output in ("json", "yaml"):
        _write(_json_pieces(data()) if output == "json" else _yaml_pieces(data()))
    elif is_of_fields(output):
        from kerf.cli.output.written import columns, names, templated

        # As JSON has it: texts, lists and objects, and nothing that only looks like one.
        found = json.loads(msgspec.json.encode(whole(data())))
        if output == NAME:
            echo("\n".join(names(found)), nl=bool(names(found)))
        elif output.startswith(JSONPATH):
            echo(templated(output, found), nl=False)
        else:
            echo("\n".join(table(*columns(output, found))))
    else:
        show_lines(text())


def show_lines(lines: Iterable[str]) -> None:
    """Print lines of text: as they are into a pipe; on a terminal they fit its width and have its colour."""
    screen = current()
    if screen.width is None and not screen.has_colour:
        _write(_ended(lines))
        return
    from kerf.cli.output.tables import Shown, fitted_line

    safe = (line if isinstance(line, Shown) else part for line in lines for part in _parts(line))
    echo_styled("\n".join(each for line in safe for each in fitted_line(line, screen)))


def _ended(lines: Iterable[str]) -> Iterator[str]:
    """The lines with their ends; an empty one where there are none."""
    held = iter(lines)
    yield f"{next(held, '')}\n"
    yield from (f"{line}\n" for line in held)


def _parts(line: str) -> list[str]:
    """A line as what is printed: escaped, and cut where it has ends of lines."""
    return [line] if not line else printable(line).split("\n")


def whole(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a list for each value that is an iterator."""
    return {key: list(value) if isinstance(value, Iterator) else value for key, value in data.items()}


def _json_pieces(data: Mapping[str, Any]) -> Iterator[str]:
    """The text of one JSON object, two spaces for each level."""
    mark = "{"
    for key, value in data.items():
        yield f"{mark}\n  {_json(key)}: "
        mark = ","
        if not isinstance(value, Iterator):
            yield _json(value).replace("\n", "\n  ")
            continue
        bracket = "["
        for item in value:
            yield f"{bracket}\n    " + _json(item).replace("\n", "\n    ")
            bracket = ","
        yield "[]" if bracket == "[" else "\n  ]"
    yield "{}\n" if mark == "{" else "\n}\n"


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _yaml_pieces(data: Mapping[str, Any]) -> Iterator[str]:
    """The text of one YAML document: that of each key, and of each item, stands as if it were alone."""
    for key, value in data.items():
        if not isinstance(value, Iterator):
            yield _yaml({key: value})
            continue
        first = next(value, None)
        yield f"{key}: []\n" if first is None else f"{key}:\n{_yaml([first])}"
        yield from (_yaml([item]) for item in value)
    if not data:
        yield _yaml({})


def _yaml(value: Any) -> str:
    # Read back from JSON, so equal lists are not written as one list and references to it.
    plain = json.loads(msgspec.json.encode(value))
    written: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=10_000)
    return written


def _write(pieces: Iterable[str]) -> None:
    """Print texts one after the other, many at a time, and never all of a large plan."""
    held, size = list[str](), 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _AT_ONCE:
            echo("".join(held), nl=False)
            held, size = [], 0
    echo("".join(held), nl=False)


def apart(texts: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of several texts, with an empty line between them."""
    for number, lines in enumerate(texts):
        if number:
            yield ""
        yield from lines


def counted(number: int, noun: str) -> str:
    """`1 pod`, `3 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int = 1) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def patch_text(patch: Patch) -> str:
    """The merge patch as kubectl takes it: JSON, keys in order."""
    return json.dumps(patch.change, sort_keys=True)


def patch_command(patch: Patch) -> str:
    """A command line that applies the patch, to the cluster or, where that cannot be, to the manifest."""
    kind, text = patch.kind.lower(), shlex.quote(patch_text(patch))
    strategy = "merge" if patch.kind == "NodePool" else "strategic"
    if patch.kind not in _IN_PLACE:
        return f"kubectl patch --local -f MANIFEST --type {strategy} -p {text} -o yaml"
    namespace = f" -n {patch.namespace}" if patch.namespace else ""
    return f"kubectl patch {kind} {patch.name}{namespace} --type {strategy} -p {text}"


def percent_text(part: int, whole: int) -> str:
    """`part` of `whole` in percent, rounded up to one decimal: `25 %`, `3.3 %`."""
    tenths = -(-part * 1000 // whole) if whole else 0
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10} %"
