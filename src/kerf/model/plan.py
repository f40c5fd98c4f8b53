"""Plan: what to do and why, as one value that the actuator, the command line and the events all read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kerf.model.causes import Cause, Lack, Name, NotBought, TargetName
from kerf.model.constraints import Requirements, Taint
from kerf.model.gpu import DeviceShape, Slice
from kerf.model.instancetypes import OfferingKey
from kerf.model.large import Large
from kerf.model.lowerbound import LowerBound
from kerf.model.quantities import NOTHING, Resources


class Stage(StrEnum):
    """How far a pod got before it was refused, from first to last."""

    INVALID = "invalid"
    HELD = "held"
    SCHEDULER = "scheduler"
    VOLUMES = "volumes"
    TAINTS = "taints"
    REQUIREMENTS = "requirements"
    RESOURCES = "resources"
    TOPOLOGY = "topology"
    AFFINITY = "affinity"
    DEVICES = "devices"
    LIMITS = "limits"
    OFFERINGS = "offerings"
    WINDOWS = "windows"

    @property
    def rank(self) -> int:
        """Position in the order above: a larger one came further."""
        return _RANKS[self]


_RANKS = {stage: rank for rank, stage in enumerate(Stage)}


REPLAY, RESERVE, PIN = "replay", "reserve", "pin"
"""How a launch's placements are followed: by the scheduler's own rules, on a reserved node, by a pinned card."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one object that would help, as a JSON merge patch; the edges write it as text."""

    kind: str
    name: str
    change: Mapping[str, object] = field(hash=False)
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why one target refuses a pod, and what is lacking there.

    `shortfall` orders misfits of one stage: the smallest is the nearest miss.
    """

    target: TargetName
    stage: Stage
    cause: Cause
    missing: tuple[Lack, ...] = ()
    shortfall: int = 0

    @property
    def order(self) -> tuple[int, int, str]:
        """Sort key: what came furthest, then lacks least, then by name."""
        return (-self.stage.rank, self.shortfall, str(self.target))


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pending pod that no action of the plan will serve: the cause, and its words.

    `innermost` is the cause that stopped the first pod of its group; of a pod without a group its own. `patch` is the
    change that helps, together with those of `more` where one object alone does not. `place` is where in the input the
    mistake stands that makes the pod invalid.
    """

    pod: str
    stage: Stage
    reason: str
    hint: str = ""
    patch: Patch | None = None
    misfits: tuple[Misfit, ...] = ()
    cause: Cause = field(default_factory=NotBought)
    innermost: Cause = field(default_factory=NotBought)
    more: tuple[Patch, ...] = ()
    place: str = ""

    @property
    def patches(self) -> tuple[Patch, ...]:
        """All changes that are needed; none where none is known."""
        return () if self.patch is None else (self.patch, *self.more)


class PlacedPod(NamedTuple):
    """Where a pod goes: the `parts` of cards that it gets there, under its name or that of an equal pod; empty when it
    asks for no GPU.

    Pods of a later `turn` fit its cards only once those of the earlier ones are there. Pods of a later `round` are let
    in by pods that are behind them in the queue, wherever these go; within a round they come in the queue's order.
    A plan for 100,000 pods has as many of them, so all of one load share their parts.
    """

    pod: str
    parts: tuple[Slice, ...] = ()
    turn: int = 0
    round: int = 0

    @property
    def slices(self) -> tuple[Slice, ...]:
        """The parts under the pod's own name."""
        return tuple([part if part.pod == self.pod else part.of(self.pod) for part in self.parts])

    @property
    def cards(self) -> tuple[int, ...]:
        """The indexes of the cards that it has a slice of, each once."""
        return tuple(sorted({part.device for part in self.parts}))


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """So many nodes of a type hold the pods of one launch, for a price in micro-units per hour."""

    instance_type: str
    nodes: int
    price_micro: int


