"""A plan for a random mix of HAMi's pods is what its scheduler makes of it, in whatever order the pods come."""

import json
from pathlib import Path

import pytest

from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run
from kerf.telemetry import REGISTRY
from tests.mixes import Mix, in_order, mixed

SECOND_S = 300
"""When the second wave comes: the nodes of the first are up."""
PLANS_WITHIN_S = 30
FOLLOWED = "kerf_pods_followed_total"
ELSEWHERE = ("other-node", "other-cards")
ORDERS = 4
PART = 5


def played(folder: Path, mix: Mix) -> SimulationReport:
    """Each wave at once, and what came of it; raises InvariantBroken where anything is bought for twice."""
    steps = [
        {"at": f"{1 + number * SECOND_S}s", "apply": {"apiVersion": "v1", "kind": "List", "items": list(wave)}}
        for number, wave in enumerate(mix.waves)
    ]
    spec = {"duration": "12m", "objects": [mix.pool], "timeline": steps}
    path = folder / "mix.json"
    scenario = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": mix.name}, "spec": spec}
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return run(read_scenario(str(path)))


def followed(*outcomes: str) -> float:
    """How many pods of claims went so, since the tests began."""
    return sum(REGISTRY.get_sample_value(FOLLOWED, {"outcome": each}) or 0 for each in outcomes)


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(PART, 2000, PART))])
def test_a_mix_is_placed_as_it_was_planned(tmp_path: Path, first: int) -> None:
    """In creation order and in three others: all run, each where it was planned, and nothing is bought later."""
    as_planned = followed("as-planned")
    for mix, order in ((mixed(seed), order) for seed in range(first, first + PART) for order in range(ORDERS)):
        before, report = followed(*ELSEWHERE), played(tmp_path, in_order(mix, order))
        bought_s = [row.at_s % SECOND_S for row in report.rows if row.what == "claim created"]

        assert (0, 0) == (report.totals.pods_unplaced, report.totals.deletions + report.totals.evictions), (
            mix.name,
            order,
        )
        assert max(bought_s) <= PLANS_WITHIN_S, (mix.name, order)
        assert before == followed(*ELSEWHERE), (mix.name, order)
    assert as_planned < followed("as-planned")
