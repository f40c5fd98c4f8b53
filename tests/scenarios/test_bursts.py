"""Jobs that start over ten minutes do not thrash. `make bench` does the same with ten thousand."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from benchmarks import burst
from kerf.cli.main import run


def printed(*arguments: str) -> dict[str, Any]:
    """What the program prints as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert 0 == run([*arguments, "-o", "json"])
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_jobs_that_start_one_by_one_need_no_more_launches_than_all_at_once(tmp_path: Path) -> None:
    """At most five percent more than one plan at the end would buy, and nothing is taken away in between."""
    scenario, at_once = burst.write(tmp_path, 200, "m5.4xlarge")
    launches = len(printed("plan", "-f", str(at_once))["launches"])
    report = printed("simulate", str(scenario))

    assert launches <= report["totals"]["launches"] <= launches * 1.05
    assert 0 == report["totals"]["deletions"] + report["totals"]["evictions"]
    assert all(outcome["ok"] for outcome in report["expectations"])
