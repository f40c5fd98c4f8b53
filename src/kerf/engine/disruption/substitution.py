"""What would hold the pods of nodes that go: room on nodes that stay, and nodes to buy beside it.

The planner itself is asked, in the world as it will be while the new nodes start: the old ones take no more pods and
still count against the limits of their pools, and their pods wait. So what is found here is what the next plans find.
"""

import math
from collections import Counter, deque
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import TakesPods
from kerf.engine.disruption.disturbance import start_s
from kerf.engine.disruption.floors import awaited, owed
from kerf.engine.disruption.relocation import Receives, closed, may_receive
from kerf.engine.disruption.settled import Settled
from kerf.engine.leaving import is_planned, with_leaving, without_windows
from kerf.engine.place.shapes import Kinds, Readings
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Cause, Name
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import SPOT
from kerf.model.market import BackOff, TriedAlone
from kerf.model.nodeclaim import REPLACED_BY
from kerf.model.placeholders import is_virtual
from kerf.model.plan import REPLAY, Deletion, Launch, NodePlacement, PlacedPod
from kerf.model.promises import read
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

SPOT_TYPES = 15
"""So many cheaper types must be left when one spot node replaces another: with fewer the cloud soon takes it back, and
the next one costs more than the one before (Karpenter: `MinInstanceTypesForSpotToSpotConsolidation`)."""

_UNKNOWN = 2**62
"""The price of a type of which none is known: above every limit."""


@dataclass(frozen=True)
class Substitution:
    """Nodes to buy, and where each pod of the nodes that go has its place: on a node that stays, or on one of these.

    `places` are by the name of the old node, `fed` are the names of the launches that get pods of it, `prices` what it
    costs an hour.
    """

    victims: tuple[Candidate, ...]
    launches: tuple[Launch, ...]
    places: Mapping[str, tuple[NodePlacement, ...]]
    fed: Mapping[str, tuple[str, ...]]
    prices: Mapping[str, int]

    @property
    def before_micro(self) -> int:
        """What the old nodes cost an hour."""
        return sum(self.prices[each.node.name] for each in self.victims)

    @property
    def after_micro(self) -> int:
        """What the new nodes cost an hour."""
        return sum(launch.price_micro for launch in self.launches)

    @property
    def saved_micro(self) -> int:
        """What is saved an hour; negative where the new nodes cost more."""
        return self.before_micro - self.after_micro

    def as_one(self) -> "Substitution":
        """The same where each of the old nodes waits for all new ones: what fails keeps all of them."""
        claims = tuple(each.claim.name for each in self.victims)
        names = tuple(launch.name for launch in self.launches)
        launches = tuple(replace(launch, replaces=claims) for launch in self.launches)
        return replace(self, launches=launches, fed={each.node.name: names for each in self.victims})

    @property
    def share_saved(self) -> float:
        """What is saved as a share of what the old nodes cost; 0 where they cost nothing."""
        return self.saved_micro / self.before_micro if self.before_micro else 0.0

    def deletions(self, reason: str, cause: Cause) -> tuple[Deletion, ...]:
        """One for each old node, in their order; each saves its own price, less what the launches cost."""
        return tuple(
            Deletion(
                each.node.name,
                each.claim.name,
                each.pool.name,
                self.prices[each.node.name],
                reason,
                cause,
                self.places[each.node.name],
                replaced_by=self.fed[each.node.name],
            )
            for each in self.victims
        )


