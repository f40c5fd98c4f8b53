"""Causes: why a pod, a pool or a node is refused, as values that code may branch on.

A cause holds enums, quantities and names, never a sentence. `engine.explain` is the one place that turns causes into
words, and nothing reads those words back. Causes of one sharing family are declared in `sharing`; all inherit from
`Cause`, so a test can find every one of them.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from kerf.model.constraints import Requirement, Requirements, Taint
from kerf.model.placeholders import Placeholder

Name = NewType("Name", str)
"""An identifier: of an object, a label key, a resource, a code. Printed as it is."""
Quoted = NewType("Quoted", str)
"""Text that an API, a decoder or a person wrote. It is quoted; no code reads it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something is refused. Subclasses are frozen, and their fields are no sentences."""


@dataclass(frozen=True, slots=True)
class Lack:
    """A quantity that is missing: `amount` of a resource in its base unit, or of `MiB`, `cores`, `GPU`."""

    amount: int
    of: Name


@dataclass(frozen=True, slots=True)
class FieldRefusal:
    """Why an API server would refuse an object: what the field at `path` must be, and what it is.

    `got` is as `errors.brief` shows it, or in angle brackets. `hint` is empty where none is known. `place` is where the
    field stands (`file:line:col`), as near as comes cheaply; the same mistake at two places is one.
    """

    path: Name
    expected: Quoted
    got: Quoted
    hint: Quoted = Quoted("")
    place: Name = field(default=Name(""), compare=False)

    def __str__(self) -> str:
        """As a reader says it: `spec.priority: expected 0, got 5`."""
        return f"{self.path}: expected {self.expected}, got {self.got}"


class TargetKind(StrEnum):
    """What refuses a pod."""

    NODE_POOL = "NodePool"
    NODE = "node"
    WINDOW = "CapacityWindow"
    CLUSTER = "the cluster"


@dataclass(frozen=True, slots=True)
class TargetName:
    """Who refuses a pod: an existing node, a pool with one of its types, a window; `the cluster` has no name."""

    kind: TargetKind
    name: Name = Name("")
    instance_type: Name = Name("")

    @property
    def node_pool(self) -> str:
        """The pool whose answer it is; empty for every other target."""
        return self.name if self.kind == TargetKind.NODE_POOL else ""

    def __str__(self) -> str:
        """As people read it, and the order among equals: `NodePool gpu/g5.xlarge`, `node n1`."""
        whole = f"{self.name}/{self.instance_type}" if self.instance_type else self.name
        return f"{self.kind} {whole}" if whole else str(self.kind)


# Why a target refuses a pod.


@dataclass(frozen=True, slots=True)
class UntoleratedTaint(Cause):
    """The pod lacks a toleration."""

    taint: Taint


@dataclass(frozen=True, slots=True)
class LabelMismatch(Cause):
    """The pod asks for a label that the target does not have; `held` is what it has of that key, None for nothing.

    Of a label that a pool's types have it is what all of them have, the nearest values, and how many `more` there are.
    """

    asked: Requirement
    held: Requirement | None
    owner: TargetName
    more: int = 0


@dataclass(frozen=True, slots=True)
class HostPortTaken(Cause):
    """Another pod there has the port of the node."""

    port: int
    protocol: Name


@dataclass(frozen=True, slots=True)
class NotPlannedFor(Cause):
    """The pod has constraints that this version does not plan for, so any node could be the wrong one."""

    constraints: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class ResourceShortage:
    """One resource that is short, in its base unit: what a pod needs, what is free, what is lacking."""

    resource: Name
    needed: int
    free: int
    lacking: int


@dataclass(frozen=True, slots=True)
class Insufficient(Cause):
    """Resources that kubelet shows do not suffice. `worst` lacks most of what is asked; all are in name order.

    `cards` is why the cards of a new node would not do either, None where they would or were not asked.
    """

    worst: ResourceShortage
    shortages: tuple[ResourceShortage, ...]
    cards: Cause | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ShownOtherwise(Insufficient):
    """The worst is a name of GPUs that the target does not show: its plugin, called `title`, shows them as `shown`."""

    title: Name
    shown: Name


@dataclass(frozen=True, slots=True)
class ForeignFamily(Cause):
    """The pod asks for slices of another family than the one that owns the target's cards.

    `selector` is the label by which that family's device plugin selects nodes; None where it has none.
    """

    family: Name
    title: Name
    selector: tuple[Name, Name] | None


@dataclass(frozen=True, slots=True)
class CardsNeverShown(Cause):
    """The target has cards, and none of them will ever register; `problem` says why.

    `others` are instance types of the same pool with another reason, one for each reason.
    """

    problem: Cause
    others: tuple[tuple[Name, Cause], ...] = ()


@dataclass(frozen=True, slots=True)
class NoCards(Cause):
    """An instance type without GPUs."""

    instance_type: Name


@dataclass(frozen=True, slots=True)
class NoneRegistered(Cause):
    """A node that has registered no GPU."""

    node: Name


@dataclass(frozen=True, slots=True)
class LimitReached(Cause):
    """One more node would exceed a limit of the pool: amounts in the resource's base unit.

    `cards` are those of the node, where it shows another number by this resource; else 0.
    """

    pool: Name
    resource: Name
    limit: int
    used: int
    planned: int
    more: int
    cards: int = 0


# Why a pool, or a type of it, cannot be bought.


@dataclass(frozen=True, slots=True)
class BacksOff(Cause):
    """A type failed in the pool lately, and is left alone until then; see `kerf.model.market.BackOff`."""

    instance_type: Name
    pool: Name
    until_s: float
    said: Quoted
    is_tried: bool = False


@dataclass(frozen=True, slots=True)
class NoOfferingAllowed(Cause):
    """The pool's zones and capacity types allow no offering of the type."""

    instance_type: Name


