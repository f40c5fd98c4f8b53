"""CreateFleet and RunInstances: the proxy decides what is launched where, moto launches it.

moto launches the first override of a fleet, so each chosen override becomes a fleet of its own there. What moto leaves
out of an instance (groups, profile, spot request) comes from the launch template. The reply is ours.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import sha256

from kerf.testing.faultproxy.calls import ApiCall
from kerf.testing.faultproxy.fleet import Allocation, FleetPool, allocate, capacity_type_of, ranked
from kerf.testing.faultproxy.images import ImageTable
from kerf.testing.faultproxy.instances import CloudInstance, InstanceTable
from kerf.testing.faultproxy.lookups import Lookups
from kerf.testing.faultproxy.stock import ON_DEMAND, RESERVED, SPOT, Stock
from kerf.testing.faultproxy.upstream import Upstream, read_reply
from kerf.testing.faultproxy.wire import CallRefused, Tree, WireReply, ec2_reply, form, listed

_LEFT_OUT = ("ClientToken", "SpotOptions", "OnDemandOptions", "ReservedCapacityOptions")
_ACCOUNT = "123456789012"


class FleetLaunches:
    """Launches by the rules of EC2 that moto lacks."""

    def __init__(
        self, upstream: Upstream, lookups: Lookups, stock: Stock, images: ImageTable, instances: InstanceTable
    ) -> None:
        self._upstream, self._lookups, self._stock = upstream, lookups, stock
        self._images, self._instances = images, instances
        self._fleets = 0

    async def create_fleet(self, call: ApiCall, now_s: float) -> WireReply:
        """The reply of an instant fleet. Raises CallRefused for a request that EC2 would not take."""
        wanted = call.parameters
        if wanted.get("Type") != "instant":
            raise CallRefused("InvalidParameterValue", "the proxy knows fleets of type instant only")
        target = wanted["TargetCapacitySpecification"]
        kind, count = target.get("DefaultTargetCapacityType", ON_DEMAND), int(target["TotalTargetCapacity"])
        candidates = await self._candidates(call)
        strategy, minimum = _options(wanted, kind)
        given = allocate(ranked(candidates, strategy, kind, self._stock), count, kind, self._stock)
        if sum(taken for _, taken in given.chosen) < minimum:
            self._give_back(given, kind)
            given.chosen = []
        self._fleets += 1
        fleet = f"fleet-{self._fleets:08d}"
        launched = [await self._launch(call, fleet, candidate, taken, kind, now_s) for candidate, taken in given.chosen]
        return ec2_reply("CreateFleet", _reply(fleet, given, launched, kind))

    async def run_instances(self, call: ApiCall, now_s: float) -> WireReply:
        """moto's reply; its instances go into the table."""
        count = int(call.parameters.get("MaxCount", "1"))
        kind = call.parameters.get("InstanceType", "")
        zone = call.parameters.get("Placement", {}).get("AvailabilityZone", "*")
        left = self._stock.left(kind, zone, ON_DEMAND)
        if left is not None and left < count:
            raise CallRefused(
                "InsufficientInstanceCapacity", f"We currently do not have sufficient {kind} capacity.", 500
            )
        reply = await self._upstream.forward(call)
        for item in listed(read_reply(reply), "instancesSet"):
            self._instances.add(_row(item, now_s, _tags_of(call.parameters, "instance")))
        return reply

    async def _candidates(self, call: ApiCall) -> list[FleetPool]:
        pools = await self._lookups.pools(call.parameters)
        refusals: dict[str, tuple[str, str] | None] = {}
        for pool in pools:
            name = str(sorted(pool.template.items()))
            if name not in refusals:
                refusals[name] = await self._lookups.refusal(pool.data)
        made = [replace(pool, refusal=refusals[str(sorted(pool.template.items()))]) for pool in pools]
        return [replace(pool, refusal=pool.refusal or await self._misfit(pool) or _denied(call, pool)) for pool in made]

    async def _misfit(self, candidate: FleetPool) -> tuple[str, str] | None:
        """Why the override can nowhere be launched; None where it can."""
        kind, zone = candidate.instance_type, candidate.zone
        if self._stock.is_withdrawn(kind, zone) or not await self._lookups.is_sold(kind, zone):
            text = (
                f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({zone})."
            )
            return "InvalidFleetConfiguration", text
        if self._stock.is_exhausted(candidate.subnet):
            text = f"There are not enough free addresses in subnet '{candidate.subnet}' to satisfy the request."
            return "InsufficientFreeAddressesInSubnet", text
        image = candidate.override.get("ImageId", "")
        if image and not self._images.known(image):
            return "InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist"
        return None

    def _give_back(self, given: Allocation, kind: str) -> None:
        for candidate, taken in given.chosen:
            reservation = self._stock.reservations.get(candidate.reservation)
            if reservation is None:
                self._stock.take(candidate.instance_type, candidate.zone, kind, -taken)
            else:
                reservation.left += taken

    async def _launch(
        self, call: ApiCall, fleet: str, candidate: FleetPool, count: int, kind: str, now_s: float
    ) -> list[str]:
        """The ids of what moto launched for one override."""
        override = {key: value for key, value in candidate.override.items() if key != "Priority"}
        config = {"LaunchTemplateSpecification": candidate.template, "Overrides": [override]}
        parts = {key: value for key, value in call.parameters.items() if key not in _LEFT_OUT}
        target = {"TotalTargetCapacity": count, "DefaultTargetCapacityType": SPOT if kind == SPOT else ON_DEMAND}
        parts |= {"LaunchTemplateConfigs": [config], "TargetCapacitySpecification": target}
        made = read_reply(
            await self._upstream.forward(call, form({"Action": call.action, "Version": "2016-11-15", **parts}))
        )
        ids = [name for item in listed(made, "fleetInstanceSet") for name in listed(item, "instanceIds")]
        data = await self._lookups.template(candidate.template)
        groups = await self._lookups.groups(data)
        subnet = await self._lookups.subnet(candidate.subnet, "")
        for item in await self._lookups.instances(ids):
            row = _row(item, now_s, {**_template_tags(data), **_tags_of(call.parameters, "instance")})
            row.tags["aws:ec2:fleet-id"] = fleet
            row.instance_type, row.zone, row.zone_id = candidate.instance_type, subnet.zone, subnet.zone_id
            row.image = candidate.override.get("ImageId") or data.get("imageId", "")
            row.groups, row.profile = groups, _profile_arn(data)
            row.capacity_type, row.reservation = capacity_type_of(kind, candidate), candidate.reservation
            row.client_token = call.parameters.get("ClientToken", "")
            row.placement_group = self._stock.placed(data.get("placement") or {})
            if row.capacity_type == SPOT:
                row.spot_request = f"sir-{sha256(row.id.encode()).hexdigest()[:8]}"
            self._instances.add(row)
        return ids


