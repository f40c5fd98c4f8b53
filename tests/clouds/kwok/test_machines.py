"""What the acted-out machines do: join, start up, end, and go on from wherever a process left them."""

import asyncio
from collections.abc import Iterator

import pytest

from kerf.clouds.kwok.machines import _Queue
from kerf.clouds.kwok.nodes import node_name
from kerf.clouds.kwok.records import record_name
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import NodeClaim
from kerf.sim.objects import is_ready
from tests.clouds.kwok.world import JOINED_S, NAMESPACE, KwokWorld
from tests.clouds.market import claim
from tests.sim.world import pod

G5 = claim(types=("g5.xlarge",))
ID = "kwok:///us-east-1a/uid-1"
NAME = node_name("uid-1")
LOCK = "hami.io/mutex.lock"
HELD = {"metadata": {"finalizers": ["karpenter.sh/termination"]}}


@pytest.fixture
def world() -> Iterator[KwokWorld]:
    """A fresh cluster; everything in it ends with the test."""
    built = KwokWorld()
    yield built
    built.close()


def ready(world: KwokWorld, name: str = NAME) -> str:
    """The status of the node's Ready condition."""
    return str(next(c["status"] for c in world.node(name)["status"]["conditions"] if c["type"] == "Ready"))


def test_a_machine_joins_as_kubelet_registers_it(world: KwokWorld) -> None:
    """Labels of the offering, no GPU yet, KWOK's annotation, the taint that Kerf takes away; 75 s after the launch."""
    world.ask(G5)

    world.at(JOINED_S - 0.5)
    assert [] == world.nodes()
    world.at(JOINED_S + 0.5)
    node = world.node(NAME)
    assert (ID, {"kwok.x-k8s.io/node": "fake"}) == (node["spec"]["providerID"], node["metadata"]["annotations"])
    assert [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}] == node["spec"]["taints"]
    assert {"kubernetes.io/hostname": NAME, "topology.kubernetes.io/zone": "us-east-1a"}.items() <= (
        node["metadata"]["labels"].items()
    )
    assert ("4", None) == (node["status"]["capacity"]["cpu"], node["status"]["capacity"].get("nvidia.com/gpu"))


def test_two_machines_never_share_an_address(world: KwokWorld) -> None:
    """A node of that name that is not ours makes it take another."""
    world.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}, "spec": {}, "status": {}})
    world.ask(G5)

    world.at(JOINED_S + 1)
    assert sorted([NAME, node_name("uid-1", 1)]) == world.nodes()
    assert node_name("uid-1", 1) == world.data(G5)["node"]


@pytest.mark.parametrize("cut_s", [1, 39, 41, 74.9, 75, 75.02, 76, 84, 130, 131, 160])
def test_a_killed_process_is_taken_up_where_it_was(world: KwokWorld, cut_s: float) -> None:
    """Killed and started again at any moment: the same node, the same cards, nothing twice, nothing later."""
    world.ask(G5)
    for stop_s in (s for s in (cut_s, cut_s + 0.01) if s > 1):
        world.at(stop_s)
        world.stop()
        world.start()
        if stop_s > JOINED_S + 5 and "pluginStarted" not in world.data(G5):
            world.register(G5, gpu="on")
    world.at(max(80, cut_s + 1))
    world.register(G5, gpu="on")

    world.at(cut_s + 140)
    assert [NAME] == world.nodes()
    assert "10" == world.node(NAME)["status"]["allocatable"]["nvidia.com/gpu"]


def test_a_killed_process_forgets_no_end(world: KwokWorld) -> None:
    """An instance that terminates while nobody acts it out is gone when somebody does."""
    world.joined(G5)
    world.done(world.cloud.delete(ID))
    world.stop()
    world.at(200)

    world.start()
    assert () == world.done(world.cloud.list_instances())
    world.at(201)
    assert ([], {}) == (world.nodes(), world.data(G5))


