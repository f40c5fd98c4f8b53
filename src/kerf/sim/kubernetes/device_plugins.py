"""Stand-in for the device plugins in virtual time: when a node's cards register, and what goes wrong with them.

What they register is `clouds.device_plugins`. A fault is used up by the node it strikes, as a scenario states it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerf.cloudprovider import Instance
from kerf.clouds.device_plugins import (
    LOSS_DELAY_S,
    LOST,
    NEVER_REGISTERS,
    REGISTERS_LESS,
    UNHEALTHY,
    cards_of,
    first_unhealthy,
    may_start,
    registering_less,
    registration,
)
from kerf.clouds.fake import FakeCloud
from kerf.model.constraints import NODE_POOL, Taint
from kerf.model.gpu import DeviceState
from kerf.model.quantities import Resources, quantity_text
from kerf.ports import Clock, NotFound
from kerf.sharing.family import Family
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL
from kerf.sharing.nvidia.mig_parted import MIG_CONFIG
from kerf.sharing.registry import owner_of
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.sharing import families_in
from kerf.sim.objects import Json, annotations_of, labels_of


@dataclass(slots=True)
class DeviceFault:
    """What goes wrong with the cards of the next `nodes` nodes of a pool (any pool when it is empty).

    `kind` is one of FAULT_KINDS; `memory_percent` is what each card registers of its memory with `registers-less`.
    """

    kind: str
    node_pool: str = ""
    nodes: int = 1
    memory_percent: int = 80

    def concerns(self, kind: str, pool: str) -> bool:
        """Whether it is of that kind, for that pool, and not used up."""
        return self.nodes > 0 and self.kind == kind and self.node_pool in ("", pool)


class DevicePlugins:
    """The device plugins of all nodes."""

    def __init__(self, api: InMemoryApi, clock: Clock, cloud: FakeCloud, devices_ready_s: float) -> None:
        self._api, self._clock, self._cloud, self._devices_ready_s = api, clock, cloud, devices_ready_s
        self._instances: dict[str, Instance] = {}
        self._started: set[str] = set()
        self._published: dict[str, tuple[Family, tuple[DeviceState, ...]]] = {}
        self._configured: dict[str, tuple[str | None, ...]] = {}
        self._faults: list[DeviceFault] = []

    def start(self) -> None:
        """Watch nodes from now on."""
        self._api.subscribe(self._on_event)

    def add_fault(self, fault: DeviceFault) -> None:
        """Let it happen, to working nodes at once where its kind says so."""
        self._faults.append(fault)
        if fault.kind in (UNHEALTHY, LOST):
            for name in sorted(self._published):
                if fault.concerns(fault.kind, self._pool(name)):
                    fault.nodes -= 1
                    self._break(name, fault.kind)

    def takes(self, kind: str, pool: str) -> DeviceFault | None:
        """The first fault of that kind that waits for a node of the pool, used up by one; None when there is none."""
        fault = next((fault for fault in self._faults if fault.concerns(kind, pool)), None)
        if fault is not None:
            fault.nodes -= 1
        return fault

    def install(self, node_name: str, instance: Instance) -> None:
        """Say which machine a node is; its plugin starts when the node lets it."""
        self._instances[node_name] = instance

    def remove(self, node_name: str) -> None:
        """The machine is gone."""
        self._instances.pop(node_name, None)
        self._published.pop(node_name, None)

    def _on_event(self, what: str, obj: Json) -> None:
        if obj["kind"] != "Node":
            return
        name = obj["metadata"]["name"]
        if what == "DELETED":
            self.remove(name)
        elif name in self._instances and name not in self._started and self._may_start(obj):
            self._started.add(name)
            self._configured[name] = _configuration(obj)
            self._clock.call_at(self._clock.now_s() + self._devices_ready_s, lambda: self._register(name))
        elif name in self._published and self._configured.get(name) != _configuration(obj):
            # The MIG manager, or the plugin's own, takes the GPUs away while it sets them up again.
            self._configured[name] = _configuration(obj)
            self._publish(name, ())
            self._clock.call_at(self._clock.now_s() + self._devices_ready_s, lambda: self._register(name))

    def _may_start(self, node: Json) -> bool:
        taints = [_taint(taint) for taint in node["spec"].get("taints", ())]
        return may_start(self._family(node), taints)

    def _family(self, node: Json) -> Family:
        return owner_of(labels_of(node), annotations_of(node), families_in(self._api))

    def _pool(self, node_name: str) -> str:
        node = self._api.get("Node", "", node_name)
        return "" if node is None else labels_of(node).get(NODE_POOL, "")

    def _register(self, name: str) -> None:
        node, instance = self._api.get("Node", "", name), self._instances.get(name)
        if node is None or instance is None:
            return
        shapes = self._cloud.find(instance.offering.instance_type).devices
        pool = self._pool(name)
        if not shapes or self.takes(NEVER_REGISTERS, pool) is not None:
            return
        family = self._family(node)
        devices = cards_of(family, shapes, name, labels_of(node), annotations_of(node))
        self._published[name] = family, devices
        fault = self.takes(REGISTERS_LESS, pool)
        self._publish(name, registering_less(family, devices, fault.memory_percent) if fault is not None else devices)
        if self.takes(UNHEALTHY, pool) is not None:
            self._break(name, UNHEALTHY)
        if self.takes(LOST, pool) is not None:
            self._clock.call_at(self._clock.now_s() + LOSS_DELAY_S, lambda: self._break(name, LOST))

    def _break(self, name: str, kind: str) -> None:
        if name not in self._published:
            return
        _, devices = self._published[name]
        left = () if kind == LOST else first_unhealthy(devices)
        self._publish(name, left)

    def _publish(self, name: str, devices: Sequence[DeviceState]) -> None:
        """Show the cards on the node: their number to kubelet, and each of them where the family keeps records."""
        family, before = self._published[name]
        self._published[name] = family, tuple(devices)
        found = registration(family, devices, family.kubelet_capacity(before))
        status = {part: _texts(found.amounts) for part in ("capacity", "allocatable")}
        try:
            if found.annotations:
                self._api.patch("Node", "", name, {"metadata": {"annotations": dict(found.annotations)}})
            self._api.patch("Node", "", name, {"status": status}, subresource="status")
        except NotFound:
            self.remove(name)


def _configuration(node: Json) -> tuple[str | None, ...]:
    """What the node's labels say of how its cards are shared."""
    labels = labels_of(node)
    return labels.get(CONFIG_LABEL), labels.get(MIG_CONFIG)


def _taint(taint: Json) -> Taint:
    return Taint(taint["key"], taint.get("value", ""), taint["effect"])


def _texts(amounts: Mapping[str, int] | Resources) -> dict[str, str]:
    return {name: quantity_text(name, amount) for name, amount in sorted(amounts.items())}
