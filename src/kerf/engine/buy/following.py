"""How a plan will be followed: by the scheduler's own rules, on reserved nodes, or by pinned cards.

A plan that the scheduler will not follow is no plan. Nodes come up in any order and pods take the first place that the
scheduler likes, so `replay` is promised only where all pods are of one kind.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import attrgetter

from kerf.engine.buy.filling import Load
from kerf.engine.place.devices import asks_devices
from kerf.engine.place.shapes import Kinds, Shape
from kerf.engine.place.turns import apart, turns
from kerf.engine.supply.holding import Holding
from kerf.model.constraints import HOSTNAME
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.groups import group_of, naming_groups
from kerf.model.large import Large
from kerf.model.plan import PIN, REPLAY, RESERVE
from kerf.model.pods import Pod, PodSpec
from kerf.sharing.hami.pinning import without_pin


@dataclass(frozen=True, eq=False, slots=True)
class Bought:
    """One node of a purchase and its pods."""

    load: Load
    pods: tuple[Pod, ...]


def runs(bought: Iterable[Bought]) -> Iterator[tuple[Hashable, Sequence[Pod]]]:
    """Pods of nodes that are equal, with what equal ones on others have in common with them; by shape, where nodes in a
    row have all pods of their load."""
    for load, same in groupby(bought, attrgetter("load")):
        nodes, many, first = [node.pods for node in same], load.pods, 0
        if any(len(pods) < many for pods in nodes):
            yield from ((pod.key, (pod,)) for pods in nodes for pod in pods)
            continue
        for number, count in load.held:
            end = first + count
            yield (id(load), number), [pod for pods in nodes for pod in pods[first:end]]
            first = end


@dataclass(frozen=True, repr=False)
class Coming(Large):
    """Nodes on their way: how their plans are followed, and the pods that have places there.

    `may_be_grouped` says that some pod of the plan may name a group, or that it was not looked at.
    """

    modes: frozenset[str] = frozenset()
    pods: tuple[Pod, ...] = ()
    may_be_grouped: bool = True

    def has_others(self, bought: Sequence[Bought]) -> bool:
        """Whether pods of another kind than those bought for wait for these nodes. Linear in the pods."""
        if not self.pods:
            return False
        kinds = Kinds()
        return {kinds.of(without_pin(pod)) for pod in self.pods} != {
            kinds.of(without_pin(pod)) for node in bought for pod in node.pods
        }


NONE_COMING = Coming()


def followed(
    bought: Sequence[Bought], shapes: Sequence[Shape], follow: str, coming: Coming = NONE_COMING
) -> tuple[str, ...]:
    """How the plan of each node is followed; `follow` other than `auto` is taken as it is (`off` means replay).

    Pods that are free would take the places of those that are bound to nodes on their way, and those that wait for
    such nodes may be led nowhere and take the place of these, if they are of another kind. Linear in the pods.
    """
    if follow != "auto":
        return (REPLAY if follow == "off" else follow,) * len(bought)
    loads = {id(node.load): node.load for node in bought}
    slices = _of(bought, [load for load in loads.values() if _has_own_scheduler(shapes, load)])
    sliced = frozenset(slices)
    others = [i for i in range(len(bought)) if i not in sliced]
    marks = dict.fromkeys(slices, PIN) if PIN in coming.modes or _crossing(slices, bought) else {}
    if RESERVE in coming.modes or _crossing(others, bought):
        marks.update(dict.fromkeys(others, RESERVE))
    whole_first = _of(bought, [load for load in loads.values() if _is_shown_whole_first(load)])
    marks.update((i, RESERVE) for i in whole_first if i not in sliced)
    # A pod that came later and takes the place of one of a group leaves all of the group without use.
    naming = naming_groups(chain.from_iterable(shape.pods for shape in shapes)) if coming.may_be_grouped else ()
    grouped = {id(pod) for pod in naming if group_of(pod)}
    together = [i for i, node in enumerate(bought) if not grouped.isdisjoint(map(id, node.pods))] if grouped else []
    marks.update((i, PIN if i in sliced else RESERVE) for i in together)
    # The scheduler would put them into any domain that is even just then: nodes come one by one. And no scheduler keeps
    # a preference: all pods would go to the node that comes first.
    led = _of(bought, [load for load in loads.values() if _is_led(shapes, load)])
    marks.update((i, PIN if i in sliced else RESERVE) for i in led)
    if coming.has_others(bought):
        marks = {**dict.fromkeys(range(len(bought)), RESERVE), **marks}
    return tuple(marks.get(i, REPLAY) for i in range(len(bought)))


def _is_led(shapes: Sequence[Shape], load: Load) -> bool:
    """Whether the domain of some of the pods was planned for, or is one that they prefer for where others are."""
    members = [shapes[number] for number, _ in load.held]
    return any(shape.spec.wish.is_settled or _goes_by_others(shape.pods[0].spec) for shape in members)


def _goes_by_others(spec: PodSpec) -> bool:
    """Whether the domain of the pods was planned for."""
    away = any(term.key != HOSTNAME for term in spec.pod_anti_affinity.required)
    is_spread = any(constraint.key != HOSTNAME for constraint in spec.required_spread)
    return away or is_spread or bool(spec.pod_affinity.required) or bool(spec.mounts.beside)


class Turns:
    """In which turns the pods of pinned nodes must come; equal for all nodes that are bought of one load."""

    def __init__(self, shapes: Sequence[Shape], holding: Holding) -> None:
        self._known: dict[int, tuple[Load, tuple[int, ...]]] = {}
        self._shapes, self._holding = shapes, holding

    def of(self, node: Bought) -> tuple[int, ...]:
        """The turn of each pod of the node, in their order; cost: `place.turns` once a load."""
        load = node.load
        if id(load) not in self._known:
            # Its identity stays its own as long as the load is kept.
            self._known[id(load)] = load, self._by_number(load, node.pods)
        return self._known[id(load)][1]

    def _by_number(self, load: Load, pods: Sequence[Pod]) -> tuple[int, ...]:
        """By number of the shape: so they are in the order of `held`. Nodes that are filled so have them in `order`."""
        findings = {} if load.findings is None else load.findings
        if "turns" not in findings:
            findings["turns"] = self._turns(load, pods)
        by_number = {number: turns for (number, _), turns in zip(load.order, findings["turns"], strict=True)}
        return tuple(chain.from_iterable([by_number[number] for number, _ in load.held]))

    def _turns(self, load: Load, pods: Sequence[Pod]) -> tuple[tuple[int, ...], ...]:
        """Those of the pods of each shape, in the `order` of the load."""
        left = iter(pods)
        by_shape = {number: list(islice(left, count)) for number, count in load.held}
        numbered = [(number, pod) for number, _ in load.order for pod in by_shape[number]]
        slices = {number: iter(each) for number, each in load.slices.items()}
        cards = {pod.key: frozenset(part.device for part in next(slices[number])) for number, pod in numbered}
        waiting = [pod for _, pod in numbered if cards[pod.key]]
        # Nothing else of pods and node counts; neither cpu nor memory does.
        kinds = {number: self._holding.kind(self._shapes[number]) for number, _ in load.held}
        asked = [(kinds[number], cards[pod.key]) for number, pod in numbered if cards[pod.key]]
        target = load.offered.target
        # Cards in one state are equal, and those that give them out are the same.
        start, known = self._holding.start(self._holding.row(load.offered)), self._holding.turns
        by_pod: dict[str, int] = {}
        # What shares no card has turns of its own, and many nodes have cards with the same pods.
        for numbers in apart([own for _, own in asked]):
            pods_there = [waiting[at] for at in numbers]
            key = start, tuple([asked[at] for at in numbers])
            if key not in known:
                found = turns(target.family, load.offered.room.devices, None, cards, pods_there)
                turn_of = {pod.key: turn for turn, those in enumerate(found) for pod in those}
                known[key] = tuple(turn_of[pod.key] for pod in pods_there)
            by_pod.update(zip([pod.key for pod in pods_there], known[key], strict=True))
        return tuple(tuple([by_pod.get(pod.key, 0) for pod in by_shape[number]]) for number, _ in load.order)


def _of(bought: Sequence[Bought], loads: Sequence[Load]) -> list[int]:
    """The numbers of the nodes that are bought of these loads."""
    wanted = set(map(id, loads))
    return [number for number, node in enumerate(bought) if id(node.load) in wanted] if wanted else []


def _has_own_scheduler(shapes: Sequence[Shape], load: Load) -> bool:
    """Whether the family's own scheduler gives out a node's cards: a reserved node binds no pod to a card."""
    target = load.offered.target
    return bool(target.family.resources) and any(asks_devices(shapes[number], target) for number, _ in load.held)


def _is_shown_whole_first(load: Load) -> bool:
    """Whether pods could take a whole card before the MIG manager has cut it (gpu-operator#2670).

    With the strategy `single` both have one name, so the node must stay closed until it shows its instances.
    """
    devices = load.offered.room.devices
    return any(part.profile and part.resource == NVIDIA_GPU for device in devices for part in device.partitions)


def _crossing(indexes: Sequence[int], bought: Sequence[Bought]) -> bool:
    """Whether pods of one node could take the place of others on another: different loads side by side."""
    loads = {id(bought[i].load): bought[i].load for i in indexes}.values()
    kinds = {id(load.offered) for load in loads}
    members = {tuple(number for number, _ in load.held) for load in loads}
    return len(kinds) > 1 or len(members) > 1 or any(len(each) > 1 for each in members)
