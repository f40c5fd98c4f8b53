"""The cluster as a plan leaves it: each node that gets pods, with what it has and who is there.

A node is read from what it shows, or what its claim promises; one that is to be bought from its type. What one node of
a plan has, all nodes that are bought alike have, so these are read once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from kerf.model import promises
from kerf.model.constraints import (
    ALIASES,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_NAME,
    WELL_KNOWN,
    ZONE,
    Requirements,
    Taint,
    untolerated,
)
from kerf.model.gpu import DeviceShape, DeviceState
from kerf.model.instancetypes import InstanceType
from kerf.model.nodeclaim import COMING_LABELS, DISRUPTED_TAINT
from kerf.model.nodepool import NodePool
from kerf.model.nodes import CORDONED_BY_KERF, DRIFTED_TAINT, OPENING_TAINTS, is_ephemeral
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Launch, PlacedPod
from kerf.model.pods import Pod, PodDemand, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.violations import PartKind, PlanPart
from kerf.sharing.family import Family, Occupant
from kerf.sharing.registry import demand_of, families_of, family_named, owner_of
from kerf.sharing.shown import decided_by_cards, will_show
from kerf.verify.proposal import Proposal

_Coming = Sequence[tuple[PlacedPod, PlanPart | None]]
"""Pods that come to a node, each with the part of the plan that brings it."""
_POD = attrgetter("pod")
_DOMAIN = "kerf.dev/"
"""What annotations of NodePools begin with that speak to Kerf."""


@dataclass(frozen=True, eq=False)
class TakingNode:
    """A node that gets pods by the plan, once it has them.

    `labels` are those whose value is known, `stated` what is known of all of them. `residents` are the pods that are
    there already, `placed` those that come, each with the part of the plan that brings it: None for one that another
    plan has promised its place. `launch` is None for a node that is there.
    """

    name: str
    labels: Mapping[str, str]
    stated: Requirements
    taints: tuple[Taint, ...]
    allocatable: Resources
    devices: tuple[DeviceState, ...]
    family: Family
    residents: tuple[Pod, ...]
    placed: Sequence[tuple[PlacedPod, PlanPart | None]]
    pool: str = ""
    node: ClusterNode | None = None
    launch: Launch | None = None
    is_open: bool = False
    """Whether some of its pods leave, and nothing says which of its cards are free then: only their sum counts."""

    @cached_property
    def parts(self) -> tuple[PlanPart, ...]:
        """The parts of the plan that bring pods here: those that move pods to save money before those that wait."""
        found = dict.fromkeys(part for _, part in self.placed if part is not None)
        moving = tuple(part for part in found if part.kind == PartKind.DELETION)
        return moving or tuple(found)


class After:
    """The cluster with a plan carried out. Cost: linear in the pods of the plan and in the nodes that it touches."""

    def __init__(self, proposal: Proposal) -> None:
        self.proposal, self.snapshot, self.world = proposal, proposal.snapshot, proposal.world
        self.gone = {deletion.node: deletion for deletion in proposal.deletions}
        self._kinds: dict[tuple[str, str], InstanceType | None] = {}
        self._daemons: dict[object, tuple[PodSpec, ...]] = {}
        self._specs: dict[int, PodSpec] = {}
        self._uncounted: dict[str, frozenset[str]] = {}

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The ways in which cards are shared."""
        return families_of(self.snapshot)

    def uncounted(self, family: Family) -> frozenset[str]:
        """Resources of which a sum over a node of the family says nothing: what single cards have."""
        if family.name not in self._uncounted:
            self._uncounted[family.name] = decided_by_cards(family, self.families)
        return self._uncounted[family.name]

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """Every pod that the plan may place, by its key: those that wait, those of nodes that go, room that is kept."""
        found = dict(self.proposal.kept)
        for name in self.gone:
            node = self.snapshot.node(name)
            found.update({pod.key: pod for pod in (node.pods if node is not None else ())})
        found.update({pod.key: pod for pod in self.snapshot.pending})
        if self.snapshot.runtime_classes and any(pod.spec.runtime_class for pod in self.snapshot.pending_samples):
            found = {key: self._admitted(pod) for key, pod in found.items()}
        return found

    def _admitted(self, pod: Pod) -> Pod:
        """The pod with what its RuntimeClass adds, where no API server has seen it yet."""
        spec = pod.spec
        added = self.snapshot.runtime_classes.get(spec.runtime_class) if spec.runtime_class and not pod.uid else None
        if added is None:
            return pod
        if id(spec) not in self._specs:
            self._specs[id(spec)] = added.admitted(spec)
        return replace(pod, spec=self._specs[id(spec)])

    @cached_property
    def coming(self) -> Mapping[str, list[tuple[PlacedPod, PlanPart | None]]]:
        """By name of a node that is there the pods that come to it."""
        found: dict[str, list[tuple[PlacedPod, PlanPart | None]]] = {}
        for placement in self.proposal.placements:
            part = PlanPart(PartKind.PLACEMENT, placement.pod.pod)
            found.setdefault(placement.node, []).append((placement.pod, part))
        for deletion in self.proposal.deletions:
            part = PlanPart(PartKind.DELETION, deletion.node)
            for placement in deletion.moved:
                found.setdefault(placement.node, []).append((placement.pod, part))
        moved = {each.pod.pod for deletion in self.proposal.deletions for each in deletion.moved}
        for placement in self.proposal.coming:
            if placement.pod.pod not in moved:
                found.setdefault(placement.node, []).append((placement.pod, None))
        return found

    @cached_property
    def evicted(self) -> frozenset[str]:
        """The pods that make room for others: those that are evicted, and those that fill what is idle and end."""
        ending = (
            p.key
            for name in self.coming
            if (node := self.snapshot.node(name))
            for p in node.opportunistic
            if p.deleted_s
        )
        return frozenset((*(eviction.pod for eviction in self.proposal.evictions), *ending))

    @cached_property
    def there(self) -> tuple[TakingNode, ...]:
        """The nodes there are that get pods, by name; not those that the cluster does not have.

        A node comes twice where room is kept on it and opportunistic pods fill what is idle: with all pods and without
        the room, and with the room once these pods have made way.
        """
        return tuple(
            self._site_of(node, placed, gone)
            for name in sorted(self.coming)
            if (node := self.snapshot.node(name)) is not None
            for placed, gone in self._beside_kept(node, self.coming[name])
        )

    def _beside_kept(self, node: ClusterNode, placed: _Coming) -> Iterator[tuple[_Coming, frozenset[str]]]:
        """What comes to the node at once, and which of its pods have gone then."""
        kept = [each for each in placed if is_virtual(each[0].pod)]
        idle = [each for each in placed if (pod := self.pods.get(each[0].pod)) is not None and pod.is_opportunistic]
        residents = frozenset(pod.key for pod in node.opportunistic)
        if not kept or not (idle or residents):
            yield placed, self.evicted
            return
        real = [each for each in placed if each not in kept]
        if real:
            yield real, self.evicted
        yield [each for each in placed if each not in idle], self.evicted | residents

    @cached_property
    def bought(self) -> tuple[tuple[TakingNode, tuple[Launch, ...]], ...]:
        """The nodes to buy, one of each kind with all launches that are as it is.

        Launches are alike that have the same offering and labels, and pods of the same kinds with the same parts of
        cards.
        """
        groups: dict[object, list[Launch]] = {}
        pods = self.pods
        for launch in self.proposal.launches:
            held = [pods.get(placed.pod) for placed in launch.pods]
            kinds = tuple([_kind_of(pod) for pod in held])
            shared = (launch.node_pool, launch.offering, launch.price_micro, launch.alternatives, launch.charge)
            same = (id(launch.requirements), id(launch.devices), id(launch.labels), id(launch.taints))
            key = (shared, same, kinds, tuple([id(placed.parts) for placed in launch.pods]))
            groups.setdefault(key, []).append(launch)
        return tuple((self._site_to_be(held[0]), tuple(held)) for held in groups.values())

    def pool(self, name: str) -> NodePool | None:
        """A pool of the cluster."""
        return self.snapshot.pool(name)

    @cached_property
    def chosen(self) -> frozenset[tuple[str, str, str]]:
        """Pool, key and value of labels that nodes for sale get beside what their pool states.

        Configurations of GPU sharing that the pool leaves open, what is assumed of a plugin until the node is there,
        and what a NodeOverlay announces.
        """
        pools = [offered.pool for offered in self.world.supply.available if offered.pool.chosen_labels]
        return frozenset((pool.name, *pair) for pool in pools for pair in pool.chosen_labels.items())

    def kind(self, pool: str, name: str) -> InstanceType | None:
        """A type as a pool buys it; of a static pool as the market has it. None where it is not sold."""
        if (pool, name) not in self._kinds:
            found = self.world.supply.type_in(pool, name)
            held = self.pool(pool)
            if found is None and held is not None and held.replicas is not None:
                found = self.world.market.find(name, held.node_class)
            self._kinds[pool, name] = found
        return self._kinds[pool, name]

    def devices_of(self, launch: Launch, kind: InstanceType, pool: NodePool) -> tuple[Family, tuple[DeviceState, ...]]:
        """The idle cards that a node of the type will register in the pool, and the family that owns them."""
        labels = {**pool.node_labels, **launch.labels}
        family = owner_of(labels, pool.stated_annotations, self.families)
        seen_mib = self.world.market.observed_memory_mib.get((pool.name, kind.name))
        shapes = tuple(_as_seen(shape, seen_mib) for shape in kind.devices)
        return family, family.predict(shapes, labels, pool.stated_annotations)

    def daemons(self, labels: Mapping[str, str], stated: Requirements, taints: tuple[Taint, ...]) -> list[PodSpec]:
        """The pods that DaemonSets put on a new node for certain."""
        return [
            daemon.pod.spec
            for daemon in self.snapshot.daemon_sets_as_running
            if untolerated(taints, daemon.pod.spec.tolerations) is None
            and any(meets(asked, labels, stated) is None for asked in daemon.pod.spec.own_alternatives)
        ]

    def shown(self, stated: Resources, family: Family, devices: Sequence[DeviceState]) -> Resources:
        """What a node to be shows once its cards have registered, by what its type, or its claim, says so far."""
        return will_show(stated, family, self.families, devices)

    def _site_to_be(self, launch: Launch) -> TakingNode:
        pool, kind = self.pool(launch.node_pool), self.kind(launch.node_pool, launch.offering.instance_type)
        part = PlanPart(PartKind.LAUNCH, launch.name)
        placed = [(each, part) for each in launch.pods]
        if pool is None or kind is None:
            # `offers` says what is wrong with it; nothing can be known of such a node.
            return TakingNode(
                launch.name, {}, Requirements(), (), Resources(), (), self.families[-1], (), placed, launch=launch
            )
        labels, stated = labels_of(launch, kind, pool)
        taints = (*pool.taints, *launch.taints)
        sold = kind.sold_as(launch.offering)
        family, devices = self.devices_of(launch, kind, pool)
        free = self.shown(sold.allocatable, family, devices)
        for spec in self._daemons_on(launch, labels, stated, taints):
            free = free - spec.requests.without(self.uncounted(family))
        return TakingNode(
            launch.name, labels, stated, taints, free, devices, family, (), placed, launch.node_pool, launch=launch
        )

    def _daemons_on(
        self, launch: Launch, labels: Mapping[str, str], stated: Requirements, taints: tuple[Taint, ...]
    ) -> tuple[PodSpec, ...]:
        key = (launch.node_pool, launch.offering, id(launch.labels), id(launch.requirements), taints)
        if key not in self._daemons:
            self._daemons[key] = tuple(self.daemons(labels, stated, taints))
        return self._daemons[key]

    def _site_of(self, node: ClusterNode, placed: _Coming, gone: frozenset[str]) -> TakingNode:
        relabel = next((each for each in self.proposal.relabels if each.node == node.name), None)
        held, claim = node.node, node.claim
        labels, stated = self.labels_there(node)
        residents = tuple(pod for pod in node.pods if not pod.is_ended and pod.key not in gone)
        own = held.annotations if held is not None else {}
        family = family_named(node.family, self.families) if node.family else owner_of(labels, own, self.families)
        devices, is_open = node.devices, False
        if relabel is not None:
            pool = self.pool(relabel.node_pool)
            labels = {**labels, **relabel.labels}
            stated = stated.without(relabel.labels).intersect(Requirements.of_labels(relabel.labels))
            stating = pool.stated_annotations if pool is not None else own
            family = owner_of(labels, stating, self.families)
            devices = family.predict(relabel.devices, labels, stating)
        elif not devices and claim is not None and not node.is_initialized:
            kind = self.world.market.find(promises.planned_type(claim), claim.node_class)
            devices = () if kind is None else family.predict(kind.devices, node.labels, {})
        elif gone and any(pod.key in gone for pod in node.pods):
            devices, is_open = _without_evicted(
                devices, family, residents, (pod for pod in node.pods if pod.key in gone)
            )
        free = self._allocatable(node, family, devices)
        for spec, number in counted_specs(residents):
            free = free - spec.requests.without(self.uncounted(family)) * number
        pool_name = claim.node_pool if claim is not None else ""
        taints, known = lasting_taints(node), (node.name, labels, stated)
        return TakingNode(*known, taints, free, devices, family, residents, placed, pool_name, node, is_open=is_open)

    def labels_there(self, node: ClusterNode) -> tuple[Mapping[str, str], Requirements]:
        """The labels of a node that is there, or on its way, as far as they are known; what is known of all of them."""
        claim, held = node.claim, node.node
        if held is not None:
            coming = {} if node.is_initialized else COMING_LABELS.labels()
            labels = {**coming, **node.labels, NODE_NAME: held.name}
            return _both_spellings(labels), Requirements.of_labels(labels)
        if claim is None:
            return {}, Requirements()
        stated = claim.requirements.intersect(Requirements.of_labels(claim.labels)).intersect(COMING_LABELS)
        kind = self.world.market.find(promises.planned_type(claim), claim.node_class)
        stated = stated if kind is None else stated.intersect(kind.requirements)
        return _both_spellings(stated.labels()), stated

    def _allocatable(self, node: ClusterNode, family: Family, devices: Sequence[DeviceState]) -> Resources:
        shown = node.node.allocatable if node.node is not None else Resources()
        claim = node.claim
        if node.is_initialized or claim is None:
            are_cut = any(device.partitions for device in devices)
            return shown.replaced(family.kubelet_capacity(devices)) if are_cut else shown
        kind = self.world.market.find(promises.planned_type(claim), claim.node_class)
        promised = self.shown(Resources(promises.resources(claim, kind)), family, devices)
        return Resources({name: shown.get(name) or promised.get(name, 0) for name in sorted({*shown, *promised})})


