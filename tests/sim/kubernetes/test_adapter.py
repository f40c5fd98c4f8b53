"""The controllers' ports over the in-memory API: events in, verbs out, events for people posted once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kerf.model import events as people
from kerf.model.causes import NotBought
from kerf.model.constraints import Requirements, Taint
from kerf.model.nodeclaim import Condition, NodeClaim, NodeClassRef
from kerf.model.nodes import Node, reservation
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import Deleted, Event, Relisted, Report, Synced, Upserted, key_of
from kerf.ports import AlreadyExists, Conflict, EvictionBlocked, KubeReader, KubeWriter, NotFound, Recorder
from kerf.sim.kubernetes.adapter import SimReader, SimRecorder, SimWriter
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.objects import Json
from kerf.testing.builders import a_pool
from tests.sim.world import START_S, World, budget, config_map, node, pod

NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
CLAIM = NodeClaim("g5-abcde", "g5", NODE_CLASS, Requirements(), labels={"team": "ml"})


@pytest.fixture
def world() -> Iterator[World]:
    """A fresh API; its loop is closed after the test."""
    built = World()
    yield built
    built.loop.close()


def done(world: World, call: Coroutine[Any, Any, Any]) -> Any:
    """What a verb gives."""
    return world.loop.run_until_complete(call)


def pool() -> Json:
    """A NodePool as a manifest."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "g5"}, "spec": spec}


def read_pod(world: World, name: str = "web-0") -> Pod:
    """A pod as a controller would know it."""
    value = told(world, SimReader(world.api).events(), lambda event: isinstance(event, Synced))
    found = next(e.value for e in value if isinstance(e, Upserted) and key_of(e.value) == ("Pod", f"default/{name}"))
    assert isinstance(found, Pod)
    return found


def told(world: World, events: AsyncIterator[Report], is_last: Callable[[Event], bool]) -> list[Event]:
    """The events up to the first for which `is_last` holds."""

    async def collect() -> list[Event]:
        found: list[Event] = []
        async for event in events:
            if isinstance(event, Relisted):
                continue
            found.append(event)
            if is_last(event):
                break
        return found

    return world.loop.run_until_complete(collect())


def summary(event: Event) -> str:
    """An event in one word, and what it is about."""
    if isinstance(event, Synced):
        return "Synced"
    return f"{type(event).__name__} {' '.join(key_of(event.value))}"


def test_the_adapter_fits_the_ports(world: World) -> None:
    """The type checker holds each class to its Protocol."""
    reader: KubeReader = SimReader(world.api)
    writer: KubeWriter = SimWriter(world.api)
    recorder: Recorder = SimRecorder(world.api, world.clock)

    assert all((reader, writer, recorder))


# Reading.


def test_a_reader_shows_what_exists_then_synced_then_changes_in_order(world: World) -> None:
    """Kinds that Kerf does not follow are left out; a change before the first event belongs to what exists."""
    for obj in (pod(), node(), config_map(), {**config_map(), "kind": "Secret"}):
        world.api.create(obj)
    events = SimReader(world.api).events()
    before = told(world, events, lambda event: isinstance(event, Synced))

    world.api.patch("Node", "", "node-a", {"spec": {"unschedulable": True}})
    world.api.delete("Pod", "default", "web-0")
    after = told(world, events, lambda event: isinstance(event, Deleted))

    existing = ["Upserted ConfigMap default/device-config", "Upserted Node node-a", "Upserted Pod default/web-0"]
    assert [*existing, "Synced"] == [summary(event) for event in before]
    assert ["Upserted Node node-a", "Deleted Pod default/web-0"] == [summary(event) for event in after]


def test_changes_while_the_list_is_being_read_are_not_lost(world: World) -> None:
    """Between two events of the first list others may write: it is told after Synced."""
    world.api.create(node())
    events = SimReader(world.api).events()
    told(world, events, lambda event: True)
    world.api.create(pod())

    rest = told(world, events, lambda event: isinstance(event, Upserted))

    assert ["Synced", "Upserted Pod default/web-0"] == [summary(event) for event in rest]


def test_a_reader_that_is_stopped_stops_listening(world: World) -> None:
    """A killed controller's watch costs nothing afterwards, and a new reader begins anew."""

    async def follow() -> None:
        async for _ in SimReader(world.api).events():
            pass

    async def kill() -> None:
        task = asyncio.get_running_loop().create_task(follow())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    done(world, kill())

    assert () == world.api.listeners


# Claims.


