"""Kubernetes quantities as exact integers, and arithmetic of resource vectors."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.model.quantities import QuantityError, Resources, quantity, quantity_of, quantity_text

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
FACTORS = {**{s: Fraction(f) for s, f in BINARY.items()}, **{s: Fraction(10) ** p for s, p in DECIMAL.items()}}
NUMBERS = st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,6})?|\.[0-9]{1,6})", fullmatch=True)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1", 1),
        ("0.5", 1),
        ("100m", 1),
        ("1500m", 2),
        ("-1500m", -2),
        ("1e3", 1000),
        ("1E3", 1000),
        ("2E", 2 * 10**18),
        ("1Gi", 2**30),
        ("1.5Gi", 3 * 2**29),
        (".5", 1),
        ("5.", 5),
        ("+3k", 3000),
        ("1e-2", 1),
        ("0", 0),
        (7, 7),
        (1.5, 2),
        ("-1e1000", -(10**40)),
        ("1e999999999", 10**40),
        ("1e-999999999", 1),
        ("0e999999999", 0),
    ],
)
def test_a_quantity_is_rounded_away_from_zero_to_its_base_unit(text: str | int | float, expected: int) -> None:
    """As apimachinery's Quantity.Value does; manifests may state numbers as well as text."""
    assert expected == quantity(text)


@pytest.mark.parametrize("value, expected", [("100m", 100), ("1", 1000), ("0.0005", 1), (2, 2000), (0.25, 250)])
def test_cpu_counts_in_thousandths(value: str | int | float, expected: int) -> None:
    """Quantity.MilliValue."""
    assert expected == quantity_of("cpu", value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1 Gi",
        "1K",
        "1gi",
        "1_000",
        "inf",
        "nan",
        "１",
        "0x10",
        "1e",
        "1e1.5",
        "1" * 5000,
        "--1",
        "1Gim",
        ".",
        True,
    ],
)
def test_text_outside_the_grammar_is_no_quantity(text: str) -> None:
    """Other parsers accept some of these; the API server accepts none."""
    with pytest.raises(QuantityError):
        quantity(text)


@settings(max_examples=400, derandomize=True, database=None)
@given(NUMBERS, st.sampled_from(sorted(FACTORS)), st.booleans())
def test_every_suffix_means_its_factor(number: str, suffix: str, milli: bool) -> None:
    """Against exact fractions: the number times its factor, rounded away from zero."""
    exact = Fraction(number) * FACTORS[suffix] * (1000 if milli else 1)

    assert ceil(abs(exact)) * (-1 if exact < 0 else 1) == quantity(number + suffix, milli=milli)


@settings(max_examples=200, derandomize=True, database=None)
@given(st.sampled_from(["cpu", "memory", "pods", "hugepages-2Mi", "nvidia.com/gpu"]), st.integers(-(2**70), 2**70))
def test_an_amount_survives_its_text(resource: str, amount: int) -> None:
    """What is written can be read again, without loss."""
    assert amount == quantity_of(resource, quantity_text(resource, amount))


@pytest.mark.parametrize(
    "resource, amount, expected",
    [
        ("cpu", 3920, "3920m"),
        ("cpu", 4000, "4"),
        ("memory", 14162 * 2**20, "14162Mi"),
        ("memory", 0, "0"),
        ("memory", 1000, "1000"),
        ("nvidia.com/gpumem", 2**20, "1048576"),
    ],
)
def test_an_amount_is_written_as_people_write_it(resource: str, amount: int, expected: str) -> None:
    """Only bytes get binary suffixes: HAMi's MiB are plain numbers."""
    assert expected == quantity_text(resource, amount)


def test_arithmetic_of_resources_keeps_every_name() -> None:
    """What is absent counts as zero; an explicit zero stays, since HAMi tells it from a missing key."""
    some, more = Resources({"cpu": 1, "gpumem": 0}), Resources({"cpu": 2, "memory": 5})

    assert Resources({"cpu": 3, "gpumem": 0, "memory": 5}) == some + more
    assert Resources({"cpu": -1, "gpumem": 0, "memory": -5}) == some - more
    assert Resources({"cpu": 2, "gpumem": 0, "memory": 5}) == some.largest(more) == some.replaced(more)
    assert Resources({"cpu": 6, "memory": 15}) == more * 3
    assert Resources({"gpumem": 0}) == some.without(["cpu"])
    assert Resources({"cpu": 1}) != some


def test_a_shortfall_names_what_is_lacking() -> None:
    """Zero amounts lack nothing."""
    asked = Resources({"cpu": 4, "gpu": 1, "gpumem": 0})

    assert Resources({"cpu": 1, "gpu": 1}) == asked.shortfall({"cpu": 3})
    assert Resources() == asked.shortfall({"cpu": 4, "gpu": 2})


@pytest.mark.parametrize(
    "asked, expected", [({"cpu": 2}, 3), ({"cpu": 2, "gpu": 4}, 1), ({"cpu": 8}, 0), ({"cpu": 0}, None), ({}, None)]
)
def test_how_often_resources_fit(asked: dict[str, int], expected: int | None) -> None:
    """None when they ask for nothing at all."""
    assert expected == Resources(asked).times_in({"cpu": 7, "gpu": 4})


def test_equal_resources_have_equal_hashes() -> None:
    """Whatever the order of their names."""
    assert hash(Resources({"a": 1, "b": 2})) == hash(Resources({"b": 2, "a": 1}))
