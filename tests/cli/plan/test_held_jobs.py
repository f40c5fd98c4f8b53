"""`kerf plan` and `kerf explain` say where a Job ends before the window opens that holds its pods."""

from pathlib import Path

import pytest

from tests.cli.program import kerf

WINDOW = """\
apiVersion: kerf.dev/v1alpha1
kind: CapacityWindow
metadata: {name: nightly}
spec: {schedule: "0 22 * * *", duration: 2h, pods: {selector: {matchLabels: {kerf.dev/window: nightly}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default}
spec:
  activeDeadlineSeconds: DEADLINE
  template:
    metadata: {labels: {kerf.dev/window: nightly}}
    spec: {restartPolicy: Never, containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]}
"""
SAID = "its activeDeadlineSeconds ends it in 1h, and window nightly opens in 5h: a Job's clock runs"


@pytest.mark.parametrize("deadline_s, is_said", [(3600, True), (6 * 3600, False)])
def test_a_job_that_ends_before_its_window_opens_is_said(tmp_path: Path, deadline_s: int, is_said: bool) -> None:
    """In the notes of the plan, and where the Job is explained."""
    file = tmp_path / "in.yaml"
    file.write_text(WINDOW.replace("DEADLINE", str(deadline_s)))
    given = ("-f", str(file), "--now", "2026-01-05T17:00:00Z", "--catalog", "aws")

    assert is_said == (f"note: Job default/train: {SAID}" in kerf("plan", *given).stdout)
    assert is_said == (SAID in kerf("explain", "job/train", *given).stdout)
