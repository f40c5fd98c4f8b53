"""Reading a Scenario: what is in the cluster, what happens to it, and what should come of it.

A scenario is written by hand and run unattended, so a slip in it must not pass for a result: every unknown field,
action, object and pool is an error with its place, while manifests are read as leniently as `kerf plan` reads them.
The objects are put into an order of their own, so the order of files and documents changes nothing.
"""

import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import StringIO
from typing import Any

from kerf.catalog.select import load_market, provider_of
from kerf.config import Settings, settings_of
from kerf.errors import DecodeError, DecodeErrors, InputError
from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded
from kerf.manifests.documents import Document
from kerf.manifests.read import Documents, read_documents
from kerf.manifests.schema import Path, Report, path_text
from kerf.model.market import Market
from kerf.model.times import duration_s, instant_s
from kerf.sim.course.scenario_form import APPLY, KIND, SCENARIO, action_of, expected_of, scoring_of
from kerf.sim.course.steps import (
    Action,
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
from kerf.sim.kubernetes.scoring import ScoringStrategy
from kerf.sim.objects import Json, is_cluster_wide
from kerf.sim.traces.replay import Replay, TraceSource, read_replay
from kerf.sim.traces.timedpods import HAMI

DEFAULT_START = "2026-01-05T07:00:00Z"

_LEAST_BOUND_EVERY_S, _MOST_BOUND_EVERY_S = 60, 3600
_BOUNDS_OF_A_RUN = 200
"""How often the re-pack bound is taken in a run for which that is not said: each time is a packing of all its pods."""

# Created in this order, because a later kind may depend on an earlier one being there.
_KIND_ORDER = (
    "Namespace",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "LimitRange",
    "ResourceQuota",
    "ConfigMap",
    "ClusterPolicy",
    "NodeClass",
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
    """A scenario that can be run. `timeline` and `expectations` are in time order; `warnings` are for the operator.

    `settings` are those that the controllers start with, and `replay` are pods of a trace that come and end, whose
    re-pack bound is taken every `bound_every_s` (0: not at all; None: by the duration). `scoring` is how the schedulers
    of the cluster score what a pod leaves of a node.
    """

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
    settings: Settings = field(default_factory=Settings)
    replay: Replay | None = None
    bound_every_s: int | None = 0
    scoring: ScoringStrategy = field(default_factory=ScoringStrategy)

    @property
    def bound_interval_s(self) -> int:
        """How often the bound is taken, 0 for not at all: in whole minutes where nothing says how often."""
        if self.bound_every_s is not None:
            return self.bound_every_s
        minutes = -(-self.duration_s // (60 * _BOUNDS_OF_A_RUN))
        return min(max(60 * minutes, _LEAST_BOUND_EVERY_S), _MOST_BOUND_EVERY_S)


@dataclass(frozen=True)
class _Inline:
    """A document inside another one."""

    parent: Document
    path: Path
    held: Json

    def value(self) -> Any:
        """See Document."""
        return self.held

    def place(self, path: Path = (), *, at_key: bool = False) -> str:
        """See Document."""
        return self.parent.place((*self.path, *path), at_key=at_key)

    def near(self, path: Path = ()) -> str:
        """See Document."""
        return self.parent.near((*self.path, *path))

    def written(self, path: Path) -> str:
        """See Document."""
        return self.parent.written((*self.path, *path))

    def may_be(self, kind: str) -> bool:
        """See Document."""
        return bool(self.held.get("kind") == kind)

    @property
    def source(self) -> str:
        """See Document."""
        return self.place()


def _settings(raw: Json) -> Settings:
    """The settings of the controllers, of which a scenario may state a few."""
    names = {
        "preference_policy": "preferencePolicy",
        "min_values_policy": "minValuesPolicy",
        "default_spread": "defaultSpread",
        "spot_to_spot_consolidation": "spotToSpotConsolidation",
        "node_repair": "nodeRepair",
    }
    return settings_of({field: raw[name] for field, name in names.items() if raw.get(name)})


def source_of(raw: Json, directory: str) -> TraceSource:
    """What `spec.trace` says, of a checked scenario; its file is beside the scenario."""
    return TraceSource(
        os.path.join(directory, raw["file"]),
        raw.get("format"),
        raw.get("copies") or 1,
        duration_s(raw.get("skip") or "0s") or 0,
        duration_s(raw["span"]) if raw.get("span") else None,
        duration_s(raw["longest"]) if raw.get("longest") else None,
        raw.get("sharing") or HAMI,
        duration_s(raw["restart"]) if raw.get("restart") else None,
    )


def read_scenario(path: str) -> Scenario:
    """The scenario in a file, with the files beside it that it names.

    Raises InputError: DecodeErrors with all that is wrong in it, each with its place.
    """
    documents = read_documents([path], StringIO())
    if documents.errors:
        raise DecodeErrors(documents.errors)
    scenarios = [document for document in documents if document.may_be(KIND)]
    if len(scenarios) != 1:
        got = scenarios[1].place() if scenarios else "<none>"
        raise DecodeError("kind", "one document of kind Scenario", got, place=f"{path}:1:1")
    others = tuple(document for document in documents if document is not scenarios[0])
    return _Reading(scenarios[0], os.path.dirname(path)).scenario(others)


class _Reading:
    """One scenario document on its way to a Scenario; `errors` are what is wrong with it so far."""

    def __init__(self, document: Document, directory: str) -> None:
        self._document, self._directory = document, directory
        self._errors: list[InputError] = []
        self._raw: Json = {}
        self._names: set[tuple[str, str, str]] = set()
        self._market: Market | None = None

    def scenario(self, others: Sequence[Document]) -> Scenario:
        """The value. Raises DecodeErrors."""
        self._raw = self._document.value()
        self._check_form()
        spec = self._raw["spec"]
        initial = Documents((*others, *self._documents(spec.get("objects") or [], ("spec", "objects"))))
        decoded = self._decoded(initial)
        steps = [self._step(index, raw) for index, raw in enumerate(spec.get("timeline") or ())]
        self._raise()
        cloud = self._cloud(spec.get("cloud") or {}, decoded)
        market = self._market = load_market(cloud.catalog, cloud.provider, cloud.region)
        expectations = [self._expectation(index, raw) for index, raw in enumerate(spec.get("expect") or ())]
        self._check_references(steps, expectations)
        self._raise()
        return Scenario(
            name=self._raw["metadata"]["name"],
            start_s=instant_s(spec.get("start") or DEFAULT_START),
            duration_s=duration_s(spec["duration"]) or 0,
            seed=spec.get("seed") or 0,
            cloud=cloud,
            market=market,
            objects=_ordered((document.value() for document in initial), decoded.skipped_kinds),
            timeline=tuple(sorted(steps, key=lambda step: step.at_s)),
            expectations=tuple(sorted(expectations, key=lambda e: e.at_s)),
            warnings=(*decoded.warnings, *_skipped(decoded)),
            settings=_settings(spec.get("settings") or {}),
            scoring=scoring_of((spec.get("scheduler") or {}).get("scoringStrategy") or {}),
            **self._replay(spec),
        )

    def _replay(self, spec: Json) -> dict[str, Any]:
        """The trace, and how often the bound is taken."""
        raw = spec.get("trace")
        if not raw:
            return {}
        replay = read_replay(source_of(raw, self._directory))
        every_s = (duration_s(raw["boundEvery"]) or 0) if raw.get("boundEvery") else None
        return {"replay": replay, "bound_every_s": every_s}

    # Form.

    def _check_form(self) -> None:
        report = Report()
        SCENARIO.check(self._raw, (), report)
        for problem in report.problems:
            self._error(problem.path, problem.expected, problem.got, problem.hint)
        for unknown in report.unknown:
            hint = f"is `{unknown.nearest}` meant?" if unknown.nearest else ""
            self._error(unknown.path[:-1], "a known field", str(unknown.path[-1]), hint, at=unknown.path)
        self._raise()
        self._check_times()

    def _check_times(self) -> None:
        spec = self._raw["spec"]
        for part in ("timeline", "expect"):
            for index, entry in enumerate(spec.get(part) or ()):
                if (duration_s(entry["at"]) or 0) > (duration_s(spec["duration"]) or 0):
                    expected = f"a time within the duration of {spec['duration']}"
                    self._error(("spec", part, index, "at"), expected, entry["at"])

    def _error(self, path: Path, expected: str, got: object, hint: str = "", *, at: Path | None = None) -> None:
        place = self._document.place(path) if at is None else self._document.place(at, at_key=True)
        self._errors.append(DecodeError(path_text(path), expected, got, place=place, hint=hint))

    def _raise(self) -> None:
        if self._errors:
            raise DecodeErrors(self._errors)

    # Objects.

    def _documents(self, entries: Sequence[Any], path: Path) -> list[Document]:
        found: list[Document] = []
        for index, entry in enumerate(entries):
            found += self._documents_of(entry, (*path, index))
        return found

    def _documents_of(self, entry: Any, path: Path) -> list[Document]:
        """The documents of one entry: a file beside the scenario, or an object, perhaps a List."""
        if isinstance(entry, str):
            return self._file(entry, path)
        if not isinstance(entry, dict):
            self._error(path, "the name of a file beside the scenario, or an object", entry)
            return []
        items = entry.get("items")
        if str(entry.get("kind", "")).endswith("List") and isinstance(items, list):
            return self._documents(items, (*path, "items"))
        return [_Inline(self._document, path, entry)]

    def _file(self, name: str, path: Path) -> list[Document]:
        read = read_documents([os.path.join(self._directory, name)], StringIO())
        for error in read.errors:
            if isinstance(error, DecodeError):
                self._errors.append(error)
            else:
                self._error(path, "a file beside the scenario", name, str(error))
        return list(read)

    def _decoded(self, documents: Documents) -> Decoded:
        try:
            decoded = decode(documents, instant_s(self._raw["spec"].get("start") or DEFAULT_START))
        except DecodeErrors as errors:
            self._errors += errors.errors
            return Decoded()
        if decoded.left_out:
            self._errors += decoded.left_out
            return Decoded()
        self._names.update(_key(document.value()) for document in documents)
        for pod in (*decoded.pods, *(workload.template for workload in decoded.workloads)):
            if pod.invalid is not None:
                hint = f" (hint: {pod.invalid.hint})" if pod.invalid.hint else ""
                self._errors.append(InputError(f"{pod.invalid.place or pod.source}: {pod.invalid}{hint}"))
        return decoded

    # Steps and expectations.

    def _step(self, index: int, raw: Json) -> Step:
        path: Path = ("spec", "timeline", index)
        action = action_of(raw)
        if action is None:
            path = (*path, APPLY)
            applied = raw[APPLY]
            listed = isinstance(applied, list)
            found = self._documents(applied, path) if listed else self._documents_of(applied, path)
            decoded = self._decoded(Documents(tuple(found)))
            values = () if self._errors else (document.value() for document in found)
            action = Apply(_ordered(values, decoded.skipped_kinds))
        else:
            path = (*path, next(name for name in raw if name != "at" and raw[name] is not None))
        return Step(duration_s(raw["at"]) or 0, action, self._document.place(path), path_text(path))

    def _expectation(self, index: int, raw: Json) -> Expectation:
        written = {name: value for name, value in raw.items() if name != "at" and value is not None}
        place = self._document.place(("spec", "expect", index))
        return Expectation(duration_s(raw["at"]) or 0, expected_of(raw), written, place)

    def _cloud(self, raw: Json, decoded: Decoded) -> CloudSettings:
        catalog = raw.get("catalog")
        if catalog is not None and os.path.exists(beside := os.path.join(self._directory, catalog)):
            catalog = beside
        fields = {
            "launch_s": "launch",
            "register_s": "register",
            "ready_s": "ready",
            "devices_ready_s": "devicesReady",
            "terminate_s": "terminate",
            "jitter_s": "jitter",
        }
        given = {field: duration_s(raw[name]) for field, name in fields.items() if raw.get(name) is not None}
        provider = raw.get("provider") or provider_of(decoded.node_pools)
        times: Any = given
        return CloudSettings(provider, raw.get("region"), catalog, **times)

    # What steps name.

    def _check_references(self, steps: Sequence[Step], expectations: Sequence[Expectation]) -> None:
        for index, step in enumerate(steps):
            self._check_action(step.action, ("spec", "timeline", index))
        for index, expectation in enumerate(expectations):
            if isinstance(expectation.expected, NodesExpected):
                path = ("spec", "expect", index, "nodes")
                self._check_pool(expectation.expected.node_pool, path)
                self._check_type(expectation.expected.instance_type, path)

    def _check_action(self, action: Action, path: Path) -> None:
        if isinstance(action, Scale):
            key = (action.kind, action.namespace, action.name)
            self._check_object(key, (*path, "scale", action.kind.lower()))
        elif isinstance(action, Delete) and action.kind not in _MADE_BY_CONTROLLERS:
            self._check_object((action.kind, action.namespace, action.name), (*path, "delete", "name"))
        elif isinstance(action, Fault | Interrupt):
            name = "deviceFault" if isinstance(action, Fault) else "interrupt"
            self._check_pool(action.node_pool, (*path, name))
        elif isinstance(action, StockOut | Price):
            self._check_offering(action, (*path, "stockout" if isinstance(action, StockOut) else "price"))

    def _check_object(self, key: tuple[str, str, str], path: Path) -> None:
        if key in self._names:
            return
        kind = key[0]
        there = sorted(f"{ns}/{name}" if ns else name for k, ns, name in self._names if k == kind)
        got = f"{key[1]}/{key[2]}" if key[1] else key[2]
        self._error(path, f"a {kind} of the scenario", got, _nearest(got, there))

    def _check_pool(self, name: str, path: Path) -> None:
        if name and ("NodePool", "", name) not in self._names:
            there = sorted(n for kind, _, n in self._names if kind == "NodePool")
            self._error((*path, "nodePool"), "a NodePool of the scenario", name, _nearest(name, there))

    def _check_type(self, name: str, path: Path) -> None:
        assert self._market is not None
        if name and self._market.find(name) is None:
            there = [instance_type.name for instance_type in self._market.types]
            self._error((*path, "instanceType"), "an instance type of the catalogue", name, _nearest(name, there))

    def _check_offering(self, action: StockOut | Price, path: Path) -> None:
        assert self._market is not None
        self._check_type(action.instance_type or "", path)
        types = [t for t in self._market.types if action.instance_type in (None, t.name)]
        offerings = [o for t in types for o in t.offerings]
        for name, value, sold in (
            ("zone", action.zone, {o.zone for o in offerings}),
            ("capacityType", action.capacity_type, {o.capacity_type for o in offerings}),
        ):
            if types and value is not None and value not in sold:
                expected = f"one of {', '.join(sorted(sold)) or 'none: it is not sold here'}"
                self._error((*path, name), expected, value)


# Names of these are often given by a controller, so only the run can tell whether they exist.
_MADE_BY_CONTROLLERS = ("Pod", "Node", "NodeClaim", "ReplicaSet", "Job")


def _nearest(name: str, there: Sequence[str]) -> str:
    close = get_close_matches(name, there, 1)
    if close:
        return f"is `{close[0]}` meant?"
    return f"there is {', '.join(there[:5])}" if there else "there is none"


def _skipped(decoded: Decoded) -> tuple[str, ...]:
    kinds = [f"{count} {kind}" for kind, count in decoded.skipped_kinds.items()]
    return (f"kinds that Kerf does not read, left out: {', '.join(kinds)}",) if kinds else ()


def _key(raw: Json) -> tuple[str, str, str]:
    metadata, kind = raw["metadata"], raw["kind"]
    return kind, "" if is_cluster_wide(kind) else metadata.get("namespace") or "default", metadata["name"]


def _ordered(objects: Iterable[Json], skipped_kinds: Container[str]) -> tuple[Json, ...]:
    def order(raw: Json) -> tuple[int, tuple[str, str, str]]:
        kind = "NodeClass" if raw["kind"].endswith("NodeClass") else raw["kind"]
        return _KIND_ORDER.index(kind) if kind in _KIND_ORDER else len(_KIND_ORDER), _key(raw)

    return tuple(sorted((raw for raw in objects if raw["kind"] not in skipped_kinds), key=order))
