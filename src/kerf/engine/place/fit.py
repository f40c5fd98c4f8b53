"""May this pod run there? The cheapest check first, and an answer that names the stage and the missing quantity."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.engine.place.devices import never_shown, place_on_devices
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room, Target
from kerf.engine.place.terms import FEW, TermIndex
from kerf.engine.place.topology import Around
from kerf.model.causes import (
    HostPortTaken,
    Insufficient,
    LabelMismatch,
    Lack,
    Name,
    ResourceShortage,
    ShownOtherwise,
    TargetKind,
    TargetName,
    UntoleratedTaint,
)
from kerf.model.constraints import (
    CAPACITY_TYPE,
    HOSTNAME,
    NODE_NAME,
    NODE_POOL,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
    Requirement,
    Requirements,
    untolerated,
)
from kerf.model.gpu import Slice
from kerf.model.nodeclaim import COMING_LABELS
from kerf.model.plan import Misfit, Stage
from kerf.model.pods import PodSpec, port_in_conflict
from kerf.model.quantities import NOTHING
from kerf.model.volumecauses import NoVolumeHere, TooManyVolumes, VolumeElsewhere, VolumesAgainstPod
from kerf.model.volumes import NO_MOUNTS
from kerf.sharing.shown import of_cards

_NAMES = (HOSTNAME, NODE_NAME)
"""Keys by which pods ask for a node by its name."""
_NOT_ASKED = (*_NAMES, *COMING_LABELS)
_MANY = 64
"""Values that one requirement may well list."""
"""Keys that claims never ask for."""
_TERMS = "terms"
"""Under which a spec keeps its terms as `_agreeing` asks for them (`PodSpec.answers`)."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod fits: what is left, and the slices it takes.

    Of several targets the real scheduler takes the one of least `order`.
    """

    room: Room
    slices: tuple[Slice, ...] = ()
    order: float = 0.0


def check_taints(target: Target, shape: Shape) -> Misfit | None:
    """Whether a taint keeps the pods off; None when none does."""
    if not target.taints:
        return None
    spec = shape.spec
    taint = untolerated(target.taints, spec.tolerations, heeds_preferred=spec.wish.avoids_taints)
    if taint is None:
        return None
    return Misfit(target.name, Stage.TAINTS, UntoleratedTaint(taint), shortfall=1)


def narrowed(target: Target, room: Room, shape: Shape) -> Requirements | Misfit:
    """The room's requirements with those of the pods, or which pair of them has no value in common.

    Of several affinity terms the first counts that can be bought just now, else the first that agrees.
    """
    unsold: Requirements | None = None
    terms = shape.spec.alternatives_new if target.is_open else shape.spec.alternatives
    for alternative in terms if len(terms) <= FEW else _agreeing(target, shape.spec, terms):
        if not alternative:
            return room.requirements
        if _clash(target, room, alternative) is None:
            agreed = room.requirements
            if target.is_open:
                # A node to be has a name of its own: which names it must not have is no requirement of a claim.
                # Nor is a label that every node gets once it is up.
                is_plain = not any(key in alternative for key in _NOT_ASKED)
                asked = alternative if is_plain else alternative.without(_NOT_ASKED)
                asked = _that_matter(asked.decided(target.requirements), target)
                agreed = agreed.intersect(asked) if asked else agreed
            if _is_sold(target, agreed):
                return agreed
            unsold = agreed if unsold is None else unsold
    if unsold is not None:
        return unsold
    misfit = label_misfit(target, room, terms[0])
    assert misfit is not None
    return misfit if shape.spec.mounts == NO_MOUNTS else _of_volumes(target, room, shape, misfit)


def _that_matter(asked: Requirements, target: Target) -> Requirements:
    """The same, of a long list of values that are not wanted only those that a node of the target may have: what is
    asked of a node grows with every pod that it gets."""
    long = [each for each in asked.values() if each.complement and len(each.values) > _MANY]
    if not long:
        return asked
    held = ((each, target.requirements.get(each.key)) for each in long)
    cut = {
        each.key: replace(each, values=each.values & (own.values if own is not None else frozenset()))
        for each, own in held
        if own is None or not own.complement
    }
    kept = Requirements(
        each for each in cut.values() if each.values or each.at_least is not None or each.at_most is not None
    )
    return asked.without(cut).intersect(kept)


def _agreeing(target: Target, spec: PodSpec, terms: Sequence[Requirements]) -> Iterator[Requirements]:
    """Those of many terms that the target by itself may satisfy, in their order."""
    question = _TERMS, target.is_open
    if question not in spec.answers:
        spec.answers[question] = TermIndex(terms)
    index: TermIndex = spec.answers[question]
    return (terms[number] for number in index.may_agree(target.requirements, is_open=target.is_open))


def _of_volumes(target: Target, room: Room, shape: Shape, misfit: Misfit) -> Misfit:
    """The same misfit, as that of the pod's volumes where nothing else it asks for stands in the way."""
    cause = misfit.cause
    if not isinstance(cause, LabelMismatch):
        return misfit
    against = _against_pod(
        cause.asked, shape.spec, shape.spec.mounts.new if target.is_open else shape.spec.mounts.there
    )
    if against is not None:
        return replace(misfit, cause=against)
    own = (label_misfit(target, room, each) for each in shape.spec.own_alternatives)
    if any(clash is None for clash in own):
        elsewhere = VolumeElsewhere(cause.asked, cause.held, cause.owner) if cause.asked.key else NoVolumeHere()
        return replace(misfit, cause=elsewhere)
    return next(
        clash for each in shape.spec.own_alternatives if (clash := label_misfit(target, room, each)) is not None
    )