def _kind_of(pod: Pod | None) -> object:
    """What makes pods differ for one node: their spec, and annotations and labels by which families choose cards."""
    if pod is None:
        return None
    if not pod.annotations and pod.uid:
        return id(pod.spec)
    return id(pod.spec), tuple(sorted(pod.annotations.items())), () if pod.uid else tuple(sorted(pod.labels.items()))


def _as_seen(shape: DeviceShape, seen_mib: int | None) -> DeviceShape:
    """A card with no more memory than one of its kind has registered in the pool."""
    if seen_mib is None or seen_mib >= shape.memory_mib:
        return shape
    return DeviceShape(shape.model, seen_mib, shape.memory_source, shape.eighths, shape.profiles, shape.pci_ids)


def labels_of(launch: Launch, kind: InstanceType, pool: NodePool) -> tuple[Mapping[str, str], Requirements]:
    """The labels of a node to be whose value is known, and what is known of all of them."""
    stated = kind.requirements.intersect(pool.requirements).intersect(launch.requirements).intersect(COMING_LABELS)
    known = {**pool.node_labels, INSTANCE_TYPE: kind.name, CAPACITY_TYPE: launch.offering.capacity_type}
    labels = {**stated.labels(), **known, **launch.labels}
    return _both_spellings(labels), stated


