"""What AWS sells just now, as a catalogue for a plan."""

import asyncio

import pytest

from kerf.catalog import aws
from kerf.clouds.aws.livemarket import live_market
from kerf.errors import CloudError
from kerf.model.instancetypes import ON_DEMAND, SPOT
from kerf.model.market import Market
from tests.clouds.aws.region import Region

ALL = ("DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "GetProducts", "DescribeSpotPriceHistory")


def market_of(region: Region, name: str) -> Market:
    """The market of a region that says this."""
    return asyncio.run(live_market(region, region.clock, name))


def test_a_region_that_the_package_lacks_sells_what_aws_says() -> None:
    """Type, zones and both prices."""
    market = market_of(Region("eu-west-1"), "eu-west-1")

    assert (("aws", "eu-west-1", "USD", ()), ["g5.xlarge"]) == (
        (market.provider, market.region, market.currency, market.notes),
        [kind.name for kind in market.types],
    )
    assert [
        ("eu-west-1a", ON_DEMAND, 1_500_000),
        ("eu-west-1b", ON_DEMAND, 1_500_000),
        ("eu-west-1a", SPOT, 500_000),
    ] == [(each.zone, each.capacity_type, each.price_micro) for each in market.types[0].offerings]


def test_a_type_is_that_of_the_package_with_other_offerings() -> None:
    """Amounts, cards, overhead and labels of the machine."""
    live, packaged = market_of(Region(), "us-east-1").find("g5.xlarge"), aws.load("us-east-1").find("g5.xlarge")
    assert live is not None
    assert packaged is not None

    assert (packaged.capacity, packaged.devices, packaged.allocatable) == (
        live.capacity,
        live.devices,
        live.allocatable,
    )
    assert packaged.requirements.keys() == live.requirements.keys()


def test_what_is_refused_comes_from_the_package_with_a_note() -> None:
    """A role that may not read prices still plans, and the plan says so."""
    region = Region()
    region.refused = {"GetProducts"}

    assert ("on-demand prices are not live (GetProducts: UnauthorizedOperation)",) == market_of(
        region, "us-east-1"
    ).notes


def test_where_aws_says_nothing_there_is_no_catalogue() -> None:
    """One that was asked to be live is not the packaged one."""
    region = Region()
    region.refused = set(ALL)

    with pytest.raises(CloudError, match=r"AWS us-east-1 says nothing: .*UnauthorizedOperation"):
        market_of(region, "us-east-1")


def test_where_nothing_has_a_price_there_is_none_either() -> None:
    """A region whose prices are in another currency than the package's, to a role that may not read prices."""
    region = Region("cn-north-1")
    region.refused = {"GetProducts"}

    with pytest.raises(CloudError, match=r"AWS cn-north-1 sells nothing: on-demand prices are not live"):
        asyncio.run(live_market(region, region.clock, "cn-north-1"))


def test_a_region_without_a_price_list_is_planned_by_estimates() -> None:
    """And each type says so."""
    region = Region("eu-west-1")
    region.refused = {"GetProducts"}
    market = asyncio.run(live_market(region, region.clock, "eu-west-1"))

    said = "on-demand prices are not live (GetProducts: UnauthorizedOperation); those of us-east-1 count"
    assert (said,) == tuple(market.notes)
    assert {"g5.xlarge"} == {kind.name for kind in market.types}
