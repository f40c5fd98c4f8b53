"""Pages, watch events and their objects, from the bytes of a live API."""

import json
from typing import Any

import msgspec
import pytest

from kerf.errors import DecodeError
from kerf.manifests.decode import decode_object
from kerf.manifests.live import (
    ApiStatus,
    Identity,
    decode_event,
    decode_list,
    decode_live,
    identity_of,
    status_of,
)
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.nodes import Node
from kerf.model.pods import READ_DOMAINS, Owner, Pod
from kerf.model.quantities import Resources
from kerf.sharing.hami import options as hami_options
from kerf.sharing.hami import records as hami_records

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}
REFUSED = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes", "lastTransitionTime": None}


def a_live_pod(name: str = "p", **metadata: Any) -> dict[str, Any]:
    """A pod as an item of a list: without kind, with a token volume that differs from pod to pod."""
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}, "volumeMounts": [name]}]
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-05T07:00:00Z",
            "labels": {"app": "web"},
            "ownerReferences": [OWNER],
            "managedFields": [{"manager": "kubelet"}],
            **metadata,
        },
        "spec": {"containers": containers, "volumes": [{"name": name, "projected": {}}], "nodeName": "node-1"},
        "status": {"phase": "Running", "startTime": "2026-01-05T07:00:10.5+01:00", "conditions": [REFUSED]},
    }


def decoded(obj: dict[str, Any]) -> Pod:
    """The pod that an API server would send like this."""
    pod = decode_live(json.dumps(obj).encode(), "Pod", "v1")
    assert isinstance(pod, Pod)
    return pod


def test_a_page_shows_where_the_next_begins() -> None:
    """Items stay bytes until they are decoded."""
    meta = {"resourceVersion": "9", "continue": "next", "remainingItemCount": 3}
    page = decode_list(json.dumps({"kind": "PodList", "metadata": meta, "items": [{"a": 1}, {}]}).encode())

    assert ("9", "next", 3) == (page.resource_version, page.continue_token, page.remaining)
    assert [b'{"a": 1}', b"{}"] == [bytes(item) for item in page.items]


def test_the_last_page_has_no_token() -> None:
    """An empty list may have no items at all."""
    page = decode_list(b'{"metadata":{"resourceVersion":"9"},"items":null}')

    assert ("", None, ()) == (page.continue_token, page.remaining, page.items)


@pytest.mark.parametrize("text", [b"", b'{"items":[{"a":1},', b"<html>", b'{"items":3}', b"[" * 100_000])
def test_an_answer_that_was_cut_off_is_no_list(text: bytes) -> None:
    """The reflector lists again."""
    with pytest.raises(DecodeError, match="expected a Kubernetes list"):
        decode_list(text)


def test_a_watch_event_has_a_type_and_an_object() -> None:
    """A bookmark's object has nothing but a version."""
    event = decode_event(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}')

    assert ("BOOKMARK", "12") == (event.type, identity_of(event.object).resource_version)


@pytest.mark.parametrize("line", [b'{"type":"ADDED","obj', b'{"type":"ADDED"}', b'{"type":1,"object":{}}', b"\xff"])
def test_a_line_that_was_cut_off_is_no_event(line: bytes) -> None:
    """The reflector watches again from the last version."""
    with pytest.raises(DecodeError, match="expected a watch event"):
        decode_event(line)


def test_a_refusal_is_read_from_its_status() -> None:
    """Also how long to wait, where the server says so."""
    gone = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}'
    throttled = b'{"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":5}}'

    assert ApiStatus(410, "Expired", "too old") == status_of(gone)
    assert ApiStatus(429, "TooManyRequests", "", 5) == status_of(throttled)
    assert ApiStatus(0, "", "<html>bad gateway") == status_of(b"<html>bad gateway")


def test_an_object_that_cannot_be_decoded_has_a_name() -> None:
    """So that it can be told what is wrong with it."""
    raw = b'{"metadata":{"namespace":"a","name":"b","uid":"c","resourceVersion":"4"},"spec":{"containers":3}}'
    with pytest.raises(DecodeError):
        decode_live(raw, "Pod", "v1")

    assert Identity("a", "b", "c", "4") == identity_of(raw)
    assert Identity("", "b", "", "") == identity_of(b'{"metadata":{"name":"b","uid":7}}')
    with pytest.raises(DecodeError, match="metadata: expected a mapping"):
        identity_of(b'{"metadata":null}')


def test_a_pod_has_what_decisions_read() -> None:
    """Identity, shape and state."""
    pod = decoded(a_live_pod())

    assert ("team/p", "uid-p", "7", {"app": "web"}) == (pod.key, pod.uid, pod.resource_version, pod.labels)
    assert (Owner("ReplicaSet", "web-1", "r"), "node-1", "Running") == (pod.owner, pod.node_name, pod.phase)
    assert (1767596400, 1767592810.5, "0/3 nodes") == (pod.created_s, pod.started_s, pod.unschedulable)
    assert Resources({"cpu": 1000, "pods": 1}) == pod.spec.requests


