"""Writes docs/design/modules.md: every module by the first line of its docstring, room by room."""

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/design/modules.md"
_SOURCE = ROOT / "src" / "kerf"
_HEAD = """# Modules

Each module by its first line. [Architecture](architecture.md) says what the rooms are and what may import what.
`make generated` writes this page.
"""


def _modules() -> Iterator[tuple[str, Path]]:
    """The room of each module, empty for the top, and its file; in order of both."""
    found = (path for path in _SOURCE.rglob("*.py") if path.name != "__init__.py")
    yield from sorted((path.parent.relative_to(_SOURCE).as_posix().removeprefix("."), path) for path in found)


def _first_line(path: Path) -> str:
    """The first sentence, of as many lines as it takes."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for room, modules in groupby(_modules(), key=lambda each: each[0]):
        rows = [f"| `{path.stem}` | {_first_line(path)} |" for _, path in modules]
        parts.append("\n".join([f"## {room or 'kerf'}\n", "| module | is |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (ROOT / PAGE).write_text(page(), encoding="utf-8")
    print(PAGE)
