"""What the machine room asks of the cloud, which it asks itself and not Kerf: a second witness of what was launched."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from tools.controlplane.machineroom.nodes import Ec2Machine

Reply = Mapping[str, Any]
RUNNING = "running"


class Ec2View:
    """Reads of EC2 and IAM through boto3 clients, which block: call them in a thread."""

    def __init__(self, ec2: Any, iam: Any) -> None:
        self._ec2, self._iam = ec2, iam
        self._roles: dict[str, str] = {}

    def running(self) -> Mapping[str, Reply]:
        """Every instance that runs, by id, as DescribeInstances has it."""
        pages = self._ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-state-name", "Values": [RUNNING]}], PaginationConfig={"PageSize": 1000}
        )
        groups = (group for page in pages for group in page["Reservations"])
        return {instance["InstanceId"]: instance for group in groups for instance in group["Instances"]}

    def machine(self, instance: Reply) -> Ec2Machine:
        """The instance with the role of its profile."""
        return Ec2Machine(
            instance["InstanceId"],
            instance["InstanceType"],
            instance["Placement"]["AvailabilityZone"],
            instance["PrivateDnsName"],
            [group["GroupId"] for group in instance.get("SecurityGroups", ())],
            self._role(instance.get("IamInstanceProfile", {}).get("Arn", "")),
        )

    def user_data(self, instance: str) -> str:
        """Its user data, decoded; empty where it has none."""
        found = self._ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
        return base64.b64decode(found.get("UserData", {}).get("Value", "")).decode(errors="replace")

    def image(self, image: str) -> str:
        """Its name; empty for one that the cloud does not know."""
        found: Sequence[Reply] = self._ec2.describe_images(
            Filters=[{"Name": "image-id", "Values": [image]}], IncludeDeprecated=True
        )["Images"]
        return next((named["Name"] for named in found), "")

    def _role(self, profile: str) -> str:
        if profile and profile not in self._roles:
            name = profile.rpartition("/")[2]
            roles = self._iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]
            self._roles[profile] = roles[0]["RoleName"] if roles else ""
        return self._roles.get(profile, "")
