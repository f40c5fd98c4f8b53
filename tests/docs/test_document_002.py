"""The page that goes through document 002 keeps its word: each line stands there, with a test that bears its number."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "002-line-by-line.md"
ROWS = re.findall(r"^\| 002-(\d+) \|.*\| `(\S+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_line_stands_there_once() -> None:
    """In order."""
    assert [str(number) for number in range(1, 13)] == [number for number, _ in ROWS]


@pytest.mark.parametrize(("number", "where"), ROWS)
def test_its_test_carries_the_number(number: str, where: str) -> None:
    """Spelt 002-7 in words, or 002_7 in a name."""
    text = (ROOT / where).read_text(encoding="utf-8")

    assert re.search(rf"002[-_]{number}(?!\d)", text), f"{where} does not speak of 002-{number}"
