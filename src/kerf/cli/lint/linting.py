"""What `kerf lint` does: it reads, asks the rules, and prints findings or writes fixes."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kerf.catalog import load_market
from kerf.cli.collector import collector_off
from kerf.cli.echo import echo
from kerf.cli.exits import DONE, LOOK, USAGE
from kerf.cli.lint.fix import difference, write
from kerf.cli.lint.forms import TABLE
from kerf.cli.lint.output import output, table_lines
from kerf.cli.render import counted, show_lines
from kerf.errors import InputError
from kerf.lint.findings import Severity
from kerf.lint.fixes import fixed
from kerf.lint.linter import Linted
from kerf.lint.linter import lint as look
from kerf.lint.rules import chosen, rules
from kerf.manifests.documents import Document, JsonDocument, YamlDocument
from kerf.manifests.read import Documents, not_empty, parse, read_documents
from kerf.model.market import Market

_STDIN = "stdin"
_MOST_PASSES = 10
"""A fix may wait for another one of the same line; more than a few passes mean two fixes that undo each other."""


def _codes(value: tuple[str, ...]) -> list[str]:
    return [code for part in value for code in part.replace(",", " ").split()]


def show(flags: dict[str, Any]) -> int:
    """Look, and print or fix; the exit code. Raises InputError."""
    if flags["explain"] is not None:
        return _explain(flags["explain"])
    files = (*flags["files"], *flags["paths"])
    codes = chosen(_codes(flags["select"]), _codes(flags["ignore"]))
    with collector_off():
        documents, texts = _read(files, flags)
        linted = _look(documents, texts, codes, flags)
    if flags["fix"] or flags["diff"]:
        fixed = _fixed(linted, texts, codes, flags)
        changed = {name: text for name, text in fixed.items() if text != texts[name]}
        if flags["diff"]:
            for name, text in changed.items():
                echo(difference(name, texts[name], text), nl=False)
            return _ended(linted, is_clean=not changed)
        for name, text in changed.items():
            write(Path(name), text)
        echo(f"note: {counted(len(changed), 'file')} fixed", err=True)
        documents, texts = _read(files, flags)
        linted = _look(documents, texts, codes, flags)
    if linted.passed_over:
        number = counted(linted.passed_over, "document")
        echo(f"note: {number} passed over, being no objects of Kubernetes", err=True)
    shown = _at_least(linted, Severity(flags["severity"]))
    if flags["form"] == TABLE:
        show_lines(table_lines(shown))
    else:
        echo(output(flags["form"], shown), nl=False)
    return _ended(shown, is_clean=not shown.findings)


def _explain(code: str) -> int:
    rule = rules().get(code.upper())
    if rule is None:
        echo(f"error: --explain {code}: expected one of {', '.join(rules())}", err=True)
        return USAGE
    fix = ", --fix corrects it" if rule.is_fixable else ""
    echo(f"{rule.code} {rule.name} ({rule.severity.value}{fix})\n\n{rule.text}")
    return DONE


def _read(files: tuple[str, ...], flags: Mapping[str, Any]) -> tuple[Documents, dict[str, str]]:
    """The documents, and the texts of the files they are in, in their order; none of a cluster."""
    if not files:
        from kerf.cli.inputs.live import read_cluster, whole_if_written

        return read_cluster(flags["kubeconfig"], flags["context"], cut=whole_if_written).documents, {}
    piped = sys.stdin.buffer.read().decode("utf-8", "replace") if "-" in files else ""
    parts = [
        parse(piped, _STDIN) if file == "-" else read_documents((file,), sys.stdin, recursive=flags["recursive"])
        for file in dict.fromkeys(files)
    ]
    documents = not_empty(_once(parts), files)
    names = dict.fromkeys(map(_file_of, documents))
    return documents, {name: piped if name == _STDIN else _text(name) for name in names}


def _once(parts: list[Documents]) -> Documents:
    """All of them; a file that is given by itself and in a folder counts once."""
    seen: set[str] = set()
    entries: list[Document | InputError] = []
    for part in parts:
        held = [entry for entry in part.entries if isinstance(entry, InputError) or _file_of(entry) not in seen]
        seen |= {_file_of(entry) for entry in part}
        entries += held
    return Documents(tuple(entries))


def _file_of(document: Document) -> str:
    if isinstance(document, YamlDocument):
        return document.name
    return document.file.name if isinstance(document, JsonDocument) else ""


def _text(name: str) -> str:
    """The file as it is, ends of lines included; empty where it has gone meanwhile."""
    try:
        return Path(name).read_bytes().decode("utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError):
        return ""


def _own_metrics() -> dict[str, str]:
    from kerf.telemetry import REGISTRY

    kinds = {"counter": "_total"}
    return {metric.name + kinds.get(metric.type, ""): metric.type for metric in REGISTRY.collect()}


def _look(documents: Documents, texts: Mapping[str, str], codes: frozenset[str], flags: Mapping[str, Any]) -> Linted:
    catalog, region = flags["catalog"], flags["region"]

    def market(provider: str) -> Market:
        # A cloud that has no catalogue is looked at by the one that is named, else not at all.
        return load_market(catalog, provider, region) if provider or catalog else Market(())

    commented = {name: text if not name.endswith(".json") else "" for name, text in texts.items()}
    return look(
        documents, commented, market, codes, own_metrics=_own_metrics, is_live=not texts and bool(list(documents))
    )


def _fixed(linted: Linted, texts: Mapping[str, str], codes: frozenset[str], flags: Mapping[str, Any]) -> dict[str, str]:
    """The texts with every fix, and fixes of what was fixed, until nothing changes."""
    now = dict(texts)
    for _ in range(_MOST_PASSES):
        changed = False
        for name in now:
            of_file = [finding for finding in linted.findings if finding.file == name and finding.fix]
            result = fixed(now[name], of_file, linted.subjects)
            changed = changed or result.text != now[name]
            now[name] = result.text
        if not changed:
            break
        linted = _look(Documents.joined(parse(text, name) for name, text in now.items()), now, codes, flags)
    return now


def _at_least(linted: Linted, least: Severity) -> Linted:
    kept = tuple(finding for finding in linted.findings if finding.severity.rank <= least.rank)
    return replace(linted, findings=kept)


def _ended(linted: Linted, *, is_clean: bool) -> int:
    for error in linted.errors:
        for line in str(error).splitlines():
            echo(f"error: {line}", err=True)
    if linted.errors:
        return USAGE
    return DONE if is_clean else LOOK
