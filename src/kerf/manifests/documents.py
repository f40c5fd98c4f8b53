"""One Kubernetes object each, with where it stands.

A list of 100,000 pods must not exist as Python dictionaries all at once, so a document keeps its bytes and gives its
value when asked; lines and columns are looked for only when an error has to be shown. The nodes of a YAML text take
forty times its size: those of one text at a time are kept.
"""

import json
import marshal
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

import msgspec
import yaml

from kerf.errors import DecodeError
from kerf.manifests.schema import Path, path_text
from kerf.manifests.unfilled import unrendered_hint
from kerf.manifests.yaml_nodes import MOST_LEVELS, YamlError, compose, construct, find, levels, path_of
from kerf.model.large import Large

_MOST_PACKED = 16
"""Bytes of a value for each character of its text."""


class Document(Protocol):
    """One object of the input."""

    def value(self) -> Any:
        """The plain value. Raises DecodeError when it has a duplicate key."""
        ...

    def place(self, path: Path = (), *, at_key: bool = False) -> str:
        """`file:line:col` of the field at `path`, or of its nearest ancestor that exists."""
        ...

    def near(self, path: Path = ()) -> str:
        """As `place`, or where the document begins, where the field would have to be looked for in a large file."""
        ...

    def written(self, path: Path) -> str:
        """How the scalar at `path` is written in the file; empty when there is none."""
        ...

    def may_be(self, kind: str) -> bool:
        """Whether it may be of that kind, without decoding it; False is certain."""
        ...

    @property
    def source(self) -> str:
        """Where the document begins, cheaply: `file:line:col`, or `file#items[3]` in a JSON list."""
        ...


@dataclass(frozen=True, repr=False)
class YamlDocument(Large):
    """A YAML document; `first_line` counts the lines of the file before `text`, which it was composed from.

    It stands at `path` in the root of that `number` there, from `start` on, a line and a column; `kind` is its own.
    `packed` is its value, where that is not much larger than its text. `lead` and `trail` are comments that `---` parts
    from it, with no document between: a file's header, its last words.
    """

    name: str
    text: str
    start: tuple[int, int]
    kind: str
    packed: bytes = b""
    number: int = 0
    path: Path = ()
    first_line: int = 0
    inherited: dict[str, str] = field(default_factory=dict)
    lead: tuple[str, ...] = ()
    trail: tuple[str, ...] = ()

    @classmethod
    def of(cls, root: yaml.Node, name: str, text: str, **given: Any) -> "YamlDocument":
        """That of a node of the text; `given` are other fields. The node is not kept."""
        mark, (kind, _) = root.start_mark, find(root, ("kind",))
        named = kind.value if isinstance(kind, yaml.ScalarNode) else ""
        return cls(name, text, (mark.line, mark.column), named, _packed(root), **given)

    @property
    def root(self) -> yaml.Node:
        """Its node; composed again unless it was the last that was asked for."""
        return find(_composed(self.text)[self.number], self.path)[0]

    def value(self) -> Any:
        """See Document."""
        try:
            value = marshal.loads(self.packed) if self.packed else construct(self.root)
            return {**self.inherited, **value} if self.inherited and isinstance(value, dict) else value
        except YamlError as error:
            place = f"{self.name}:{self.first_line + error.line + 1}:{error.column + 1}"
            expected, hint = "every key once and plain nesting", unrendered_hint(self.text, error.line)
            raise DecodeError("", expected, f"<{error.problem}>", place=place, hint=hint) from None

    def place(self, path: Path = (), *, at_key: bool = False) -> str:
        """See Document."""
        line, column = self.start
        if path:
            node, key = find(self.root, path)
            mark = (key if at_key else node).start_mark
            line, column = mark.line, mark.column
        return f"{self.name}:{self.first_line + line + 1}:{column + 1}"

    def near(self, path: Path = ()) -> str:
        """See Document."""
        return self.place(path)

    def written(self, path: Path) -> str:
        """See Document."""
        node, _ = find(self.root, path)
        return node.value if isinstance(node, yaml.ScalarNode) else ""

    def may_be(self, kind: str) -> bool:
        """See Document."""
        return bool(self.inherited) or self.kind == kind

    @property
    def source(self) -> str:
        """See Document."""
        return self.place()


@lru_cache(maxsize=1)
def _composed(text: str) -> tuple[yaml.Node, ...]:
    return tuple(compose(text))


def _packed(root: yaml.Node) -> bytes:
    """The value of a node as bytes; none where it has a mistake, or where aliases make it much larger than its text."""
    try:
        packed = marshal.dumps(construct(root))
    except (YamlError, ValueError):
        return b""
    characters: int = root.end_mark.index - root.start_mark.index
    return packed if len(packed) <= _MOST_PACKED * characters else b""


