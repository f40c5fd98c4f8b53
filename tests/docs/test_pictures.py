"""The pictures of the pages are what the program draws."""

import pytest

from tests.docs.test_documents_run import ROOT
from tools.pictures import FOLDER, pictures

DRAWN = pictures()


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_what_the_program_draws(name: str) -> None:
    """`python -m tools.pictures` draws them again."""
    assert DRAWN[name] == (ROOT / FOLDER / name).read_text(encoding="utf-8")


def test_every_picture_is_drawn_and_shown() -> None:
    """No file without a command, and none without a page."""
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))

    assert set(DRAWN) == {path.name for path in (ROOT / FOLDER).iterdir()}
    assert [] == [name for name in DRAWN if f"pictures/{name})" not in pages]
