"""What moto does not have, through boto3: images, parameters, prices, groups, clusters, profiles by path."""

import json

import pytest
from botocore.exceptions import ClientError

from kerf.testing.faultproxy.images import CloudImage
from kerf.testing.faultproxy.services import CloudCluster
from kerf.testing.faultproxy.stock import CloudPlacementGroup, CloudReservation
from tests.awscloud import AwsCloud
from tests.testing.faultproxy.fleets import code

EKS = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64"


def test_a_release_is_what_recommended_names(aws_cloud: AwsCloud) -> None:
    """The new image of a line takes the place of the old one; both have a parameter of their own."""
    old = aws_cloud.proxy.images.release_al2023("1.34", "v20260901", variant="nvidia")
    aws_cloud.clock.advance(60)
    new = aws_cloud.proxy.images.release_al2023("1.34", "v20260917", variant="nvidia")
    ssm = aws_cloud.client("ssm")

    def parameter(name: str) -> str:
        return str(ssm.get_parameter(Name=f"{EKS}/nvidia/{name}/image_id")["Parameter"]["Value"])

    assert (new.id, old.id) == (parameter("recommended"), parameter(old.name))
    with pytest.raises(ClientError) as error:
        ssm.get_parameter(Name=f"{EKS}/neuron/recommended/image_id")
    assert "ParameterNotFound" == code(error.value)


def test_bottlerocket_has_its_own_parameters(aws_cloud: AwsCloud) -> None:
    """Without a variant and with one."""
    image = aws_cloud.proxy.images.release_bottlerocket("1.34", "1.47.0", variant="nvidia")

    name = "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/latest/image_id"
    assert image.id == aws_cloud.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]


def test_images_are_found_by_what_moto_forgets(aws_cloud: AwsCloud) -> None:
    """Architecture, tags, owner and date; a deprecated one is left out unless it is asked for."""
    images = aws_cloud.proxy.images
    images.add(CloudImage("ami-a", "mine-1", "arm64", 1_767_500_000, "self", "123456789012", tags={"team": "a"}))
    images.add(CloudImage("ami-b", "mine-2", "arm64", 1_767_500_001, "self", "123456789012", is_deprecated=True))
    ec2 = aws_cloud.client("ec2")
    named = [{"Name": "name", "Values": ["mine-*"]}]

    (found,) = ec2.describe_images(Owners=["self"], Filters=[*named, {"Name": "tag:team", "Values": ["a"]}])["Images"]
    every = ec2.describe_images(Filters=named, IncludeDeprecated=True)["Images"]

    assert ("ami-a", "arm64", "2026-01-04T04:13:20.000Z") == tuple(
        found[key] for key in ("ImageId", "Architecture", "CreationDate")
    )
    assert ["ami-a", "ami-b"] == [image["ImageId"] for image in every]
    assert ["ami-a"] == [image["ImageId"] for image in ec2.describe_images(Filters=named)["Images"]]


def test_prices_are_those_that_were_set(aws_cloud: AwsCloud) -> None:
    """On demand as texts of JSON in pages, spot by type and zone."""
    for kind, usd in (("g5.xlarge", 1.006), ("g6f.large", 0.202), ("m5.large", 0.096)):
        aws_cloud.proxy.stock.price(kind, usd)
        aws_cloud.proxy.stock.spot_price(kind, "us-east-1a", usd / 2)
    pages = (
        aws_cloud.client("pricing")
        .get_paginator("get_products")
        .paginate(
            ServiceCode="AmazonEC2",
            Filters=[{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"}],
            PaginationConfig={"PageSize": 2},
        )
    )
    prices = {}
    for entry in (json.loads(text) for page in pages for text in page["PriceList"]):
        (term,) = entry["terms"]["OnDemand"].values()
        (dimension,) = term["priceDimensions"].values()
        prices[entry["product"]["attributes"]["instanceType"]] = float(dimension["pricePerUnit"]["USD"])
    history = aws_cloud.client("ec2").describe_spot_price_history(InstanceTypes=["g6f.large"])["SpotPriceHistory"]

    assert {"g5.xlarge": 1.006, "g6f.large": 0.202, "m5.large": 0.096} == prices
    assert [("us-east-1a", "0.101000")] == [(row["AvailabilityZone"], row["SpotPrice"]) for row in history]


def test_reservations_and_groups_are_those_that_were_added(aws_cloud: AwsCloud) -> None:
    """By tag, id and name; an unknown id is an error."""
    stock, ec2 = aws_cloud.proxy.stock, aws_cloud.client("ec2")
    stock.reserve(CloudReservation("cr-1", "p5.48xlarge", "us-east-1a", 2, kind="capacity-block", end_s=2e9))
    stock.reserve(CloudReservation("cr-2", "m5.large", "us-east-1b", 3, tags={"team": "a"}))
    stock.group(CloudPlacementGroup("pg-1", "racks", "partition", partitions=3))

    tagged = ec2.describe_capacity_reservations(Filters=[{"Name": "tag:team", "Values": ["a"]}])
    (block,) = ec2.describe_capacity_reservations(CapacityReservationIds=["cr-1"])["CapacityReservations"]
    (group,) = ec2.describe_placement_groups(GroupNames=["racks"])["PlacementGroups"]

    assert ["cr-2"] == [row["CapacityReservationId"] for row in tagged["CapacityReservations"]]
    assert ("capacity-block", 2033) == (block["ReservationType"], block["EndDate"].year)
    assert ("partition", 3) == (group["Strategy"], group["PartitionCount"])
    with pytest.raises(ClientError) as error:
        ec2.describe_placement_groups(GroupNames=["none"])
    assert "InvalidPlacementGroup.Unknown" == code(error.value)


def test_a_cluster_has_the_endpoint_that_a_test_gives(aws_cloud: AwsCloud) -> None:
    """moto invents one."""
    aws_cloud.proxy.services.cluster(CloudCluster("prod", "https://127.0.0.1:6443", "Q0E=", "1.34"))

    found = aws_cloud.client("eks").describe_cluster(name="prod")["cluster"]
    assert ("https://127.0.0.1:6443", "Q0E=", "1.34") == (
        found["endpoint"],
        found["certificateAuthority"]["data"],
        found["version"],
    )


def test_profiles_are_listed_by_path(aws_cloud: AwsCloud) -> None:
    """moto lists them all."""
    iam = aws_cloud.client("iam")
    iam.create_instance_profile(InstanceProfileName="other")
    iam.create_instance_profile(InstanceProfileName="ours", Path="/karpenter/us-east-1/prod/uid/")

    found = iam.list_instance_profiles(PathPrefix="/karpenter/us-east-1/prod/")["InstanceProfiles"]
    assert ["ours"] == [profile["InstanceProfileName"] for profile in found]


def test_types_are_asked_of_moto_once(aws_cloud: AwsCloud) -> None:
    """g6f has its slice; moto needs two seconds for all types, and the proxy keeps the reply."""
    ec2 = aws_cloud.client("ec2")
    for _ in range(2):
        (found,) = ec2.describe_instance_types(InstanceTypes=["g6f.large"])["InstanceTypes"]

    (gpu,) = found["GpuInfo"]["Gpus"]
    assert (0, 2861) == (gpu["Count"], gpu["MemoryInfo"]["SizeInMiB"])
