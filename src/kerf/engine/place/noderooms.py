"""The nodes that can take new pods: what is left of each, and what one on its way will have by its claim."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.engine.place.devices import only, reopened, with_daemons
from kerf.engine.place.domains import Domains, Lasting, Site, coming_site, settled_site
from kerf.engine.place.fit import Placed, admits, fit
from kerf.engine.place.podclasses import Findings, Residents
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room, Target, sizes
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.place.volumes import Volumes
from kerf.model import promises
from kerf.model.causes import Name, NoneRegistered, TargetKind, TargetName
from kerf.model.constraints import Requirements, Taint
from kerf.model.gpu import DeviceState
from kerf.model.market import Market
from kerf.model.nodeclaim import COMING_LABELS, DISRUPTED_TAINT, NodeClaim
from kerf.model.nodes import CORDONED_BY_KERF, DRIFTED_TAINT, OPENING_TAINTS, is_ephemeral
from kerf.model.plan import Misfit
from kerf.model.pods import HostPort, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, DaemonSet
from kerf.sharing.family import Family
from kerf.sharing.registry import families_of, family_named, owner_of
from kerf.sharing.shown import cores_of_a_device, will_show

_Basis = tuple[tuple[Family, ...], Market | None, tuple[DaemonSet, ...]]
"""What a room follows from beside its node: the families, and of a node that starts the market and the DaemonSets."""
_ROOM, _USABLE = "room", "usable"
_NOTHING: _Basis = ((), None, ())
_UNKNOWN: "tuple[_Basis, NodeRoom | None]" = (_NOTHING, None)
_MOST_KEPT = 32
"""So many answers of a room are kept; where more kinds of pods ask, most of them ask once."""


@dataclass(frozen=True, eq=False)
class NodeRoom:
    """One node of the trial: where, and how much is left at its start."""

    cluster_node: ClusterNode
    target: Target
    room: Room

    def fit(self, room: Room, shape: Shape) -> Placed | Misfit:
        """A pod of the shape with this room left, whatever pods are elsewhere.

        An answer for the room as it was at the start is kept: a node that does not change is asked again by every plan
        and by every look at the fleet.
        """
        if room is not self.room:
            return fit(self.target, room, shape)
        key = shape.identity
        held = self._answers.get(key)
        if held is None:
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            # The spec is kept beside the answer: an identity is free again once its object is gone.
            held = self._answers[key] = shape.spec, fit(self.target, room, shape)
        return held[1]

    def fit_as_planned(self, room: Room, shape: Shape, cards: frozenset[int]) -> Placed | Misfit:
        """A pod of the shape on some cards alone, on any where none is named; others are open afterwards as before.

        Kept: until a node is up each plan puts the same pods there one after another, and begins with the same room.
        """
        key = id(room), shape.identity, cards
        held = self._planned_answers.get(key)
        if held is None or held[0] is not room:
            if len(self._planned_answers) >= _MOST_KEPT:
                self._planned_answers.clear()
            held = self._planned_answers[key] = room, shape.spec, self._as_planned(room, shape, cards)
        return held[2]

    def _as_planned(self, room: Room, shape: Shape, cards: frozenset[int]) -> Placed | Misfit:
        narrowed = replace(room, devices=only(room.devices, cards)) if cards else room
        result = fit(self.target, narrowed, shape)
        if isinstance(result, Misfit):
            return result
        left = replace(result.room, devices=reopened(result.room.devices, room.devices))
        return replace(result, room=left)

    @cached_property
    def _planned_answers(self) -> dict[Hashable, tuple[Room, PodSpec, Placed | Misfit]]:
        return {}

    @cached_property
    def _answers(self) -> dict[Hashable, tuple[PodSpec, Placed | Misfit]]:
        return {}

    @cached_property
    def shown(self) -> str:
        """Its name, by which nodes are ordered."""
        return str(self.target.name)

    @cached_property
    def measured(self) -> tuple[int, int, int]:
        """What is left of cpu, memory and places for pods at the start."""
        return sizes(self.room.free)

    @cached_property
    def site(self) -> Site:
        """The node as topology sees it."""
        target, node = self.target, self.cluster_node
        if target.is_open or not node.is_registered:
            return coming_site(node.name, target.requirements, target.taints)
        return settled_site(node.name, node.labels, target.taints)

    @cached_property
    def planned(self) -> Mapping[str, frozenset[int]]:
        """Pods a claim was bought for, with their cards; empty once a person has broken the annotation."""
        claim = self.cluster_node.claim
        pods = promises.read(claim.annotations).pods if claim is not None else {}
        return {pod: frozenset(cards) for pod, cards in pods.items()}


def is_usable(node: ClusterNode) -> bool:
    """Whether new pods may be planned on it; each plan asks each node."""
    found = node.findings.get(_USABLE)
    if found is None:
        found = node.findings[_USABLE] = None, _is_usable(node)
    usable: bool = found[1]
    return usable


def _is_usable(node: ClusterNode) -> bool:
    if node.is_deleting or node.problem is not None:
        return False
    held = node.node
    if held is None:
        # A claim that was initialised had a Node once: that Node is gone, and the claim follows it.
        return not node.is_initialized
    if held.is_unschedulable and CORDONED_BY_KERF not in held.annotations:
        return False
    if any(taint.key == DISRUPTED_TAINT.key for taint in held.taints):
        return False
    return held.is_ready or not node.is_initialized


def room_of(node: ClusterNode, snapshot: ClusterSnapshot, market: Market, families: tuple[Family, ...]) -> NodeRoom:
    """The node at the start of a trial; one that starts has what its claim promises where it shows nothing yet."""
    held, claim = node.node, node.claim
    family = family_of(node, families)
    if node.is_registered and held is not None:
        requirements = held.label_requirements
    else:
        requirements = promised(claim, market) if held is None else Requirements.of_labels(node.labels)
    if not node.is_initialized:
        requirements = requirements.intersect(COMING_LABELS)
    devices = cards_of(node, family, market)
    nothing = None if devices else NoneRegistered(Name(node.name))
    shown = _shown(node, market, family, families, devices)
    target = Target(
        TargetName(TargetKind.NODE, Name(node.name)),
        requirements,
        _lasting_taints(node),
        family,
        families,
        claim.node_pool if claim is not None else "",
        held,
        is_open=held is None,
        quotas=snapshot.quotas,
        no_devices=nothing,
        neuron_cores=cores_of_a_device(shown),
    )
    left, counting = dict(shown), target.counting
    ports: list[HostPort] = []
    for pod in node.pods:
        if not pod.is_ended:
            for name, amount in counting.of(pod.spec.requests).items():
                left[name] = left.get(name, 0) - amount
            ports.extend(pod.spec.host_ports)
    free = Resources(left)
    if not node.is_initialized:
        missing = [each.pod for each in _missing_daemons(node, target, snapshot.daemon_sets_as_running)]
        free = free - Resources.total((counting.of(pod.spec.requests), 1) for pod in missing)
        devices = with_daemons(target, devices, missing)
    return NodeRoom(node, target, Room(free, devices, tuple(ports)))


def rooms_of(
    nodes: Iterable[ClusterNode], snapshot: ClusterSnapshot, market: Market, volumes: Volumes
) -> tuple[NodeRoom, ...]:
    """All of them, in their order. Cost: the pods on nodes that no snapshot had before, and a look at each other node.

    What is left of an initialised node follows from the node alone, as long as the families stay what they are; one
    that starts goes by what the market says of its type, and by the DaemonSets, too.
    """
    families, quotas, has_volumes = families_of(snapshot), snapshot.quotas, bool(snapshot.csi_nodes)
    found = []
    for node in nodes:
        basis, spot = node.findings.get(_ROOM, _UNKNOWN)
        if spot is None or not (
            (basis[0] is families and basis[1] is None) or _still_holds(basis, families, market, snapshot)
        ):
            spot = room_of(node, snapshot, market, families)
            is_up = node.is_initialized and node.node is not None
            basis = (families, None, ()) if is_up else (families, market, snapshot.daemon_sets_as_running)
            node.findings[_ROOM] = basis, spot
        families = basis[0]
        if spot.target.quotas is not quotas:
            if spot.target.quotas == quotas:
                quotas = spot.target.quotas
            else:
                spot = replace(spot, target=replace(spot.target, quotas=quotas))
                node.findings[_ROOM] = basis, spot
        found.append(with_volumes(spot, volumes) if has_volumes else spot)
    return tuple(found)


def _still_holds(basis: _Basis, families: tuple[Family, ...], market: Market, snapshot: ClusterSnapshot) -> bool:
    """Whether what a room follows from, beside its node, is still so."""
    of, sold, daemons = basis
    if of is not families and of != families:
        return False
    return sold is None or (sold is market and daemons == snapshot.daemon_sets_as_running)


def with_volumes(spot: NodeRoom, volumes: Volumes) -> NodeRoom:
    """The same with the limits of its CSI drivers and what they have attached; most nodes state none."""
    limits = volumes.limits(spot.cluster_node)
    if not limits:
        return spot
    room = replace(spot.room, attached=volumes.attached(spot.cluster_node))
    return replace(spot, target=replace(spot.target, volume_limits=limits), room=room)


def ledger_of(spots: Sequence[NodeRoom], snapshot: ClusterSnapshot, lasting: Callable[[], Lasting]) -> TopologyLedger:
    """Nodes of the trial by their numbers there, then the others that there are."""

    def look() -> tuple[Domains, Residents]:
        usable = {spot.cluster_node.name for spot in spots}
        others = [node for node in snapshot.nodes if node.node is not None and node.name not in usable]
        sites = [spot.site for spot in spots]
        daemons = snapshot.daemon_sets_as_running
        sites += [settled_site(node.name, node.labels, node.node.taints) for node in others if node.node is not None]
        held = [_residents(spot, daemons) for spot in spots]
        return Domains(sites, lasting()), [*held, *((node.findings, node.pods) for node in others)]

    return TopologyLedger(look, snapshot.related, snapshot.namespaces, snapshot.related_preferences)


def _residents(spot: NodeRoom, daemons: Iterable[DaemonSet]) -> tuple[Findings, Sequence[Pod]]:
    node, coming = spot.cluster_node, daemons_to_come(spot, daemons)
    return ({}, (*node.pods, *coming)) if coming else (node.findings, node.pods)


def daemons_to_come(spot: NodeRoom, daemons: Iterable[DaemonSet]) -> list[Pod]:
    """The pods of DaemonSets that a node on its way will have."""
    node = spot.cluster_node
    return [] if node.is_initialized else [each.pod for each in _missing_daemons(node, spot.target, daemons)]


def daemons_of(node: ClusterNode, snapshot: ClusterSnapshot, market: Market) -> tuple[Pod, ...]:
    """Pods of DaemonSets on the node, and those that belong on it and are not there, or not in the input."""
    target = room_of(node, snapshot, market, families_of(snapshot)).target
    missing = _missing_daemons(node, target, snapshot.daemon_sets_as_running)
    return (*(pod for pod in node.pods if pod.is_daemon), *(daemon.pod for daemon in missing))


def family_of(node: ClusterNode, families: tuple[Family, ...]) -> Family:
    """The family that owns the node's cards, or would."""
    own = node.node.annotations if node.node is not None else {}
    return family_named(node.family, families) if node.family else owner_of(node.labels, own, families)


