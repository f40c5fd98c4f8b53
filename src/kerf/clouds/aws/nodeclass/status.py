"""What was found for an EC2NodeClass, and its status: Karpenter's fields and conditions, which its dashboards read.

The status is a report. Launches use what was found itself, because the status lacks free addresses, what is left of
reservations and the placement group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.errors import cut
from kerf.model.constraints import ANYTHING, RESERVATION_INTERRUPTIBLE, RESERVATION_TYPE, Requirements
from kerf.model.nodeclaim import FALSE, READY, TRUE, UNKNOWN, VALIDATED, Condition
from kerf.model.times import instant_s, instant_text

AMIS_READY, SUBNETS_READY, SECURITY_GROUPS_READY = "AMIsReady", "SubnetsReady", "SecurityGroupsReady"
INSTANCE_PROFILE_READY, PLACEMENT_GROUP_READY = "InstanceProfileReady", "PlacementGroupReady"
CAPACITY_RESERVATIONS_READY = "CapacityReservationsReady"
FOUND_CONDITIONS = (
    AMIS_READY,
    SUBNETS_READY,
    SECURITY_GROUPS_READY,
    INSTANCE_PROFILE_READY,
    PLACEMENT_GROUP_READY,
    CAPACITY_RESERVATIONS_READY,
)
"""Conditions about what AWS has, in the order in which Ready names the one that is missing."""
CONDITIONS = (*FOUND_CONDITIONS, VALIDATED)
STATUS_FIELDS = {
    AMIS_READY: "amis",
    SUBNETS_READY: "subnets",
    SECURITY_GROUPS_READY: "securityGroups",
    INSTANCE_PROFILE_READY: "instanceProfile",
    CAPACITY_RESERVATIONS_READY: "capacityReservations",
}
"""The field of the status that has what a condition is about."""
ACTIVE, EXPIRING = "active", "expiring"
DEFAULT_RESERVATION, CAPACITY_BLOCK = "default", "capacity-block"
CLUSTER_STRATEGY, PARTITION_STRATEGY, SPREAD_STRATEGY = "cluster", "partition", "spread"
_MOST_LETTERS = 1024
"""Of a message: an error of AWS can hold an encoded authorization failure of many thousand letters."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet; `free_addresses` is what EC2 last said."""

    id: str
    zone: str
    zone_id: str = ""
    free_addresses: int = 0


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A security group."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image, and which types it runs on: architecture, and whether they have GPUs or accelerators.

    One image that runs on two sorts of types, such as GPUs and Neuron, is there twice. `created` is an RFC 3339 text.
    """

    id: str
    name: str = ""
    requirements: Requirements = ANYTHING
    is_deprecated: bool = False
    created: str = ""


@dataclass(frozen=True, slots=True)
class CapacityReservation:
    """A capacity reservation or capacity block; `remaining` instances can still be launched into it."""

    id: str
    zone: str
    instance_type: str
    owner_id: str = ""
    instance_match_criteria: str = "targeted"
    reservation_type: str = DEFAULT_RESERVATION
    is_interruptible: bool = False
    state: str = ACTIVE
    end_s: float | None = None
    remaining: int = 0

    @property
    def is_block(self) -> bool:
        """Whether it is a capacity block, which is launched as a market of its own."""
        return self.reservation_type == CAPACITY_BLOCK

    @property
    def labels(self) -> dict[str, str]:
        """Those of its nodes, beside its id."""
        interruptible = "true" if self.is_interruptible else "false"
        return {RESERVATION_TYPE: self.reservation_type, RESERVATION_INTERRUPTIBLE: interruptible}


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """A placement group; `partitions` is 0 unless the strategy is `partition`."""

    id: str
    name: str = ""
    strategy: str = CLUSTER_STRATEGY
    partitions: int = 0
    spread_level: str = ""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What discovery found for an EC2NodeClass; empty where it found nothing.

    Subnets: most free addresses first, then by id. Security groups and reservations: by id. Images: newest first.
    `unknown` are the conditions of what is empty because AWS has not answered, or has nothing that can be used: that
    says nothing about what runs.
    """

    subnets: tuple[Subnet, ...] = ()
    security_groups: tuple[SecurityGroup, ...] = ()
    images: tuple[Image, ...] = ()
    reservations: tuple[CapacityReservation, ...] = ()
    placement_group: PlacementGroup | None = None
    instance_profile: str = ""
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ConditionVerdict:
    """What became of one condition: True without a reason, else False, or Unknown while AWS does not answer."""

    reason: str = ""
    message: str = ""
    is_unknown: bool = False

    @property
    def is_good(self) -> bool:
        """Whether the condition is True."""
        return not self.reason


