"""Manifests of the cases with one value in the place of another."""

import yaml
from hypothesis import strategies as st

from kerf.lint.subject import value_at, walk
from tests.lint.test_cases import CASES

TEXTS = [path.read_text(encoding="utf-8") for path in sorted(CASES.rglob("*.yaml"))]
WORDS = ["", "x", "9" * 400, "1.2.3Gi", "-1", "0x10", "a/b/c", "{", "0 8 * * *", "nvidia.com/gpu", "up{", "true", "ünï"]
VALUES = st.sampled_from([None, 7, True, -1, 0.5, 10**30, [], {}, [None], {"a": None}, ["a", {}], *WORDS])


@st.composite
def disturbed(draw: st.DrawFn) -> str:
    """One of them, in block style or in braces."""
    documents = [each for each in yaml.safe_load_all(draw(st.sampled_from(TEXTS))) if each]
    changed = draw(st.sampled_from(documents))
    *before, last = draw(st.sampled_from([path for path, _ in walk(changed)]))
    value_at(changed, tuple(before))[last] = draw(VALUES)
    return yaml.safe_dump_all(documents, default_flow_style=draw(st.sampled_from([True, False])), allow_unicode=True)
