"""What a region sells: live answers over the packaged catalogue, each by itself."""

import pytest

from kerf.clouds.aws.livetypes import row_of
from kerf.clouds.aws.offerings import sold_in
from kerf.clouds.aws.partitions import price_region_of
from kerf.clouds.aws.prices import packaged
from tests.clouds.aws.region import G6F_RECORD, Region


def test_live_answers_go_over_the_packaged_ones() -> None:
    """Zones and prices; of two spot prices the newest; types that the package lacks are added."""
    region = Region()
    region.refresh()
    found = region.prices.current

    assert ("us-east-1a", "us-east-1b") == found.zones["g5.xlarge"]
    assert (1_500_000, {("g5.xlarge", "us-east-1a"): 500_000}) == (found.on_demand["g5.xlarge"], found.spot)
    assert (False, ()) == (found.is_spot_estimate, found.notes)
    assert {"g9f.large"} == found.rows.keys() - packaged("us-east-1").rows.keys()


@pytest.mark.parametrize(
    ("operation", "note"),
    [
        ("DescribeInstanceTypes", "instance types are not live (DescribeInstanceTypes: UnauthorizedOperation)"),
        ("DescribeInstanceTypeOfferings", "zones are not live (DescribeInstanceTypeOfferings: UnauthorizedOperation)"),
        ("GetProducts", "on-demand prices are not live (GetProducts: UnauthorizedOperation)"),
        ("DescribeSpotPriceHistory", "spot prices are not live (DescribeSpotPriceHistory: UnauthorizedOperation)"),
    ],
)
def test_what_is_refused_stays_as_packaged_and_is_said(operation: str, note: str) -> None:
    """The other three answers count all the same."""
    region, before = Region(), packaged("us-east-1")
    region.refused = {operation}
    region.refresh()
    found = region.prices.current

    assert (note,) == found.notes
    kept = {
        "DescribeInstanceTypes": (before.rows, found.rows),
        "DescribeInstanceTypeOfferings": (before.zones, found.zones),
        "GetProducts": (before.on_demand, found.on_demand),
        "DescribeSpotPriceHistory": (before.spot, found.spot),
    }[operation]
    assert kept[0] == kept[1]


def test_a_region_that_the_package_lacks_sells_nothing_before_aws_says() -> None:
    """Its types are known, their zones and prices are not."""
    region = Region("eu-west-1")
    before = region.prices.current
    region.refresh()

    assert ({}, {}, True) == (dict(before.zones), dict(before.on_demand), "g5.xlarge" in before.rows)
    assert ("eu-west-1a", "eu-west-1b") == region.prices.current.zones["g5.xlarge"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("eu-west-1", "GetProducts: UnauthorizedOperation"),
        ("us-gov-west-1", "AWS answers credentials of aws-us-gov nothing about prices"),
    ],
)
def test_a_region_without_prices_is_bought_from_by_the_prices_of_another(name: str, why: str) -> None:
    """A role without pricing:GetProducts, a network without a way to it, and GovCloud: pods would wait for ever."""
    region = Region(name)
    region.refused = {"GetProducts"}
    region.refresh()
    found = region.prices.current
    sold = sold_in("g5.xlarge", found.zones["g5.xlarge"], found)

    assert (f"on-demand prices are not live ({why}); those of us-east-1 count",) == found.notes
    assert packaged("us-east-1").on_demand["g5.xlarge"] == found.on_demand["g5.xlarge"]
    assert {("on-demand", True), ("spot", False)} == {(each.capacity_type, each.is_estimate) for each in sold}

    region.refused = set()
    region.refresh()
    if name == "eu-west-1":
        assert ({"g5.xlarge": 1_500_000}, False) == (
            region.prices.current.on_demand,
            region.prices.current.is_on_demand_estimate,
        )


def test_dollars_are_no_estimate_of_yuan() -> None:
    """Live spot prices there are in yuan; all of them would cost more than on demand."""
    region = Region("cn-north-1")
    region.refused = {"GetProducts"}
    region.refresh()

    assert {} == region.prices.current.on_demand


@pytest.mark.parametrize("price", ["inf", "-inf", "nan", "-1", "1e400", "1e30"])
def test_what_no_machine_costs_is_no_price(price: str) -> None:
    """A negative one would be bought first, and an endless one has no millionths."""
    region = Region()
    region.on_demand["g5.xlarge"] = price
    region.spot.append(("g5.xlarge", "us-east-1b", price, 3))
    region.refresh()
    found, before = region.prices.current, packaged("us-east-1")

    assert (before.on_demand["g5.xlarge"], before.spot) == (found.on_demand["g5.xlarge"], found.spot)


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        ("us-west-2", "us-east-1"), ("sa-east-1", "us-east-1"), ("ap-east-1", "ap-south-1"),
        ("eu-west-3", "eu-central-1"), ("cn-north-1", "cn-northwest-1"), ("eusc-de-east-1", "eusc-de-east-1"),
        ("eu-isoe-west-1", "eu-isoe-west-1"), ("us-isob-east-1", "us-isob-east-1"), ("us-gov-east-1", ""),
    ],
)  # fmt: skip
def test_prices_are_asked_of_the_own_partition(region: str, asked: str) -> None:
    """Another one does not know the credentials, or is in another network."""
    assert asked == price_region_of(region)


def test_only_spot_prices_are_asked_for_at_each_turn() -> None:
    """The others twice a day, and what has not changed is the same object."""
    region = Region()
    region.refresh()
    first, region.asked = region.prices.current, []
    region.refresh()

    assert (["DescribeSpotPriceHistory"], True) == (region.asked, first is region.prices.current)
    region.clock.seconds += 12 * 3600
    region.refresh()
    assert 6 == len(region.asked)


def test_what_was_not_answered_is_asked_for_again_at_the_next_turn() -> None:
    """Else one throttled call at the start would leave a region without prices for half a day."""
    region = Region()
    region.refused = {"GetProducts"}
    region.refresh()
    region.refused, region.asked = set(), []
    region.refresh()

    assert "GetProducts" in region.asked
    region.asked = []
    region.refresh()
    assert ["DescribeSpotPriceHistory"] == region.asked


def test_a_described_type_is_the_row_of_the_catalogue() -> None:
    """A fractional card: logical count, share and memory as the packaged row has them."""
    row, packed = row_of(G6F_RECORD), packaged("us-east-1").rows["g6f.large"]
    assert row is not None

    assert packed.gpus == row.gpus
    assert (packed.vcpu, packed.memory_mib, packed.enis, packed.ipv4_per_eni, packed.arch, packed.category) == (
        row.vcpu, row.memory_mib, row.enis, row.ipv4_per_eni, row.arch, row.category
    )  # fmt: skip