@dataclass(frozen=True, repr=False)
class JsonFile(Large):
    """A JSON file as bytes, and its objects in order as views of them.

    `is_answer`: a server has written it, so no key stands there twice.
    """

    name: str
    data: bytes
    objects: tuple[bytes | msgspec.Raw, ...]
    is_answer: bool = False

    def object(self, index: int) -> bytes:
        """The text of one."""
        return bytes(self.objects[index])

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        # The objects stand in the file in order, so each is found where the one before it ends.
        offsets, end = [], 0
        for raw in map(bytes, self.objects):
            offset = self.data.find(raw, end)
            offsets.append(offset)
            end = offset + len(raw)
        return tuple(offsets)

    def start(self, index: int) -> tuple[int, int]:
        """(line, column), from zero, where object `index` begins; the first call looks through the whole file."""
        offset = self._offsets[index]
        line = self.data.count(b"\n", 0, offset)
        return line, offset - (self.data.rfind(b"\n", 0, offset) + 1)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise KeyError
    return value


class _NoNumber(Exception):
    """`NaN`, `Infinity` or `-Infinity`, which Python would read as numbers and no other program takes."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def _refuse_no_number(word: str) -> float:
    raise _NoNumber(word)


_START = yaml.Mark("", 0, 0, 0, None, 0)
_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_refuse_no_number)


@dataclass(frozen=True)
class JsonDocument:
    """One object of a JSON file; `is_item` when it stands in a list."""

    file: JsonFile
    index: int
    is_item: bool = False
    inherited: dict[str, str] = field(default_factory=dict)

    def value(self) -> Any:
        """See Document."""
        data = self.file.object(self.index)
        try:
            value = msgspec.json.decode(data) if self.file.is_answer else _DECODER.decode(str(data, "utf-8"))
        except KeyError:
            raise self._duplicate() from None
        except _NoNumber as found:
            raise self._no_number(found.word) from None
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise DecodeError("", "JSON", f"<{error}>", place=self.place()) from None
        # Counted first, because few documents have so many brackets, and going through all values costs.
        if data.count(b"{") + data.count(b"[") > MOST_LEVELS and levels(value) > MOST_LEVELS:
            raise DecodeError("", "plain nesting", "<it is nested too deeply>", place=self.place())
        return {**self.inherited, **value} if self.inherited and isinstance(value, dict) else value

    def answered(self, kind: str, version: str) -> bytes | None:
        """Its text, where a server has listed it as of that kind; it has no duplicate key then."""
        is_listed = self.file.is_answer and self.inherited == {"kind": kind, "apiVersion": version}
        return self.file.object(self.index) if is_listed else None

    def _duplicate(self) -> DecodeError:
        try:
            construct(self._node)
            problem, place = "a duplicate key", self.place()
        except YamlError as error:
            problem, place = error.problem, self._at(error.line, error.column)
        return DecodeError("", "every key once", f"<{problem}>", place=place)

    def _no_number(self, word: str) -> DecodeError:
        expected, hint = "a number that JSON has", f"JSON has no {word}; leave the field out"
        try:
            path = path_of(self._node, word)
        except YamlError:
            path = ()
        return DecodeError(path_text(path), expected, f"<{word}>", place=self.place(path), hint=hint)

    @cached_property
    def _node(self) -> yaml.Node:
        # JSON is YAML as far as positions go, so one way of finding a field serves both.
        composed = compose(str(self.file.object(self.index), "utf-8"))
        # As a document of YAML `null` is none; as an item of a list of JSON it is one, which is no object.
        return composed[0] if composed else yaml.ScalarNode("tag:yaml.org,2002:null", "null", _START, _START)

    def _at(self, line: int, column: int) -> str:
        first_line, first_column = self.file.start(self.index)
        shown = first_column + column if line == 0 else column
        return f"{self.file.name}:{first_line + line + 1}:{shown + 1}"

    def place(self, path: Path = (), *, at_key: bool = False) -> str:
        """See Document."""
        try:
            node, key = find(self._node, path)
        except YamlError:
            return self._at(0, 0)
        mark = (key if at_key else node).start_mark
        return self._at(mark.line, mark.column)

    def near(self, path: Path = ()) -> str:
        """See Document."""
        return self.source if self.is_item else self.place(path)

    def written(self, path: Path) -> str:
        """See Document."""
        try:
            node, _ = find(self._node, path)
        except YamlError:
            return ""
        return node.value if isinstance(node, yaml.ScalarNode) else ""

    def may_be(self, kind: str) -> bool:
        """See Document."""
        # An item may say its own kind, whatever its list says.
        return self.inherited.get("kind") == kind or kind.encode() in self.file.object(self.index)

    @property
    def source(self) -> str:
        """See Document."""
        return f"{self.file.name}#items[{self.index}]" if self.is_item else self.place()
