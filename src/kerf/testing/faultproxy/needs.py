"""What a caller must be allowed to do for a call: its own action, and those that AWS checks beside it.

Sources, read 2026-11: "Actions, resources, and condition keys" of EC2 and IAM in AWS' Service Authorization Reference
(required resources, dependent actions), and "EC2 Fleet prerequisites" of the EC2 user guide: an instant fleet has no
role of its own, so what it launches is checked as the caller's RunInstances, CreateTags and PassRole.

The reference says too little in two places. RunInstances is also checked with the spot request
(terraform-aws-modules/terraform-aws-iam#276, aws/karpenter-provider-aws#5270), and ListInstanceProfiles with the path
that is asked for (kubernetes/kops#17854).

Tags of resources are known of instances, launch templates and instance profiles; of all else a request has none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.testing.faultproxy.calls import ApiCall, CallNeeds
from kerf.testing.faultproxy.instances import InstanceTable
from kerf.testing.faultproxy.lookups import Lookups
from kerf.testing.faultproxy.policies import Keys, Need
from kerf.testing.faultproxy.stock import SPOT, Stock
from kerf.testing.faultproxy.wire import EC2, CallRefused, Tree, listed

ACCOUNT = "123456789012"
SPOT_ROLE = "iam:CreateServiceLinkedRole"
"""EC2 makes the role of spot with the first spot request of an account, in the caller's name ("Service-linked role for
Spot Instance requests" of the EC2 user guide)."""
_RUN, _FLEET, _TAGS, _PASS = "ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateTags", "iam:PassRole"
_OF_SPOT = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
_REQUEST, _HELD = "aws:RequestTag", "aws:ResourceTag"
_MADE = ("instance", "volume", "network-interface", "spot-instances-request")
"""What a launch makes; the last of spot alone."""
_FLEET_CHECKS = ("fleet", "instance", "image", "launch-template", "placement-group", "subnet", "volume")
"""Kinds of resources that CreateFleet itself is checked with; the others are RunInstances' alone."""
_WITHOUT_ACCOUNT = ("image", "snapshot")
_KINDS = {"i": "instance", "lt": "launch-template", "vol": "volume", "eni": "network-interface", "subnet": "subnet"}
_PUBLIC = "/aws/service/"

Tags = Mapping[str, str]


@dataclass
class _Launch:
    """What one instance is made of; `tags` are those of what it makes, by kind."""

    data: Tree
    template: Tree
    image: str
    subnet: str
    is_spot: bool
    tags: Mapping[str, Tags]
    interfaces: Sequence[Tree] = field(default_factory=tuple)