class Tokens:
    """Replies by client token: the same token and request give the same reply, another request gives an error.

    EC2 keeps a token for 24 hours at least; here it stays until the proxy is reset. The reply of a fleet that got
    nothing is kept as well, which is what EC2's documents say of any fleet; it was not tried there.
    """

    def __init__(self) -> None:
        self._replies: dict[tuple[str, str], tuple[str, WireReply]] = {}
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def once(self, call: ApiCall, work: Callable[[], Awaitable[WireReply]]) -> WireReply:
        """The reply of the first call with the token of this one. Raises CallRefused where the request is another."""
        key = (call.action, call.parameters.get("ClientToken", ""))
        if not key[1]:
            return await work()
        asked = sha256(form({**call.parameters, "ClientToken": ""})).hexdigest()
        async with self._locks[key]:
            if key in self._replies:
                before, reply = self._replies[key]
                if before != asked:
                    text = f"The request uses the same client token {key[1]} as a previous, but non-identical request."
                    raise CallRefused("IdempotentParameterMismatch", text)
                return reply
            reply = await work()
            if reply.is_good:
                self._replies[key] = (asked, reply)
            return reply


def _options(wanted: Tree, kind: str) -> tuple[str, int]:
    options = wanted.get("SpotOptions" if kind == SPOT else "OnDemandOptions") or {}
    strategy = options.get("AllocationStrategy", "lowest-price")
    return {"lowestPrice": "lowest-price"}.get(strategy, strategy), int(options.get("MinTargetCapacity", "0"))


