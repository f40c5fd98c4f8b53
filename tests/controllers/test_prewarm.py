"""001-12: what pre-warming writes down, when it wakes, and of what it warns."""

import json
from functools import partial

from kerf.controllers.disruption import DisruptionController
from kerf.controllers.prewarm import Prewarm
from kerf.controllers.provisioning import Provisioning
from kerf.sim.objects import Json
from tests.controllers.cluster import STAGES, Cluster, pool


def cron_job(prewarm: str = "auto") -> Json:
    """At eight in UTC, one GPU; the clock of a test starts at seven."""
    container = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"schedule": "0 8 * * *", "timeZone": "UTC", "jobTemplate": {"spec": {"template": template}}}
    metadata = {"name": "job", "namespace": "default", "annotations": {"kerf.dev/prewarm": prewarm}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def start(cluster: Cluster) -> None:
    """The controllers of this room, also in a second life."""
    parts = (cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(Prewarm(cluster.state, cluster.ports), Provisioning(*parts), DisruptionController(*parts))


def bought_at(cluster: Cluster) -> list[float]:
    """When plans launched something."""
    return [at_s for at_s, plan in cluster.feed.plans if plan.launches]


def test_nodes_are_bought_when_the_run_is_near_and_only_then(cluster: Cluster) -> None:
    """Nothing else happens in the cluster that would wake anybody; a restart finds the same instant."""
    cluster.put(pool(), cron_job())
    start(cluster)
    cluster.at(1000)
    cluster.crash()
    start(cluster)
    cluster.at(2999)
    assert [] == cluster.names("NodeClaim")

    cluster.at(3001)
    assert [3000] == bought_at(cluster)
    assert 1 == len(cluster.names("NodeClaim"))


def test_an_empty_node_that_a_run_needs_stays(cluster: Cluster) -> None:
    """Until two minutes after it; then it goes like any other."""
    cluster.put(pool(disruption={"consolidateAfter": "0s"}), cron_job("10m"))
    cluster.at(3100)
    card = {"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi", "pods": "58"}
    cluster.running(1, reached=(*STAGES, "Consolidatable"), node={"allocatable": card})
    start(cluster)
    cluster.at(3700)
    assert ([], False) == (bought_at(cluster), cluster.claim().is_deleting)

    cluster.at(4200)
    assert cluster.claim().is_deleting


def test_what_a_start_took_is_noted_on_the_pool(cluster: Cluster) -> None:
    """It outlives the node. Nobody writes it where no CronJob is prewarmed."""
    cluster.put(pool())
    cluster.running(1, created_s=0)
    start(cluster)
    noted = "kerf.dev/lead-times"
    assert noted not in cluster.api.list("NodePool")[0]["metadata"]["annotations"]

    cluster.put(cron_job())
    cluster.at(50)
    cluster.running(2)
    told = json.loads(cluster.api.list("NodePool")[0]["metadata"]["annotations"][noted])
    assert {"gpu-1", "gpu-2"} == set(told)


def test_a_cron_job_is_warned_of_once(cluster: Cluster) -> None:
    """That a run which hangs holds its node for ever."""
    cluster.put(pool(), cron_job())
    start(cluster)
    for suspended in (True, False):
        patch = {"spec": {"suspend": suspended}}
        cluster.at(cluster.now_s + 60, partial(cluster.api.patch, "CronJob", "default", "job", patch))

    assert 1 == sum("no activeDeadlineSeconds" in message for message in cluster.said("PrewarmWarning"))
    assert 1 == sum("it is suspended" in message for message in cluster.said("PrewarmWarning"))
