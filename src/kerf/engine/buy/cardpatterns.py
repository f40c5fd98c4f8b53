"""What one physical card can hold at a time: every way to fill it, worked out once for all types with such cards.

A sum over a node's cards misses what does not fit together on any of them: of five slices of 60 % each takes a card of
its own. A pattern is a number of pieces of each size that one card holds; those that leave room for another piece are
left out. Where there are too many, sizes are rounded down until there are few: then a card seems to hold more than it
does, which is safe for a bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kerf.model.gpu import Profile
from kerf.sharing.nvidia.mig_geometry import arranged

Amounts = npt.NDArray[np.int64]
Piece = tuple[int, int]
"""MiB and percent points that one slice takes of a card."""

MOST_CELLS = 400_000
"""Patterns times sizes of which a list may have so many: each round of the bound multiplies them by prices."""
_GRIDS = (64, 32, 16, 8, 4, 2, 1)
"""Parts of a card to which sizes are rounded down, one after the other; so are its halves, thirds and so on."""


@dataclass(frozen=True, eq=False)
class CardPatterns:
    """`sizes` are the distinct pieces, `of` the place among them of each piece that was asked about.

    `counts` are by pattern and size. `is_exact`: no size was rounded.
    """

    sizes: tuple[Piece, ...]
    of: tuple[int, ...]
    counts: Amounts
    is_exact: bool


@lru_cache(maxsize=16)
def patterns(pieces: tuple[Piece, ...], memory_mib: int, cores: int, slots: int) -> CardPatterns:
    """The patterns of pieces, each of which fits alone, on a card of that much memory, that many cores and slots.

    Cost: bounded, by `MOST_CELLS`; the last few answers are kept, of some MB each at most.
    """
    for grid in (0, *_GRIDS):
        rounded = [(_floor(m, memory_mib, grid), _floor(c, cores, grid)) for m, c in pieces]
        sizes = tuple(sorted(set(rounded), reverse=True))
        counts = _filled(sizes, (memory_mib, cores, slots))
        if counts is not None:
            place = {size: at for at, size in enumerate(sizes)}
            return CardPatterns(sizes, tuple(place[size] for size in rounded), counts, grid == 0)
    raise AssertionError("a card holds one size in one way")


def _floor(size: int, whole: int, grid: int) -> int:
    """The size rounded down to parts of a grid, or to the whole divided by a whole number, whichever is more."""
    if not grid or not size:
        return size
    many = whole // size
    # The least of which no more fit than of the real one where nothing else is there.
    least = whole // (many + 1) + 1 if many <= grid else 0
    return max(size * grid // whole * whole // grid, least)


def _filled(sizes: Sequence[Piece], card: tuple[int, int, int]) -> Amounts | None:
    """Counts by pattern and size; None where there are too many. Sizes come with the most memory first."""
    most = max(1, MOST_CELLS // max(1, len(sizes)))
    counts = np.zeros((1, 0), dtype=np.int64)
    memory, cores, slots = (np.array([whole], dtype=np.int64) for whole in card)
    for number, (each_memory, each_cores) in enumerate(sizes):
        fits = slots.copy()
        if each_memory:
            np.minimum(fits, memory // each_memory, out=fits)
        if each_cores:
            np.minimum(fits, cores // each_cores, out=fits)
        if number == len(sizes) - 1:
            origins, taken = np.arange(len(fits)), fits
        else:
            times = fits + 1
            if int(times.sum()) > 2 * most:
                return None
            origins = np.repeat(np.arange(len(fits)), times)
            taken = np.arange(len(origins)) - np.repeat(np.cumsum(times) - times, times)
        counts = np.column_stack([counts[origins], taken])
        memory, cores, slots = (
            memory[origins] - taken * each_memory,
            cores[origins] - taken * each_cores,
            slots[origins] - taken,
        )
    has_room = np.zeros(len(counts), dtype=np.bool_)
    for each_memory, each_cores in sizes:
        has_room |= (memory >= each_memory) & (cores >= each_cores) & (slots > 0)
    full: Amounts = counts[~has_room]
    return full if len(full) <= most else None


@lru_cache(maxsize=64)
def instances(asked: tuple[str, ...], profiles: tuple[Profile, ...]) -> Amounts | None:
    """Patterns of a card that is cut by MIG as pods come, by number of instances of each asked profile.

    None where a pod may get an instance of a larger profile at a place where its own does not start: then no list of
    the asked ones says what fits. Cost: the arrangements of one card, of which there are some hundred at most.
    """
    by_name = {profile.name: profile for profile in profiles}
    wanted = [by_name[name] for name in asked]
    if not all(_is_within(small, large) for small in wanted for large in profiles):
        return None
    held = np.array(list(_arrangements(asked, profiles)), dtype=np.int64).reshape(-1, len(asked))
    beaten = np.array([bool(((held >= one).all(axis=1) & (held > one).any(axis=1)).any()) for one in held])
    full: Amounts = held[~beaten]
    return full


def _is_within(small: Profile, large: Profile) -> bool:
    """Whether the small profile starts inside each place of the large one, as far as HAMi may give it instead."""
    if large.memory_mib < small.memory_mib or large.name == small.name:
        return True
    if small.has_media_engine:
        return False
    return all(
        any(start <= own and own + small.size <= start + large.size for own in small.starts) for start in large.starts
    )


def _arrangements(asked: tuple[str, ...], profiles: tuple[Profile, ...]) -> Iterator[tuple[int, ...]]:
    """Each number of instances that one card can have, profile by profile."""
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        counts = waiting.pop()
        if len(counts) == len(asked):
            yield counts
            continue
        count = 0
        while arranged(profiles, dict(zip(asked, (*counts, count), strict=False))) is not None:
            waiting.append((*counts, count))
            count += 1
