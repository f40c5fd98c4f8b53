"""The page of constraints names tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "what-kerf-checks.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w./-]+)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part.rpartition("/")[2])
def test_a_named_test_is_there(path: str, name: str) -> None:
    """The file, and the function where one is named."""
    text = (ROOT / path).read_text(encoding="utf-8")

    assert not name or f"def {name}(" in text


def test_every_constraint_has_a_test() -> None:
    """The last cell of each row."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| asked")]

    assert rows
    assert [] == [row for row in rows if not re.search(r"`tests/[^`]+` \|$", row)]
