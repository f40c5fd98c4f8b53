"""Tables, percentages, selectors and commands as text."""

import json
from typing import Any

import pytest
import yaml

from kerf.cli.inputs.selectors import parse_selector
from kerf.cli.render import emit, patch_command, percent_text, some, table
from kerf.model.plan import Patch


def test_columns_are_two_spaces_apart_and_lines_end_clean() -> None:
    """Cells are padded, the last one is not, and an empty last cell leaves no blanks."""
    assert ["A    LONG", "bbb  c", "d"] == table(("A", "LONG"), [("bbb", "c"), ("d", "")])


@pytest.mark.parametrize("part, whole, text", [(1, 4, "25 %"), (1, 3, "33.4 %"), (0, 5, "0 %"), (1, 100_000, "0.1 %")])
def test_percentages_are_rounded_up(part: int, whole: int, text: str) -> None:
    """A bound is never made to look better than it is."""
    assert text == percent_text(part, whole)


@pytest.mark.parametrize(
    "patch, command",
    [
        (Patch("NodePool", "g5", {}), "kubectl patch nodepool g5 --type merge -p '{}'"),
        (Patch("Deployment", "web", {}, "a"), "kubectl patch deployment web -n a --type strategic -p '{}'"),
        (Patch("Pod", "web", {}, "a"), "kubectl patch --local -f MANIFEST --type strategic -p '{}' -o yaml"),
    ],
)
def test_a_patch_is_a_ready_command(patch: Patch, command: str) -> None:
    """Merge patches for our kinds, strategic ones for built-in kinds; a Pod is changed in its manifest."""
    assert command == patch_command(patch)


def test_names_are_cut_with_their_number() -> None:
    """The first name and how many more."""
    assert ("a", "a and 2 more") == (some(["a"]), some(["a", "b", "c"]))


@pytest.mark.parametrize(
    "text, labels, is_selected",
    [
        ("", {}, True),
        ("app=web", {"app": "web"}, True),
        ("app==web,tier!=db", {"app": "web"}, True),
        ("app in (web, db)", {"app": "db"}, True),
        ("app notin (web)", {"app": "web"}, False),
        ("app", {}, False),
        ("!app", {}, True),
        ("app=web, zone in (a,b)", {"app": "web", "zone": "c"}, False),
        ("beta.kubernetes.io/arch=amd64", {"beta.kubernetes.io/arch": "amd64"}, True),
    ],
)
def test_selectors_select_as_kubectl_does(text: str, labels: dict[str, str], is_selected: bool) -> None:
    """Equality, sets and presence, all of which must hold."""
    assert is_selected == (parse_selector(text).unsatisfied_by(labels) is None)


_LISTS: tuple[dict[str, Any], ...] = (
    {"kind": "Plan", "launches": [], "notes": ["a"]},
    {"launches": [{"name": "a: b", "pods": ["x", "yes"], "none": [], "labels": {}}, {"name": "\u001b"}], "notes": []},
    {"launches": [["a", ["b"]], "2026-01-05", 1.5, None, True]},
)


@pytest.mark.parametrize("data", _LISTS)
def test_a_list_that_is_made_item_by_item_is_written_as_any_other(
    data: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes of JSON and YAML do not tell an iterator from a list; both can be read back."""
    written = {}
    for form in ("json", "yaml"):
        for named, made in (("list", lambda: data), ("iterator", lambda: {**data, "launches": iter(data["launches"])})):
            emit(form, made, tuple)
            written[form, named] = capsys.readouterr().out
    assert written["json", "iterator"] == written["json", "list"] == json.dumps(data, indent=2) + "\n"
    assert written["yaml", "iterator"] == written["yaml", "list"]
    assert yaml.safe_load(written["yaml", "list"]) == data


def test_what_has_no_keys_and_no_lines_is_written_too(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty object, and an empty line."""
    for form, text in (("json", "{}\n"), ("yaml", "{}\n"), ("table", "\n")):
        emit(form, dict, tuple)
        assert text == capsys.readouterr().out
