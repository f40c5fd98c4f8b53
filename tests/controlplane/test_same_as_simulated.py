"""`kerf simulate` is only worth something if the real thing comes to the same: the same launches, in the same order,
the same nodes removed, the same pods on the same cards, and the same words for those that wait.

Times are left aside, and pods of one workload may stand for one another.
"""

from pathlib import Path

import pytest

from kerf.sharing.hami.family import Hami
from kerf.sim.course.scenario import Scenario, read_scenario
from tests.controlplane.cluster import cluster
from tests.controlplane.course import simulated_course
from tests.controlplane.real_scenario import CLOUD, hastened, real_course
from tools.controlplane.server import Binaries

ROOT = Path(__file__).parents[2]
SCENARIOS = (
    "examples/003-hami",
    "examples/004-ack",
    "tests/scenarios/interruption",
)
LONG = (
    "examples/000-gpu-pools",
    "tests/scenarios/registers-less",
    "tests/scenarios/stockout",
    "tests/scenarios/ack-sold-out",
    "tests/scenarios/interruption-against-budget",
    "tests/scenarios/limits",
    "tests/scenarios/lost-cards",
    "tests/scenarios/never-joins",
    "tests/scenarios/never-registers",
    "tests/scenarios/node-deleted",
    "tests/scenarios/pinned",
    "tests/scenarios/registers-less-once",
    "tests/scenarios/sizes",
    "tests/scenarios/stockout-in-one-zone",
    "tests/scenarios/unhealthy-card",
)


@pytest.mark.parametrize(
    "name",
    [*SCENARIOS, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)],
    ids=lambda name: name.rpartition("/")[2],
)
def test_a_scenario_comes_to_the_same_as_simulated(binaries: Binaries, name: str) -> None:
    """Launches, removals, placement and what is left over."""
    path = ROOT / name
    scenario = hastened(read_scenario(str(path / "scenario.yaml" if path.is_dir() else path.with_suffix(".yaml"))))
    simulated = simulated_course(scenario)
    with cluster(binaries, with_hami=needs_hami(scenario), hami_flags=("--ties", "first"), latencies=CLOUD) as made:
        real = real_course(made, scenario)

    assert str(simulated) == str(real)
    assert simulated == real


def needs_hami(scenario: Scenario) -> bool:
    """Whether a pool is made for HAMi, as the simulation asks it."""
    templates = [obj["spec"]["template"].get("metadata", {}) for obj in scenario.objects if obj["kind"] == "NodePool"]
    return any(Hami().selects(template.get("labels", {}), {}) for template in templates)
