"""Stand-in for the device plugins: what a fresh GPU node tells the cluster about its cards, and how it goes wrong.

A GPU node is useless between "Ready" and the moment its device plugin has registered the cards, and nothing in the
Node object says that the cards are still to come. The plugin is a DaemonSet pod: it starts only when no taint keeps it
off, so a taint that waits for the cards would wait for ever.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.cloudprovider import Instance
from kerf.clouds.fake import FakeCloud
from kerf.model.constraints import NO_SCHEDULE, NODE_POOL, Taint, Toleration, untolerated
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import UNREGISTERED_TAINT
from kerf.model.quantities import Resources, quantity_text
from kerf.model.snapshot import ConfigMap
from kerf.ports import Clock, NotFound
from kerf.sharing.device_plugin import CONFIG_LABEL
from kerf.sharing.family import Family
from kerf.sharing.hami_records import REGISTER, register_annotation
from kerf.sharing.mig_parted import MIG_CONFIG
from kerf.sharing.registry import configured, of_plugins, owner_of
from kerf.sim.api import InMemoryApi
from kerf.sim.objects import Json, annotations_of, labels_of

NEVER_REGISTERS, REGISTERS_LESS, UNHEALTHY, LOST = "never-registers", "registers-less", "unhealthy", "lost"
NEVER_JOINS = "never-joins"
FAULT_KINDS = (NEVER_JOINS, NEVER_REGISTERS, REGISTERS_LESS, UNHEALTHY, LOST)
LOSS_DELAY_S = 60
"""How long a card that is going to be lost works, when the fault finds no card that works already."""

# What the DaemonSet controller adds to every daemon pod. HAMi's chart adds nothing to it; the plugins of NVIDIA and ACK
# are set up to tolerate the taints of GPU pools.
_DAEMON_TOLERATIONS = (
    Toleration("node.kubernetes.io/not-ready", "Exists"),
    Toleration("node.kubernetes.io/unreachable", "Exists"),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", effect=NO_SCHEDULE),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", effect=NO_SCHEDULE),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", effect=NO_SCHEDULE),
    Toleration("node.kubernetes.io/unschedulable", "Exists", effect=NO_SCHEDULE),
)


@dataclass(slots=True)
class DeviceFault:
    """What goes wrong with the cards of the next `nodes` nodes of a pool (any pool when it is empty).

    never-joins: the machine never becomes a node. never-registers: the plugin never starts. registers-less: each card
    registers `memory_percent` of its memory; a pool without memory records registers one card less. unhealthy: the
    first card is registered as broken. lost: all cards vanish. The last two hit nodes that work already, by name,
    before they wait for new ones.
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
            # The MIG manager, or the plugin's own, takes the GPUs away while it sets them up anew.
            self._configured[name] = _configuration(obj)
            self._publish(name, ())
            self._clock.call_at(self._clock.now_s() + self._devices_ready_s, lambda: self._register(name))

    def _may_start(self, node: Json) -> bool:
        taints = [_taint(taint) for taint in node["spec"].get("taints", ())]
        if UNREGISTERED_TAINT in taints:
            return False
        family = self._family(node)
        return family.selector is None or untolerated(taints, _DAEMON_TOLERATIONS) is None

    def _family(self, node: Json) -> Family:
        maps = [
            ConfigMap(m["metadata"].get("namespace", ""), m["metadata"]["name"], m.get("data") or {})
            for m in self._api.list("ConfigMap")
        ]
        return owner_of(labels_of(node), annotations_of(node), configured(of_plugins(maps)))

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
        predicted = family.predict(shapes, labels_of(node), annotations_of(node))
        devices = tuple(replace(device, id=f"GPU-{name}-{device.index}") for device in predicted)
        self._published[name] = family, devices
        fault = self.takes(REGISTERS_LESS, pool)
        self._publish(name, _less(family, devices, fault.memory_percent) if fault is not None else devices)
        if self.takes(UNHEALTHY, pool) is not None:
            self._break(name, UNHEALTHY)
        if self.takes(LOST, pool) is not None:
            self._clock.call_at(self._clock.now_s() + LOSS_DELAY_S, lambda: self._break(name, LOST))

    def _break(self, name: str, kind: str) -> None:
        if name not in self._published:
            return
        _, devices = self._published[name]
        left = () if kind == LOST else (replace(devices[0], healthy=False), *devices[1:])
        self._publish(name, left)

    def _publish(self, name: str, devices: Sequence[DeviceState]) -> None:
        """Show the cards on the node: their number to kubelet, and each of them where the family keeps records."""
        family, before = self._published[name]
        self._published[name] = family, tuple(devices)
        gone = dict.fromkeys(family.kubelet_capacity(before), 0)
        healthy = [device for device in devices if device.healthy]
        status = {
            "capacity": _texts({**gone, **family.kubelet_capacity(devices)}),
            "allocatable": _texts({**gone, **family.kubelet_capacity(healthy)}),
        }
        try:
            if family.selector is not None:
                annotations = {REGISTER: register_annotation(devices)}
                self._api.patch("Node", "", name, {"metadata": {"annotations": annotations}})
            self._api.patch("Node", "", name, {"status": status}, subresource="status")
        except NotFound:
            self.remove(name)


def _configuration(node: Json) -> tuple[str | None, ...]:
    """What the node's labels say of how its cards are shared."""
    labels = labels_of(node)
    return labels.get(CONFIG_LABEL), labels.get(MIG_CONFIG)


def _less(family: Family, devices: Sequence[DeviceState], percent: int) -> tuple[DeviceState, ...]:
    if family.selector is None:
        return tuple(devices[:-1])
    return tuple(replace(device, memory_mib=device.memory_mib * percent // 100) for device in devices)


def _taint(taint: Json) -> Taint:
    return Taint(taint["key"], taint.get("value", ""), taint["effect"])


def _texts(amounts: Mapping[str, int] | Resources) -> dict[str, str]:
    return {name: quantity_text(name, amount) for name, amount in sorted(amounts.items())}
