"""CapacityWindows on a real server, with a schedule of minutes: gates, nodes, phases and events as simulated.

Also what its own rules refuse, and what they cannot know and the condition Ready says.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kerf.model.windows import ADMITTED, WINDOW_GATE, WINDOW_LABEL
from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.test_following_plans import pool
from tools.controlplane.server import Binaries

Json = dict[str, Any]
CONTAINER = {"name": "main", "image": "none", "resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}}


@pytest.fixture(scope="module")
def site(binaries: Binaries) -> Iterator[Cluster]:
    """Kerf runs on it; nodes go soon after their last pod."""
    with cluster(binaries) as made:
        given = pool("c5.xlarge", {})
        given["spec"]["disruption"] = {"consolidateAfter": "1s", "budgets": [{"nodes": "100%"}]}
        made.plane.apply([given])
        made.start("--no-leader-elect")
        yield made


def window(name: str, **spec: Any) -> Json:
    """A window for pods labelled with its name; `spec` is laid over fields that no case cares for."""
    selector = {"matchLabels": {WINDOW_LABEL: name}}
    given = {"schedule": "0 8 * * *", "duration": "1h", "pods": {"selector": selector}, **spec}
    return {"apiVersion": "kerf.dev/v1alpha1", "kind": "CapacityWindow", "metadata": {"name": name}, "spec": given}


def deployment(name: str, replicas: int) -> Json:
    """Pods for the window of that name."""
    labels = {"app": name, WINDOW_LABEL: name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def phase(site: Cluster, name: str) -> str:
    """The phase of a window; empty while it has none."""
    found = site.plane.get("cwin", name) or {}
    return str(found.get("status", {}).get("phase", ""))


def next_minutes(after: int) -> int:
    """The minute of the hour that begins in so many minutes or a little less."""
    return (int(time.time()) // 60 + after) % 60


def gates(pod: Json) -> list[str]:
    """The scheduling gates of a pod."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


@pytest.mark.long
def test_a_window_of_one_minute_from_its_first_node_to_its_last(site: Cluster) -> None:
    """Held, warm before the opening, let in, evicted at the end and held again; the nodes go."""
    warm = [{"replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}}]
    quota = {"gpuHours": "1"}
    site.plane.apply([deployment("shift", 2)])
    site.until(lambda: 2 == len(site.pods()), "two pods")
    assert [[WINDOW_GATE]] * 2 == [gates(pod) for pod in site.pods()]

    given = window(
        "shift", schedule="*/3 * * * *", duration="1m", leadTime="45s", warm=warm, atEnd="Evict", quota=quota
    )
    site.plane.apply([given])
    site.until(lambda: "Warming" == phase(site, "shift"), "it is getting ready", 240)
    site.until(lambda: "True" == site.condition("cwin", "shift", "WarmReady").get("status"), "one place is ready", 40)
    assert (1, [WINDOW_GATE]) == (len(site.names("nodeclaims")), gates(site.pods()[0]))

    site.until(lambda: 2 == len(site.pods("Running")), "both run", 90)
    assert "Open" == phase(site, "shift")
    assert ["shift"] * 2 == [pod["metadata"]["annotations"][ADMITTED].partition("@")[0] for pod in site.pods()]
    assert 2 == len(site.names("nodeclaims"))

    site.until(lambda: [[WINDOW_GATE]] * 2 == [gates(pod) for pod in site.pods()], "both are held again", 120)
    site.until(lambda: "Closed" == phase(site, "shift"), "it is closed")
    site.plane.delete("cwin", "shift")
    site.until(lambda: [] == site.names("nodeclaims"), "the nodes have gone")
    for reason in ("WindowWarming", "WindowOpened", "WindowClosing", "WindowClosed"):
        site.until(partial(site.events, reason), reason)


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"duration": "30s"}, "duration must be at least 1m"),
        ({"duration": "4 hours"}, "spec.duration"),
        ({"schedule": "daily"}, "spec.schedule"),
        ({"timeZone": "here and there"}, "spec.timeZone"),
        ({"pods": {"selector": {"matchLabels": {"app": "x"}}}}, "selector must require the label kerf.dev/window"),
        ({"pods": {}}, "spec.pods.selector"),
        ({"quota": {"gpuHours": "0"}}, "gpuHours must be more than 0"),
        ({"quota": {"gpuHours": 0}}, "gpuHours must be more than 0"),
        ({"queuePriority": -1}, "spec.queuePriority"),
        ({"atEnd": "Stop"}, "spec.atEnd"),
    ],
    ids=str,
)
def test_the_server_refuses_what_its_rules_can_tell(site: Cluster, spec: Json, words: str) -> None:
    """With the field and the reason, before anything is stored."""
    answer = site.plane.request("POST", "/apis/kerf.dev/v1alpha1/capacitywindows", window("refused", **spec))

    assert (422, True) == (answer.status, words in answer.body["message"]), answer.body["message"]


@pytest.mark.parametrize(
    "name, spec, reason, words",
    [
        ("cron", {"schedule": "0 25 * * *"}, "Invalid", "spec.schedule: expected five fields of cron"),
        ("zone", {"timeZone": "Europe/Berln"}, "Invalid", "spec.timeZone: expected a time zone, got 'Europe/Berln'"),
        ("overlap", {"duration": "25h"}, "Invalid", "spec.duration: expected less than the time between two openings"),
        ("pool", {"nodePools": ["onyl"]}, "NodePoolNotFound", "spec.nodePools[0]: expected a NodePool of the cluster"),
    ],
)
def test_what_the_server_takes_and_nothing_can_follow_is_said(
    site: Cluster, name: str, spec: Json, reason: str, words: str
) -> None:
    """In the condition Ready, with the place; the other windows go on."""
    site.plane.apply([window(name, **spec)])
    site.until(lambda: site.condition("cwin", name, "Ready"), "it is judged")
    ready = site.condition("cwin", name, "Ready")

    assert ("False", reason, 1) == (ready["status"], ready["reason"], ready["observedGeneration"])
    assert words in ready["message"]