def _denied(call: ApiCall, pool: FleetPool) -> tuple[str, str] | None:
    """Why the caller may not launch it; None where it may."""
    refused = call.refusal(call.needs.pools[pool.number])
    return (refused.code, refused.message) if refused is not None else None


def _tags_of(wanted: Tree, resource: str) -> dict[str, str]:
    return {
        tag["Key"]: tag.get("Value", "")
        for part in listed(wanted, "TagSpecification") or listed(wanted, "TagSpecifications")
        if part.get("ResourceType") == resource
        for tag in listed(part, "Tag") or listed(part, "Tags")
    }


def _template_tags(data: Tree) -> dict[str, str]:
    return {
        tag["key"]: tag.get("value", "")
        for part in listed(data, "tagSpecificationSet")
        if part.get("resourceType") == "instance"
        for tag in listed(part, "tagSet")
    }


def _profile_arn(data: Tree) -> str:
    profile = data.get("iamInstanceProfile") or {}
    if profile.get("arn"):
        return str(profile["arn"])
    return f"arn:aws:iam::{_ACCOUNT}:instance-profile/{profile['name']}" if profile.get("name") else ""


def _row(item: Tree, now_s: float, tags: dict[str, str]) -> CloudInstance:
    """A row from moto's element of DescribeInstances or RunInstances."""
    return CloudInstance(
        id=item["instanceId"],
        instance_type=item["instanceType"],
        zone=item["placement"]["availabilityZone"],
        subnet=item.get("subnetId", ""),
        vpc=item.get("vpcId", ""),
        image=item.get("imageId", ""),
        architecture=item.get("architecture") or "x86_64",
        dns_name=item.get("privateDnsName", ""),
        address=item.get("privateIpAddress", ""),
        launched_s=now_s,
        tags=dict(tags),
    )


def _reply(fleet: str, given: Allocation, launched: Sequence[Sequence[str]], kind: str) -> Tree:
    def pool(candidate: FleetPool) -> Tree:
        override = candidate.override
        overrides = {
            "instanceType": candidate.instance_type,
            "subnetId": candidate.subnet,
            "availabilityZone": candidate.zone,
            "priority": override.get("Priority"),
            "imageId": override.get("ImageId"),
        }
        names = {"LaunchTemplateId": "launchTemplateId", "LaunchTemplateName": "launchTemplateName"}
        template = {to: candidate.template.get(of) for of, to in {**names, "Version": "version"}.items()}
        return {"launchTemplateSpecification": template, "overrides": overrides}

    lifecycle = SPOT if kind == SPOT else RESERVED if kind == "reserved-capacity" else ON_DEMAND
    errors = [
        {
            "launchTemplateAndOverrides": pool(candidate),
            "lifecycle": lifecycle,
            "errorCode": code,
            "errorMessage": message,
        }
        for candidate, code, message in given.errors
    ]
    instances = [
        {
            "launchTemplateAndOverrides": pool(candidate),
            "lifecycle": lifecycle,
            "instanceIds": list(ids),
            "instanceType": candidate.instance_type,
        }
        for (candidate, _), ids in zip(given.chosen, launched, strict=True)
    ]
    return {"fleetId": fleet, "errorSet": errors, "fleetInstanceSet": instances}
