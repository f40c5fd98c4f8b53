"""The page that goes through document 001 keeps its word: each line stands there, with a test that bears its number."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "001-line-by-line.md"
ROW = re.compile(r"^\| 001-(\d+) \|.*\| (\S+) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
REFUSED = ["20"]


def test_every_line_stands_there_once() -> None:
    """In order; what is not in Kerf is said so."""
    assert [str(number) for number in range(1, 31)] == [number for number, _ in ROWS]
    assert REFUSED == [number for number, where in ROWS if where == "-"]


@pytest.mark.parametrize(("number", "where"), [row for row in ROWS if row[1] != "-"])
def test_its_test_carries_the_number(number: str, where: str) -> None:
    """Spelt 001-7 in words, or 001_7 in a name."""
    text = (ROOT / where.strip("`")).read_text(encoding="utf-8")

    assert re.search(rf"001[-_]{number}(?!\d)", text), f"{where} does not speak of 001-{number}"
