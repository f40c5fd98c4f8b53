"""One run of a sweep: what goes into it, and what comes out."""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

from kerf.config import settings_of, settings_table
from kerf.errors import KerfError
from kerf.model.instancetypes import InstanceType
from kerf.model.market import Market
from kerf.model.times import duration_s
from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import Scenario, read_scenario, source_of
from kerf.sim.objects import Json, merged
from kerf.sim.simulation import run
from kerf.sim.sweep.bundle import Bundle, code_digest
from kerf.sim.traces.replay import read_replay

FORM = 1
"""Of a result: another number, and earlier results are not read."""


class AnotherKerf(KerfError):
    """A worker has other code than the process that asks it; its results would not be comparable."""


@dataclass(frozen=True)
class SweepCell:
    """A run: `policy`, `trace` and `price` as the axes state them, each with its name.

    `trace` None: what the scenario says itself. `scenario` is the name of the scenario's file in the bundle, and so is
    `file` of a trace. `code` is the digest of the Kerf that is to run it.
    """

    bundle: Bundle
    code: str
    scenario: str
    policy: Json
    trace: Json | None
    seed: int
    price: Json
    duration_s: int | None = None

    @cached_property
    def digest(self) -> str:
        """Equal for all that the result depends on, and for nothing else; names of values do not count."""
        stated = [FORM, self.code, self.bundle.digest, self.scenario, self.seed, self.duration_s]
        values = [_unnamed(each) for each in (self.policy, self.trace or {}, self.price)]
        return hashlib.sha256(json.dumps([*stated, *values], sort_keys=True).encode()).hexdigest()

    @property
    def names(self) -> tuple[str, str, str]:
        """Of policy, trace and price."""
        return self.policy["name"], (self.trace or {"name": ""})["name"], self.price["name"]


def _unnamed(value: Json) -> Json:
    return {name: held for name, held in value.items() if name != "name"}


def played(cell: SweepCell) -> Json:
    """Run it; what comes of it as plain JSON.

    Raises AnotherKerf, and what a run raises. Equal cells give equal results, wherever they are run.
    """
    if cell.code != code_digest():
        raise AnotherKerf("this worker has another version of Kerf than the command: install the same on both")
    with tempfile.TemporaryDirectory() as folder:
        cell.bundle.unpack(folder)
        scenario = _scenario(cell, folder)
    return result_of(run(scenario))


def _scenario(cell: SweepCell, folder: str) -> Scenario:
    scenario = read_scenario(os.path.join(folder, cell.scenario))
    if cell.trace is not None:
        every = cell.trace.get("boundEvery")
        every_s = (duration_s(every) or 0) if every else scenario.bound_every_s or None
        replay = read_replay(source_of(cell.trace, folder))
        scenario = replace(scenario, replay=replay, bound_every_s=every_s)
    given = settings_texts(cell.policy)
    known = settings_of(given)
    settings = replace(scenario.settings, **{name: getattr(known, name) for name in given})
    disruption = cell.policy.get("disruption")
    objects = tuple(_with_disruption(each, disruption) for each in scenario.objects)
    return replace(
        scenario,
        seed=cell.seed,
        duration_s=scenario.duration_s if cell.duration_s is None else cell.duration_s,
        settings=settings,
        objects=objects,
        market=priced(scenario.market, cell.price),
    )


def settings_texts(policy: Json) -> dict[str, str]:
    """The settings of a policy by field, as `settings_of` takes them; written as keys of `kerf run --config`."""
    fields = {setting.key: setting.field for setting in settings_table()}
    return {fields[key]: str(value) for key, value in (policy.get("settings") or {}).items()}


def _with_disruption(obj: Json, disruption: Json | None) -> Json:
    if obj["kind"] != "NodePool" or not disruption:
        return obj
    changed: Json = merged(obj, {"spec": {"disruption": disruption}})
    return changed


def priced(market: Market, price: Json) -> Market:
    """The market with the prices of some offerings times a factor, rounded to a millionth."""
    factor = price.get("factor")
    if factor is None:
        return market
    return replace(market, types=tuple(_priced(kind, price, factor) for kind in market.types))


def is_priced(price: Json, instance_type: str, capacity_type: str) -> bool:
    """Whether the price is of such offerings."""
    is_named = fnmatchcase(instance_type, price.get("instanceType") or "*")
    return is_named and price.get("capacityType") in (None, capacity_type)


def _priced(kind: InstanceType, price: Json, factor: float) -> InstanceType:
    changed = tuple(
        replace(each, price_micro=round(each.price_micro * float(factor)))
        if is_priced(price, kind.name, each.capacity_type)
        else each
        for each in kind.offerings
    )
    return replace(kind, offerings=changed)


def result_of(report: SimulationReport) -> Json:
    """What a sweep keeps of a report."""
    shown = report.to_object()
    totals, over = shown["totals"], report.over_bound
    return {
        "form": FORM,
        "currency": totals["currency"],
        "cost": totals["cost"],
        "overBoundPercent": None if over is None else round(100 * over, 4),
        "waitSeconds": totals["waitSeconds"],
        "moves": totals["evictions"],
        "gpuHoursPaid": totals["gpuHoursPaid"],
        "gpuHoursAllocated": totals["gpuHoursAllocated"],
        "podsPlaced": totals["podsPlaced"],
        "podsUnplaced": totals["podsUnplaced"],
        "launches": totals["launches"],
    }
