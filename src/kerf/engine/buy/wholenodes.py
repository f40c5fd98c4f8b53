"""Every way to fill one small node, where there are few enough to list them.

A bound that cuts pods to pieces takes a node for full where half a pod is on it. Nodes that hold a handful of pods,
such as those with one card, can be filled in some thousand ways: with all of them known, no pod is cut there.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kerf.engine.buy.dot import dot
from kerf.engine.buy.relaxation import Relaxation
from kerf.engine.supply.holding import Amounts

_MOST_FILLS = 20_000
MOST_WORK = 2_000_000
"""Fills that are looked at, shape by shape, for all types together."""
_MOST_OF_A_SHAPE = 255
_FEW_FILLS, _MORE = 256, 4
"""So many of the best fills are looked through for one with each shape, then so many times as many."""
_Number = TypeVar("_Number", bound=np.number[Any])


@dataclass(frozen=True, eq=False)
class Fills:
    """Ways to fill a node of a type: by fill how many pods of each of `shapes`. None can take a pod more.

    Whatever pods a node holds, some fill has at least as many of each.
    """

    shapes: Amounts
    counts: npt.NDArray[np.uint8]

    def worth(self, each: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """By fill what its pods are worth, where `each` is by number of the shape what one pod is.

        Cost: fills times the most shapes that one has pods of, which are few.
        """
        places, times = self._parts
        found: npt.NDArray[_Number] = (np.append(each[self.shapes], each.dtype.type(0))[places] * times).sum(axis=1)
        return found

    def best(self, order: Amounts) -> set[int]:
        """For each shape the first fill with a pod of it, in this order of all fills."""
        found, missing, first, many = set[int](), np.arange(len(self.shapes)), 0, _FEW_FILLS
        while len(missing) and first < len(order):
            some = order[first : first + many]
            has = self.counts[some][:, missing] > 0
            is_there = has.any(axis=0)
            found.update(some[has.argmax(axis=0)[is_there]].tolist())
            missing, first, many = missing[~is_there], first + many, many * _MORE
        return found

    @cached_property
    def _parts(self) -> tuple[Amounts, Amounts]:
        """By fill the places of the shapes that it has pods of, and how many of each; filled up with no pod at all."""
        rows, columns = self.counts.nonzero()
        sizes = np.bincount(rows, minlength=len(self.counts))
        width = int(sizes.max(initial=0))
        places = np.full((len(self.counts), width), len(self.shapes), dtype=np.int64)
        times = np.zeros(places.shape, dtype=np.int64)
        at = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places[rows, at], times[rows, at] = columns, self.counts[rows, columns]
        return places, times


def fills(relaxation: Relaxation, number: int, work: int) -> tuple[Fills | None, int]:
    """The fills of a type; None where there are too many, or sums do not say what its cards hold. And the work it took.

    Cost: no more than `work`, in fills times shapes.
    """
    asked, has = _amounts(relaxation, number)
    shapes = np.flatnonzero(relaxation.takes[:, number])
    if asked is None or not len(shapes):
        return None, 0
    share = (asked[shapes] / np.maximum(has, 1)).max(axis=1)
    if not share.all():
        # A node holds any number of pods that ask for nothing.
        return None, 0
    shapes = shapes[np.argsort(-share, kind="stable")]
    most = np.minimum(relaxation.demand[shapes], _MOST_OF_A_SHAPE + 1)
    # By resource what each fill has left: most have no room for most shapes, and are passed over at once.
    left = [np.array([each]) for each in has.tolist()]
    steps: list[tuple[Amounts, Amounts]] = []
    done = 0
    for shape, limit in zip(shapes.tolist(), most.tolist(), strict=True):
        need = [(at, each) for at, each in enumerate(asked[shape].tolist()) if each]
        able = np.arange(len(left[0]))
        for at, each in need:
            able = able[left[at][able] >= each]
        fit = np.zeros(len(left[0]), dtype=np.int64)
        fit[able] = limit
        for at, each in need:
            fit[able] = np.minimum(fit[able], left[at][able] // each)
        times = fit + 1
        rows = int(times.sum())
        done += rows
        if rows > _MOST_FILLS or done > work or int(fit.max()) > _MOST_OF_A_SHAPE:
            return None, done
        origins = np.repeat(np.arange(len(fit)), times)
        taken = np.arange(rows) - np.repeat(np.cumsum(times) - times, times)
        left = [each[origins] for each in left]
        for at, each in need:
            left[at] -= taken * each
        steps.append((origins, taken))
    counts = np.zeros((len(shapes), len(left[0])), dtype=np.uint8)
    row = np.arange(len(left[0]))
    for place in range(len(shapes) - 1, -1, -1):
        origins, taken = steps[place]
        counts[place] = taken[row]
        row = origins[row]
    full = np.arange(len(left[0]))
    # Small pods find room first, so fewer fills are asked for the large ones.
    for place in range(len(shapes) - 1, -1, -1):
        fits = counts[place][full] < most[place]
        for at, each in enumerate(asked[shapes[place]].tolist()):
            if each:
                fits &= left[at][full] >= each
        full = full[~fits]
    return Fills(shapes, np.ascontiguousarray(counts[:, full].T)), done


def _amounts(relaxation: Relaxation, number: int) -> tuple[Amounts | None, Amounts]:
    """By shape what a pod asks of all that is summed over the node, and what the node has of it.

    Of a single card that pods share by memory and cores these are sums, too. None where cards need more than sums.
    """
    group = relaxation.groups[int(relaxation.group[number])]
    sums = group.sums[relaxation.amounts[number, group.sums] > 0]
    names = [relaxation.resources[at] for at in sums.tolist()]
    sums = sums[[not name.startswith("places of shape ") for name in names]]
    asked, has = group.asked[:, sums], relaxation.amounts[number, sums]
    if not group.sizes:
        return asked, has
    sizes = [size for size in group.sizes if not isinstance(size, str)]
    if len(sizes) < len(group.sizes) or int(relaxation.cards[number]) != 1:
        return None, has
    card = relaxation.types[number].room.devices[0]
    of_card = dot(group.slices, np.array([(memory, cores, 1) for memory, cores in sizes], dtype=np.int64))
    return (
        np.concatenate([asked, of_card], axis=1),
        np.concatenate([has, np.array([card.memory_mib, card.cores, card.slots], dtype=np.int64)]),
    )
