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


MIXED = """
apiVersion: v1
kind: Pod
metadata: {name: much-memory, namespace: default}
spec:
  schedulerName: hami-scheduler
  nodeSelector: {karpenter.sh/nodepool: g5-nodepool}
  containers:
    - name: main
      image: x
      resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 17166, nvidia.com/gpucores: 20}}
---
apiVersion: v1
kind: Pod
metadata: {name: many-cores, namespace: default}
spec:
  schedulerName: hami-scheduler
  nodeSelector: {karpenter.sh/nodepool: g5-nodepool}
  containers:
    - name: main
      image: x
      resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 2000, nvidia.com/gpucores: 75}}
"""


def test_what_is_in_use_of_a_card_is_its_memory_or_its_cores_and_not_both(tmp_path: Path) -> None:
    """75 and 20 % of memory and cores beside 9 and 75 % are 95 % of the cores, in two equal parts."""
    pods, path = tmp_path / "pods.yaml", tmp_path / "plan.svg"
    pods.write_text(MIXED, encoding="utf-8")
    done = kerf("plan", *files("examples/003-hami/nodepool.yaml", str(pods)), "--chart", str(path))

    assert "GPUs: 1 paid, 0.95 allocated" in done.stdout
    assert "1 x g5.xlarge: 1.006 USD/h, 2 pods, 95 % of the GPUs in use" in _texts(path)
    assert [0.475 * 64] * 2 == _heights(path)


def test_time_slices_of_a_card_are_equal_parts_of_it(tmp_path: Path) -> None:
    """They have neither memory nor cores of their own: eight of eight are the whole card."""
    path = tmp_path / "plan.svg"
    sharing = files("examples/001-sharing/configs.yaml", "examples/001-sharing/time-slicing.yaml")
    kerf("plan", *sharing, "--chart", str(path))

    assert "1 x g4dn.xlarge: 0.526 USD/h, 8 pods, 100 % of the GPUs in use" in _texts(path)
    assert [8.0] * 8 == _heights(path)


def _texts(path: Path) -> list[str]:
    return [each.text or "" for each in ET.fromstring(path.read_text(encoding="utf-8")).iter(f"{_SVG}text")]


def _heights(path: Path) -> list[float]:
    """Of the slices that are drawn."""
    drawn = ET.fromstring(path.read_text(encoding="utf-8")).iter(f"{_SVG}rect")
    return [float(each.get("height", "")) for each in drawn if each.get("stroke") == "#fff"]


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
