"""Which MIG instances one card can hold together, and where.

A profile starts only at the memory slices that its hardware allows (NVIDIA MIG User Guide, "Supported MIG Profiles"),
so free slices in sum say nothing: two 2g at 0 and 4 leave four slices and no place for a 3g.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerf.model.causes import Name
from kerf.model.gpu import Placement, Profile


@dataclass(frozen=True, slots=True)
class ProfileStarts:
    """A profile and memory slices of a card at which it starts, lowest first."""

    profile: Name
    starts: tuple[int, ...]


def places(profile: Profile, profiles: Sequence[Profile], placed: Sequence[Placement]) -> Iterator[Placement]:
    """Where one more instance may start beside those that are `placed`, lowest first."""
    if profile.has_media_engine and any(p.has_media_engine for p in profiles for at in placed if p.name == at.profile):
        return
    taken = {part for placement in placed for part in placement.slices}
    for start in sorted(profile.starts):
        placement = Placement(profile.name, start, profile.size)
        if taken.isdisjoint(placement.slices):
            yield placement


def free_starts(profiles: Sequence[Profile], placed: Sequence[Placement]) -> dict[str, tuple[int, ...]]:
    """Where each profile could start now, by name, in the order of `profiles`; without those that cannot at all."""
    found = {p.name: tuple(place.start for place in places(p, profiles, placed)) for p in profiles}
    return {name: starts for name, starts in found.items() if starts}


def arranged(profiles: Sequence[Profile], counts: Mapping[str, int]) -> tuple[Placement, ...] | None:
    """A way to have that many instances of each profile on one empty card; None where the hardware has none.

    Larger profiles first, each at every start that is left. Cost: a card has at most eight slices, so the search
    ends after some hundred steps. Raises KeyError for a profile that the card does not have.
    """
    by_name = {profile.name: profile for profile in profiles}
    wanted = [by_name[name] for name, count in sorted(counts.items()) for _ in range(min(count, 9))]
    wanted.sort(key=lambda p: (-p.size, -p.cores, not p.has_media_engine, p.name))
    return _search(profiles, wanted, ())


def _search(
    profiles: Sequence[Profile], wanted: Sequence[Profile], placed: tuple[Placement, ...]
) -> tuple[Placement, ...] | None:
    if not wanted:
        return placed
    # Equal instances in the order of their starts: any other order is the same card.
    last = placed[-1] if placed and placed[-1].profile == wanted[0].name else None
    for placement in places(wanted[0], profiles, placed):
        if last is not None and placement.start < last.start:
            continue
        found = _search(profiles, wanted[1:], (*placed, placement))
        if found is not None:
            return found
    return None


def most_of(profile: Profile, profiles: Sequence[Profile]) -> int:
    """How many instances of one profile an empty card holds."""
    count = 0
    while arranged(profiles, {profile.name: count + 1}) is not None:
        count += 1
    return count
