"""The actions of EC2 that the proxy answers itself, or corrects in moto's answer.

What is not listed here goes to moto as it came.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kerf.testing.faultproxy.calls import ApiCall
from kerf.testing.faultproxy.images import ImageTable
from kerf.testing.faultproxy.instances import TERMINATED, InstanceTable, date, not_found, state_tree
from kerf.testing.faultproxy.launches import FleetLaunches, Tokens
from kerf.testing.faultproxy.lookups import Lookups
from kerf.testing.faultproxy.stock import CloudPlacementGroup, CloudReservation, Stock
from kerf.testing.faultproxy.upstream import Upstream, read_reply
from kerf.testing.faultproxy.wire import CallRefused, Tree, WireReply, ec2_reply, form, listed

T = TypeVar("T")
Handler = Callable[[ApiCall], Awaitable[WireReply]]
_OF_GROUP = {"group-name": "name", "group-id": "id", "state": "state", "strategy": "strategy"}
_OF_RESERVATION = {
    "instance-type": "instance_type",
    "availability-zone": "zone",
    "state": "state",
    "owner-id": "owner",
    "instance-match-criteria": "match",
}


class Ec2:
    """EC2 of one region."""

    def __init__(
        self, upstream: Upstream, lookups: Lookups, stock: Stock, images: ImageTable, instances: InstanceTable
    ) -> None:
        self._upstream, self._stock, self._images, self._instances = upstream, stock, images, instances
        self._lookups = lookups
        self._launches = FleetLaunches(upstream, self._lookups, stock, images, instances)
        self._tokens = Tokens()
        self._now_s = instances.now_s
        self.handlers: dict[str, Handler] = {
            "CreateFleet": self._create_fleet,
            "CreateLaunchTemplate": self._create_template,
            "CreateLaunchTemplateVersion": self._change_template,
            "CreateTags": self._create_tags,
            "DeleteLaunchTemplate": self._delete_template,
            "DeleteTags": self._delete_tags,
            "DescribeCapacityReservations": self._describe_reservations,
            "DescribeImages": self._describe_images,
            "DescribeInstanceStatus": self._describe_status,
            "DescribeInstanceTypeOfferings": self._describe_offerings,
            "DescribeInstanceTypes": upstream.kept,
            "DescribeInstances": self._describe_instances,
            "DescribePlacementGroups": self._describe_groups,
            "DescribeSpotPriceHistory": self._describe_spot_prices,
            "DescribeSubnets": self._describe_subnets,
            "ModifyLaunchTemplate": self._change_template,
            "RunInstances": self._run_instances,
            "TerminateInstances": self._terminate,
        }

    async def answer(self, call: ApiCall) -> WireReply:
        """The reply. Raises CallRefused."""
        handler = self.handlers.get(call.action)
        return await (self._upstream.forward(call) if handler is None or call.is_dry_run else handler(call))

    async def _create_fleet(self, call: ApiCall) -> WireReply:
        return await self._tokens.once(call, lambda: self._launches.create_fleet(call, self._now_s()))

    async def _run_instances(self, call: ApiCall) -> WireReply:
        return await self._tokens.once(call, lambda: self._launches.run_instances(call, self._now_s()))

    async def _create_template(self, call: ApiCall) -> WireReply:
        self._lookups.forget_templates()
        return await self._tokens.once(call, lambda: self._upstream.forward(call))

    async def _change_template(self, call: ApiCall) -> WireReply:
        self._lookups.forget_templates()
        return await self._upstream.forward(call)

    async def _delete_template(self, call: ApiCall) -> WireReply:
        """moto says MissingParameter of a template that is not there."""
        self._lookups.forget_templates()
        reply = await self._upstream.forward(call)
        if reply.is_good:
            return reply
        try:
            read_reply(reply)
        except CallRefused as error:
            name, number = call.parameters.get("LaunchTemplateName"), call.parameters.get("LaunchTemplateId")
            if error.code != "MissingParameter" or not (name or number):
                raise
        if number:
            text = f"The launch template ID '{number}' does not exist"
            raise CallRefused("InvalidLaunchTemplateId.NotFound", text)
        text = f"At least one of the launch templates specified in the request does not exist: {name}"
        raise CallRefused("InvalidLaunchTemplateName.NotFoundException", text)

    async def _describe_instances(self, call: ApiCall) -> WireReply:
        ids, most = listed(call.parameters, "InstanceId"), call.parameters.get("MaxResults")
        if ids and most:
            text = "The parameter instancesSet cannot be used with the parameter maxResults"
            raise CallRefused("InvalidParameterCombination", text)
        rows, token = _page(self._instances.visible(ids, listed(call.parameters, "Filter")), call.parameters)
        groups = [
            {
                "reservationId": f"r-{row.id.removeprefix('i-')}",
                "ownerId": "123456789012",
                "groupSet": [],
                "instancesSet": [self._instances.tree(row)],
            }
            for row in rows
        ]
        return ec2_reply(call.action, {"reservationSet": groups, "nextToken": token})

    async def _describe_status(self, call: ApiCall) -> WireReply:
        rows = self._instances.visible(listed(call.parameters, "InstanceId"), listed(call.parameters, "Filter"))
        if call.parameters.get("IncludeAllInstances") != "true":
            rows = [row for row in rows if self._instances.state(row) == "running"]
        page, token = _page(rows, call.parameters)
        statuses = [self._instances.status(row) for row in page]
        return ec2_reply(call.action, {"instanceStatusSet": statuses, "nextToken": token})

    async def _terminate(self, call: ApiCall) -> WireReply:
        """One unknown id fails the whole call, as in EC2; repeated calls are accepted."""
        ids = listed(call.parameters, "InstanceId")
        rows = [row for name in ids if (row := self._instances.get(name)) is not None]
        there = {row.id for row in self._instances.all()}
        missing = [name for name in ids if name not in there]
        if missing:
            raise not_found(missing)
        changes = []
        for row in rows:
            before = self._instances.state(row)
            self._instances.end(row.id, self._now_s())
            after = self._instances.state(row)
            current = "shutting-down" if before != TERMINATED and after == TERMINATED else after
            changes.append(
                {"instanceId": row.id, "currentState": state_tree(current), "previousState": state_tree(before)}
            )
        known = [row.id for row in rows if row.subnet]
        if known:
            await self._upstream.forward(call, form({"Action": call.action, "InstanceId": known}))
        return ec2_reply(call.action, {"instancesSet": changes})

    async def _create_tags(self, call: ApiCall) -> WireReply:
        tags = {tag["Key"]: tag.get("Value", "") for tag in listed(call.parameters, "Tag")}
        return await self._tag(call, lambda held: held.update(tags))

    async def _delete_tags(self, call: ApiCall) -> WireReply:
        keys = [tag["Key"] for tag in listed(call.parameters, "Tag")]

        def remove(held: dict[str, str]) -> None:
            for key in keys or list(held):
                held.pop(key, None)

        return await self._tag(call, remove)

    async def _tag(self, call: ApiCall, change: Callable[[dict[str, str]], None]) -> WireReply:
        """Instances in the table, all else in moto, which takes tags of an instance that there is not."""
        ids = listed(call.parameters, "ResourceId")
        rows = {name: self._instances.get(name) for name in ids if name.startswith("i-")}
        missing = [name for name, row in rows.items() if row is None]
        if missing:
            raise not_found(missing)
        for row in rows.values():
            if row is not None:
                change(row.tags)
        others = [name for name in ids if name not in rows]
        if not others:
            return ec2_reply(call.action, {"return": True})
        body = {"Action": call.action, "Version": "2016-11-15", **call.parameters, "ResourceId": others}
        return await self._upstream.forward(call, form(body))

    async def _describe_images(self, call: ApiCall) -> WireReply:
        wanted = call.parameters
        deprecated = wanted.get("IncludeDeprecated") == "true"
        ids, owners = listed(wanted, "ImageId"), listed(wanted, "Owner")
        page, token = _page(self._images.visible(ids, owners, listed(wanted, "Filter"), old=deprecated), wanted)
        return ec2_reply(call.action, {"imagesSet": page, "nextToken": token})

    async def _describe_offerings(self, call: ApiCall) -> WireReply:
        reply = await self._upstream.kept(call)
        tree = read_reply(reply)
        items = [
            item
            for item in listed(tree, "instanceTypeOfferingSet")
            if not self._stock.is_withdrawn(item["instanceType"], item["location"])
        ]
        return ec2_reply(call.action, {"instanceTypeOfferingSet": items})

    async def _describe_subnets(self, call: ApiCall) -> WireReply:
        tree = read_reply(await self._upstream.forward(call))
        tree.pop("requestId", None)
        for item in listed(tree, "subnetSet"):
            if self._stock.is_exhausted(item["subnetId"]):
                item["availableIpAddressCount"] = "0"
        return ec2_reply(call.action, tree)

    async def _describe_spot_prices(self, call: ApiCall) -> WireReply:
        wanted, now = call.parameters, date(self._now_s())
        types, zone = listed(wanted, "InstanceType"), wanted.get("AvailabilityZone", "")
        items = [
            {
                "instanceType": kind,
                "productDescription": "Linux/UNIX",
                "spotPrice": f"{usd:.6f}",
                "timestamp": now,
                "availabilityZone": at,
            }
            for (kind, at), usd in sorted(self._stock.spot_usd.items())
            if (not types or kind in types) and zone in ("", at)
        ]
        page, token = _page(items, wanted)
        return ec2_reply(call.action, {"spotPriceHistorySet": page, "nextToken": token})

    async def _describe_reservations(self, call: ApiCall) -> WireReply:
        ids, terms = listed(call.parameters, "CapacityReservationId"), listed(call.parameters, "Filter")
        missing = [name for name in ids if name not in self._stock.reservations]
        if missing:
            text = f"The capacity reservation ID '{missing[0]}' does not exist"
            raise CallRefused("InvalidCapacityReservationId.NotFound", text)
        found = [
            one
            for name, one in sorted(self._stock.reservations.items())
            if (not ids or name in ids) and _matches(one, terms, _OF_RESERVATION, one.tags)
        ]
        page, token = _page([_reservation(one) for one in found], call.parameters)
        return ec2_reply(call.action, {"capacityReservationSet": page, "nextToken": token})

    async def _describe_groups(self, call: ApiCall) -> WireReply:
        names, ids = listed(call.parameters, "GroupName"), listed(call.parameters, "GroupId")
        groups = [group for _, group in sorted(self._stock.placement_groups.items())]
        unknown = {*names, *ids} - {text for group in groups for text in (group.id, group.name)}
        if unknown:
            raise CallRefused("InvalidPlacementGroup.Unknown", f"The Placement Group '{min(unknown)}' is unknown.")
        found = [
            _group(group)
            for group in groups
            if (not names or group.name in names)
            and (not ids or group.id in ids)
            and _matches(group, listed(call.parameters, "Filter"), _OF_GROUP, {})
        ]
        return ec2_reply(call.action, {"placementGroupSet": found})


def _page(rows: Sequence[T], wanted: Tree) -> tuple[Sequence[T], str | None]:
    """The page that is asked for, and the token of the next one; None at the end."""
    begin = int(wanted.get("NextToken") or 0)
    end = begin + int(wanted.get("MaxResults") or len(rows) or 1)
    return rows[begin:end], str(end) if end < len(rows) else None


def _matches(thing: object, terms: Sequence[Tree], names: dict[str, str], tags: dict[str, str]) -> bool:
    for term in terms:
        name, values = term["Name"], listed(term, "Value")
        if name.startswith("tag:"):
            held = tags.get(name.removeprefix("tag:"))
        elif name in names:
            held = str(getattr(thing, names[name]))
        else:
            raise CallRefused("InvalidParameterValue", f"The filter '{name}' is invalid")
        if held not in values:
            return False
    return True


def _reservation(one: CloudReservation) -> Tree:
    return {
        "capacityReservationId": one.id,
        "ownerId": one.owner,
        "instanceType": one.instance_type,
        "instancePlatform": "Linux/UNIX",
        "availabilityZone": one.zone,
        "tenancy": "default",
        "totalInstanceCount": one.total,
        "availableInstanceCount": one.left,
        "state": one.state,
        "startDate": date(one.start_s),
        "endDate": None if one.end_s is None else date(one.end_s),
        "endDateType": "unlimited" if one.end_s is None else "limited",
        "instanceMatchCriteria": one.match,
        "reservationType": one.kind,
        "interruptible": one.is_interruptible or None,
        "tagSet": [{"key": key, "value": value} for key, value in sorted(one.tags.items())],
    }


def _group(group: CloudPlacementGroup) -> Tree:
    return {
        "groupName": group.name,
        "groupId": group.id,
        "strategy": group.strategy,
        "state": group.state,
        "partitionCount": group.partitions or None,
    }
