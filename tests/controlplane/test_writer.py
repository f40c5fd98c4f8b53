"""Every write of Kerf on a real API server, made by a service account that has exactly the generated role."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from kerf.kube import writer as writer_module
from kerf.kube.client import Forbidden, KubeClient
from kerf.kube.crds import crds
from kerf.kube.recorder import CREATE_EVENT, KubeRecorder
from kerf.kube.resources import LEASES, NAMESPACES, NODES, PODS, Access
from kerf.kube.writer import KubeWriter
from kerf.manifests.decode import decode_object
from kerf.model import events
from kerf.model.capacitybuffers import BufferStatus, CapacityBuffer
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import Condition, NodeClaim
from kerf.model.nodes import Node, reservation
from kerf.model.provisioningrequests import CHECK_CAPACITY, ProvisioningRequest
from kerf.model.quantities import Resources
from kerf.model.windows import CapacityWindow
from kerf.ports import AlreadyExists, Conflict, EvictionBlocked, NotFound
from kerf.testing.builders import NOON_S
from tests.controlplane.group_definitions import definitions
from tests.controlplane.site import Object, Site, conditions
from tools.controlplane.server import ControlPlane

READY = Condition("Ready", "True", "Ready", since_s=NOON_S)
PIN = {"nvidia.com/use-gpuuuid": "GPU-1"}


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> ControlPlane:
    """A control plane that knows Karpenter's kinds."""
    control_plane.install_crds(crds())
    return control_plane


@pytest.fixture
def site(served: ControlPlane, namespace: str) -> Iterator[Site]:
    """A fresh one."""
    made = Site(served, namespace)
    yield made
    made.close()


# Claims.


def test_a_claim_is_created_with_owner_and_finalizer(site: Site) -> None:
    """It comes back with its uid; a repetition finds it."""

    async def act(writer: KubeWriter) -> NodeClaim:
        claim = await writer.create_node_claim(site.claim())
        with pytest.raises(AlreadyExists):
            await writer.create_node_claim(site.claim())
        return claim

    claim, metadata = site.write(act), site.raw("NodeClaim")["metadata"]
    assert [site.raw("NodePool")["metadata"]["uid"]] == [owner["uid"] for owner in metadata["ownerReferences"]]
    assert (metadata["uid"], ("karpenter.sh/termination",)) == (claim.uid, claim.finalizers)


def test_metadata_and_status_of_a_claim_are_written_apart(site: Site) -> None:
    """What has gone from the value goes from the object; writing the same again makes no new version."""

    async def act(writer: KubeWriter) -> NodeClaim:
        claim = await writer.create_node_claim(replace(site.claim(), annotations={"a": "1", "b": "2"}))
        claim = await writer.update_node_claim(replace(claim, annotations={"a": "1"}, provider_id="ignored"))
        launched = replace(claim, capacity=Resources({"cpu": 4000, "nvidia.com/gpu": 1}), node_name="n")
        claim = await writer.update_node_claim_status(launched)
        left = replace(claim, capacity=Resources({"cpu": 4000}), node_name="", conditions=(READY,), annotations={})
        claim = await writer.update_node_claim_status(left)
        assert claim == await writer.update_node_claim_status(claim)
        return await writer.update_node_claim(claim)

    claim, stored = site.write(act), site.raw("NodeClaim")
    assert {"a": "1"} == stored["metadata"]["annotations"]
    assert {"cpu": "4"} == stored["status"]["capacity"]
    assert ((READY,), "", stored["metadata"]["resourceVersion"]) == (
        claim.conditions,
        claim.node_name,
        claim.resource_version,
    )


def test_an_old_version_or_another_object_is_a_conflict(site: Site) -> None:
    """Neither metadata nor status is written, and nothing is deleted."""

    async def act(writer: KubeWriter) -> None:
        old = await writer.create_node_claim(site.claim())
        claim = await writer.update_node_claim(replace(old, annotations={"a": "1"}))
        other = replace(claim, uid="00000000-0000-4000-8000-000000000000", annotations={})
        for held in (old, other):
            with pytest.raises(Conflict):
                await writer.update_node_claim(replace(held, annotations={"b": "2"}))
            with pytest.raises(Conflict):
                await writer.update_node_claim_status(replace(held, node_name="n"))
        with pytest.raises(Conflict):
            await writer.delete_node_claim(other)
        with pytest.raises(Conflict):
            await writer.delete_node(replace(site.node(), uid=other.uid))

    site.write(act)
    assert {"a": "1"} == site.raw("NodeClaim")["metadata"]["annotations"]
    assert "deletionTimestamp" not in site.raw("Node")["metadata"]


