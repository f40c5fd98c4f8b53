"""A place for pods, and what is left of it.

A `Target` does not change during a plan (an existing node, or an instance type as one pool offers it); a `Room` is what
is left of it after some placements, and is immutable, so a search can go back for free.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kerf.model.causes import Cause, TargetName
from kerf.model.constraints import ANYTHING, Requirements, Taint
from kerf.model.gpu import DeviceState
from kerf.model.nodes import Node
from kerf.model.pods import HostPort
from kerf.model.quantities import CPU, MEMORY, PODS, Resources
from kerf.model.snapshot import ResourceQuota
from kerf.model.volumes import NOTHING_ATTACHED, Attached
from kerf.sharing.family import Family
from kerf.sharing.shown import Counting, decided_by_cards

MOST = 2**62
"""More than any amount of cpu or memory counts as so much: arrays hold 64 bits."""


@dataclass(frozen=True, eq=False)
class Target:
    """A place for pods.

    `requirements` hold the labels it has, or may get; `is_open` says that values are still to be chosen (a node to
    be), so a pod may narrow them. `families` are all that the cluster knows, `family` the one that owns its cards.
    `no_devices` is why it has none, None where it has some or no caller asked.
    `volume_limits` are how many volumes each CSI driver attaches to it, where that is known.
    `neuron_cores` are those of each Neuron device that it has.
    `sold` are the (zone, capacity type, zone id) in which it can be had now; empty where that is not the question.
    """

    name: TargetName
    requirements: Requirements
    taints: tuple[Taint, ...]
    family: Family
    families: tuple[Family, ...]
    pool: str = ""
    node: Node | None = None
    is_open: bool = True
    quotas: tuple[ResourceQuota, ...] = ()
    no_devices: Cause | None = None
    sold: tuple[tuple[str, str, str], ...] = ()
    volume_limits: Mapping[str, int] = field(default_factory=dict)
    neuron_cores: int = 0

    @cached_property
    def labels(self) -> dict[str, str]:
        """The labels whose value is fixed."""
        return self.requirements.labels()

    @property
    def uncounted(self) -> frozenset[str]:
        """Resources that no sum over the node decides: its cards do, or turn the pod away."""
        return self.counting.by_cards

    @cached_property
    def counting(self) -> Counting:
        """How sums over the node count what pods ask."""
        return Counting(decided_by_cards(self.family, self.families), self.neuron_cores)


def measured(amounts: Mapping[str, int]) -> tuple[int, int]:
    """Cpu and memory, which every family leaves to kubelet; cut to what an array can hold."""
    cpu, memory = amounts.get(CPU, 0), amounts.get(MEMORY, 0)
    return max(-MOST, min(cpu, MOST)), max(-MOST, min(memory, MOST))


def sizes(amounts: Mapping[str, int]) -> tuple[int, int, int]:
    """The same, and how many pods: each pod asks for all three, and most nodes that refuse one lack one of them."""
    return *measured(amounts), max(-MOST, min(amounts.get(PODS, 0), MOST))


@dataclass(frozen=True, slots=True)
class Room:
    """What is left of a target. `requirements` are those of the pods that are there, where they narrow it."""

    free: Resources
    devices: tuple[DeviceState, ...] = ()
    ports: tuple[HostPort, ...] = ()
    requirements: Requirements = ANYTHING
    attached: Attached = NOTHING_ATTACHED