class Needs:
    """Reads calls. `has_spot_role` is whether the account has the role of spot."""

    def __init__(self, lookups: Lookups, stock: Stock, instances: InstanceTable, region: str) -> None:
        self._lookups, self._stock, self._instances, self._region = lookups, stock, instances, region
        self.has_spot_role = True

    async def of(self, call: ApiCall) -> CallNeeds:
        """All that the call needs. Raises CallRefused where it names a launch template that is not there."""
        if call.protocol != EC2:
            return CallNeeds(await self._of_service(call))
        wanted = call.parameters
        if call.action == "CreateFleet":
            return await self._of_fleet(call)
        if call.action == "RunInstances":
            return CallNeeds(await self._of_run(wanted))
        if call.action == "CreateLaunchTemplate":
            tags = _asked(wanted, "launch-template")
            return CallNeeds((self._made(call.name, "launch-template", tags), *self._tagged(call, "launch-template")))
        if call.action == "DeleteLaunchTemplate":
            return CallNeeds(await self._of_template(call))
        if call.action in ("TerminateInstances", "CreateTags", "DeleteTags"):
            ids = listed(wanted, "InstanceId") or listed(wanted, "ResourceId")
            return CallNeeds(tuple(self._existing(call, each) for each in ids if self._is_there(each)))
        return CallNeeds((self._need(call.name, "*"),))

    def _need(self, action: str, resource: str, *keys: tuple[str, str]) -> Need:
        return Need(action, resource, tuple(sorted({"aws:RequestedRegion": self._region, **dict(keys)}.items())))

    def _arn(self, kind: str, name: str = "*") -> str:
        account = "" if kind in _WITHOUT_ACCOUNT else ACCOUNT
        return f"arn:aws:ec2:{self._region}:{account}:{kind}/{name}"

    def _made(self, action: str, kind: str, tags: Tags, *more: tuple[str, str]) -> Need:
        """The action on a thing that does not exist yet."""
        return self._need(action, self._arn(kind), *_keys(_REQUEST, tags), *more)

    def _tagged(self, call: ApiCall, kind: str) -> list[Need]:
        """Tags at creation are checked as CreateTags on the kind; without tags nothing is."""
        tags = _asked(call.parameters, kind)
        return [self._made(_TAGS, kind, tags, ("ec2:CreateAction", call.action))] if tags else []

    def _is_there(self, name: str) -> bool:
        """An instance that EC2 does not know is answered so before anything is checked."""
        return not name.startswith("i-") or self._instances.get(name) is not None

    def _existing(self, call: ApiCall, name: str) -> Need:
        row = self._instances.get(name)
        asked = {tag["Key"]: tag.get("Value", "") for tag in listed(call.parameters, "Tag")}
        kind = _KINDS.get(name.partition("-")[0])
        resource = self._arn(kind, name) if kind is not None else "*"
        held = row.tags if row is not None else {}
        return self._need(call.name, resource, *_keys(_HELD, held), *_keys(_REQUEST, asked))

    async def _of_template(self, call: ApiCall) -> tuple[Need, ...]:
        try:
            return (await self._template(call.name, call.parameters),)
        except CallRefused:
            return ()

    async def _template(self, action: str, specification: Tree) -> Need:
        number, tags = await self._lookups.template_tags(specification)
        return self._need(action, self._arn("launch-template", number), *_keys(_HELD, tags))

    async def _of_fleet(self, call: ApiCall) -> CallNeeds:
        wanted = call.parameters
        is_spot = wanted["TargetCapacitySpecification"].get("DefaultTargetCapacityType") == SPOT
        own = [self._made(_FLEET, "fleet", _asked(wanted, "fleet")), *self._tagged(call, "fleet")]
        pools = []
        for pool in await self._lookups.pools(wanted):
            image = pool.override.get("ImageId") or pool.data.get("imageId", "")
            tags = _launch_tags(wanted, pool.data)
            launch = _Launch(pool.data, pool.template, image, pool.subnet, is_spot, tags)
            needs = await self._of_launch(launch)
            kinds = tuple(f":{kind}/" for kind in _FLEET_CHECKS)
            checked = (need for need in needs if need.action == _RUN and any(kind in need.resource for kind in kinds))
            own += [Need(_FLEET, need.resource, need.keys) for need in checked]
            pools.append(tuple(needs))
        # A dry run of a fleet launches nothing, so nothing of a launch is checked.
        return CallNeeds(tuple(dict.fromkeys(own)), () if call.is_dry_run else tuple(pools))

    async def _of_run(self, wanted: Tree) -> tuple[Need, ...]:
        template = wanted.get("LaunchTemplate") or {}
        data = await self._lookups.template(template) if template else {}
        interfaces = listed(wanted, "NetworkInterface")
        subnet = next((found for each in interfaces if (found := each.get("SubnetId"))), wanted.get("SubnetId", ""))
        image = wanted.get("ImageId") or data.get("imageId", "")
        is_spot = SPOT in (wanted.get("InstanceMarketOptions") or {}).get("MarketType", "")
        tags = _launch_tags(wanted, data)
        return tuple(await self._of_launch(_Launch(data, template, image, subnet or "*", is_spot, tags, interfaces)))

    async def _of_launch(self, launch: _Launch) -> list[Need]:
        data = launch.data
        used = [("image", launch.image), ("subnet", launch.subnet)]
        used += [("security-group", each) for each in _groups(launch)]
        devices = [each.get("ebs") or {} for each in listed(data, "blockDeviceMappingSet")]
        used += [("snapshot", each["snapshotId"]) for each in devices if each.get("snapshotId")]
        target = (data.get("capacityReservationSpecification") or {}).get("capacityReservationTarget") or {}
        if target.get("capacityReservationId"):
            used.append(("capacity-reservation", target["capacityReservationId"]))
        group = self._stock.placed(data.get("placement") or {})
        if group:
            used.append(("placement-group", group))
        needs = [self._need(_RUN, self._arn(kind, name)) for kind, name in used]
        if launch.template:
            needs.append(await self._template(_RUN, launch.template))
        for kind in _MADE if launch.is_spot else _MADE[:-1]:
            tags = launch.tags.get(kind) or {}
            needs.append(self._made(_RUN, kind, tags))
            needs += [self._made(_TAGS, kind, tags, ("ec2:CreateAction", "RunInstances"))] if tags else []
        for role in await self._lookups.roles(data):
            needs.append(self._need(_PASS, role, ("iam:PassedToService", "ec2.amazonaws.com")))
        if launch.is_spot and not self.has_spot_role:
            needs.append(self._need(SPOT_ROLE, _OF_SPOT, ("iam:AWSServiceName", "spot.amazonaws.com")))
        return needs

    async def _of_service(self, call: ApiCall) -> tuple[Need, ...]:
        wanted = call.parameters
        if call.service == "iam":
            return tuple(await self._of_iam(call))
        resource = "*"
        if call.service == "eks" and "name" in wanted:
            resource = f"arn:aws:eks:{self._region}:{ACCOUNT}:cluster/{wanted['name']}"
        elif call.service == "sqs":
            queue = wanted.get("QueueName") or str(wanted.get("QueueUrl", "*")).rpartition("/")[2]
            resource = f"arn:aws:sqs:{self._region}:{ACCOUNT}:{queue}"
        elif call.service == "ssm" and "Name" in wanted:
            name = str(wanted["Name"])
            account = "" if name.startswith(_PUBLIC) else ACCOUNT
            resource = f"arn:aws:ssm:{self._region}:{account}:parameter/{name.removeprefix('/')}"
        return (self._need(call.name, resource),)

    async def _of_iam(self, call: ApiCall) -> list[Need]:
        wanted, profiles = call.parameters, f"arn:aws:iam::{ACCOUNT}:instance-profile"
        if call.action == "ListInstanceProfiles":
            return [self._need(call.name, profiles + wanted.get("PathPrefix", "/"))]
        name = wanted.get("InstanceProfileName")
        if name is None:
            return [self._need(call.name, "*")]
        asked = _keys(_REQUEST, {tag["Key"]: tag.get("Value", "") for tag in _members(wanted, "Tags")})
        held: Keys = ()
        if call.action == "CreateInstanceProfile":
            resource = f"{profiles}{wanted.get('Path', '/')}{name}"
        else:
            found = await self._lookups.profile(name)
            resource = str(found.get("Arn") or f"{profiles}/{name}")
            held = _keys(_HELD, {tag["Key"]: tag["Value"] for tag in listed(found, "Tags")})
        needs = [self._need(call.name, resource, *held, *asked)]
        if call.action == "CreateInstanceProfile" and asked:
            needs.append(self._need("iam:TagInstanceProfile", resource, *asked))
        if call.action == "AddRoleToInstanceProfile":
            role = await self._lookups.role(wanted["RoleName"])
            needs.append(self._need(_PASS, role, ("iam:PassedToService", "ec2.amazonaws.com")))
        return needs


