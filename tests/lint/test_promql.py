"""Metrics, functions and labels of expressions, as Prometheus reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.lint.promql import Selector, selectors


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("up", [Selector("up", "")]),
        ("sum by (node) (rate(x_total[5m]))", [Selector("x_total", "rate")]),
        ("sum(rate(x_total[5m])) without (pod) / 2", [Selector("x_total", "rate")]),
        ("a * on (pod) group_left (node) b offset 5m", [Selector("a", ""), Selector("b", "")]),
        ("histogram_quantile(0.9, sum by (le) (rate(d_bucket[5m])))", [Selector("d_bucket", "rate")]),
        (
            'x{resource="nvidia.com/gpu",a!~"b(c)"} > bool 1',
            [Selector("x", "", (("resource", "nvidia.com/gpu"), ("a", "b(c)")))],
        ),
        ('{__name__="x", a="b"}', [Selector("x", "", (("__name__", "x"), ("a", "b")))]),
        ("max_over_time(deriv(x[1m])[5m:30s]) # not y", [Selector("x", "deriv")]),
        ("rate((x)[5m])", [Selector("x", "rate")]),
        ("time() - y unless z", [Selector("y", ""), Selector("z", "")]),
        ("x{", [Selector("x", "")]),
        ("", []),
    ],
)
def test_metrics_are_not_functions_or_labels(expression: str, expected: list[Selector]) -> None:
    """The innermost function around a metric is the one that counts."""
    assert expected == list(selectors(expression))


@given(st.text(alphabet="abc_(){}[]=\"\\' by,sum5m~!", max_size=60))
def test_no_text_is_refused(expression: str) -> None:
    """Whatever somebody wrote: reading ends, and each metric is a word of the text."""
    assert all(selector.metric.strip() for selector in selectors(expression))
