"""`kerf explain` of workloads and of pods by label: where they are, what they ask and use, what would help."""

import json
from pathlib import Path

import pytest

from tests.cli.program import files, kerf

POOL, RUNNING = "examples/002-batch/pool.yaml", "examples/002-batch-running"
PILE = files(POOL, RUNNING)
JOB = ("explain", "job/dagster-run", "-n", "data")


def test_25_pods_without_requests_on_one_busy_node() -> None:
    """002-1, 002-2, 002-3: on one node, requests 0, use 97 %, scheduled, so nothing to buy; and who decides."""
    done = kerf(*JOB, *PILE)

    assert 0 == done.returncode
    for told in (
        "Job data/dagster-run: 25 pods\n  data/dagster-run-2bx7f and 24 more  on node ip-10-0-0-1\n",
        "25 pods run and ask together 0 cpu and 0 memory; they use 3645m cpu",
        "ip-10-0-0-1  m5.xlarge  25    0 %        97 %      0 %           80 %",
        "kube-scheduler has placed them all: no pod waits, so an autoscaler has nothing to buy",
        "It goes by requests and not by use, and no controller moves pods that run",
        "overloaded: node ip-10-0-0-1 uses 97 % of its cpu and is asked for 0 %",
    ):
        assert told in done.stdout


def test_the_node_says_that_it_is_overloaded_and_by_whom() -> None:
    """And says nothing of it where its use is not known."""
    told = kerf("explain", "node/ip-10-0-0-1", *PILE).stdout
    item = kerf("explain", "node/ip-10-0-0-1", *PILE, "-o", "json").data["items"][0]
    unknown = kerf("explain", "node/ip-10-0-0-1", *files(POOL, f"{RUNNING}/cluster.yaml"))

    assert "  overloaded: it uses 97 % of its cpu and is asked for 0 %\n" in told
    assert (
        "    25 pods of Job data/dagster-run ask 0 cpu and use 3645m cpu; `kerf explain job/dagster-run -n data`"
        in told
    )
    assert (["cpu"], 97, 0) == (item["overloaded"], item["usedPercent"]["cpu"], item["requestedPercent"]["cpu"])
    assert "overloaded" not in unknown.stdout


def test_the_advice_is_a_patch_with_what_it_would_come_to() -> None:
    """002-4, 002-10: a request from use, as a patch that nobody applies; 002-12: seven nodes for 1.344."""
    advice = kerf(*JOB, *PILE, "-o", "json").data["items"][0]["advice"]

    assert {"cpu": "980m", "memory": "557Mi"} == advice["requests"]
    assert (7, 1.344, {"m5.xlarge": 7}, 4) == (
        advice["nodes"],
        advice["perHour"],
        advice["instanceTypes"],
        advice["podsPerNode"]["most"],
    )
    assert ("Job", "data", "dagster-run") == tuple(advice["patch"][key] for key in ("kind", "namespace", "name"))
    [container] = json.loads(advice["patch"]["patch"])["spec"]["template"]["spec"]["containers"]
    assert {"name": "my-container", "resources": {"requests": advice["requests"]}} == container


def test_the_settings_of_the_orchestrator_are_named() -> None:
    """002-5: what limits how many run at once."""
    done = kerf(*JOB, *PILE)

    assert "Dagster runs 25 pods at once" in done.stdout
    assert "concurrency.runs.max_concurrent_runs in dagster.yaml" in done.stdout
    [item] = kerf(*JOB, *PILE, "-o", "json").data["items"]
    assert item["orchestrators"][0]["requests"] in done.stdout
    assert ["m5.xlarge"] == [node["instanceType"] for node in item["nodes"]]


def test_limits_and_largest_type_of_the_pools_are_shown() -> None:
    """002-8, 002-9: what a pool still allows, and how large its nodes get."""
    [pool] = kerf(*JOB, *PILE, "-o", "json").data["items"][0]["nodePools"]

    assert ("batch", None, "m5.xlarge", {}, None) == tuple(
        pool[key] for key in ("nodePool", "refused", "largest", "limits", "nodesAllowed")
    )
    assert (
        "the largest type is m5.xlarge with 3920m cpu and 14162Mi memory; it has no limits" in kerf(*JOB, *PILE).stdout
    )


