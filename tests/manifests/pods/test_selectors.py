"""Selectors of pods: old names of a label mean the new one on nodes alone."""

from typing import Any

import pytest

from kerf.manifests.pods.selectors import node_expressions_of, selector_of
from kerf.model.constraints import ARCH

OLD = "beta.kubernetes.io/arch"


def one_of(key: str, operator: str, *values: str) -> dict[str, Any]:
    """An expression."""
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {OLD: "amd64"}},
        {"matchLabels": {OLD: "amd64", ARCH: "arm64"}},
        {"matchExpressions": [one_of(OLD, "In", "amd64"), one_of(ARCH, "NotIn", "amd64")]},
    ],
)
def test_a_selector_of_pods_reads_labels_as_they_are_spelt(selector: dict[str, Any]) -> None:
    """Both names are labels of their own there, as apimachinery reads them: neither stands for the other."""
    found = selector_of(selector)

    assert found.unsatisfied_by({OLD: "amd64", ARCH: "arm64"}) is None
    assert found.unsatisfied_by({ARCH: "amd64"}) is not None


def test_terms_that_select_nodes_read_both_names_as_one() -> None:
    """As Karpenter does: a node has both, with one value."""
    assert list(node_expressions_of([one_of(OLD, "In", "amd64", "arm64"), one_of(ARCH, "In", "arm64")])) == [ARCH]
    assert node_expressions_of([one_of(OLD, "In", "amd64"), one_of(ARCH, "NotIn", "amd64")]).is_never
