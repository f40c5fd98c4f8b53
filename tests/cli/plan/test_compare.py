"""002-12: `kerf plan --compare`, a load test on paper."""

import pytest

from tests.cli.program import files, kerf

BATCH = files("examples/002-batch")


def test_the_figures_of_document_002() -> None:
    """25 jobs on m5.xlarge: 9 nodes for 1.728 with 1 cpu each, 7 for 1.344 with 900m."""
    done = kerf("plan", *BATCH, "--compare", "cpu=1", "--compare", "cpu=900m", "-o", "json")

    assert 0 == done.returncode
    assert [({}, 1, 0.192), ({"cpu": "1"}, 9, 1.728), ({"cpu": "900m"}, 7, 1.344)] == [
        (item["requests"], item["nodes"], item["perHour"]) for item in done.data["items"]
    ]
    assert [{"instanceType": "m5.xlarge", "capacityType": "on-demand", "nodes": 7}] == (
        done.data["items"][2]["instanceTypes"]
    )
    assert {"least": 1, "most": 4} == done.data["items"][2]["podsPerNode"]


def test_several_resources_in_one_and_pods_that_wait() -> None:
    """A variant that leaves pods without a place says why, and the exit code says that one does."""
    done = kerf("plan", *BATCH, "--compare", "cpu=900m,memory=2Gi", "--compare", "cpu=8")

    assert 3 == done.returncode
    assert "cpu 900m, memory 2Gi  7 " in done.stdout
    assert "cpu 8:\n  data/dagster-run-0 and 24 more  resources: Insufficient cpu: needs 8 cpu" in done.stdout


def test_pods_that_run_are_not_compared_and_a_hint_says_how_they_would_be() -> None:
    """Where only pods with nodes are given; daemons are none of them."""
    done = kerf("plan", *files("examples/002-batch/pool.yaml", "examples/002-batch-running"), "--compare", "cpu=1")

    assert "so there is nothing to compare" in done.stderr
    assert "hint: 25 pods of it have a node: give their Job or Deployment without its pods, with -f" in done.stderr


def two_containers(init: str = "100m") -> str:
    """A Deployment of a container, a proxy, and an init container that asks for so much cpu."""
    asks = "resources: {{requests: {{cpu: {}}}}}".format
    return f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      initContainers: [{{name: load, image: x, {asks(init)}}}]
      containers: [{{name: main, image: x, {asks("1")}}}, {{name: proxy, image: x, {asks("100m")}}}]
"""


POOL = files("examples/002-batch/pool.yaml")


def test_a_container_is_named_before_its_resource() -> None:
    """The others stay as they are: 1 and 2 are 3, of which a node holds one."""
    done = kerf("plan", *POOL, "-f", "-", "--compare", "proxy:cpu=2,main:memory=1Gi", stdin=two_containers())
    asked = ("plan", *POOL, "-f", "-", "--compare", "proxy:cpu=2", "-o", "json")
    item = kerf(*asked, stdin=two_containers()).data["items"][1]

    assert "cpu 2 in proxy, memory 1Gi in main" in done.stdout
    assert ({}, {"proxy": {"cpu": "2"}}, 2) == (item["requests"], item["containers"], item["nodes"])
    assert "the first asks" not in done.stderr


def test_an_init_container_that_decides_is_named() -> None:
    """What is given for the others changes nothing then."""
    done = kerf("plan", *POOL, "-f", "-", "--compare", "cpu=500m", stdin=two_containers("3"))

    assert "note: cpu 500m: of 2 pods an init container asks for more, and decides" in done.stderr
    assert "decides" not in kerf("plan", *POOL, "-f", "-", "--compare", "cpu=500m", stdin=two_containers()).stderr


def test_a_container_that_no_pod_has_is_an_error() -> None:
    """With those that there are."""
    done = kerf("plan", *POOL, "-f", "-", "--compare", "prxy:cpu=1", stdin=two_containers())

    assert (2, "") == (done.returncode, done.stdout)
    assert "expected a container of a pod that waits (load, main, proxy), got 'prxy'" in done.stderr


def test_a_calendar_is_not_compared() -> None:
    """Each stands in place of a plan."""
    done = kerf("plan", *BATCH, "--compare", "cpu=1", "--calendar", "7d")

    assert (2, "") == (done.returncode, done.stdout)
    assert "--compare and --calendar: expected one of them" in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cpu", "expected RESOURCE=QUANTITY[,...]"),
        ("cpus=1", "expected cpu, memory, ephemeral-storage, hugepages-SIZE or DOMAIN/RESOURCE, got 'cpus'"),
        ("cpu=much", "expected a quantity such as 900m, 1.5 or 2Gi for cpu, got 'much'"),
        ("cpu=-1", "expected no negative quantity for cpu, got '-1'"),
        ("cpu=1,cpu=2", "expected each resource once, got cpu twice"),
    ],
)
def test_what_is_no_request_is_one_line(text: str, told: str) -> None:
    """With what was given; before anything is read."""
    done = kerf("plan", "-f", "no-such-file", "--compare", text)

    assert (2, "") == (done.returncode, done.stdout)
    assert [f"error: --compare {text}: {told}"] == [
        line[: len(f"error: --compare {text}: {told}")] for line in (done.stderr.splitlines())
    ]
