"""The AWS market: prices, zones, spot estimates, what is not sold, cards."""

import pytest

from kerf.catalog import aws
from kerf.errors import InputError
from kerf.model.constraints import CAPACITY_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType

EAST = aws.load("us-east-1")


def sold(name: str) -> InstanceType:
    """The type of that name in us-east-1."""
    found = EAST.find(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name, price_micro",
    [
        ("g5.xlarge", 1_006_000),
        ("g5.2xlarge", 1_212_000),
        ("g5.12xlarge", 5_672_000),
        ("g4dn.xlarge", 526_000),
        ("g6e.xlarge", 1_861_000),
        ("m5.xlarge", 192_000),
        ("p4d.24xlarge", 21_957_642),
    ],
)
def test_on_demand_price_is_the_published_one_in_every_zone(name: str, price_micro: int) -> None:
    """On-demand prices are those of the dated table, to the last digit, equal in all zones."""
    prices = {offer.price_micro for offer in sold(name).offerings if offer.capacity_type == ON_DEMAND}

    assert {price_micro} == prices


def test_every_type_with_price_and_zone_is_sold() -> None:
    """us-east-1 is whole: 1340 types; us-west-2 as far as prices are known: 20."""
    assert (1340, 20) == (len(EAST.types), len(aws.load("us-west-2").types))


def test_types_are_in_name_order_and_in_dollars() -> None:
    """A market lists its types by name and says whose and in which money."""
    assert sorted(kind.name for kind in EAST.types) == [kind.name for kind in EAST.types]
    assert ("USD", "aws", "us-east-1") == (EAST.currency, EAST.provider, EAST.region)


def test_spot_is_the_dated_saving_off_on_demand_and_says_so() -> None:
    """Spot has no quoted price: on-demand less the saving (g5.xlarge: 59 %), marked as an estimate."""
    spot = [offer for offer in sold("g5.xlarge").offerings if offer.capacity_type == SPOT]

    assert {412_460} == {offer.price_micro for offer in spot}
    assert all(offer.is_estimate for offer in spot)
    assert "spot is an estimate: on-demand less 59 % (AWS Spot Advisor, 2025-06-28)" in sold("g5.xlarge").notes


def test_no_saving_means_no_spot_offering() -> None:
    """A type without a known saving is not offered as spot (g6f.large)."""
    assert {ON_DEMAND} == {offer.capacity_type for offer in sold("g6f.large").offerings}
    assert Requirement.of(CAPACITY_TYPE, "In", [ON_DEMAND]) == sold("g6f.large").requirements[CAPACITY_TYPE]


def test_requirements_name_the_zones_of_the_offerings() -> None:
    """The zone set of a type is where it is sold."""
    zones = {"us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1f"}

    assert zones == sold("g5.xlarge").requirements[ZONE].values


def test_price_without_zone_is_no_offering() -> None:
    """001-9: p3.2xlarge has a price and is sold nowhere any more."""
    assert EAST.find("p3.2xlarge") is None
    assert "p3.2xlarge has a price in us-east-1 but is sold in no zone there any more" == aws.why_not_sold(
        "us-east-1", "p3.2xlarge"
    )


@pytest.mark.parametrize(
    "region, name, why",
    [
        ("us-east-1", "g5.xlarge", None),
        ("us-east-1", "g99.xlarge", None),
        ("mars-1", "g5.xlarge", None),
        ("us-west-2", "m5.8xlarge", "no price of m5.8xlarge in us-west-2 is known"),
        ("us-west-2", "p3.2xlarge", "AWS does not sell p3.2xlarge in us-west-2"),
    ],
)
def test_why_not_sold_gives_each_reason(region: str, name: str, why: str | None) -> None:
    """No price, no zone and unknown are three different answers."""
    assert why == aws.why_not_sold(region, name)


def test_unknown_region_names_the_known_ones() -> None:
    """A region without data is the user's mistake."""
    with pytest.raises(InputError, match="AWS region 'us-est-1': expected one of us-east-1, us-west-2"):
        aws.load("us-est-1")


@pytest.mark.parametrize(
    "name, model, count, memory_mib",
    [
        ("g4dn.xlarge", "T4", 1, 15360),
        ("g5.xlarge", "A10G", 1, 22888),
        ("g5.12xlarge", "A10G", 4, 22888),
        ("g6.xlarge", "L4", 1, 22888),
        ("g6e.xlarge", "L40S", 1, 45776),
        ("p4d.24xlarge", "A100", 8, 40960),
        ("p4de.24xlarge", "A100", 8, 81920),
        ("p5.48xlarge", "H100", 8, 81559),
        ("p5en.48xlarge", "H200", 8, 143771),
        ("g5g.16xlarge", "T4g", 2, 15073),
    ],
)
def test_cards_have_the_memory_that_registers(name: str, model: str, count: int, memory_mib: int) -> None:
    """One shape a card, with the least memory that any source knows, never the number on the box."""
    cards = sold(name).devices

    assert [(model, memory_mib)] * count == [(card.model.name, card.memory_mib) for card in cards]
    assert all(card.memory_source for card in cards)


@pytest.mark.parametrize("name, eighths, memory_mib", [("g6f.large", 1, 2861), ("gr6f.4xlarge", 4, 11444)])
def test_fractional_type_has_one_logical_card(name: str, eighths: int, memory_mib: int) -> None:
    """EC2 counts 0 GPUs where it sells a part of one; for a plan it is one card of that part."""
    kind = sold(name)

    assert (1, True) == (kind.capacity["nvidia.com/gpu"], kind.is_fractional)
    assert [(eighths, memory_mib)] == [(card.eighths, card.memory_mib) for card in kind.devices]
    assert kind.requirements["karpenter.k8s.aws/instance-gpu-count"].has("0")


def test_cards_of_other_vendors_have_no_shape() -> None:
    """Only NVIDIA cards can be planned by slice; a Neuron type has its resources and no devices."""
    kind = sold("inf2.24xlarge")

    assert () == kind.devices
    assert (6, 12) == (kind.capacity["aws.amazon.com/neuron"], kind.capacity["aws.amazon.com/neuroncore"])


def test_asking_for_a_gpu_label_excludes_types_without_gpu() -> None:
    """A label that a type lacks is `DoesNotExist`, so that `instance-gpu-count Gt 0` leaves m5 out."""
    wish = Requirements([Requirement.of("karpenter.k8s.aws/instance-gpu-count", "Gt", ["0"])])

    assert wish.conflict(sold("m5.xlarge").requirements) is not None
    assert wish.conflict(sold("g5.xlarge").requirements) is None


def test_equal_labels_are_one_object() -> None:
    """A catalogue of ten thousand labels holds each distinct one once."""
    key = "karpenter.k8s.aws/instance-hypervisor"

    assert sold("g5.xlarge").requirements[key] is sold("m5.xlarge").requirements[key]


def test_what_spot_saves_on_gpus_is_measured() -> None:
    """001-21: "70 to 90 %" holds for few types; half of them save less than two thirds in the dated feed."""
    here = [spec.sold[0] for spec in aws.specs() if spec.gpus]
    savings = sorted(sold.spot_saving for sold in here if sold is not None and sold.spot_saving is not None)

    assert 50 <= len(savings)
    assert 60 <= savings[len(savings) // 2] <= 66
    assert sum(70 <= saving <= 90 for saving in savings) < len(savings) / 4
