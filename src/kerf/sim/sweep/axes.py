"""Reading a Sweep: the scenario that all runs share, and the axes along which they differ."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import product, starmap
from typing import Any

from kerf.config import settings_of, settings_table
from kerf.errors import ConfigError, DecodeError, DecodeErrors
from kerf.manifests.documents import Document
from kerf.manifests.karpenter.form import DISRUPTION
from kerf.manifests.read import read_documents
from kerf.manifests.schema import (
    ANYTHING,
    DURATION,
    FILLED,
    NAME,
    ListOf,
    MapOf,
    Path,
    Record,
    Report,
    Scalar,
    one_of,
    path_text,
    whole,
)
from kerf.model.large import Large
from kerf.model.times import duration_s
from kerf.sim.course.scenario import Scenario, read_scenario, source_of
from kerf.sim.course.scenario_form import API_VERSION, TRACE
from kerf.sim.objects import Json
from kerf.sim.sweep.bundle import Bundle, bundled, code_digest, files_of
from kerf.sim.sweep.cells import SweepCell, is_priced, settings_texts
from kerf.sim.traces.replay import read_replay

KIND = "Sweep"
_MOST_SEEDS = 10_000
_FACTOR = Scalar(
    "a number above 0 and at most 1000, such as 0.9",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1000,
)
_POLICY = Record({"name": NAME, "settings": MapOf(ANYTHING), "disruption": DISRUPTION}, ("name",))
_PRICE = Record(
    {"name": NAME, "factor": _FACTOR, "instanceType": FILLED, "capacityType": one_of("spot", "on-demand", "reserved")},
    ("name",),
)
SWEEP = Record(
    {
        "apiVersion": one_of(API_VERSION),
        "kind": one_of(KIND),
        "metadata": Record({"name": NAME}, ("name",)),
        "spec": Record(
            {
                "scenario": FILLED,
                "duration": DURATION,
                "policies": ListOf(_POLICY),
                "traces": ListOf(Record({"name": NAME, **TRACE}, ("name", "file"))),
                "seeds": ListOf(whole(0)),
                "prices": ListOf(_PRICE),
            },
            ("scenario",),
        ),
    },
    ("apiVersion", "kind", "metadata", "spec"),
)
"""The whole document."""


@dataclass(frozen=True, repr=False)
class Sweep(Large):
    """All runs, by policy, trace, price and seed in the order of the axes."""

    name: str
    cells: tuple[SweepCell, ...]


def read_sweep(path: str) -> Sweep:
    """The sweep in a file, with the files that it and its scenario name; every one is read once, and so checked.

    Raises InputError: DecodeErrors with all that is wrong in the file, each with its place.
    """
    read = read_documents([path], StringIO())
    if read.errors:
        raise DecodeErrors(read.errors)
    documents = list(read)
    if len(documents) != 1 or not documents[0].may_be(KIND):
        raise DecodeError("kind", f"one document of kind {KIND}", len(documents), place=f"{path}:1:1")
    return _Reading(documents[0], os.path.dirname(path)).sweep()


class _Reading:
    """One document on its way."""

    def __init__(self, document: Document, directory: str) -> None:
        self._document, self._directory = document, directory
        self._errors: list[DecodeError] = []

    def sweep(self) -> Sweep:
        raw = self._document.value()
        self._check(raw)
        spec = raw["spec"]
        path = os.path.join(self._directory, spec["scenario"])
        scenario = read_scenario(path)
        self._check_prices(scenario, spec)
        traces: list[Json | None] = list(spec.get("traces") or ()) or [None]
        for trace in traces:
            if trace is not None:
                read_replay(source_of(trace, self._directory))
        bundle, names = self._bundle(path, [trace for trace in traces if trace is not None])
        seeds = spec.get("seeds") or [scenario.seed]
        duration = duration_s(spec["duration"]) if spec.get("duration") else None
        cells = tuple(
            SweepCell(bundle, code_digest(), names[path], policy, self._named(trace, names), seed, price, duration)
            for policy, trace, price, seed in product(
                spec.get("policies") or [{"name": "default"}], traces, spec.get("prices") or [{"name": "list"}], seeds
            )
        )
        return Sweep(raw["metadata"]["name"], cells)

    def _named(self, trace: Json | None, names: dict[str, str]) -> Json | None:
        """The trace with the name of its file in the bundle."""
        return None if trace is None else {**trace, "file": names[os.path.join(self._directory, trace["file"])]}

    def _bundle(self, path: str, traces: Sequence[Json]) -> tuple[Bundle, dict[str, str]]:
        own = next(d for d in read_documents([path], StringIO()) if d.may_be("Scenario")).value()["spec"]
        held = files_of(own, os.path.dirname(path))
        return bundled([path, *held, *(os.path.join(self._directory, trace["file"]) for trace in traces)])

    def _check(self, raw: Any) -> None:
        report = Report()
        SWEEP.check(raw, (), report)
        for problem in report.problems:
            self._error(problem.path, problem.expected, problem.got, problem.hint)
        for unknown in report.unknown:
            hint = f"is `{unknown.nearest}` meant?" if unknown.nearest else ""
            self._error(unknown.path[:-1], "a known field", str(unknown.path[-1]), hint)
        self._raise()
        spec = raw["spec"]
        for axis in ("policies", "traces", "prices"):
            self._check_names(axis, spec.get(axis) or ())
        if len(set(spec.get("seeds") or ())) < len(spec.get("seeds") or ()):
            self._error(("spec", "seeds"), "each seed once", str(spec["seeds"]))
        for number, policy in enumerate(spec.get("policies") or ()):
            self._check_policy(policy, ("spec", "policies", number))
        self._raise()

    def _check_prices(self, scenario: Scenario, spec: Json) -> None:
        """What the catalogue alone can say: whether a price is of anything."""
        offerings = [(kind.name, each.capacity_type) for kind in scenario.market.types for each in kind.offerings]
        for number, price in enumerate(spec.get("prices") or ()):
            stated = " ".join(str(price[name]) for name in ("instanceType", "capacityType") if price.get(name))
            if stated and price.get("factor") is None:
                self._error(("spec", "prices", number, "factor"), _FACTOR.expected, None)
            elif stated and not any(starmap(partial(is_priced, price), offerings)):
                self._error(("spec", "prices", number), "offerings that the catalogue has", f"<none of {stated}>")
        self._raise()

    def _check_names(self, axis: str, values: Sequence[Json]) -> None:
        seen: set[str] = set()
        for number, value in enumerate(values):
            if value["name"] in seen:
                self._error(("spec", axis, number, "name"), "a name of its own", value["name"])
            seen.add(value["name"])

    def _check_policy(self, policy: Json, path: Path) -> None:
        known = {setting.key: setting.field for setting in settings_table()}
        for key in policy.get("settings") or {}:
            if key not in known:
                self._error((*path, "settings"), f"settings of kerf run ({', '.join(known)})", key)
                return
        try:
            settings_of(settings_texts(policy))
        except ConfigError as error:
            self._error((*path, "settings"), "settings as kerf run takes them", f"<{error}>")

    def _error(self, path: Path, expected: str, got: object, hint: str = "") -> None:
        place = self._document.place(path)
        self._errors.append(DecodeError(path_text(path), expected, got, place=place, hint=hint))

    def _raise(self) -> None:
        if self._errors:
            raise DecodeErrors(list(self._errors))
