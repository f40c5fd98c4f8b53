"""CreateFleet for one instance: the request, and what EC2 answers for each offering.

An instant fleet that gets nothing is no error of the call: the reply has a list of errors, one for each pool that EC2
tried, and each means something else: sold out, a quota, a subnet that is full, a role that may not, a throttled call
inside EC2. Only what is sold out may rest; taking a throttled call for a stock-out empties a market that is full.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kerf.clouds.aws.api import Reply
from kerf.clouds.aws.minvalues import needed
from kerf.clouds.aws.overrides import Override, Overrides
from kerf.clouds.aws.tagging import tag_list
from kerf.clouds.aws.templates import LaunchTemplate
from kerf.errors import cut
from kerf.model.constraints import ANYTHING, Requirements
from kerf.model.instancetypes import RESERVED, SPOT, OfferingKey

MOST_CONFIGS = 50
"""Launch template configurations of a fleet [EC2 API reference, CreateFleet]."""
MOST_OVERRIDES = 300
"""Overrides of a fleet: EC2's limit for other kinds of fleets, and small enough for its limit on the body."""
SOLD_OUT = frozenset(
    {
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    }
)
"""Codes that mark an offering, as Karpenter's (pkg/errors, v1.14.1)."""
NO_ADDRESSES = "InsufficientFreeAddressesInSubnet"
NO_SPOT_ROLE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
_THROTTLED = ("RequestLimitExceeded", "RequestThrottled", "Throttling")
_MOST_LETTERS = 300
_TAGGED = ("instance", "volume", "fleet")


@dataclass(frozen=True)
class FleetRequest:
    """A CreateFleet without its token, the offering of each type and zone in it, its subnets and template names.

    `runnable` are the types of all templates, also those that EC2's limits leave out.
    """

    parameters: Mapping[str, Any]
    offerings: Mapping[tuple[str, str], OfferingKey]
    subnets: tuple[str, ...]
    templates: tuple[str, ...]
    runnable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Launched:
    """The instance of a fleet."""

    id: str
    key: OfferingKey
    subnet: str
    image: str


@dataclass
class FleetOutcome:
    """What became of a fleet. `sold_out` has EC2's code for each offering; `failures` are (code, message).

    `unplaced` is the id of an instance of which the reply does not say what of the request it is.
    """

    launched: Launched | None = None
    unplaced: str = ""
    sold_out: dict[OfferingKey, str] = field(default_factory=dict)
    full_subnets: set[str] = field(default_factory=set)
    is_throttled: bool = False
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_silent(self) -> bool:
        """Whether it says of no instance what it is, nor why there is none: something may run all the same."""
        said = self.launched, self.sold_out, self.full_subnets, self.is_throttled, self.failures
        return bool(self.unplaced) or not any(said)


def fleet_of(
    overrides: Overrides,
    subnets: Mapping[str, str],
    templates: Sequence[LaunchTemplate],
    tags: Mapping[str, str],
    context: str = "",
    requirements: Requirements = ANYTHING,
) -> FleetRequest:
    """The request for one instance. `subnets` are ids by zone; an override of another zone is left out.

    What EC2 takes of templates and overrides is filled with those that the minValues of `requirements` need first, then
    with the best.
    """
    template_of = {kind: number for number, each in enumerate(templates) for kind in each.instance_types}
    sold = [each for each in overrides.chosen if each.kind.name in template_of and each.offering.zone in subnets]
    sold = _within_limits(sold, template_of, requirements)
    configs, named, used = [], dict[tuple[str, str], OfferingKey](), set[str]()
    for number, template in enumerate(templates):
        listed = []
        for each in sold:
            zone = each.offering.zone
            if template_of[each.kind.name] != number:
                continue
            place = {"SubnetId": subnets[zone], "AvailabilityZone": zone}
            listed.append(
                {"InstanceType": each.kind.name, "ImageId": template.image.id, "Priority": each.priority, **place}
            )
            named[each.kind.name, zone] = each.key
            used.add(subnets[zone])
        if listed:
            version = {"LaunchTemplateName": template.name, "Version": "$Latest"}
            configs.append({"LaunchTemplateSpecification": version, "Overrides": listed})
    parameters = {
        "Type": "instant",
        "LaunchTemplateConfigs": configs,
        **_market(overrides),
        "TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(tags)} for kind in _TAGGED],
        **({"Context": context} if context else {}),
    }
    names = tuple(template.name for template in templates)
    return FleetRequest(parameters, named, tuple(sorted(used)), names, frozenset(template_of))