def _against_pod(asked: Requirement, spec: PodSpec, volumes: Sequence[Requirements]) -> VolumesAgainstPod | None:
    """Why no value at all is right, where what the pod asks of the label and what its volumes ask share none."""
    if not asked.is_empty or not asked.needs_label:
        return None
    own = [each[asked.key] for each in spec.own_alternatives if asked.key in each]
    pairs = ((mine, each[asked.key]) for mine in own for each in volumes if asked.key in each)
    return next((VolumesAgainstPod(mine, theirs) for mine, theirs in pairs if mine.excludes(theirs)), None)


def _is_sold(target: Target, asked: Requirements) -> bool:
    zone, capacity_type, zone_id = map(asked.get, (ZONE, CAPACITY_TYPE, ZONE_ID))
    return not target.sold or any(
        (zone is None or zone.has(z))
        and (capacity_type is None or capacity_type.has(c))
        and (zone_id is None or not z_id or zone_id.has(z_id))
        for z, c, z_id in target.sold
    )


def label_misfit(target: Target, room: Room, asked: Requirements) -> Misfit | None:
    """Which label keeps pods that ask for this off a target with what is there already; None where none does."""
    clash = _clash(target, room, asked)
    return None if clash is None else _requirement_misfit(target, clash, asked)


def _clash(target: Target, room: Room, asked: Requirements) -> Requirement | None:
    """The first of what is asked that does not agree with the target and with what is there already."""
    if not target.is_open:
        held = {**target.labels, NODE_NAME: target.name.name} if NODE_NAME in asked else target.labels
        return asked.unsatisfied_by(held)
    # A node to be gets a name that no pod can ask for yet; buying for such a pod would never end.
    for name in _NAMES:
        named = asked.get(name)
        if named is not None and not named.complement:
            return named
    undefined = asked.undefined(target.requirements, WELL_KNOWN)
    if undefined is not None:
        return undefined
    conflict = asked.conflict(target.requirements) or asked.conflict(room.requirements)
    return None if conflict is None else conflict[0]


def _requirement_misfit(target: Target, asked: Requirement, all_asked: Requirements) -> Misfit:
    owner = TargetName(TargetKind.NODE_POOL, Name(target.pool)) if target.is_open and target.pool else target.name
    held = target.requirements.get(asked.key)
    if asked.key == NODE_NAME and not target.is_open:
        held = Requirement.of(NODE_NAME, "In", (target.name.name,))
    cause = LabelMismatch(asked, held, owner)
    # A pod that names its pool wants to know why that pool refuses it, not what the others lack.
    pools = all_asked.get(NODE_POOL)
    is_another = pools is not None and not pools.has(target.pool)
    return Misfit(target.name, Stage.REQUIREMENTS, cause, shortfall=2 if is_another else 1)


def admits(target: Target, shape: Shape) -> bool:
    """Whether taints and labels let the pods onto an empty node of the target."""
    return kept_out(target, shape) is None