@dataclass(frozen=True)
class Launch:
    """Buy one node. `offering` is the planned one; `alternatives` are types that hold the same pods, cheapest first.

    `replaces` are the claims of the nodes in whose place it is bought, empty where it is not.
    `requirements` is what the claim will ask for; `requests` the pods' kubelet-visible sum with daemons; `labels` what
    the node gets beside the pool's own, where the pool leaves a choice, and `taints` those that it gets besides.
    `charge` is what the node counts against its pool's limits: the largest of the planned type and the alternatives.
    `is_relaxed`: these are fewer than minValues of the pool ask for. `runner_up` is what the same pods would get of the
    next best type of the pool, where that was looked for.
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
    cause: Cause = field(default_factory=Cause, compare=False)
    is_estimate: bool = False
    allocated: int = 0
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    replaces: tuple[str, ...] = ()
    charge: Resources = NOTHING
    is_relaxed: bool = False
    runner_up: RunnerUp | None = field(default=None, compare=False)

    def another(self, name: str, pods: tuple[PlacedPod, ...], follow: str) -> "Launch":
        """The same node once more, with other pods. A plan for 100,000 pods makes 25,000; `replace` takes ten times as
        long."""
        made, held = object.__new__(Launch), self.__dict__.copy()
        held["name"], held["pods"], held["follow"] = name, pods, follow
        object.__setattr__(made, "__dict__", held)
        return made

    def because(self, cause: Cause) -> "Launch":
        """The same for another cause, made as `another` is."""
        made, held = object.__new__(Launch), self.__dict__.copy()
        held["cause"] = cause
        object.__setattr__(made, "__dict__", held)
        return made


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """A pending pod that an existing node, or one on its way, will hold."""

    pod: PlacedPod
    node: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """Take one node away; `saved_micro` is its price, `why` is the `cause` in words.

    `moved` are pods that go to nodes that are there, with where.
    `replaced_by` are the launches of the same plan that must be up before: some of its pods go to each of them.
    `exchanges` are the models of GPU that its pods have and get, where these are others.
    """

    node: str
    claim: str
    node_pool: str
    saved_micro: int
    reason: str
    cause: Cause
    moved: tuple[NodePlacement, ...] = ()
    why: str = ""
    replaced_by: tuple[str, ...] = ()
    exchanges: tuple[tuple[Name, Name], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Repartition:
    """Give an idle node another configuration of GPU sharing; `devices` are its cards, `pods` what it then holds."""

    node: str
    claim: str
    node_pool: str
    labels: Mapping[str, str] = field(hash=False)
    devices: tuple[DeviceShape, ...]
    pods: tuple[PlacedPod, ...]
    why: str = ""
    cause: Cause = field(default_factory=Cause, compare=False)


@dataclass(frozen=True, slots=True)
class Eviction:
    """An opportunistic pod that must go so that `for_pod` finds its place on the node.

    `by_scheduler`: the scheduler of that pod takes the place by itself (preemption).
    """

    pod: str
    node: str
    for_pod: str
    by_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """A pod whose scheduling gate may be opened now, because it has a place.

    `window` is the CapacityWindow that is open for it, and `opened_s` since when; empty and None for an opportunistic
    pod, and None too outside of the hours of a window that then lets pods through. `share` is what it takes of cards,
    in ten-thousandths of one, and `until_s` until when that is reserved of the window's quota; None where it has none.
    """

    pod: str
    gates: tuple[str, ...]
    window: str = ""
    opened_s: float | None = None
    share: int = 0
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Per hour, in micro-units. `bound` is what the launches for pods cost at least; None when none was computed."""

    currency: str
    before_micro: int
    after_micro: int
    bound: LowerBound | None = None

    @property
    def bound_micro(self) -> int | None:
        """A proven lower bound of `after_micro`, where there is a bound."""
        return None if self.bound is None else self.before_micro + self.bound.micro


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Cards paid for and how much of them is allocated, both in 1/10000 of a physical card, when the plan is done.

    A type that is sold with a part of a card counts as that part.
    """

    paid: int = 0
    allocated: int = 0

    @property
    def kerf(self) -> float:
        """The share of paid GPU capacity that no pod uses; 0 when no card is paid for."""
        return 0.0 if self.paid == 0 else round(1 - self.allocated / self.paid, 4)


@dataclass(frozen=True, repr=False)
class Plan(Large):
    """A decision with its words. Every pending pod is in exactly one of launches, placements, unplaced.

    The pods of a relabelled node are among the placements.
    `unmet_floors` are pools that keep fewer nodes than they should, with what stands in the way; among `notes` too.
    """

    strategy: str
    cost: Cost
    gpus: GpuUse = GpuUse()
    launches: tuple[Launch, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    placements: tuple[NodePlacement, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    notes: tuple[str, ...] = ()
    admissions: tuple[Admission, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    relabels: tuple[Repartition, ...] = ()
    unmet_floors: tuple[tuple[str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.launches or self.deletions or self.relabels)
