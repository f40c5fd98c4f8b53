"""The data files beside this module: what exporters export, which labels exist, which settings never did.

Each file says in its `meta` where its rows come from and of when they are.
"""

from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec

_File = TypeVar("_File")


def _read(name: str, form: type[_File]) -> _File:
    return msgspec.json.decode((files("kerf.lint") / "data" / name).read_bytes(), type=form)


class _Keys(msgspec.Struct, frozen=True):
    keys: dict[str, str]


@cache
def keys_that_never_existed() -> dict[str, str]:
    """What to use instead, by key."""
    return _read("keys.json", _Keys).keys


class Labels(msgspec.Struct, frozen=True):
    """Labels of nodes.

    `domains` are those whose names are all known, with the names; `never` has what to say instead of keys that no node
    has.
    """

    domains: dict[str, tuple[str, ...]]
    never: dict[str, str]

    @property
    def known(self) -> list[str]:
        """Every known key."""
        return [f"{domain}/{name}" for domain, names in self.domains.items() for name in names]


@cache
def labels() -> Labels:
    """Labels of nodes."""
    return _read("labels.json", Labels)


class Exporter(msgspec.Struct, frozen=True):
    """What one exporter exports. `metrics` has kinds by name: gauge, counter, histogram, summary, info."""

    name: str
    source: str
    metrics: dict[str, str]


class Exporters(msgspec.Struct, frozen=True):
    """`closed` are beginnings of names that only these exporters use, so another name has no exporter."""

    closed: tuple[str, ...]
    instead: dict[str, str]
    exporters: tuple[Exporter, ...]

    @property
    def metrics(self) -> dict[str, str]:
        """Kinds of all metrics by name."""
        return {name: kind for exporter in self.exporters for name, kind in exporter.metrics.items()}


@cache
def exporters() -> Exporters:
    """Exporters of metrics on GPUs and nodes."""
    return _read("metrics.json", Exporters)
