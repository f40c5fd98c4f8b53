"""The quick look at an object must find it right only where the walk of all its fields notes nothing."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from kerf.errors import DecodeError
from kerf.manifests.dispatch import FIRST, kind_of
from kerf.manifests.schema import Record, Report
from tests.property.test_live import LIVE, damaged
from tests.property.test_manifests import often


def form_of(kind: str, version: str) -> Record:
    """Of a kind that Kerf reads."""
    if kind in FIRST:
        return FIRST[kind]
    try:
        found = kind_of({"kind": kind, "apiVersion": version})
    except DecodeError:
        found = None
    return Record({}) if found is None else found.schema


def same_by_both_ways(form: Record, value: Any, *, is_live: bool) -> None:
    """The same report with the quick look and without it."""
    quick, whole = Report(is_live=is_live), Report(is_live=is_live)
    form.check(deepcopy(value), (), quick)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Record, "fits", lambda *_: False)
        form.check(deepcopy(value), (), whole)

    assert whole == quick


def test_a_right_object_is_found_right_at_a_look() -> None:
    """Objects of a server fit, and a walk of their fields notes nothing else."""
    for kind, version, value in LIVE:
        assert form_of(kind, version).fits(value, Report(is_live=True))
        same_by_both_ways(form_of(kind, version), value, is_live=True)


@often
@given(damaged())
def test_a_look_changes_no_report(given_: tuple[str, str, Any]) -> None:
    """The same problems in the same order, the same unknown names, the same newest instant."""
    kind, version, value = given_
    for is_live in (False, True):
        same_by_both_ways(form_of(kind, version), value, is_live=is_live)
