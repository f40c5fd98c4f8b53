"""What `-o name`, `jsonpath=` and `custom-columns=` print of a command's JSON, and the order of `--sort-by`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kerf.cli.output.forms import COLUMNS, JSONPATH, items_of
from kerf.cli.output.jsonpath import FieldPath, FieldTemplate, relaxed, text_of
from kerf.errors import InputError, brief

_Row = TypeVar("_Row")
_NONE = "<none>"


def templated(output: str, data: Mapping[str, Any]) -> str:
    """The text of `jsonpath=TEMPLATE`, as kubectl without an end of line. Raises InputError."""
    return FieldTemplate(output.removeprefix(f"{JSONPATH}="), f"-o {JSONPATH}").of(dict(data))


def columns(output: str, data: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Headers and rows of `custom-columns=HEADER:PATH,...`. Raises InputError."""
    flag = f"-o {COLUMNS}"
    headers: list[str] = []
    paths: list[FieldPath] = []
    for part in _parts(output.removeprefix(f"{COLUMNS}=")):
        header, separator, path = part.partition(":")
        if not separator or not header or not path:
            raise InputError(f"{flag}: expected HEADER:PATH[,HEADER:PATH]..., got {brief(part)}")
        headers.append(header)
        paths.append(relaxed(path, flag))
    return headers, [tuple(_cell(path.found(item)) for path in paths) for item in items_of(dict(data))]


def _parts(text: str) -> Iterator[str]:
    """Cut at commas outside of brackets."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and not depth:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def _cell(found: Sequence[Any]) -> str:
    return ",".join(text_of(each) for each in found if each is not None) or _NONE


def names(data: Mapping[str, Any]) -> list[str]:
    """KIND/NAME of each object, or KIND/NAMESPACE/NAME, as the other commands take it. Raises InputError."""
    found = [_name(item) for item in _named(data)]
    missing = [each for each in found if each is None]
    if missing:
        raise InputError(f"-o name: expected objects with names, and {data.get('kind', 'this')} has none: -o json")
    return list(dict.fromkeys(each for each in found if each is not None))


def _named(data: Mapping[str, Any]) -> list[Any]:
    if data.get("kind") != "Plan":
        return items_of(dict(data))
    gone = [{"node": each["node"]} for key in ("relabels", "deletions", "replacements") for each in data.get(key, ())]
    waiting = [{"pod": each["pod"]} for each in data["unplaced"]]
    return [*gone, *waiting]


def _name(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("workload"), dict):
        item = item["workload"]
    if item.get("kind") and item.get("name"):
        return "/".join(filter(None, (item["kind"].lower(), item.get("namespace"), item["name"])))
    if item.get("pod"):
        return f"pod/{item['pod']}"
    if "index" in item and item.get("node"):
        return f"gpu/{item['node']}/{item['index']}"
    if item.get("node"):
        return f"node/{item['node']}"
    if item.get("nodeClaim"):
        return f"nodeclaim/{item['nodeClaim']}"
    return f"nodepool/{item['nodePool']}" if item.get("nodePool") else None


def in_order(rows: Sequence[_Row], item: Callable[[_Row], Mapping[str, Any]], by: str | None) -> list[_Row]:
    """The rows by what a path finds in their JSON, stable; as they are without `by`.

    Numbers go by size and before text, rows without the field come last. Raises InputError where no row has the field.
    """
    if not by:
        return list(rows)
    path = relaxed(by, "--sort-by")
    found = [(path.found(item(row)), row) for row in rows]
    if rows and not any(values for values, _ in found):
        known = ", ".join(item(rows[0]))
        raise InputError(f"--sort-by {by}: expected a field that a row has ({known}), got none")
    return [row for _, row in sorted(found, key=lambda pair: _rank(pair[0]))]


def _rank(values: Sequence[Any]) -> tuple[int, float, str]:
    value = values[0] if values else None
    if value is None:
        return (2, 0, "")
    return (0, float(value), "") if isinstance(value, (bool, int, float)) else (1, 0, text_of(value))
