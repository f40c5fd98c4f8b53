"""`kerf lint` as people and programs call it: forms, exit codes, files that are mended."""

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.cli.canned import kubeconfig, serving
from tests.cli.program import POOL_000, kerf
from tests.lint.test_cases import case

FINDING = "limit cpu 10 holds 1 x g5.2xlarge (8 cpu) and no second node"


@pytest.fixture
def unquoted(tmp_path: Path) -> Path:
    """A pool whose label is no text."""
    path = tmp_path / "pool.yaml"
    path.write_text(case("KL001", "fires"), encoding="utf-8")
    return path


def test_findings_are_exit_3_and_nothing_is_exit_0() -> None:
    """As of every command: done, and something needs a look."""
    assert 3 == kerf("lint", "-f", POOL_000).returncode
    assert 0 == kerf("lint", "-f", POOL_000, "--severity", "error").returncode


def test_a_file_that_cannot_be_read_is_exit_2_and_hides_no_other(tmp_path: Path) -> None:
    """Its place is told on stderr; the findings of the others are printed."""
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [\n", encoding="utf-8")
    result = kerf("lint", str(broken), POOL_000, str(tmp_path / "missing.yaml"))

    assert 2 == result.returncode
    assert FINDING in result.stdout
    assert [f"{broken}:2:1", str(tmp_path / "missing.yaml")] == [
        line.split(": ")[1] for line in result.stderr.splitlines()
    ]


def test_files_are_named_with_and_without_a_flag() -> None:
    """A hook appends names; -f is kubectl's. Standard input has a place of its own."""
    text = Path(POOL_000).read_text(encoding="utf-8")

    assert kerf("lint", "-f", POOL_000).stdout == kerf("lint", POOL_000).stdout
    both = kerf("lint", POOL_000, "-f", str(Path(POOL_000).parent), "--select", "KL012", "-o", "json").data
    assert [POOL_000] == [found["file"] for found in both["findings"]]
    assert f"stdin:14:10  warning   KL012  NodePool gpu-pool-1  {FINDING}" in kerf("lint", "-f", "-", stdin=text).stdout


def test_json_has_all_that_the_table_has() -> None:
    """Each finding with its place, object, field, message, hint and page."""
    (found,) = kerf("lint", POOL_000, "--select", "KL012", "-o", "json").data["findings"]

    assert {
        "code": "KL012",
        "name": "limit-holds-one-node",
        "severity": "warning",
        "file": POOL_000,
        "line": 14,
        "column": 10,
        "object": "NodePool gpu-pool-1",
        "path": "spec.limits.cpu",
        "message": FINDING,
        "hint": 'cpu: "40" holds 5 of them; `nodes: 1` says that one is meant',
        "fixable": False,
        "page": "docs/reference/lint.md#kl012",
    } == found


def test_sarif_has_what_code_scanning_needs(tmp_path: Path) -> None:
    """The fields that its schema requires, rules by index, suppressed findings marked, errors as notifications."""
    idle = tmp_path / "with space.yaml"
    idle.write_text(case("KL004", "passes"), encoding="utf-8")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [\n", encoding="utf-8")
    log = kerf("lint", POOL_000, str(idle), str(broken), "-o", "sarif").data

    assert "2.1.0" == log["version"]
    (run,) = log["runs"]
    known = run["tool"]["driver"]["rules"]
    assert "kerf lint" == run["tool"]["driver"]["name"]
    assert all(known[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert all(result["message"]["text"] for result in run["results"])
    assert {"error", "warning", "note"} >= {result["level"] for result in run["results"]}
    limit = next(result for result in run["results"] if result["ruleId"] == "KL012")
    assert {
        "physicalLocation": {
            "artifactLocation": {"uri": POOL_000},
            "region": {"startLine": 14, "startColumn": 10},
        },
        "logicalLocations": [{"fullyQualifiedName": "NodePool gpu-pool-1"}],
    } == limit["locations"][0]
    suppressed = [result for result in run["results"] if "suppressions" in result]
    assert [("KL040", idle.as_uri())] == [
        (r["ruleId"], r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) for r in suppressed
    ]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    assert str(broken) in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_annotations_of_github_are_one_line_each() -> None:
    """Line breaks and separators are escaped as its runner reads them."""
    result = kerf("lint", POOL_000, "--select", "KL012", "-o", "github")
    hint = 'cpu: "40" holds 5 of them; `nodes: 1` says that one is meant'

    at = f"file={POOL_000},line=14,col=10,title=KL012 NodePool gpu-pool-1"
    assert f"::warning {at}::{FINDING}%0A{hint}\n" == result.stdout


def test_fix_writes_what_diff_shows(unquoted: Path) -> None:
    """Diff writes nothing. A file that is mended has the same mode, and a link still leads to it."""
    before = unquoted.read_text(encoding="utf-8")
    unquoted.chmod(0o640)
    link = unquoted.with_name("link.yaml")
    link.symlink_to(unquoted)

    shown = kerf("lint", str(link), "--diff")
    assert 3 == shown.returncode
    assert '-      labels: {gpu: on}\n+      labels: {gpu: "on"}\n' in shown.stdout
    assert before == unquoted.read_text(encoding="utf-8")

    written = kerf("lint", str(link), "--fix")
    assert 0 == written.returncode, written.stdout
    assert "note: 1 file fixed\n" == written.stderr
    assert before.replace("gpu: on", 'gpu: "on"') == unquoted.read_text(encoding="utf-8")
    assert link.is_symlink()
    assert 0o640 == unquoted.stat().st_mode & 0o777
    assert [] == [name for name in os.listdir(unquoted.parent) if name.startswith(".")]

    again = kerf("lint", str(link), "--diff")
    assert (0, "") == (again.returncode, again.stdout)


def test_fix_needs_files() -> None:
    """Standard input and a cluster cannot be written."""
    assert (2, True) == ((run := kerf("lint", "-f", "-", "--fix")).returncode, "give some with -f" in run.stderr)
    assert 2 == kerf("lint", "--diff").returncode


def test_without_files_a_cluster_is_looked_at(tmp_path: Path) -> None:
    """Its objects are named instead of places; what a controller has made is not told twice."""
    pool = yaml.safe_load(Path(POOL_000).read_text(encoding="utf-8"))
    pool["metadata"]["uid"] = "u1"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u2", "controller": True}
    metadata = {"name": "web", "namespace": "default", "uid": "u3", "ownerReferences": [owner]}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "main"}]}}
    answers: dict[str, tuple[int, object]] = {
        "/apis/karpenter.sh/v1/nodepools": (200, listed("NodePool", pool)),
        "/api/v1/pods": (200, listed("Pod", pod)),
        "/apis": (200, {"groups": []}),
    }
    with serving(answers) as server:
        result = kerf("lint", "--kubeconfig", kubeconfig(tmp_path, server), "--severity", "warning")

    assert 3 == result.returncode, result.stderr
    assert f"cluster  warning   KL012  NodePool gpu-pool-1  {FINDING}\n" in result.stdout
    assert "1 finding: 1 warning (" in result.stdout


def listed(kind: str, item: object) -> dict[str, object]:
    """A list as a server gives it."""
    version = "karpenter.sh/v1" if kind == "NodePool" else "v1"
    return {"kind": f"{kind}List", "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": [item]}


def test_explain_prints_the_text_of_the_page() -> None:
    """And says which codes there are for one that is none."""
    told = kerf("lint", "--explain", "kl012")

    assert told.stdout.startswith("KL012 limit-holds-one-node (warning)\n\nA limit of the pool can never hold a second")
    assert 2 == kerf("lint", "--explain", "KL999").returncode


def test_the_hook_calls_what_exists() -> None:
    """pre-commit runs the entry with the names of files behind it."""
    hooks = Path(".pre-commit-hooks.yaml").read_text(encoding="utf-8")

    assert "entry: kerf lint" in hooks
    assert "require_serial: true" in hooks


def test_json_of_a_clean_input_is_whole() -> None:
    """No findings are an empty list, not nothing."""
    result = kerf("lint", POOL_000, "--severity", "error", "-o", "json")

    assert [] == json.loads(result.stdout)["findings"]