def _both_spellings(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels with the new spellings of old keys, by which pods are read."""
    if not any(old in labels for old in ALIASES):
        return labels
    return {**{ALIASES[old]: labels[old] for old in ALIASES if old in labels}, **labels}


def leaves_open(pool: NodePool, key: str, value: str) -> bool:
    """Whether a node of the pool may be given the label: its template does not state another value, and its
    requirements, or a list among its annotations of what Kerf may choose from, have this one."""
    if pool.node_labels.get(key, value) != value:
        return False
    asked = pool.requirements.get(key)
    if asked is not None:
        return asked.has(value)
    lists = (text for name, text in pool.stated_annotations.items() if name.startswith(_DOMAIN))
    return any(value in (each.strip() for each in text.split(",")) for text in lists)


def zone_of(site: TakingNode) -> str | None:
    """The zone of a node, as far as it is settled."""
    return site.labels.get(ZONE)


def meets(asked: Requirements, labels: Mapping[str, str], stated: Requirements | None = None) -> str | None:
    """The key of the first label that a node does not have as it is asked for; None where it has all.

    `stated` is given for a node to be: a label that is still open has one of the values stated there, and each of them
    must do; a label of which nothing is stated comes later, if it is well known.
    """
    for key in sorted(asked):
        wanted = asked[key]
        value = labels.get(key)
        if value is not None:
            if not wanted.has(value):
                return key
        elif stated is None:
            if not wanted.allows_absence:
                return key
        elif key in (HOSTNAME, NODE_NAME):
            if not wanted.complement:
                return key
        elif key in stated:
            held = stated[key]
            are_all = all(map(wanted.has, held.values)) if not held.complement else not held.excludes(wanted)
            if not are_all:
                return key
        elif key not in WELL_KNOWN and not wanted.allows_absence:
            return key
    return None


def lasting_taints(node: ClusterNode) -> tuple[Taint, ...]:
    """The taints of a node that keep pods off for longer than it takes to start and to open."""
    held, claim = node.node, node.claim
    if held is None:
        return claim.taints if claim is not None else ()
    taints = [taint for taint in held.taints if taint.key not in OPENING_TAINTS and taint != DRIFTED_TAINT]
    if node.is_initialized or claim is None:
        return tuple(taints)
    if not node.is_registered:
        taints += [taint for taint in claim.taints if taint not in taints]
    return tuple(taint for taint in taints if not is_ephemeral(taint) and taint not in claim.startup_taints)


def takes_pods(node: ClusterNode) -> bool:
    """Whether new pods may come to the node at all."""
    if node.is_deleting or node.problem is not None:
        return False
    held = node.node
    if held is None:
        return not node.is_initialized
    if held.is_unschedulable and CORDONED_BY_KERF not in held.annotations:
        return False
    if any(taint.key == DISRUPTED_TAINT.key for taint in held.taints):
        return False
    return held.is_ready or not node.is_initialized


def counted_specs(pods: Iterable[Pod]) -> list[tuple[PodSpec, int]]:
    """The specs of pods, each once with how many have it."""
    specs: dict[int, PodSpec] = {}
    numbers = Counter[int]()
    for pod in pods:
        specs[id(pod.spec)] = pod.spec
        numbers[id(pod.spec)] += 1
    return [(spec, numbers[key]) for key, spec in specs.items()]


def _without_evicted(
    devices: tuple[DeviceState, ...], family: Family, residents: Iterable[Pod], evicted: Iterable[Pod]
) -> tuple[tuple[DeviceState, ...], bool]:
    """The cards with what the pods hold that stay, by the family's own records; whether such are missing."""
    idle = tuple(_idle(device) for device in devices)
    held = [(pod, demand) for pod in residents if isinstance(demand := demand_of(pod, family), PodDemand)]
    held = [(pod, demand) for pod, demand in held if not demand.is_empty]
    is_open = not all(map(family.has_record, (*(pod for pod, _ in held), *evicted)))
    return family.occupied(idle, [Occupant(pod, demand) for pod, demand in held]), is_open


def _idle(device: DeviceState) -> DeviceState:
    empty = device.taking(-device.used_memory_mib, -device.used_cores, -device.used_slots)
    return DeviceState(
        empty.id,
        empty.index,
        empty.model,
        empty.memory_mib,
        empty.cores,
        empty.slots,
        empty.numa,
        empty.mode,
        empty.healthy,
        empty.cordoned,
        profiles=empty.profiles,
        partitions=tuple(
            type(part)(part.resource, part.count, part.memory_mib, part.cores, 0, part.most, part.profile)
            for part in empty.partitions
        ),
    )


def keys_of(placed: Iterable[PlacedPod]) -> list[str]:
    """The keys of placed pods."""
    return list(map(_POD, placed))


def named(snapshot: ClusterSnapshot, name: str) -> str:
    """How a node is called in a violation."""
    node = snapshot.node(name)
    return f"nodeclaim {name}" if node is not None and node.node is None else f"node {name}"
