"""What is remembered of prices that change."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kerf.controllers.pricechanges import PriceChanges
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.market import PriceHistory
from tests.clouds.market import MARKET

DAY_S = 86_400
(KIND,) = (each for each in MARKET if each.name == "g5.xlarge")
OFFERING = replace(next(each for each in KIND.offerings if each.capacity_type == "on-demand"), price_micro=100)
KEY = OFFERING.key_of(KIND.name)
OTHER = OfferingKey("p5.48xlarge", "us-east-1a", "on-demand")


def at(price_micro: int) -> list[InstanceType]:
    """One type with one offering at that price."""
    return [replace(KIND, offerings=(replace(OFFERING, price_micro=price_micro),))]


def seen(*prices: tuple[float, int]) -> PriceChanges:
    """What is known after looks at these times."""
    changes = PriceChanges()
    for at_s, price in prices:
        changes.note(at(price), at_s)
    return changes


def test_a_price_that_never_changed_has_no_history() -> None:
    """However often it is looked at."""
    assert () == seen((0, 100), (60, 100), (9_000, 100)).histories(9_000)


def test_a_change_says_what_was_before_and_when() -> None:
    """For one day."""
    changes = seen((0, 100), (600, 300))

    assert (PriceHistory(KEY, 300, 100, 100, 600, 1, 600, 100, 300),) == changes.histories(700)
    assert (PriceHistory(KEY, 300, 100, 100, 600, 1, 600, 100, 300),) == changes.histories(600 + DAY_S - 1)
    assert () == changes.histories(600 + DAY_S)


def test_the_mean_is_over_the_day_before_the_last_change() -> None:
    """100 for a long time, 300 for six hours, then 200: a quarter of the day at 300."""
    (found,) = seen((0, 100), (10 * DAY_S, 300), (10 * DAY_S + DAY_S // 4, 200)).histories(11 * DAY_S)

    assert PriceHistory(KEY, 200, 300, 150, DAY_S, 2, 10 * DAY_S + DAY_S // 4, 100, 300) == found


@given(st.lists(st.tuples(st.integers(1, DAY_S // 2), st.integers(1, 10**9)), min_size=2, max_size=30))
def test_a_mean_is_among_the_prices_of_its_day_and_changes_are_counted(steps: list[tuple[int, int]]) -> None:
    """For any course of prices."""
    now_s, prices = 0, list[tuple[float, int]]()
    for step_s, price in steps:
        now_s += step_s
        prices.append((now_s, price))
    turns = [each for number, each in enumerate(prices) if not number or each[1] != prices[number - 1][1]]
    found = seen(*prices).histories(now_s)
    if len(turns) < 2 or now_s >= turns[-1][0] + DAY_S:
        assert () == found
        return
    (history,) = found
    changed_s = turns[-1][0]
    assert sum(changed_s - DAY_S < since_s for since_s, _ in turns[1:]) == history.changes
    held = [price for (since_s, price), (until_s, _) in pairwise(turns) if until_s > changed_s - DAY_S]
    assert min(held) <= history.mean_micro <= max(held)
    assert 0 < history.for_s <= DAY_S


def test_after_a_restart_the_prices_of_purchases_are_known() -> None:
    """Three nodes were bought at two prices, and now it is the first again."""
    changes = seen((7_200, 100))
    changes.bought([(3_600, KEY, 300), (0, KEY, 100), (5_400, KEY, 300), (0, OTHER, 9)])

    assert (PriceHistory(KEY, 100, 300, 200, 7_200, 2, 7_200, 100, 300),) == changes.histories(7_200)


def test_a_clock_that_is_set_moves_what_is_remembered() -> None:
    """An hour forward."""
    changes = seen((0, 100), (600, 300))
    changes.shift(3_600)

    assert (PriceHistory(KEY, 300, 100, 100, 600, 1, 4_200, 100, 300),) == changes.histories(4_300)
