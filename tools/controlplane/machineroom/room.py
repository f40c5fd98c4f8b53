"""The machine room: running instances boot, join by their user data, run their device plugins, and end.

Nothing here asks Kerf. So a launch that Kerf believes in and that could not have worked on AWS shows as it would there:
an instance runs, costs money, and no Node comes.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kerf.catalog.aws import instance_type
from kerf.cloudprovider import Instance
from kerf.clouds.kwok.controls import Complaints, ControlBook
from kerf.clouds.kwok.nodes import Nodes
from kerf.clouds.kwok.plugins import DevicePlugins, is_allocating
from kerf.clouds.kwok.records import PLUGIN_STARTED, InstanceRecord, Json, KwokLatencies, ObjectStore
from kerf.errors import KerfError
from kerf.model.instancetypes import OfferingKey
from kerf.model.times import instant_text
from kerf.ports import AlreadyExists, Clock
from kerf.sharing.hami.records import NODE as HAMI_NODE
from tools.controlplane.machineroom.ec2 import Ec2View
from tools.controlplane.machineroom.nodes import (
    ROOM_LABEL,
    Ec2Machine,
    JoinableCluster,
    check,
    has_driver,
    is_bottlerocket,
    node_of,
    spec_of,
)
from tools.controlplane.machineroom.userdata import NeverJoins, read_user_data

_NAMESPACE = "kube-system"


class MachineRoom:
    """Every machine of a cloud. `refusals` say, by instance id, why one never joins."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        cloud: Ec2View,
        cluster: JoinableCluster,
        *,
        boot_s: float = 1,
        latencies: KwokLatencies | None = None,
    ) -> None:
        self._store, self._clock, self._cloud, self._cluster = store, clock, cloud, cluster
        self._boot_s, self._latencies = boot_s, latencies or KwokLatencies()
        complaints = Complaints()
        self._controls = ControlBook(store, _NAMESPACE, self._latencies, complaints)
        self._plugins = DevicePlugins(store, clock, self._controls, complaints, self._note)
        self._nodes = Nodes(store, clock, _NAMESPACE)
        self._seen_s: dict[str, float] = {}
        self._records: dict[str, InstanceRecord] = {}
        self.refusals: dict[str, str] = {}

    async def run(self) -> None:
        """Act for ever; what fails is done again with the next look."""
        while True:
            try:
                await self.step()
            except KerfError as error:
                print(f"machine room: {error}", flush=True)
            await asyncio.sleep(self._latencies.poll_s)

    async def step(self) -> None:
        """Do what is due for every machine, and for the Nodes of those that have ended."""
        running = await asyncio.to_thread(self._cloud.running)
        nodes = {node["metadata"]["labels"][ROOM_LABEL]: node for node in await self._own_nodes()}
        for name in sorted(nodes.keys() - running.keys()):
            await self._nodes.bury(nodes[name])
        for name in [*self._seen_s.keys() - running.keys()]:
            self._forget(name)
        for name, instance in sorted(running.items()):
            if name in nodes:
                await self._run(name, instance, nodes[name])
            else:
                await self._boot(name, instance)
        for pod in await self._store.list("Pod", labels=HAMI_NODE):
            if is_allocating(pod):
                await self._plugins.allocate(pod["metadata"]["namespace"], pod["metadata"]["name"], _is_ours)

    async def _own_nodes(self) -> list[Json]:
        return list(await self._store.list("Node", labels=ROOM_LABEL))

    async def _boot(self, name: str, instance: Mapping[str, Any]) -> None:
        """Join once the boot is over. A machine joins once: a Node that was deleted does not come again."""
        now = self._clock.now_s()
        since_s = self._seen_s.setdefault(name, now)
        if now < since_s + self._boot_s or name in self.refusals or name in self._records:
            return
        try:
            await self._join(instance)
        except NeverJoins as error:
            self.refusals[name] = str(error)

    async def _join(self, instance: Mapping[str, Any]) -> None:
        name = instance["InstanceId"]
        machine = await asyncio.to_thread(self._cloud.machine, instance)
        image = await asyncio.to_thread(self._cloud.image, instance["ImageId"])
        user_data = await asyncio.to_thread(self._cloud.user_data, name)
        joining = read_user_data(user_data, is_bottlerocket(image))
        check(machine, joining, self._cluster)
        node = node_of(machine, joining, instant_text(self._clock.now_s()))
        try:
            await self._store.create(node)
        except AlreadyExists:
            self.refusals[name] = f"another machine is registered as {machine.dns_name}"
            return
        self._records[name] = _record(machine, image)

    async def _run(self, name: str, instance: Mapping[str, Any], node: Json) -> None:
        """Let the device plugin act. A room that starts again takes the machine up as one that has just joined."""
        record = self._records.get(name)
        if record is None:
            machine = await asyncio.to_thread(self._cloud.machine, instance)
            image = await asyncio.to_thread(self._cloud.image, instance["ImageId"])
            record = self._records[name] = _record(machine, image)
        await self._plugins.step(record, node, await self._controls.read())

    async def _note(self, record: InstanceRecord, key: str, now_s: float) -> None:
        name = record.instance.claim_uid
        held = self._records[name]
        is_start = key == PLUGIN_STARTED
        self._records[name] = replace(held, plugin_started_s=now_s) if is_start else replace(held, registered_s=now_s)

    def _forget(self, name: str) -> None:
        for held in (self._seen_s, self._records, self.refusals):
            held.pop(name, None)


def _record(machine: Ec2Machine, image: str) -> InstanceRecord:
    """What the device plugins need of a machine; its id stands where a claim's uid would. Without a driver no card."""
    key = OfferingKey(machine.instance_type, machine.zone, "")
    instance = Instance(machine.provider_id, machine.id, machine.id, key)
    devices = instance_type(spec_of(machine.instance_type)).devices if has_driver(image) else ()
    return InstanceRecord(instance, devices=devices, node_name=machine.dns_name)


def _is_ours(node: Json) -> bool:
    return ROOM_LABEL in (node["metadata"].get("labels") or {})
