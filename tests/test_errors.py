"""Errors show little of what is wrong, however large it is, and never make more than they show."""

import ast
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kerf
from kerf.errors import MOST_SHOWN, DecodeError, brief

SOURCE = Path(kerf.__file__).parent
ROOMS = ("model", "sharing", "engine", "state", "manifests", "lint", "controllers", "kube")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()
PLAIN = st.recursive(SCALARS, lambda below: st.lists(below) | st.dictionaries(st.text(), below) | st.tuples(below))


class Large:
    """What nobody may ask for all of it."""

    def __repr__(self) -> str:
        raise AssertionError("the repr of a large value was made")


class Endless(Mapping[str, object]):
    """A mapping of which there is always more."""

    def __getitem__(self, key: str) -> object:
        return self

    def __len__(self) -> int:
        raise AssertionError("a large value was counted")

    def __iter__(self) -> Iterator[str]:
        while True:
            yield "key"


def circle() -> list[object]:
    """A list that holds itself."""
    held: list[object] = []
    held.append(held)
    return held


def aliased() -> object:
    """Ten lists of ten lists of ..., as YAML's aliases make them of a few bytes."""
    value: list[object] = ["x"] * 10
    for _ in range(30):
        value = [value] * 10
    return value


@given(PLAIN)
def test_a_small_value_is_shown_as_it_is(value: object) -> None:
    """As by repr; a larger one begins as by repr, and is cut."""
    shown = brief(value)

    assert len(shown) <= MOST_SHOWN
    assert shown == repr(value) or shown.endswith("...") or "<a very large number>" in shown
    if len(repr(value)) <= MOST_SHOWN:
        assert shown == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000_000,
        b"\0" * 10_000_000,
        "\0" * 10_000_000,
        [0] * 10_000_000,
        {"a" * 10_000_000: 1},
        10**100_000,
        circle(),
        aliased(),
        Endless(),
        Large(),
        [Large(), {"a": Large()}],
        (date(2026, 1, 5),) * 1000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_large_value_is_cut_before_it_is_made(value: object) -> None:
    """In the text of the error and in what the error keeps."""
    error = DecodeError("spec.a", "text", value)

    assert len(brief(value)) <= MOST_SHOWN
    assert len(str(error)) <= len("spec.a: expected text, got ") + MOST_SHOWN
    assert len(repr(error)) <= 200
    assert error.got is not value


@pytest.mark.parametrize("part", ["path", "expected", "place", "hint"])
def test_every_part_of_an_error_is_bounded(part: str) -> None:
    """A key of a mapping is as long as its author likes, and stands in the path."""
    parts: dict[str, Any] = {"path": "a", "expected": "b", "place": "c", "hint": "d", part: "x" * 1_000_000}

    assert len(str(DecodeError(got="<" + "y" * 1_000_000, **parts))) <= 1000


def test_our_own_words_stand_as_they_are() -> None:
    """Text in angle brackets is no value."""
    assert "a: expected text, got <nothing>" == str(DecodeError("a", "text", "<nothing>"))


def test_no_text_is_made_of_a_whole_value() -> None:
    """`brief` is what shows values: neither `!r` nor `repr` knows an end. Numbers of our own are small."""
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for room in ROOMS
        for path in sorted((SOURCE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.FormattedValue) and node.conversion == ord("r"))
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "repr")
    ]

    assert ["model/quantities.py"] == [place.partition(":")[0] for place in found]
