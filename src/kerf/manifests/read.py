"""Files, directories and standard input to documents.

One bad document must not hide the errors of the next, so a YAML stream is cut at its `---` lines before it is parsed,
and errors are kept beside the documents until decode reports all of them.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import msgspec
import yaml

from kerf.errors import DecodeError, InputError
from kerf.manifests.documents import Document, JsonDocument, JsonFile, YamlDocument
from kerf.manifests.unfilled import unrendered_hint
from kerf.manifests.yaml_nodes import YamlError, compose, find
from kerf.model.large import Large

_SUFFIXES = (".json", ".yaml", ".yml")
_JSON_START = re.compile(r"\s*[\[{]\s*\"")
_CUT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_PART = 1 << 20
_MOST_NAMED = 3
_DIRECTIVES_ONLY = re.compile(r"(?:\s*(?:[%#][^\n]*)?(?:\n|$))*")


@dataclass(frozen=True, repr=False)
class Documents(Large):
    """What was read, in order; where a file or document could not be read, its error stands in its place."""

    entries: tuple[Document | InputError, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        """The documents that could be read."""
        return (entry for entry in self.entries if not isinstance(entry, InputError))

    @property
    def errors(self) -> tuple[InputError, ...]:
        """What could not be read; decode raises these together with what it finds itself."""
        return tuple(entry for entry in self.entries if isinstance(entry, InputError))

    @classmethod
    def joined(cls, several: Iterable["Documents"]) -> "Documents":
        """All of several, in order."""
        return cls(tuple(entry for part in several for entry in part.entries))


def read_documents(
    paths: Sequence[str], stdin: TextIO, *, recursive: bool = False, tell: Callable[[float], None] | None = None
) -> Documents:
    """Every document of the files, directories and `-` in `paths`, in that order.

    A directory gives its `*.yaml`, `*.yml`, `*.json` by name; its subdirectories' too when `recursive`. What cannot be
    read or parsed is in `errors`, and decode raises it together with what it finds itself. `tell` hears after each
    path how much is done, 0 to 1.
    """
    found = []
    for number, path in enumerate(paths, 1):
        found.append(_read(path, stdin, recursive))
        if tell is not None:
            tell(number / len(paths))
    return Documents.joined(found)


def not_empty(documents: Documents, paths: Sequence[str]) -> Documents:
    """The documents that were read of `paths`, and errors. Raises InputError where there is neither.

    A command that failed leaves an empty file: no answer about it is right.
    """
    if documents.entries:
        return documents
    names = ", ".join("stdin" if path == "-" else path for path in paths[:_MOST_NAMED])
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    hint = "(hint: look at what wrote it; `-f -` reads standard input)"
    raise InputError(f"{names}{more}: expected objects of Kubernetes, got none {hint}")


def parse(text: str, name: str = "input") -> Documents:
    """The documents of one text, YAML or JSON, as if it were a file of that name."""
    return _parse(text.encode("utf-8", "surrogatepass"), name)


def parse_json(data: bytes, name: str) -> Documents:
    """The documents of an answer of the API, as if it were a file of that name, which ends in `.json`.

    Bytes that are no UTF-8 are replaced, as they can only be in texts that Kerf does not read.
    """
    if not _is_utf_8(data):
        data = data.decode(errors="replace").encode()
    return _json(data, name, is_answer=True)


def _read(path: str, stdin: TextIO, recursive: bool) -> Documents:
    if path == "-":
        try:
            return parse(stdin.read(), "stdin")
        except UnicodeDecodeError:
            return _unreadable("stdin", "it is no UTF-8 text")
    if "://" in path:
        hint = "(hint: fetch it and give the file)"
        return Documents((InputError(f"{path}: expected a file, a directory or `-`, got a URL {hint}"),))
    place = Path(path)
    return _directory(place, recursive) if place.is_dir() else _file(place)


def _directory(directory: Path, recursive: bool) -> Documents:
    try:
        found = directory.rglob("*") if recursive else directory.iterdir()
        files = sorted(file for file in found if file.suffix in _SUFFIXES and file.is_file())
    except OSError as error:
        return _unreadable(str(directory), error.strerror or str(error))
    if not files:
        hint = "" if recursive else " (hint: -R reads its subdirectories too)"
        text = f"{directory}: expected a file named *.yaml, *.yml or *.json, got none{hint}"
        return Documents((InputError(text),))
    return Documents.joined(_file(file) for file in files)


def _file(path: Path) -> Documents:
    try:
        return _parse(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        return _unreadable(str(path), getattr(error, "strerror", None) or str(error))


def _unreadable(name: str, why: str) -> Documents:
    return Documents((InputError(f"{name}: expected a file that can be read, got: {why}"),))


def _parse(data: bytes, name: str) -> Documents:
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not _is_utf_8(data):
        line = data.count(b"\n", 0, _first_other(data)) + 1
        return Documents((DecodeError("", "UTF-8 text", "<other bytes>", place=f"{name}:{line}"),))
    if name.endswith(".json"):
        return _json(data, name)
    if data.lstrip()[:1] in (b"{", b"["):
        as_json = _json(data, name)
        if not as_json.errors:
            return as_json
        # A YAML document may begin with a bracket too: `{kind: List, items: []}`.
        text = data.decode()
        as_yaml = _yaml(text, name)
        return as_json if as_yaml.errors and _JSON_START.match(text) else as_yaml
    return _yaml(data.decode(), name)


def _is_utf_8(data: bytes) -> bool:
    """Whether the bytes are such text. Looked at in parts: that of a large cluster need not be there twice."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _PART):
            decoder.decode(data[start : start + _PART])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _first_other(data: bytes) -> int:
    """Where bytes that are no such text begin to be none."""
    try:
        return len(data.decode())
    except UnicodeDecodeError as error:
        return error.start


