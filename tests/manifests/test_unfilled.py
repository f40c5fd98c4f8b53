"""Placeholders that a template left open are named with their place, whatever is wrong by them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.errors import DecodeError, DecodeErrors
from kerf.manifests.decode import decode
from kerf.manifests.read import parse
from kerf.manifests.unfilled import placeholder_in, unfilled_hint
from tests.lint.looking import codes, looked

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: %s}}
spec:
  nodeSelector: {%s: %s}
  containers:
    - name: main
      image: app
      args: ["--home=${HOME}", "$(POD)"]
      env: [{name: A, value: "{{ a }}"}]
      resources: {requests: {cpu: %s}}
"""


@pytest.mark.parametrize(
    "text, found",
    [
        ("<<AZ>>", "<<AZ>>"),
        ("<AZ>", "<AZ>"),
        ("<your zone>", "<your zone>"),
        ("us-east-1${AZ}", "${AZ}"),
        ("${AZ:-a}", "${AZ:-a}"),
        ("$AZ", "$AZ"),
        ("{{ .Values.zone }}", "{{ .Values.zone }}"),
        ("__AZ__", "__AZ__"),
        ("%AZ%", "%AZ%"),
        ("@AZ@", "@AZ@"),
        ("a < b > c", ""),
        ("$5", ""),
        ("us-east-1a", ""),
        ("", ""),
    ],
)
def test_what_is_a_placeholder(text: str, found: str) -> None:
    """In the ways of shells, of Helm and of pages; some only as the whole of a value."""
    assert found == placeholder_in(text)


@given(st.text("<>${}_%@A a1.-", max_size=12))
def test_a_placeholder_is_a_part_of_its_text(text: str) -> None:
    """And a text without such letters has none."""
    found = placeholder_in(text)

    assert found in text
    assert found == "" or any(letter in found for letter in "<{$_%@")
    assert bool(found) == bool(unfilled_hint(text))


POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool}
spec:
  limits: {cpu: %s}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
"""


def failed(text: str) -> str:
    """The text of the one error."""
    with pytest.raises(DecodeErrors) as raised:
        decode(parse(text, "in.yaml"))
    (error,) = raised.value.errors
    assert isinstance(error, DecodeError)
    return str(error)


@pytest.mark.parametrize("amount", ["<<CPU>>", '"${CPU}"', "$CPU", '"{{ .Values.cpu }}"'])
def test_a_value_that_cannot_be_read_says_that_it_was_left_open(amount: str) -> None:
    """The place, what is expected and what came are said as always."""
    said = failed(POOL % amount)

    assert said.startswith("in.yaml:5:")
    assert "expected a quantity" in said
    assert "is a placeholder that was left open: fill it in before the manifest is used" in said


@pytest.mark.parametrize(
    "text, hint",
    [
        ("kind: Pod\nmetadata: {name: ${NAME}}\n", "${NAME} is a placeholder that was left open"),
        ("kind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n", "render it first, with helm template CHART"),
        ("kind: Pod\nmetadata:\n{{- if .x }}\n  name: a\n{{- end }}\n", "render it first, with helm template CHART"),
    ],
)
def test_what_is_no_yaml_by_a_placeholder_says_so(text: str, hint: str) -> None:
    """Where the line on which reading stopped has one, or the text is a chart's."""
    assert hint in failed(text)


def test_a_placeholder_that_the_api_would_take_is_found_by_lint() -> None:
    """Labels, names, values of selectors, and keys; not what shells and other programs expand."""
    found = looked(POD % ("a", '"{{ .Values.key }}"', '"${AZ}"', "1")).findings
    image = looked(POD.replace("image: app", "image: <<IMAGE>>") % ("a", "a", "b", "1")).findings

    assert {"the key {{ .Values.key }} was left open"} <= {each.message for each in found if each.code == "KL088"}
    assert ["spec.containers[0].image: <<IMAGE>> was left open"] == [e.message for e in image if e.code == "KL088"]
    assert "KL088" not in codes(looked(POD % ("a", "a", "b", "1")))
    assert "KL011" not in codes(looked(POD % ("a", "a", '"<AZ>"', "1")))
