"""Cards of acted-out machines: when they register, what HAMi and kubelet are told, and how it goes wrong."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kerf.clouds.kwok.nodes import node_name
from kerf.sim.objects import Json
from tests.clouds.kwok.world import KwokWorld, daemon_pod, daemon_set
from tests.clouds.market import claim
from tests.sim.world import config_map

G5 = claim(types=("g5.12xlarge",))
NAME = node_name("uid-1")
REGISTER, HANDSHAKE = "hami.io/node-nvidia-register", "hami.io/node-handshake"
TAINT = {"key": "gpu", "effect": "NoSchedule"}


@pytest.fixture
def world() -> Iterator[KwokWorld]:
    """A cluster whose first machine of four cards has joined and is to be registered at 80 s."""
    built = KwokWorld()
    built.ask(G5)
    built.at(80)
    yield built
    built.close()


def shown(world: KwokWorld, resource: str = "nvidia.com/gpu", of: str = "allocatable") -> str | None:
    """What kubelet shows of a resource."""
    found: str | None = world.node(NAME)["status"][of].get(resource)
    return found


def register(world: KwokWorld) -> list[dict[str, Any]]:
    """What HAMi's register annotation says."""
    found: list[dict[str, Any]] = json.loads(world.node(NAME)["metadata"]["annotations"].get(REGISTER, "[]"))
    return found


def runs(world: KwokWorld, owner: Json) -> None:
    """Let a pod of the DaemonSet run on the node."""
    created = world.api.create(daemon_pod(owner, NAME))
    namespace, name = created["metadata"]["namespace"], created["metadata"]["name"]
    world.api.patch("Pod", namespace, name, {"status": {"phase": "Running"}}, subresource="status")


def test_whole_cards_register_after_their_latency(world: KwokWorld) -> None:
    """50 s from the end of the unregistered taint, which keeps the plugin off."""
    world.at(100)
    world.register(G5)

    world.at(149)
    assert shown(world) is None
    world.at(151)
    assert ("4", "4") == (shown(world), shown(world, of="capacity"))


def hami_s_config(text: str, namespace: str = "kube-system") -> Json:
    """HAMi's ConfigMap, or one of a tenant that has its name."""
    made = config_map("hami-scheduler-device", **{"device-config.yaml": text})
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


def test_a_tenant_s_config_map_configures_no_plugin(world: KwokWorld) -> None:
    """Whatever its name; not even where nobody else has configured one."""
    world.api.create(hami_s_config("nvidia: {resourceCountName: evil.com/gpu, deviceSplitCount: 3}", "tenant"))
    world.register(G5, gpu="on")

    world.at(131)
    assert "40" == shown(world)


def test_hami_registers_each_card_and_ten_slots_of_it(world: KwokWorld) -> None:
    """The label gpu=on makes a node HAMi's (003-10): records on the node, slots for kubelet."""
    world.register(G5, gpu="on")

    world.at(131)
    assert [(f"GPU-{NAME}-{i}", 22888) for i in range(4)] == [(c["id"], c["devmem"]) for c in register(world)]
    assert "40" == shown(world)


def test_hami_s_settings_are_the_cluster_s(world: KwokWorld) -> None:
    """Split count and scaling come from HAMi's ConfigMap, as its device plugin reads them."""
    config = "nvidia: {deviceSplitCount: 3, deviceMemoryScaling: 2}"
    world.api.create(hami_s_config(config))
    world.register(G5, gpu="on")

    world.at(131)
    assert ("12", 45776) == (shown(world), register(world)[0]["devmem"])


def test_a_broken_configuration_of_hami_keeps_its_plugin_off(world: KwokWorld) -> None:
    """Its cards come once it is mended; nothing else is concerned."""
    world.api.create(hami_s_config("nvidia: 7"))
    world.register(G5, gpu="on")
    world.at(140)
    assert shown(world) is None

    world.change("ConfigMap", "hami-scheduler-device", {"data": {"device-config.yaml": "nvidia: {}"}}, "kube-system")
    world.at(195)
    assert "40" == shown(world)


def test_hami_s_plugin_does_not_start_under_a_taint(world: KwokWorld) -> None:
    """Its chart has no tolerations, so a pool with taints never registers cards; a cordon keeps nothing off."""
    world.change("Node", NAME, {"spec": {"taints": [TAINT]}, "metadata": {"labels": {"gpu": "on"}}})
    world.at(300)
    assert shown(world) is None

    world.change("Node", NAME, {"spec": {"taints": None, "unschedulable": True}})
    world.at(351)
    assert "40" == shown(world)


def test_cards_wait_for_the_pod_of_hami_s_daemon_set(world: KwokWorld) -> None:
    """Where HAMi's DaemonSet is installed, 50 s from when its pod runs on the node."""
    owner = world.api.create(daemon_set("hami-device-plugin", gpu="on"))
    world.register(G5, gpu="on")
    world.at(200)
    assert shown(world) is None

    runs(world, owner)
    world.at(252)
    assert "40" == shown(world)


