"""The reference page of the catalogue says what the code does."""

from pathlib import Path

import pytest

from kerf.catalog import aws, kwok

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "catalogue.md").read_text(encoding="utf-8")


def test_example_file_is_read() -> None:
    """The file in the page decodes: two offerings, four cards, its own overhead."""
    market = kwok.decode(PAGE.partition("```json\n")[2].partition("```")[0], "page")
    kind = market.types[0]

    assert () == market.notes
    assert ("rack-a.l40s", 2, 4) == (kind.name, len(kind.offerings), len(kind.devices))
    assert 31_500 == kind.allocatable["cpu"]


@pytest.mark.parametrize("name", ["g4dn.xlarge", "g5.xlarge", "p5en.48xlarge", "g5g.xlarge", "p6-b300.48xlarge"])
def test_table_of_cards_has_the_planned_memory(name: str) -> None:
    """The last column of the table is what the code plans with."""
    kind = aws.load().find(name)
    assert kind is not None
    planned = {row.split("|")[-2].strip() for row in PAGE.splitlines() if row.startswith("| ")}

    assert any(str(kind.devices[0].memory_mib) in cell.split(", ") for cell in planned)


def test_counts_of_the_page_are_those_of_the_data() -> None:
    """How many types are known and sold."""
    known, east, west = len(aws.specs()), len(aws.load("us-east-1").types), len(aws.load("us-west-2").types)

    assert f"{east} types are sold in us-east-1, {west} in us-west-2; {known} are known." in PAGE