def kept_out(target: Target, shape: Shape) -> Misfit | None:
    """Why taints or labels let the pods onto no node of the target, however empty; None where they do."""
    found = narrowed(target, Room(NOTHING), shape)
    return check_taints(target, shape) or (found if isinstance(found, Misfit) else None)


def check_resources(target: Target, room: Room, shape: Shape) -> Misfit | None:
    """Whether kubelet-visible resources and host ports suffice; None when they do."""
    port = port_in_conflict(shape.spec.host_ports, room.ports)
    if port is not None:
        return Misfit(target.name, Stage.RESOURCES, HostPortTaken(port.port, Name(port.protocol)), shortfall=1)
    lacking = shape.counted(target.counting).shortfall(room.free)
    if not lacking:
        return None
    return never_shown(target, shape, lacking) or _insufficient(target, room, shape, lacking)


def check_volumes(target: Target, room: Room, shape: Shape) -> Misfit | None:
    """Whether CSI drivers can attach the pod's volumes beside those that are there; None when they can.

    As nodevolumelimits: a volume that is attached already counts once, and a driver without a limit has none.
    """
    mounts = shape.spec.mounts
    if not mounts.is_attaching:
        return None
    after = room.attached.plus(mounts)
    for driver in sorted({*dict(mounts.own), *(name for name, _ in mounts.shared)}):
        limit, count = target.volume_limits.get(driver), after.count(driver)
        before = room.attached.count(driver)
        if limit is not None and count > limit and count > before:
            cause = TooManyVolumes(Name(driver), limit, before, count - before)
            return Misfit(target.name, Stage.RESOURCES, cause, shortfall=1000)
    return None


def _insufficient(target: Target, room: Room, shape: Shape, lacking: Mapping[str, int]) -> Misfit:
    """The resource that lacks most of what is asked names the misfit; ties by name."""
    counted = shape.counted(target.counting)
    shortages = tuple(
        ResourceShortage(Name(name), counted[name], max(0, room.free.get(name, 0)), lacking[name])
        for name in sorted(lacking)
    )
    shares = [each.lacking * 1000 // max(1, each.needed) for each in shortages]
    worst, family = shortages[shares.index(max(shares))], target.family
    cause = Insufficient(worst, shortages)
    is_shown = target.node is not None and target.node.allocatable.get(worst.resource, 0) > 0
    if not is_shown and worst.resource in of_cards(target.families):
        cause = ShownOtherwise(worst, shortages, Name(family.title), Name(family.counted))
    missing = tuple(Lack(each.lacking, each.resource) for each in shortages)
    return Misfit(target.name, Stage.RESOURCES, cause, missing, sum(shares))


def fit(target: Target, room: Room, shape: Shape, around: Around | None = None) -> Placed | Misfit:
    """Place one pod of the shape. Checks in the order taints, requirements, volumes, resources, topology, devices.

    Without `around` no constraint on other pods is looked at.
    """
    misfit = check_taints(target, shape)
    if misfit is not None:
        return misfit
    requirements = narrowed(target, room, shape)
    if isinstance(requirements, Misfit):
        return requirements
    misfit = check_volumes(target, room, shape) or check_resources(target, room, shape)
    if misfit is None and around is not None:
        misfit = around.misfit(shape, target.name)
    if misfit is not None:
        return misfit
    return take(target, replace(room, requirements=requirements), shape)


def take(target: Target, room: Room, shape: Shape) -> Placed | Misfit:
    """Place one pod whose other checks have passed: only its devices can still refuse it."""
    taken = place_on_devices(target, room.devices, shape)
    if isinstance(taken, Misfit):
        return taken
    free = room.free - shape.counted(target.counting)
    left = replace(room, free=free, devices=taken.devices, ports=(*room.ports, *shape.spec.host_ports))
    if shape.spec.mounts.is_attaching and target.volume_limits:
        left = replace(left, attached=room.attached.plus(shape.spec.mounts))
    return Placed(left, taken.slices, taken.order)


def nearest(misfits: Iterable[Misfit]) -> Misfit:
    """The misfit that came furthest, then lacks least, then by name. Raises ValueError where there is none."""
    return min(misfits, key=lambda misfit: misfit.order)