def test_a_mock_device_plugin_adds_up_the_cards(world: KwokWorld) -> None:
    """003-6: memory, cores and percentage summed over the node, once its own pod runs there."""
    owner = world.api.create(daemon_set("hami-mock-device-plugin"))
    world.register(G5, gpu="on")
    world.at(131)
    assert ("40", None) == (shown(world), shown(world, "nvidia.com/gpumem"))

    runs(world, owner)
    world.at(133)
    names = ("gpu", "gpumem", "gpucores", "gpumem-percentage")
    assert ("40", "91552", "400", "400") == tuple(shown(world, f"nvidia.com/{name}") for name in names)


def test_hami_s_handshake_is_renewed_and_answered(world: KwokWorld) -> None:
    """Every 30 s, whatever HAMi's scheduler has written meanwhile; a restart renews nothing early."""
    world.register(G5, gpu="on")
    world.at(131)
    world.stop()
    world.start()
    world.at(150)
    assert "Reported_2026-01-05T07:02:10.000Z" == world.node(NAME)["metadata"]["annotations"][HANDSHAKE]

    world.change("Node", NAME, {"metadata": {"annotations": {HANDSHAKE: "Requesting_2026-01-05 07:02:31"}}})
    world.at(162)
    assert "Reported_2026-01-05T07:02:40.000Z" == world.node(NAME)["metadata"]["annotations"][HANDSHAKE]


@pytest.mark.parametrize(
    ("kind", "labels", "expected"),
    [
        ("never-registers", {}, None),
        ("never-registers", {"gpu": "on"}, None),
        ("registers-less", {}, "3"),
        ("unhealthy", {}, "3"),
        ("unhealthy", {"gpu": "on"}, "30"),
    ],
)
def test_a_fault_strikes_the_next_node(
    world: KwokWorld, kind: str, labels: dict[str, str], expected: str | None
) -> None:
    """What kubelet shows of a node of four cards, whole or with HAMi's ten slots each; a restart changes nothing."""
    world.control(deviceFaults=f"[{{kind: {kind}}}]")
    world.register(G5, **labels)

    world.at(140)
    world.stop()
    world.start()
    world.at(200)
    assert expected == shown(world)


def test_a_card_registers_less_memory(world: KwokWorld) -> None:
    """80 % unless the fault says another share."""
    world.control(deviceFaults="[{kind: registers-less, memoryPercent: 50}]")
    world.register(G5, gpu="on")

    world.at(200)
    assert [11444] * 4 == [card["devmem"] for card in register(world)]


def test_a_working_card_breaks_and_heals(world: KwokWorld) -> None:
    """`unhealthy` strikes a node that works already, at once, and ends when it is taken off the list."""
    world.register(G5, gpu="on")
    world.at(200)
    world.control(deviceFaults="[{kind: unhealthy}]")
    world.at(202)
    assert [None, True, True, True] == [card.get("health") for card in register(world)]

    world.control(deviceFaults="[]")
    world.at(204)
    assert [True] * 4 == [card.get("health") for card in register(world)]


def test_working_cards_vanish(world: KwokWorld) -> None:
    """`lost` leaves a node without cards."""
    world.register(G5)
    world.at(200)
    world.control(deviceFaults="[{kind: lost}]")

    world.at(202)
    assert ("0", "0") == (shown(world), shown(world, of="capacity"))


def test_new_cards_work_a_minute_before_they_are_lost(world: KwokWorld) -> None:
    """A fault that finds no working card waits for the next one, and lets it work for a while."""
    world.control(deviceFaults="[{kind: lost}]")
    world.register(G5)

    world.at(189)
    assert "4" == shown(world)
    world.at(192)
    assert "0" == shown(world)


def test_a_fault_strikes_so_many_nodes_and_no_more(world: KwokWorld) -> None:
    """Working nodes by name: the first of two; the other one only when `nodes` is raised."""
    other = claim("gpu-2", "uid-2", types=("g5.12xlarge",))
    world.ask(other)
    world.at(160)
    world.register(G5)
    world.register(other)
    world.at(230)
    first, second = sorted((NAME, node_name("uid-2")))

    def amounts() -> list[str]:
        return [world.node(name)["status"]["allocatable"]["nvidia.com/gpu"] for name in (first, second)]

    world.control(deviceFaults="[{kind: lost, nodes: 1}]")
    world.at(240)
    assert ["0", "4"] == amounts()
    world.control(deviceFaults="[{kind: lost, nodes: 2}]")
    world.at(250)
    assert ["0", "0"] == amounts()


def test_a_fault_waits_for_a_node_of_its_pool(world: KwokWorld) -> None:
    """A node of another pool is spared."""
    world.control(deviceFaults="[{kind: never-registers, nodePool: other}]")
    world.register(G5)

    world.at(200)
    assert "4" == shown(world)
