"""Which findings are to be left out: comments of YAML, and an annotation on an object.

    # kerf-lint: ignore KL012 the pool is meant to have one node
    limits: {cpu: 4}    # kerf-lint: ignore KL012,KL016

A comment on a line of its own speaks of the next line that is no comment, a comment behind something of that line, and
one before everything else in a file of the whole file. `kerf.dev/lint-ignore: KL012, KL016` speaks of its object.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kerf.lint.findings import Finding
from kerf.lint.subject import Subject

ANNOTATION = "kerf.dev/lint-ignore"
_COMMENT = re.compile(r"(?:^|\s)#\s*kerf-lint\s*:\s*(?P<text>.*?)\s*$")
_CODE = re.compile(r"KL[0-9]{3}\b", re.ASCII)
_SEPARATORS = " \t,:;"
_BREAK = re.compile(r"\r\n|[\n\r]")


@dataclass(frozen=True)
class Suppression:
    """One statement. `line` is where it stands, `target` the line it speaks of: 0 is the whole file.

    `subject` is the index of the object whose annotation it is; -1 for a comment. `unknown` is what of it could not be
    read.
    """

    file: str
    line: int
    column: int
    target: int
    codes: tuple[str, ...]
    unknown: str = ""
    subject: int = -1
    title: str = ""

    def covers(self, finding: Finding, code: str) -> bool:
        """Whether it speaks of this finding by that code."""
        if code != finding.code:
            return False
        if self.subject >= 0:
            return finding.index == self.subject
        return finding.file == self.file and self.target in (0, finding.line)


def of_text(file: str, text: str) -> list[Suppression]:
    """The comments of one YAML file, in order. Cost: one look at each line that has the word."""
    if "kerf-lint" not in text:
        return []
    lines = _BREAK.split(text)
    found = []
    is_begun = False
    for number, line in enumerate(lines, 1):
        content = line.strip()
        is_comment = content.startswith("#")
        match = _COMMENT.search(line) if "kerf-lint" in line else None
        if match is not None:
            target = number
            if is_comment:
                target = _next_line(lines, number) if is_begun else 0
            codes, unknown = _read(match["text"])
            found.append(Suppression(file, number, line.index("#", match.start()) + 1, target, codes, unknown))
        is_begun = is_begun or bool(content and not is_comment and content != "---" and not content.startswith("%"))
    return found


def _next_line(lines: list[str], number: int) -> int:
    for later, line in enumerate(lines[number:], number + 1):
        content = line.strip()
        if content and content != "---" and not content.startswith("#"):
            return later
    return number


def _read(text: str) -> tuple[tuple[str, ...], str]:
    """Codes of `ignore KL012, KL016 reason`, and what of it could not be read."""
    word, _, rest = text.partition(" ")
    if word != "ignore":
        return (), text or "nothing"
    codes = _codes(rest)
    return codes, "" if codes else (rest.strip() or "no code")


def _codes(text: str) -> tuple[str, ...]:
    codes = []
    text = text.lstrip(_SEPARATORS)
    while match := _CODE.match(text):
        codes.append(match.group())
        text = text[match.end() :].lstrip(_SEPARATORS)
    return tuple(dict.fromkeys(codes))


def of_subject(subject: Subject, place: tuple[str, int, int]) -> list[Suppression]:
    """The annotation of an object, if it has one; `place` is where that stands."""
    text = subject.text("metadata", "annotations", ANNOTATION)
    if not text:
        return []
    codes = _codes(text)
    file, line, column = place
    unknown = "" if codes else text
    return [Suppression(file, line, column, 0, codes, unknown, subject.index, subject.title)]


@dataclass(frozen=True)
class Applied:
    """Findings that stay and those that are suppressed, each in order; `used` are the statements that did something."""

    kept: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    used: frozenset[tuple[int, str]]


def apply(findings: Iterable[Finding], suppressions: list[Suppression]) -> Applied:
    """Set aside what is suppressed; `used` has (index of the statement, code)."""
    kept: list[Finding] = []
    set_aside: list[Finding] = []
    used: set[tuple[int, str]] = set()
    for finding in findings:
        hits = [n for n, held in enumerate(suppressions) if any(held.covers(finding, code) for code in held.codes)]
        used.update((n, finding.code) for n in hits)
        (set_aside if hits else kept).append(finding)
    return Applied(tuple(kept), tuple(set_aside), frozenset(used))
