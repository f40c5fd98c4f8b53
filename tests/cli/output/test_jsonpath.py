"""kubectl's JSONPath templates, as `kubectl get -o jsonpath` reads them."""

from typing import Any

import pytest

from kerf.cli.output.jsonpath import FieldPath, FieldTemplate
from kerf.errors import InputError

NODES: dict[str, Any] = {
    "kind": "List",
    "items": [
        {"node": "a", "gpus": 0, "labels": {"karpenter.sh/nodepool": "cpu"}, "pods": ["x", "y"], "claim": None},
        {"node": "b", "gpus": 2, "labels": {"karpenter.sh/nodepool": "gpu"}, "pods": [], "claim": "c"},
        {"node": "d", "gpus": 4, "labels": {}, "pods": ["z"], "claim": "e"},
    ],
}


@pytest.mark.parametrize(
    "template, text",
    [
        ("{.kind}", "List"),
        ("{$.kind}", "List"),
        (".kind", "List"),
        ("kind", "List"),
        ("{['kind']}", "List"),
        ("{.items[*].node}", "a b d"),
        ("{.items[0].node} and {.items[-1].node}", "a and d"),
        ("{.items[0:2].node}", "a b"),
        ("{.items[::2].node}", "a d"),
        ("{.items[0,2].node}", "a d"),
        ("{.items[9].node}{.nothing}", ""),
        ("{.items[*].claim}", " c e"),
        ("{.items[0]['node','gpus']}", "a 0"),
        ("{.items[*].labels.karpenter\\.sh/nodepool}", "cpu gpu"),
        ("{..node}", "a b d"),
        ("{.items[1].labels}", '{"karpenter.sh/nodepool":"gpu"}'),
        ("{.items[0].labels.*}", "cpu"),
        ("{.items[?(@.gpus>0)].node}", "b d"),
        ("{.items[?(@.gpus >= 4)].node}", "d"),
        ("{.items[?(@.node=='b')].gpus}", "2"),
        ('{.items[?(@.node!="b")].gpus}', "0 4"),
        ("{.items[?(@.pods[0])].node}", "a d"),
        ("{.items[?(@.node>0)].node}", ""),
        ('{range .items[*]}{.node}{"\\t"}{.gpus}{"\\n"}{end}', "a\t0\nb\t2\nd\t4\n"),
        ("{range .items[*]}[{range .pods[*]}{@}{end}]{end}{.kind}", "[xy][][z]List"),
        ("{range .none[*]}{.node}{end}end", "end"),
        ("{range .items[*]}{$.kind}{end}", "ListListList"),
    ],
)
def test_a_template_says_what_kubectl_says(template: str, text: str) -> None:
    """Names, wildcards, indexes, slices, unions, descent, filters, ranges and quoted text."""
    assert text == FieldTemplate(template, "-o jsonpath").of(NODES)


@pytest.mark.parametrize(
    "template", ["{.items[}", "{.items[x]}", "{.a", "{.items[?(@.gpus>)]}", "{range .items[*]}", "{end}", "{.a b}"]
)
def test_what_is_no_template_is_refused_with_its_flag(template: str) -> None:
    """Before anything is printed."""
    with pytest.raises(InputError, match=r"^-o jsonpath: expected "):
        FieldTemplate(template, "-o jsonpath").of(NODES)


def test_depth_is_no_limit() -> None:
    """A value of a thousand levels is descended without a deep stack."""
    value: Any = {"leaf": 1}
    for _ in range(5000):
        value = {"a": value}

    assert [1] == FieldPath("..leaf", "-o jsonpath").found(value)