def test_a_deleted_claim_stays_until_its_finalizer_goes(site: Site) -> None:
    """Asked for twice, marked once; the last finalizer gives the object as it was."""

    async def act(writer: KubeWriter) -> NodeClaim:
        claim = await writer.create_node_claim(site.claim())
        await writer.delete_node_claim(claim)
        await writer.delete_node_claim(claim)
        marked = decode_object(site.raw("NodeClaim"))
        assert isinstance(marked, NodeClaim)
        last = await writer.update_node_claim(replace(marked, finalizers=()))
        with pytest.raises(NotFound):
            await writer.delete_node_claim(claim)
        with pytest.raises(NotFound):
            await writer.update_node_claim(replace(marked, finalizers=()))
        return last

    assert () == site.write(act).finalizers
    assert None is site.plane.get("NodeClaim", site.name)


# Nodes, pools and overlays.


def test_a_node_is_written_where_kerf_may(site: Site) -> None:
    """Labels, taints, cordon and finalizers; a taint that stays keeps its time."""
    held = {"key": "gone", "effect": "NoExecute", "timeAdded": "2026-01-05T07:00:00Z"}
    site.patch_node({"spec": {"taints": [held]}})

    def closed(node: Node) -> Node:
        taints = (*node.taints, Taint("more"))
        return replace(node, taints=taints, is_unschedulable=True, labels={"a": "b"}, finalizers=("kerf.dev/f",))

    async def act(writer: KubeWriter) -> Object:
        await site.settled(writer, closed)
        await writer.delete_node(site.node())
        spec: Object = site.raw("Node")["spec"]
        last = await site.settled(writer, lambda node: replace(node, finalizers=()))
        assert ("b", True) == (last.labels["a"], last.is_unschedulable)
        return spec

    taints = {taint["key"]: taint for taint in site.write(act)["taints"]}
    assert (held, "NoSchedule") == (taints["gone"], taints["more"]["effect"])
    assert None is site.plane.get("Node", site.name)


def test_a_pool_and_an_overlay_take_status_and_annotations(site: Site) -> None:
    """Their generation stays; a resource that no node has any more is taken away; None removes an annotation."""

    async def act(writer: KubeWriter) -> None:
        await writer.update_node_pool_status(site.name, Resources({"cpu": 4000, "nodes": 1}), [READY])
        await writer.update_node_pool_status(site.name, Resources({"nodes": 0}), [READY])
        await writer.update_node_overlay_status(site.name, [READY])
        await writer.annotate_node_pool(site.name, {"kerf.dev/a": "1", "kerf.dev/b": "2"})
        await writer.annotate_node_pool(site.name, {"kerf.dev/a": None})
        with pytest.raises(NotFound):
            await writer.annotate_node_pool("never-there", {"a": "1"})

    site.write(act)
    pool = site.raw("NodePool")
    assert ({"nodes": "0"}, 1) == (pool["status"]["resources"], pool["metadata"]["generation"])
    assert (None, "2") == tuple(pool["metadata"]["annotations"].get(key) for key in ("kerf.dev/a", "kerf.dev/b"))
    assert ["True"] == conditions(pool, "Ready") == conditions(site.raw("NodeOverlay"), "Ready")


# Pods.


def test_a_pin_never_overwrites(site: Site) -> None:
    """What is there already is a conflict."""
    pod = site.pod()

    async def act(writer: KubeWriter) -> None:
        await writer.annotate_pod(pod, PIN, unless_present=tuple(PIN))
        with pytest.raises(Conflict, match=r"has the annotation nvidia\.com/use-gpuuuid already"):
            await writer.annotate_pod(pod, PIN, unless_present=tuple(PIN))
        await writer.annotate_pod(pod, {**dict.fromkeys(PIN), "kerf.dev/a": "1"})

    site.write(act)
    annotations = site.raw("Pod")["metadata"]["annotations"]
    assert (None, "1") == (annotations.get("nvidia.com/use-gpuuuid"), annotations["kerf.dev/a"])


def test_eight_writers_of_one_pod_all_succeed(site: Site) -> None:
    """Each looks again when it was overtaken: nobody's annotation is lost."""
    pod = site.pod()

    async def act(writer: KubeWriter) -> None:
        await asyncio.gather(
            *(writer.annotate_pod(pod, {f"kerf.dev/{n}": "1"}, unless_present=["x"]) for n in range(8))
        )

    site.write(act)
    annotations = site.raw("Pod")["metadata"]["annotations"]
    assert 8 == sum(1 for key in annotations if key.startswith("kerf.dev/"))


def test_a_pod_made_again_under_its_name_is_left_alone(site: Site) -> None:
    """Whatever the server thinks of another's uid (409 here, 422 there), it is a conflict."""
    other = replace(site.pod(), uid="00000000-0000-4000-8000-000000000000")

    async def act(writer: KubeWriter) -> None:
        calls = (
            writer.evict(other),
            writer.delete_pod(other, 0),
            writer.tolerate(other, reservation(site.name)),
            writer.annotate_pod(other, PIN),
        )
        for call in calls:
            with pytest.raises(Conflict):
                await call

    site.write(act)
    assert "kerf.dev/reserved-for" not in str(site.raw("Pod")["spec"])
    assert "deletionTimestamp" not in site.raw("Pod")["metadata"]


def test_evicting_respects_budgets_and_deleting_does_not(site: Site) -> None:
    """A budget that was counted forbids; one that was not yet is waited for alike; then only time is given."""
    pod = site.pod(runs=True)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    site.plane.apply([site.object("policy/v1", "PodDisruptionBudget", spec=spec, namespace=site.name)])

    async def act(writer: KubeWriter) -> None:
        with pytest.raises(EvictionBlocked):
            await writer.evict(pod)
        site.plane.wait_until(lambda: site.raw("pdb")["status"].get("currentHealthy") == 1, 30, "the budget is counted")
        with pytest.raises(EvictionBlocked, match="needs 1 healthy pods and has 1 currently"):
            await writer.evict(pod)
        await writer.delete_pod(pod, 1)
        site.plane.wait_until(lambda: site.plane.get("Pod", site.name, site.name) is None, 30, "the pod has ended")
        with pytest.raises(NotFound):
            await writer.delete_pod(pod, 1)

    site.write(act)


def test_an_eviction_ends_a_pod_and_may_be_repeated(site: Site) -> None:
    """Without a budget in its way: marked, ended by its kubelet, then not found."""
    pod = site.pod(runs=True)

    async def act(writer: KubeWriter) -> None:
        await writer.evict(pod)
        with suppress(NotFound):
            await writer.evict(pod)
        site.plane.wait_until(lambda: site.plane.get("Pod", site.name, site.name) is None, 30, "the pod has ended")
        with pytest.raises(NotFound):
            await writer.evict(pod)

    site.write(act)


# Events and the role.


class Noon:
    """A clock that stands."""

    def now_s(self) -> float:
        """Noon of the snapshots."""
        return NOON_S

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """Never comes."""


def test_kubectl_describe_shows_the_events_of_that_very_object(site: Site) -> None:
    """By its uid: a namespaced object in its namespace, a cluster-wide one in `default`."""
    pod = site.pod()
    claim = site.write(lambda writer: writer.create_node_claim(site.claim()))
    uids = {"Pod": pod.uid, "Node": site.node().uid, "NodeClaim": claim.uid}

    async def act(client: KubeClient) -> int:
        recorder = KubeRecorder(client, Noon(), lambda kind, key: uids.get(kind))
        recorder.start()
        recorder.record(events.nominated(pod.key, f"nodeclaim/{site.name}"))
        recorder.record(events.stage_reached(site.name, "Launched", "launched t/z/on-demand"))
        recorder.record(events.failed_draining(site.name, "Failed to drain node, 3 pods are waiting to be evicted", ""))
        await recorder.close()
        return recorder.dropped

    assert 0 == site.run(act)
    texts = {"pod": "Pod should schedule on", "nodeclaim": "launched t/z/on-demand", "node": "Failed to drain node"}
    for kind, text in texts.items():
        assert text in site.plane.kubectl("describe", kind, site.name, "-n", site.name).stdout


