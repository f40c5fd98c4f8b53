"""Objects to YAML that looks like what they were made of: quotes, flow style and comments follow their values.

The text is written without comments first and parsed again, which shows on which line each path stands; comments are
then laid beside those lines. Every old line gives its comments once, to the first new line that comes from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from kerf.manifests.documents import Document, YamlDocument
from kerf.manifests.migrate.comments import Comments, comments_of
from kerf.manifests.migrate.objects import New
from kerf.manifests.schema import Path
from kerf.manifests.yaml_nodes import YamlError, compose, construct

_TAG = "tag:yaml.org,2002:"
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ""})


class _Dumper(yaml.SafeDumper):
    """Indents the items of a list below its key, as manifests are written by hand."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """See yaml.Emitter."""
        super().increase_indent(flow, False)


@dataclass
class _Page:
    """What has been read of the comments of the old documents, and the lines that have given theirs."""

    read: dict[int, Comments] = field(default_factory=dict)
    given: set[tuple[int, int]] = field(default_factory=set)

    def once(self, document: YamlDocument, place: int, lines: tuple[str, ...]) -> tuple[str, ...]:
        """The lines, for the first who asks for those at that place."""
        key = (id(document.text), place)
        if key in self.given:
            return ()
        self.given.add(key)
        return lines

    def of(self, document: YamlDocument) -> Comments:
        """The comments of the text that a document is part of."""
        key = id(document.text)
        if key not in self.read:
            self.read[key] = comments_of(document.text)
        return self.read[key]


def manifest_text(objects: Sequence[New]) -> str:
    """The objects as one YAML stream, in order; empty where there are none."""
    page = _Page()
    last = {id(document): number for number, new in enumerate(objects) for document in _documents(new)}
    texts = []
    for number, new in enumerate(objects):
        written = new.raw.rstrip("\n").split("\n") if new.raw else _text(new, page)
        own = _documents(new)
        lead = [line for document in own for line in page.once(document, -2, document.lead)]
        ends = [document for document in own if last[id(document)] == number]
        tail = [line for document in ends if not new.raw for line in page.once(document, -1, page.of(document).tail)]
        trail = [line for document in ends for line in page.once(document, -3, document.trail)]
        texts.append("\n".join((*lead, *written, *tail, *trail)) + "\n")
    return "---\n".join(texts)


def _documents(new: New) -> list[YamlDocument]:
    """The documents that an object is made of."""
    origins = [*new.origins.values(), *(each for several in new.lines.values() for each in several)]
    found = {id(document): document for document, _ in origins if isinstance(document, YamlDocument) and document.text}
    return list(found.values())


def _text(new: New, page: _Page) -> list[str]:
    node = _node(new, new.value, ())
    text = yaml.serialize(node, Dumper=_Dumper, width=1 << 20, allow_unicode=True)
    assert isinstance(text, str)
    lines = text.rstrip("\n").split("\n")
    above: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    for document in _documents(new):
        # What stands above the first line is about the document, whatever becomes of that line.
        first = document.root.start_mark.line
        above.setdefault(0, []).extend(page.once(document, -4, page.of(document).above.get(first, ())))
    for path, line in _lines(compose(text)[0]):
        if path in new.marks:
            after.setdefault(line, []).append(f"# {new.marks[path]}")
        for document, number in _sources(new, path):
            if (id(document.text), number) in page.given:
                continue
            page.given.add((id(document.text), number))
            comments = page.of(document)
            if number != document.root.start_mark.line:
                above.setdefault(line, []).extend(comments.above.get(number, ()))
            if number in comments.after:
                after.setdefault(line, []).append(comments.after[number])
    return [each for number, line in enumerate(lines) for each in _with(line, above.get(number), after.get(number))]


def _with(line: str, above: list[str] | None, after: list[str] | None) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    beside, *more = after or [""]
    yield from (indent + comment for comment in (*(above or ()), *more))
    yield f"{line}  {beside}" if beside else line


def _lines(node: yaml.Node, path: Path = ()) -> Iterator[tuple[Path, int]]:
    """Every path and the line of its key or item, outermost first, in the order of the text."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line
            yield from _lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line
            yield from _lines(item, (*path, index))


def _origin(new: New, path: Path) -> tuple[Document, Path] | None:
    for length in range(len(path), -1, -1):
        found = new.origins.get(path[:length])
        if found is not None:
            return found[0], (*found[1], *path[length:])
    return None


def _sources(new: New, path: Path) -> Iterator[tuple[YamlDocument, int]]:
    """The old lines that a path stands for: the document, and the line of a key or item in its text."""
    origin = _origin(new, path)
    same = ((document, path) for document in _documents(new)) if origin is None else ()
    for document, old in (*((origin,) if origin is not None else ()), *new.lines.get(path, ()), *same):
        if isinstance(document, YamlDocument) and document.text:
            found = _exact(document.root, old)
            if found is not None:
                yield document, found[1].start_mark.line


def _exact(root: yaml.Node, path: Path) -> tuple[yaml.Node, yaml.Node] | None:
    """(node, its key or itself) at `path`; None where the text has no such node of its own."""
    node = key = root
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == step), None)
            if pair is None:
                return None
            key, node = pair
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = key = node.value[step]
        else:
            return None
    return node, key


def _node(new: New, value: Any, path: Path) -> yaml.Node:
    like = _like(new, path)
    if isinstance(value, dict):
        pairs = [(_scalar(key, None), _node(new, below, (*path, key))) for key, below in value.items()]
        is_flow = like.flow_style if isinstance(like, yaml.MappingNode) else None
        return yaml.MappingNode(f"{_TAG}map", pairs, flow_style=bool(is_flow) or not pairs)
    if isinstance(value, list):
        items = [_node(new, item, (*path, index)) for index, item in enumerate(value)]
        plain = not any(isinstance(item, dict | list) for item in value)
        is_flow = like.flow_style if isinstance(like, yaml.SequenceNode) else plain
        return yaml.SequenceNode(f"{_TAG}seq", items, flow_style=bool(is_flow))
    return _scalar(value, like)


def _like(new: New, path: Path) -> yaml.Node | None:
    origin = _origin(new, path)
    if origin is None or not isinstance(origin[0], YamlDocument):
        return None
    found = _exact(origin[0].root, origin[1])
    return found[0] if found is not None else None


def _scalar(value: Any, like: yaml.Node | None) -> yaml.ScalarNode:
    if isinstance(like, yaml.ScalarNode) and construct(like) == value and type(construct(like)) is type(value):
        # kubectl reads a plain `n` as false.
        style = like.style or ('"' if isinstance(value, str) and not _is_plainly_text(value) else None)
        return yaml.ScalarNode(like.tag, like.value, style=style)
    if value is None or isinstance(value, bool):
        kind, text = ("null", "null") if value is None else ("bool", "true" if value else "false")
        return yaml.ScalarNode(f"{_TAG}{kind}", text)
    if isinstance(value, int | float):
        return yaml.ScalarNode(f"{_TAG}{'int' if isinstance(value, int) else 'float'}", f"{value}")
    return yaml.ScalarNode(f"{_TAG}str", value, style=None if _is_plainly_text(value) else '"')


def _is_plainly_text(text: str) -> bool:
    """Whether the text, without quotes, is read as text by every reader, also by those of YAML 1.1."""
    if text.lower() in _WORDS or "\n" in text:
        return False
    try:
        roots = compose(text)
    except YamlError:
        return False
    return (
        len(roots) == 1
        and isinstance(roots[0], yaml.ScalarNode)
        and roots[0].tag == f"{_TAG}str"
        and construct(roots[0]) == text
    )
