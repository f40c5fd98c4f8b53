"""Results in a folder, one file for each run, named by the digest of all that went into it.

A sweep that was interrupted goes on where it was, and one with a further value on an axis runs what is new. A file is
there whole or not at all: it is written beside and then takes its name.
"""

import json
import os
from pathlib import Path

from kerf.errors import InputError
from kerf.sim.objects import Json
from kerf.sim.sweep.cells import FORM, SweepCell


class Results:
    """Those of one folder, which is made when the first result is kept."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def of(self, cell: SweepCell) -> Json | None:
        """The result; None where there is none that can be read."""
        try:
            held = json.loads(self._path(cell).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return held if isinstance(held, dict) and held.get("form") == FORM else None

    def keep(self, cell: SweepCell, result: Json) -> None:
        """Write it. Raises InputError for a folder that cannot be written to."""
        path = self._path(cell)
        beside = path.with_suffix(f".{os.getpid()}.part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            beside.replace(path)
        except OSError as error:
            text = f"expected a folder that can be written to, got: {error.strerror}"
            raise InputError(f"--results {self._folder}: {text}") from None

    def _path(self, cell: SweepCell) -> Path:
        return self._folder / f"{cell.digest}.json"