@dataclass(frozen=True, slots=True)
class OfferingsSoldOut(Cause):
    """The type is sold out in these capacity types; tried again at `again_s`, 0 where that is unknown."""

    instance_type: Name
    capacity_types: tuple[Name, ...]
    again_s: float


@dataclass(frozen=True, slots=True)
class ReservationUsedUp(Cause):
    """The type is left in a reservation alone, and all its instances are taken, planned ones among them."""

    instance_type: Name
    reservation: Name


@dataclass(frozen=True, slots=True)
class MinValuesUnmet(Cause):
    """The types of the pool that hold the pod, and that its limits allow, have too few values of a label."""

    pool: Name
    label: Name
    wanted: int
    found: int


@dataclass(frozen=True, slots=True)
class OverPriceCap(Cause):
    """A price above a cap of the pool, both in micro-units per hour; `per_gpu`: of one physical card."""

    price_micro: int
    cap_micro: int
    per_gpu: bool = False


@dataclass(frozen=True, slots=True)
class TypeOverPriceCap(Cause):
    """Every offering of the type that the pool allows is above its cap."""

    instance_type: Name
    excess: OverPriceCap


@dataclass(frozen=True, slots=True)
class NoOfferingLeft(Cause):
    """None of the type's offerings is in what the pod asks."""

    asked: Requirements


@dataclass(frozen=True, slots=True)
class PoolDeleting(Cause):
    """The pool is being deleted."""


@dataclass(frozen=True, slots=True)
class PoolInvalid(Cause):
    """What the pool says cannot be carried out: its spec, and its annotations of prices and pace."""

    spec: Quoted
    annotations: Quoted


@dataclass(frozen=True, slots=True)
class PoolStatic(Cause):
    """`spec.replicas` is set: the pool's nodes follow that number and not the pods."""


@dataclass(frozen=True, slots=True)
class NodeClassNotFound(Cause):
    """There is no such NodeClass."""

    kind: Name
    name: Name


@dataclass(frozen=True, slots=True)
class NodeClassUnready(Cause):
    """The NodeClass says that it is not ready."""

    kind: Name
    name: Name
    reason: Quoted


@dataclass(frozen=True, slots=True)
class PoolClosed(Cause):
    """The pool takes no nodes."""

    pool: Name
    problem: Cause


@dataclass(frozen=True, slots=True)
class NoTypeMatches(Cause):
    """No type of the market satisfies the pool's requirements.

    `asked` are some of them, and `labels` some labels of its template, that no type satisfies together.
    """

    pool: Name
    asked: tuple[Requirement, ...] = ()
    labels: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeUnmatched(Cause):
    """A type that the pool names does not satisfy its other requirements, or has not the labels of its template."""

    instance_type: Name
    asked: tuple[Requirement, ...] = ()
    labels: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeNotSold(Cause):
    """A type that the pool names is known and not sold here."""

    instance_type: Name
    why: Quoted


