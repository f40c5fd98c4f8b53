"""A cluster in one file: when it was taken, and what a decision rests on besides the objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kerf.model.market import NOTHING_WITHHELD, Withheld
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES

DUMP = "ClusterDump"
DUMP_VERSION = "kerf.dev/v1alpha1"
MOST_DECISIONS = 20
"""Decisions that a leader keeps, and a dump of it has."""
MOST_NAMED, MOST_LETTERS = 50, 120
"""Launches and deletions of one decision, of more only the number is kept; and characters of each text in it."""


@dataclass(frozen=True, slots=True)
class CatalogueSource:
    """Where the prices of a dump come from.

    `name` and `region` are those of `--catalog` and `--region`, empty where the NodePools decide. `text` holds a
    catalogue file whole, so the dump needs no second file. `digest` is of all types, offerings and prices.
    """

    name: str = ""
    region: str = ""
    text: str = ""
    digest: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterDump:
    """The header of a dump.

    `taken_at_s` is None where neither a clock nor the input stated an instant. `place` says what was read, `cluster` or
    `input`, and `namespace` is where a name without one is looked for. `missing` says what could not be had, one line
    each; then the market has no refusals in it, which is not the same as none. `decisions` are the leader's last ones.
    ConfigMaps say how GPUs are shared in `plugin_namespaces` alone.
    """

    taken_at_s: float | None = None
    version: str = ""
    place: str = "cluster"
    namespace: str = "default"
    is_full: bool = False
    strategy: str = "cost"
    follow: str = "auto"
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    plugin_namespaces: tuple[str, ...] = PLUGIN_NAMESPACES
    catalogue: CatalogueSource = CatalogueSource()
    withheld: Withheld = NOTHING_WITHHELD
    decisions: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    missing: tuple[str, ...] = ()
