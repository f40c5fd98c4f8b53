"""Fixes as edits of the text: everything else of a file stays as it is, comments and blanks included.

An edit knows a field, the text has lines and columns. What stands there is compared with what should, so a place
that is understood wrongly is left alone. Only YAML is edited.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from kerf.errors import InputError
from kerf.lint.findings import Edit, Finding
from kerf.lint.subject import Subject
from kerf.manifests.documents import YamlDocument
from kerf.manifests.read import parse
from kerf.manifests.yaml_nodes import find

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class _Change:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Fixed:
    """A text with its fixes; `applied` counts them. One that overlaps an earlier one waits for the next look."""

    text: str
    applied: int


def fixed(text: str, findings: Iterable[Finding], subjects: Sequence[Subject]) -> Fixed:
    """The text of one file with the fixes of its findings; the same text where they would break it."""
    starts = _line_starts(text)
    chosen: list[_Change] = []
    applied = 0
    for finding in findings:
        document = subjects[finding.index].document
        if not finding.fix or not isinstance(document, YamlDocument):
            continue
        changes = [_change(text, starts, document, edit) for edit in finding.fix]
        if any(change is None for change in changes):
            continue
        known = [change for change in changes if change is not None]
        if not any(_overlap(one, other) for one in known for other in chosen):
            chosen += known
            applied += 1
    result = text
    for change in sorted(chosen, reverse=True):
        result = result[: change.start] + change.new + result[change.end :]
    return Fixed(result, applied) if _faults(result) <= _faults(text) else Fixed(text, 0)


def _faults(text: str) -> int:
    """How many documents cannot be read, or have a key twice."""
    documents = parse(text, "fixed.yaml")
    faults = len(documents.errors)
    for document in documents:
        try:
            document.value()
        except InputError:
            faults += 1
    return faults


def _overlap(one: _Change, other: _Change) -> bool:
    return one.start <= other.end and other.start <= one.end


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _BREAK.finditer(text))]


def _change(text: str, starts: list[int], document: YamlDocument, edit: Edit) -> _Change | None:
    """The change of an edit; None where the text does not have there what it should."""
    node, key = find(document.root, edit.path)
    target = key if edit.at_key or edit.is_insertion else node
    if not isinstance(target, yaml.ScalarNode) or (edit.at_key and target.value != edit.path[-1]):
        return None
    start = _offset(starts, document, target.start_mark)
    end = _offset(starts, document, target.end_mark)
    if not 0 <= start < end <= len(text):
        return None
    if edit.is_insertion:
        return _insertion(text, start, target, edit)
    written = text[start:end]
    if edit.old:
        return _Change(start, end, written.replace(edit.old, edit.new)) if edit.old in written else None
    bare = written.strip()
    plain = bare[1:-1] if target.style in ("'", '"') else bare
    if target.style in ("|", ">") or plain != target.value:
        return None
    return _Change(start, start + len(written.rstrip()), _in_style(edit.new, target.style))


def _insertion(text: str, start: int, key: yaml.ScalarNode, edit: Edit) -> _Change | None:
    if key.value != edit.path[-1] or not text.startswith((key.value, f'"{key.value}"', f"'{key.value}'"), start):
        return None
    line = text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1 : start]
    # A key of a block stands behind blanks, or behind the dash of a list; any other is in braces.
    is_block = line.replace("-", " ").strip() == ""
    line_break = "\r\n" if "\r\n" in text else "\n"
    after = line_break + " " * len(line) if is_block else ", "
    return _Change(start, start, edit.new.replace("\n", after))


def _in_style(new: str, style: str | None) -> str:
    """The new scalar, in quotes where the old one had some, or where it brings its own."""
    if style in ("'", '"') and not new.startswith('"') and _NEEDS_NO_QUOTES.fullmatch(new):
        return f"{style}{new}{style}"
    return new


def _offset(starts: list[int], document: YamlDocument, mark: yaml.Mark) -> int:
    line = document.first_line + mark.line
    return starts[line] + mark.column if line < len(starts) else -1