def test_pods_of_one_workload_share_what_is_equal() -> None:
    """The token volume is another in each pod; no decision reads it."""
    one, other = decoded(a_live_pod("p")), decoded(a_live_pod("q"))

    assert (one.spec, one.labels, one.owner) == (other.spec, other.labels, other.owner)
    assert all(a is b for a, b in ((one.spec, other.spec), (one.labels, other.labels), (one.owner, other.owner)))


def test_sharing_outlasts_many_shapes() -> None:
    """Two thousand other shapes between two equal pods do not part them."""
    first = decoded(a_live_pod())
    for number in range(2_000):
        decoded(a_live_pod(labels={"app": f"other-{number}"}, ownerReferences=[{**OWNER, "name": f"o-{number}"}]))

    assert first.labels is decoded(a_live_pod("q")).labels


def test_annotations_that_nothing_reads_are_not_kept() -> None:
    """Neither a tool's notes nor a million letters; what sharing and disruption read is."""
    hostile = {"example.com/note": "x" * 10**6, "hami.io/vgpu-node": "n", DO_NOT_DISRUPT: "true", "plain": "x"}

    assert {"hami.io/vgpu-node": "n", DO_NOT_DISRUPT: "true"} == decoded(a_live_pod(annotations=hostile)).annotations


def test_an_annotation_that_is_read_is_kept_whole() -> None:
    """HAMi counts all of it, up to the 256 KiB that the API takes."""
    text = "GPU-a,NVIDIA,1,0:" * 15_000

    assert text == decoded(a_live_pod(annotations={hami_records.ALLOCATED: text})).annotations[hami_records.ALLOCATED]


@pytest.mark.parametrize("module", [hami_options, hami_records])
def test_every_annotation_of_a_sharing_family_is_of_a_kept_domain(module: Any) -> None:
    """A family with a domain of its own must add it."""
    names = {text for name, text in vars(module).items() if name.isupper() and isinstance(text, str) and "/" in text}

    assert names
    assert READ_DOMAINS >= {text.partition("/")[0] for text in names}


def a_live_node(version: str, beat: str, status: str = "True") -> dict[str, Any]:
    """A node as kubelet writes it, in other words each time."""
    ready = {"type": "Ready", "status": status, "lastHeartbeatTime": beat, "lastTransitionTime": "2026-01-05T07:00:00Z"}
    ready["message"] = f"is up since {beat}"
    metadata = {"name": "n", "uid": "u", "resourceVersion": version, "labels": {"a": "b"}}
    return {"metadata": metadata, "status": {"capacity": {"cpu": "4"}, "conditions": [ready]}}


@pytest.mark.parametrize("status", ["True", "False"])
def test_a_heartbeat_changes_the_version_of_a_node_alone(status: str) -> None:
    """And whatever else is new beside it is seen, as if the node had never been read before."""
    first = a_live_node("1", "2026-01-05T07:00:00Z")
    then = a_live_node("2", "2026-01-05T07:05:00Z", status)
    decode_live(json.dumps(first).encode(), "Node", "v1")

    again = decode_live(json.dumps(then).encode(), "Node", "v1")
    assert decode_object({"apiVersion": "v1", "kind": "Node", **then}) == again


HANDSHAKES = ("hami.io/node-handshake", "hami.io/node-handshake-Ascend910B", "volcano.sh/node-vgpu-handshake")


@pytest.mark.parametrize("key", HANDSHAKES)
@pytest.mark.parametrize("said", ["Reported 2026.01.05 07:05:00", "Active", "Deleted_2026.01.05 07:05:00", ""])
def test_a_handshake_is_no_change_unless_the_devices_are_gone(key: str, said: str) -> None:
    """It comes twice in half a minute, and would let no decision rest."""
    first, then = (a_live_node(version, "2026-01-05T07:00:00Z") for version in "12")
    first["metadata"]["annotations"] = {key: "Requesting_2026.01.05 07:00:00", "a/b": "c"}
    then["metadata"]["annotations"] = {key: said, "a/b": "c"}
    before = decode_live(json.dumps(first, separators=(",", ":")).encode(), "Node", "v1")

    again = decode_live(json.dumps(then, separators=(",", ":")).encode(), "Node", "v1")
    assert isinstance(before, Node)
    assert isinstance(again, Node)
    assert decode_object({"apiVersion": "v1", "kind": "Node", **then}) == again
    assert {"a/b": "c"} == before.annotations
    assert {"a/b": "c"} | ({key: "Deleted"} if said.startswith("Deleted") else {}) == again.annotations


