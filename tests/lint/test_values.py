"""Values of labels that no instance type has: which are said, and what was probably meant."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.lint.spelling import nearest_values
from tests.lint.looking import codes, looked

CODE = "KL086"
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: %s, kind: EC2NodeClass, name: default}
      requirements:
        - {key: %s, operator: %s, values: [%s]}
"""
NODE = """\
---
apiVersion: v1
kind: Node
metadata: {name: n, labels: {karpenter.k8s.aws/instance-family: mine, karpenter.k8s.aws/instance-gpu-name: own}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: {karpenter.k8s.aws/instance-gpu-name: %s}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: karpenter.k8s.aws/instance-size, operator: In, values: [%s]}]}]
  containers: [{name: main, image: app}]
"""
KEY = "karpenter.k8s.aws/instance-%s"
AWS = "karpenter.k8s.aws"


@pytest.mark.parametrize(
    "key, value, hint",
    [
        (KEY % "family", "p6", "is p6-b200 or p6-b300 meant?"),
        (KEY % "family", "G6", "is g6 meant?"),
        (KEY % "family", "m5.large", "is m5 meant?"),
        (KEY % "size", "2-xlarge", "is 2xlarge meant?"),
        (KEY % "gpu-name", "a10", "is a100 or a10g meant?"),
        (KEY % "gpu-name", "tesla-t4", "is t4 meant?"),
        (KEY % "gpu-count", '"3"', "is 2 or 4 meant?"),
        (KEY % "cpu", '"1000"', "is 896 meant?"),
        ("kubernetes.io/arch", "x86_64", "is amd64 meant?"),
        ("beta.kubernetes.io/arch", "aarch64", "is arm64 meant?"),
        ("kubernetes.io/arch", "sparc", "there is amd64, arm64"),
        ("topology.kubernetes.io/zone", "us-east-1h", "is us-east-1f meant?"),
    ],
)
def test_a_value_that_no_type_has_is_named_with_the_nearest(key: str, value: str, hint: str) -> None:
    """Of families, sizes, models and numbers of GPUs, numbers of CPUs, architectures and zones."""
    (found,) = [each for each in looked(POOL % (AWS, key, "In", value)).findings if each.code == CODE]

    assert hint == found.hint


@pytest.mark.parametrize(
    "key, operator, values",
    [
        (KEY % "family", "In", "g5, p3"),
        (KEY % "gpu-name", "In", "own, v100"),
        (KEY % "family", "In", "mine"),
        (KEY % "family", "NotIn", "p6"),
        (KEY % "cpu", "Gt", '"5"'),
        (KEY % "tenancy", "In", "dedicated"),
        ("kubernetes.io/os", "In", "windows"),
        ("topology.kubernetes.io/zone", "In", "eu-west-1a, us-east-1-bos-1a"),
        ("topology.kubernetes.io/region", "In", "eu-west-1"),
        ("example.com/team", "In", "p6"),
    ],
)
def test_what_a_catalogue_cannot_know_is_not_judged(key: str, operator: str, values: str) -> None:
    """Types that are sold elsewhere, values of a node of the input, zones of other regions, own labels."""
    assert CODE not in codes(looked(POOL % (AWS, key, operator, values) + NODE))


@pytest.mark.parametrize(
    "label, code",
    [
        ("karpenter.k8s.aws/instance-family: p6", CODE),
        ("beta.kubernetes.io/arch: x86_64", CODE),
        ("node.kubernetes.io/instance-type: g5.huge", "KL019"),
        ("node.kubernetes.io/instance-type: p3.2xlarge", "KL018"),
        ("karpenter.sh/capacity-type: on_demand", "KL024"),
        ("karpenter.k8s.aws/instance-family: p5", "KL023"),
    ],
)
def test_a_label_of_a_template_is_judged_as_a_requirement_is(label: str, code: str) -> None:
    """A value, a type or a capacity type that none has, and one that the requirements do not allow."""
    pool = POOL % (AWS, KEY % "family", "In", "g5, g6")

    assert code in codes(looked(pool.replace("    spec:\n", f"    metadata: {{labels: {{{label}}}}}\n    spec:\n")))
    assert code not in codes(looked(pool))


def test_the_label_that_closes_a_pool_is_named() -> None:
    """The hint is to do without the label, without which more types are left than without the requirement."""
    pool = POOL % (AWS, KEY % "family", "In", "g5, g6, m5, c5, m6i, c6i, m7i, c7i, r5, r6i")
    labelled = pool.replace("    spec:\n", f"    metadata: {{labels: {{{KEY % 'family'}: p5}}}}\n    spec:\n")
    (found,) = [each for each in looked(labelled).findings if each.code == "KL023"]

    assert found.hint.startswith(f"without the label {KEY % 'family'} of the template it admits ")


def test_a_cloud_without_a_catalogue_is_not_judged() -> None:
    """Its types are not known."""
    assert CODE not in codes(looked(POOL % ("karpenter.example.com", "kubernetes.io/arch", "In", "x86_64")))


def test_selectors_and_affinity_of_pods_are_looked_at() -> None:
    """Each value has its place, also where no pool is in the input."""
    found = [each for each in looked(POD % ("h-100", "48-xlarge")).findings if each.code == CODE]

    assert [(5, "is h100 meant?"), (9, "is 48xlarge meant?")] == [(each.line, each.hint) for each in found]
    assert [] == [each for each in codes(looked(POD % ("h100", "48xlarge"))) if each == CODE]


def test_a_misspelt_type_is_found_in_affinity_too() -> None:
    """As in a selector."""
    affinity = POD.replace("karpenter.k8s.aws/instance-size", "node.kubernetes.io/instance-type")

    assert "KL019" in codes(looked(affinity % ("a10g", "g5.xlrage")))


VALUES = st.text("abgpt0156-.", max_size=6)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.sets(VALUES, max_size=8))
def test_what_is_offered_is_known_and_the_same_in_any_order(value: str, known: set[str]) -> None:
    """At most three, each once."""
    found = nearest_values(value, known)

    assert found == nearest_values(value, sorted(known, reverse=True))
    assert set(found) <= known
    assert len(found) == len(set(found)) <= 3
    assert value not in known or [value] == found
