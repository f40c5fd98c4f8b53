"""Each rule has a manifest that fires it, one that does not, and a section on the page of rules."""

from pathlib import Path

import pytest

from kerf.lint.fixes import fixed
from kerf.lint.registry import PAGE
from kerf.lint.rules import rules
from kerf.lint.rules.own import INTERNAL
from tests.lint.looking import codes, looked
from tools.document_lint import ROOT, page

CASES = Path(__file__).parent / "cases"
RULES = [code for code in rules() if code != INTERNAL]
FIXABLE = [code for code, rule in rules().items() if rule.is_fixable]


def case(code: str, name: str) -> str:
    """The manifest of a case."""
    return (CASES / code / f"{name}.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", RULES)
def test_a_rule_fires_where_it_should_and_nowhere_else(code: str) -> None:
    """Both manifests differ in what the rule is about; its text stands on the page under its code."""
    assert code in codes(looked(case(code, "fires")))
    assert code not in codes(looked(case(code, "passes")))
    assert f"\n## {code}\n" in page()


@pytest.mark.parametrize("code", FIXABLE)
def test_a_fix_fixes_its_finding_and_nothing_is_left_to_fix(code: str) -> None:
    """Lines that are not mended are the same bytes, and mending twice changes nothing."""
    before = looked(case(code, "fires"))

    after = fixed(case(code, "fires"), before.findings, before.subjects)
    again = looked(after.text)

    assert 1 == after.applied
    assert code not in codes(again)
    assert after.text == fixed(after.text, again.findings, again.subjects).text
    changed = set(case(code, "fires").splitlines()) ^ set(after.text.splitlines())
    assert 2 == len(changed)


def test_no_case_is_of_a_rule_that_is_no_more() -> None:
    """Codes are never given twice, so that a case without a rule is a rule that was lost."""
    assert [] == sorted({path.name for path in CASES.iterdir()} - set(RULES))


def test_the_page_of_rules_is_that_of_the_register() -> None:
    """`make generated` writes it."""
    assert page() == (ROOT / PAGE).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "labels, said",
    [
        ("{kerf.dev/pod-group: g}", "expected a number of pods beside kerf.dev/pod-group, got none; the group is held"),
        ('{kerf.dev/pod-group: g, kerf.dev/pod-group-min: "x"}', "expected a number of pods, 1 or more, got 'x'"),
        ('{kerf.dev/pod-group-min: "2"}', "kerf.dev/pod-group-min without the label kerf.dev/pod-group does nothing"),
        ('{kerf.dev/pod-group: g, kerf.dev/pod-group-min: "9"}', "needs 9 pods, and its Jobs run at most 8 at once"),
        ('{kerf.dev/pod-group: g, kerf.dev/pod-group-min: "8"}', ""),
    ],
)
def test_numbers_of_groups(labels: str, said: str) -> None:
    """Two Jobs of four pods are one group; a number that they can reach together is well."""
    job = """apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  parallelism: 4
  template:
    metadata: {labels: %s}
    spec: {restartPolicy: Never, containers: [{name: main, resources: {requests: {cpu: 1}}}]}
"""
    found = [
        each for each in looked("---\n".join(job % (name, labels) for name in "ab")).findings if each.code == "KL065"
    ]

    assert (2 if said else 0) == len(found)
    assert all(said in each.message for each in found)
