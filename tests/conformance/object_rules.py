"""Objects and those who write, delete and watch them: versions, conflicts, finalizers, owners, lost histories."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kerf.errors import ApiError
from kerf.model.nodeclaim import Condition
from kerf.model.nodes import Node, reservation
from kerf.ports import AlreadyExists, Conflict, KubeWriter, NotFound
from kerf.sim.objects import annotations_of, is_deleting, name_of, uid_of
from kerf.testing.builders import NOON_S
from tests.conformance.cluster import Cluster, config_map, labelled, obj, rules
from tests.conformance.raw_api import Json

RULES, rule = rules()


def version(obj: Json) -> str:
    """The resourceVersion of an object."""
    found: str = obj["metadata"]["resourceVersion"]
    return found


def finalizers(*names: str) -> Json:
    """A patch of the finalizers."""
    return {"metadata": {"finalizers": list(names)}}


def pool(cluster: Cluster, **metadata: Any) -> Json:
    """A NodePool named `pool`, created."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
    return cluster.create(obj("karpenter.sh/v1", "NodePool", "pool", spec, **metadata))


def owned_by(*owners: Json, **further: Any) -> Json:
    """Metadata of an object with owners."""
    keys = ("apiVersion", "kind")
    return {
        "ownerReferences": [
            {**{key: o[key] for key in keys}, "name": name_of(o), "uid": uid_of(o), **further} for o in owners
        ]
    }


# Versions and conflicts.


@rule
def of_two_writers_of_one_version_the_second_has_a_conflict(cluster: Cluster) -> None:
    """Nothing of what the second writes is stored, be it a replacement or a patch that names its version."""
    read = cluster.create(config_map("one"))
    cluster.update({**read, "data": {"writer": "first"}})

    with pytest.raises(Conflict):
        cluster.update({**read, "data": {"writer": "second"}})
    with pytest.raises(Conflict):
        cluster.patch("ConfigMap", "one", {"metadata": {"resourceVersion": version(read)}, "data": {"x": "y"}})
    assert {"writer": "first"} == cluster.get("ConfigMap", "one")["data"]


@rule
def a_status_is_a_version_as_well(cluster: Cluster) -> None:
    """Whoever writes metadata must have read the newest status, and the other way round."""
    old = cluster.claim()
    ready = Condition("Launched", "True", "Launched", since_s=NOON_S)
    newer = cluster.write(lambda writer: writer.update_node_claim_status(replace(old, conditions=(ready,))))

    with pytest.raises(Conflict):
        cluster.write(lambda writer: writer.update_node_claim(replace(old, labels={"a": "b"})))
    newest = cluster.write(lambda writer: writer.update_node_claim(replace(newer, labels={"a": "b"})))
    with pytest.raises(Conflict):
        cluster.write(lambda writer: writer.update_node_claim_status(replace(newer, node_name="n")))
    assert ("b", (ready,)) == (newest.labels["a"], newest.conditions)


@rule
def an_old_node_is_not_written(cluster: Cluster) -> None:
    """A node that has changed since it was read is a conflict; what was read last is written."""
    cluster.add_node("a")
    old = cluster.node("a")
    cluster.patch("Node", "a", labelled("x", "y"))

    with pytest.raises(Conflict):
        cluster.write(lambda writer: writer.update_node(replace(old, is_unschedulable=True)))
    cluster.change_node("a", lambda node: replace(node, is_unschedulable=True))
    assert ("y", True) == (cluster.node("a").labels["x"], cluster.node("a").is_unschedulable)


@rule
def a_generation_counts_changes_of_the_spec(cluster: Cluster) -> None:
    """Neither metadata nor status; the mark of a deletion counts once."""
    pool(cluster, finalizers=["kerf.dev/held"])

    def generation() -> int:
        return int(cluster.get("NodePool", "pool")["metadata"]["generation"])

    assert 1 == generation()
    cluster.patch("NodePool", "pool", labelled("a", "b"))
    cluster.patch("NodePool", "pool", {"status": {"nodes": 1}}, "status")
    assert 1 == generation()
    cluster.patch("NodePool", "pool", {"spec": {"weight": 2}})
    assert 2 == generation()
    cluster.delete("NodePool", "pool")
    cluster.delete("NodePool", "pool")
    assert 3 == generation()


@rule
def a_write_of_what_is_there_makes_no_version(cluster: Cluster) -> None:
    """So that controllers that repeat themselves come to rest."""
    read = cluster.create(config_map("one", labels={"a": "b"}))

    cluster.update(read)
    cluster.patch("ConfigMap", "one", labelled("a", "b"))
    cluster.patch("ConfigMap", "one", labelled("missing", None))

    assert version(read) == version(cluster.get("ConfigMap", "one"))


