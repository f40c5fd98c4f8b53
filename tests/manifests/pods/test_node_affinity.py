"""Node affinity as kube-scheduler reads it: what it cannot read is met by no node, and ends no other pod's plan."""

from typing import Any

import pytest

from kerf.manifests.admission import Defaults
from kerf.manifests.pods.decode import SpecReading, read_spec
from kerf.model.constraints import Requirement, Requirements
from tests.manifests.texts import said

REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
READABLE = {"key": "a", "operator": "In", "values": ["x"]}


def read(*expressions: dict[str, Any], is_live: bool = False, **node: Any) -> SpecReading:
    """A spec with one required term for each expression; `node` are parts of its node affinity in their place."""
    terms = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in expressions]}}
    return read_spec(
        {"containers": [{"name": "a"}], "affinity": {"nodeAffinity": node or terms}}, None if is_live else Defaults()
    )


def affinity(reading: SpecReading) -> tuple[Requirements, ...]:
    """The required terms."""
    assert reading.spec is not None
    return reading.spec.affinity


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("value", ["-5", "+5", "x", "1_0", "9" * 20, "²"])
def test_a_number_that_no_node_can_have_is_met_by_none(operator: str, value: str) -> None:
    """labels.NewRequirement refuses it; another term of the pod still counts."""
    bad = {"key": "a", "operator": operator, "values": [value]}
    alone, beside = read(bad, is_live=True), read(bad, READABLE, is_live=True)

    assert all(term.is_never for term in affinity(alone))
    assert (Requirements([Requirement.of("a", "In", ["x"])]),) == affinity(beside)


@pytest.mark.parametrize(
    "bad",
    [
        {"key": "a", "operator": "In", "values": []},
        {"key": "a", "operator": "NotIn"},
        {"key": "a", "operator": "Exists", "values": ["x"]},
        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
        {"key": "a", "operator": "Gte", "values": ["1"]},
        {"key": "a/b/c", "operator": "Exists"},
        {"key": "a", "operator": "In", "values": ["-x"]},
        {"operator": "Exists"},
        {},
    ],
)
def test_what_is_no_requirement_is_met_by_none_and_refused_of_a_new_pod(bad: dict[str, Any]) -> None:
    """Of a live pod, which an older server may have taken, and with the path of what is wrong."""
    live, new = read(bad, is_live=True), read(bad)

    assert ((), "") == (live.problems, said(live.invalid))
    assert all(term.is_never for term in affinity(live))
    assert f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]" in said(new.invalid)


def test_the_server_looks_at_no_number() -> None:
    """It takes the pod, and no node ever meets the term."""
    new = read({"key": "a", "operator": "Gt", "values": ["few"]})

    assert "" == said(new.invalid)
    assert all(term.is_never for term in affinity(new))


def test_a_required_affinity_without_terms_is_met_by_no_node() -> None:
    """And refused of a new pod."""
    bad: dict[str, Any] = {REQUIRED: {"nodeSelectorTerms": []}}

    assert "nodeSelectorTerms: expected at least one term, got <a list of 0>" in said(read(**bad).invalid)
    assert all(term.is_never for term in affinity(read(is_live=True, **bad)))


@pytest.mark.parametrize("weight", [0, -1, 101, None])
def test_a_weight_out_of_range_is_a_reason_on_the_pod(weight: int | None) -> None:
    """As in pod affinity."""
    bad: dict[str, Any] = {PREFERRED: [{"weight": weight, "preference": {"matchExpressions": [READABLE]}}]}
    reading = read(**bad)

    assert () == reading.problems
    assert f"affinity.nodeAffinity.{PREFERRED}[0].weight: expected a weight from 1 to 100" in said(reading.invalid)
    assert "" == said(read(is_live=True, **bad).invalid)


def test_values_of_a_preference_are_not_looked_at() -> None:
    """The server takes them, and no node has them."""
    bad: dict[str, Any] = {
        PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{**READABLE, "values": ["-x"]}]}}]
    }
    reading = read(**bad)

    assert "" == said(reading.invalid)
    assert reading.spec is not None
    assert reading.spec.preferred[0][1].is_never