def test_a_claim_is_created_with_owner_and_finalizer(world: World) -> None:
    """And comes back with its uid; a second one of that name is refused."""
    owner = world.api.create(pool())
    writer = SimWriter(world.api)

    created = done(world, writer.create_node_claim(CLAIM))

    stored = world.api.list("NodeClaim")[0]["metadata"]
    assert owner["metadata"]["uid"] == stored["ownerReferences"][0]["uid"]
    assert ["karpenter.sh/termination"] == stored["finalizers"]
    assert (stored["uid"], ("karpenter.sh/termination",)) == (created.uid, created.finalizers)
    with pytest.raises(AlreadyExists):
        done(world, writer.create_node_claim(CLAIM))


def test_metadata_and_status_of_a_claim_are_written_apart(world: World) -> None:
    """Each verb writes its own part; an old version is a conflict."""
    writer = SimWriter(world.api)
    first = done(world, writer.create_node_claim(CLAIM))
    launched = first.with_condition(Condition("Launched", "True", since_s=START_S))
    launched = replace(launched, provider_id="aws:///i-1", labels={"team": "other"})

    second = done(world, writer.update_node_claim_status(launched))
    third = done(world, writer.update_node_claim(replace(second, labels={"team": "web"}, provider_id="ignored")))

    assert ("aws:///i-1", "ml") == (second.provider_id, second.labels["team"])
    assert ("aws:///i-1", "web", True) == (third.provider_id, third.labels["team"], third.is_true("Launched"))
    with pytest.raises(Conflict):
        done(world, writer.update_node_claim(second))
    with pytest.raises(Conflict):
        done(world, writer.update_node_claim_status(first))


def test_a_deleted_claim_stays_until_its_finalizer_goes(world: World) -> None:
    """Termination: asked for, marked, finished by whoever held it."""
    writer = SimWriter(world.api)
    done(world, writer.create_node_claim(CLAIM))
    done(world, writer.delete_node_claim(CLAIM))
    marked = told(world, SimReader(world.api).events(), lambda event: True)[0]
    assert isinstance(marked, Upserted)
    assert isinstance(marked.value, NodeClaim)

    done(world, writer.update_node_claim(replace(marked.value, finalizers=())))

    assert START_S == marked.value.deleted_s
    assert [] == world.api.list("NodeClaim")
    with pytest.raises(NotFound):
        done(world, writer.delete_node_claim(CLAIM))


# Nodes and pools.


def test_a_node_is_written_where_kerf_may(world: World) -> None:
    """Labels, annotations, taints, cordon, finalizers; its status is the kubelet's."""
    world.api.create({**node(), "status": {"capacity": {"cpu": "4"}}})
    held = told(world, SimReader(world.api).events(), lambda event: True)[0]
    assert isinstance(held, Upserted)
    assert isinstance(held.value, Node)
    wanted = replace(held.value, labels={"a": "b"}, taints=(Taint("k"),), is_unschedulable=True, finalizers=("f",))

    written = done(world, SimWriter(world.api).update_node(replace(wanted, capacity=Resources({"cpu": 1}))))

    assert replace(wanted, resource_version="2") == written
    assert {"cpu": "4"} == world.api.list("Node")[0]["status"]["capacity"]
    with pytest.raises(Conflict):
        done(world, SimWriter(world.api).update_node(wanted))


def test_a_pool_takes_status_and_annotations(world: World) -> None:
    """None removes an annotation; a status write makes no new generation."""
    world.api.create(pool())
    writer = SimWriter(world.api)
    ready = Condition("Ready", "True", since_s=START_S)

    done(world, writer.update_node_pool_status("g5", Resources({"cpu": 4000, "nodes": 1}), [ready]))
    done(world, writer.annotate_node_pool("g5", {"kerf.dev/a": "1", "kerf.dev/b": "2"}))
    done(world, writer.annotate_node_pool("g5", {"kerf.dev/a": None}))

    stored = world.api.list("NodePool")[0]
    assert {"cpu": "4", "nodes": "1"} == stored["status"]["resources"]
    assert ({"kerf.dev/b": "2"}, 1) == (stored["metadata"]["annotations"], stored["metadata"]["generation"])


# Pods.


def test_an_annotation_never_overwrites_what_must_not_be_there(world: World) -> None:
    """A pin loses against the user's own value, atomically."""
    world.api.create(pod())
    writer, held = SimWriter(world.api), read_pod(world)
    pin = {"nvidia.com/use-gpuuuid": "GPU-1"}

    done(world, writer.annotate_pod(held, pin, unless_present=["nvidia.com/use-gpuuuid"]))

    assert pin == world.api.list("Pod")[0]["metadata"]["annotations"]
    with pytest.raises(Conflict, match=r"has the annotation nvidia\.com/use-gpuuuid already"):
        done(world, writer.annotate_pod(held, pin, unless_present=["nvidia.com/use-gpuuuid"]))