def _keys(place: str, tags: Tags) -> Keys:
    return tuple((f"{place}/{key}", tags[key]) for key in sorted(tags))


def _members(wanted: Tree, name: str) -> list[Tree]:
    """A list of IAM: `Tags.member.1.Key`."""
    held = wanted.get(name)
    return listed(held, "member") if isinstance(held, dict) else []


def _asked(wanted: Tree, kind: str) -> Tags:
    """The tags that a request sets on a kind."""
    parts = listed(wanted, "TagSpecification") or listed(wanted, "TagSpecifications")
    return _of_kind(((each.get("ResourceType"), listed(each, "Tag") or listed(each, "Tags")) for each in parts), kind)


def _of_kind(parts: Iterable[tuple[object, list[Tree]]], kind: str) -> Tags:
    tags = [tag for of_kind, tags in parts if of_kind == kind for tag in tags]
    return {tag.get("Key") or tag.get("key", ""): tag.get("Value") or tag.get("value", "") for tag in tags}


def _launch_tags(wanted: Tree, data: Tree) -> Mapping[str, Tags]:
    """Tags of what a launch makes: those of the template, and over them those of the request."""
    parts = [(each.get("resourceType"), listed(each, "tagSet")) for each in listed(data, "tagSpecificationSet")]
    return {kind: {**_of_kind(parts, kind), **_asked(wanted, kind)} for kind in _MADE}


def _groups(launch: _Launch) -> list[str]:
    """Interfaces of the request take the place of the template's; without groups it is the one of the VPC."""
    named = [group for each in launch.interfaces for group in listed(each, "SecurityGroupId")]
    if not launch.interfaces:
        sets = [listed(each, "groupSet") for each in listed(launch.data, "networkInterfaceSet")]
        found = [*listed(launch.data, "securityGroupIdSet"), *(group for each in sets for group in each)]
        named = [group if isinstance(group, str) else group.get("groupId", "") for group in found]
    return list(dict.fromkeys(named)) or ["*"]
