"""ResourceQuotas and form in the in-memory API: admission there refuses what planning from manifests refuses."""

from typing import Any

import pytest

from kerf.errors import ApiError
from kerf.ports import WriteRefused
from kerf.sim.objects import Json
from tests.sim.kubernetes.test_workloads import Managed, world
from tests.sim.world import pod, workload

__all__ = ["world"]


def quota(**hard: str) -> Json:
    """The quota `all` of the namespace."""
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": hard}}


def claim(name: str, storage: str = "10Gi", **spec: Any) -> Json:
    """A claim."""
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **spec}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": body}


def storage_class(name: str, *, is_default: bool = False) -> Json:
    """A class whose volumes wait for their pod."""
    marks = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name, "annotations": marks}}
    return {**head, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"}


def asking(name: str, **limits: str) -> Json:
    """A pod whose container has these limits."""
    return pod(name, containers=[{"name": "main", "resources": {"limits": limits}}])


def used(world: Managed) -> dict[str, str]:
    """What the status of the quota says."""
    found: dict[str, str] = world.status("ResourceQuota", "all")["used"]
    return found


def raised(world: Managed, claims: str) -> None:
    """Let the quota have so many claims."""
    spec = {"hard": {"persistentvolumeclaims": claims}}
    world.api.patch("ResourceQuota", "default", "all", {"spec": spec})


OF_GOLD = "gold.storageclass.storage.k8s.io"


@pytest.mark.parametrize(
    ("hard", "second", "said"),
    [
        ({"persistentvolumeclaims": "1"}, {}, "requested: persistentvolumeclaims=1, used: persistentvolumeclaims=1"),
        ({"count/persistentvolumeclaims": "1"}, {}, "requested: count/persistentvolumeclaims=1"),
        ({"requests.storage": "15Gi"}, {}, "requested: requests.storage=10Gi, used: requests.storage=10Gi"),
        ({f"{OF_GOLD}/requests.storage": "15Gi"}, {}, f"requested: {OF_GOLD}/requests.storage=10Gi"),
        ({f"{OF_GOLD}/persistentvolumeclaims": "1"}, {}, f"requested: {OF_GOLD}/persistentvolumeclaims=1"),
        ({f"{OF_GOLD}/persistentvolumeclaims": "1"}, {"storageClassName": "slow"}, ""),
        ({"requests.storage": "20Gi", "pods": "0"}, {}, ""),
    ],
)
def test_claims_count_and_those_beyond_the_quota_are_refused(
    world: Managed, hard: dict[str, str], second: dict[str, Any], said: str
) -> None:
    """By number and size, in all and of each StorageClass; one that names none is of the default class."""
    for obj in (storage_class("gold", is_default=True), storage_class("slow"), quota(**hard), claim("one")):
        world.apply(obj)

    if not said:
        world.apply(claim("two", **second))
        return
    with pytest.raises(ApiError, match="exceeded quota: all") as caught:
        world.apply(claim("two", **second))
    assert said in str(caught.value)
    world.at(5, lambda: world.api.delete("PersistentVolumeClaim", "default", "one"))
    world.at(6)
    world.apply(claim("two", **second))


def test_the_status_says_what_claims_and_limits_use(world: Managed) -> None:
    """With every name of the quota by which pods or claims count, and no other."""
    hard = {"requests.storage": "1Ti", "persistentvolumeclaims": "5", "limits.cpu": "4", "limits.memory": "8Gi"}
    world.apply(quota(**hard, **{"count/services": "1"}))
    world.apply(claim("data"))
    world.apply(asking("p", cpu="1500m", memory="1Gi"))
    world.at(1)

    of_claims, of_pods = {"requests.storage": "10Gi", "persistentvolumeclaims": "1"}, {"limits.memory": "1Gi"}
    assert {**of_claims, **of_pods, "limits.cpu": "1500m"} == used(world)


def test_limits_count_as_one_pod_has_them_at_once(world: Managed) -> None:
    """Of init containers the largest, not their sum; who states none is refused."""
    world.apply(quota(**{"limits.cpu": "2"}))
    container = {"name": "main", "resources": {"limits": {"cpu": "1"}}}
    init = [{**container, "name": "a"}, {**container, "name": "b"}]
    world.apply(pod("p", containers=[container], initContainers=init))

    with pytest.raises(ApiError, match=r"must specify limits\.cpu"):
        world.apply(pod("q"))
    world.apply(asking("q", cpu="1"))
    with pytest.raises(ApiError, match=r"requested: limits\.cpu=100m, used: limits\.cpu=2, limited: limits\.cpu=2"):
        world.apply(asking("r", cpu="100m"))


def test_a_quota_with_scopes_counts_what_they_select(world: Managed) -> None:
    """As planning from manifests has it."""
    best = quota(pods="1")
    best["spec"]["scopes"] = ["BestEffort"]
    world.apply(best)
    world.apply(pod("one"))
    world.apply(asking("two", cpu="1"))

    with pytest.raises(ApiError, match="exceeded quota: all, requested: pods=1"):
        world.apply(pod("three"))


def test_a_pod_of_a_stateful_set_is_not_made_without_its_claim(world: Managed) -> None:
    """The claim comes first; once there is room both come."""
    template = {"metadata": {"name": "data"}, "spec": claim("data")["spec"]}
    world.apply(quota(persistentvolumeclaims="1"))
    world.apply(workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[template]))

    assert ["db-0"] == world.pods(20)
    world.at(30, lambda: raised(world, "2"))
    assert ["db-0", "db-1"] == world.pods(600)


def test_the_claim_of_an_ephemeral_volume_comes_once_there_is_room(world: Managed) -> None:
    """Its pod is there before it, and its controller tries again."""
    world.apply(quota(persistentvolumeclaims="0"))
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}}
    world.apply(pod("p", volumes=[volume]))
    world.at(10)

    assert [] == world.api.list("PersistentVolumeClaim")
    world.at(11, lambda: raised(world, "1"))
    world.at(600)
    assert ["p-scratch"] == [each["metadata"]["name"] for each in world.api.list("PersistentVolumeClaim")]


def test_a_pod_that_makes_no_sense_is_refused(world: Managed) -> None:
    """With the field, as planning from manifests says it."""
    with pytest.raises(WriteRefused, match=r"spec\.restartPolicy: expected one of .*, got 'Bogus'"):
        world.apply(pod("p", restartPolicy="Bogus"))
    with pytest.raises(WriteRefused, match=r"spec\.tolerations\[0\]\.operator: expected Exists where there is no key"):
        world.apply(pod("p", tolerations=[{}]))


@pytest.mark.parametrize(
    ("kind", "policy", "is_refused"),
    [
        ("Deployment", "Never", True),
        ("Deployment", "Always", False),
        ("StatefulSet", "OnFailure", True),
        ("DaemonSet", "Never", True),
        ("Job", "Always", True),
        ("Job", "OnFailure", False),
    ],
)
def test_a_workload_whose_pods_may_not_restart_so_is_refused(
    world: Managed, kind: str, policy: str, is_refused: bool
) -> None:
    """Pods of a Job must end, those of the others must not."""
    obj = workload(kind)
    obj["spec"]["template"]["spec"]["restartPolicy"] = policy

    if not is_refused:
        world.apply(obj)
        return
    with pytest.raises(WriteRefused, match=rf"spec\.template\.spec\.restartPolicy: expected .*, got '{policy}'"):
        world.apply(obj)