GOOD = ConditionVerdict()


def conditions_of(
    findings: Mapping[str, ConditionVerdict], before: Iterable[Condition], now_s: float
) -> tuple[Condition, ...]:
    """The conditions in their order, Ready last; `since_s` stays where the status of a condition stays.

    A condition without a finding is Unknown.
    """
    since = {condition.type: condition for condition in before}
    ready = _ready(findings)
    found = [(name, findings.get(name, ConditionVerdict("AwaitingReconciliation", "", True))) for name in CONDITIONS]
    return tuple(_condition(name, each, since.get(name), now_s) for name, each in (*found, (READY, ready)))


def _ready(findings: Mapping[str, ConditionVerdict]) -> ConditionVerdict:
    """False with the reason of the first condition that is; else Unknown with the first that is."""
    found = [(name, findings.get(name, ConditionVerdict("AwaitingReconciliation", "", True))) for name in CONDITIONS]
    bad = [(name, each) for name, each in found if not each.is_good]
    if not bad:
        return GOOD
    name, worst = min(bad, key=lambda pair: pair[1].is_unknown)
    others = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return ConditionVerdict(worst.reason, f"{name}: {worst.message or worst.reason}{others}", worst.is_unknown)


def _condition(name: str, finding: ConditionVerdict, before: Condition | None, now_s: float) -> Condition:
    status = TRUE if finding.is_good else UNKNOWN if finding.is_unknown else FALSE
    since_s = before.since_s if before is not None and before.status == status else now_s
    return Condition(name, status, finding.reason or name, cut(finding.message, _MOST_LETTERS), since_s)


def read_conditions(raw_status: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions of a status as a server has it; what has not their form is left out."""
    found = []
    for raw in raw_status.get("conditions") or ():
        if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
            continue
        try:
            since_s = instant_s(raw.get("lastTransitionTime") or "")
        except (TypeError, ValueError):
            since_s = 0
        status, reason, message = (str(raw.get(name) or "") for name in ("status", "reason", "message"))
        found.append(Condition(raw["type"], status, reason, message, since_s))
    return tuple(found)


def status_of(node_class: EC2NodeClass, resolved: Resolved, conditions: Sequence[Condition]) -> Object:
    """The status as a server takes it. Lists that are empty are left out, as Karpenter does.

    Subnets are by id: their free addresses change with every launch, and a new order would be a write.
    """
    subnets = sorted(resolved.subnets, key=lambda subnet: subnet.id)
    lists: dict[str, list[Object]] = {
        "subnets": [_given({"id": each.id, "zone": each.zone, "zoneID": each.zone_id}) for each in subnets],
        "securityGroups": [_given({"id": each.id, "name": each.name}) for each in resolved.security_groups],
        "amis": [_image(each) for each in resolved.images],
        "capacityReservations": [_reservation(each) for each in resolved.reservations],
    }
    return {
        **{name: items for name, items in lists.items() if items},
        **_given({"instanceProfile": resolved.instance_profile}),
        "conditions": [_condition_json(each, node_class.generation) for each in conditions],
    }


def _given(texts: Mapping[str, str]) -> Object:
    return {name: text for name, text in texts.items() if text}


def _image(image: Image) -> Object:
    # The order of Karpenter: short keys first.
    keys = sorted(image.requirements, key=lambda key: (len(key), key))
    requirements = [
        {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
        for key in keys
        for operator, values in image.requirements[key].forms()
    ]
    deprecated = {"deprecated": True} if image.is_deprecated else {}
    return {"id": image.id, **_given({"name": image.name}), **deprecated, "requirements": requirements}


def _reservation(reservation: CapacityReservation) -> Object:
    end = {} if reservation.end_s is None else {"endTime": instant_text(reservation.end_s)}
    return {
        "id": reservation.id,
        "availabilityZone": reservation.zone,
        "instanceType": reservation.instance_type,
        "instanceMatchCriteria": reservation.instance_match_criteria,
        "ownerID": reservation.owner_id,
        "reservationType": reservation.reservation_type,
        "interruptible": reservation.is_interruptible,
        "state": reservation.state,
        **end,
    }


def _condition_json(condition: Condition, generation: int) -> Object:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": instant_text(condition.since_s),
        "observedGeneration": generation,
    }