def test_a_terminated_machine_takes_its_pods_and_its_node_away(world: KwokWorld) -> None:
    """5 s after the request; nothing is left in the API."""
    name = world.joined(G5)
    world.api.create(pod("web-0", nodeName=name))
    world.done(world.cloud.delete(ID))

    world.at(84.5)
    assert ([name], 1) == (world.nodes(), len(world.api.list("Pod")))
    world.at(86)
    assert ([], [], {}) == (world.nodes(), world.api.list("Pod"), world.data(G5))


def test_a_node_that_kerf_drains_falls_silent_and_stays(world: KwokWorld) -> None:
    """The finalizer holds it: not ready, and KWOK does not bring it back; it goes when Kerf lets go."""
    name = world.joined(G5)
    world.change("Node", name, HELD)
    world.done(world.cloud.delete(ID))

    world.at(100)
    assert (["Unknown"], {}) == ([ready(world, name)], world.data(G5))
    world.change("Node", name, {"metadata": {"finalizers": None}})
    world.at(101)
    assert [] == world.nodes()


def test_a_machine_that_ends_before_it_joins_brings_no_node(world: KwokWorld) -> None:
    """Terminated while it boots."""
    world.ask(G5)
    world.at(50, lambda: None)
    world.done(world.cloud.delete(ID))

    world.at(200)
    assert ([], {}) == (world.nodes(), world.data(G5))


def test_an_instance_whose_config_map_is_deleted_has_ended(world: KwokWorld) -> None:
    """Whoever deletes the ConfigMap ends the machine, as in a cloud's own console."""
    world.joined(G5)
    world.at(90, lambda: world.api.delete("ConfigMap", NAMESPACE, record_name("uid-1")))

    world.at(91)
    assert [] == world.nodes()


def test_a_deleted_node_does_not_come_back(world: KwokWorld) -> None:
    """A kubelet registers once; the instance lives on until Kerf ends it."""
    name = world.joined(G5)
    world.at(90, lambda: world.api.delete("Node", "", name))

    world.at(300)
    assert ([], 1) == (world.nodes(), len(world.done(world.cloud.list_instances())))


def test_an_interrupted_machine_is_announced_and_goes(world: KwokWorld) -> None:
    """The annotation on its node; two minutes from the notice to the end."""
    name = world.joined(G5)
    world.change("Node", name, {"metadata": {"annotations": {"kerf.dev/interrupt": "true"}}})

    world.at(82)
    assert [True] == [instance.is_interrupted for instance in world.done(world.cloud.list_instances())]
    world.at(199)
    assert [name] == world.nodes()
    world.at(202)
    assert ([], {}) == (world.nodes(), world.data(G5))


def test_startup_taints_end_some_seconds_after_they_came(world: KwokWorld) -> None:
    """5 s, only those of the claim, and not while the machine has none."""
    held = NodeClaim(**{**vars(G5), "startup_taints": (Taint("agent", "", "NoExecute"),)})
    name = world.joined(held)
    taints = [{"key": "agent", "effect": "NoExecute"}, {"key": "gpu", "effect": "NoSchedule"}]
    world.change("Node", name, {"spec": {"taints": taints}})

    world.at(84)
    assert taints == world.node(name)["spec"]["taints"]
    world.at(87)
    assert taints[1:] == world.node(name)["spec"]["taints"]


def test_a_machine_never_joins(world: KwokWorld) -> None:
    """The fault strikes the next machine of its pool and no further one, also after a restart."""
    world.control(deviceFaults="[{kind: never-joins, nodePool: other}, {kind: never-joins, nodePool: gpu, nodes: 1}]")
    second = claim("gpu-2", "uid-2", types=("g5.xlarge",))
    world.ask(G5)
    world.at(100)
    world.stop()
    world.start()
    world.ask(second)

    world.at(300)
    assert [node_name("uid-2")] == world.nodes()


def test_one_broken_instance_stops_no_other(world: KwokWorld) -> None:
    """Its ConfigMap cannot be read; the machine beside it joins."""
    world.ask(G5)
    world.ask(claim("gpu-2", "uid-2"))
    world.change("ConfigMap", record_name("uid-1"), {"data": {"instance": "[" * 5000}}, NAMESPACE)

    world.at(100)
    assert [node_name("uid-2")] == world.nodes()


