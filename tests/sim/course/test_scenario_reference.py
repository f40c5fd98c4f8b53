"""docs/reference/scenario.md says what the code does."""

import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
import yaml

from kerf.clouds.device_plugins import FAULT_KINDS
from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import CloudSettings, read_scenario
from kerf.sim.course.scenario_form import ACTION_NAMES, CLOUD_NAMES, EXPECTATION_NAMES, TRACE_NAMES
from kerf.sim.course.steps import Action, Expected
from kerf.sim.simulation import run

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/reference/scenario.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first fenced block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found.group(1)


@pytest.fixture
def report(tmp_path: Path) -> SimulationReport:
    """What comes of the scenario in the document, beside the manifests of the example."""
    for name in ("nodepool.yaml", "workload.yaml"):
        shutil.copy(ROOT / "examples/003-hami" / name, tmp_path)
    (tmp_path / "s.yaml").write_text(block("yaml"), encoding="utf-8")
    return run(read_scenario(str(tmp_path / "s.yaml")))


def test_the_scenario_in_the_document_runs(report: SimulationReport) -> None:
    """And its expectations are met."""
    assert report.is_met


def test_the_report_in_the_document_is_true(report: SimulationReport) -> None:
    """Every field is there, the totals are those of the scenario, and the rows are among its rows."""
    shown, written = report.to_object(), yaml.safe_load(block("json"))

    assert list(shown) == list(written)
    assert shown["totals"] == written["totals"]
    for part in ("timeline", "expectations"):
        assert all(row in shown[part] for row in written[part])


NAMES = (*ACTION_NAMES, *EXPECTATION_NAMES, *CLOUD_NAMES, *FAULT_KINDS, *TRACE_NAMES, "scheduler")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_in_the_document(name: str) -> None:
    """Actions, expectations, settings of the cloud and faults each have a row."""
    assert f"\n| `{name}` |" in TEXT


def test_no_form_is_forgotten() -> None:
    """Each action and expectation that exists can be written, and each setting of the cloud."""
    assert len(get_args(Action)) == len(ACTION_NAMES)
    assert len(get_args(Expected)) == len(EXPECTATION_NAMES)
    assert len(fields(CloudSettings)) == len(CLOUD_NAMES)