class Substitutes:
    """Of one snapshot; `receives` says which nodes take pods of those that go."""

    def __init__(self, world: World, receives: Receives = may_receive) -> None:
        self._world, self._receives = world, receives
        self._options = replace(world.options, with_bound=False, with_cost=False)
        self._marked = dict[str, ClusterNode]()
        self.lacking = frozenset[str]()
        """Of the last question that was answered None: the nodes with pods that would find no place, or that their pool
        keeps because it can have no other; by name."""

    @cached_property
    def start_s(self) -> float:
        """How long a new node takes to be up: see `disturbance.start_s`."""
        return start_s(node.claim for node in self._world.snapshot.nodes if node.claim is not None)

    @cached_property
    def _promised(self) -> frozenset[str]:
        """The pods that nodes which start were bought for; they run on others where a step was taken back in part."""
        starting = (node.claim for node in self._world.snapshot.nodes if node.claim and not node.is_initialized)
        keys = (key for claim in starting for key in read(claim.annotations).pods)
        return frozenset(key for key in keys if not is_virtual(key))

    def of(self, victims: Sequence[Candidate], *, must_save: bool = False) -> Substitution | None:
        """What holds all pods of these nodes that are planned for, and as many nodes as floors of pools want; None
        where some pod would find no place or a floor no node, and while a node starts that was bought for one of them:
        it may have room for it, or another must not be bought.

        `must_save`: also None where the new nodes cost no less, and then a launch keeps only those of its alternatives
        that save, too. Cost: one decision for these pods.
        """
        marked = {each.node.name for each in victims}
        own = {pod.key for each in victims for pod in each.pods}
        self.lacking = _with_any_of(victims, own & self._promised)
        if self.lacking:
            return None
        world = self._without(marked)
        # Not those that wait and have their place there: a node that gets one stays (`first`).
        keys = {pod.key for pod in world.snapshot.pending if world.snapshot.leaving.get(pod.key) in marked} & own
        if must_save and any(pod.key not in keys or not is_planned(pod) for each in victims for pod in each.pods):
            # Some pods are judged when they come: they are not moved to save money.
            return None
        made = self._decided(world, keys)
        placed = {each.pod.pod: each for each in made.placements if each.pod.pod in keys}
        if made.relabels or made.evictions or any(each.node in self._refused for each in placed.values()):
            return None
        if self._displaces(made, keys | (world.snapshot.leaving.keys() - self._base.leaving.keys())):
            return None
        launches = [launch for launch in made.launches if any(each.pod in keys for each in launch.pods)]
        bought = {each.pod for launch in launches for each in launch.pods if each.pod in keys}
        self.lacking = _with_any_of(victims, keys - placed.keys() - bought)
        if self.lacking:
            return None
        moves = _Moves(victims, keys, placed, launches, Kinds(Readings.of(world.snapshot)))
        if must_save:
            moves.cancel()
        if not self._keeps_floors(moves, made.launches):
            return None
        prices = {each.node.name: present_price(each.cluster_node, self._world.supply) for each in moves.victims}
        found = Substitution(tuple(moves.victims), tuple(moves.launches), {}, {}, prices)
        if must_save:
            saving = self._saving(found)
            if saving is None:
                return None
            moves.launches = list(saving)
        return moves.assigned(prices, self._world.snapshot)

    def _keeps_floors(self, moves: "_Moves", launches: Sequence[Launch]) -> bool:
        """Let each pool have as many nodes afterwards as it keeps, with some of the nodes that the planner buys for no
        pod; whether there are enough of these."""
        due = owed(moves.victims, moves.launches, self._world.snapshot)
        lacking = set[str]()
        for pool, nodes in due.items():
            bought = [launch for launch in launches if launch.node_pool == pool and not launch.pods][:nodes]
            moves.launches += bought
            going = [each.node.name for each in moves.victims if each.pool.name == pool]
            lacking.update(going[len(going) - (nodes - len(bought)) :])
        self.lacking = frozenset(lacking)
        return not lacking

    def _decided(self, world: World, keys: Container[str]) -> Decision:
        """What the planner decides; without types of which one node is launched at a time, where the pods need more.

        A step is taken whole or not at all: it would wait until one of these types has come up for others.
        """
        made = decide(world, self._options)
        late = [
            each.cause
            for each in made.refusals
            if isinstance(each.cause, TriedAlone) and any(pod.key in keys for pod in each.pods)
        ]
        if not late:
            return made
        market = world.market
        held_back = tuple(BackOff(str(each.pool), str(each.instance_type), math.inf) for each in late)
        market = replace(market, back_offs=(*market.back_offs, *held_back))
        return decide(replace(world, market=market, known=None), self._options)

    def _saving(self, found: Substitution) -> Sequence[Launch] | None:
        """The launches without alternatives that would cost more than is saved; None where nothing is saved."""
        if found.saved_micro <= 0:
            return None
        if not found.launches:
            return found.launches
        slack = found.saved_micro // len(found.launches)
        launches = [self._cheaper(launch, launch.price_micro + slack) for launch in found.launches]
        are_spot = all(_capacity_type(each.cluster_node) == SPOT for each in found.victims)
        if not are_spot or all(launch.offering.capacity_type != SPOT for launch in launches):
            return launches
        if not self._world.replaces_spot:
            return None
        if len(found.victims) > 1:
            return launches
        if any(len(launch.alternatives) + 1 < SPOT_TYPES for launch in launches):
            return None
        return [self._of_types(launch, launch.alternatives[: SPOT_TYPES - 1]) for launch in launches]

    def _cheaper(self, launch: Launch, below_micro: int) -> Launch:
        """The launch with those of its alternatives that cost less than that, where it names others, too."""
        kept = tuple(name for name in launch.alternatives if self._price(launch, name) < below_micro)
        return launch if len(kept) == len(launch.alternatives) else self._of_types(launch, kept)

    def _of_types(self, launch: Launch, kept: tuple[str, ...]) -> Launch:
        types = Requirement.of(INSTANCE_TYPE, "In", (launch.offering.instance_type, *kept))
        requirements = launch.requirements.intersect(Requirements([types]))
        return replace(launch, alternatives=kept, requirements=requirements)

    def _price(self, launch: Launch, name: str) -> int:
        kind = self._world.supply.type_in(launch.node_pool, name)
        offerings = kind.offerings if kind is not None else ()
        prices = [each.price_micro for each in offerings if each.capacity_type == launch.offering.capacity_type]
        return max(prices, default=_UNKNOWN)

    def _without(self, marked: set[str]) -> World:
        """The world in which these nodes go, and only those that receive pods take theirs."""
        pairs = zip(self._base.nodes, self._staying, strict=True)
        nodes = tuple(self._going(node) if node.name in marked else stays for node, stays in pairs)
        return self._world.of(replace(self._base, nodes=nodes)).with_leaving()

    def _going(self, node: ClusterNode) -> ClusterNode:
        """The node as one that goes, the same object each time: what is found out about it is kept."""
        if node.name not in self._marked:
            self._marked[node.name] = _going(node)
        return self._marked[node.name]

    @cached_property
    def _refused(self) -> frozenset[str]:
        """The nodes that take no pods of those that go, by name."""
        coming = {node.name for node in self._settled.coming}
        return self._settled.changing | frozenset(
            node.name for node in self._base.nodes if node.name in coming or not self._receives(node, self._base)
        )

    @cached_property
    def _staying(self) -> tuple[ClusterNode, ...]:
        """The nodes of the base, those that take no pods closed; the same objects for all victims."""
        return tuple(closed(node) if node.name in self._refused else node for node in self._base.nodes)

    @cached_property
    def _settled(self) -> Settled:
        return Settled.of(self._world)

    @cached_property
    def _base(self) -> ClusterSnapshot:
        """The snapshot as the present plan leaves it: the waiting pods are where it puts them, and nodes start that it
        buys. Pods of nodes that go already are among these; those that it refuses are not there at all."""
        settled, snapshot = self._settled, with_leaving(without_windows(self._world.snapshot))
        snapshot = settled.with_places(snapshot, lambda node: True)
        done = settled.bought_for | settled.refused | settled.idle
        waiting = tuple(pod for pod in snapshot.pending if pod.key not in done)
        return replace(snapshot, nodes=_by_name((*snapshot.nodes, *settled.coming)), pending=waiting)

    @cached_property
    def _beside(self) -> tuple[int, frozenset[str]]:
        """What else would be bought an hour, and who else would get no place, if no node went."""
        made = decide(self._world.of(replace(self._base, nodes=self._staying)), self._options)
        return _price(made.launches), _refused_by(made)

    def _displaces(self, made: Decision, keys: Set[str]) -> bool:
        """Whether something else than these pods would lose its place: it would be bought for, or get none.

        That is room that is kept for pods to be, and pods of which the present plan knows nothing yet. Cost: one
        decision, where anything else is bought for or refused at all.
        """
        others = [
            launch for launch in made.launches if launch.pods and keys.isdisjoint(each.pod for each in launch.pods)
        ]
        out = _refused_by(made) - keys
        if not others and not out:
            return False
        price_micro, without = self._beside
        return _price(others) > price_micro or not out <= without