def test_a_selector_sums_up_its_pods() -> None:
    """Beside one item a pod; without usage it says so."""
    done = kerf("explain", "-l", "app=dagster-run", *files(POOL, f"{RUNNING}/cluster.yaml"), "-o", "json")

    assert 25 == len(done.data["items"])
    selection = done.data["selection"]
    assert (25, {}, None, 25) == (
        selection["count"],
        selection["requests"],
        selection["usage"],
        selection["nodes"][0]["pods"],
    )
    assert [{"kind": "Job", "namespace": "data", "name": "dagster-run"}] == selection["owners"]
    text = kerf("explain", "-l", "app=dagster-run", *files(POOL, f"{RUNNING}/cluster.yaml")).stdout
    assert text.startswith("pods with app=dagster-run: 25, made by 1 Job\n")
    assert "what they use is not known" in text


def test_pods_that_wait_are_shown_as_before() -> None:
    """002-7: what keeps them from a pool; nothing is said of who runs."""
    done = kerf("explain", "job/dagster-run", "-n", "data", *files("examples/002-batch"))

    assert "new node launch-0" in done.stdout
    assert "kube-scheduler has placed" not in done.stdout


def listed(*objects: dict[str, object]) -> str:
    """The objects as `kubectl get -o json` prints them."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def a_node_object(name: str) -> dict[str, object]:
    """Four cpus of which 3920m are for pods."""
    amounts = {"cpu": "3920m", "memory": "14Gi", "pods": "58"}
    labels = {"node.kubernetes.io/instance-type": "m5.xlarge", "kubernetes.io/hostname": name}
    status = {"capacity": {**amounts, "cpu": "4"}, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def a_pod_object(name: str, node: str, owner: tuple[str, str], labels: dict[str, str]) -> dict[str, object]:
    """A pod that runs and asks for 100m."""
    version = "apps/v1" if owner[0] == "StatefulSet" else "batch/v1"
    reference = {"apiVersion": version, "kind": owner[0], "name": owner[1], "uid": "u", "controller": True}
    metadata = {"name": name, "namespace": "data", "uid": name, "labels": labels, "ownerReferences": [reference]}
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"nodeName": node, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def a_usage(name: str, cpu: str) -> dict[str, object]:
    """What one pod was seen to use."""
    containers = [{"name": "main", "usage": {"cpu": cpu, "memory": "100Mi"}}]
    metadata = {"name": name, "namespace": "data"}
    at = {"timestamp": "2026-01-05T08:00:00Z", "window": "20s"}
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": metadata,
        **at,
        "containers": containers,
    }


def test_a_statefulset_that_asks_too_little_gets_the_most_that_was_seen() -> None:
    """On calm nodes; what it asks already is the lower bound."""
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    metadata = {"name": "db", "namespace": "data", "uid": "u"}
    pods = [a_pod_object(f"db-{n}", f"n{n}", ("StatefulSet", "db"), {"app": "db"}) for n in range(2)]
    text = listed(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec},
        a_node_object("n0"),
        a_node_object("n1"),
        *pods,
        a_usage("db-0", "300m"),
        a_usage("db-1", "501m"),
    )
    done = kerf("explain", "sts/db", "-n", "data", *files(POOL), "-f", "-", "-o", "json", stdin=text)
    [item] = done.data["items"]

    assert {"cpu": "200m"} == item["requests"]
    assert ([], {"cpu": "580m", "memory": "120Mi"}) == (item["overloaded"], item["advice"]["requests"])
    assert [("n0", 1), ("n1", 1)] == [(node["node"], node["pods"]) for node in item["nodes"]]
    assert "kubectl patch statefulset db -n data --type strategic" in (
        kerf("explain", "sts/db", "-n", "data", *files(POOL), "-f", "-", stdin=text).stdout
    )


def test_the_patch_raises_a_limit_that_is_lower_than_the_request() -> None:
    """Which an API server would refuse; a higher one stays out of it."""
    pod = a_pod_object("db-0", "n0", ("StatefulSet", "db"), {"app": "db"})
    [container] = pod["spec"]["containers"]  # type: ignore[index]
    container["resources"]["limits"] = {"cpu": "200m", "memory": "1Gi"}  # The memory requested follows it.
    text = listed(a_node_object("n0"), pod, a_usage("db-0", "501m"))
    selection = kerf("explain", "-l", "app=db", *files(POOL), "-f", "-", "-o", "json", stdin=text).data["selection"]
    patch = json.loads(selection["advice"]["patch"]["patch"])

    resources = {"requests": {"cpu": "580m"}, "limits": {"cpu": "580m"}}
    assert [{"name": "main", "resources": resources}] == patch["spec"]["template"]["spec"]["containers"]


def test_runs_that_are_a_job_each_are_summed_up_by_label() -> None:
    """002-5: Dagster makes one Job a run."""
    labels = {"dagster/job": "etl"}
    pods = [
        a_pod_object(f"dagster-run-{n}-x", "n0", ("Job", f"dagster-run-{n}"), {**labels, "dagster/run-id": str(n)})
        for n in range(12)
    ]
    text = listed(a_node_object("n0"), *pods)
    done = kerf("explain", "-l", "dagster/job=etl", *files(POOL), "-f", "-", stdin=text)

    assert "pods with dagster/job=etl: 12, made by 12 Jobs" in done.stdout
    assert "Dagster runs 12 pods of etl at once, made by 12 owners; to run fewer:" in done.stdout


@pytest.mark.parametrize(
    "labels, said",
    [
        ("{}", "suspended by spec.suspend"),
        (
            "{kueue.x-k8s.io/queue-name: night}",
            "suspended by spec.suspend; held by Kueue until queue night has quota for it",
        ),
    ],
)
def test_a_suspended_job_says_why_it_has_no_pods(tmp_path: Path, labels: str, said: str) -> None:
    """And by whom it is held, in both forms."""
    job = tmp_path / "job.yaml"
    job.write_text(
        f"""apiVersion: batch/v1
