"""`kerf plan --chart`: nodes by type, and how full each card is."""

import xml.etree.ElementTree as ET
from pathlib import Path

from tests.cli.program import files, kerf

SLICES = (
    *files("examples/003-hami/nodepool.yaml", "examples/003-hami/workload.yaml"),
    "--replicas",
    "deployment/default/gpu-inference=7",
)
_SVG = "{http://www.w3.org/2000/svg}"


def test_equal_nodes_are_drawn_once_with_their_slices(tmp_path: Path) -> None:
    """Three nodes of two halves and one of one: two drawings, with three coloured slices between them."""
    path = tmp_path / "plan.svg"
    done = kerf("plan", *SLICES, "--chart", str(path))

    assert 0 == done.returncode
    root = ET.fromstring(path.read_text(encoding="utf-8"))
    texts = [each.text for each in root.iter(f"{_SVG}text")]
    assert ["4 nodes to buy: 4.024 USD/h", "4 x g5.xlarge: 4.024 USD/h, 7 pods, 87.5 % of the GPUs in use"] == texts[:2]
    assert ["3 x", "1"] == texts[2:]
    slices = [each for each in root.iter(f"{_SVG}rect") if each.get("stroke") == "#fff"]
    assert ["32", "32", "32"] == [each.get("height") for each in slices]


def test_equal_plans_give_equal_bytes(tmp_path: Path) -> None:
    """Whatever else is in the folder."""
    for name in ("a.svg", "b.svg"):
        kerf("plan", *SLICES, "--chart", str(tmp_path / name))

    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """With the reason, and no plan."""
    done = kerf("plan", *SLICES, "--chart", str(tmp_path / "no" / "plan.svg"))

    assert 2 == done.returncode
    assert "expected a file that can be written, got: No such file or directory" in done.stderr
