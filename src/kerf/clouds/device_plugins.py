"""What a device plugin registers of a node's cards: one account of it for the simulator and the acted-out cloud.

A GPU node is useless between "Ready" and the moment its device plugin has registered the cards, and nothing in the
Node object says that the cards are still to come. The plugin is a DaemonSet pod: it starts only when no taint keeps it
off, so a taint that waits for the cards would wait for ever.

When that happens, and in which API, is for the two that act it out; what they write is the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.model.constraints import NO_SCHEDULE, Taint, Toleration, untolerated
from kerf.model.gpu import DeviceShape, DeviceState
from kerf.model.nodeclaim import UNREGISTERED_TAINT
from kerf.sharing.family import Family
from kerf.sharing.hami.config import HamiConfig
from kerf.sharing.hami.records import REGISTER, register_annotation

NEVER_JOINS, NEVER_REGISTERS, REGISTERS_LESS = "never-joins", "never-registers", "registers-less"
UNHEALTHY, LOST = "unhealthy", "lost"
FAULT_KINDS = (NEVER_JOINS, NEVER_REGISTERS, REGISTERS_LESS, UNHEALTHY, LOST)
"""never-joins: the machine never becomes a node. never-registers: the plugin never starts. registers-less: each card
registers a share of its memory; a node without memory records registers one card less. unhealthy: the first card is
broken. lost: all cards vanish. The last two strike nodes that work already before new ones."""
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


@dataclass(frozen=True, slots=True)
class Registration:
    """What a plugin shows: `amounts` by resource are kubelet's, `annotations` the node's, where the family has some."""

    amounts: Mapping[str, int]
    annotations: Mapping[str, str]


def may_start(family: Family, taints: Sequence[Taint]) -> bool:
    """Whether the taints of a node let the plugin's pod on it; a cordon does."""
    if UNREGISTERED_TAINT in taints:
        return False
    return family.selector is None or untolerated(taints, _DAEMON_TOLERATIONS) is None


def cards_of(
    family: Family,
    shapes: Sequence[DeviceShape],
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> tuple[DeviceState, ...]:
    """The cards of the node `name` as its plugin finds them, each with an id of its own."""
    found = family.predict(shapes, labels, annotations)
    return tuple(replace(device, id=f"GPU-{name}-{device.index}") for device in found)


def registration(family: Family, devices: Sequence[DeviceState], before: Iterable[str] = ()) -> Registration:
    """What is shown of the cards; 0 of each resource in `before` that they no longer give, because kubelet keeps it."""
    amounts = {**dict.fromkeys(before, 0), **family.kubelet_capacity(devices)}
    return Registration(amounts, {} if family.selector is None else {REGISTER: register_annotation(devices)})


def mock_amounts(config: HamiConfig, devices: Sequence[DeviceState]) -> Mapping[str, int]:
    """What HAMi's mock device plugin adds to it: memory, cores and percentages summed over the node."""
    return {
        config.memory: sum(device.memory_mib for device in devices) // config.memory_factor,
        config.cores: sum(device.cores for device in devices),
        config.memory_percent: 100 * len(devices),
    }


def registering_less(family: Family, devices: Sequence[DeviceState], percent: int) -> tuple[DeviceState, ...]:
    """The cards with `percent` of their memory each; one card less where the family keeps no memory records."""
    if family.selector is None:
        return tuple(devices[:-1])
    return tuple(replace(device, memory_mib=device.memory_mib * percent // 100) for device in devices)


def first_unhealthy(devices: Sequence[DeviceState]) -> tuple[DeviceState, ...]:
    """The cards with the first of them broken."""
    return (*(replace(device, healthy=False) for device in devices[:1]), *devices[1:])