@dataclass(frozen=True, slots=True)
class TypeUnknown(Cause):
    """A type that the pool names and no catalogue has; `nearest` is a known name like it, empty for none."""

    instance_type: Name
    nearest: Name


@dataclass(frozen=True, slots=True)
class NamedTypesUnusable(Cause):
    """None of the types that the pool names can be had, each with why."""

    pool: Name
    types: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class NothingOffered(Cause):
    """No pool offers any instance type."""


# Why a pod is not planned for, or has no place.


@dataclass(frozen=True, slots=True)
class InvalidPod(Cause):
    """The pod makes no sense to its API."""

    problem: FieldRefusal


@dataclass(frozen=True, slots=True)
class AsksTooMuch(Cause):
    """The pod's spec has so many entries that it is not planned for: each constraint on other pods counts as several.

    `entries` counts them so, and `most` is what a pod may have; `relations` are the constraints on other pods.
    """

    entries: int
    relations: int
    most: int


@dataclass(frozen=True, slots=True)
class Gated(Cause):
    """Scheduling gates hold the pod back."""

    gates: tuple[Name, ...]
    by_kueue: bool


@dataclass(frozen=True, slots=True)
class NodeNamed(Cause):
    """Manifests name the node of so many pods (`nodeName`), past every scheduler; `is_there`: the input has it."""

    makers: tuple[Name, ...]
    pods: int
    node: Name
    is_there: bool


@dataclass(frozen=True, slots=True)
class OverResourceQuota(Cause):
    """The API server or the family's scheduler would refuse the pod: its namespace has no more of a ResourceQuota."""

    namespace: Name
    name: Name
    resource: Name
    hard: int
    used: int
    more: int


@dataclass(frozen=True, slots=True)
class UnstatedForQuota(Cause):
    """The API server would refuse the pod: a ResourceQuota limits what some of its containers do not state."""

    namespace: Name
    name: Name
    resources: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class NotBought(Cause):
    """Nothing that is there or can be bought takes the pod; its misfits say why."""


@dataclass(frozen=True, slots=True)
class NoRoomOfRequest(Cause):
    """Nothing is bought for the pod, and no node has room. `request`: whose room it takes, empty for a check.

    `is_there` False: no request has that name.
    """

    request: Name
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class NoIdleCapacity(Cause):
    """An opportunistic pod: no node has room to spare, and none is bought for it."""


@dataclass(frozen=True, slots=True)
class Paced(Cause):
    """The pool launches so many nodes a minute; the next one in `wait_s`."""

    pool: Name
    per_minute: int
    wait_s: int


@dataclass(frozen=True, slots=True)
class AwaitsRequest(Cause):
    """The pod takes a place of a ProvisioningRequest that is not provisioned yet."""

    request: Name


@dataclass(frozen=True, slots=True)
class TemplateMissing(Cause):
    """A ProvisioningRequest or CapacityBuffer names a PodTemplate that is not there."""

    request: Name
    template: Name


@dataclass(frozen=True, slots=True)
class TemplateInvalid(Cause):
    """A PodTemplate of a ProvisioningRequest or CapacityBuffer makes no sense."""

    request: Name
    template: Name
    problem: FieldRefusal


# Room that is kept for fewer pods than it was asked for.


@dataclass(frozen=True, slots=True)
class RoomUnbounded(Cause):
    """No quota of the namespace limits the resource, and no pool names it in its annotation `use`.

    An empty namespace: the room is for pods of any.
    """

    namespace: Name
    resource: Name
    use: Name


@dataclass(frozen=True, slots=True)
class NoPoolNames(Cause):
    """Each pool names other namespaces in its annotation `use`."""

    namespace: Name
    use: Name


@dataclass(frozen=True, slots=True)
class MostRoom(Cause):
    """No run, window, request or buffer gets room for more pods than this."""

    most: int


@dataclass(frozen=True, slots=True)
class RoomLimited(Cause):
    """What asks for room has it kept for `granted` of `wanted` pods; `why` not for more."""

    kept: Placeholder
    wanted: int
    granted: int
    why: Cause


# Floors of pools.


