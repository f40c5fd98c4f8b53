"""What CONTRIBUTING asks of a change that no program would miss: fragments of the changelog, and design notes."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.test_documents_run import ROOT

FRAGMENTS = sorted(path for path in (ROOT / "changelog.d").iterdir() if not path.name.startswith((".", "template.")))
NOTES = sorted((ROOT / "docs" / "design").glob("[0-9]*.md"))
KINDS = {
    each["directory"]
    for each in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]["type"]
}
NAME = re.compile(r"(?:[0-9]{3}|[a-z0-9]+(?:-[a-z0-9]+)*)\.([a-z]+)\.md")
SECTIONS = ["What", "Why", "Not", "Instead", "Held by"]
MOST_LETTERS = 600


def problem(name: str, text: str) -> str:
    """What is wrong with a fragment; empty when nothing is."""
    found = NAME.fullmatch(name)
    if found is None or found[1] not in KINDS:
        return f"expected NNN.KIND.md or slug.KIND.md with a KIND of {', '.join(sorted(KINDS))}"
    if text != text.strip() + "\n" or "\n\n" in text or text.startswith(("-", "*", "#")):
        return "expected one paragraph without a bullet, and one line end"
    if len(text) > MOST_LETTERS or not text.rstrip().endswith((".", ")")):
        return f"expected whole sentences of at most {MOST_LETTERS} letters"
    return ""


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: str(path.name))
def test_a_fragment_is_well_formed(path: Path) -> None:
    """Of each file in changelog.d."""
    assert "" == problem(path.name, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name, text",
    [
        ("snapshot.md", "A sentence.\n"),
        ("snapshot.news.md", "A sentence.\n"),
        ("Snap Shot.fix.md", "A sentence.\n"),
        ("a.fix.md", "- A sentence.\n"),
        ("a.fix.md", "One.\n\nTwo.\n"),
        ("a.fix.md", "no sentence\n"),
        ("a.fix.md", "A sentence."),
        ("a.fix.md", "x" * MOST_LETTERS + ".\n"),
    ],
)
def test_a_fragment_of_another_form_is_found(name: str, text: str) -> None:
    """Its name, its kind, its bullets, its length."""
    assert problem(name, text).startswith("expected ")


def test_every_fragment_is_in_the_next_release() -> None:
    """Towncrier takes each of them, under the heading of its kind."""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9", "--date", "2026-01-01"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    assert done.stdout.startswith("## 9 (2026-01-01)\n")
    texts = [path.read_text(encoding="utf-8").strip() for path in FRAGMENTS]
    assert [] == [text for text in texts if f"- {text}\n" not in done.stdout]


@pytest.mark.parametrize("path", NOTES, ids=lambda path: str(path.name))
def test_a_design_note_says_what_it_leaves_out(path: Path) -> None:
    """Sections as in the template, a status, and a number that no other has."""
    text, number = path.read_text(encoding="utf-8"), path.name[:3]

    assert re.fullmatch(r"[0-9]{3}-[a-z0-9-]+\.md", path.name)
    assert SECTIONS == re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [path] == [each for each in NOTES if each.name.startswith(number)]
    assert number == "000" or text.startswith(f"# {number}: ")
    assert "\nStatus: " in text
