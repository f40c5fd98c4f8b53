"""Keys in Kerf's own domain that Kerf does not know are said, with the nearest known one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kerf.manifests.decode import decode
from kerf.manifests.read import parse
from kerf.model.keys import CLOUD_TAGS, KNOWN_KEYS
from tests.cli.explain.test_patches import MAIN, a_cron_job, a_deployment, a_pool, planned
from tests.cli.program import kerf

SOURCE = Path(__file__).parents[2] / "src" / "kerf"


def test_every_key_that_the_code_names_is_known() -> None:
    """Save versions of the API, which are written alike."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py")))
    named = set(re.findall(r"\bkerf\.dev/[a-z]+(?:-[a-z]+)*\b(?![/0-9*.-])", text))

    assert not {key for key in named if not re.fullmatch(r"kerf\.dev/v[0-9].*", key)} - KNOWN_KEYS - CLOUD_TAGS


@pytest.mark.parametrize(
    "path, key, nearest",
    [
        (("metadata", "annotations"), "kerf.dev/max-price-per-gpu-hours", "kerf.dev/max-price-per-gpu-hour"),
        (("spec", "template", "metadata", "annotations"), "kerf.dev/min-node", "kerf.dev/min-nodes"),
        (("spec", "template", "metadata", "labels"), "kerf.dev/gpu_sharing", "kerf.dev/gpu-sharing"),
        (("spec", "limits"), "kerf.dev/cost-per-hr", "kerf.dev/cost-per-hour"),
    ],
)
def test_a_misspelt_key_of_a_pool_is_named(path: tuple[str, ...], key: str, nearest: str) -> None:
    """Wherever such keys stand."""
    pool = a_pool()
    held: Any = pool
    for step in path:
        held = held.setdefault(step, {})
    held[key] = "1"
    [warning] = decode(parse(json.dumps(pool))).warnings

    assert f"unknown field, ignored; is `{nearest}` meant?" in warning
    assert key in warning


def test_plan_and_lint_say_it_of_templates_too() -> None:
    """A pod label and a CronJob's; known keys are not named."""
    deployment, cron_job = a_deployment({"containers": [MAIN]})[0], a_cron_job({"containers": [MAIN]})[0]
    deployment["spec"]["template"]["metadata"]["labels"]["kerf.dev/oportunistic"] = "true"
    inner = cron_job["spec"]["jobTemplate"]["spec"]["template"]
    inner["metadata"] = {"labels": {"kerf.dev/windows": "night", "kerf.dev/run-for": "5m"}}
    objects = [a_pool(), deployment, cron_job]

    linted = kerf("lint", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))
    for said in (planned(objects).stderr, linted.stdout):
        assert "is `kerf.dev/opportunistic` meant?" in said
        assert "is `kerf.dev/window` meant?" in said
        assert "run-for" not in said