def _within_limits(
    sold: Sequence[Override], template_of: Mapping[str, int], requirements: Requirements
) -> list[Override]:
    """What EC2 takes of them, in their order."""
    kinds = {each.kind.name: each.kind for each in sold}
    wanted = {kind.name for kind in needed(requirements, kinds.values())}
    firsts: dict[str, Override] = {}
    for each in sold:
        firsts.setdefault(each.kind.name, each)
    # One offering of each type that minValues need, and then by rank.
    ranked = sorted(sold, key=lambda each: not (each.kind.name in wanted and firsts[each.kind.name] is each))
    used, taken = set[int](), set[int]()
    for each in ranked:
        number = template_of[each.kind.name]
        if len(taken) < MOST_OVERRIDES and (number in used or len(used) < MOST_CONFIGS):
            used.add(number)
            taken.add(id(each))
    return [each for each in sold if id(each) in taken]


def _market(overrides: Overrides) -> dict[str, Any]:
    """How EC2 is to choose. With prices that NodeOverlays correct it goes by our order."""
    if overrides.capacity_type == SPOT:
        strategy = "capacity-optimized-prioritized" if overrides.by_priority else "price-capacity-optimized"
        options, target = {"SpotOptions": {"AllocationStrategy": strategy}}, "spot"
    else:
        strategy = "prioritized" if overrides.by_priority else "lowest-price"
        options, target = {"OnDemandOptions": {"AllocationStrategy": strategy}}, "on-demand"
        if overrides.capacity_type == RESERVED and overrides.is_block:
            options, target = {}, "capacity-block"
    return {**options, "TargetCapacitySpecification": {"DefaultTargetCapacityType": target, "TotalTargetCapacity": 1}}


def outcome_of(reply: Reply, fleet: FleetRequest) -> FleetOutcome:
    """What EC2 answered. An error that names no offering is a failure of all."""
    outcome = FleetOutcome()
    for group in reply.get("Instances") or ():
        for number in group.get("InstanceIds") or ():
            chosen = group.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
            key = _key(group.get("InstanceType") or chosen.get("InstanceType", ""), chosen, fleet)
            image = chosen.get("ImageId", "")
            if key is None:
                outcome.unplaced = outcome.unplaced or number
            elif outcome.launched is None:
                outcome.launched = Launched(number, key, chosen.get("SubnetId", ""), image)
    if outcome.launched is not None:
        outcome.unplaced = ""
    for error in reply.get("Errors") or ():
        _note(error, fleet, outcome)
    return outcome


def _note(error: Mapping[str, Any], fleet: FleetRequest, outcome: FleetOutcome) -> None:
    code, message = error.get("ErrorCode", ""), cut(error.get("ErrorMessage", ""), _MOST_LETTERS)
    chosen = error.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    key = _key(chosen.get("InstanceType", ""), chosen, fleet)
    if code.startswith(_THROTTLED):
        outcome.is_throttled = True
    elif code == NO_ADDRESSES:
        outcome.full_subnets |= {chosen["SubnetId"]} if chosen.get("SubnetId") else set(fleet.subnets)
    elif code in SOLD_OUT:
        named = [key] if key is not None else fleet.offerings.values()
        for each in named:
            outcome.sold_out[each] = code
    else:
        outcome.failures.append((code, message))


def _key(instance_type: str, chosen: Mapping[str, Any], fleet: FleetRequest) -> OfferingKey | None:
    return fleet.offerings.get((instance_type, chosen.get("AvailabilityZone", "")))
