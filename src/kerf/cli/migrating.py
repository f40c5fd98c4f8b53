"""What `kerf migrate` does: retired kinds of Karpenter to today's, and what became of every field.

The manifests go to standard output, so they can be piped into kubectl; the report is for a person, on standard
error, and for a program in a file.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from kerf.catalog import known_types, load_market, why_not_sold
from kerf.catalog.aws import specs
from kerf.catalog.aws_types import AwsRow
from kerf.catalog.select import AWS
from kerf.cli.echo import echo
from kerf.cli.exits import DONE, LOOK
from kerf.cli.inputs.retired import read_retired
from kerf.cli.output.screen import PIPE
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.progress import progress
from kerf.cli.render import counted, table_rows
from kerf.errors import InputError
from kerf.manifests.migrate.migration import Migration
from kerf.manifests.migrate.migration import migrate as migrated
from kerf.manifests.migrate.objects import FieldChange, FieldOutcome, New
from kerf.manifests.migrate.requirements import Concern, Offers
from kerf.manifests.migrate.writing import manifest_text
from kerf.manifests.read import not_empty, read_documents
from kerf.model.instancetypes import InstanceType
from kerf.model.market import Market

_PROPOSALS = 3


def show(files: Sequence[str], flags: dict[str, Any]) -> int:
    """Migrate what the files or the cluster have, and print it; the exit code."""
    if files:
        documents = not_empty(read_documents(files, sys.stdin, recursive=flags["recursive"]), files)
    else:
        with progress("reading the cluster"):
            documents = read_retired(kubeconfig=flags["kubeconfig"], context=flags["context"])
    made = migrated(documents, _offers(load_market(None, AWS, flags["region"])), keeps_unchanged=bool(files))
    if flags["report"] is not None:
        _write(flags["report"], made)
    is_json = flags["output"] == "json"
    if made.objects:
        echo(_json(made.objects) if is_json else manifest_text(made.objects), nl=is_json)
    for line in _lines(made):
        echo(line, err=True)
    return LOOK if made.needs_look else DONE


def _json(objects: tuple[New, ...]) -> str:
    """One object as it is, several as a List, as kubectl prints them."""
    values = [new.value for new in objects]
    data = values[0] if len(values) == 1 else {"apiVersion": "v1", "kind": "List", "items": values}
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def _offers(market: Market) -> Offers:
    """What the catalogue says of an instance type."""

    def concern(name: str) -> Concern | None:
        if market.find(name) is not None:
            return None
        why = why_not_sold(AWS, market.region, name)
        if why is None:
            return None if name in known_types(AWS) else Concern(f"{name} is no known instance type")
        return Concern(why, _instead(name, market))

    return concern


def _instead(name: str, market: Market) -> str:
    """The cheapest types of the same architecture with as many whole GPUs, one of each kind of GPU."""
    whole = {spec.name: spec for spec in specs() if spec.gpus and all(gpu.eighths == 8 for gpu in spec.gpus)}
    gone = whole.get(name)
    if gone is None:
        return ""
    alike = [spec for spec in whole.values() if spec.arch == gone.arch and _cards(spec) == _cards(gone)]
    found: dict[str, str] = {}
    for kind in sorted(filter(None, (market.find(spec.name) for spec in alike)), key=_price):
        found.setdefault(kind.devices[0].model.name, kind.name)
    proposals = [f"{kind} ({model})" for model, kind in list(found.items())[:_PROPOSALS]]
    return f"sold with as many GPUs: {', '.join(proposals)}" if proposals else ""


def _cards(spec: AwsRow) -> int:
    return sum(gpu.count for gpu in spec.gpus)


def _price(kind: InstanceType) -> tuple[int, str]:
    return min(offering.price_micro for offering in kind.offerings), kind.name


def _write(path: str, made: Migration) -> None:
    data = msgspec.json.format(msgspec.json.encode(report_object(made)), indent=2)
    try:
        with open(path, "wb") as file:
            file.write(data + b"\n")
    except OSError as error:
        raise InputError(f"--report {path}: expected a file that can be written, got: {error.strerror}") from None


def report_object(made: Migration) -> Json:
    """The report as data."""
    rows = [
        {
            "place": row.place,
            "object": row.subject,
            "field": row.field,
            "outcome": row.outcome.value,
            "target": row.target,
            "now": row.now,
            "why": row.why,
            "hint": row.hint,
            "needsLook": row.needs_look,
        }
        for row in made.rows
    ]
    totals = {outcome.value: made.count(outcome) for outcome in FieldOutcome}
    return {"apiVersion": API_VERSION, "kind": "MigrationReport", "totals": totals, "fields": rows}


def _lines(made: Migration) -> Iterator[str]:
    """A table for each old object, hints below it, and the totals."""
    for subject, rows in groupby(made.rows, lambda row: row.subject):
        yield from _object_lines(subject, tuple(rows))
        yield ""
    look = sum(row.needs_look for row in made.rows)
    totals = ", ".join(f"{made.count(outcome)} {outcome.value}" for outcome in FieldOutcome if made.count(outcome))
    yield f"{counted(len(made.objects), 'object')} written; fields: {totals or 'none changed'}; {look} to look at"


def _object_lines(subject: str, rows: tuple[FieldChange, ...]) -> Iterator[str]:
    targets = list(dict.fromkeys(row.target for row in rows if row.target))
    yield f"{subject} -> {', '.join(targets) if targets else 'nothing'}"
    head, *body = table_rows(("PLACE", "FIELD", "OUTCOME", "NOW", "WHY"), (_cells(row) for row in rows), "  ", PIPE)
    yield from head
    for row, lines in zip(rows, body, strict=True):
        yield from lines
        if row.hint:
            yield f"    {'hint' if row.needs_look else 'note'}: {row.hint}"


def _cells(row: FieldChange) -> tuple[str, str, str, str, str]:
    look = ", look" if row.needs_look and row.outcome in (FieldOutcome.KEPT, FieldOutcome.CHANGED) else ""
    return row.place, row.field or "-", row.outcome.value + look, row.now or "-", row.why or "-"
