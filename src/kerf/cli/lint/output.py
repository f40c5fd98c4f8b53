"""Findings as a table for people, JSON, SARIF for code scanning, and annotations for GitHub's workflows."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import msgspec

from kerf import __version__
from kerf.cli.lint.forms import GITHUB, JSON, SARIF
from kerf.cli.render import counted, table_rows
from kerf.lint.findings import Finding, Severity
from kerf.lint.linter import Linted
from kerf.lint.registry import Rule
from kerf.lint.rules import rules

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
"""SARIF's words."""
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
"""Commands of GitHub's workflows."""
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def output(form: str, linted: Linted) -> str:
    """The findings in a form for programs, with a line break at the end."""
    return _FORMS[form](linted)


def table_lines(linted: Linted) -> list[str]:
    """The findings as a table for people, each with its hint below, and their number."""
    lines: list[str] = []
    if linted.findings:
        rows = [(f.place or "cluster", f.severity.value, f.code, f.subject, f.message) for f in linted.findings]
        head, *body = table_rows(("PLACE", "SEVERITY", "CODE", "OBJECT", "MESSAGE"), rows)
        lines += head
        for row, finding in zip(body, linted.findings, strict=True):
            lines += row
            if finding.hint:
                lines.append(f"    hint: {finding.hint}")
        lines.append("")
    return [*lines, _summary(linted)]


def _summary(linted: Linted) -> str:
    counts = Counter(finding.severity for finding in linted.findings)
    parts = [
        counted(counts[s], s.value) if s is not Severity.INFO else f"{counts[s]} info" for s in Severity if counts[s]
    ]
    found = f"{counted(len(linted.findings), 'finding')}: {', '.join(parts)}" if parts else "no findings"
    suppressed = f", {len(linted.suppressed)} suppressed" if linted.suppressed else ""
    return f"{found}{suppressed} ({counted(linted.objects, 'object')})"


def _object(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": rules()[finding.code].name,
        "severity": finding.severity.value,
        "file": finding.file or None,
        "line": finding.line or None,
        "column": finding.column or None,
        "object": finding.subject or None,
        "path": finding.path or None,
        "message": finding.message,
        "hint": finding.hint or None,
        "fixable": bool(finding.fix),
        "page": rules()[finding.code].page,
    }


def _json(linted: Linted) -> str:
    return _encoded(
        {
            "apiVersion": "kerf.dev/v1alpha1",
            "kind": "Findings",
            "findings": [_object(finding) for finding in linted.findings],
            "suppressed": [_object(finding) for finding in linted.suppressed],
            "errors": [str(error) for error in linted.errors],
            "objects": linted.objects,
        }
    )


def _encoded(data: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def _sarif(linted: Linted) -> str:
    known = [
        rule for code, rule in rules().items() if any(f.code == code for f in (*linted.findings, *linted.suppressed))
    ]
    index = {rule.code: number for number, rule in enumerate(known)}
    results = [_result(finding, index, is_suppressed=False) for finding in linted.findings]
    results += [_result(finding, index, is_suppressed=True) for finding in linted.suppressed]
    notifications = [{"level": "error", "message": {"text": str(error)}} for error in linted.errors]
    run = {
        "tool": {
            "driver": {"name": "kerf lint", "version": __version__, "rules": [_descriptor(rule) for rule in known]}
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": not linted.errors, "toolExecutionNotifications": notifications},
        ],
        "results": results,
    }
    return _encoded({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _descriptor(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.text},
        "help": {"text": f"{rule.text}\n\n{rule.page}", "markdown": f"{rule.text}\n\n`{rule.page}`"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, index: dict[str, int], *, is_suppressed: bool) -> dict[str, Any]:
    hint = f"\n{finding.hint}" if finding.hint else ""
    location: dict[str, Any] = {}
    if finding.file:
        region = {"startLine": finding.line, "startColumn": finding.column}
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(finding.file)}, "region": region}
    if finding.subject:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.subject}]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message + hint},
        "locations": [location] if location else [],
    }
    if is_suppressed:
        result["suppressions"] = [{"kind": "inSource"}]
    return result


def _uri(file: str) -> str:
    """A reference to the file: relative as it was given, or `file:` for an absolute path."""
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _github(linted: Linted) -> str:
    lines = []
    for finding in linted.findings:
        at = f"file={_property(finding.file)},line={finding.line},col={finding.column}," if finding.file else ""
        title = _property(f"{finding.code} {finding.subject}".rstrip())
        text = f"{finding.message}\n{finding.hint}" if finding.hint else finding.message
        lines.append(f"::{_COMMANDS[finding.severity]} {at}title={title}::{_data(text)}")
    lines += [f"::error title=kerf lint::{_data(str(error))}" for error in linted.errors]
    return _joined(lines)


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_FORMS: dict[str, Callable[[Linted], str]] = {JSON: _json, SARIF: _sarif, GITHUB: _github}
