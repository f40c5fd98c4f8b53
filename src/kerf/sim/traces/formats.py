"""Which formats there are, and which one a file has: its header says."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from kerf.errors import InputError, brief
from kerf.sim.traces import dlrm, genai, openb
from kerf.sim.traces.names import FORMATS
from kerf.sim.traces.rows import Table
from kerf.sim.traces.timedpods import PodForms, TimedPod

_MODULES: dict[str, ModuleType] = {module.NAME: module for module in (openb, dlrm, genai)}
_NO_NAME = re.compile(r"[^a-z0-9]+", re.ASCII)
_MOST_NAME = 200


def read_pods(path: str, format_: str | None, sharing: str, notes: dict[str, int]) -> Iterator[TimedPod]:
    """The pods of a file, row by row, each name once.

    `notes` counts what the format has no counterpart for. Raises InputError for a file that cannot be read, and
    DecodeError with file and line for what is wrong in it.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            table = Table(path, file)
            module = _MODULES[format_ or _recognised(table)]
            _check_columns(table, module)
            yield from _named_once(table, module.pods(table, PodForms(sharing), notes))
    except OSError as error:
        raise InputError(f"--trace {path}: expected a CSV file that can be read, got: {error.strerror}") from None


def _recognised(table: Table) -> str:
    there = set(table.header)
    best = max(FORMATS, key=lambda name: len(there.intersection(_MODULES[name].COLUMNS)))
    if not there.intersection(_MODULES[best].COLUMNS):
        known = "; ".join(f"{name}: {','.join(module.COLUMNS)}" for name, module in _MODULES.items())
        raise InputError(f"{table.path}:1: expected the header of a trace that is known ({known}), got {_shown(table)}")
    return best


def _check_columns(table: Table, module: ModuleType) -> None:
    missing = [name for name in module.COLUMNS if name not in table.header]
    if missing:
        hints = [module.HINTS[name] for name in missing if name in module.HINTS]
        hint = f" (hint: {hints[0]})" if hints else ""
        expected = f"the columns of {module.NAME}, with {', '.join(missing)}"
        raise InputError(f"{table.path}:1: expected {expected}, got {_shown(table)}{hint}")


def _shown(table: Table) -> str:
    text = ",".join(table.header)
    return text[:200] or "an empty file"


def _named_once(table: Table, pods: Iterator[TimedPod]) -> Iterator[TimedPod]:
    seen: set[str] = set()
    for pod in pods:
        name = _NO_NAME.sub("-", pod.name.lower()).strip("-")[:_MOST_NAME].strip("-")
        if not name:
            raise InputError(f"{table.place}: expected a name with letters or digits of ASCII, got {brief(pod.name)}")
        if name in seen:
            expected = "a name of its own for each pod, in small letters and with - for signs"
            raise InputError(f"{table.place}: expected {expected}, got {brief(name)} a second time")
        seen.add(name)
        yield pod._replace(name=name)
