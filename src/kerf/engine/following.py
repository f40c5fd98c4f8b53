"""How a plan will be followed: by the scheduler's own rules, by nomination, or by pinned cards.

A plan that the scheduler will not follow is no plan. Nodes come up in any order and pods take the first place that the
scheduler likes, so that `replay` is promised only where every order leads to an equal result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerf.engine.devices import asks_devices
from kerf.engine.filling import Load
from kerf.engine.fit import Placed, fit
from kerf.engine.shapes import Shape, queue_order
from kerf.engine.target import Room
from kerf.model.plan import NOMINATE, PIN, REPLAY, Launch
from kerf.model.pods import Pod

_MOST_TRIES = 20_000
"""Fits a replay may cost; a larger batch of mixed slices is pinned without asking."""


@dataclass(frozen=True, eq=False)
class Bought:
    """One node of a purchase and its pods."""

    load: Load
    pods: tuple[Pod, ...]


def with_follow(
    launches: Sequence[Launch], bought: Sequence[Bought], shapes: Sequence[Shape], follow: str
) -> tuple[Launch, ...]:
    """The launches, each marked; `follow` other than `auto` is taken as it is (`off` means replay)."""
    if follow != "auto":
        return tuple(replace(launch, follow=REPLAY if follow == "off" else follow) for launch in launches)
    slices = [i for i, b in enumerate(bought) if _has_own_scheduler(b, shapes)]
    sliced = frozenset(slices)
    others = [i for i in range(len(bought)) if i not in sliced]
    marks = dict.fromkeys(slices, PIN) if not _replays(slices, bought, shapes) else {}
    if _crossing(others, bought):
        marks.update(dict.fromkeys(others, NOMINATE))
    return tuple(replace(launch, follow=marks.get(i, REPLAY)) for i, launch in enumerate(launches))


def _has_own_scheduler(node: Bought, shapes: Sequence[Shape]) -> bool:
    """Whether the node's cards are given out by the family's own scheduler, which no nomination binds."""
    target = node.load.candidate.target
    members = [shapes[number] for number, count in enumerate(node.load.counts) if count]
    return bool(target.family.resources) and any(asks_devices(shape, target) for shape in members)


def _crossing(indexes: Sequence[int], bought: Sequence[Bought]) -> bool:
    """Whether pods of one node could take the place of others on another: different loads side by side."""
    kinds = {id(bought[i].load.candidate) for i in indexes}
    members = {tuple(n for n, count in enumerate(bought[i].load.counts) if count) for i in indexes}
    return len(kinds) > 1 or len(members) > 1 or any(len(m) > 1 for m in members)


def _replays(indexes: Sequence[int], bought: Sequence[Bought], shapes: Sequence[Shape]) -> bool:
    """Whether the real scheduler, taking pods in queue order, ends with the planned loads."""
    if not indexes or not _crossing(indexes, bought):
        return True
    candidates = {id(bought[i].load.candidate) for i in indexes}
    pods = sum(len(bought[i].pods) for i in indexes)
    if len(candidates) > 1 or pods * len(indexes) > _MOST_TRIES:
        return False
    return _replay(indexes, bought, shapes) == sorted(bought[i].load.counts for i in indexes)


def _replay(indexes: Sequence[int], bought: Sequence[Bought], shapes: Sequence[Shape]) -> list[tuple[int, ...]]:
    """Loads, sorted, when all nodes are there and pods come in queue order; empty once a pod finds no place."""
    number_of = {pod.key: n for n, shape in enumerate(shapes) for pod in shape.pods}
    candidate = bought[indexes[0]].load.candidate
    rooms: list[Room] = [candidate.room for _ in indexes]
    counts = [[0] * len(shapes) for _ in indexes]
    for pod in sorted((pod for i in indexes for pod in bought[i].pods), key=queue_order):
        shape = shapes[number_of[pod.key]]
        results = [
            (result.order, at, result)
            for at, room in enumerate(rooms)
            if isinstance(result := fit(candidate.target, room, shape), Placed)
        ]
        if not results:
            return []
        _, at, result = min(results, key=lambda r: r[:2])
        rooms[at] = result.room
        counts[at][number_of[pod.key]] += 1
    return sorted(tuple(count) for count in counts)
