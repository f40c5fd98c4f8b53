"""Input that cannot be used: exit 2 with its place, or a pod that is `invalid`; never a traceback."""

import json
from pathlib import Path

import pytest

from tests.cli.program import POOL_000, POOL_003, POOL_004, ROOT, WORKLOAD_000, WORKLOAD_003, files, kerf

POOL = (ROOT / POOL_000).read_text(encoding="utf-8")
WORKLOAD = (ROOT / WORKLOAD_000).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text, told",
    [
        ("a: [1,\nb: 2", "stdin:3:1: expected YAML"),
        (POOL.replace("cpu: 10", "cpu: -1"), "stdin:14:10: spec.limits.cpu: expected"),
        (POOL + "\nkind: NodePool\n", "stdin:16:1: expected every key once"),
        (POOL.replace("NodePool", "Provisioner").replace("karpenter.sh/v1", "karpenter.sh/v1alpha5"), "`kerf migrate`"),
        (POOL + "\n---\n" + POOL, "metadata.name: expected one NodePool of this name"),
        ("{apiVersion: v1, kind: List, items: x}", "stdin:1:37: items: expected a list of objects"),
    ],
)
def test_a_document_that_cannot_be_read_is_two(text: str, told: str) -> None:
    """No plan is made; place, path, expected and got are told."""
    done = kerf("plan", "-f", "-", stdin=text)

    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["List", "PodList"])
@pytest.mark.parametrize("command", ["plan", "lint", "nodes", "explain pod/a", "snapshot", "migrate"])
def test_an_item_that_is_no_object_is_two(command: str, kind: str) -> None:
    """Of a list in JSON, `null` among them."""
    text = json.dumps({"apiVersion": "v1", "kind": kind, "items": [None, 3, "x"]})
    done = kerf(*command.split(), "-f", "-", stdin=text)

    assert 2 == done.returncode
    assert 3 == done.stderr.count("error: stdin:1:"), done.stderr


@pytest.mark.parametrize("text", ["", "\n", "# a comment\n", "---\n---\n", "{apiVersion: v1, kind: List, items: []}"])
@pytest.mark.parametrize(
    "command", ["plan", "explain", "gpus", "nodes", "shadow", "doctor", "snapshot", "lint", "migrate"]
)
def test_an_input_without_an_object_is_two(command: str, text: str) -> None:
    """A command that failed leaves an empty file: that nothing waits there would be an answer about no cluster."""
    done = kerf(command, "-f", "-", stdin=text)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: stdin: expected objects of Kubernetes, got none (hint: ")


def test_an_empty_file_beside_another_is_no_error() -> None:
    """What was read is not empty."""
    assert 0 == kerf("plan", "-f", "-", *files(POOL_000), stdin="").returncode


def test_one_bad_document_does_not_hide_the_next() -> None:
    """Every error of the input is told at once, each on a line of its own."""
    bad = WORKLOAD.replace("apps/v1", "apps/v1/v2")
    done = kerf("plan", "-f", "-", stdin=f"{bad}\n---\n{POOL.replace('cpu: 10', 'cpu: -1')}")

    assert 2 == len(done.stderr.splitlines())
    assert all(line.startswith("error: stdin:") for line in done.stderr.splitlines())


def test_a_pod_that_makes_no_sense_is_invalid_and_the_others_are_planned() -> None:
    """`gpumem: 4Gi` (HAMi drops it): stage `invalid`, exit 3, nothing is bought for it."""
    bad = (ROOT / WORKLOAD_003).read_text(encoding="utf-8").replace("nvidia.com/gpumem: 1000", "nvidia.com/gpumem: 4Gi")
    bad = bad.replace("replicas: 0", "replicas: 1")
    done = kerf("plan", "-f", "-", *files(POOL_003), "-o", "json", stdin=bad)

    assert 3 == done.returncode
    assert [("default/gpu-inference-0", "invalid")] == [(u["pod"], u["stage"]) for u in done.data["unplaced"]]
    assert [] == done.data["launches"]


def test_a_request_above_its_limit_is_invalid() -> None:
    """The API server would refuse it."""
    bad = WORKLOAD.replace('requests: {nvidia.com/gpu: "1"}', "requests: {cpu: 2}").replace(
        'limits: {nvidia.com/gpu: "1"}', "limits: {cpu: 1}"
    )
    done = kerf("plan", "-f", "-", *files(POOL_000), "-o", "json", stdin=bad)

    assert (3, {"invalid"}) == (done.returncode, {u["stage"] for u in done.data["unplaced"]})


def test_an_unknown_instance_type_is_reported_with_the_nearest() -> None:
    """A slip in a pool's requirement is warned about, and each pod says that nothing is offered."""
    done = kerf("plan", "-f", "-", *files(WORKLOAD_000), stdin=POOL.replace("g5.2xlarge", "g5.2xlrge"))

    assert 3 == done.returncode
    assert "warning: NodePool gpu-pool-1: unknown instance type g5.2xlrge; is g5.2xlarge meant?\n" == done.stderr
    assert "unknown instance type g5.2xlrge" in done.stdout


def test_without_a_pool_each_pod_says_so() -> None:
    """Zero NodePools: exit 3, no error."""
    done = kerf("plan", *files(WORKLOAD_000), "-o", "json")

    assert 3 == done.returncode
    assert ["there is no NodePool, so nothing can be bought"] * 5 == [u["reason"] for u in done.data["unplaced"]]


def test_two_clouds_are_refused() -> None:
    """Prices of two currencies are never compared."""
    done = kerf("plan", *files(POOL_000, POOL_004))

    assert (2, "") == (done.returncode, done.stdout)
    assert "expected one provider, because a plan has one currency" in done.stderr


@pytest.mark.parametrize(
    "flags, told",
    [
        (("-f", "nowhere.yaml"), "nowhere.yaml: expected a file that can be read"),
        (("-f", "examples"), "expected a file named *.yaml, *.yml or *.json, got none (hint: -R reads"),
        (("-f", POOL_000, "--catalog", "nowhere.json"), "--catalog nowhere.json: expected aws[:REGION]"),
        (("-f", POOL_000, "--region", "mars-1"), "mars-1"),
        (("-f", POOL_000, "--now", "noon"), "--now noon: expected an instant such as 2026-01-05T12:00:00Z"),
        (("-f", POOL_000, "--replicas", "deployment/default/x=1"), "expected one of the workloads there (none)"),
        (("-f", WORKLOAD_000, "--replicas", "deployment/default/gpu-app=x"), "expected KIND/NAMESPACE/NAME=NUMBER"),
    ],
)
def test_a_flag_that_cannot_be_followed_is_two(flags: tuple[str, ...], told: str) -> None:
    """The flag, what was expected, and what came."""
    done = kerf("plan", *flags)

    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr


def test_a_scenario_with_an_unknown_object_is_two(tmp_path: Path) -> None:
    """`kerf simulate` tells the place of a slip in a scenario."""
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "apiVersion: kerf.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec:\n  duration: 1m\n  timeline:\n"
        "    - {at: 1s, delete: {kind: Pod, name: default/nobody}}\n"
    )
    done = kerf("simulate", str(path))

    assert 2 == done.returncode
    assert f"{path}:7:" in done.stderr
    assert "Traceback" not in done.stderr
