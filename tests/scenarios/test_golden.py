"""Each scenario beside this file prints what its `.out` file holds: timeline, bill and expectations, to the byte.

`KERF_UPDATE=1` writes the files; the diff is then part of the review.
"""

import contextlib
import io
import os
from pathlib import Path

import pytest

from kerf.cli.main import run

SCENARIOS = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_runs_as_it_did(scenario: Path) -> None:
    """A changed line is a changed decision."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run(["simulate", str(scenario)])
    golden = scenario.with_suffix(".out")

    if os.environ.get("KERF_UPDATE"):
        golden.write_text(out.getvalue(), encoding="utf-8")
    assert 0 == code
    assert golden.read_text(encoding="utf-8") == out.getvalue()
