"""Which MIG instances one card holds together: counts from NVIDIA's tables, and laws for any set of instances."""

from collections import Counter
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.model.gpu import Placement, Profile
from kerf.sharing.nvidia.mig_geometry import arranged, free_starts, most_of, places
from tests.sharing.nvidia.builders import A30, A100

SEVEN = tuple(p for p in A100.profiles if "+" not in p.name)
PLAIN = tuple(p for p in SEVEN if p.name != "1g.10gb")
FOUR = tuple(p for p in A30.profiles if "+" not in p.name)


def sets_of(profiles: tuple[Profile, ...]) -> tuple[set[frozenset[Placement]], set[frozenset[Placement]]]:
    """All sets of instances that can be made one after the other, and those to which nothing can be added."""
    seen, stuck, to_see = {frozenset[Placement]()}, set(), [frozenset[Placement]()]
    while to_see:
        placed = to_see.pop()
        after = [placed | {place} for profile in profiles for place in places(profile, profiles, tuple(placed))]
        if not after:
            stuck.add(placed)
        fresh = [more for more in after if more not in seen]
        seen.update(fresh)
        to_see += fresh
    return seen, stuck


@pytest.mark.parametrize(
    ("profiles", "reachable", "stuck", "most"), [(PLAIN, 298, 19, 12), (SEVEN, 723, 78, 28), (FOUR, None, None, 4)]
)
def test_the_sets_of_instances_are_those_of_the_hardware(
    profiles: tuple[Profile, ...], reachable: int | None, stuck: int | None, most: int
) -> None:
    """The 19 configurations of an A100, 78 with double memory; 12 and 28 of them are largest as multisets."""
    seen, ends = sets_of(profiles)
    multisets = {frozenset(Counter(place.profile for place in placed).items()) for placed in seen}
    largest = [m for m in multisets if not any(is_within(m, other) and m != other for other in multisets)]

    assert most == len(largest)
    assert (reachable, stuck) in ((len(seen), len(ends)), (None, None))


def is_within(some: frozenset[tuple[str, int]], other: frozenset[tuple[str, int]]) -> bool:
    """Whether one multiset is part of another."""
    return all(count <= dict(other).get(name, 0) for name, count in some)


def test_arranging_finds_every_multiset_that_can_be_reached() -> None:
    """And nothing else: compared with going through all sets of up to eight instances."""
    seen, _ = sets_of(SEVEN)
    reachable = {tuple(sorted(place.profile for place in placed)) for placed in seen}

    for number in range(9):
        for names in combinations_with_replacement(sorted(p.name for p in SEVEN), number):
            assert (arranged(SEVEN, Counter(names)) is not None) == (names in reachable)


@given(st.lists(st.sampled_from([p.name for p in A100.profiles]), max_size=8))
def test_what_is_arranged_overlaps_nowhere(names: list[str]) -> None:
    """Each instance at a start of its profile, no slice twice, one media engine."""
    found = arranged(A100.profiles, Counter(names))
    if found is None:
        return
    by_name = {profile.name: profile for profile in A100.profiles}
    slices = [part for placement in found for part in placement.slices]

    assert sorted(names) == sorted(placement.profile for placement in found)
    assert len(slices) == len(set(slices))
    assert all(placement.start in by_name[placement.profile].starts for placement in found)
    assert 1 >= sum(by_name[placement.profile].has_media_engine for placement in found)


@pytest.mark.parametrize(
    ("starts", "free"),
    [
        ((0, 4), {"1g.5gb": (2, 3, 6), "2g.10gb": (2,)}),
        ((0, 2), {"1g.5gb": (4, 5, 6), "2g.10gb": (4,), "3g.20gb": (4,)}),
    ],
)
def test_where_two_instances_lie_decides_what_has_a_place(
    starts: tuple[int, ...], free: dict[str, tuple[int, ...]]
) -> None:
    """Two 2g at 0 and 4 leave four slices and no place for a 3g; at 0 and 2 they leave one."""
    placed = [Placement("2g.10gb", start, 2) for start in starts]

    assert free == free_starts(PLAIN, placed)


def test_a_card_has_one_media_engine() -> None:
    """One instance with it, and six without beside it."""
    with_engine = next(p for p in A100.profiles if p.has_media_engine)

    assert 1 == most_of(with_engine, A100.profiles)
    assert arranged(A100.profiles, {with_engine.name: 1, "1g.5gb": 6}) is not None
    assert arranged(A100.profiles, {with_engine.name: 1, "1g.5gb": 7}) is None