def _price(launches: Iterable[Launch]) -> int:
    return sum(launch.price_micro for launch in launches if launch.pods)


def _refused_by(made: Decision) -> frozenset[str]:
    return frozenset(pod.key for refusal in made.refusals for pod in refusal.pods)


def _by_name(nodes: Iterable[ClusterNode]) -> tuple[ClusterNode, ...]:
    return tuple(sorted(nodes, key=lambda node: node.name))


def _with_any_of(victims: Iterable[Candidate], pods: Container[str]) -> frozenset[str]:
    return frozenset(each.node.name for each in victims if any(pod.key in pods for pod in each.pods))


class _Moves:
    """Who goes where. Equal pods may change places, so each old node has its pods on few others.

    `placed` are places on nodes there are, by pod; all pods of `keys` are among these or on the launches.
    """

    def __init__(
        self,
        victims: Sequence[Candidate],
        keys: set[str],
        placed: Mapping[str, NodePlacement],
        launches: Sequence[Launch],
        kinds: Kinds,
    ) -> None:
        self.victims, self.launches = list(victims), list(launches)
        self._placed = [placed[key] for key in sorted(placed)]
        self._pods = {each.node.name: [pod for pod in each.pods if pod.key in keys] for each in victims}
        self._kinds = {pod.key: kinds.of(pod) for pods in self._pods.values() for pod in pods}
        self._related = {pod.key for pods in self._pods.values() for pod in pods if pod.spec.has_relations}

    def cancel(self) -> None:
        """Let a node stay for which one of its own kind with the same pods is bought; both are left out.

        Of equal nodes the last stays. Pods that go by where others are stay only where they would have come to the same
        zone. Cost: the pods.
        """
        mirrors: dict[Hashable, list[Candidate]] = {}
        for each in self.victims:
            labels, kinds = each.cluster_node.labels, self._counted(pod.key for pod in self._pods[each.node.name])
            zone = labels.get(ZONE) if self._are_related(pod.key for pod in self._pods[each.node.name]) else ""
            sold = each.pool.name, labels.get(INSTANCE_TYPE), labels.get(CAPACITY_TYPE), zone
            mirrors.setdefault((sold, kinds), []).append(each)
        stays, bought = set[str](), []
        for launch in self.launches:
            are_moved = all(each.pod in self._kinds for each in launch.pods)
            zone = launch.offering.zone if self._are_related(each.pod for each in launch.pods) else ""
            sold = launch.node_pool, launch.offering.instance_type, launch.offering.capacity_type, zone
            alike = mirrors.get((sold, self._counted(each.pod for each in launch.pods))) if are_moved else None
            if alike:
                stays.add(alike.pop().node.name)
            else:
                bought.append(launch)
        self.launches = bought
        self.victims = [each for each in self.victims if each.node.name not in stays]

    def _are_related(self, keys: Iterable[str]) -> bool:
        return any(key in self._related for key in keys)

    def _counted(self, keys: Iterable[str]) -> Hashable:
        return frozenset(Counter(self._kinds[key] for key in keys).items())

    def assigned(self, prices: Mapping[str, int], snapshot: ClusterSnapshot) -> Substitution:
        """The places of the pods of all nodes that go. Cost: the pods."""
        slots: dict[Hashable, deque[tuple[int, PlacedPod | NodePlacement]]] = {}
        for placement in self._placed:
            slots.setdefault(self._kinds[placement.pod.pod], deque()).append((-1, placement))
        # A pod of another node has its place elsewhere already, and is promised none here.
        coming: list[list[PlacedPod]] = [[] for _ in self.launches]
        for at, launch in enumerate(self.launches):
            for placed in launch.pods:
                if placed.pod in self._kinds:
                    slots.setdefault(self._kinds[placed.pod], deque()).append((at, placed))
        places: dict[str, tuple[NodePlacement, ...]] = {}
        numbers: dict[str, set[int]] = {}
        fed_by: list[list[tuple[str, str]]] = [[] for _ in self.launches]
        for each in self.victims:
            here, launches = [], set[int]()
            for pod in self._pods[each.node.name]:
                at, slot = slots[self._kinds[pod.key]].popleft()
                if isinstance(slot, NodePlacement):
                    here.append(NodePlacement(slot.pod._replace(pod=pod.key), slot.node))
                else:
                    coming[at].append(slot._replace(pod=pod.key))
                    launches.add(at)
            places[each.node.name] = tuple(sorted(here, key=lambda place: place.pod.pod))
            numbers[each.node.name] = launches
        for node, at in awaited(self.victims, self.launches, numbers, snapshot).items():
            numbers[node].add(at)
        fed: dict[str, tuple[str, ...]] = {}
        for each in self.victims:
            waits_for = sorted(numbers[each.node.name])
            fed[each.node.name] = tuple(self.launches[at].name for at in waits_for)
            for at in waits_for:
                fed_by[at].append((each.claim.name, each.node.name))
        # Open to all once it is up: the pods that come there are made again, and have other names.
        bound = tuple(
            replace(
                launch,
                pods=tuple(coming[at]),
                replaces=tuple(claim for claim, _ in fed_by[at]),
                follow=REPLAY,
                cause=TakesPods(real(each.pod for each in coming[at]), tuple(Name(node) for _, node in fed_by[at])),
            )
            for at, launch in enumerate(self.launches)
        )
        return Substitution(tuple(self.victims), bound, places, fed, prices)


def real(pods: Iterable[str]) -> int:
    """How many of them, by key, are pods that run, and no room that is kept."""
    return sum(not is_virtual(pod) for pod in pods)


def _going(node: ClusterNode) -> ClusterNode:
    claim = node.claim
    assert claim is not None
    return replace(node, claim=replace(claim, annotations={**claim.annotations, REPLACED_BY: ""}))


def _capacity_type(node: ClusterNode) -> str:
    return node.labels.get(CAPACITY_TYPE, "")
