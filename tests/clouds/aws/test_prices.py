"""What a region sells: live answers over the packaged catalogue, each by itself."""

import pytest

from kerf.clouds.aws.livetypes import row_of
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
