"""What pods ask of each other by affinity: the stand-in refuses as kube-scheduler's InterPodAffinity does."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.sim.objects import Json
from tests.sim.cluster import Cluster, cpu_pod, ready_node, said

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MEANT = {"matchLabels": {"app": "web"}}
TEAM_A: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes of two zones."""
    made = Cluster()
    made.create(ready_node("a", labels={ZONE: "z1"}), ready_node("b", labels={ZONE: "z2"}))
    yield made
    made.loop.close()


def related(name: str, kind: str, key: str = HOST, term: Json | None = None, **metadata: Any) -> Json:
    """A pod labelled `app: web` with a required term of that kind about such pods."""
    asked = {"topologyKey": key, "labelSelector": MEANT, **(term or {})}
    pod = cpu_pod(name, affinity={kind: {REQUIRED: [asked]}})
    pod["metadata"].update({"labels": {"app": "web"}, **metadata})
    return pod


def of_team(name: str, **labels: str) -> Json:
    """A pod of namespace team-a."""
    pod = cpu_pod(name, nodeSelector={HOST: "a"})
    pod["metadata"] |= {"namespace": "team-a", "labels": {"app": "web", **labels}}
    return pod


def test_pods_that_keep_apart_take_a_node_each_and_the_third_waits(cluster: Cluster) -> None:
    """Also against a pod that has no term itself."""
    cluster.create(*(related(f"web-{number}", "podAntiAffinity") for number in range(3)))

    assert ["", "a", "b"] == sorted(cluster.placed().values())
    (waiting,) = [name for name, node in cluster.placed().items() if not node]
    assert "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules." == said(cluster, waiting)


def test_what_others_keep_off_learns_it(cluster: Cluster) -> None:
    """It asks for nothing itself."""
    cluster.create(*(related(f"web-{number}", "podAntiAffinity") for number in range(2)))
    plain = cpu_pod("plain")
    plain["metadata"]["labels"] = {"app": "web"}
    cluster.create(plain)

    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in said(cluster, "plain")


def test_a_pod_that_wants_company_comes_when_it_is_there(cluster: Cluster) -> None:
    """The first of its own kind needs none; one of another kind waits for a pod of the domain."""
    lonely = related("lonely", "podAffinity", ZONE, labels={"app": "other"})
    cluster.create(lonely)
    assert "2 node(s) didn't match pod affinity rules" in said(cluster, "lonely")

    cluster.create(related("first", "podAffinity", ZONE))
    cluster.at(1)
    assert cluster.placed()["first"] == cluster.placed()["lonely"] != ""


def test_a_pod_that_was_kept_off_comes_when_the_other_leaves(cluster: Cluster) -> None:
    """The queue tries it then, and not for any other change."""
    cluster.create(*(related(f"web-{number}", "podAntiAffinity") for number in range(3)))
    cluster.at(1, lambda: cluster.api.delete("Pod", "default", "web-0", grace_s=0))
    cluster.at(2)

    assert {"web-1", "web-2"} == {name for name, node in cluster.placed().items() if node}


def test_a_term_means_its_own_namespace_unless_it_names_others(cluster: Cluster) -> None:
    """By name, or by the labels of the Namespace."""
    cluster.create(TEAM_A, of_team("web"))
    scopes: dict[str, Json] = {
        "own": {},
        "named": {"namespaces": ["team-a"]},
        "labelled": {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        "others": {"namespaceSelector": {"matchLabels": {"team": "b"}}},
    }
    for name, scope in scopes.items():
        cluster.create(related(name, "podAffinity", term=scope, labels={"app": "other"}))

    assert {"labelled", "named", "web"} == {name for name, node in cluster.placed().items() if node == "a"}


def test_a_namespace_selector_that_asks_for_no_label_takes_every_namespace(cluster: Cluster) -> None:
    """Of the pod to be placed, in kube-scheduler 1.36: it asks the selector about no labels once more."""
    selector = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
    cluster.create(TEAM_A, of_team("web"))
    cluster.create(related("new", "podAntiAffinity", term={"namespaceSelector": selector}, labels={"app": "other"}))

    assert "b" == cluster.placed()["new"]


@pytest.mark.parametrize(("field", "place"), [("matchLabelKeys", "b"), ("mismatchLabelKeys", "a")])
def test_keys_of_labels_narrow_a_selector(cluster: Cluster, field: str, place: str) -> None:
    """To pods of the same version, or of any other."""
    old, new = cpu_pod("old", nodeSelector={HOST: "a"}), cpu_pod("new", nodeSelector={HOST: "b"})
    old["metadata"]["labels"] = {"app": "web", "version": "1"}
    new["metadata"]["labels"] = {"app": "web", "version": "2"}
    labels = {"app": "other", "version": "2"}
    cluster.create(old, new, related("next", "podAffinity", term={field: ["version"]}, labels=labels))

    assert place == cluster.placed()["next"]


def test_a_pod_prefers_the_company_it_names(cluster: Cluster) -> None:
    """Of equal nodes the one in whose domain it is; of what it does not like, the other."""
    cluster.create(of_team("web"))
    for kind, place in (("podAffinity", "a"), ("podAntiAffinity", "b")):
        term = {"topologyKey": HOST, "labelSelector": MEANT, "namespaces": ["team-a"]}
        weighted = [{"weight": 100, "podAffinityTerm": term}]
        cluster.create(
            cpu_pod(kind.lower(), affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}})
        )

        assert place == cluster.placed()[kind.lower()]
