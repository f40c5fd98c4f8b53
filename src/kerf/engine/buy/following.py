"""How a plan will be followed: by the scheduler's own rules, on reserved nodes, or by pinned cards.

A plan that the scheduler will not follow is no plan. Nodes come up in any order and pods take the first place that the
scheduler likes, so that `replay` is promised only where all pods are of one kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from kerf.engine.buy.filling import Load
from kerf.engine.place.devices import asks_devices
from kerf.engine.place.shapes import Kinds, Shape
from kerf.engine.place.turns import turns
from kerf.model.constraints import HOSTNAME
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.groups import group_of
from kerf.model.large import Large
from kerf.model.plan import PIN, REPLAY, RESERVE
from kerf.model.pods import Pod, PodSpec
from kerf.sharing.hami.pinning import without_pin


@dataclass(frozen=True, eq=False)
class Bought:
    """One node of a purchase and its pods."""

    load: Load
    pods: tuple[Pod, ...]


@dataclass(frozen=True, repr=False)
class Coming(Large):
    """Nodes on their way: how their plans are followed, and the pods that have places there."""

    modes: frozenset[str] = frozenset()
    pods: tuple[Pod, ...] = ()

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
    own = _HasOwnScheduler(shapes)
    slices = [i for i, b in enumerate(bought) if own.of(b.load)]
    sliced = frozenset(slices)
    others = [i for i in range(len(bought)) if i not in sliced]
    marks = dict.fromkeys(slices, PIN) if PIN in coming.modes or _crossing(slices, bought) else {}
    if RESERVE in coming.modes or _crossing(others, bought):
        marks.update(dict.fromkeys(others, RESERVE))
    marks.update((i, RESERVE) for i in others if _is_shown_whole_first(bought[i]))
    # A pod that came later and takes the place of one of a group leaves all of the group without use.
    together = [i for i, node in enumerate(bought) if any(map(group_of, node.pods))]
    marks.update((i, PIN if i in sliced else RESERVE) for i in together)
    # The scheduler would put them into any domain that is even just then: nodes come one by one.
    answers: dict[int, bool] = {}
    placed = [i for i, node in enumerate(bought) if any(_goes_by_others(pod.spec, answers) for pod in node.pods)]
    # No scheduler keeps a preference: all pods would go to the node that comes first.
    placed += [i for i, node in enumerate(bought) if _is_preferred(node, shapes)]
    marks.update((i, PIN if i in sliced else RESERVE) for i in placed)
    if coming.has_others(bought):
        marks = {**dict.fromkeys(range(len(bought)), RESERVE), **marks}
    return tuple(marks.get(i, REPLAY) for i in range(len(bought)))


def _is_preferred(node: Bought, shapes: Sequence[Shape]) -> bool:
    """Whether pods of the node are there because of what they prefer of where others are."""
    return any(shapes[number].spec.wish.is_settled for number, _ in node.load.held)


def _goes_by_others(spec: PodSpec, known: dict[int, bool]) -> bool:
    """Whether the domain of the pods was planned for; `known` are the answers by the identity of specs."""
    if id(spec) not in known:
        away = any(term.key != HOSTNAME for term in spec.pod_anti_affinity.required)
        is_spread = any(constraint.key != HOSTNAME for constraint in spec.required_spread)
        known[id(spec)] = away or is_spread or bool(spec.pod_affinity.required) or spec.mounts.beside is not None
    return known[id(spec)]


class Turns:
    """In which turns the pods of pinned nodes must come; equal for all nodes that are bought of one load."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Load, tuple[int, ...]]] = {}

    def of(self, node: Bought) -> tuple[int, ...]:
        """The turn of each pod of the node, in their order; cost: `place.turns` once a load."""
        load = node.load
        if id(load) not in self._known:
            # Its identity stays its own as long as the load is kept.
            self._known[id(load)] = load, _turns(load, node.pods)
        return self._known[id(load)][1]


def _turns(load: Load, pods: Sequence[Pod]) -> tuple[int, ...]:
    left = iter(pods)
    by_shape = {number: iter(list(islice(left, count))) for number, count in load.held}
    slices = {number: iter(each) for number, each in load.slices.items()}
    numbered = [(number, pod) for number, count in load.order for pod in islice(by_shape[number], count)]
    cards = {pod.key: frozenset(part.device for part in next(slices[number])) for number, pod in numbered}
    target = load.offered.target
    waiting = [pod for _, pod in numbered if cards[pod.key]]
    found = turns(target.family, load.offered.room.devices, None, cards, waiting)
    turn_of = {pod.key: turn for turn, those in enumerate(found) for pod in those}
    return tuple(turn_of.get(pod.key, 0) for pod in pods)


class _HasOwnScheduler:
    """Whether the family's own scheduler gives out a node's cards: a reserved node binds no pod to a card."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._shapes = shapes
        self._known: dict[int, bool] = {}

    def of(self, load: Load) -> bool:
        """For the nodes of a load, which outlives this; cost: its shapes, once."""
        found = self._known.get(id(load))
        if found is None:
            target = load.offered.target
            members = (self._shapes[number] for number, _ in load.held)
            found = bool(target.family.resources) and any(asks_devices(shape, target) for shape in members)
            self._known[id(load)] = found
        return found


def _is_shown_whole_first(node: Bought) -> bool:
    """Whether pods could take a whole card before the MIG manager has cut it (gpu-operator#2670).

    With the strategy `single` both have one name, so that the node must stay closed until it shows its instances.
    """
    devices = node.load.offered.room.devices
    return any(part.profile and part.resource == NVIDIA_GPU for device in devices for part in device.partitions)


def _crossing(indexes: Sequence[int], bought: Sequence[Bought]) -> bool:
    """Whether pods of one node could take the place of others on another: different loads side by side."""
    kinds = {id(bought[i].load.offered) for i in indexes}
    members = {tuple(n for n, _ in bought[i].load.held) for i in indexes}
    return len(kinds) > 1 or len(members) > 1 or any(len(m) > 1 for m in members)
