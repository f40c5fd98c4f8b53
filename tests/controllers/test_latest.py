"""What the latest plan puts on nodes that are to open is written on their claims, where it matters who goes first."""

import json
from dataclasses import replace

import pytest

from kerf.controllers.provisioning import Provisioning
from kerf.model.promises import read
from tests.controllers.cluster import Cluster, pod, pool

QUARTERS = ("g5.12xlarge",)
"""Four cards, so a node bought for one pod has room for three more."""


def planned(cluster: Cluster, *after_s: float, follow: str = "auto") -> tuple[list[str], str]:
    """The pods of the one claim and how they are led, when a pod came at each of these times."""
    settings = replace(cluster.settings, follow=follow)
    cluster.put(pool(types=QUARTERS))
    cluster.start(Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, settings))
    for number, at_s in enumerate(after_s):
        cluster.at(at_s)
        cluster.put(pod(f"p{number}"))
    cluster.at(after_s[-1] + 5)
    (claim,) = cluster.names("NodeClaim")
    notes = cluster.claim(claim).annotations
    return [key.partition("/")[2] for key in json.loads(notes["kerf.dev/planned-pods"])], notes["kerf.dev/follow"]


def test_pods_that_come_while_a_node_starts_are_promised_their_places(cluster: Cluster) -> None:
    """And the node is reserved: kube-scheduler would try the one that waits longest last."""
    assert (["p0", "p1", "p2"], "reserve") == planned(cluster, 0, 20, 40)


def test_among_pods_of_one_age_nothing_is_written(cluster: Cluster) -> None:
    """Any order will do, and a burst costs no write."""
    assert (["p0"], "replay") == planned(cluster, 0, 15, 30)


def test_without_following_nothing_is_written(cluster: Cluster) -> None:
    """The operator who turned it off wants no pod led."""
    assert (["p0"], "replay") == planned(cluster, 0, 20, 40, follow="off")


def test_a_node_is_reserved_once_pods_of_another_kind_wait(cluster: Cluster) -> None:
    """Open to all, it would go to the pod that the scheduler tries first, and its own would wait."""
    cluster.put(pool(types=QUARTERS))
    settings = cluster.settings
    cluster.start(Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, settings))
    cluster.put(pod("first"))
    cluster.at(5)
    (claim,) = cluster.names("NodeClaim")
    assert "replay" == cluster.claim(claim).annotations["kerf.dev/follow"]

    cluster.put(pod("other", limits={"nvidia.com/gpu": 3}))
    cluster.at(12)
    notes = cluster.claim(claim).annotations
    assert "reserve" == notes["kerf.dev/follow"]
    assert ["default/first"] == list(json.loads(notes["kerf.dev/planned-pods"]))


def test_a_promise_is_written_once(cluster: Cluster) -> None:
    """The same plan, made again, writes nothing."""
    planned(cluster, 0, 20, 40)
    before = cluster.claim(*cluster.names("NodeClaim")).resource_version
    cluster.at(100)

    assert before == cluster.claim(*cluster.names("NodeClaim")).resource_version


def test_a_pod_hears_of_its_claim_once(cluster: Cluster) -> None:
    """Its node joins and gets its name meanwhile: that is no other place."""
    planned(cluster, 0)
    (name,) = cluster.names("NodeClaim")
    claim = cluster.claim(name)
    instance = cluster.done(cluster.cloud.create(claim))
    launched = replace(claim, provider_id=instance.provider_id, labels={**claim.labels, **instance.labels})
    cluster.joined(launched)
    cluster.change("NodeClaim", name, status={"providerID": instance.provider_id})
    cluster.at(30)

    assert [f"Pod should schedule on: nodeclaim/{name}"] == cluster.said("Nominated")


@pytest.mark.parametrize(("owner", "names"), [("ReplicaSet", ["web-2"]), ("Job", ["web-1"])])
def test_a_successor_is_promised_what_its_evicted_pod_was(cluster: Cluster, owner: str, names: list[str]) -> None:
    """A node is bought for a pod of a node that goes, and reserved for the pod that is made in its place.

    A pod of another owner takes the room as any pod does: without a promise.
    """
    cluster.put(pool(types=QUARTERS))
    settings = cluster.settings
    cluster.start(Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, settings))
    cluster.running()
    cluster.put(pod("web-1", node="node-1", owner="ReplicaSet"))
    cluster.remove("NodeClaim", "gpu-1")
    cluster.at(5)
    assert [["web-1"]] == promised(cluster)

    cluster.at(cluster.now_s, lambda: cluster.api.delete("Pod", "default", "web-1"))
    cluster.put(pod("web-2", owner=owner))
    cluster.at(12)

    assert [names] == promised(cluster)


def promised(cluster: Cluster) -> list[list[str]]:
    """The pods of each claim that does not go."""
    claims = (cluster.claim(name) for name in cluster.names("NodeClaim"))
    return [[key.partition("/")[2] for key in read(each.annotations).pods] for each in claims if not each.is_deleting]
