"""Plan: what to do and why, as one value that the actuator, the command line and the events all read."""

from dataclasses import dataclass
from enum import StrEnum

from kerf.model.constraints import Requirements
from kerf.model.gpu import DeviceShape, Slice
from kerf.model.instancetypes import OfferingKey
from kerf.model.quantities import NOTHING, Resources


class Stage(StrEnum):
    """How far a pod got before it was refused, from first to last."""

    INVALID = "invalid"
    HELD = "held"
    SCHEDULER = "scheduler"
    VOLUMES = "volumes"
    TAINTS = "taints"
    REQUIREMENTS = "requirements"
    TOPOLOGY = "topology"
    RESOURCES = "resources"
    DEVICES = "devices"
    LIMITS = "limits"
    OFFERINGS = "offerings"
    WINDOWS = "windows"

    @property
    def rank(self) -> int:
        """Position in the order above: a larger one came further."""
        return list(Stage).index(self)


REPLAY, NOMINATE, PIN = "replay", "nominate", "pin"
"""How a launch's placements will be followed: by the scheduler's own rules, by nomination, by a pinned card."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one object that would help: a JSON merge patch as YAML text, and the object it is for."""

    kind: str
    name: str
    text: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why one target refuses a pod. `reason` is a code or one sentence, `missing` the lacking quantity (or empty).

    `shortfall` orders misfits of one stage: the smallest is the nearest miss.
    """

    target: str
    stage: Stage
    reason: str
    missing: str = ""
    detail: str = ""
    shortfall: int = 0


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pending pod that no action of the plan will serve."""

    pod: str
    stage: Stage
    reason: str
    hint: str = ""
    patch: Patch | None = None
    misfits: tuple[Misfit, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """Where a pod goes: the slices it gets there; empty when it asks for no GPU."""

    pod: str
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True)
class Launch:
    """Buy one node. `offering` is the planned one; `alternatives` are types that hold the same pods, cheapest first.

    `requirements` is what the claim will ask for; `requests` the pods' kubelet-visible sum with daemons.
    """

    name: str
    node_pool: str
    offering: OfferingKey
    price_micro: int
    pods: tuple[PlacedPod, ...]
    requirements: Requirements
    requests: Resources = NOTHING
    devices: tuple[DeviceShape, ...] = ()
    alternatives: tuple[str, ...] = ()
    follow: str = REPLAY
    why: str = ""
    is_estimate: bool = False
    allocated: int = 0


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """A pending pod that an existing node, or one on its way, will hold."""

    pod: PlacedPod
    node: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """Take one node away. `moved` are pods that go elsewhere, with where."""

    node: str
    claim: str
    node_pool: str
    saved_micro: int
    reason: str
    why: str
    moved: tuple[NodePlacement, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """Per hour, in micro-units. `bound_micro` is a proven lower bound of `after`; None when none was computed."""

    currency: str
    before_micro: int
    after_micro: int
    bound_micro: int | None = None


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Cards paid for and how much of them is allocated, in 1/10000 of a card, when the plan is done."""

    paid: int = 0
    allocated: int = 0

    @property
    def kerf(self) -> float:
        """The share of paid GPU capacity that no pod uses; 0 when no card is paid for."""
        return 0.0 if self.paid == 0 else round(1 - self.allocated / (self.paid * 10_000), 4)


@dataclass(frozen=True)
class Plan:
    """The decision. Every pending pod is in exactly one of launches, placements, unplaced."""

    strategy: str
    cost: Cost
    gpus: GpuUse = GpuUse()
    launches: tuple[Launch, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    placements: tuple[NodePlacement, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.launches or self.deletions)
