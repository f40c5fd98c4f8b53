"""Reading a Scenario: what is in the cluster, what happens to it, and what should come of it.

A scenario is written by hand and run unattended, so a slip in it must not pass for a result: every unknown field,
action, object and pool is an error with its place, while manifests are read as leniently as `kerf plan` reads them.
The objects are put into an order of their own, so that the order of files and documents changes nothing.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from typing import Any

from kerf.catalog.select import load_market, provider_of
from kerf.errors import DecodeError, DecodeErrors, InputError
from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded
from kerf.manifests.documents import Document
from kerf.manifests.read import Documents, read_documents
from kerf.manifests.schema import Path, Report, path_text
from kerf.manifests.times import duration_s, instant_s
from kerf.model.market import Market
from kerf.sim.objects import Json, is_cluster_wide
from kerf.sim.scenario_form import ACTIONS, EXPECTATIONS, SCENARIO, action_of, expected_of
from kerf.sim.steps import (
    Apply,
    Delete,
    Expectation,
    Fault,
    Interrupt,
    NodesExpected,
    Price,
    Scale,
    Step,
    StockOut,
)

DEFAULT_START = "2026-01-05T07:00:00Z"

# Created in this order, because a later kind may depend on an earlier one being there.
_KIND_ORDER = (
    "Namespace",
    "PriorityClass",
    "LimitRange",
    "ResourceQuota",
    "ConfigMap",
    "NodeOverlay",
    "NodePool",
    "NodeClaim",
    "Node",
    "PodDisruptionBudget",
    "DaemonSet",
)


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """What the cloud sells and how long everything takes, in seconds; see docs/reference/scenario.md."""

    provider: str = ""
    region: str | None = None
    catalog: str | None = None
    launch_s: int = 40
    register_s: int = 35
    ready_s: int = 5
    devices_ready_s: int = 50
    terminate_s: int = 5
    jitter_s: int = 0


@dataclass(frozen=True)
class Scenario:
    """A scenario that can be run. `timeline` and `expectations` are in time order; `warnings` are for the operator."""

    name: str
    start_s: float
    duration_s: int
    seed: int
    cloud: CloudSettings
    market: Market
    objects: tuple[Json, ...]
    timeline: tuple[Step, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Inline:
    """A document inside another one."""

    parent: Document
    path: Path

    def value(self) -> Any:
        value = self.parent.value()
        for step in self.path:
            value = value[step]
        return value

    def place(self, path: Path = (), *, at_key: bool = False) -> str:
        return self.parent.place((*self.path, *path), at_key=at_key)

    def written(self, path: Path) -> str:
        return self.parent.written((*self.path, *path))

    def may_be(self, kind: str) -> bool:
        return self.value().get("kind") == kind

    @property
    def source(self) -> str:
        return self.place()
