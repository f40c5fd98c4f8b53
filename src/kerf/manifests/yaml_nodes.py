"""YAML text to plain values, keeping the node tree so that an error can show its line.

The words are read as kubectl reads them (YAML 1.1: `010` is eight, `on` is true), except that dates and sexagesimal
numbers stay text, because no Kubernetes field means them. Three things make this hard: PyYAML accepts duplicate keys
silently, its C composer overflows the stack on deep nesting, and aliases can blow a small file up without end.
"""

import re
from typing import Any

import yaml

from kerf.errors import brief

MOST_LEVELS = 200
"""How deep a document may be nested; what goes through values by recursion relies on it."""
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's C loader, where it was built with it: ten times as fast."""
_MOST_VALUES = 2_000_000
_VALUES_AT_ONCE, _VALUES_A_CHARACTER = 100_000, 20
"""Values that any document may have, and how many more for each character: aliases may repeat parts, within reason."""
_BRACKET = re.compile(r"[\[\]{}]")
_DEEP_BLOCK = re.compile(r"^[ \t?:-]{400,}", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_TRUE, _FALSE = frozenset({"yes", "true", "on"}), frozenset({"no", "false", "off"})
_TAG = "tag:yaml.org,2002:"


class YamlError(Exception):
    """Text that is no YAML we accept; `line` and `column` count from zero."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


def compose(text: str) -> list[yaml.Node]:
    """The root node of every document of `text` that is not empty. Raises YamlError."""
    _refuse_deep(text)
    loader = LOADER(text)
    roots = []
    try:
        while loader.check_node():
            root = loader.get_node()
            if root is not None and not (isinstance(root, yaml.ScalarNode) and _value_of(root) is None):
                roots.append(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = [part for part in (error.context, error.problem) if part]
        raise YamlError(" ".join(parts), mark.line if mark else 0, mark.column if mark else 0) from None
    except RecursionError:
        raise YamlError("it is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(str(error).splitlines()[0]) from None
    finally:
        loader.dispose()
    return roots


def _refuse_deep(text: str) -> None:
    # PyYAML's C composer recurses on the C stack: some 100,000 brackets end the whole process.
    level = 0
    for match in _BRACKET.finditer(text):
        level += 1 if match.group() in "[{" else -1
        if level > MOST_LEVELS * 5:
            raise YamlError("it is nested too deeply", text.count("\n", 0, match.start()))
    if (deep := _DEEP_BLOCK.search(text)) is not None:
        raise YamlError("it is nested too deeply", text.count("\n", 0, deep.start()))


def construct(root: yaml.Node) -> Any:
    """The plain value of a node tree: dict, list, str, int, float, bool, None. Raises YamlError on a duplicate key."""
    characters = root.end_mark.index - root.start_mark.index
    return _Constructor(min(_MOST_VALUES, _VALUES_AT_ONCE + _VALUES_A_CHARACTER * characters)).value(root, 0)


class _Constructor:
    def __init__(self, most: int) -> None:
        self._made, self._most = 0, most

    def value(self, node: yaml.Node, level: int) -> Any:
        self._made += 1
        if level > MOST_LEVELS or self._made > self._most:
            raise YamlError("it is nested too deeply or grows without end", *_start(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, level)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, level + 1) for item in node.value]
        return _value_of(node) if isinstance(node, yaml.ScalarNode) else None

    def _mapping(self, node: yaml.MappingNode, level: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError("a key must be text", *_start(key_node))
            key = key_node.value
            if key == "<<" and not key_node.style:
                merged = {**self._merge(value_node, level), **merged}
                continue
            if key in own:
                raise YamlError(f"duplicate key {brief(key)}", *_start(key_node))
            own[key] = self.value(value_node, level + 1)
        return {**merged, **own} if merged else own

    def _merge(self, node: yaml.Node, level: int) -> dict[str, Any]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            value = self.value(source, level + 1)
            if not isinstance(value, dict):
                raise YamlError("a merge key `<<` needs a mapping", *_start(source))
            merged = {**value, **merged}
        return merged


def _start(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line, node.start_mark.column


def _value_of(node: yaml.ScalarNode) -> Any:
    """The value of a scalar."""
    text: str = node.value
    if node.style or node.tag == f"{_TAG}str":
        return text
    if node.tag == f"{_TAG}null":
        return None
    if node.tag == f"{_TAG}bool" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    return _number_of(text)


def _number_of(text: str) -> int | float | str:
    if len(text) > 400:
        return text
    try:
        if _INTEGER.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _NUMBER.fullmatch(text):
            number = float(text)
            return number if abs(number) < float("inf") else text
    except ValueError:
        return text
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    base = 10
    if digits.startswith("0b"):
        base = 2
    elif digits.startswith("0x"):
        base = 16
    elif digits.startswith("0") and len(digits) > 1:
        base = 8
    return int(text, base)


def levels(value: Any) -> int:
    """How deep a plain value is nested; 0 for a scalar. Linear, and called for each pod of a cluster."""
    deepest, below = 0, [value] if isinstance(value, dict | list) else []
    while below:
        deepest += 1
        below = [
            inner
            for each in below
            for inner in (each.values() if type(each) is dict else each)
            if type(inner) is dict or type(inner) is list
        ]
    return deepest


def find(root: yaml.Node, path: tuple[str | int, ...]) -> tuple[yaml.Node, yaml.Node]:
    """(node at `path`, its key node), of the deepest part of the path that exists."""
    node, key_node = root, root
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == step), None)
            if pair is None:
                break
            key_node, node = pair
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = key_node = node.value[step]
        else:
            break
    return node, key_node


def path_of(root: yaml.Node, text: str) -> tuple[str | int, ...]:
    """Where the first scalar stands that is written so, without quotes; empty where none is. Linear in the tree."""
    waiting: list[tuple[yaml.Node, tuple[str | int, ...]]] = [(root, ())]
    while waiting:
        node, path = waiting.pop()
        if isinstance(node, yaml.ScalarNode) and node.value == text and not node.style:
            return path
        steps: list[tuple[str | int, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            steps = [(key.value, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            steps = list(enumerate(node.value))
        waiting += [(inner, (*path, step)) for step, inner in reversed(steps)]
    return ()
