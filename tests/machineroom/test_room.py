"""The machine room between the proxy's cloud and an API in memory."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kerf.clouds.kwok.records import KwokLatencies
from tests.awscloud import AwsCloud
from tests.clouds.kwok.world import FakeStore
from tests.machineroom.documents import CA, CLUSTER, ENDPOINT, encoded, mime, node_config
from tests.sim.world import World
from tests.testing.faultproxy.fleets import Fleets, ids
from tools.controlplane.machineroom.ec2 import Ec2View
from tools.controlplane.machineroom.nodes import JoinableCluster
from tools.controlplane.machineroom.room import MachineRoom


class Room:
    """A room with a boot of 30 s and plugins of 20 s, on the clock of the cloud."""

    def __init__(self, cloud: AwsCloud) -> None:
        self.cloud, self.world = cloud, World()
        self.api = self.world.api
        self.room = MachineRoom(
            FakeStore(self.api),
            _OnClock(cloud),
            Ec2View(cloud.client("ec2"), cloud.client("iam")),
            JoinableCluster(CLUSTER, ENDPOINT, CA),
            boot_s=30,
            latencies=KwokLatencies(devices_ready_s=20),
        )

    def after(self, seconds: float) -> list[dict[str, Any]]:
        """The Nodes once so many seconds have passed and the room has looked."""
        self.cloud.clock.advance(seconds)
        asyncio.run(self.room.step())
        return list(self.api.list("Node"))


class _OnClock:
    def __init__(self, cloud: AwsCloud) -> None:
        self._cloud = cloud

    def now_s(self) -> float:
        return self._cloud.clock()

    def call_at(self, when_s: float, callback: Any) -> None:
        raise NotImplementedError("the room polls")


@pytest.fixture
def room(aws_cloud: AwsCloud) -> Iterator[Room]:
    """An empty room."""
    made = Room(aws_cloud)
    yield made
    made.world.loop.close()


def launch(room: Room, text: str, instance_type: str = "g5.xlarge") -> str:
    """An instance with this user data."""
    fleets = Fleets(room.cloud, UserData=encoded(text))
    (instance,) = ids(fleets.ask(fleets.pool(instance_type)))
    return instance


def test_an_instance_joins_shows_its_gpu_and_goes(room: Room) -> None:
    """After its boot; its card comes when no taint keeps the plugin off; its Node goes with the instance."""
    instance = launch(room, mime(node_config()))
    assert [] == [*room.after(0), *room.after(29)]
    (node,) = room.after(1)
    assert node["spec"]["providerID"].endswith(instance)
    assert ["karpenter.sh/unregistered"] == [taint["key"] for taint in node["spec"]["taints"]]

    room.api.patch("Node", "", node["metadata"]["name"], {"spec": {"taints": None}})
    room.after(1)
    (node,) = room.after(20)
    assert "1" == room.after(0)[0]["status"]["allocatable"]["nvidia.com/gpu"]

    room.cloud.client("ec2").terminate_instances(InstanceIds=[instance])
    assert [] == room.after(1)


def test_an_instance_with_the_wrong_cluster_never_joins(room: Room) -> None:
    """It runs and costs money, and the room says why no Node comes."""
    instance = launch(room, mime(node_config(name="other")))
    room.after(0)

    assert [] == room.after(3600)
    assert {instance: "a token for the cluster other is none for prod"} == room.room.refusals


def test_a_node_that_was_deleted_does_not_come_again(room: Room) -> None:
    """A kubelet registers once."""
    launch(room, mime(node_config()))
    room.after(0)
    (node,) = room.after(30)
    room.api.delete("Node", "", node["metadata"]["name"])

    assert [] == [*room.after(60), *room.after(60)]
