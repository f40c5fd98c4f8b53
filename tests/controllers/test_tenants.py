"""F5, F6, F7 with the real controllers: what one tenant writes neither buys without end nor keeps another waiting."""

import json
from dataclasses import replace

import pytest

from kerf.controllers.conditions import PoolStatus
from kerf.controllers.provisioning import Provisioning
from kerf.controllers.provisioningrequests import ProvisioningRequests
from kerf.model.uses import Use
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pod, pool
from tests.controllers.test_prewarm import cron_job

FAILED = "FailedScheduling"


def start(cluster: Cluster) -> None:
    """What buys, and what says how it goes."""
    parts = (cluster.state, cluster.ports, cluster.book)
    plans = Provisioning(*parts, cluster.actuator, cluster.settings)
    requests = ProvisioningRequests(*parts, cluster.settings)
    cluster.start(plans, requests, PoolStatus(cluster.state, cluster.ports))


def quota(cards: int, namespace: str = "default") -> Json:
    """A ResourceQuota of so many cards."""
    metadata = {"name": "gpus", "namespace": namespace}
    spec = {"hard": {"requests.nvidia.com/gpu": str(cards)}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def run(parallelism: int) -> Json:
    """The CronJob of the finding: kept for a day before it is due."""
    made = cron_job("24h")
    made["spec"]["jobTemplate"]["spec"]["parallelism"] = parallelism
    return made


def bought_for(cluster: Cluster) -> set[str]:
    """The pods that claims were bought for."""
    notes = [obj["metadata"]["annotations"]["kerf.dev/planned-pods"] for obj in cluster.api.list("NodeClaim")]
    return {name for note in notes for name in json.loads(note)}


@pytest.mark.parametrize("parallelism", [20, 100_000])
@pytest.mark.parametrize(("objects", "nodes"), [((quota(1),), 1), ((quota(3),), 3), ((), 1)])
def test_nothing_is_bought_for_a_run_above_its_quota(
    cluster: Cluster, parallelism: int, objects: tuple[Json, ...], nodes: int
) -> None:
    """For hours. Without a quota, and a pool that names it, one node; an event on the CronJob says so."""
    cluster.put(pool(), run(parallelism), *objects)
    start(cluster)
    cluster.at(3000)

    assert nodes == len(cluster.names("NodeClaim"))
    assert cluster.said("PrewarmUnplaced")[0].startswith(
        f"CronJob default/job: room is kept for {nodes} of {parallelism} pods: "
    )


def test_a_pool_that_begins_to_name_a_namespace_buys_at_once(cluster: Cluster) -> None:
    """Annotations of a pool are no part of its generation."""
    cluster.put(pool(), run(4))
    start(cluster)
    cluster.at(5)
    assert 1 == len(cluster.names("NodeClaim"))

    cluster.change("NodePool", "gpu", metadata={"annotations": {Use.PREWARM: "default"}})
    cluster.at(30)
    assert 4 == len(cluster.names("NodeClaim"))


def request(count: int) -> tuple[Json, Json]:
    """A ProvisioningRequest for so many pods of one card, with its template."""
    metadata = {"name": "r", "namespace": "default"}
    template = {"spec": pod("t")["spec"]}
    spec = {
        "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
        "podSets": [{"podTemplateRef": {"name": "r"}, "count": count}],
    }
    return (
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template},
        {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": metadata, "spec": spec},
    )


@pytest.mark.parametrize(("cards", "nodes"), [(2, 0), (3, 3)])
def test_a_request_above_the_quota_buys_nothing_and_says_so(cluster: Cluster, cards: int, nodes: int) -> None:
    """In its condition; within the quota it buys all."""
    cluster.put(pool(), quota(cards), *request(3))
    start(cluster)
    cluster.at(60)
    told = " ".join(cluster.said("CapacityIsNotFound"))

    assert nodes == len(cluster.names("NodeClaim"))
    assert (nodes == 0) == ("no room is kept for 3 pods: ResourceQuota default/gpus" in told)


def flood(number: int, cards: int = 1) -> list[Json]:
    """Refused pods that all differ."""
    limits = ({"nvidia.com/gpu": str(cards), "memory": f"{index + 1}Mi"} for index in range(number))
    return [pod(f"f-{index}", limits=asked) for index, asked in enumerate(limits)]


@pytest.mark.parametrize("cards", [1, 9])
@pytest.mark.parametrize(("number", "most"), [(300, 20), pytest.param(10_000, 400, marks=pytest.mark.long)])
def test_pods_that_all_differ_keep_no_other_tenant_waiting(
    cluster: Cluster, number: int, most: int, cards: int
) -> None:
    """Whether they can be served or not, another tenant's pod has its node within two batch windows.

    One event says what waits, not one a pod.
    """
    cluster.settings = replace(cluster.settings, most_shapes=most)
    cluster.put(pool(), *flood(number, cards))
    start(cluster)
    cluster.at(5)
    other = pod("other", limits={"nvidia.com/gpu": "1"})
    other["metadata"]["namespace"] = "web"
    cluster.put(other)
    cluster.at(5 + 2 * cluster.settings.batch_max_s)

    sizes = [len(plan.unplaced) + sum(len(each.pods) for each in plan.launches) for _, plan in cluster.feed.plans]
    assert max(sizes) <= 2 * most
    assert "web/other" in bought_for(cluster)
    assert 1 == len(cluster.said("LeftForLater"))


def test_what_a_pass_leaves_has_its_turn_in_the_next_ones(cluster: Cluster) -> None:
    """Fifty that fit nowhere, ten at a time: each has been told why after five passes of a batch window each."""
    cluster.settings = replace(cluster.settings, most_shapes=10)
    cluster.put(pool(), *flood(50, cards=9))
    start(cluster)
    cluster.at(5 * 2 * cluster.settings.batch_idle_s + 1)

    assert 50 == len(refused(cluster))


@pytest.mark.parametrize("number", [10, 11, 12, 40])
def test_a_group_of_more_kinds_of_pods_than_a_pass_has_its_turn(cluster: Cluster, number: int) -> None:
    """Bought for whole within a few batch windows, though others of another tenant are older and have theirs, too."""
    cluster.settings = replace(cluster.settings, most_shapes=10)
    group, older = flood(number), flood(30, cards=9)
    for each in group:
        labels = {"kerf.dev/pod-group": "g", "kerf.dev/pod-group-min": str(number)}
        each["metadata"] |= {"namespace": "team", "labels": labels}
    cluster.put(pool(), *older)
    start(cluster)
    cluster.at(1)
    cluster.put(*group)
    cluster.at(5 + 4 * cluster.settings.batch_max_s)

    assert {f"team/f-{n}" for n in range(number)} == bought_for(cluster)
    assert {f"default/f-{n}" for n in range(30)} == refused(cluster)


def refused(cluster: Cluster) -> set[str]:
    """The pods that an event says why they have no place."""
    said = (held.occurrence for held in cluster.recorder.posted if held.occurrence.reason == FAILED)
    return {each.regards[1] for each in said}


def test_groups_of_more_kinds_of_pods_than_a_pass_keep_no_other_tenant_waiting(cluster: Cluster) -> None:
    """Five that fit nowhere, older than all others: another tenant's pod has its node within two batch windows."""
    cluster.settings = replace(cluster.settings, most_shapes=10)
    evil = [flood(15, cards=9) for _ in range(5)]
    for number, pods in enumerate(evil):
        for each in pods:
            each["metadata"]["name"] = f"g{number}-{each['metadata']['name']}"
            each["metadata"]["labels"] = {"kerf.dev/pod-group": f"g{number}", "kerf.dev/pod-group-min": "15"}
    cluster.put(pool(), *(each for pods in evil for each in pods))
    start(cluster)
    cluster.at(5)
    other = pod("other", limits={"nvidia.com/gpu": "1"})
    other["metadata"]["namespace"] = "web"
    cluster.put(other)
    cluster.at(5 + 2 * cluster.settings.batch_max_s)

    assert "web/other" in bought_for(cluster)
    assert 75 == len(refused(cluster))


def of(namespace: str, name: str) -> Json:
    """A refused pod of one card."""
    made = pod(name, limits={"nvidia.com/gpu": "1"})
    made["metadata"]["namespace"] = namespace
    return made


def test_pods_that_come_without_end_keep_no_other_namespace_waiting(cluster: Cluster) -> None:
    """One every half second: another tenant's pod is decided for a second after it came, not after ten."""
    cluster.put(pool(), of("mean", "m-0"))
    start(cluster)
    for number in range(1, 10):
        cluster.at(number * 0.5)
        cluster.put(of("mean", f"m-{number}"))
        if number == 4:
            cluster.put(of("web", "other"))
    cluster.at(3.2)

    assert "web/other" in bought_for(cluster)


@pytest.mark.parametrize("what", ["nodeSelectorTerms", "podAntiAffinity", "topologySpreadConstraints"])
def test_pods_of_long_specs_keep_no_other_tenant_waiting(cluster: Cluster, what: str) -> None:
    """A pass is for as much as ten usual kinds of pods: few of the long ones, and the other tenant's."""
    cluster.settings = replace(cluster.settings, most_shapes=10)
    cluster.put(pool(), *(long(f"m-{number}", what) for number in range(12)))
    start(cluster)
    cluster.at(5)
    cluster.put(of("web", "other"))
    cluster.at(5 + 2 * cluster.settings.batch_max_s)

    sizes = [len(plan.unplaced) + sum(len(each.pods) for each in plan.launches) for _, plan in cluster.feed.plans]
    assert max(sizes) <= 4
    assert "web/other" in bought_for(cluster)
    (left,) = cluster.said("LeftForLater")
    assert "this one counts as " in left


def test_a_pod_of_a_long_spec_alone_is_served(cluster: Cluster) -> None:
    """On an idle cluster nothing else waits for it."""
    cluster.settings = replace(cluster.settings, most_shapes=10)
    cluster.put(pool(), long("m-0", "podAntiAffinity"))
    start(cluster)
    cluster.at(5)

    assert {"mean/m-0"} == bought_for(cluster)


def test_a_pod_that_asks_too_much_is_said_so_once_and_others_are_served(cluster: Cluster) -> None:
    """With what is too long and what to do, not again for each plan."""
    cluster.put(pool(), long("m-0", "podAntiAffinity", 4500), of("web", "other"))
    start(cluster)
    cluster.at(60)
    (told,) = [said for said in cluster.said(FAILED) if "counts as" in said]

    assert {"web/other"} == bought_for(cluster)
    assert "Kerf plans for at most 64128" in told


def long(name: str, what: str, number: int = 200) -> Json:
    """A pod of one card whose spec has a list of so many entries, all of its own."""
    made = of("mean", name)
    labels = [{"matchLabels": {"app": f"{name}-{each}"}} for each in range(number)]
    terms = [
        {"matchExpressions": [{"key": f"example.com/{name}-{each}", "operator": "Exists"}]}
        for each in range(5 * number)
    ]
    away = [{"labelSelector": each, "topologyKey": "kubernetes.io/hostname"} for each in labels]
    even = [
        {"labelSelector": each, "topologyKey": f"zone-{at}", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        for at, each in enumerate(labels)
    ]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    made["spec"] |= {
        "nodeSelectorTerms": {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}},
        "podAntiAffinity": {"affinity": {"podAntiAffinity": {required: away}}},
        "topologySpreadConstraints": {"topologySpreadConstraints": even},
    }[what]
    return made
