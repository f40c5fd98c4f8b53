"""Whether today's API takes what was written: the forms and rules of the kinds that `kerf migrate` makes.

The old API was laxer: it took `ami456` for an image, and today's refuses it when the manifest is applied. A person who
reads "0 to look at" has stopped looking by then.
"""

from collections.abc import Iterable
from dataclasses import replace

from kerf.errors import brief
from kerf.manifests.dispatch import kind_of
from kerf.manifests.karpenter import ec2
from kerf.manifests.migrate.objects import FieldChange, FieldOutcome, New, Old
from kerf.manifests.schema import Path, Problem, Report


def note_refused(old: Old, made: Iterable[New]) -> None:
    """Mark the rows of an old object that became what the API refuses; without a row for it, one more."""
    for new in made:
        for problem in () if new.raw else _problems(new):
            _note(old, new, problem)


def _problems(new: New) -> list[Problem]:
    report = Report()
    if new.value.get("kind") == ec2.KIND:
        ec2.check_ec2_node_class(new.value, report)
        return report.problems
    kind = kind_of(new.value)
    if kind is not None:
        kind.schema.check(new.value, (), report)
        if not report.problems and kind.rules is not None:
            kind.rules(new.value, report)
    return report.problems


def _note(old: Old, new: New, problem: Problem) -> None:
    got = (
        problem.got.strip("<>") if isinstance(problem.got, str) and problem.got.startswith("<") else brief(problem.got)
    )
    hint = f"the API refuses it: expected {problem.expected}, got {got}" + (f"; {problem.hint}" if problem.hint else "")
    mine = [
        index
        for index, row in enumerate(old.rows)
        if row.target == new.title and row.to and (_is_within(problem.path, row.to) or _is_within(row.to, problem.path))
    ]
    if not mine:
        place = old.document.place(("kind",))
        old.rows.append(
            FieldChange(place, old.title, (), FieldOutcome.ADDED, new.title, problem.path, "", hint, needs_look=True)
        )
        return
    nearest = max(
        mine, key=lambda index: len(old.rows[index].to) if _is_within(problem.path, old.rows[index].to) else -1
    )
    row = old.rows[nearest]
    old.rows[nearest] = replace(row, hint=f"{hint}; {row.hint}" if row.hint else hint, needs_look=True)


def _is_within(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer
