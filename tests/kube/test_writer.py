"""Writes to an API server: which object, which version, and nothing more than the difference."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from aiohttp import web

from kerf.errors import ApiError
from kerf.kube.client import Unreachable
from kerf.kube.writer import KubeWriter, Overtaken
from kerf.manifests.decode import decode_object
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import Condition, NodeClaim
from kerf.model.nodes import Node, reservation
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.ports import AlreadyExists, Conflict, EvictionBlocked, NotFound, WriteRefused
from kerf.ports import KubeWriter as WriterPort
from kerf.sim.kubernetes.admission import tolerate_ill_nodes
from kerf.sim.objects import Json
from kerf.testing.builders import a_claim, a_pod
from tests.kube.fake_objects import START_S, FakeObjects, Seen, refusal
from tests.sim.world import budget

_T = TypeVar("_T")
PIN, TAINT = {"nvidia.com/use-gpuuuid": "GPU-1"}, reservation("claim-1")
READY = Condition("Ready", "True", since_s=START_S)
NEW = a_claim("g5-a", pool="g5", reached=())
OBJECTS: tuple[Json, ...] = (
    {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "g5"}, "spec": {}},
    {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "half"}, "spec": {}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a", "labels": {"zone": "a"}}, "spec": {}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    },
)


class Bench:
    """A server with a pool, an overlay, a node and a pod."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.fake = FakeObjects()

    def run(self, act: Callable[[KubeWriter], Awaitable[_T]]) -> _T:
        """What `act` gives with a writer."""

        async def connected() -> _T:
            for obj in OBJECTS:
                self.fake.api.create(obj)
            async with self.fake.client(self._folder) as client:
                return await act(KubeWriter(client))

        return asyncio.run(connected())

    def stored(self, kind: str) -> Json:
        """The only object of a kind."""
        (found,) = self.fake.api.list(kind)
        return found

    def node(self) -> Node:
        """The node as a controller knows it."""
        value = decode_object(self.stored("Node"))
        assert isinstance(value, Node)
        return value

    def pod(self) -> Pod:
        """The pod as a controller knows it."""
        return a_pod("web-0", uid=self.stored("Pod")["metadata"]["uid"])

    def meddle(self, times: int, annotations: dict[str, str]) -> None:
        """Let another write the pod's annotations ahead of our next so many writes."""
        left = list(range(times))

        async def act(seen: Seen) -> None:
            if left:
                patch = {"metadata": {"annotations": annotations, "labels": {"n": str(left.pop())}}}
                self.fake.api.patch("Pod", "default", "web-0", patch)

        self.fake.before = act


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A fresh one."""
    return Bench(tmp_path)


def test_the_writer_fits_the_port(bench: Bench) -> None:
    """The type checker holds the class to its Protocol."""

    async def act(writer: KubeWriter) -> WriterPort:
        return writer

    assert bench.run(act)


# Claims.


def test_a_claim_is_created_with_owner_and_finalizer(bench: Bench) -> None:
    """It comes back with its uid; a repetition finds it."""

    async def act(writer: KubeWriter) -> NodeClaim:
        claim = await writer.create_node_claim(NEW)
        with pytest.raises(AlreadyExists):
            await writer.create_node_claim(NEW)
        return claim

    claim = bench.run(act)
    metadata = bench.stored("NodeClaim")["metadata"]
    assert [bench.stored("NodePool")["metadata"]["uid"]] == [owner["uid"] for owner in metadata["ownerReferences"]]
    assert (metadata["uid"], ("karpenter.sh/termination",)) == (claim.uid, claim.finalizers)


def test_a_claim_of_a_pool_that_is_gone_is_nobodys(bench: Bench) -> None:
    """The pool went between plan and launch: the claim is made all the same, as in the in-memory cluster."""
    bench.run(lambda writer: writer.create_node_claim(replace(NEW, node_pool="gone")))

    assert "ownerReferences" not in bench.stored("NodeClaim")["metadata"]


def test_only_the_difference_of_metadata_is_written(bench: Bench) -> None:
    """A key that is gone is null; the patch says of which object and version it is; no difference is no patch."""

    async def act(writer: KubeWriter) -> tuple[NodeClaim, NodeClaim]:
        claim = await writer.create_node_claim(NEW)
        labels = {key: value for key, value in claim.labels.items() if "zone" not in key}
        written = await writer.update_node_claim(replace(claim, labels=labels, annotations={"a": "1"}))
        return claim, await writer.update_node_claim(written)

    claim, last = bench.run(act)
    this = {"uid": claim.uid, "resourceVersion": claim.resource_version}
    change = {"labels": {"topology.kubernetes.io/zone": None}, "annotations": {"a": "1"}}
    assert ["POST nodeclaims", "PATCH nodeclaims/g5-a"] == bench.fake.writes()
    assert {"metadata": {**change, **this}} == bench.fake.seen[-2].body
    assert ({"a": "1"}, False) == (last.annotations, "topology.kubernetes.io/zone" in last.labels)


def test_a_status_loses_what_is_no_longer_there(bench: Bench) -> None:
    """Conditions are one list; a resource that has gone is null; what Kerf does not know stays."""

    async def act(writer: KubeWriter) -> NodeClaim:
        claim = await writer.create_node_claim(NEW)
        status = {"imageID": "ami-1", "capacity": {"cpu": "4", "nvidia.com/gpu": "1"}, "nodeName": "node-a"}
        held = bench.fake.api.patch("NodeClaim", "", "g5-a", {"status": status}, subresource="status")
        claim = replace(claim, resource_version=held["metadata"]["resourceVersion"])
        return await writer.update_node_claim_status(
            replace(claim, capacity=Resources({"cpu": 4000}), conditions=(READY,))
        )

    written, stored = bench.run(act), bench.stored("NodeClaim")["status"]
    assert ("", True) == (written.node_name, written.is_true("Ready"))
    assert ({"cpu": "4"}, "ami-1") == (stored["capacity"], stored["imageID"])
    assert {"nvidia.com/gpu": None} == bench.fake.seen[-1].body["status"]["capacity"]


def test_an_old_version_or_another_object_is_a_conflict_before_anything_is_written(bench: Bench) -> None:
    """Claims and nodes alike."""

    async def act(writer: KubeWriter) -> None:
        claim, node = await writer.create_node_claim(NEW), bench.node()
        with pytest.raises(Conflict, match="its resourceVersion is 5, not 1"):
            await writer.update_node_claim(replace(claim, resource_version="1"))
        with pytest.raises(Conflict, match="its uid is"):
            await writer.update_node_claim_status(replace(claim, uid="other"))
        with pytest.raises(Conflict, match="Node node-a is not the one that was meant"):
            await writer.update_node(replace(node, resource_version="1", is_unschedulable=True))

    bench.run(act)
    assert ["POST nodeclaims"] == bench.fake.writes()


def test_a_write_between_our_read_and_our_write_is_a_conflict(bench: Bench) -> None:
    """The version in the patch is that of the read: the server refuses it."""

    async def meddle(seen: Seen) -> None:
        bench.fake.api.patch("Node", "", "node-a", {"metadata": {"labels": {"zone": "b"}}})

    async def act(writer: KubeWriter) -> None:
        bench.fake.before = meddle
        with pytest.raises(Overtaken):
            await writer.update_node(replace(bench.node(), is_unschedulable=True))

    bench.run(act)
    assert {} == bench.stored("Node")["spec"]


def test_deleting_means_that_very_object(bench: Bench) -> None:
    """One that was made again under its name stays; the right one may be asked for twice."""

    async def act(writer: KubeWriter) -> None:
        claim, node = await writer.create_node_claim(NEW), bench.node()
        with pytest.raises(Conflict):
            await writer.delete_node_claim(replace(claim, uid="other"))
        with pytest.raises(Conflict):
            await writer.delete_node(replace(node, uid="other"))
        await writer.delete_node_claim(claim)
        await writer.delete_node_claim(claim)
        await writer.delete_node(node)

    bench.run(act)
    assert [] == bench.fake.api.list("Node")
    assert "deletionTimestamp" in bench.stored("NodeClaim")["metadata"]


# Nodes, pools and overlays.


def test_a_taint_that_stays_keeps_its_time(bench: Bench) -> None:
    """`timeAdded` says since when a NoExecute taint evicts: a further taint must not start that clock again."""
    held = {"key": "gone", "effect": "NoExecute", "timeAdded": "2026-01-05T07:00:00Z"}

    async def act(writer: KubeWriter) -> Node:
        bench.fake.api.patch("Node", "", "node-a", {"spec": {"taints": [held], "unschedulable": True}})
        node = bench.node()
        return await writer.update_node(replace(node, taints=(*node.taints, Taint("k")), is_unschedulable=False))

    written = bench.run(act)
    assert ("gone", "k", False) == (written.taints[0].key, written.taints[1].key, written.is_unschedulable)
    assert {"taints": [held, {"key": "k", "effect": "NoSchedule"}]} == bench.stored("Node")["spec"]


def test_a_pool_and_an_overlay_take_status_and_annotations(bench: Bench) -> None:
    """A resource that no node has any more is taken away; None removes an annotation; a repetition is no write."""

    async def act(writer: KubeWriter) -> None:
        await writer.update_node_pool_status("g5", Resources({"cpu": 4000, "nodes": 1}), [READY])
        for _ in range(2):
            await writer.update_node_pool_status("g5", Resources({"nodes": 0}), [READY])
            await writer.update_node_overlay_status("half", [READY])
        await writer.annotate_node_pool("g5", {"a": "1", "b": "2"})
        await writer.annotate_node_pool("g5", {"a": None, "never-there": None})

    bench.run(act)
    pool, overlay = bench.stored("NodePool"), bench.stored("NodeOverlay")
    assert ({"nodes": "0"}, {"b": "2"}) == (pool["status"]["resources"], pool["metadata"]["annotations"])
    assert pool["status"]["conditions"] == overlay["status"]["conditions"]
    assert 5 == len(bench.fake.writes())


# Pods.


def test_a_pin_never_overwrites_the_users_own(bench: Bench) -> None:
    """Also when the user's own comes between our look and our write."""

    async def act(writer: KubeWriter) -> None:
        bench.meddle(1, {"nvidia.com/use-gpuuuid": "GPU-9"})
        with pytest.raises(Conflict, match=r"has the annotation nvidia\.com/use-gpuuuid already"):
            await writer.annotate_pod(bench.pod(), PIN, unless_present=tuple(PIN))

    bench.run(act)
    assert {"nvidia.com/use-gpuuuid": "GPU-9"} == bench.stored("Pod")["metadata"]["annotations"]
    assert ["PATCH pods/web-0"] == bench.fake.writes()


@pytest.mark.parametrize("times, writes", [(0, 1), (9, 10)])
def test_annotations_are_written_whatever_else_others_write(bench: Bench, times: int, writes: int) -> None:
    """Somebody else's annotation ahead of ours: look again, write again."""

    async def act(writer: KubeWriter) -> None:
        bench.meddle(times, {"theirs": "1"})
        await writer.annotate_pod(bench.pod(), PIN, unless_present=tuple(PIN))

    bench.run(act)
    assert "GPU-1" == bench.stored("Pod")["metadata"]["annotations"]["nvidia.com/use-gpuuuid"]
    assert writes == len(bench.fake.writes())


def test_a_pod_that_never_rests_is_given_up(bench: Bench) -> None:
    """After ten tries it is a conflict like any other."""

    async def act(writer: KubeWriter) -> None:
        bench.meddle(99, {"theirs": "1"})
        with pytest.raises(Conflict):
            await writer.annotate_pod(bench.pod(), PIN)

    bench.run(act)
    assert 10 == len(bench.fake.writes())


def test_a_pod_made_again_under_its_name_is_left_alone(bench: Bench) -> None:
    """Verbs for a pod mean that very pod, although each server check answers in its own way."""

    async def act(writer: KubeWriter) -> None:
        other = replace(bench.pod(), uid="other")
        for call in (
            writer.evict(other),
            writer.delete_pod(other, 0),
            writer.tolerate(other, TAINT),
            writer.annotate_pod(other, PIN),
        ):
            with pytest.raises(Conflict):
                await call

    bench.run(act)
    assert {"phase": "Pending"} == bench.stored("Pod")["status"]
    assert "annotations" not in bench.stored("Pod")["metadata"]


def test_a_toleration_is_added_to_what_is_there_once(bench: Bench) -> None:
    """After a lost answer too: the second look finds it."""

    async def act(writer: KubeWriter) -> list[Json]:
        before: list[Json] = bench.stored("Pod")["spec"]["tolerations"]
        for _ in range(2):
            await writer.tolerate(bench.pod(), TAINT)
        return before

    before = bench.run(act)
    added = {"key": "kerf.dev/reserved-for", "operator": "Equal", "value": "claim-1", "effect": "NoSchedule"}
    assert [*before, added] == bench.stored("Pod")["spec"]["tolerations"]
    assert ["PATCH pods/web-0"] == bench.fake.writes()


def test_a_pod_without_tolerations_gets_a_list(bench: Bench) -> None:
    """There are none where the admission plugin DefaultTolerationSeconds is off."""
    bench.fake.api.admission.remove(tolerate_ill_nodes)

    async def act(writer: KubeWriter) -> None:
        await writer.tolerate(bench.pod(), TAINT)

    bench.run(act)
    assert ["claim-1"] == [held["value"] for held in bench.stored("Pod")["spec"]["tolerations"]]


@pytest.mark.parametrize("status, reason", [(403, "Forbidden"), (422, "Invalid")])
def test_a_toleration_that_admission_forbids_is_refused(bench: Bench, status: int, reason: str) -> None:
    """As by PodTolerationRestriction: no error that is worth another try."""

    async def refuse(seen: Seen) -> web.Response:
        return refusal(status, reason, "pod tolerations conflict with its namespace whitelist tolerations")

    async def act(writer: KubeWriter) -> None:
        bench.fake.before = refuse
        with pytest.raises(WriteRefused, match="whitelist"):
            await writer.tolerate(bench.pod(), TAINT)

    bench.run(act)


