"""Edits that leave everything else of a file as it is."""

import pytest
from hypothesis import given

from kerf.lint.fixes import fixed
from tests.examples import examples
from tests.lint.disturbed import disturbed
from tests.lint.looking import looked

POD = """# A comment before.
apiVersion: v1
kind: Pod          # what it is
metadata: {name:   spaced}
spec:
  containers:
    -   name: "ünï"   # two names
        resources:
            requests:
              nvidia.com/gpu: %s   # asked
              cpu: 1
"""


def mended(text: str) -> str:
    """The text with every fix of one look."""
    found = looked(text)
    return fixed(text, found.findings, found.subjects).text


@pytest.mark.parametrize(("line_break", "amount"), [("\n", "1"), ("\r\n", "1"), ("\n", '"1"')])
def test_a_limit_is_added_in_the_style_of_the_file(line_break: str, amount: str) -> None:
    """Indentation, ends of lines, comments and quotes stay."""
    text = (POD % amount).replace("\n", line_break)

    added = f"            limits: {{nvidia.com/gpu: {amount}}}{line_break}            requests:"

    assert text.replace("            requests:", added) == mended(text)


def test_a_limit_goes_into_the_limits_there_are() -> None:
    """Before the first of them, in a block as in braces."""
    block = (POD % 1).replace(
        "            requests:", "            limits:\n              memory: 1Gi\n            requests:"
    )
    braces = (POD % 1).replace("            requests:", "            limits: {memory: 1Gi}\n            requests:")

    assert "            limits:\n              nvidia.com/gpu: 1\n              memory: 1Gi\n" in mended(block)
    assert "            limits: {nvidia.com/gpu: 1, memory: 1Gi}\n" in mended(braces)


def test_a_document_in_the_middle_of_a_stream_is_found() -> None:
    """Lines count from the beginning of the file."""
    text = "a: 1\n---\n# two\n" + POD % 1 + "---\n" + POD % 1

    assert 2 == mended(text).count("limits: {nvidia.com/gpu: 1}")


def test_two_edits_of_one_place_wait_for_each_other() -> None:
    """One look mends one of them, the next the other."""
    text = (POD % 1).replace("              cpu: 1\n", "              amd.com/gpu: 1\n")

    once = mended(text)

    assert 1 == once.count("limits: {")
    assert "limits: {amd.com/gpu: 1, nvidia.com/gpu: 1}" in mended(once)


def test_a_fix_that_would_break_the_file_is_left_out() -> None:
    """A label under both of its names would be there twice."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"
    text += "  nodeSelector: {beta.kubernetes.io/os: linux, kubernetes.io/os: linux}\n"
    text += "  containers: [{name: a, resources: {requests: {cpu: 1}}}]\n"

    assert ["KL015"] == [finding.code for finding in looked(text).findings]
    assert text == mended(text)


@pytest.mark.parametrize(("written", "expected"), [("4Gi", '"4096"'), ("'512Mi'", '"512"'), ("1.5Gi", '"1536"')])
def test_memory_of_a_card_becomes_mib(written: str, expected: str) -> None:
    """As a number in quotes, whatever it was in."""
    pod = (POD % 1).replace("requests:", "limits:").replace("cpu: 1", f"nvidia.com/gpumem: {written}")

    assert pod.replace(written, expected) == mended(pod)


@pytest.mark.parametrize("written", ["4G", "100Ki"])
def test_memory_that_is_no_whole_number_of_mib_is_left_to_people(written: str) -> None:
    """Rounding would be a guess."""
    pod = (POD % 1).replace("requests:", "limits:").replace("cpu: 1", f"nvidia.com/gpumem: {written}")

    assert "KL033" in [finding.code for finding in looked(pod).findings]
    assert pod == mended(pod)


def test_what_a_server_writes_of_a_whole_number_is_no_unit() -> None:
    """It shows 12000 as `12k`, in limits and in requests (G6)."""
    pod = (POD % 1).replace("requests:", "limits:").replace("cpu: 1", "nvidia.com/gpumem: 12k")

    assert "KL033" not in [finding.code for finding in looked(pod).findings]


def test_what_stands_in_limits_and_requests_is_said_once_and_corrected_in_both() -> None:
    """A server copies the limit into the request."""
    lines = [f"            {kind}: {{nvidia.com/gpumem: 4Gi}}\n" for kind in ("limits", "requests")]
    pod = POD[: POD.index("            requests:")] + "".join(lines)

    assert ["KL033"] == [finding.code for finding in looked(pod).findings if finding.code == "KL033"]
    assert pod.replace("4Gi", '"4096"') == mended(pod)


@examples()
@given(disturbed())
def test_fixes_come_to_an_end_and_lose_nothing(text: str) -> None:
    """Of any manifest: as many objects as before, as many documents that can be read, and nothing left to mend."""
    before = looked(text)
    for _ in range(10):
        text, last = mended(text), text
        if text == last:
            break
    after = looked(text)

    assert last == text
    assert (before.objects, len(before.errors)) == (after.objects, len(after.errors))


def test_json_is_not_edited() -> None:
    """The finding is there, a fix is not offered."""
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a",'
    text += ' "resources": {"requests": {"nvidia.com/gpu": 1}}}]}}'
    found = looked(text, "pod.json")

    assert ["KL030"] == [finding.code for finding in found.findings]
    assert text == fixed(text, found.findings, found.subjects).text
