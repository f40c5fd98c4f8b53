"""A fleet with a floor and budgets comes to the cheapest fleet that holds its pods, or close to it."""

from functools import cache

import pytest

from tests.engine.disruption.smallfleets import cost_micro, settled, small_fleet


@cache
def came_to(seed: int) -> tuple[int, int]:
    """What the fleet of a seed costs in the end, and what the cheapest costs that holds its pods; its floor holds."""
    fleet = small_fleet(seed)
    after = settled(fleet.world)

    assert len(after.snapshot.nodes) >= fleet.floor, seed
    return cost_micro(after), fleet.cheapest_micro()


def check(seeds: range) -> None:
    """No fleet stays a tenth above the cheapest, and of twenty at most one is above it at all."""
    ended = {seed: came_to(seed) for seed in seeds}

    assert {} == {seed: each for seed, each in ended.items() if each[0] > 1.1 * each[1]}
    assert {} == {seed: each for seed, each in ended.items() if each[0] < each[1]}
    assert sum(each[0] == each[1] for each in ended.values()) >= 0.95 * len(ended)


def test_forty_fleets_with_floors_and_budgets_come_to_the_cheapest() -> None:
    """Whatever the order of the steps that budgets and floors leave."""
    check(range(40))


@pytest.mark.long
def test_four_hundred_fleets_with_floors_and_budgets_come_to_the_cheapest() -> None:
    """The same of many more."""
    check(range(400))
