"""Every command in README and docs is run, and its output is what the page shows.

`KERF_UPDATE=1` writes the outputs into the pages instead; the diff is then part of the review.
"""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest

from kerf.cli.main import run

ROOT = Path(__file__).parents[2]
PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "```console" in p.read_text()]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
SECONDS = re.compile(r"\d+\.\d\d$", re.MULTILINE)


def shown(command: str) -> str:
    """What a terminal shows: standard output and error, and the exit code where it is not 0."""
    name, *arguments = shlex.split(command)
    assert "kerf" == name, f"only kerf is run here, not {command}"
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.chdir(ROOT):
        code = run(arguments)
    # Seconds differ from run to run.
    text = SECONDS.sub("0.01", out.getvalue()) if "--strategies" in arguments else out.getvalue()
    return text + (f"[exit {code}]\n" if code else "")


def rendered(block: str) -> str:
    """The block with the output of its commands as it is now; `\\` at the end of a line goes on."""
    commands = [line for line in block.replace("\\\n", "\\\0").split("\n") if line.startswith("$ ")]
    return "\n".join(f"{c.replace(chr(0), chr(10))}\n{shown(c[2:].replace(chr(92) + chr(0), ' '))}" for c in commands)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    """Each console block, command by command."""
    text = page.read_text(encoding="utf-8")
    now = BLOCK.sub(lambda match: f"```console\n{rendered(match.group(1))}```", text)

    if os.environ.get("KERF_UPDATE"):
        page.write_text(now, encoding="utf-8")
    assert now == page.read_text(encoding="utf-8")


def test_the_two_commands_of_the_readme_exist() -> None:
    """`make demo` and `make test` are what a newcomer types first."""
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE))

    assert {"demo", "test"} <= named <= targets


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub links to them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def links() -> list[tuple[Path, str, str]]:
    """(page, path, anchor) of every relative link of the pages."""
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    found = re.compile(r"\]\((?!http)([^)#\s]*)#?([^)\s]*)\)")
    return [(page, path, anchor) for page in pages for path, anchor in found.findall(page.read_text(encoding="utf-8"))]


def test_every_relative_link_leads_somewhere() -> None:
    """Links between the pages, and from the README to files of the project."""
    assert [] == [(str(page), path) for page, path, _ in links() if path and not (page.parent / path).exists()]


def test_every_anchor_is_a_heading() -> None:
    """Of this page or of the one that the link leads to; a `#` before a name of lint's register is a heading too."""
    known: dict[Path, set[str]] = {}
    missing = []
    for page, path, anchor in links():
        target = (page.parent / path).resolve() if path else page
        if anchor and target.suffix == ".md" and target.exists():
            known.setdefault(target, anchors(target))
            if anchor not in known[target]:
                missing.append((str(page.relative_to(ROOT)), f"{path}#{anchor}"))

    assert [] == missing


def test_the_readme_leads_to_every_page() -> None:
    """By way of other pages, and in at most three steps."""
    reached: set[Path] = set()
    edge = {ROOT / "README.md"}
    by_page: dict[Path, set[Path]] = {}
    for page, path, _ in links():
        if path.endswith(".md"):
            by_page.setdefault(page.resolve(), set()).add((page.parent / path).resolve())
    for _ in range(3):
        edge = {each for page in edge for each in by_page.get(page, ())} - reached
        reached |= edge

    pages = {path.resolve() for path in (ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "design" / "000-template.md"}
    assert [] == sorted(str(path.relative_to(ROOT)) for path in pages - reached)


def test_the_readme_is_short() -> None:
    """One screen and a half, with a table of at most twelve rows."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.split("## Where to go on")[1].splitlines() if line.startswith("| ")]

    assert len(text.splitlines()) <= 75
    assert len(rows) - 1 <= 12
