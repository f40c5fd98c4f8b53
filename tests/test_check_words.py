"""The word list: a count that rises fails, and so does a number that allows more than there is."""

from pathlib import Path

import pytest

from tools import check_words

RULES = """# kept as it is
[rules]
told = { most = MOST, words = ["told"], write = "reported" }

so-that = { most = 0, words = [", so that"], write = ", so" }
"""


def made(root: Path, most: int) -> Path:
    """A tree with `told` in code, a page and the name of a test: three times; returns the file of its rules."""
    for path, text in {
        "src/room.py": "was_told = 1  # untold\n",
        "docs/page.md": "Told once.\n",
        "tests/test_room.py": "def test_what_is_told() -> None:\n    told = 1\n",
        "CHANGELOG.md": "told long ago\n",
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    file = root / "words.toml"
    file.write_text(RULES.replace("MOST", str(most)), encoding="utf-8")
    return file


def checked(root: Path, most: int, *arguments: str) -> int:
    """The exit code for the made-up tree."""
    return check_words.main(arguments, root, made(root, most))


def test_a_count_as_it_was_is_fine(tmp_path: Path) -> None:
    """Neither more nor less than its number."""
    assert 0 == checked(tmp_path, 3)


def test_a_count_that_rises_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One place more than allowed; the line says what to write instead."""
    assert 1 == checked(tmp_path, 2)
    assert capsys.readouterr().err.startswith("told: 3 places, at most 2: write reported ")


def test_a_number_above_the_count_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one change has saved is not there for the next to use up; the line has the command that lowers it."""
    assert 1 == checked(tmp_path, 4)
    assert "told: 3 places, 4 allowed: lower it (python tools/check_words.py --write)\n" == capsys.readouterr().err


def test_writing_lowers_a_number(tmp_path: Path) -> None:
    """To the count; all else in the file stays as it is."""
    assert 0 == checked(tmp_path, 4, "--write")
    assert RULES.replace("MOST", "3") == (tmp_path / "words.toml").read_text(encoding="utf-8")


def test_writing_never_raises_a_number(tmp_path: Path) -> None:
    """A count that has risen is a mistake to correct."""
    assert 1 == checked(tmp_path, 2, "--write")
    assert RULES.replace("MOST", "2") == (tmp_path / "words.toml").read_text(encoding="utf-8")


def test_the_places_of_a_rule_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names are read as words, tests by their names alone, and a longer word is another one."""
    assert 0 == checked(tmp_path, 0, "told")
    assert ["src/room.py:1: told", "docs/page.md:1: Told", "tests/test_room.py:1: told"] == (
        capsys.readouterr().out.splitlines()
    )


@pytest.mark.parametrize("text", ["a, so that b", "a, so\n    that b", "# a, so\n# that b"])
def test_words_that_are_wrapped_count(text: str) -> None:
    """A line break, with the mark of a comment or without, is no way around the list."""
    rule = check_words.rules_of(RULES.replace("MOST", "0"))[1]

    assert 1 == len(list(check_words.places(rule, {"src/room.py": text})))
