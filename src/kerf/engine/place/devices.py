"""Asks a pod's sharing family which devices it gets, and what the real scheduler will pick. Knows no family by name."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Target
from kerf.model.causes import Cause, ForeignFamily, Name
from kerf.model.gpu import DeviceState, Slice
from kerf.model.plan import Misfit, Stage
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import NOTHING, Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing import registry
from kerf.sharing.family import Family, NoFit, Occupant, Refused

_NO_QUANTITY = 1 << 40
"""Shortfall of a refusal that no quantity would fix: farther than any that lacks some MiB."""


def demand_of(shape: Shape, family: Family) -> PodDemand | Refused:
    """What pods of the shape ask of a family."""
    return registry.demand_of(shape.pod, family)


def rightful_family(shape: Shape, families: tuple[Family, ...]) -> Family | None:
    """The only family that can serve the pods (they ask for its own resources); None when any may."""
    return next((family for family in families if family.claims(shape.pod)), None)


def demands(shape: Shape, families: tuple[Family, ...]) -> list[tuple[Family, PodDemand]]:
    """What one pod of the shape asks of each family that it asks anything."""
    found = ((family, demand_of(shape, family)) for family in families)
    return [(family, demand) for family, demand in found if isinstance(demand, PodDemand) and not demand.is_empty]


def quota_asked(shape: Shape, families: tuple[Family, ...]) -> Resources:
    """What one pod of the shape asks of the keys of ResourceQuotas that families enforce."""
    asked = NOTHING
    for family, demand in demands(shape, families):
        asked = asked + family.quota_asked(demand)
    return asked


def quota_limits(quota: ResourceQuota, families: tuple[Family, ...]) -> dict[str, int]:
    """The quota's limits, each in the units of the family that enforces it, if one does."""
    enforced = (family.quota_limits(quota) for family in families)
    return {**quota.hard, **{name: limit for limits in enforced for name, limit in limits.items()}}


def asks_cards(shape: Shape, families: tuple[Family, ...]) -> bool:
    """Whether the pods ask for GPUs, or parts of them, of any family."""
    if rightful_family(shape, families) is not None:
        return True
    demands = (demand_of(shape, family) for family in families)
    return any(isinstance(demand, Refused) or not demand.is_empty for demand in demands)


def asks_devices(shape: Shape, target: Target) -> bool:
    """Whether a pod of the shape must be asked about the target's devices: it needs some, or another family's."""
    rightful = rightful_family(shape, target.families)
    if rightful is not None and rightful.name != target.family.name:
        return True
    demand = demand_of(shape, target.family)
    return isinstance(demand, Refused) or not demand.is_empty


def distinguishes_cards(shape: Shape, family: Family) -> bool:
    """Whether cards of the family that differ only in their ids may answer a pod of the shape differently."""
    demand = demand_of(shape, family)
    return isinstance(demand, PodDemand) and not demand.is_empty and family.distinguishes(demand)


@dataclass(frozen=True, slots=True)
class Taken:
    """The devices after a pod was placed, its slices, and the real scheduler's order among nodes (least first)."""

    devices: tuple[DeviceState, ...]
    slices: tuple[Slice, ...] = ()
    order: float = 0.0


def place_on_devices(target: Target, devices: tuple[DeviceState, ...], shape: Shape) -> Taken | Misfit:
    """One pod of the shape on these devices, where the real scheduler would put it; or why no device takes it."""
    rightful = rightful_family(shape, target.families)
    if rightful is not None and rightful.name != target.family.name:
        return foreign(target, rightful)
    demand = demand_of(shape, target.family)
    if isinstance(demand, Refused):
        return Misfit(target.name, demand.stage, demand.cause, shortfall=1)
    if demand.is_empty:
        return Taken(devices)
    if target.no_devices is not None:
        return _no_devices(target, target.no_devices)
    result = target.family.fit(devices, demand, shape.pod, target.node, target.quotas)
    if isinstance(result, NoFit):
        return Misfit(target.name, Stage.DEVICES, result.cause, result.missing, result.shortfall or _NO_QUANTITY)
    return Taken(result.devices, result.slices, target.family.node_score_order(demand, result.score))


def _no_devices(target: Target, problem: Cause) -> Misfit:
    return Misfit(target.name, Stage.DEVICES, problem, shortfall=_NO_QUANTITY)


def never_shown(target: Target, shape: Shape, lacking: Collection[str]) -> Misfit | None:
    """Of resources that are lacking because the cards which would show them never register: that, not the number."""
    if target.no_devices is None or not _is_by_cards(target, shape, lacking):
        return None
    return _no_devices(target, target.no_devices)


def _is_by_cards(target: Target, shape: Shape, resources: Collection[str]) -> bool:
    """Whether the pods ask for one of the resources as for parts of the target's cards."""
    demand = demand_of(shape, target.family)
    if not isinstance(demand, PodDemand):
        return False
    return any(c.request is not None and c.request.resource in resources for c in demand.containers)


def speaks_for_equal_cards(target: Target, shape: Shape, misfit: Misfit) -> bool:
    """Whether no node with the same cards as the target can be nearer than its misfit: one of its cards, not before."""
    if misfit.stage != Stage.DEVICES or distinguishes_cards(shape, target.family):
        return False
    # Where resources that only cards would show are lacking too, that is said first, and is nearer than another family.
    return misfit.shortfall <= _NO_QUANTITY or not _is_by_cards(target, shape, shape.counted(target.counting))


def with_daemons(target: Target, devices: tuple[DeviceState, ...], daemons: Iterable[Pod]) -> tuple[DeviceState, ...]:
    """The cards of a new node, less what the pods of DaemonSets take of them: they come before any other pod.

    What a card takes of them it takes as of any pod. A pod that asks for more than is there waits on its node for ever,
    and gets what others give back: it counts as all that the family's books let it hold.
    """
    for pod in daemons:
        demand = registry.demand_of(pod, target.family)
        if isinstance(demand, Refused) or demand.is_empty or not devices:
            continue
        rightful = rightful_family(Shape((pod,)), target.families)
        if rightful is not None and rightful.name != target.family.name:
            continue
        result = target.family.fit(devices, demand, pod, target.node, ())
        if isinstance(result, NoFit):
            devices = target.family.occupied(devices, (Occupant(pod, demand),))
        else:
            devices = result.devices
    return devices


def only(devices: tuple[DeviceState, ...], indexes: frozenset[int]) -> tuple[DeviceState, ...]:
    """The same devices with all but some closed to new slices."""
    return tuple(d if d.cordoned or d.index in indexes else replace(d, cordoned=True) for d in devices)


def reopened(devices: tuple[DeviceState, ...], before: tuple[DeviceState, ...]) -> tuple[DeviceState, ...]:
    """`devices` with the openness that they had `before`."""
    cordoned = {device.index: device.cordoned for device in before}
    return tuple(d if d.cordoned == cordoned[d.index] else replace(d, cordoned=cordoned[d.index]) for d in devices)


def emptied(device: DeviceState) -> DeviceState:
    """The card with nothing on it."""
    return replace(device, used_memory_mib=0, used_cores=0, used_slots=0, placements=())


def foreign(target: Target, rightful: Family) -> Misfit:
    """The target's cards belong to another family than the one the pod asks."""
    label = rightful.selector
    selector = None if label is None else (Name(label[0]), Name(label[1]))
    cause = ForeignFamily(Name(rightful.name), Name(rightful.title), selector)
    return Misfit(target.name, Stage.DEVICES, cause, shortfall=2 * _NO_QUANTITY)