def test_every_access_is_used_and_nothing_else_is_granted(site: Site) -> None:
    """The audit log of one life of everything shows what writer and recorder declare; other calls are forbidden."""
    pod, window, request, buffer = site.pod(), a_window_of(site), a_request_of(site), a_buffer_of(site)

    async def act(client: KubeClient) -> None:
        writer, recorder = KubeWriter(client), KubeRecorder(client, Noon(), lambda kind, key: pod.uid)
        claim = await writer.create_node_claim(site.claim())
        claim = await writer.update_node_claim(replace(claim, annotations={"a": "1"}))
        await writer.update_node_claim_status(replace(claim, node_name="n"))
        await writer.delete_node_claim(claim)
        await site.settled(writer, lambda node: replace(node, annotations={}))
        await writer.delete_node(site.node())
        await writer.update_node_pool_status(site.name, Resources({"nodes": 1}), [READY])
        await writer.update_node_overlay_status(site.name, [READY])
        closed = await writer.update_window_status(replace(window, status=replace(window.status, phase="Closed")))
        await writer.update_window_finalizers(replace(closed, finalizers=("kerf.dev/eviction",)))
        await writer.update_provisioning_request_status(replace(request, conditions=(READY,)))
        await writer.update_capacity_buffer_status(replace(buffer, status=BufferStatus(3, conditions=(READY,))))
        await writer.annotate_node_pool(site.name, {"a": "1"})
        await writer.annotate_pod(pod, PIN)
        await writer.tolerate(pod, reservation(site.name))
        await writer.evict(pod)
        with suppress(NotFound):
            await writer.delete_pod(pod, 0)
        recorder.start()
        recorder.record(events.nominated(pod.key, "node/n"))
        await recorder.close()
        for declared in _WIDER:
            with pytest.raises(Forbidden, match="hint: grant"):
                await client.call(declared, namespace=site.name, name=site.name, body={})

    site.run(act)
    declared = {value for value in vars(writer_module).values() if isinstance(value, Access)} | {CREATE_EVENT}
    assert {(a.verb, str(a.resource), a.subresource) for a in declared} == _allowed(site)


def a_window_of(site: Site) -> CapacityWindow:
    """A window of our name, as it is stored."""
    selector = {"matchLabels": {"kerf.dev/window": site.name}}
    spec = {"schedule": "0 8 * * *", "duration": "1h", "pods": {"selector": selector}}
    version = "kerf.dev/v1alpha1"
    site.plane.apply([{"apiVersion": version, "kind": "CapacityWindow", "metadata": {"name": site.name}, "spec": spec}])
    value = decode_object(site.raw("CapacityWindow"))
    assert isinstance(value, CapacityWindow)
    return value


def a_buffer_of(site: Site) -> CapacityBuffer:
    """A CapacityBuffer of our name, as it is stored."""
    metadata = {"name": site.name, "namespace": site.name}
    spec = {"podTemplateRef": {"name": "none"}, "replicas": 1}
    version = "autoscaling.x-k8s.io/v1beta1"
    site.plane.apply([{"apiVersion": version, "kind": "CapacityBuffer", "metadata": metadata, "spec": spec}])
    value = decode_object(site.raw("CapacityBuffer"))
    assert isinstance(value, CapacityBuffer)
    return value


def a_request_of(site: Site) -> ProvisioningRequest:
    """A ProvisioningRequest of our name, as it is stored, on a server that has learned the kind."""
    site.plane.install_crds(definitions())
    metadata = {"name": site.name, "namespace": site.name}
    spec = {"provisioningClassName": CHECK_CAPACITY, "podSets": [{"podTemplateRef": {"name": "none"}, "count": 1}]}
    version = "autoscaling.x-k8s.io/v1"
    made = {"apiVersion": version, "kind": "ProvisioningRequest", "metadata": metadata, "spec": spec}
    site.plane.apply([made])
    value = decode_object(site.raw("ProvisioningRequest"))
    assert isinstance(value, ProvisioningRequest)
    return value


_WIDER = (
    Access("update", NODES),
    Access("patch", NODES, "status"),
    Access("update", PODS),
    Access("delete", NAMESPACES),
    Access("delete", LEASES),
)


def _allowed(site: Site) -> set[tuple[str, str, str]]:
    """What our account was allowed to do, by the audit log; its group stands in the name of the resource."""
    found = set()
    for event in site.plane.audit_events():
        asked = event.get("objectRef", {})
        is_ours = event["user"]["username"] == site.user and event["stage"] == "ResponseComplete"
        if is_ours and event.get("responseStatus", {}).get("code") != 403:
            group = f".{asked['apiGroup']}" if asked.get("apiGroup") else ""
            found.add((event["verb"], asked["resource"] + group, asked.get("subresource", "")))
    return found
