"""Which of the pods that wait one pass plans for, where they have more shapes than a pass can work through.

A plan costs by shapes and by what each of them asks, and any tenant can make each pod a shape of its own and let it ask
by a thousand terms. So a pass takes shapes in turn from each namespace, and one that asks so much counts as several
(`place.weights`). What was bought for before stays in: its node is on its way, and left out it would be given to
others. A group cannot be cut, nor what one pod asks: of more shapes than a pass has they are planned for all the same
when they are first.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from kerf.engine.place import weights
from kerf.engine.place.shapes import Kinds, Readings, queue_order
from kerf.model.groups import group_of
from kerf.model.pods import Pod


@dataclass(frozen=True)
class Portion:
    """The `pods` to plan for, in their order, and those that are `left` for a later pass."""

    pods: tuple[Pod, ...]
    left: tuple[Pod, ...] = ()


@dataclass
class _Unit:
    """Pods of one namespace that are planned for together: equal ones, or a group; `shapes` with their weights."""

    pods: list[Pod] = field(default_factory=list)
    shapes: dict[Hashable, int] = field(default_factory=dict)
    is_promised: bool = False
    is_tried: bool = True

    @property
    def order(self) -> tuple[object, ...]:
        return (self.is_tried, *min(map(queue_order, self.pods)))

    @property
    def weight(self) -> int:
        return sum(self.shapes.values())


@dataclass
class _Turns:
    """The shapes taken so far, by their weights in all and by namespace."""

    most: int
    fair: int
    shapes: dict[Hashable, int] = field(default_factory=dict)
    weight: int = 0
    used: dict[str, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def take(self, namespace: str, unit: _Unit, *, is_due: bool = False) -> bool:
        """Take a unit that is due, for which there is room, or whose namespace has had less than its share."""
        more = sum(weight for shape, weight in unit.shapes.items() if shape not in self.shapes)
        used = self.used.get(namespace, 0)
        if not is_due and self.weight + more > self.most and used + more > self.fair:
            return False
        self.shapes |= unit.shapes
        self.weight += more
        self.used[namespace] = used + more
        self.taken.update(pod.key for pod in unit.pods)
        return True


def portion(
    pods: Sequence[Pod],
    most: int,
    is_promised: Callable[[Pod], bool] = lambda _: False,
    tried: Collection[str] = (),
    read: Callable[[], Readings] = Readings,
) -> Portion:
    """Pods of at most `most` shapes, in turn from each namespace, the oldest first; all where they have no more.

    `is_promised` says that a node was bought for a pod: such pods come on top, and count as turns of their namespace.
    Pods whose uids are among `tried` come after the others, so what an earlier pass left comes first. A group is
    taken whole or not at all, and the first unit of all is taken however large it is: a pass may have as many shapes
    more as one group has, or as one pod counts for. `read` says what selectors and quotas read of pods, by which shapes
    differ; it is asked where there are more than `most` pods. Cost: linear in the pods, and n log n in units.
    """
    if sum(map(weight_in_pass, pods)) <= most:
        return Portion(tuple(pods))
    kinds = Kinds(read())
    shapes = {pod.key: kinds.of(pod) for pod in pods}
    if sum({shapes[pod.key]: weight_in_pass(pod) for pod in pods}.values()) <= most:
        return Portion(tuple(pods))
    queues = _queues(pods, shapes, is_promised, frozenset(tried))
    turns = _Turns(most, most // len(queues))
    for namespace, units in queues.items():
        for unit in units:
            if unit.is_promised:
                turns.take(namespace, unit, is_due=True)
    _take_first(queues, turns)
    _take_in_turn(queues, turns)
    return Portion(
        tuple(pod for pod in pods if pod.key in turns.taken),
        tuple(pod for pod in pods if pod.key not in turns.taken),
    )


def weight_in_pass(pod: Pod) -> int:
    """As how many shapes a pass counts the pod's; what asks too much to be planned for costs no more than to say so."""
    weight = weights.weight_of(pod.spec)
    return weight if weight <= weights.MOST else 1


def _queues(
    pods: Iterable[Pod], shapes: dict[str, Hashable], is_promised: Callable[[Pod], bool], tried: frozenset[str]
) -> dict[str, list[_Unit]]:
    """The units of each namespace in their order; the namespaces in that of their first units."""
    found: dict[str, dict[Hashable, _Unit]] = {}
    for pod in pods:
        unit = found.setdefault(pod.namespace, {}).setdefault(group_of(pod) or shapes[pod.key], _Unit())
        unit.pods.append(pod)
        unit.shapes[shapes[pod.key]] = weight_in_pass(pod)
        unit.is_promised |= is_promised(pod)
        unit.is_tried &= pod.uid in tried
    ordered = {name: sorted(units.values(), key=lambda unit: unit.order) for name, units in found.items()}
    return dict(sorted(ordered.items(), key=lambda item: item[1][0].order))


def _take_first(queues: dict[str, list[_Unit]], turns: _Turns) -> None:
    """Take the unit that is first of all, so none is left in each pass; one that counts for several shapes lets
    namespaces that had less go first.

    Else a namespace with many groups of more shapes than a pass has would be first in each.
    """
    firsts: list[tuple[tuple[object, ...], str, _Unit]] = []
    for name, units in queues.items():
        first = next((unit for unit in units if not unit.is_promised), None)
        had_its_share = turns.used.get(name, 0) >= turns.fair > 0
        if first is None or (had_its_share and first.weight == 1):
            continue
        before = sum(unit.weight for unit in units if unit.is_promised or unit.is_tried)
        firsts.append(((first.is_tried, before if first.weight > 1 else 0, *first.order), name, first))
    if firsts:
        _, name, first = min(firsts, key=lambda each: each[0])
        turns.take(name, first, is_due=True)


def _take_in_turn(queues: dict[str, list[_Unit]], turns: _Turns) -> None:
    waiting = ((name, [unit for unit in units if not unit.is_promised]) for name, units in queues.items())
    left = {name: [unit for unit in units if unit.pods[0].key not in turns.taken][::-1] for name, units in waiting}
    for turn in count(1):
        left = {name: units for name, units in left.items() if units}
        if not left:
            return
        for name, units in left.items():
            # What costs nothing is no turn; a group that is too large lets the next one have it.
            while units and turns.used.get(name, 0) < turn:
                turns.take(name, units.pop())
