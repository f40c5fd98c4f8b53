"""A printed patch is taken by a real server, by its dry run, for every kind that can be patched in place."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.explain.test_patches import MADE, REFUSALS, a_pool
from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.test_bursts import is_refused
from tests.controlplane.test_live_commands import Reader
from tools.controlplane.server import Binaries

Json = dict[str, Any]
DATA = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data"}}


def written(top: Json) -> Json:
    """The manifest: without what a server gives, and a CronJob runs every minute."""
    spec = {**top["spec"], **({"schedule": "* * * * *"} if top["kind"] == "CronJob" else {})}
    metadata = {key: value for key, value in top["metadata"].items() if key != "uid"}
    return {**top, "metadata": metadata, "spec": spec}


def patches(site: Cluster, folder: Path, *arguments: str) -> list[str]:
    """The commands that `kerf explain` prints to a reader."""
    done = Reader(site.plane, folder).kerf(*arguments, "--catalog", "aws:us-east-1")
    lines = (line.strip() for line in done.stdout.splitlines())
    found = [line for line in lines if line.startswith("kubectl patch")]
    assert found, done.stdout + done.stderr
    return found


def tried(site: Cluster, command: str) -> str:
    """What the server says of a command in a dry run; it must take it."""
    return site.plane.kubectl(*shlex.split(command)[1:], "--dry-run=server").stdout


@pytest.mark.long
@pytest.mark.parametrize("refusal", sorted(REFUSALS))
@pytest.mark.parametrize("kind", ["CronJob", "Deployment", "StatefulSet"])
def test_the_patch_of_a_workload_is_taken(binaries: Binaries, tmp_path: Path, kind: str, refusal: str) -> None:
    """The pods are those that the server's own controllers have made."""
    pool, spec = REFUSALS[refusal]
    with cluster(binaries) as site:
        site.plane.apply([DATA, pool, written(MADE[kind](spec)[0])])
        site.until(lambda: any(map(is_refused, site.pods("Pending", "data"))), "a pod is refused", 90)
        (pod, *_) = (each["metadata"]["name"] for each in site.pods("Pending", "data"))

        for command in patches(site, tmp_path, "explain", f"pod/{pod}", "-n", "data"):
            assert "patched" in tried(site, command)


@pytest.mark.long
def test_the_patch_of_a_pool_is_taken(binaries: Binaries, tmp_path: Path) -> None:
    """A limit that is raised as far as the pods need."""
    pool = a_pool()
    pool["spec"]["limits"] = {"cpu": "1"}
    spec = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "2"}}}]}
    with cluster(binaries) as site:
        site.plane.apply([DATA, pool, written(MADE["Deployment"](spec)[0])])
        site.until(lambda: any(map(is_refused, site.pods("Pending", "data"))), "a pod is refused", 90)

        (command,) = patches(site, tmp_path, "explain", "deployment/web", "-n", "data")
        assert command.startswith("kubectl patch nodepool blue --type merge")
        assert "patched" in tried(site, command)
