"""Ways to put pods on one physical card: what whole nodes are put together from.

A pod of one slice can share a card with others in as many ways as its size allows. Which of them are worth having
changes with the prices, which are possible does not: so they are listed once for all types with such cards.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kerf.engine.buy.relaxation import Floats, TypeGroup
from kerf.engine.supply.holding import Amounts, Bools
from kerf.model.gpu import DeviceState

Numbers = npt.NDArray[np.int32]
_MOST_PODS = 16
"""On one card, of different shapes or not."""


def fills_of_a_card(
    group: TypeGroup, card: DeviceState, worth: Floats, most: int, able: Bools | None = None
) -> Numbers:
    """By way the shapes of the pods on the card, in their order; a number that no shape has fills up the row.

    The first way is the empty card. Only shapes with one slice are in it, and of these the `able`, by shape; None for
    all. `worth` by shape says which are kept where there are more than `most`. Cost: that times shapes; and every round
    of prices adds up the worth of each way.
    """
    none = len(worth)
    single = group.slices.sum(axis=1) == 1
    shapes = np.flatnonzero(single if able is None else single & able)
    size = group.slices[shapes].argmax(axis=1)
    limits = _Limits(group, card)
    held = [np.full((1, 1), none, dtype=np.int32)]
    many, last = 1, np.full((1, 0), none, dtype=np.int32)
    state = limits.empty()
    for _ in range(_MOST_PODS):
        first = last[:, -1] if last.shape[1] else np.full(1, -1, dtype=np.int32)
        fits = limits.fits(state)[:, size] & (shapes[None, :] >= first[:, None])
        rows, columns = np.nonzero(fits)
        if not len(rows):
            break
        new = np.concatenate([last[rows], shapes[columns, None].astype(np.int32)], axis=1)
        over = many + len(new) - most
        if over > 0:
            kept = np.sort(np.argsort(-worth[new].sum(axis=1), kind="stable")[: len(new) - over])
            rows, columns, new = rows[kept], columns[kept], new[kept]
        held.append(new)
        many += len(new)
        if many >= most:
            break
        state, last = limits.with_one_more(state[rows], size[columns]), new
    width = max(each.shape[1] for each in held)
    found = np.full((many, width), none, dtype=np.int32)
    at = 0
    for each in held:
        found[at : at + len(each), : each.shape[1]] = each
        at += len(each)
    return found


class _Limits:
    """What one card allows: sums of memory, cores and slots, or the patterns of its instances."""

    def __init__(self, group: TypeGroup, card: DeviceState) -> None:
        sizes: Sequence[object] = group.sizes
        plain = [(*size, 1) for size in sizes if isinstance(size, tuple)]
        self._patterns = group.counts if len(plain) < len(sizes) else None
        self._sizes = np.array(plain if self._patterns is None else np.eye(len(sizes)), dtype=np.int64)
        self._card = np.array([card.memory_mib, card.cores, card.slots], dtype=np.int64)

    def empty(self) -> Amounts:
        """The state of an empty card: what is taken of it."""
        return np.zeros((1, self._sizes.shape[1]), dtype=np.int64)

    def with_one_more(self, state: Amounts, size: Amounts) -> Amounts:
        """The states with one piece more on each."""
        more: Amounts = state + self._sizes[size]
        return more

    def fits(self, state: Amounts) -> Bools:
        """By state and size, whether one more piece finds room."""
        if self._patterns is None:
            found = np.ones((len(state), len(self._sizes)), dtype=np.bool_)
            for taken, sizes, most in zip(state.T, self._sizes.T, self._card.tolist(), strict=True):
                found &= taken[:, None] <= most - sizes
            return found
        found = np.zeros((len(state), len(self._sizes)), dtype=np.bool_)
        for pattern in self._patterns:
            found |= ((state <= pattern).all(axis=1)[:, None]) & (state < pattern)
        return found
