"""The Alibaba market: CNY prices, zones of the region, cards by what ECS nodes registered."""

import pytest

from kerf.catalog import alibaba
from kerf.errors import InputError
from kerf.model.constraints import CAPACITY_TYPE, Requirement
from kerf.model.instancetypes import InstanceType
from kerf.model.quantities import MIB

SHANGHAI = alibaba.load("cn-shanghai")


def sold(name: str) -> InstanceType:
    """The type of that name in cn-shanghai."""
    found = SHANGHAI.find(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name, price_micro", [("ecs.gn7i-c8g1.2xlarge", 9_532_600), ("ecs.gn7i-c16g1.4xlarge", 10_093_400)]
)
def test_price_is_the_published_one_in_yuan(name: str, price_micro: int) -> None:
    """004: pay-as-you-go prices in CNY, exact, the same in every zone of the region."""
    assert "CNY" == SHANGHAI.currency
    assert {price_micro} == {offer.price_micro for offer in sold(name).offerings}


def test_offerings_are_on_demand_in_every_zone_of_the_region() -> None:
    """The data has no zones by type and no spot prices; both are said in notes of the market."""
    kind = sold("ecs.gn7i-c8g1.2xlarge")

    assert 11 == len(kind.offerings)
    assert Requirement.of(CAPACITY_TYPE, "In", ["on-demand"]) == kind.requirements[CAPACITY_TYPE]
    assert "zones of Alibaba Cloud are those of the region: which of them sell a type is not in the data" in (
        SHANGHAI.notes
    )


def test_allocatable_follows_the_reservation_policy() -> None:
    """8 vCPU, 30 GiB, 48 pods: 6.5 % for the machine, 11 x 48 + 255 + 200 MiB and 90m CPU for kubelet."""
    left = sold("ecs.gn7i-c8g1.2xlarge").allocatable

    assert (7910, 27740, 48, 1) == (left["cpu"], left["memory"] // MIB, left["pods"], left["nvidia.com/gpu"])


def test_reserved_memory_is_at_most_a_quarter() -> None:
    """A small machine with 110 pods reserves a quarter of itself and 200 MiB, not 1465 MiB."""
    assert (512 + 200) * MIB == alibaba.overhead(2, 2048, 110)["memory"]


@pytest.mark.parametrize(
    "name, model, count, memory_mib",
    [
        ("ecs.gn7i-c8g1.2xlarge", "A10", 1, 22731),
        ("ecs.gn6i-c24g1.12xlarge", "T4", 2, 15109),
        ("ecs.gn7e-c16g1.32xlarge", "A100", 8, 81251),
        ("ecs.gn6e-c12g1.3xlarge", "V100", 1, 32510),
    ],
)
def test_cards_have_what_ecs_nodes_registered(name: str, model: str, count: int, memory_mib: int) -> None:
    """A measured figure of this cloud needs no margin."""
    assert [(model, memory_mib)] * count == [(card.model.name, card.memory_mib) for card in sold(name).devices]


def test_virtual_gpu_is_a_share_of_a_card() -> None:
    """sgn and vgn types are sold with `mN` GB of a card: a fraction, in proportion to what a whole one registers."""
    cards = sold("ecs.sgn6i-vws-m4.2xlarge").devices

    assert [("T4", 3777, 2)] == [(card.model.name, card.memory_mib, card.eighths) for card in cards]


def test_card_without_known_memory_has_no_shape() -> None:
    """Where nobody says which card it is, no slice is planned, and a note says so."""
    kind = sold("ecs.ebmgn7ix.32xlarge")

    assert ((), 8) == (kind.devices, kind.capacity["nvidia.com/gpu"])
    assert "neither model nor memory of its cards is known: no slice is planned on it" in kind.notes


def test_labels_are_those_of_the_karpenter_provider() -> None:
    """Family, category and size are cut from the name as that provider cuts them."""
    labels = sold("ecs.gn7i-c8g1.2xlarge").requirements.labels()

    names = ("family", "category", "generation", "size", "cpu", "memory", "gpu-name", "gpu-count", "gpu-memory")
    assert ["ecs.gn7i-c8g1", "gn", "7", "2xlarge", "8", "30720", "nvidia-a10", "1", "24"] == [
        labels[f"karpenter.k8s.alibabacloud/instance-{name}"] for name in names
    ]


def test_unknown_region_names_the_known_ones() -> None:
    """A region without data is the user's mistake."""
    with pytest.raises(InputError, match=r"Alibaba Cloud region 'cn-sanghai': expected one of .*cn-shanghai"):
        alibaba.load("cn-sanghai")


@pytest.mark.parametrize(
    "name, why",
    [
        ("ecs.gn7i-c8g1.2xlarge", None),
        ("ecs.gn8is.2xlarge", "no price of ecs.gn8is.2xlarge in cn-shanghai is known"),
        ("ecs.nothing.large", None),
    ],
)
def test_why_not_sold_names_what_is_missing(name: str, why: str | None) -> None:
    """A known type without a price is told from an unknown one."""
    assert why == alibaba.why_not_sold("cn-shanghai", name)
