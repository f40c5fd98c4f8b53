"""Document 002 on a real control plane: 25 jobs pile up on one node, Kerf says so, and the fix spreads them.

A stand-in for metrics-server says what is used; kwok completes the pods of Jobs when they are told to end.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster, Json, cluster
from tests.controlplane.resource_metrics import ResourceMetrics
from tests.controlplane.test_live_commands import Reader
from tools.controlplane.server import Binaries

ENDS = "ends"
"""Label of a pod whose work is done."""
POLL_S = 1


def _stages(binaries: Binaries, folder: Path) -> Binaries:
    """kwok's stages, but a pod of a Job runs until it has the label."""
    for stage in Path(binaries.need("stages")).glob("*.yaml"):
        text = stage.read_text(encoding="utf-8")
        if "pod-complete" in stage.name:
            made = yaml.safe_load(text)
            ends = {"key": f'.metadata.labels["{ENDS}"]', "operator": "In", "values": ["true"]}
            made["spec"]["selector"]["matchExpressions"].append(ends)
            text = yaml.safe_dump(made)
        (folder / stage.name).write_text(text, encoding="utf-8")
    return replace(binaries, stages=folder)


class Story:
    """The cluster of the document, and what is used of it: `busy` nodes use 97 % of their cpu."""

    def __init__(self, made: Cluster) -> None:
        self.cluster, self.busy = made, True

    def nodes(self) -> dict[str, dict[str, str]]:
        """97 % of 3920m are 3802m, once all pods run."""
        is_busy = self.busy and 25 == len(self.running())
        return {name: {"cpu": "3802m" if is_busy else "400m", "memory": "9Gi"} for name in self.cluster.names("nodes")}

    def pods(self) -> dict[tuple[str, str], dict[str, str]]:
        """Each pod has its part."""
        return {("data", pod["metadata"]["name"]): {"cpu": "146m", "memory": "400Mi"} for pod in self.running()}

    def running(self) -> list[Json]:
        """The pods of the jobs."""
        return self.cluster.pods("Running", "data")

    def said(self, reason: str) -> list[Json]:
        """Events with a reason, wherever."""
        found = [event for space in ("default", "data") for event in self.cluster.plane.list("events", space)]
        return [event for event in found if event["reason"] == reason]

    def condition(self) -> Any:
        """Overloaded of the first claim."""
        return self.cluster.condition("nodeclaims", self.cluster.names("nodeclaims")[0], "Overloaded")


@pytest.fixture(scope="module")
def story(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Kerf runs, and looks at usage each second."""
    with cluster(_stages(binaries, tmp_path_factory.mktemp("stages"))) as made:
        told = Story(made)
        with ResourceMetrics(told.nodes, told.pods) as metrics:
            made.plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data"}}])
            made.plane.apply(metrics.registration("kube-system"))
            made.until(lambda: _is_served(made), "metrics.k8s.io is served")
            made.start(f"--usage-poll={POLL_S}s")
            made.apply("002-batch/pool.yaml")
            made.apply("002-batch/job.yaml")
            made.until(lambda: 25 == len(told.running()), "25 pods run")
            yield told


def _is_served(made: Cluster) -> bool:
    return made.plane.kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes", check=False).returncode == 0


def test_the_job_has_one_event_that_its_pods_overload_a_node(story: Story) -> None:
    """002-1: 25 pods on one node, nothing waits and nothing is bought; an event on the Job, and only one."""
    assert 1 == len(story.cluster.names("nodes")) == len(story.cluster.created_claims())
    story.cluster.until(lambda: story.said("OverloadsNode"), "the Job is told")
    # Usage is read anew several times.
    time.sleep(5 * POLL_S)

    [event] = story.said("OverloadsNode")
    job = story.cluster.plane.get("jobs", "dagster-run", "data")
    assert job is not None
    about = event["involvedObject"]
    assert ("batch/v1", "Job", "data", "dagster-run", job["metadata"]["uid"]) == tuple(
        about[key] for key in ("apiVersion", "kind", "namespace", "name", "uid")
    )
    # What its pods use may be known a moment later than what the node does.
    assert re.match(r"25 pods of Job data/dagster-run ask 0 cpu( and use \d+m cpu)? on node ", event["message"])
    assert ["Node"] == [each["involvedObject"]["kind"] for each in story.said("Overloaded")]
    told = ("True", "uses 97 % of its cpu and is asked for 0 %; by Job data/dagster-run")
    story.cluster.until(
        lambda: told == tuple(story.condition().get(key) for key in ("status", "message")), "the claim says it"
    )
    assert 1 == len(story.cluster.created_claims())


def test_explain_says_it_to_an_ordinary_reader(story: Story, tmp_path: Path) -> None:
    """002-2, 002-4: who decides, and a request as a patch that nobody applies."""
    reader = Reader(story.cluster.plane, tmp_path)
    done = reader.kerf("explain", "job/dagster-run", "-n", "data", "-o", "json")
    [item] = done.data["items"]

    assert (25, {"cpu", "memory"}) == (item["nodes"][0]["pods"], set(item["usage"]) - {"pods"})
    assert (["cpu"], {"cpu": "980m", "memory": "480Mi"}) == (item["overloaded"], item["advice"]["requests"])
    assert "kube-scheduler has placed them all" in item["whyNothingIsBought"]
    assert {} == _resources(story.cluster.plane.get("jobs", "dagster-run", "data"))


def _resources(job: Any) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["template"]["spec"]["containers"][0].get("resources") or {}
    return found


def test_the_fix_gives_seven_nodes_of_at_most_four_which_go_when_the_jobs_end(story: Story) -> None:
    """002-4, 002-12: requests of 900m; the nodes of the pile-up are gone before, so that all seven are new."""
    made = story.cluster
    made.plane.kubectl("delete", "job", "dagster-run", "-n", "data", "--wait=true")
    made.until(lambda: not made.names("nodes"), "the node of the pile-up goes", 90)
    story.busy, before = False, len(made.created_claims())

    made.apply("002-batch-fixed/job.yaml")
    made.until(lambda: 25 == len(story.running()), "25 pods run", 90)

    held = Counter(pod["spec"]["nodeName"] for pod in story.running())
    assert 7 == len(made.names("nodes")) == len(made.created_claims()) - before
    # Which of them gets fewer is the scheduler's to say.
    assert (7, 25, 4) == (len(held), sum(held.values()), max(held.values()))

    made.plane.kubectl("label", "pods", "-n", "data", "-l", "app=dagster-run", f"{ENDS}=true")
    made.until(lambda: not made.names("nodes"), "the nodes go after the jobs", 120)
    job = made.plane.get("jobs", "dagster-run", "data")
    assert job is not None
    assert 25 == job["status"]["succeeded"]
    made.until(lambda: not made.instances(), "nothing is left in the cloud")