def _json(data: bytes, name: str, *, is_answer: bool = False) -> Documents:
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if not _is_list(envelope.kind) or not envelope.items:
            return Documents((JsonDocument(JsonFile(name, data, (data,), is_answer), 0),))
        items = tuple(msgspec.json.decode(envelope.items, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        return _several_json(data.decode(), name)
    file = JsonFile(name, data, items, is_answer)
    inherited = _inherited(envelope.kind, envelope.api_version)
    return Documents(tuple(JsonDocument(file, index, True, inherited) for index in range(len(items))))


def _several_json(text: str, name: str) -> Documents:
    """Objects one after the other, each perhaps a List; or the error of the first that is none."""
    decoder, objects, end = json.JSONDecoder(), [], 0
    try:
        while end < len(text):
            start = end + len(text[end:]) - len(text[end:].lstrip())
            if start == len(text):
                break
            _, end = decoder.raw_decode(text, start)
            objects.append(text[start:end].encode())
    except (ValueError, RecursionError) as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        problem = f"<{getattr(error, 'msg', 'it is nested too deeply')}>"
        return Documents((DecodeError("", "JSON", problem, place=f"{name}:{line}:{column}"),))
    file = JsonFile(name, text.encode(), tuple(objects))
    return Documents(tuple(JsonDocument(file, index, len(objects) > 1) for index in range(len(objects))))


def _yaml(text: str, name: str) -> Documents:
    entries: list[Document | InputError] = []
    cuts = [0, *(match.start() for match in _CUT.finditer(text)), len(text)]
    first_line, lone = 0, ""
    for start, end in pairwise(cuts):
        part = text[start:end]
        try:
            roots = () if _DIRECTIVES_ONLY.fullmatch(part) else compose(part)
            for number, root in enumerate(roots):
                given = {"number": number, "first_line": first_line, "lead": _comments(lone)}
                entries.extend(_flattened(root, name, part, given))
            lone = "" if roots else lone + part
        except YamlError as error:
            place = f"{name}:{first_line + error.line + 1}:{error.column + 1}"
            hint = unrendered_hint(part, error.line)
            entries.append(DecodeError("", "YAML", f"<{error.problem}>", place=place, hint=hint))
        first_line += part.count("\n")
    last = entries[-1] if entries else None
    if isinstance(last, YamlDocument) and _comments(lone):
        entries[-1] = replace(last, trail=_comments(lone))
    return Documents(tuple(entries))


def _comments(text: str) -> tuple[str, ...]:
    """The comments of a text that holds nothing else."""
    lines = (line.removeprefix("---").strip() for line in text.split("\n"))
    return tuple(line for line in lines if line.startswith("#"))


def _flattened(root: yaml.Node, name: str, text: str, given: Mapping[str, Any]) -> Iterator[YamlDocument]:
    """The items of a List, each as a document of its own; Lists among them too. Raises YamlError.

    An alias may stand for a List, even for the one it stands in: more items than characters are refused.
    """
    waiting: list[tuple[yaml.Node, dict[str, Any]]] = [(root, dict(given))]
    left = len(text)
    while waiting:
        node, of_node = waiting.pop()
        kind, version = (find(node, (key,))[0].value for key in ("kind", "apiVersion"))
        items, _ = find(node, ("items",))
        if not _is_list(kind) or items is node or not isinstance(items, yaml.SequenceNode):
            yield YamlDocument.of(node, name, text, **of_node)
            continue
        left -= len(items.value)
        if left < 0:
            raise YamlError("its lists grow without end", items.start_mark.line, items.start_mark.column)
        path, others = of_node.get("path", ()), {"inherited": _inherited(kind, version)}
        others |= {key: given[key] for key in ("number", "first_line")}
        parts = [(it, {**others, "path": (*path, "items", at)}) for at, it in enumerate(items.value)]
        waiting.extend(reversed(parts))


class _Envelope(msgspec.Struct):
    kind: Any = None
    api_version: Any = msgspec.field(default=None, name="apiVersion")
    items: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


def _is_list(kind: object) -> bool:
    return isinstance(kind, str) and kind.endswith("List")


def _inherited(kind: str, version: object) -> dict[str, str]:
    """Kind and version of the items of a typed list (`PodList`), which the API leaves out of the items."""
    if kind == "List" or not isinstance(version, str):
        return {}
    return {"kind": kind.removesuffix("List"), "apiVersion": version}