@rule
def status_and_all_else_are_written_apart(cluster: Cluster) -> None:
    """A write of one leaves the other alone, also at the creation of a kind whose status has its own controller."""
    claim = cluster.claim()
    kind, name = "NodeClaim", "claim"

    cluster.patch(kind, name, {"status": {"nodeName": "n"}, **labelled("a", "b")})
    assert ("b", {}) == (cluster.claim().labels["a"], cluster.get(kind, name).get("status", {}))
    cluster.patch(kind, name, {"status": {"nodeName": "n"}, "spec": {"expireAfter": "1h"}}, "status")

    assert ("n", claim.expire_after_s) == (cluster.claim().node_name, cluster.claim().expire_after_s)


@rule
def a_status_keeps_what_kerf_does_not_know(cluster: Cluster) -> None:
    """Kerf writes its own fields of a claim's status; those of others stay, and its own go when it has none."""
    cluster.claim()
    cluster.set_status("NodeClaim", "claim", imageID="ami-1", nodeName="n")
    claim = cluster.claim()
    written = cluster.write(lambda writer: writer.update_node_claim_status(replace(claim, node_name="")))

    status = cluster.get("NodeClaim", "claim")["status"]
    assert ("ami-1", None, "") == (status["imageID"], status.get("nodeName"), written.node_name)


@rule
def a_name_is_taken_once(cluster: Cluster) -> None:
    """The same name again is AlreadyExists, for Kerf's writer too; a prefix gives a new name each time."""
    cluster.create(config_map("one"))
    claim = cluster.claim()

    with pytest.raises(AlreadyExists):
        cluster.create(config_map("one"))
    with pytest.raises(AlreadyExists):
        cluster.write(lambda writer: writer.create_node_claim(claim))
    prefixed = {**config_map(""), "metadata": {"generateName": "many-"}}
    names = {name_of(cluster.create(prefixed)) for _ in range(2)}
    assert 2 == len({name for name in names if len(name) == len("many-12345")})


