"""Where a suppression stands, and what becomes of one that does nothing."""

import pytest

from tests.lint.looking import codes, looked, only

POD = """apiVersion: v1
kind: Pod
metadata:
  name: idle
  annotations: {%s}
spec:
  containers:
    %s
    - name: main    %s
"""


def pod(annotation: str = "", above: str = "# nothing", behind: str = "") -> str:
    """A pod that requests nothing; the finding is on its container."""
    return POD % (annotation, above, behind)


@pytest.mark.parametrize(
    "text",
    [
        pod(above="# kerf-lint: ignore KL040 it is a test"),
        pod(above="# kerf-lint: ignore KL012, KL040\n    # why: a test").replace("KL012, ", ""),
        pod(behind="# kerf-lint: ignore KL040"),
        pod(annotation="kerf.dev/lint-ignore: 'KL040: it is a test'"),
        "# A header.\n\n# kerf-lint: ignore KL040\n---\n" + pod(),
    ],
    ids=["above", "above, with another comment between", "behind", "annotation", "file"],
)
def test_a_suppression_covers_its_line_its_object_or_its_file(text: str) -> None:
    """It is used, so that nothing is left to say."""
    found = looked(text)

    assert [] == codes(found)
    assert ["KL040"] == [finding.code for finding in found.suppressed]


def test_several_codes_stand_in_one_comment() -> None:
    """The one that is not found is told by itself."""
    found = looked(pod(behind="# kerf-lint: ignore KL040,KL012 both"))

    assert ["KL004"] == codes(found)
    assert "a suppression of KL012, which is not found in line 9" == only(found, "KL004").message


def test_a_suppression_at_another_line_is_unused() -> None:
    """It is a finding at its own place, and the other finding stays."""
    found = looked("kind: Pod    # kerf-lint: ignore KL040\n" + pod().replace("kind: Pod\n", ""))

    assert [("KL004", "input.yaml:1:14"), ("KL040", "input.yaml:9:7")] == [(f.code, f.place) for f in found.findings]


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("# kerf-lint: ignore KL999", "a suppression of KL999, which is no rule"),
        ("# kerf-lint: ignore everything", "a suppression that cannot be read: everything"),
        ("# kerf-lint: off", "a suppression that cannot be read: off"),
        ("# kerf-lint: ignore", "a suppression that cannot be read: no code"),
    ],
)
def test_a_suppression_of_no_rule_is_reported(comment: str, told: str) -> None:
    """Otherwise a typing error would switch off nothing, and nobody would know."""
    assert told == only(looked(pod(above=comment)), "KL005").message


def test_findings_about_suppressions_cannot_be_suppressed() -> None:
    """Or one could be hidden by the next."""
    found = looked("# kerf-lint: ignore KL004\n" + pod(behind="# kerf-lint: ignore KL040"))

    assert ["KL004"] == codes(found)
