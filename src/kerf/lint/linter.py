"""All rules over all objects: findings in the order of the input, and nothing lost to a fault.

A file that cannot be parsed hides nothing of the others, and a rule that fails on one object hides nothing of that
object or of the next.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kerf.errors import DecodeError, InputError
from kerf.lint import suppressions
from kerf.lint.context import LintContext, Markets, OwnMetrics
from kerf.lint.findings import Finding, Note
from kerf.lint.registry import Rule
from kerf.lint.rules import rules
from kerf.lint.rules.keys import VALUES
from kerf.lint.rules.own import INTERNAL, UNKNOWN, UNUSED
from kerf.lint.subject import Subject
from kerf.lint.suppressions import Suppression
from kerf.manifests.admission import AdmissionDefaults, admission_of
from kerf.manifests.dispatch import FIRST, kind_of, read
from kerf.manifests.documents import Document, YamlDocument
from kerf.manifests.pods.live import listed_pod
from kerf.manifests.read import Documents
from kerf.manifests.schema import Path, Report, path_text, shown

FORM, UNKNOWN_FIELD = "KL001", "KL002"
_RECOGNISED = ("kind", "apiVersion", "groups", *VALUES)
"""Keys one of which every document has that rules look at."""
_NEVER_SUPPRESSED = (INTERNAL, UNUSED, UNKNOWN)


@dataclass(frozen=True)
class Linted:
    """What was found. `errors` are files and documents that could not be read at all.

    `objects` counts what was looked at, `passed_over` documents that are no objects of Kubernetes nor rules of
    Prometheus nor values of a chart.
    """

    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    errors: tuple[InputError, ...] = ()
    objects: int = 0
    passed_over: int = 0
    subjects: tuple[Subject, ...] = field(default=(), compare=False)


def lint(
    documents: Documents,
    texts: Mapping[str, str],
    markets: Markets,
    codes: Collection[str] | None = None,
    *,
    own_metrics: OwnMetrics = dict,
    is_live: bool = False,
) -> Linted:
    """Apply the rules with these codes, by default all.

    `texts` are the files of the documents as they are, in their order, for their comments. `is_live`: the documents are
    a cluster's answers, so a finding has no place. Cost: objects x rules, and a market for each cloud that is
    named.
    """
    asked = frozenset(rules() if codes is None else codes)
    subjects, errors, passed_over = _subjects(documents)
    context = LintContext(subjects, markets, own_metrics)
    applied = [rule for code, rule in rules().items() if code in asked and rule.check is not None]
    looked_at = [subject for subject in subjects if not _is_made(subject)]
    found = [
        _finding(subject, rule, note, has_place=not is_live)
        for subject in looked_at
        for rule, note in _of_subject(subject, context, applied)
    ]
    if INTERNAL not in asked:
        found = [finding for finding in found if finding.code != INTERNAL]
    stated = _stated(subjects, texts, has_places=not is_live)
    result = suppressions.apply((f for f in found if f.code not in _NEVER_SUPPRESSED), stated)
    faults = [finding for finding in found if finding.code == INTERNAL]
    about = [f for f in _about(stated, result.used, asked) if f.code in asked]
    order = {file: number for number, file in enumerate(texts)}
    in_order = sorted([*result.kept, *faults, *about], key=lambda f: _order(f, order))
    return Linted(tuple(in_order), result.suppressed, tuple(errors), len(subjects), passed_over, subjects)


def _order(finding: Finding, files: Mapping[str, int]) -> tuple[int, int, int, int, str, str]:
    at = files.get(finding.file, len(files))
    return (at, finding.line, finding.column, finding.index, finding.code, finding.message)


# Documents to subjects.


def _subjects(documents: Documents) -> tuple[tuple[Subject, ...], list[InputError], int]:
    subjects: list[Subject] = []
    errors: list[InputError] = []
    passed_over, admission = 0, _admission(documents.entries)
    for entry in documents.entries:
        if isinstance(entry, InputError):
            errors.append(entry)
            continue
        made = _made_pod(len(subjects), entry)
        if made is not None:
            subjects.append(made)
            continue
        try:
            raw = entry.value()
        except InputError as error:
            errors.append(error)
            continue
        if isinstance(raw, dict) and not raw.keys().isdisjoint(_RECOGNISED):
            subjects.append(_kept(_subject(len(subjects), entry, raw, admission)))
        elif isinstance(raw, dict | list):
            passed_over += 1
        else:
            expected = "an object, a mapping of fields"
            errors.append(DecodeError("", expected, shown(raw), place=entry.place()))
    return tuple(subjects), errors, passed_over


def _made_pod(index: int, document: Document) -> Subject | None:
    """A pod of a cluster that another object has made, as `_kept` has it, read without its spec as a dictionary.

    None for every other document, and for a pod that has to be read as every document.
    """
    listed = listed_pod(document)
    if listed is None or listed.pod.owner is None:
        return None
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": listed.metadata()}
    return Subject(index, document, raw, Report(is_live=True), listed.pod)


def _kept(subject: Subject) -> Subject:
    """What is kept of it: of what another object of a cluster has made, the value, since 20,000 pods are 300 MiB."""
    if not _is_made(subject):
        return subject
    raw = {name: value for name, value in subject.raw.items() if name in ("apiVersion", "kind", "metadata")}
    return replace(subject, raw=raw)


def _subject(index: int, document: Document, raw: dict[str, Any], admission: AdmissionDefaults) -> Subject:
    report = Report()
    kind = raw.get("kind")
    if isinstance(kind, str) and kind in FIRST:
        FIRST[kind].check(raw, (), report)
        return Subject(index, document, raw, report)
    if "kind" not in raw and "apiVersion" not in raw:
        # A file of Prometheus rules, or values of a chart: rules look for what they know.
        return Subject(index, document, raw, report)
    try:
        known = kind_of(raw)
    except DecodeError as error:
        report.problem((error.path,) if error.path else (), error.expected, error.got, error.hint)
        return Subject(index, document, raw, report)
    value = None if known is None else read(known, raw, report, admission, document.source)
    return Subject(index, document, raw, report, value)


def _admission(entries: Iterable[Document | InputError]) -> AdmissionDefaults:
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in FIRST}
    for entry in entries:
        if isinstance(entry, InputError) or not any(map(entry.may_be, FIRST)):
            continue
        try:
            raw = entry.value()
        except InputError:
            continue
        kind = raw.get("kind") if isinstance(raw, dict) else None
        if isinstance(kind, str) and kind in FIRST:
            report = Report()
            FIRST[kind].check(raw, (), report)
            if not report.problems:
                found[kind].append(raw)
    return admission_of(found["PriorityClass"], found["LimitRange"])


# Rules to findings.


def _is_made(subject: Subject) -> bool:
    """Whether another object of a cluster has made it, which is looked at instead."""
    return subject.is_live and bool(subject.get("metadata", "ownerReferences"))


def _of_subject(subject: Subject, context: LintContext, applied: Iterable[Rule]) -> Iterator[tuple[Rule, Note]]:
    found: list[tuple[Rule, Note]] = []
    for rule in applied:
        if rule.kinds and subject.kind not in rule.kinds:
            continue
        assert rule.check is not None
        try:
            found += ((rule, note) for note in rule.check(subject, context))
        except InputError:
            raise
        except Exception as error:
            message = f"rule {rule.code} failed: {type(error).__name__}: {error}"
            found.append((rules()[INTERNAL], Note((), message, "the other rules have been applied; please report it")))
    special = {note.path for rule, note in found if rule.code not in (FORM, UNKNOWN_FIELD)}
    for rule, note in found:
        # What a rule of its own says better is said once.
        if rule.code in (FORM, UNKNOWN_FIELD) and note.path in special:
            continue
        yield rule, note


def _finding(subject: Subject, rule: Rule, note: Note, *, has_place: bool) -> Finding:
    file, line, column = place_of(subject.document, note.path, at_key=note.at_key) if has_place else ("", 0, 0)
    fix = note.fix if isinstance(subject.document, YamlDocument) and not subject.is_live else ()
    path = path_text(note.path)
    return Finding(
        rule.code, rule.severity, note.message, note.hint, file, line, column, subject.title, path, fix, subject.index
    )


def place_of(document: Document, path: Path = (), *, at_key: bool = False) -> tuple[str, int, int]:
    """File, line and column of a field, or of its nearest ancestor that exists."""
    file, line, column = document.place(path, at_key=at_key).rsplit(":", 2)
    return file, int(line), int(column)


# Suppressions.


def _stated(subjects: tuple[Subject, ...], texts: Mapping[str, str], *, has_places: bool) -> list[Suppression]:
    stated = [held for file, text in texts.items() for held in suppressions.of_text(file, text)]
    path: Path = ("metadata", "annotations", suppressions.ANNOTATION)
    for subject in subjects:
        if subject.text(*path):
            place = place_of(subject.document, path) if has_places else ("", 0, 0)
            stated += suppressions.of_subject(subject, place)
    return stated


def _about(stated: list[Suppression], used: frozenset[tuple[int, str]], asked: frozenset[str]) -> Iterator[Finding]:
    """Findings about suppressions themselves; one of a rule that was not applied is neither used nor unused."""
    known = rules()
    for number, held in enumerate(stated):
        place = (held.file, held.line, held.column, held.title)
        form = "the form is `# kerf-lint: ignore KL012 reason`"
        if held.unknown:
            yield _said(UNKNOWN, f"a suppression that cannot be read: {held.unknown}", form, place)
        for code in held.codes:
            if code not in known:
                yield _said(UNKNOWN, f"a suppression of {code}, which is no rule", "see kerf lint --explain", place)
            elif code in asked and (number, code) not in used:
                where = "its object" if held.subject >= 0 else "the file" if held.target == 0 else f"line {held.target}"
                message = f"a suppression of {code}, which is not found in {where}"
                yield _said(UNUSED, message, "take it away", place)


def _said(code: str, message: str, hint: str, place: tuple[str, int, int, str]) -> Finding:
    file, line, column, title = place
    return Finding(code, rules()[code].severity, message, hint, file, line, column, title)
