"""`kerf verify`: a printed plan holds, or breaks rules that are named, or is no plan and says where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kerf.engine.explain.violations import RULES
from kerf.model.violations import PlanRule
from tests.cli.program import (
    POOL_000,
    POOL_003,
    POOL_004,
    ROOT,
    THREE,
    WORKLOAD_000,
    WORKLOAD_003,
    WORKLOAD_004,
    files,
    kerf,
)

Json = dict[str, Any]
INPUT = files(POOL_004, WORKLOAD_004)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan of slices and of pods without cards, in a file."""
    path = tmp_path / "plan.json"
    path.write_text(kerf("plan", "-o", "json", *INPUT).stdout, encoding="utf-8")
    return path


def changed(plan: Path, change: Callable[[Json], object]) -> Path:
    """The plan with something changed."""
    held = json.loads(plan.read_text(encoding="utf-8"))
    change(held)
    plan.write_text(json.dumps(held), encoding="utf-8")
    return plan


@pytest.mark.parametrize("given", [files(POOL_004, WORKLOAD_004), files(POOL_000, WORKLOAD_000)])
def test_a_plan_that_was_printed_holds(tmp_path: Path, given: tuple[str, ...]) -> None:
    """With the input that it was made from."""
    path = tmp_path / "plan.json"
    path.write_text(kerf("plan", "-o", "json", *given).stdout, encoding="utf-8")

    done = kerf("verify", str(path), *given)

    assert (0, True) == (done.returncode, done.stdout.startswith("the plan holds: "))


def test_a_plan_for_some_pods_holds_for_these(tmp_path: Path) -> None:
    """With the flags that changed or chose the pods; without them others seem to be forgotten."""
    path = tmp_path / "plan.json"
    more = (*files(POOL_003, WORKLOAD_003), *THREE)
    given = (*more, "-l", "app=none")
    path.write_text(kerf("plan", "-o", "json", *given).stdout, encoding="utf-8")

    assert 0 == kerf("verify", str(path), *given).returncode
    assert "pod-outcome" in kerf("verify", str(path), *more).stdout

    path.write_text(kerf("plan", "-o", "json", *more).stdout, encoding="utf-8")

    assert 0 == kerf("verify", str(path), *more).returncode


def _with_memory(held: Json) -> None:
    held["launches"][0]["devices"][0]["slices"][0]["memoryMiB"] = 10**6


def _twice(held: Json) -> None:
    held["launches"].append({**held["launches"][0], "name": "launch-99"})


def _dearer(held: Json) -> None:
    held["launches"][0]["perHour"] += 1


def _nowhere(held: Json) -> None:
    held["placements"].append({"pod": held["launches"][0]["pods"][0], "node": "gone", "devices": []})


def _bound(held: Json) -> None:
    held["cost"]["perHourLowerBound"] = held["cost"]["perHourAfter"] + 1


def _allocated(held: Json) -> None:
    held["gpus"]["allocated"] = held["gpus"]["paid"] + 1


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (_with_memory, PlanRule.CARD_MEMORY),
        (_twice, PlanRule.PLACED_TWICE),
        (_dearer, PlanRule.PRICE),
        (_nowhere, PlanRule.NODE_UNUSABLE),
        (_bound, PlanRule.BOUND),
        (_allocated, PlanRule.ALLOCATED),
    ],
)
def test_a_plan_that_breaks_a_rule_is_named_by_it(plan: Path, change: Callable[[Json], None], rule: PlanRule) -> None:
    """Exit code 1, the rule with its sentence, and the same in JSON."""
    path = changed(plan, change)
    done, as_json = kerf("verify", str(path), *INPUT), kerf("verify", str(path), "-o", "json", *INPUT)

    assert (1, True) == (done.returncode, f"{rule}: {RULES[rule]}" in done.stdout)
    said = json.loads(as_json.stdout)
    assert (False, True) == (said["holds"], rule in {each["rule"] for each in said["breaches"]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected JSON"),
        ("{", "expected JSON"),
        ("[]", "expected the JSON object of a plan"),
        ('{"kind": "Consolidation"}', "kind: expected Plan, got 'Consolidation'"),
        ('{"kind": "Plan"}', "apiVersion: expected kerf.dev/v1alpha1, got None"),
        ('{"kind": "Plan", "apiVersion": "kerf.dev/v9"}', "apiVersion: expected kerf.dev/v1alpha1, got 'kerf.dev/v9'"),
        ('{"kind": "Plan", "apiVersion": "kerf.dev/v1alpha1"}', "expected"),
        ("[" * 100_000, "expected JSON"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "expected JSON"),
    ],
)
def test_what_is_no_plan_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """Exit code 2, the file, what was expected and a hint; never a traceback."""
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")

    done = kerf("verify", str(path), *INPUT)

    assert (2, True, True) == (done.returncode, str(path) in done.stderr, said in done.stderr)
    assert "hint" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: held["launches"][0].pop("pods"), "launches[0]"),
        (lambda held: held["launches"][0].update(pods=5), "launches[0].pods: expected array, got 5"),
        (lambda held: held["launches"][0].update(perHour="1"), "launches[0].perHour: expected float, got '1'"),
        (lambda held: held["launches"][0].update(perHour=1e300), "launches[0].perHour: expected an amount"),
        (lambda held: held.update(cost=None), "cost: expected object, got None"),
        (lambda held: held.update(placements={}), "placements: expected array, got {}"),
    ],
)
def test_a_malformed_field_is_said_with_its_place(plan: Path, change: Callable[[Json], object], said: str) -> None:
    """The field by its path, what was expected there, and what came."""
    done = kerf("verify", str(changed(plan, change)), *INPUT)

    assert (2, True) == (done.returncode, said in done.stderr), done.stderr


@pytest.mark.parametrize("text", ["-1", "3000000000", '"x"', "[]", "{}", "null", "true", "1.5"])
def test_no_value_of_any_field_ends_in_a_traceback(plan: Path, text: str) -> None:
    """Each field of the plan has the value in turn: the plan breaks a rule, holds, or is refused with its place."""
    held = json.loads(plan.read_text(encoding="utf-8"))
    value = json.loads(text)
    targets = [held, held["cost"], held["gpus"], held["launches"][0], held["launches"][0]["devices"][0]]
    targets.append(held["launches"][0]["devices"][0]["slices"][0])
    fields = [(target, key) for target in targets for key in target]
    for target, key in fields[::3]:
        before, target[key] = target[key], value
        plan.write_text(json.dumps(held), encoding="utf-8")
        target[key] = before
        done = kerf("verify", str(plan), *INPUT)

        assert done.returncode in (0, 1, 2)
        assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """Exit code 2."""
    done = kerf("verify", str(tmp_path / "none.json"), *INPUT)

    assert (2, True) == (done.returncode, "No such file" in done.stderr)


def test_every_rule_is_on_the_page() -> None:
    """The reference has each rule by its name."""
    page = (ROOT / "docs" / "reference" / "cli" / "verify.md").read_text(encoding="utf-8")

    assert [] == [rule for rule in PlanRule if f"| `{rule}` | {RULES[rule]} |" not in page]