kind: Job
metadata: {{name: susp, labels: {labels}}}
spec:
  suspend: true
  parallelism: 4
  template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: x}}]}}}}
""",
        encoding="utf-8",
    )
    asked = ("explain", "job/susp", *files(POOL), "-f", str(job))

    assert f"Job default/susp: 0 pods\n  it is {said}\n" in kerf(*asked).stdout
    assert said == kerf(*asked, "-o", "json").data["items"][0]["suspended"]


def test_a_large_job_takes_a_few_lines() -> None:
    """Equal new nodes share a line, in which their number stands; of nodes that are there ten are named."""
    job = {"parallelism": 1000, "completions": 1000}
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "900m"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = {"name": "large", "namespace": "data"}
    large: dict[str, object] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**job, "template": template},
    }
    done = kerf("explain", "job/large", "-n", "data", *files(POOL), "-f", "-", stdin=listed(large))

    assert 10 > len(done.stdout.splitlines())
    assert "  data/large-0 and 999 more  250 new nodes, each: m5.xlarge" in done.stdout


def test_of_many_nodes_with_pods_ten_are_named() -> None:
    """And the rest is counted."""
    nodes = [a_node_object(f"n{n:02}") for n in range(13)]
    pods = [a_pod_object(f"db-{n:02}", f"n{n:02}", ("StatefulSet", "db"), {"app": "db"}) for n in range(13)]
    done = kerf("explain", "-l", "app=db", *files(POOL), "-f", "-", stdin=listed(*nodes, *pods))

    assert "data/db-09  on node n09" in done.stdout
    assert "  and 3 pods on 3 nodes more" in done.stdout