def test_an_api_that_was_down_is_taken_up_again(world: KwokWorld) -> None:
    """Watches are begun anew, and what came due meanwhile is done."""
    world.ask(G5)
    world.at(60, world.store.go_down)
    world.at(100)
    assert [] == world.nodes()

    world.at(101, lambda: setattr(world.store, "is_down", False))
    world.at(140)
    assert ([NAME], True) == (world.nodes(), is_ready(world.node(NAME)))


def test_what_rests_asks_little(world: KwokWorld) -> None:
    """No list at all in ten minutes of an idle cluster, whatever pods there are: changes are told, not looked for."""
    name = world.joined(G5)
    world.at(300)
    world.store.reads.clear()

    world.at(900, lambda: world.api.create(pod("web-0", nodeName=name)))
    assert [] == world.store.reads


def bound(world: KwokWorld, node: str, lock: str = "2026-01-05T07:01:00Z,default,gpu-0") -> None:
    """The pod gpu-0 as HAMi's bind leaves it, and the node's lock."""
    world.change("Node", node, {"metadata": {"annotations": {LOCK: lock}}})
    annotations = {"hami.io/bind-phase": "allocating", "hami.io/vgpu-devices-to-allocate": "x"}
    obj = pod("gpu-0", nodeName=node)
    obj["metadata"] |= {"labels": {"hami.io/vgpu-node": node}, "annotations": annotations}
    world.api.create(obj)


def phase(world: KwokWorld) -> str:
    """How far the bind of gpu-0 is."""
    found = world.api.get("Pod", "default", "gpu-0")
    assert found is not None
    return str(found["metadata"]["annotations"]["hami.io/bind-phase"])


def lock_of(world: KwokWorld, node: str) -> str | None:
    """HAMi's lock on a node."""
    held: dict[str, str] = world.node(node)["metadata"]["annotations"]
    return held.get(LOCK)


@pytest.mark.parametrize("lock", ["2026-01-05T07:01:00Z,default,gpu-0", "2026-01-05T07:01:00Z"])
def test_the_device_plugin_ends_a_bind_of_hami(world: KwokWorld, lock: str) -> None:
    """The phase becomes success and the node's lock goes, so that the next pod can be bound."""
    name = world.joined(G5)
    bound(world, name, lock)

    world.at(81)
    assert ("success", None) == (phase(world), lock_of(world, name))


def test_a_bind_that_came_while_nothing_acted_is_ended_too(world: KwokWorld) -> None:
    """Every pod that waits for its device plugin is found at the start."""
    name = world.joined(G5)
    world.stop()
    bound(world, name)
    world.start()

    world.at(82)
    assert ("success", None) == (phase(world), lock_of(world, name))


def test_a_lock_of_another_pod_is_left_alone(world: KwokWorld) -> None:
    """A lock belongs to the pod it names."""
    name = world.joined(G5)
    bound(world, name, "2026-01-05T07:01:00Z,default,gpu-9")

    world.at(82)
    assert ("success", "2026-01-05T07:01:00Z,default,gpu-9") == (phase(world), lock_of(world, name))


def test_a_foreign_node_has_a_device_plugin_of_its_own(world: KwokWorld) -> None:
    """Neither its pods nor its lock are ours."""
    world.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}, "spec": {}, "status": {}})
    bound(world, "real")

    world.at(82)
    assert ("allocating", "2026-01-05T07:01:00Z,default,gpu-0") == (phase(world), lock_of(world, "real"))


def test_what_becomes_due_while_it_stops_is_left(world: KwokWorld) -> None:
    """A timer that fires between the cancellation and its end: no error, and no step that nobody awaits."""
    steps: list[str] = []

    async def step(key: str) -> float | None:
        steps.append(key)
        return None

    async def run(queue: _Queue) -> None:
        async with asyncio.TaskGroup() as group:
            queue.start(group)
            group.create_task(asyncio.sleep(60))

    async def stopping() -> None:
        queue = _Queue(world.clock, step)
        running = asyncio.ensure_future(run(queue))
        await asyncio.sleep(1)
        queue.touch("before")
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.sleep(0)
        queue.touch("late")
        await asyncio.gather(running, return_exceptions=True)

    world.done(stopping())
    assert ["before"] == steps
