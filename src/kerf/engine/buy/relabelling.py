"""Idle nodes that serve waiting pods under another configuration of MIG or of the device plugin, instead of a launch.

Only where the pool leaves the configuration open, and never a node on which a pod holds a GPU: the MIG manager cannot
change the instances of a card in use.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.engine.buy.filling import Filler, Load, named
from kerf.engine.place.devices import asks_devices
from kerf.engine.place.noderooms import NodeRoom
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room, Target
from kerf.engine.place.trial import Trial
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.causes import Cause, Name
from kerf.model.constraints import CAPACITY_TYPE, ZONE, Requirements
from kerf.model.gpu import DeviceShape
from kerf.model.instancetypes import InstanceType, Offering
from kerf.model.nodeclaim import REGISTERED_LESS
from kerf.model.nodepool import NodePool
from kerf.model.plan import NodePlacement, Repartition
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.sharing.family import Family
from kerf.sharing.nvidia.choice import label_choices
from kerf.sharing.registry import double_booked, owner_of
from kerf.sharing.shown import will_show

_NONE: Mapping[str, Room] = {}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IdleNodeFits(Cause):
    """A node of which no pod uses a GPU holds the load under other labels."""

    load: Load
    shapes: tuple[Shape, ...]
    labels: tuple[tuple[Name, Name], ...]


@dataclass(frozen=True)
class Relabelling:
    """Nodes to label again, where their pods go, and the pods that are left."""

    relabels: tuple[Repartition, ...] = ()
    placements: tuple[NodePlacement, ...] = ()
    left: tuple[Shape, ...] = ()


@dataclass(frozen=True, eq=False)
class _Option:
    """A node as it would be under other labels."""

    spot: NodeRoom
    labels: Mapping[str, str]
    offered: OfferedType


def relabelled(shapes: Sequence[Shape], trial: Trial, world: World, freed: Mapping[str, Room] = _NONE) -> Relabelling:
    """The node and configuration that serve most pods, then the next, until no idle node helps. `trial` stays as it is.

    `freed` are nodes by name with a room that counts instead of the trial's. Such a node may also take pods as it is,
    if it serves more of them so: then it is among the placements and not among the relabels. Cost: idle nodes of pools
    with a choice x configurations x shapes.
    """
    options = list(_options(trial, world, freed))
    if not options or not shapes:
        return Relabelling(left=tuple(shapes))
    filler = Filler(shapes, Holding(option.offered for option in options))
    # Labels change what a node holds, and not whom it is near to: pods to which that matters are left as they are.
    bound = [trial.ledger.concerns(shape) for shape in shapes]
    queues = [[] if is_bound else list(shape.pods) for shape, is_bound in zip(shapes, bound, strict=True)]
    relabels: list[Repartition] = []
    placements: list[NodePlacement] = []
    while True:
        found = [(load, option) for option in options if (load := _load(filler, option, queues)) is not None]
        if not found:
            break
        load, option = max(found, key=lambda pair: pair[0].pods)
        members = [queues[number].pop(0) for number, count in load.held for _ in range(count)]
        relabel = _relabel(load, option, members, shapes)
        if option.labels:
            relabels.append(relabel)
        placements.extend(NodePlacement(placed, relabel.node) for placed in relabel.pods)
        options = [other for other in options if other.spot is not option.spot]
    waiting = (shape.pods if is_bound else queue for shape, is_bound, queue in zip(shapes, bound, queues, strict=True))
    return Relabelling(tuple(relabels), tuple(placements), tuple(Shape(tuple(left)) for left in waiting if left))


def _load(filler: Filler, option: _Option, queues: Sequence[Sequence[Pod]]) -> Load | None:
    """What the node would hold; None where no pod among them asks for a GPU: others are no reason to change it."""
    asking = [
        len(queue) if queue and asks_devices(shape, option.offered.target) else 0
        for shape, queue in zip(filler.shapes, queues, strict=True)
    ]
    return filler.fill(option.offered, asking)


def _relabel(load: Load, option: _Option, members: Sequence[Pod], shapes: Sequence[Shape]) -> Repartition:
    node, offered = option.spot.cluster_node, option.offered
    cause = IdleNodeFits(load, tuple(shapes), tuple(sorted((Name(k), Name(v)) for k, v in option.labels.items())))
    claim = node.claim.name if node.claim is not None else ""
    (pods,) = named(load, [members])
    return Repartition(node.name, claim, offered.pool.name, option.labels, offered.kind.devices, pods, cause=cause)


def has_choice(spot: NodeRoom, world: World) -> bool:
    """Whether the node, with the pods that were on it when the plan began, could be given other labels."""
    return any(True for _ in _changes(spot, spot.room, world))


def _options(trial: Trial, world: World, freed: Mapping[str, Room]) -> Iterator[_Option]:
    pools = world.snapshot.node_pools
    if not freed and not any(any(label_choices(p.labels, p.stated_annotations, has_mig=True)) for p in pools):
        return
    for spot, left in zip(trial.spots, trial.rooms, strict=True):
        room = freed.get(spot.cluster_node.name)
        yield from _changes(spot, left if room is None else room, world)
        parts = _parts(spot, world) if room is not None else None
        if room is not None and parts is not None:
            # Last: of what serves as many pods the first is taken, and as it is the node has been tried already.
            yield _Option(spot, {}, _offered(spot.target, *parts, room))


def _parts(spot: NodeRoom, world: World) -> tuple[NodePool, InstanceType] | None:
    """Pool and type of a node that is up, and whose cards are those of its type."""
    node = spot.cluster_node
    if node.claim is None or node.node is None or not node.is_initialized:
        return None
    if REGISTERED_LESS in node.claim.annotations:
        return None
    pool = world.snapshot.pool(node.claim.node_pool)
    kind = world.market.find(node.claim.instance_type, node.claim.node_class)
    return None if pool is None or kind is None else (pool, kind)


def _changes(spot: NodeRoom, room: Room, world: World) -> Iterator[_Option]:
    """The node as it would be under each set of other labels; nothing where a pod uses a card of the room."""
    is_idle = bool(room.devices) and all(device.is_idle and device.healthy for device in room.devices)
    parts = _parts(spot, world) if is_idle else None
    if parts is None:
        return
    (pool, kind), families = parts, world.supply.families
    before = spot.target.family.kubelet_capacity(room.devices)
    free, held = room.free.without(before), spot.cluster_node.labels
    for labels in _other_labels(pool, held, kind.devices):
        changed = {**held, **labels}
        family = owner_of(changed, pool.stated_annotations, families)
        devices = family.predict(kind.devices, changed, pool.stated_annotations)
        if not devices or double_booked(changed, pool.stated_annotations, families):
            continue
        changed_room = replace(room, free=will_show(free, family, families, devices), devices=devices)
        yield _Option(spot, labels, _offered(_target(spot, changed, family), pool, kind, changed_room))


def _offered(target: Target, pool: NodePool, kind: InstanceType, room: Room) -> OfferedType:
    """The node as something to fill, which costs nothing."""
    labels = target.node.labels if target.node is not None else {}
    offering = Offering(labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, ""), 0)
    return OfferedType(target, pool, kind, (offering,), room, Resources())


def _other_labels(
    pool: NodePool, labels: Mapping[str, str], shapes: Sequence[DeviceShape]
) -> Iterator[Mapping[str, str]]:
    """What the pool would let the node be labelled with, where that is anything else than it is."""
    has_mig = any(shape.profiles for shape in shapes)
    for choice in label_choices(pool.labels, pool.stated_annotations, has_mig=has_mig):
        if any(labels.get(key) != value for key, value in choice.items()):
            yield choice


def _target(spot: NodeRoom, labels: Mapping[str, str], family: Family) -> Target:
    return replace(spot.target, requirements=Requirements.of_labels(labels), family=family, no_devices=None)
