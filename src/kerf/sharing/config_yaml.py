"""YAML inside ConfigMaps, checked field by field: a device plugin that cannot read its own shows no GPU at all.

A user who may write a ConfigMap may write any text into it. A few hundred bytes of aliases stand for gigabytes. So a
text is measured before anything is made of it, event by event, which needs neither stack nor tree.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import yaml

from kerf.errors import DecodeError, brief
from kerf.model.snapshot import ConfigMap

MOST_CHARACTERS, MOST_VALUES, MOST_LEVELS = 128 * 1024, 20_000, 50
"""Of one text, with each alias counted as all that it stands for. The charts' own have some thousand characters."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "<<"
_DIGITS = re.compile(r"[-+0-9a-fA-FxXoO_:.]{200,}")
"""What PyYAML may take for a number, however long it is."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value and where it stands: `ConfigMap gpu-operator/sharing`, `data["any"].sharing.mps`."""

    value: object
    place: str
    path: str

    def wrong(self, expected: str, hint: str = "") -> DecodeError:
        """The error that says so."""
        got = "<nothing>" if self.value is None else self.value
        return DecodeError(self.path, expected, got, place=self.place, hint=hint)

    def child(self, key: str) -> "Field":
        """The value under a key of a mapping; None for no such key. Raises DecodeError where this is no mapping."""
        return Field(self.mapping().get(key), self.place, f"{self.path}.{key}")

    def mapping(self) -> Mapping[str, object]:
        """Itself as a mapping; empty for nothing. Raises DecodeError for anything else."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.wrong("a mapping")
        return cast("Mapping[str, object]", self.value)

    def children(self) -> Iterator[tuple[str, "Field"]]:
        """The entries of a mapping, in the order of the text. Raises DecodeError for what is none."""
        named = ((key if isinstance(key, str) else brief(key), value) for key, value in self.mapping().items())
        return ((name, Field(value, self.place, f"{self.path}.{name}")) for name, value in named)

    def items(self) -> Iterator["Field"]:
        """The entries of a list; none for nothing. Raises DecodeError for what is none."""
        if self.value is not None and not isinstance(self.value, list):
            raise self.wrong("a list")
        held = cast("Sequence[object]", self.value or ())
        return (Field(value, self.place, f"{self.path}[{i}]") for i, value in enumerate(held))

    def text(self) -> str:
        """Itself as text. Raises DecodeError for anything else."""
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong("text")
        return self.value

    def truth(self) -> bool:
        """Itself as a boolean, false for nothing. Raises DecodeError for anything else."""
        if self.value is not None and not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return bool(self.value)

    def whole(self, least: int, hint: str = "") -> int:
        """Itself as a whole number of at least `least`. Raises DecodeError for anything else."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not least <= self.value < 2**16:
            raise self.wrong(f"a whole number from {least}", hint)
        return self.value


def document(config_map: ConfigMap, key: str, text: str, *, joins: bool = False) -> Field:
    """The YAML under a key of a map. Raises DecodeError for what is none, or more than can be a configuration.

    Of a key that stands twice the last value counts. With `joins` mappings under it are one, as where gopkg.in/yaml.v2
    reads into structs; sigs.k8s.io/yaml, by which NVIDIA's plugin reads, takes the last as a whole.
    """
    place, path = f"ConfigMap {config_map.namespace}/{config_map.name}", f'data["{key}"]'
    value, problem = _read(text, joins)
    if problem:
        raise DecodeError(path, "YAML", f"<text that is none: {problem}>", place=place)
    return Field(value, place, path)


# Each of five families reads each text, at each change of any map.
@lru_cache(maxsize=16)
def _read(text: str, joins: bool) -> tuple[object, str]:
    """The value, not to be changed, and why there is none; empty where there is."""
    try:
        if problem := _excess(text):
            return None, problem
        loader = _LOADER(text)
        try:
            root = loader.get_single_node()
            if joins and root is not None:
                _join(root)
            return None if root is None else loader.construct_document(root), ""
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return None, " ".join(str(error).split())


def _join(root: yaml.Node) -> None:
    """Make one of mappings under one key; the last counts of what else stands twice."""
    for node, _ in _mappings(root):
        first: dict[str, yaml.MappingNode] = {}
        kept = []
        for key, value in node.value:
            is_name = isinstance(key, yaml.ScalarNode) and key.value != _MERGE
            before = first.get(key.value) if is_name else None
            if before is not None and isinstance(value, yaml.MappingNode):
                before.value = [*before.value, *value.value]
                continue
            if is_name and isinstance(value, yaml.MappingNode):
                # An alias may stand for the same mapping elsewhere, where nothing is added to it.
                value = yaml.MappingNode(value.tag, [*value.value], value.start_mark, value.end_mark, value.flow_style)
                first[key.value] = value
            kept.append((key, value))
        node.value = kept


def _mappings(root: yaml.Node) -> Iterator[tuple[yaml.MappingNode, str]]:
    """Each mapping and its path, those above others first; one that aliases name has one path."""
    waiting, seen = [(root, "")], set[int]()
    while waiting:
        node, path = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node, path
            named = ((key.value if isinstance(key, yaml.ScalarNode) else "?", value) for key, value in node.value)
            waiting += [(value, f"{path}.{name}") for name, value in reversed(list(named))]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(item, f"{path}[{index}]") for index, item in reversed(list(enumerate(node.value)))]


def repeated_keys(text: str) -> Iterator[str]:
    """Paths of keys that stand more than once in a mapping; none of a text that cannot be read."""
    try:
        root = None if _excess(text) else yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    for node, path in () if root is None else _mappings(root):
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                seen[key.value] = seen.get(key.value, 0) + 1
                if seen[key.value] == 2 and key.value != _MERGE:
                    yield f"{path}.{key.value}".removeprefix(".")


def _excess(text: str) -> str:
    """Why the text is too much; empty where it is not. Raises YAMLError for no YAML. Cost: that of MOST_VALUES values.

    The size of what an anchor names is known where it ends, so an alias is counted without going through it.
    """
    if len(text) > MOST_CHARACTERS:
        return f"it has {len(text)} characters, and {MOST_CHARACTERS} are read"
    values, sizes, opened = 0, dict[str, int](), list[tuple[str, int]]()
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            if any(event.anchor == anchor for anchor, _ in opened):
                return f"the alias {brief(event.anchor)} stands in itself"
            values += sizes.get(event.anchor or "", 0)
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            sizes[event.anchor or ""] = 1
            if _DIGITS.fullmatch(event.value) and not (event.style and event.tag is None):
                return f"a number of {len(event.value)} digits"
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor or "", values))
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes[anchor] = values - before
        if len(opened) > MOST_LEVELS:
            return "it is nested too deeply"
        if values > MOST_VALUES:
            return f"it has more than {MOST_VALUES} values, aliases counted in full"
    return ""
