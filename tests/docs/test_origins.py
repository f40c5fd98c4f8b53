"""The page of the origins goes through two documents: each line stands there, with a test that bears its number."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "origins.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (00[12])-(\d+) \|.*\| (\S+) \|$", PAGE, re.MULTILINE)
LINES = {"001": 30, "002": 12}
WITHOUT_TEST = [("001", "20")]
"""What is not in Kerf."""


@pytest.mark.parametrize("document", LINES)
def test_every_line_stands_there_once(document: str) -> None:
    """In order."""
    assert [str(number) for number in range(1, LINES[document] + 1)] == [
        number for held, number, _ in ROWS if held == document
    ]


def test_what_is_not_in_kerf_has_no_test() -> None:
    """And is said so."""
    assert WITHOUT_TEST == [(document, number) for document, number, where in ROWS if where == "-"]


@pytest.mark.parametrize(("document", "number", "where"), [row for row in ROWS if row[2] != "-"])
def test_its_test_carries_the_number(document: str, number: str, where: str) -> None:
    """Spelt 001-7 in words, or 001_7 in a name."""
    text = (ROOT / where.strip("`")).read_text(encoding="utf-8")

    assert re.search(rf"{document}[-_]{number}(?!\d)", text), f"{where} does not speak of {document}-{number}"
