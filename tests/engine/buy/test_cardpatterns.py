"""The ways to fill one card: all of them where they are few, and never too little where they are many."""

import pytest

from kerf.engine.buy.cardpatterns import MOST_CELLS, Piece, instances, patterns
from kerf.model.gpu import Profile

PROFILES = (
    Profile("1g.5gb", 1, (0, 1, 2, 3, 4, 5, 6), 4864, 14),
    Profile("2g.10gb", 2, (0, 2, 4), 9856, 28),
    Profile("3g.20gb", 4, (0, 4), 19968, 42),
)


@pytest.mark.parametrize(
    "pieces, expected",
    [
        (((6000, 0),), {(1,)}),
        (((6000, 0), (4000, 0)), {(1, 1), (0, 2)}),
        (((6000, 60), (4000, 50)), {(1, 0), (0, 2)}),
        (((0, 0),), {(10,)}),
    ],
)
def test_a_pattern_leaves_no_room_for_another_piece(pieces: tuple[Piece, ...], expected: set[tuple[int, ...]]) -> None:
    """On a card of 10,000 MiB, 100 cores and 10 slots; sizes come with the most memory first."""
    found = patterns(pieces, 10_000, 100, 10)

    assert expected == set(map(tuple, found.counts.tolist()))
    assert found.is_exact


def test_many_sizes_are_rounded_down_until_there_are_few_patterns() -> None:
    """Each piece counts as one that is no larger, and as many fit as before where nothing else is there."""
    pieces = tuple((500 + 37 * number, number % 40) for number in range(150))
    found = patterns(pieces, 10_000, 100, 10)

    assert not found.is_exact
    assert found.counts.size <= MOST_CELLS
    assert all(
        m <= memory and c <= cores
        for (memory, cores), (m, c) in zip(pieces, map(found.sizes.__getitem__, found.of), strict=True)
    )


def test_instances_of_mig_fill_a_card_as_its_starts_allow() -> None:
    """Seven 1g; a 3g and four 1g; or two 3g."""
    found = instances(("1g.5gb", "3g.20gb"), PROFILES)

    assert found is not None
    assert {(7, 0), (4, 1), (0, 2)} == set(map(tuple, found.tolist()))


def test_an_instance_that_may_be_given_where_the_asked_one_does_not_start_has_no_patterns() -> None:
    """HAMi gives the next larger one when the smallest has no place."""
    odd = Profile("1g.10gb", 2, (0,), 9000, 14)

    assert instances(("1g.10gb",), (odd, PROFILES[1])) is None