@dataclass(frozen=True, slots=True)
class FloorUnmet(Cause):
    """A pool keeps fewer nodes than its floor, or than it states if static; `obstacle` is what stands in the way."""

    pool: Name
    held: int
    floor: int
    obstacle: Cause
    is_static: bool = False


@dataclass(frozen=True, slots=True)
class LimitLeavesNoRoom(Cause):
    """A limit of the pool leaves no room for one more node of a type."""

    resource: Name
    instance_type: Name


@dataclass(frozen=True, slots=True)
class MostOfOnePlan(Cause):
    """One plan buys no more nodes than `most` for what a pool keeps."""

    most: int


@dataclass(frozen=True, slots=True)
class PoolOffersNothing(Cause):
    """The pool offers no instance type."""


@dataclass(frozen=True, slots=True)
class BelowFloor(Cause):
    """Why a node is bought for no pod: its pool has fewer nodes than it keeps, or than it states."""

    pool: Name
    held: int
    floor: int
    is_static: bool = False


# What an operator should know beside a decision.


@dataclass(frozen=True, slots=True)
class OfPool(Cause):
    """What is to be known of a pool."""

    pool: Name
    known: Cause


@dataclass(frozen=True, slots=True)
class OverlayNotApplied(Cause):
    """A NodeOverlay changes nothing anywhere."""

    overlay: Name
    why: Cause


@dataclass(frozen=True, slots=True)
class OverlayInvalid(Cause):
    """What its reader says of it."""

    problem: Quoted


@dataclass(frozen=True, slots=True)
class OverlayContradicts(Cause):
    """Another one of the same weight, which is applied, says something else."""

    other: Name


@dataclass(frozen=True, slots=True)
class OverlayDisagrees(Cause):
    """An overlay announces another amount of a resource than the cards of a type register, which is planned with.

    `memory_mib` is that of one card where `resource` is the memory of several; 0 elsewhere.
    """

    overlay: Name
    instance_type: Name
    resource: Name
    announced: int
    planned: int
    cards: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class OverlayShares(Cause):
    """An overlay announces each card of a type `replicas` times, and nothing else says how the cards are shared."""

    overlay: Name
    instance_type: Name
    announced: int
    cards: int
    replicas: int


@dataclass(frozen=True, slots=True)
class SearchFailed(Cause):
    """The search for the cheapest nodes stopped at an error of this type; nodes were filled first-fit."""

    error: Name


@dataclass(frozen=True, slots=True)
class SolverFailed(Cause):
    """The solver of linear programs gave no answer, so prices could not choose nodes."""


@dataclass(frozen=True, slots=True)
class TooManyKinds(Cause):
    """So many kinds of pods wait that prices cannot choose their nodes; they can choose for `most`."""

    kinds: int
    most: int


@dataclass(frozen=True, slots=True)
class FilledOneByOne(Cause):
    """So many pods have nodes that no prices have chosen: `apart` go by who else is on their node, `ports` need host
    ports."""

    apart: int
    ports: int


@dataclass(frozen=True, slots=True)
class NotCompared(Cause):
    """What first-fit would buy for so many pods among so many types was not worked out beside the plan.

    `serves`: limits leave pods without a node, so it might also serve more of them.
    """

    pods: int
    types: int
    serves: bool = False


@dataclass(frozen=True, slots=True)
class ServedMost(Cause):
    """Limits leave so many pods without a node; these nodes serve `more` pods more than those that cost least a pod."""

    left: int
    more: int


@dataclass(frozen=True, slots=True)
class FarFromBound(Cause):
    """Nodes for so many pods cost `price_micro` where `bound_micro` is all that is proven.

    `parts_micro` is what the cheapest mix that prices found would cost if nodes could be bought in parts; None where
    the search ended before its prices had settled. `is_longest`: no budget looks longer than the one that was given.
    """

    pods: int
    price_micro: int
    bound_micro: int
    parts_micro: int | None
    is_longest: bool = False


@dataclass(frozen=True, slots=True)
class BoundAbovePlan(Cause):
    """Our own bug: nodes for the pods cost `price_micro`, less than the `bound_micro` that was proven of them.

    The bound is false, so the decision states none.
    """

    bound_micro: int
    price_micro: int


@dataclass(frozen=True, slots=True)
class NeverFilled(Cause):
    """No node is planned for `pod` and `others` like it: filling one stopped at an error of this type."""

    pod: Name
    others: int
    error: Name
