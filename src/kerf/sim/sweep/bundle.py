"""The files of a run as one value: another process, or another machine, runs what was read here and nothing else.

Model values do not travel: some keep a hash, and another process has other hashes.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import kerf
from kerf.errors import InputError
from kerf.model.large import Large
from kerf.sim.objects import Json


@dataclass(frozen=True, repr=False)
class Bundle(Large):
    """Files by name, in order; names are relative to one folder, where files find each other again."""

    files: tuple[tuple[str, bytes], ...]

    @cached_property
    def digest(self) -> str:
        """Equal for equal names and bytes."""
        found = hashlib.sha256()
        for name, held in self.files:
            found.update(f"{name}\0{len(held)}\0".encode())
            found.update(held)
        return found.hexdigest()

    def unpack(self, folder: str) -> None:
        """Write all files under a folder."""
        for name, held in self.files:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(held)


def bundled(paths: Iterable[str]) -> tuple[Bundle, dict[str, str]]:
    """The files, those of directories too, and the name of each path. Raises InputError."""
    asked = {path: os.path.abspath(path) for path in paths}
    root = os.path.commonpath([os.path.dirname(path) for path in asked.values()])
    files: dict[str, bytes] = {}
    for path in asked.values():
        for each in _within(path):
            files[os.path.relpath(each, root)] = _bytes(each)
    return Bundle(tuple(sorted(files.items()))), {path: os.path.relpath(held, root) for path, held in asked.items()}


def files_of(spec: Json, directory: str) -> list[str]:
    """The files that the spec of a scenario names, where they are."""
    entries = [*(spec.get("objects") or ()), *_applied(spec.get("timeline") or ())]
    trace, catalog = spec.get("trace") or {}, (spec.get("cloud") or {}).get("catalog")
    names = [each for each in (*entries, trace.get("file")) if isinstance(each, str)]
    found = [os.path.join(directory, name) for name in names]
    if catalog is not None and os.path.exists(beside := os.path.join(directory, catalog)):
        found.append(beside)
    return found


def _applied(timeline: Sequence[Json]) -> Iterator[Any]:
    for entry in timeline:
        applied = entry.get("apply")
        yield from applied if isinstance(applied, list) else (applied,)


def _within(path: str) -> Iterator[str]:
    """A file, or the files of a directory."""
    if not os.path.isdir(path):
        yield path
        return
    for name in sorted(os.listdir(path)):
        each = os.path.join(path, name)
        if os.path.isfile(each):
            yield each


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: expected a file that can be read, got: {error.strerror}") from None


@cache
def code_digest() -> str:
    """Equal where Kerf's own code and data are: what they compute may be compared then."""
    found, root = hashlib.sha256(), Path(kerf.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(root)}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()