@rule
def what_is_not_there_is_not_found(cluster: Cluster) -> None:
    """Whatever is asked of it."""
    cluster.add_pod("web", schedulerName="nobody")
    pod, claim = cluster.pod("web"), cluster.claim()
    cluster.delete("Pod", "web")
    cluster.patch("NodeClaim", "claim", finalizers())
    cluster.delete("NodeClaim", "claim")
    cluster.until_gone("Pod", "web")

    calls: list[Callable[[KubeWriter], Any]] = [
        lambda writer: writer.evict(pod),
        lambda writer: writer.delete_pod(pod, 0),
        lambda writer: writer.tolerate(pod, reservation("c")),
        lambda writer: writer.annotate_pod(pod, {"a": "b"}),
        lambda writer: writer.update_node_claim(claim),
        lambda writer: writer.update_node_claim_status(claim),
        lambda writer: writer.delete_node_claim(claim),
        lambda writer: writer.annotate_node_pool(cluster.own("pool"), {"a": "b"}),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            cluster.write(call)
    with pytest.raises(NotFound):
        cluster.bind("web", "a")


@rule
def another_object_of_the_same_name_is_left_alone(cluster: Cluster) -> None:
    """Each verb means one uid; for one that was made again it is a conflict."""
    cluster.add_node("a")
    first = (cluster.claim(), cluster.node("a"))
    cluster.patch("NodeClaim", "claim", finalizers())
    for kind, name in (("NodeClaim", "claim"), ("Node", "a")):
        cluster.delete(kind, name)
        cluster.until_gone(kind, name)
    cluster.claim()
    cluster.add_node("a")

    for call in (
        lambda writer: writer.delete_node_claim(first[0]),
        lambda writer: writer.update_node_claim(replace(first[0], resource_version="")),
        lambda writer: writer.delete_node(first[1]),
        lambda writer: writer.update_node(replace(first[1], resource_version="")),
    ):
        with pytest.raises(Conflict):
            cluster.write(call)
    with pytest.raises(Conflict):
        cluster.patch("Node", "a", {"metadata": {"uid": first[1].uid, "labels": {"x": "y"}}})
    assert not is_deleting(cluster.get("NodeClaim", "claim"))
    assert not is_deleting(cluster.get("Node", "a"))


@rule
def another_pod_of_the_same_name_is_left_alone(cluster: Cluster) -> None:
    """As above: a StatefulSet makes its pods again under their names."""
    cluster.add_pod("web", schedulerName="nobody")
    other = replace(cluster.pod("web"), uid="00000000-0000-4000-8000-00000000000a")
    calls: list[Callable[[KubeWriter], Any]] = [
        lambda writer: writer.evict(other),
        lambda writer: writer.delete_pod(other, 0),
        lambda writer: writer.tolerate(other, reservation("c")),
        lambda writer: writer.annotate_pod(other, {"a": "b"}),
    ]
    for call in calls:
        with pytest.raises(Conflict):
            cluster.write(call)
    assert ((), {}) == (cluster.pod("web").reserved_for, annotations_of(cluster.get("Pod", "web")))


@rule
def a_toleration_is_added_for_good(cluster: Cluster) -> None:
    """To those of the pod, once however often it is asked for; the API lets nobody take one away."""
    cluster.add_pod("web", schedulerName="nobody", tolerations=[{"key": "a", "operator": "Exists"}])
    pod = cluster.pod("web")
    for _ in range(2):
        cluster.write(lambda writer: writer.tolerate(pod, reservation("c")))

    held = cluster.get("Pod", "web")["spec"]["tolerations"]
    assert ["a", "kerf.dev/reserved-for"] == [each["key"] for each in held if "node.kubernetes.io" not in each["key"]]
    with pytest.raises(ApiError, match=r"spec\.tolerations|additions"):
        cluster.patch("Pod", "web", {"spec": {"tolerations": held[1:]}})
    assert (("c",), pod.spec) == (cluster.pod("web").reserved_for, cluster.pod("web").spec)


@rule
def an_annotation_is_set_unless_it_is_there(cluster: Cluster) -> None:
    """Whoever wrote first stays, whatever else has changed; None removes one."""
    cluster.add_pod("web", schedulerName="nobody")
    pod, pin = cluster.pod("web"), {"nvidia.com/use-gpuuuid": "GPU-1"}
    cluster.patch("Pod", "web", labelled("x", "y"))
    cluster.write(lambda writer: writer.annotate_pod(pod, pin, unless_present=list(pin)))

    with pytest.raises(Conflict):
        cluster.write(lambda writer: writer.annotate_pod(pod, {**pin, "a": "b"}, unless_present=list(pin)))
    cluster.write(lambda writer: writer.annotate_pod(pod, {"a": "b"}))
    assert {**pin, "a": "b"} == annotations_of(cluster.get("Pod", "web"))
    cluster.write(lambda writer: writer.annotate_pod(pod, dict.fromkeys(pin)))
    assert {"a": "b"} == annotations_of(cluster.get("Pod", "web"))


# Deletion, finalizers, owners.


@rule
def a_finalizer_holds_a_deleted_object(cluster: Cluster) -> None:
    """It is marked once and for all, however often it is deleted, and gone with the last finalizer."""
    cluster.create(config_map("one", finalizers=["kerf.dev/a", "kerf.dev/b"]))
    cluster.delete("ConfigMap", "one")
    marked = cluster.get("ConfigMap", "one")
    cluster.rest(1.5)
    cluster.delete("ConfigMap", "one")
    cluster.patch("ConfigMap", "one", {"metadata": {"deletionTimestamp": None}})
    assert marked == cluster.get("ConfigMap", "one")
    assert 0 == marked["metadata"]["deletionGracePeriodSeconds"]

    cluster.patch("ConfigMap", "one", finalizers("kerf.dev/b"))
    assert is_deleting(cluster.get("ConfigMap", "one"))
    cluster.patch("ConfigMap", "one", finalizers())
    assert cluster.find("ConfigMap", "one") is None


@rule
def a_deleted_object_can_be_labelled_but_not_held_again(cluster: Cluster) -> None:
    """A finalizer that comes after the deletion is refused; everything else of it may change."""
    cluster.create(config_map("one", finalizers=["kerf.dev/a"]))
    cluster.delete("ConfigMap", "one")

    with pytest.raises(ApiError):
        cluster.patch("ConfigMap", "one", finalizers("kerf.dev/a", "kerf.dev/b"))
    cluster.patch("ConfigMap", "one", labelled("x", "y"))
    assert {"x": "y"} == cluster.get("ConfigMap", "one")["metadata"]["labels"]


@rule
def dependents_go_after_their_owner(cluster: Cluster) -> None:
    """In the background, also those that would block its deletion; a finalizer of the owner holds them as well."""
    owner = cluster.create(config_map("owner", finalizers=["kerf.dev/a"]))
    cluster.create(config_map("blocking", **owned_by(owner, controller=True, blockOwnerDeletion=True)))
    cluster.create(config_map("plain", **owned_by(owner)))
    cluster.delete("ConfigMap", "owner")
    cluster.rest(2)
    assert not is_deleting(cluster.get("ConfigMap", "plain"))

    cluster.patch("ConfigMap", "owner", finalizers())
    cluster.until_gone("ConfigMap", "owner", "blocking", "plain")


@rule
def an_object_stays_while_one_of_its_owners_lives(cluster: Cluster) -> None:
    """The reference to the other is taken away."""
    owners = [cluster.create(config_map(name)) for name in ("first", "second")]
    cluster.create(config_map("both", **owned_by(*owners)))
    cluster.delete("ConfigMap", "first")

    def references() -> list[str]:
        return [owner["name"] for owner in cluster.get("ConfigMap", "both")["metadata"].get("ownerReferences", ())]

    cluster.until(lambda: references() == ["second"], "one owner is left")
    cluster.delete("ConfigMap", "second")
    cluster.until_gone("ConfigMap", "both")


@rule
def an_owner_that_never_was_is_no_owner(cluster: Cluster) -> None:
    """An object whose only owner has another uid than any that exists is collected."""
    owner = cluster.create(config_map("owner"))
    stranger = {**owner, "metadata": {**owner["metadata"], "uid": "00000000-0000-4000-8000-00000000000a"}}
    cluster.create(config_map("orphan", **owned_by(stranger)), config_map("child", **owned_by(owner)))

    cluster.until_gone("ConfigMap", "orphan")
    assert cluster.get("ConfigMap", "child")


@rule
def a_claim_goes_after_its_pool(cluster: Cluster) -> None:
    """Marked by the garbage collector, held by Kerf's finalizer until its instance is gone."""
    pool(cluster)
    cluster.claim()
    cluster.delete("NodePool", "pool")
    cluster.until(lambda: is_deleting(cluster.get("NodeClaim", "claim")), "the claim is marked", 90)

    cluster.patch("NodeClaim", "claim", finalizers())
    assert cluster.find("NodeClaim", "claim") is None


# Watching.


@rule
def changes_are_told_in_order_and_a_deletion_with_the_last_form(cluster: Cluster) -> None:
    """Each form once; what is lost is told as it was last."""
    cluster.follow()
    cluster.create(cluster.node_object("a", finalizers=["kerf.dev/a"]))
    cluster.patch("Node", "a", labelled("x", "1"))
    cluster.delete("Node", "a")
    cluster.patch("Node", "a", labelled("x", "2"))
    cluster.patch("Node", "a", finalizers())
    cluster.until(lambda: cluster.told(Node)[-1:] and cluster.told(Node)[-1][0] == "lost", "the end is told")

    told = [(what, node.labels.get("x", ""), node.deleted_s is not None) for what, node in cluster.told(Node)]
    assert sorted(set(told), key=told.index) == [
        ("has", "", False),
        ("has", "1", False),
        ("has", "1", True),
        ("has", "2", True),
        ("lost", "2", True),
    ]


@rule
def a_reader_begins_with_all_there_is(cluster: Cluster) -> None:
    """Everything as it is now, whatever it was; then Synced; then changes."""
    cluster.create(cluster.node_object("a"), cluster.node_object("b"))
    cluster.patch("Node", "b", labelled("x", "1"))
    cluster.follow()

    assert {"a": "", "b": "1"} == {cluster.short(node.name): node.labels.get("x", "") for _, node in cluster.told(Node)}
    cluster.delete("Node", "a")
    cluster.until(lambda: cluster.known(Node) == ["b"], "a is lost")


@rule
def a_reader_that_begins_anew_tells_what_has_vanished(cluster: Cluster) -> None:
    """A state that outlives the reading stays right: lost is what went meanwhile, has is the rest."""
    cluster.create(cluster.node_object("a"), cluster.node_object("b"))
    cluster.follow()
    cluster.stop_reading()
    cluster.delete("Node", "a")
    cluster.create(cluster.node_object("c"))
    cluster.follow()

    assert [("lost", "a")] == [(what, cluster.short(node.name)) for what, node in cluster.told(Node) if what == "lost"]
    assert ["b", "c"] == cluster.known(Node)


@rule
def a_lost_history_loses_no_change(cluster: Cluster) -> None:
    """The reader lists anew: no gap, and nothing is told to be lost that is there."""
    cluster.create(*(cluster.node_object(name) for name in ("a", "b", "c")))
    cluster.follow()
    cluster.patch("Node", "b", labelled("x", "1"))
    cluster.lose_history()
    cluster.delete("Node", "a")
    cluster.create(cluster.node_object("d"))
    cluster.patch("Node", "c", labelled("x", "2"))

    cluster.until(lambda: cluster.known(Node) == ["b", "c", "d"], "all is known again")
    cluster.until(lambda: cluster.last_told("c").labels.get("x") == "2", "the newest form is known")
    assert {"a"} == {cluster.short(node.name) for what, node in cluster.told(Node) if what == "lost"}
    assert "1" == cluster.last_told("b").labels.get("x")
