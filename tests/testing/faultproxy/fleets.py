"""A launch template and fleets from it, through boto3, for the tests of the proxy."""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from tests.awscloud import AwsCloud

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
TEMPLATE = "workers"
Reply = dict[str, Any]


class Fleets:
    """Fleets in the default VPC of a cloud, from one launch template."""

    def __init__(self, cloud: AwsCloud, **data: Any) -> None:
        self.cloud, self.ec2 = cloud, cloud.client("ec2")
        found = self.ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": list(ZONES)}])["Subnets"]
        self.subnets = {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in found}
        self.ec2.create_launch_template(LaunchTemplateName=TEMPLATE, LaunchTemplateData={"ImageId": "ami-1", **data})

    def ask(self, *overrides: Reply, count: int = 1, kind: str = "on-demand", **more: Any) -> Reply:
        """What CreateFleet answers. An override is `pool(...)`."""
        template = {"LaunchTemplateName": TEMPLATE, "Version": "$Latest"}
        config = {"LaunchTemplateSpecification": template, "Overrides": list(overrides)}
        target = {"TotalTargetCapacity": count, "DefaultTargetCapacityType": kind}
        reply: Reply = self.ec2.create_fleet(
            Type="instant", LaunchTemplateConfigs=[config], TargetCapacitySpecification=target, **more
        )
        return reply

    def pool(self, instance_type: str = "m5.large", zone: str = "us-east-1a", **more: Any) -> Reply:
        """An override for a type in a zone."""
        return {"InstanceType": instance_type, "SubnetId": self.subnets[zone], **more}

    def launch(self, **more: Any) -> str:
        """The id of one instance."""
        (instance,) = ids(self.ask(self.pool(), **more))
        return instance

    def state(self, instance: str) -> str:
        """The state of an instance, as DescribeInstances has it."""
        return str(self.described(instance)["State"]["Name"])

    def described(self, instance: str) -> Reply:
        """An instance as DescribeInstances has it."""
        reply: Reply = self.ec2.describe_instances(InstanceIds=[instance])
        return dict(reply["Reservations"][0]["Instances"][0])


def ids(reply: Reply) -> list[str]:
    """The ids in a reply of CreateFleet."""
    return [instance for part in reply["Instances"] for instance in part["InstanceIds"]]


def pools(parts: Sequence[Reply]) -> list[tuple[str, str]]:
    """Type and zone of each part of a reply of CreateFleet."""
    overrides = [part["LaunchTemplateAndOverrides"]["Overrides"] for part in parts]
    return [(override["InstanceType"], override["AvailabilityZone"]) for override in overrides]


def code(error: ClientError) -> str:
    """The error code."""
    return str(error.response["Error"]["Code"])
