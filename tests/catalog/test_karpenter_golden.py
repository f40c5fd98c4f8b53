"""Labels and allocatable of AWS types against what Karpenter's provider publishes itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kerf.catalog import aws
from kerf.model.instancetypes import InstanceType
from kerf.model.quantities import MIB, Resources

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "catalog" / "karpenter_aws_allocatable.json").read_text(encoding="utf-8")
)
TYPES = {spec.name: aws.instance_type(spec) for spec in aws.specs()}
FRACTIONS = {"g6f.large", "g6f.xlarge", "g6f.2xlarge", "g6f.4xlarge", "gr6f.4xlarge"}
NEWER_INTERFACES = {"i7ie.48xlarge", "i7ie.metal-48xl", "i8ge.48xlarge", "i8ge.metal-48xl"}
"""Types whose number of network interfaces changed between the dates of the two sources."""


def differing(column: int, ours: Callable[[InstanceType], int]) -> set[str]:
    """The types for which a column of the golden file is not what we compute."""
    return {name for name, row in GOLDEN["allocatable"].items() if row[column] != ours(TYPES[name])}


def test_cpu_equals_karpenters() -> None:
    """Allocatable CPU agrees for all 1363 types."""
    assert 1363 == len(GOLDEN["allocatable"])
    assert set() == differing(0, lambda kind: kind.allocatable["cpu"])


def test_memory_and_pods_equal_karpenters() -> None:
    """Allocatable memory and pods agree for 1359 of 1363; the four others changed their network interfaces."""
    assert NEWER_INTERFACES == differing(1, lambda kind: kind.allocatable["memory"] // MIB)
    assert NEWER_INTERFACES == differing(2, lambda kind: kind.allocatable["pods"])


def test_gpus_equal_karpenters() -> None:
    """Whole cards agree for all 1363; a share of a card counts as one, where Karpenter counts none."""
    assert FRACTIONS == differing(3, lambda kind: kind.allocatable.get("nvidia.com/gpu", 0))
    assert set() == differing(3, lambda kind: 0 if kind.is_fractional else len(kind.devices))


@pytest.mark.parametrize("name", sorted(GOLDEN["labels"]))
def test_labels_equal_karpenters(name: str) -> None:
    """Every label of the published page is ours too."""
    labels = TYPES[name].requirements.labels()

    assert GOLDEN["labels"][name] == {key: labels.get(key) for key in GOLDEN["labels"][name]}


@pytest.mark.parametrize("name", sorted(set(GOLDEN["resources"]) - FRACTIONS))
def test_all_resources_equal_karpenters(name: str) -> None:
    """Disk, EFA, branch interfaces and Neuron devices too."""
    assert Resources.parse(GOLDEN["resources"][name]) == TYPES[name].allocatable