def test_a_toleration_is_added_once_and_leaves_the_spec_alone(world: World) -> None:
    """Repeated it changes nothing; a reader keeps it apart from what the pod's owner wrote."""
    world.api.create(pod())
    writer, held = SimWriter(world.api), read_pod(world)
    for _ in range(2):
        done(world, writer.tolerate(held, reservation("claim-1")))

    assert (("claim-1",), held.spec) == (read_pod(world).reserved_for, read_pod(world).spec)


def test_a_pod_made_again_under_its_name_is_left_alone(world: World) -> None:
    """Verbs for a pod mean that very pod."""
    world.api.create(pod())
    held = read_pod(world)
    world.api.delete("Pod", "default", "web-0")
    world.api.create(pod())
    writer = SimWriter(world.api)

    for call in (writer.evict(held), writer.delete_pod(held, 0), writer.tolerate(held, reservation("c"))):
        with pytest.raises(Conflict, match="not the one that was meant"):
            done(world, call)
    assert 1 == len(world.api.list("Pod"))


def test_evicting_respects_budgets_and_deleting_does_not(world: World) -> None:
    """A drain evicts until its deadline, then deletes with the grace that is left."""
    world.api.create(pod())
    world.api.bind("default", "web-0", "node-a")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    world.api.patch("Pod", "default", "web-0", {"status": status}, subresource="status")
    world.api.create(budget(minAvailable=1))
    writer, held = SimWriter(world.api), read_pod(world)

    with pytest.raises(EvictionBlocked):
        done(world, writer.evict(held))
    done(world, writer.delete_pod(held, 5))

    assert START_S + 5 == read_pod(world).deleted_s


def test_every_verb_lets_others_act_first(world: World) -> None:
    """What happens between a decision and its call is seen by the call: here the pod goes first."""
    world.api.create(pod())
    held = read_pod(world)

    async def both() -> None:
        call = asyncio.get_running_loop().create_task(SimWriter(world.api).evict(held))
        await asyncio.sleep(0)
        world.api.delete("Pod", "default", "web-0")
        await call

    with pytest.raises(NotFound):
        done(world, both())
    assert START_S == world.clock.now_s()


# Events for people.


def test_an_event_is_posted_once_within_its_period(world: World) -> None:
    """Equal ones are dropped for five minutes here; another text is another event."""
    world.api.create(pod())
    recorder = SimRecorder(world.api, world.clock)
    for after_s in (0, 299, 300):
        world.at(after_s, lambda: recorder.record(people.failed_scheduling("default/web-0", "no pool", NotBought())))
    recorder.record(people.failed_scheduling("default/web-0", "limit reached", NotBought()))

    assert [0, 300, 300] == [posted.at_s - START_S for posted in recorder.posted]
    assert 3 == len(world.api.list("Event"))
    assert {"FailedScheduling"} == {event["reason"] for event in world.api.list("Event")}


def test_a_scale_up_is_reported_once_for_ever(world: World) -> None:
    """004: once per pod and claim, however much later."""
    recorder, limited = SimRecorder(world.api, world.clock), a_pool("gpu-a10", limits={"nodes": 10})
    for after_s in (0, 86_400):
        world.at(after_s)
        recorder.record(people.triggered_scale_up("default/gpu-0", "gpu-a10-1", limited, 0, 2))

    assert ["pod triggered scale-up: [{gpu-a10 0->2 (max: 10)}]"] == [p.occurrence.message for p in recorder.posted]


def test_a_recorder_after_a_restart_repeats_itself_at_worst(world: World) -> None:
    """Two lives in one second make one Event object, and no error."""
    for _ in range(2):
        SimRecorder(world.api, world.clock).record(people.nominated("default/web-0", "node/node-a"))

    assert 1 == len(world.api.list("Event"))


def test_what_was_posted_an_hour_ago_is_forgotten_in_a_long_run(world: World) -> None:
    """As by the real server, so that weeks take no more memory than hours; a short run keeps all for its report."""
    api = InMemoryApi(world.clock, keeps=10)
    recorder = SimRecorder(api, world.clock, keeps_posted=False)
    for at_s in (0, 1800, 3601):
        world.at(at_s, lambda: recorder.record(people.failed_scheduling("default/web-0", "no pool", NotBought())))

    assert (2, []) == (len(api.list("Event")), recorder.posted)
