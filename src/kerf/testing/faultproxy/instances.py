"""The instances of the proxy's cloud: what DescribeInstances says of them, and how they change over time.

moto launches them and knows their addresses; the table has what moto leaves out: states that take time, the moment
from which a listing shows an instance, groups, profile, spot request, zone id. All listings come from the table, which
is why a thousand instances are listed in milliseconds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from kerf.testing.faultproxy.stock import ON_DEMAND, SPOT
from kerf.testing.faultproxy.wire import CallRefused, Tree, listed

PENDING, RUNNING, SHUTTING_DOWN, TERMINATED = "pending", "running", "shutting-down", "terminated"
_CODES = {PENDING: 0, RUNNING: 16, SHUTTING_DOWN: 32, TERMINATED: 48}
FORGOTTEN_S = 3600
"""A terminated instance is listed for about an hour."""
_ASKED = ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown")
TAKEN_BACK = ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination")


@dataclass
class CloudInstance:
    """One instance. `ends_s` is when it begins to shut down; None while nothing ends it."""

    id: str
    instance_type: str
    zone: str
    zone_id: str = ""
    subnet: str = ""
    vpc: str = ""
    image: str = ""
    architecture: str = "x86_64"
    capacity_type: str = ON_DEMAND
    dns_name: str = ""
    address: str = ""
    launched_s: float = 0
    tags: dict[str, str] = field(default_factory=dict)
    groups: tuple[tuple[str, str], ...] = ()
    profile: str = ""
    client_token: str = ""
    spot_request: str = ""
    reservation: str = ""
    placement_group: str = ""
    ends_s: float | None = None
    end_reason: tuple[str, str] = _ASKED
    is_impaired: bool = False
    events: list[Tree] = field(default_factory=list)


class InstanceTable:
    """The table. `boot_s`, `end_s` and `lag_s` are switches: seconds to run, to end, and until a listing has it."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self._rows: dict[str, CloudInstance] = {}
        self.boot_s = self.end_s = self.lag_s = 0.0

    def lag(self, seconds: float) -> None:
        """Listings and lookups by id leave out instances that are younger."""
        self.lag_s = seconds

    def take_time(self, boot_s: float, end_s: float) -> None:
        """How long an instance is pending, and how long it shuts down."""
        self.boot_s, self.end_s = boot_s, end_s

    def impair(self, instance: str, impaired: bool = True) -> None:
        """The status checks of the instance fail."""
        self._rows[instance].is_impaired = impaired

    def schedule(self, instance: str, code: str, not_before_s: float) -> None:
        """Schedule an event such as `system-reboot`, which DescribeInstanceStatus reports."""
        self._rows[instance].events.append({"code": code, "description": code, "notBefore": date(not_before_s)})

    def seed(self, count: int, tags: Mapping[str, str], kind: str = "m5.large", zone: str = "us-east-1a") -> None:
        """Add instances of type `kind` that moto does not know, to be listed."""
        for number in range(len(self._rows), len(self._rows) + count):
            address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            name = f"ip-{address.replace('.', '-')}.ec2.internal"
            row = CloudInstance(f"i-{number:017x}", kind, zone, dns_name=name, address=address)
            row.tags, row.launched_s = dict(tags), self.now_s() - self.lag_s
            self._rows[row.id] = row

    def add(self, instance: CloudInstance) -> None:
        """An instance that was launched now."""
        self._rows[instance.id] = instance

    def get(self, instance: str) -> CloudInstance | None:
        """One by id, whatever its state and age."""
        return self._rows.get(instance)

    def all(self) -> list[CloudInstance]:
        """Every one that has not been forgotten, oldest first."""
        now = self.now_s()
        rows = (row for row in self._rows.values() if self.state(row) != TERMINATED or now < self._gone_s(row))
        return sorted(rows, key=lambda row: (row.launched_s, row.id))

    def living(self) -> list[CloudInstance]:
        """Those that are pending or running."""
        return [row for row in self.all() if self.state(row) in (PENDING, RUNNING)]

    def state(self, row: CloudInstance) -> str:
        """The state now."""
        now = self.now_s()
        if row.ends_s is not None and now >= row.ends_s:
            return SHUTTING_DOWN if now < row.ends_s + self.end_s else TERMINATED
        return PENDING if now < row.launched_s + self.boot_s else RUNNING

    def end(self, instance: str, at_s: float, reason: tuple[str, str] = _ASKED) -> None:
        """Shut down at that time, unless it ends earlier anyway."""
        row = self._rows[instance]
        if row.ends_s is None or at_s < row.ends_s:
            row.ends_s, row.end_reason = at_s, reason

    def visible(self, ids: Sequence[str], filters: Iterable[Tree]) -> list[CloudInstance]:
        """What a listing shows. Raises CallRefused for an id that is not there (yet) and for an unknown filter."""
        now = self.now_s()
        shown = {row.id: row for row in self.all() if now >= row.launched_s + self.lag_s}
        missing = [name for name in ids if name not in shown]
        if missing:
            raise not_found(missing)
        rows = [shown[name] for name in dict.fromkeys(ids)] if ids else list(shown.values())
        terms = [(term["Name"], listed(term, "Value")) for term in filters]
        return [row for row in rows if all(self._matches(row, name, values) for name, values in terms)]

    def tree(self, row: CloudInstance) -> Tree:
        """The element of DescribeInstances."""
        state, spot = self.state(row), row.capacity_type == SPOT
        code, message = row.end_reason if state in (SHUTTING_DOWN, TERMINATED) else ("", "")
        return {
            "instanceId": row.id,
            "imageId": row.image,
            "instanceState": state_tree(state),
            "privateDnsName": row.dns_name if state != TERMINATED else "",
            "privateIpAddress": row.address if state != TERMINATED else None,
            "instanceType": row.instance_type,
            "launchTime": date(row.launched_s),
            "placement": {
                "availabilityZone": row.zone,
                "availabilityZoneId": row.zone_id or None,
                "groupName": row.placement_group,
                "tenancy": "default",
            },
            "subnetId": row.subnet if state != TERMINATED else None,
            "vpcId": row.vpc if state != TERMINATED else None,
            "architecture": row.architecture,
            "stateReason": {"code": code, "message": message} if code else None,
            "clientToken": row.client_token,
            "instanceLifecycle": SPOT if spot else None,
            "spotInstanceRequestId": row.spot_request or None,
            "capacityReservationId": row.reservation or None,
            "iamInstanceProfile": {"arn": row.profile, "id": "AIPAFAULTPROXY"} if row.profile else None,
            "groupSet": [{"groupId": group, "groupName": name} for group, name in row.groups],
            "tagSet": [{"key": key, "value": value} for key, value in sorted(row.tags.items())],
        }

    def status(self, row: CloudInstance) -> Tree:
        """The element of DescribeInstanceStatus."""
        check = {"status": "impaired" if row.is_impaired else "ok"}
        detail = [{"name": "reachability", "status": "failed" if row.is_impaired else "passed"}]
        return {
            "instanceId": row.id,
            "availabilityZone": row.zone,
            "instanceState": state_tree(self.state(row)),
            "eventsSet": row.events,
            "systemStatus": {**check, "details": detail},
            "instanceStatus": {**check, "details": detail},
        }

    def _gone_s(self, row: CloudInstance) -> float:
        return (row.ends_s or 0) + self.end_s + FORGOTTEN_S

    def _matches(self, row: CloudInstance, name: str, values: Sequence[str]) -> bool:
        if name == "tag-key":
            held = list(row.tags)
        elif name.startswith("tag:"):
            tag = row.tags.get(name.removeprefix("tag:"))
            held = [] if tag is None else [tag]
        else:
            held = [self._attribute(row, name)]
        return any(fnmatchcase(text, value) for text in held for value in values)

    def _attribute(self, row: CloudInstance, name: str) -> str:
        attributes = {
            "availability-zone": row.zone,
            "capacity-reservation-id": row.reservation,
            "client-token": row.client_token,
            "image-id": row.image,
            "instance-id": row.id,
            "instance-lifecycle": SPOT if row.capacity_type == SPOT else "",
            "instance-state-name": self.state(row),
            "instance-type": row.instance_type,
            "private-dns-name": row.dns_name,
            "subnet-id": row.subnet,
            "vpc-id": row.vpc,
        }
        if name not in attributes:
            raise CallRefused("InvalidParameterValue", f"The filter '{name}' is invalid")
        return attributes[name]


def state_tree(state: str) -> Tree:
    """A state with its code."""
    return {"code": _CODES[state], "name": state}


def not_found(ids: Sequence[str]) -> CallRefused:
    """The error of ids that are no instances."""
    names = ", ".join(ids)
    text = f"The instance ID '{names}' does not exist" if len(ids) == 1 else f"The instance IDs '{names}' do not exist"
    return CallRefused("InvalidInstanceID.NotFound", text)


def date(seconds: float) -> str:
    """An instant as EC2 writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
