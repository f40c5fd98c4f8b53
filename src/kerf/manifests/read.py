"""Files, directories and standard input to documents.

One bad document must not hide the errors of the next, so a YAML stream is cut at its `---` lines before it is parsed,
and errors are kept beside the documents until decode reports all of them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import msgspec
import yaml

from kerf.errors import DecodeError, InputError
from kerf.manifests.documents import Document, JsonDocument, JsonFile, YamlDocument
from kerf.manifests.yaml_nodes import YamlError, compose, find

_SUFFIXES = (".json", ".yaml", ".yml")
_CUT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DIRECTIVES_ONLY = re.compile(r"(?:\s*(?:[%#][^\n]*)?(?:\n|$))*")


@dataclass(frozen=True)
class Documents:
    """What was read, in order. `errors` are those of documents that could not be parsed; decode reports them too."""

    documents: tuple[Document, ...] = ()
    errors: tuple[InputError, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    @classmethod
    def joined(cls, several: Iterable["Documents"]) -> "Documents":
        """All of several, in order."""
        parts = tuple(several)
        return cls(tuple(d for part in parts for d in part.documents), tuple(e for part in parts for e in part.errors))


def read_documents(paths: Sequence[str], stdin: TextIO, *, recursive: bool = False) -> Documents:
    """Every document of the files, directories and `-` in `paths`, in that order.

    A directory gives its `*.yaml`, `*.yml`, `*.json` by name; its subdirectories' too when `recursive`. Raises
    InputError for a path that cannot be read at all; what cannot be parsed is in `errors`.
    """
    return Documents.joined(_read(path, stdin, recursive) for path in paths)


def parse(text: str, name: str = "input") -> Documents:
    """The documents of one text, YAML or JSON, as if it were a file of that name."""
    return _parse(text.encode("utf-8", "surrogatepass"), name)


def _read(path: str, stdin: TextIO, recursive: bool) -> Documents:
    if path == "-":
        try:
            return parse(stdin.read(), "stdin")
        except UnicodeDecodeError:
            raise _unreadable("stdin", "it is no UTF-8 text") from None
    if "://" in path:
        raise InputError(f"{path}: expected a file, a directory or `-`, got a URL (hint: fetch it and give the file)")
    place = Path(path)
    if place.is_dir():
        return Documents.joined(_file(file) for file in _files(place, recursive))
    return _file(place)


def _files(directory: Path, recursive: bool) -> list[Path]:
    try:
        found = directory.rglob("*") if recursive else directory.iterdir()
        files = sorted(file for file in found if file.suffix in _SUFFIXES and file.is_file())
    except OSError as error:
        raise _unreadable(str(directory), error.strerror or str(error)) from None
    if not files:
        hint = "" if recursive else " (hint: -R reads its subdirectories too)"
        raise InputError(f"{directory}: expected a file named *.yaml, *.yml or *.json, got none{hint}")
    return files


def _file(path: Path) -> Documents:
    try:
        return _parse(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), getattr(error, "strerror", None) or str(error)) from None


def _unreadable(name: str, why: str) -> InputError:
    return InputError(f"{name}: expected a file that can be read, got: {why}")


def _parse(data: bytes, name: str) -> Documents:
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Documents(errors=(DecodeError("", "UTF-8 text", "<other bytes>", place=f"{name}:{line}"),))
    if name.endswith(".json"):
        return _json(data, text, name)
    if text.lstrip()[:1] in ("{", "["):
        read = _json(data, text, name)
        # A YAML document may begin with a bracket too: `{kind: List, items: []}`.
        return read if not read.errors else _yaml_or(text, name, read)
    return _yaml(text, name)


def _yaml_or(text: str, name: str, as_json: Documents) -> Documents:
    as_yaml = _yaml(text, name)
    return as_json if as_yaml.errors else as_yaml


def _json(data: bytes, text: str, name: str) -> Documents:
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if not _is_list(envelope.kind) or not envelope.items:
            return Documents((JsonDocument(JsonFile(name, data, (data,)), 0),))
        items = tuple(bytes(item) for item in msgspec.json.decode(envelope.items, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        return _several_json(text, name)
    file = JsonFile(name, data, items)
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
        return Documents(errors=(DecodeError("", "JSON", problem, place=f"{name}:{line}:{column}"),))
    file = JsonFile(name, text.encode(), tuple(objects))
    return Documents(tuple(JsonDocument(file, index, len(objects) > 1) for index in range(len(objects))))


def _yaml(text: str, name: str) -> Documents:
    documents: list[Document] = []
    errors: list[InputError] = []
    cuts = [0, *(match.start() for match in _CUT.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        part, first_line = text[start:end], text.count("\n", 0, start)
        if _DIRECTIVES_ONLY.fullmatch(part):
            continue
        try:
            for root in compose(part):
                documents.extend(_flattened(YamlDocument(name, root, first_line)))
        except YamlError as error:
            place = f"{name}:{first_line + error.line + 1}:{error.column + 1}"
            errors.append(DecodeError("", "YAML", f"<{error.problem}>", place=place))
    return Documents(tuple(documents), tuple(errors))


def _flattened(document: YamlDocument) -> Iterator[YamlDocument]:
    """The items of a List, each as a document of its own."""
    kind, version = (find(document.root, (key,))[0].value for key in ("kind", "apiVersion"))
    items, _ = find(document.root, ("items",))
    if not _is_list(kind) or items is document.root or not isinstance(items, yaml.SequenceNode):
        yield document
        return
    inherited = _inherited(kind, version)
    for item in items.value:
        yield from _flattened(YamlDocument(document.name, item, document.first_line, inherited))


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
