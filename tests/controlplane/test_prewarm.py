"""Pre-warming on a real server, by its clock: a node before the run, the run on that node, and no other."""

import time
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.test_crashes import short_lived
from tools.controlplane.server import Binaries

Json = dict[str, Any]
CONTAINER = {"name": "main", "image": "none", "resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}}
"""One of which a c5.xlarge holds."""


def cron_job(schedule: str, lead: str, pods: int) -> Json:
    """A run of so many pods, each of which takes a node."""
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
    job = {"parallelism": pods, "completions": pods, "activeDeadlineSeconds": 600, "template": {"spec": pod}}
    metadata = {"name": "run", "namespace": "default", "annotations": {"kerf.dev/prewarm": lead}}
    spec = {"schedule": schedule, "timeZone": "Etc/UTC", "jobTemplate": {"spec": job}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def quota(cpu: str) -> Json:
    """What all pods of the namespace may ask for together."""
    metadata = {"name": "cpu", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"requests.cpu": cpu}}}


def at(seconds: float) -> str:
    """The schedule of that minute of each day."""
    then = time.gmtime(seconds)
    return f"{then.tm_min} {then.tm_hour} * * *"


def test_room_is_kept_within_the_quota_and_goes_with_the_cron_job(binaries: Binaries) -> None:
    """Three pods in four minutes, a quota for two: two nodes are up before any pod, and go with the CronJob."""
    with cluster(binaries) as site:
        site.plane.apply([short_lived("batch", "c5.xlarge", {}), quota("6")])
        site.start()
        site.plane.apply([cron_job(at(time.time() + 240), "10m", pods=3)])
        site.until(lambda: 2 == len(ready(site)), "two nodes are ready")

        assert [] == site.pods()
        said = site.events("PrewarmUnplaced", "run")
        assert [text for text in said if "quota" in text.lower()], said
        assert 2 == len(site.created_claims())
        site.plane.delete("CronJob", "run", "default")
        site.until(lambda: [] == site.names("nodeclaims"), "both have gone")


@pytest.mark.long
def test_the_run_finds_its_node(binaries: Binaries) -> None:
    """The node is ready in the minute before; its pod runs there, and no other node is bought."""
    with cluster(binaries) as site:
        site.plane.apply([short_lived("batch", "c5.xlarge", {}), quota("3")])
        site.start()
        due_s = (time.time() // 60 + 2) * 60
        site.plane.apply([cron_job(at(due_s), "2m", pods=1)])
        site.until(lambda: 1 == len(ready(site)), "the node is ready")
        (node,) = ready(site)
        assert [] == site.pods()

        site.until(lambda: "Succeeded" in [pod["status"].get("phase") for pod in site.pods()], "it has run", 180)
        assert [node] == [pod["spec"]["nodeName"] for pod in site.pods()]
        assert 1 == len(site.created_claims())


def ready(site: Cluster) -> list[str]:
    """The nodes that Kerf has initialised."""
    claims = site.plane.list("nodeclaims")
    names = [claim["metadata"]["name"] for claim in claims]
    good = [n for n in names if "True" == site.condition("NodeClaim", n, "Initialized").get("status")]
    return [claim["status"]["nodeName"] for claim in claims if claim["metadata"]["name"] in good]