def cards_of(node: ClusterNode, family: Family, market: Market) -> tuple[DeviceState, ...]:
    """Its cards, also of a starting node whose claim does not say which it will have: Karpenter's own claims do not."""
    if node.devices:
        return node.devices
    if (claim := node.claim) is None or node.is_initialized:
        return ()
    kind = market.find(promises.planned_type(claim), claim.node_class)
    return () if kind is None else family.predict(kind.devices, node.labels, {})


def promised(claim: NodeClaim | None, market: Market) -> Requirements:
    """What a claim without a node will have: its requirements, and the labels of the type it is planned as."""
    if claim is None:
        return Requirements()
    known = claim.requirements.intersect(Requirements.of_labels(claim.labels))
    kind = market.find(promises.planned_type(claim), claim.node_class)
    return known if kind is None else known.intersect(kind.requirements)


def _lasting_taints(node: ClusterNode) -> tuple[Taint, ...]:
    claimed = node.claim.taints if node.claim is not None else ()
    if node.node is None:
        return claimed
    # The taint of a cordon stays for a while when the cordon is lifted; `is_usable` goes by the cordon itself. A
    # reservation ends within seconds, and the promises of the node's claim say for whom the room is. The taint of a
    # drifted node keeps no pod off, and would make each pod of the cluster one with a preference.
    passing = (taint for taint in node.node.taints if taint.key not in OPENING_TAINTS)
    taints = tuple(taint for taint in passing if taint != DRIFTED_TAINT)
    if node.is_initialized:
        return taints
    if not node.is_registered:
        taints += tuple(taint for taint in claimed if taint not in taints)
    startup = node.claim.startup_taints if node.claim is not None else ()
    return tuple(taint for taint in taints if not is_ephemeral(taint) and taint not in startup)


def _shown(
    node: ClusterNode, market: Market, family: Family, families: Sequence[Family], devices: Sequence[DeviceState]
) -> Resources:
    """What kubelet shows; where a starting node still shows nothing, what its claim promises."""
    shown = node.node.allocatable if node.node is not None else Resources()
    claim = node.claim
    if node.is_initialized or claim is None:
        return shown.replaced(family.kubelet_capacity(devices)) if any(d.partitions for d in devices) else shown
    launched = promises.resources(claim, market.find(promises.planned_type(claim), claim.node_class))
    expected = will_show(Resources(launched), family, families, devices)
    names = sorted({*shown, *expected})
    return Resources({name: shown.get(name) or expected.get(name, 0) for name in names})


def _missing_daemons(node: ClusterNode, target: Target, daemons: Iterable[DaemonSet]) -> list[DaemonSet]:
    running = {(pod.namespace, pod.owner.name) for pod in node.pods if pod.owner is not None and pod.is_daemon}
    return [
        daemon
        for daemon in daemons
        if (daemon.namespace, daemon.name) not in running and admits(target, Shape((daemon.pod,)))
    ]
