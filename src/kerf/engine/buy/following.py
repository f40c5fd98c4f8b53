"""How a plan will be followed: by the scheduler's own rules, on reserved nodes, or by pinned cards.

A plan that the scheduler will not follow is no plan. Nodes come up in any order and pods take the first place that the
scheduler likes, so that `replay` is promised only where all pods are of one kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kerf.engine.buy.filling import Load
from kerf.engine.place.devices import asks_devices
from kerf.engine.place.shapes import Kinds, Shape
from kerf.engine.place.turns import turns
from kerf.model.constraints import HOSTNAME
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.groups import group_of
from kerf.model.large import Large
from kerf.model.plan import PIN, REPLAY, RESERVE, Launch
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


def with_follow(
    launches: Sequence[Launch],
    bought: Sequence[Bought],
    shapes: Sequence[Shape],
    follow: str,
    coming: Coming = NONE_COMING,
) -> tuple[Launch, ...]:
    """The launches, each marked; `follow` other than `auto` is taken as it is (`off` means replay).

    Pods that are free would take the places of those that are bound to nodes on their way, and those that wait for
    such nodes may be led nowhere and take the place of these, if they are of another kind.
    """
    if follow != "auto":
        return tuple(replace(launch, follow=REPLAY if follow == "off" else follow) for launch in launches)
    slices = [i for i, b in enumerate(bought) if _has_own_scheduler(b, shapes)]
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
    followed = (_marked(launch, marks.get(i, REPLAY)) for i, launch in enumerate(launches))
    known: dict[int, tuple[int, ...]] = {}
    return tuple(
        _in_turns(launch, node, known) if launch.follow == PIN else launch
        for launch, node in zip(followed, bought, strict=True)
    )


def _marked(launch: Launch, follow: str) -> Launch:
    return launch if launch.follow == follow else replace(launch, follow=follow)


def _is_preferred(node: Bought, shapes: Sequence[Shape]) -> bool:
    """Whether pods of the node are there because of what they prefer of where others are."""
    return any(shapes[number].spec.wish.is_settled for number, _ in node.load.held)


def _goes_by_others(spec: PodSpec, known: dict[int, bool]) -> bool:
    """Whether the domain of the pods was planned for; `known` are the answers by the identity of specs."""
    if id(spec) not in known:
        away = any(term.key != HOSTNAME for term in spec.pod_anti_affinity.required)
        is_spread = any(constraint.key != HOSTNAME for constraint in spec.required_spread)
        known[id(spec)] = away or is_spread or bool(spec.pod_affinity.required)
    return known[id(spec)]


def _in_turns(launch: Launch, node: Bought, known: dict[int, tuple[int, ...]]) -> Launch:
    """The launch of pinned pods with the turns in which they must come.

    `known` are by the identity of a load the turns of its pods in the order in which they were placed: they are equal
    on all nodes that were bought of it.
    """
    pods = iter(node.pods)
    by_shape = {number: iter(list(islice(pods, count))) for number, count in node.load.held}
    placed = [pod for number, count in node.load.order for pod in islice(by_shape[number], count)]
    if id(node.load) not in known:
        known[id(node.load)] = _turns(launch, node.load, placed)
    turn_of = dict(zip((pod.key for pod in placed), known[id(node.load)], strict=True))
    return replace(launch, pods=tuple(replace(each, turn=turn_of.get(each.pod, 0)) for each in launch.pods))


def _turns(launch: Launch, load: Load, placed: Sequence[Pod]) -> tuple[int, ...]:
    """The turn of each of the pods, which are in the order in which they were placed."""
    cards = {each.pod: frozenset(part.device for part in each.slices) for each in launch.pods}
    target = load.offered.target
    waiting = [pod for pod in placed if cards[pod.key]]
    found = turns(target.family, load.offered.room.devices, None, cards, waiting)
    turn_of = {pod.key: turn for turn, pods in enumerate(found) for pod in pods}
    return tuple(turn_of.get(pod.key, 0) for pod in placed)


def _has_own_scheduler(node: Bought, shapes: Sequence[Shape]) -> bool:
    """Whether the family's own scheduler gives out the node's cards: a reserved node binds no pod to a card."""
    target = node.load.offered.target
    members = [shapes[number] for number, _ in node.load.held]
    return bool(target.family.resources) and any(asks_devices(shape, target) for shape in members)


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
