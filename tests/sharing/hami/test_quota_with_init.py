"""A ResourceQuota in HAMi's fit: percentages pass its webhook, and init containers change how others are counted."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.model.pods import Pod
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Fit, Refused
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.fit import OVER_QUOTA
from tests.sharing.builders import cards, container, pod

CARD = 10_000


def verdict(asking: Pod, limit: int, cards_there: int = 2, resource: str = "gpumem") -> str:
    """`fit`, or HAMi's codes, on idle cards of 10,000 MiB under a quota of the namespace."""
    hami, quota = Hami(), ResourceQuota("default", "q", {f"limits.nvidia.com/{resource}": limit})
    demand = hami.demand(asking)
    assert not isinstance(demand, Refused)
    found = hami.decide(cards(*[CARD] * cards_there), demand, asking, None, (quota,))
    return "fit" if isinstance(found, Fit) else found.reason


def of(*percents: int, init: Sequence[int] = ()) -> Pod:
    """App and init containers with such percentages of one card each, and one core point."""
    apps = [container(f"app-{n}", gpus=1, percent=each, cores=1) for n, each in enumerate(percents)]
    first = [container(f"init-{n}", gpus=1, percent=each, cores=1) for n, each in enumerate(init)]
    return pod(*apps, init=first)


@pytest.mark.parametrize("limit, expected", [(3_000, "fit"), (2_999, f"2/2 {OVER_QUOTA}")])
def test_the_percentages_of_app_containers_are_summed(limit: int, expected: str) -> None:
    """As amounts of the card that each would get."""
    assert expected == verdict(of(10, 20), limit)


@pytest.mark.parametrize("limit, expected", [(2_000, "fit"), (1_999, f"1/1 {OVER_QUOTA}")])
def test_beside_an_init_container_the_first_app_container_counts_as_one(limit: int, expected: str) -> None:
    """On one card the larger of it and of the others' sum, which is less than both together."""
    assert expected == verdict(of(10, 20, init=[5]), limit, 1)


def test_init_containers_on_one_card_count_once_and_on_two_cards_both() -> None:
    """They run one after the other, but what each card keeps for them is kept at once."""
    both = of(1, init=[30, 20])
    apart = pod(
        container("main", gpus=1, percent=1, cores=1),
        init=[container("a", gpus=2, percent=20, cores=1), container("b", gpus=1, percent=30, cores=1)],
    )

    assert ["fit", f"1/1 {OVER_QUOTA}"] == [verdict(both, limit, 1) for limit in (3_000, 2_999)]
    assert ["fit", f"2/2 {OVER_QUOTA}"] == [verdict(apart, limit) for limit in (5_000, 4_999)]


def test_cores_are_counted_in_the_same_way() -> None:
    """Each resource by itself: the larger on a card may come from another container."""
    apps = [container(f"app-{n}", gpus=1, percent=10, cores=each) for n, each in enumerate((30, 40))]
    asking = pod(*apps, init=[container("init", gpus=1, percent=10, cores=5)])

    assert ["fit", f"1/1 {OVER_QUOTA}"] == [verdict(asking, limit, 1, "gpucores") for limit in (40, 39)]


@dataclass(frozen=True)
class Case:
    """Percentages of one card each, with init containers first."""

    init: tuple[int, ...]
    apps: tuple[int, ...]


PERCENTS = st.lists(st.integers(1, 30), max_size=3).map(tuple)
CASES = st.builds(Case, PERCENTS, st.lists(st.integers(1, 30), min_size=1, max_size=3).map(tuple))


def collapsed(case: Case) -> int:
    """What HAMi's fit counts at most on its way, all on one card (`fitQuota`, `CollapseInitContainerUsage`)."""
    worst, number = 0, len(case.init)
    for kind in (case.init, case.apps):
        for end in range(1, len(kind) + 1):
            amounts = [CARD * each // 100 for each in kind[:end]]
            worst = max(worst, max(amounts[:number], default=0), sum(amounts[number:]))
    return worst


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_the_smallest_quota_that_fits_is_what_hami_counts(case: Case) -> None:
    """And no smaller one does."""
    asking, least = of(*case.apps, init=case.init), collapsed(case)

    assert ["fit", f"1/1 {OVER_QUOTA}"] == [verdict(asking, limit, 1) for limit in (least, least - 1)]
