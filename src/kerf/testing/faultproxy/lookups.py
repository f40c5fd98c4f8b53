"""What the proxy has to know of moto's objects to launch an instance: templates, subnets, groups, profiles, zones.

All of it is asked of moto once and kept; a change of a launch template or a profile through the proxy forgets it.
"""

from dataclasses import dataclass

from kerf.testing.faultproxy.fleet import FleetPool
from kerf.testing.faultproxy.upstream import Upstream
from kerf.testing.faultproxy.wire import CallRefused, Tree, fields, listed


@dataclass(frozen=True, slots=True)
class SubnetPlace:
    """Where a subnet lies."""

    id: str
    zone: str
    zone_id: str


class Lookups:
    """Answers of moto, kept."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._templates: dict[tuple[tuple[str, str], ...], Tree] = {}
        self._tags: dict[str, tuple[str, dict[str, str]]] = {}
        self._subnets: dict[tuple[str, str], SubnetPlace] = {}
        self._groups: dict[str, str] = {}
        self._zones: dict[str, frozenset[str]] = {}

    def forget_templates(self) -> None:
        """A template has changed."""
        self._templates.clear()
        self._tags.clear()

    async def template(self, specification: Tree) -> Tree:
        """The data of a template's version. Raises CallRefused as EC2 does where there is none."""
        key = tuple(fields(specification))
        if key not in self._templates:
            asked = {name: value for name, value in specification.items() if name != "Version"}
            asked["LaunchTemplateVersion"] = [specification.get("Version", "$Default")]
            found = await self._upstream.query("ec2", "DescribeLaunchTemplateVersions", asked)
            versions = listed(found, "launchTemplateVersionSet")
            if not versions:
                raise CallRefused(
                    "InvalidLaunchTemplateId.VersionNotFound", "The launch template version does not exist"
                )
            self._templates[key] = versions[0]["launchTemplateData"] or {}
        return self._templates[key]

    async def template_tags(self, specification: Tree) -> tuple[str, dict[str, str]]:
        """Id and tags of a template that is named by id or name. Raises CallRefused where there is none."""
        name = specification.get("LaunchTemplateName") or specification.get("LaunchTemplateId", "")
        if name not in self._tags:
            named = "LaunchTemplateName" if "LaunchTemplateName" in specification else "LaunchTemplateId"
            (found,) = listed(
                await self._upstream.query("ec2", "DescribeLaunchTemplates", {named: [name]}), "launchTemplates"
            )
            tags = {tag["key"]: tag.get("value", "") for tag in listed(found, "tagSet")}
            self._tags[name] = found["launchTemplateId"], tags
        return self._tags[name]

    async def pools(self, wanted: Tree) -> list[FleetPool]:
        """The overrides of a fleet, in the order of the request, each with its template, type, subnet and zone."""
        made: list[FleetPool] = []
        for config in listed(wanted, "LaunchTemplateConfigs"):
            template = config["LaunchTemplateSpecification"]
            data = await self.template(template)
            for override in listed(config, "Overrides") or [{}]:
                made.append(await self._pool(len(made), template, override, data))
        return made

    async def _pool(self, number: int, template: Tree, override: Tree, data: Tree) -> FleetPool:
        subnet = await self.subnet(_subnet(override, data), override.get("AvailabilityZone", ""))
        kind = override.get("InstanceType") or data.get("instanceType", "")
        specification = data.get("capacityReservationSpecification") or {}
        target = specification.get("capacityReservationTarget") or {}
        return FleetPool(
            number,
            template,
            {**override, "InstanceType": kind, "SubnetId": subnet.id},
            kind,
            subnet.id,
            subnet.zone,
            float(override.get("Priority", "inf")),
            target.get("capacityReservationId", ""),
            data=data,
        )

    async def profile(self, name: str) -> Tree:
        """An instance profile; empty where there is none."""
        try:
            found = await self._upstream.query("iam", "GetInstanceProfile", {"InstanceProfileName": name})
        except CallRefused:
            return {}
        made: Tree = found["GetInstanceProfileResult"]["InstanceProfile"]
        return made

    async def roles(self, data: Tree) -> list[str]:
        """The ARNs of the roles that a template gives its instances."""
        profile = data.get("iamInstanceProfile") or {}
        name = profile.get("name") or (profile.get("arn") or "").rpartition("/")[2]
        return [role["Arn"] for role in listed(await self.profile(name), "Roles")] if name else []

    async def role(self, name: str) -> str:
        """The ARN of a role, whether or not it exists."""
        try:
            found = await self._upstream.query("iam", "GetRole", {"RoleName": name})
        except CallRefused:
            return f"arn:aws:iam::123456789012:role/{name}"
        return str(found["GetRoleResult"]["Role"]["Arn"])

    async def subnet(self, subnet: str, zone: str) -> SubnetPlace:
        """A subnet by its id, else a default one of the zone, else any default one. Raises CallRefused."""
        if (subnet, zone) not in self._subnets:
            terms = [{"Name": "default-for-az", "Value": ["true"]}]
            terms += [{"Name": "availability-zone", "Value": [zone]}] if zone else []
            asked: Tree = {"SubnetId": [subnet]} if subnet else {"Filter": terms}
            items = listed(await self._upstream.query("ec2", "DescribeSubnets", asked), "subnetSet")
            if not items:
                raise CallRefused("MissingInput", f"No subnets found for the default VPC in zone '{zone}'")
            first = min(items, key=lambda item: str(item["availabilityZone"]))
            place = SubnetPlace(first["subnetId"], first["availabilityZone"], first.get("availabilityZoneId", ""))
            self._subnets[subnet, zone] = place
        return self._subnets[subnet, zone]

    async def groups(self, data: Tree) -> tuple[tuple[str, str], ...]:
        """Id and name of the security groups of a template. Raises CallRefused for one that does not exist."""
        ids = listed(data, "securityGroupIdSet")
        ids = ids or [group for item in listed(data, "networkInterfaceSet") for group in listed(item, "groupSet")]
        ids = [group if isinstance(group, str) else group.get("groupId", "") for group in ids]
        missing = [group for group in ids if group not in self._groups]
        if missing:
            found = await self._upstream.query("ec2", "DescribeSecurityGroups", {"GroupId": missing})
            self._groups |= {item["groupId"]: item["groupName"] for item in listed(found, "securityGroupInfo")}
        return tuple((group, self._groups[group]) for group in dict.fromkeys(ids))

    async def refusal(self, data: Tree) -> tuple[str, str] | None:
        """Why no instance of the template can start: a group or a profile that does not exist; None where it can."""
        profile = data.get("iamInstanceProfile") or {}
        name = profile.get("name") or (profile.get("arn") or "").rpartition("/")[2]
        try:
            await self.groups(data)
            if name:
                await self._upstream.query("iam", "GetInstanceProfile", {"InstanceProfileName": name})
        except CallRefused as error:
            if error.code != "NoSuchEntity":
                return error.code, error.message
            text = f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
            return "InvalidParameterValue", text
        return None

    async def is_sold(self, instance_type: str, zone: str) -> bool:
        """Whether the type is offered in the zone, by moto's copy of EC2's offerings."""
        if instance_type not in self._zones:
            terms = [{"Name": "instance-type", "Value": [instance_type]}]
            asked = {"LocationType": "availability-zone", "Filter": terms}
            found = await self._upstream.query("ec2", "DescribeInstanceTypeOfferings", asked)
            items = listed(found, "instanceTypeOfferingSet")
            self._zones[instance_type] = frozenset(item["location"] for item in items)
        return zone in self._zones[instance_type]

    async def instances(self, ids: list[str]) -> list[Tree]:
        """moto's elements of instances, in the order of the ids."""
        if not ids:
            return []
        found = await self._upstream.query("ec2", "DescribeInstances", {"InstanceId": ids})
        items = [item for group in listed(found, "reservationSet") for item in listed(group, "instancesSet")]
        return sorted(items, key=lambda item: ids.index(item["instanceId"]))


def _subnet(override: Tree, data: Tree) -> str:
    interfaces = listed(data, "networkInterfaceSet")
    of_template = next((found for item in interfaces if (found := item.get("subnetId"))), "")
    return str(override.get("SubnetId") or of_template)
