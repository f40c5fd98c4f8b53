"""Small values that plans are made of: order of stages, GPU use, prices in words."""

import pytest

from kerf.model.causes import NotBought
from kerf.model.gpu import Slice
from kerf.model.instancetypes import price_number, price_text
from kerf.model.plan import Cost, Deletion, GpuUse, PlacedPod, Plan, Stage
from kerf.testing.builders import a_pool

NOTHING_SPENT = Cost("USD", 0, 0)


def test_stages_are_ranked_as_a_pod_meets_them() -> None:
    """Invalid first, windows last (contracts: plan)."""
    expected = [
        "invalid",
        "held",
        "scheduler",
        "volumes",
        "taints",
        "requirements",
        "resources",
        "topology",
        "affinity",
        "devices",
        "limits",
        "offerings",
        "windows",
    ]

    assert expected == [str(stage) for stage in sorted(Stage, key=lambda stage: stage.rank)]


@pytest.mark.parametrize(
    "paid, allocated, expected",
    [
        (0, 0, 0),
        (10_000, 5_000, 0.5),
        (20_000, 15_000, 0.25),
        (30_000, 30_000, 0),
        (30_000, 10_000, 0.6667),
        (1250, 625, 0.5),
    ],
)
def test_kerf_is_the_paid_share_that_no_pod_uses(paid: int, allocated: int, expected: float) -> None:
    """Nothing is wasted where nothing is paid for."""
    assert expected == GpuUse(paid, allocated).kerf


@pytest.mark.parametrize(
    "micro, text, number",
    [
        (1_006_000, "1.006", 1.006),
        (6_060_000, "6.06", 6.06),
        (2_000_000, "2.00", 2),
        (1, "0.000001", 1e-06),
        (0, "0.00", 0),
        (-192_000, "-0.192", -0.192),
        (-1_500_000, "-1.50", -1.5),
        (-2_000_000, "-2.00", -2),
    ],
)
def test_prices_are_exact_to_six_decimals(micro: int, text: str, number: float) -> None:
    """At least two decimals in text; a JSON number has no more than it needs."""
    assert (text, number) == (price_text(micro), price_number(micro))


def test_a_plan_without_launches_and_deletions_does_nothing() -> None:
    """Pods that are left are no action."""
    deletion = Deletion("node", "claim", a_pool().name, 0, "Empty", NotBought())

    assert Plan("cost", NOTHING_SPENT).is_empty
    assert not Plan("cost", NOTHING_SPENT, deletions=(deletion,)).is_empty


def test_the_slices_of_a_pod_have_its_name() -> None:
    """Equal pods of a plan share their parts of cards, which have the name of one of them."""
    part = Slice("default/a", "main", 0, "gpu-0", 1000, 50)

    assert (part,) == PlacedPod("default/a", (part,)).slices
    assert (Slice("default/b", "main", 0, "gpu-0", 1000, 50),) == PlacedPod("default/b", (part,)).slices
    assert (0,) == PlacedPod("default/b", (part,)).cards