@pytest.mark.parametrize("status, reason", [(403, "Forbidden"), (422, "Invalid")])
def test_an_eviction_that_a_webhook_forbids_is_refused(bench: Bench, status: int, reason: str) -> None:
    """Of one pod, so a drain goes on with the others; its words are kept."""

    async def refuse(seen: Seen) -> web.Response:
        return refusal(status, reason, 'admission webhook "keep.example.com" denied the request: still training')

    async def act(writer: KubeWriter) -> None:
        bench.fake.before = refuse
        with pytest.raises(WriteRefused, match="still training"):
            await writer.evict(bench.pod())

    bench.run(act)


def test_evicting_respects_budgets_and_deleting_does_not(bench: Bench) -> None:
    """The text is the budget's; a delete shortens the grace."""

    async def act(writer: KubeWriter) -> None:
        api, pod = bench.fake.api, bench.pod()
        api.bind("default", "web-0", "node-a")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.patch("Pod", "default", "web-0", {"status": status}, subresource="status")
        api.create(budget(minAvailable=1))
        with pytest.raises(EvictionBlocked, match="the disruption budget web needs 1 healthy pods"):
            await writer.evict(pod)
        await writer.delete_pod(pod, 5)
        await writer.delete_pod(pod, 9)

    bench.run(act)
    assert 5 == bench.stored("Pod")["metadata"]["deletionGracePeriodSeconds"]


def test_a_busy_server_is_not_a_budget(bench: Bench) -> None:
    """Both answer 429: a busy one is asked again."""
    answers = [refusal(429, "TooManyRequests", "busy", retry_after="0")]

    async def busy(seen: Seen) -> web.Response | None:
        return answers.pop() if answers else None

    async def act(writer: KubeWriter) -> None:
        bench.fake.before = busy
        await writer.evict(bench.pod())

    bench.run(act)
    assert [] == bench.fake.api.list("Pod")
    assert 2 == len(bench.fake.writes())


# Answers that are lost.


def test_a_write_whose_answer_was_lost_may_be_repeated(bench: Bench) -> None:
    """It is Unreachable; the repetition says how it stands, and nothing happens twice."""

    async def lost(call: Awaitable[object]) -> None:
        bench.fake.loses_answers = True
        with pytest.raises(Unreachable):
            await call
        bench.fake.loses_answers = False

    async def act(writer: KubeWriter) -> None:
        await lost(writer.create_node_claim(NEW))
        with pytest.raises(AlreadyExists):
            await writer.create_node_claim(NEW)
        closed = replace(bench.node(), is_unschedulable=True)
        await lost(writer.update_node(closed))
        with pytest.raises(Conflict):
            await writer.update_node(closed)
        await lost(writer.annotate_pod(bench.pod(), PIN))
        await writer.annotate_pod(bench.pod(), PIN)
        evicted = bench.pod()
        await lost(writer.evict(evicted))
        with pytest.raises(NotFound):
            await writer.evict(evicted)

    bench.run(act)
    assert 1 == len(bench.fake.api.list("NodeClaim"))
    assert ({"unschedulable": True}, []) == (bench.stored("Node")["spec"], bench.fake.api.list("Pod"))


def test_an_answer_that_is_no_object_is_an_error_of_the_server(bench: Bench) -> None:
    """JSON, but no object."""

    async def page(seen: Seen) -> web.Response:
        return web.json_response([])

    async def act(writer: KubeWriter) -> None:
        bench.fake.before = page
        with pytest.raises(ApiError, match="the server's answer is no object"):
            await writer.update_node(replace(bench.node(), is_unschedulable=True))

    bench.run(act)