def test_an_annotation_that_only_begins_like_a_handshake_is_read_again() -> None:
    """What a node is known by leaves out no more than what is not kept."""
    first, then = (a_live_node(version, "2026-01-05T07:00:00Z") for version in "12")
    for node, text in ((first, "one"), (then, "other")):
        node["metadata"]["annotations"] = {"hami.io/node-handshakes": text}
    decode_live(json.dumps(first, separators=(",", ":")).encode(), "Node", "v1")

    again = decode_live(json.dumps(then, separators=(",", ":")).encode(), "Node", "v1")
    assert isinstance(again, Node)
    assert {"hami.io/node-handshakes": "other"} == again.annotations


def test_the_items_of_a_page_are_decoded_as_they_are() -> None:
    """Without being copied first."""
    page = decode_list(json.dumps({"metadata": {}, "items": [a_live_pod()]}).encode())

    assert isinstance(page.items[0], msgspec.Raw)
    assert decoded(a_live_pod()) == decode_live(page.items[0], "Pod", "v1")


def test_a_kind_that_is_not_followed_is_nothing() -> None:
    """A Secret of the core group, a workload that the controllers do not read."""
    assert decode_live(b'{"metadata":{"name":"s"}}', "Secret", "v1") is None
    assert decode_live(json.dumps(a_live_pod()).encode(), "Deployment", "apps/v1") is None


@pytest.mark.parametrize("text", [b"", b"{", b'{"metadata":"\xff"}', b"[" * 100_000])
@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_bytes_that_are_no_json_are_refused(text: bytes, kind: str) -> None:
    """As any other object that cannot be read."""
    with pytest.raises(DecodeError, match="expected a JSON object"):
        decode_live(text, kind, "v1")


def test_an_ephemeral_volume_of_a_live_pod_is_a_claim_named_after_both() -> None:
    """As that of a manifest."""
    pod = a_live_pod()
    pod["spec"]["volumes"].append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}})

    (template,) = decoded(pod).spec.claim_templates
    assert "web-0-scratch" == template.claim_of("web-0")
    assert () == decoded(pod).spec.not_planned
    assert decode_object({"apiVersion": "v1", "kind": "Pod", **pod}) == decoded(pod)


@pytest.mark.parametrize("name", [["node-1"], {"a": 1}, 7, True])
def test_a_node_name_that_is_no_text_is_wrong_with_that_pod_alone(name: object) -> None:
    """In an object of a server as in a manifest."""
    pod = a_live_pod()
    pod["spec"]["nodeName"] = name

    with pytest.raises(DecodeError, match=r"Pod p: spec\.nodeName: expected text, got "):
        decoded(pod)


def resized(spec: str, given: dict[str, Any], *, condition: str = "", bound: bool = True) -> int | None:
    """The millicores that a pod counts for whose container asks `spec` and was given so much."""
    pod = a_live_pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": spec}}
    pod["status"]["containerStatuses"] = [{"name": "main", "state": {"running": {}}, **given}]
    if condition:
        pod["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": condition})
    if not bound:
        del pod["spec"]["nodeName"]
    read = decoded(pod)
    assert decode_object({"apiVersion": "v1", "kind": "Pod", **pod}) == read
    return read.spec.requests.get("cpu")


@pytest.mark.parametrize(
    "given, counted",
    [
        ({}, 1000),
        ({"allocatedResources": {"cpu": "1"}}, 1000),
        ({"allocatedResources": {"cpu": "3"}}, 3000),
        ({"resources": {"requests": {"cpu": "2"}}}, 2000),
        ({"allocatedResources": {"cpu": "500m"}, "resources": {"requests": {"cpu": "500m"}}}, 1000),
    ],
)
def test_of_a_resize_in_place_the_largest_amount_counts(given: dict[str, Any], counted: int) -> None:
    """What is asked, allocated or in effect, as kube-scheduler counts a bound pod."""
    assert counted == resized("1", given)


def test_a_resize_that_can_never_be_does_not_count() -> None:
    """Kubelet says that it is infeasible; one that is only deferred counts."""
    given = {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}

    assert (1000, 8000) == (resized("8", given, condition="Infeasible"), resized("8", given, condition="Deferred"))


def test_a_pod_on_no_node_has_what_it_asks() -> None:
    """No kubelet has given it anything yet."""
    assert 1000 == resized("1", {"allocatedResources": {"cpu": "3"}}, bound=False)


def test_sizes_that_are_no_quantities_are_wrong_with_that_pod_alone() -> None:
    """As everything that an API server would not send."""
    with pytest.raises(DecodeError, match="expected a quantity"):
        resized("1", {"allocatedResources": {"cpu": "lots"}})
