"""Writes docs/reference/kerf.1, the manual page, which the wheel installs."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/reference/kerf.1"


def generated() -> str:
    """The page as the program prints it, whatever the environment says."""
    from kerf.cli.manpage import page

    return page()


if __name__ == "__main__":
    for name in [each for each in os.environ if each.startswith("KERF_")]:
        del os.environ[name]
    (ROOT / PAGE).write_text(generated(), encoding="utf-8")
    print(PAGE)
