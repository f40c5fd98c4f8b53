"""Cards that register, late or never, with less than they should, broken, or for a while."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kerf.sim.kubernetes.device_plugins import DeviceFault
from tests.clouds.market import claim
from tests.sim.cluster import Cluster

NODE = "ip-10-0-0-1"
REGISTER = "hami.io/node-nvidia-register"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with a g5.12xlarge that was launched at 0 s and joined at 75 s."""
    built = Cluster()
    built.launch(claim(types=("g5.12xlarge",)))
    built.at(80)
    yield built
    built.loop.close()


def gpus(cluster: Cluster, of: str = "allocatable") -> str | None:
    """What kubelet shows of nvidia.com/gpu."""
    shown: str | None = cluster.node()["status"][of].get("nvidia.com/gpu")
    return shown


def register(cluster: Cluster) -> list[dict[str, Any]]:
    """What HAMi's register annotation says."""
    found: list[dict[str, Any]] = json.loads(cluster.node()["metadata"]["annotations"][REGISTER])
    return found


def test_whole_cards_register_after_their_latency(cluster: Cluster) -> None:
    """50 s from the end of the unregistered taint, which keeps the plugin off: not from Ready."""
    cluster.at(100)
    cluster.register(NODE)

    cluster.at(149)
    assert gpus(cluster) is None
    cluster.at(151)
    assert ("4", "4") == (gpus(cluster), gpus(cluster, "capacity"))


def test_hami_registers_each_card_and_ten_slots_of_it(cluster: Cluster) -> None:
    """The label gpu=on makes a node HAMi's (003-10): records on the node, slots for kubelet."""
    cluster.register(NODE, gpu="on")

    cluster.at(131)
    assert [(f"GPU-{NODE}-{i}", 22888) for i in range(4)] == [(c["id"], c["devmem"]) for c in register(cluster)]
    assert "40" == gpus(cluster)


def test_hami_s_plugin_does_not_start_under_a_taint(cluster: Cluster) -> None:
    """Its chart has no tolerations, so a pool with taints never registers cards."""
    taint = {"key": "gpu", "effect": "NoSchedule"}
    patch = {"metadata": {"labels": {"gpu": "on"}}, "spec": {"taints": [taint]}}
    cluster.at(85, lambda: cluster.api.patch("Node", "", NODE, patch))

    cluster.at(300)
    assert gpus(cluster) is None


def test_a_cordon_does_not_keep_plugins_off(cluster: Cluster) -> None:
    """DaemonSets run on a cordoned node, which is how Kerf keeps it closed until the cards are there."""
    cluster.at(85, lambda: cluster.api.patch("Node", "", NODE, {"spec": {"unschedulable": True}}))
    cluster.register(NODE, gpu="on")

    cluster.at(140)
    assert "40" == gpus(cluster)


@pytest.mark.parametrize(
    ("kind", "labels", "shown"),
    [
        ("never-registers", {}, None),
        ("never-registers", {"gpu": "on"}, None),
        ("registers-less", {}, "3"),
        ("unhealthy", {}, "3"),
        ("unhealthy", {"gpu": "on"}, "30"),
    ],
)
def test_a_fault_strikes_the_next_node(cluster: Cluster, kind: str, labels: dict[str, str], shown: str | None) -> None:
    """What kubelet shows of a node of four cards, whole or with HAMi's ten slots each."""
    cluster.plugins.add_fault(DeviceFault(kind))
    cluster.register(NODE, **labels)

    cluster.at(200)
    assert shown == gpus(cluster)


def test_a_card_registers_less_memory(cluster: Cluster) -> None:
    """80 % unless the fault says another share."""
    cluster.plugins.add_fault(DeviceFault("registers-less", memory_percent=50))
    cluster.register(NODE, gpu="on")

    cluster.at(200)
    assert [11444] * 4 == [card["devmem"] for card in register(cluster)]


def test_a_working_card_breaks(cluster: Cluster) -> None:
    """`unhealthy` strikes a node that works already, at once."""
    cluster.register(NODE, gpu="on")
    cluster.at(200, lambda: cluster.plugins.add_fault(DeviceFault("unhealthy")))

    assert [None, True, True, True] == [card.get("health") for card in register(cluster)]


def test_working_cards_vanish(cluster: Cluster) -> None:
    """`lost` leaves a node without cards."""
    cluster.register(NODE)
    cluster.at(200, lambda: cluster.plugins.add_fault(DeviceFault("lost")))

    assert ("0", "0") == (gpus(cluster), gpus(cluster, "capacity"))


def test_cards_that_are_lost_cannot_break(cluster: Cluster) -> None:
    """A fault of a card that follows a loss finds none."""
    cluster.register(NODE, gpu="on")
    cluster.at(200, lambda: cluster.plugins.add_fault(DeviceFault("lost")))
    cluster.at(210, lambda: cluster.plugins.add_fault(DeviceFault("unhealthy")))

    assert ([], "0") == (register(cluster), gpus(cluster))


def test_a_fault_waits_for_a_node_of_its_pool(cluster: Cluster) -> None:
    """A node of another pool is spared."""
    cluster.plugins.add_fault(DeviceFault("never-registers", node_pool="other"))
    cluster.register(NODE, **{"karpenter.sh/nodepool": "gpu"})

    cluster.at(200)
    assert "4" == gpus(cluster)


def test_a_machine_never_joins() -> None:
    """`never-joins` keeps the node away altogether."""
    cluster = Cluster()
    cluster.plugins.add_fault(DeviceFault("never-joins"))
    cluster.launch(claim())

    cluster.at(600)
    assert [] == cluster.api.list("Node")
    cluster.loop.close()
