"""CapacityBuffers in manifests: a slice of one card is kept, however cards are shared, and what is not is said."""

from pathlib import Path

import pytest

from tests.cli.program import files, kerf

SHARING = "examples/001-sharing"
BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {{name: spare, namespace: default}}
spec: {{scalableRef: {{apiGroup: apps, kind: {kind}, name: {name}}}, replicas: 1{more}}}
"""


def planned(folder: Path, sharing: str, name: str, kind: str = "Deployment", more: str = "") -> str:
    """What the plan says of the example with a buffer of one of its workloads."""
    path = folder / "buffer.yaml"
    path.write_text(BUFFER.format(kind=kind, name=name, more=more), encoding="utf-8")
    return kerf("plan", *files(f"{SHARING}/configs.yaml", f"{SHARING}/{sharing}.yaml", str(path))).stdout


@pytest.mark.parametrize(
    ("sharing", "name", "nodes", "part"),
    [
        # Eight replicas of a card are for eight pods.
        ("time-slicing", "notebook", 2, "1 nvidia.com/gpu"),
        ("mps", "chat", 2, "1 nvidia.com/gpu"),
        ("mig", "embed", 1, "1 nvidia.com/mig-1g.5gb"),
    ],
)
def test_a_slice_is_kept_however_cards_are_shared(
    tmp_path: Path, sharing: str, name: str, nodes: int, part: str
) -> None:
    """It counts as a pod's does: where the cards of a node are full another is bought."""
    text = planned(tmp_path, sharing, name)

    assert f"CapacityBuffer default/spare keeps 1 place ready for {part}" in text
    assert nodes == text.count(" launch ")
    assert "1 place kept" in text


def test_what_is_not_kept_is_said(tmp_path: Path) -> None:
    """A workload that is not there, and the strategy of another controller."""
    assert "invalid: there is no Deployment default/gone" in planned(tmp_path, "mps", "gone")
    other = planned(tmp_path, "mps", "chat", more=", provisioningStrategy: example.com/standby")

    assert "note: CapacityBuffer default/spare is of another strategy than buffer.x-k8s.io/active-capacity" in other
