"""Dry runs of a launch: what a policy forbids is said on the EC2NodeClass, before a claim fails by it.

EC2 answers a dry run with an error in any case: DryRunOperation where it would have done it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kerf.clouds.aws.aliases import ACCELERATOR_COUNT, GPU_COUNT
from kerf.clouds.aws.api import EC2, Api, ApiFailed
from kerf.clouds.aws.cache import TimedCache
from kerf.clouds.aws.codes import DRY_RUN_PASSED, NO_TEMPLATE, is_for_a_person, is_unauthorized
from kerf.clouds.aws.images import image_for
from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.nodeclass.status import GOOD, ConditionVerdict, Resolved
from kerf.clouds.aws.tagging import made_for, tag_list
from kerf.clouds.aws.templates import ClaimFacts, MachineFacts, PlannedTemplate, Templates
from kerf.clouds.aws.worstpool import check_user_data, largest_claim
from kerf.model.constraints import ARCH, NODE_POOL, Requirement, Requirements
from kerf.model.nodepool import NodePool
from kerf.ports import Clock

_KEPT_S, _FAILED_S = 30 * 60, 10 * 60
_FAMILIES = (
    ("m5.large", "amd64", ""),
    ("m6g.large", "arm64", ""),
    ("g4dn.xlarge", "amd64", GPU_COUNT),
    ("g5g.xlarge", "arm64", GPU_COUNT),
    ("inf2.xlarge", "amd64", ACCELERATOR_COUNT),
)
_PODS = 29
"""Of an m5.large (aws-karpenter golden allocatable, 2026-08); a dry run starts nothing."""
_ABOUT_STOCK = frozenset(
    {
        "InsufficientCapacity",
        "InsufficientFreeAddressesInSubnet",
        "InsufficientInstanceCapacity",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "VcpuLimitExceeded",
    }
)
"""Codes about the type that was tried: another may be had."""

_AWAITING_TEMPLATE = "AwaitingLaunchTemplate"
_TEMPLATE_TRIES = 2
"""The second with the template made again; more would only wait for EC2, and the next look does."""

Object = dict[str, Any]


def _usual(instance_type: str, architecture: str, count: str) -> MachineFacts:
    counts = [
        Requirement.of(key, "In", ["1"]) if key == count else Requirement.of(key, "DoesNotExist") for key in _COUNTS
    ]
    return MachineFacts(instance_type, Requirements([Requirement.of(ARCH, "In", [architecture]), *counts]), _PODS)


_COUNTS = (GPU_COUNT, ACCELERATOR_COUNT)
USUAL_MACHINES = tuple(_usual(*each) for each in _FAMILIES)
"""Types that nearly every region sells, one for each sort of images; those without GPUs first."""


class DryRuns:
    """The dry runs of a launch; a verdict holds for 30 minutes, a bad one for 10.

    `is_disabled`: every EC2NodeClass passes, for accounts whose policies cannot allow them.
    """

    def __init__(
        self, api: Api, clock: Clock, templates: Templates, cluster: str, *, is_disabled: bool = False
    ) -> None:
        self._api, self._templates, self._cluster = api, templates, cluster
        self._is_disabled = is_disabled
        self._verdicts: TimedCache[tuple[object, ...], ConditionVerdict] = TimedCache(clock, _KEPT_S)

    async def validate(
        self,
        node_class: EC2NodeClass,
        resolved: Resolved,
        pools: Sequence[NodePool] = (),
        machines: Sequence[MachineFacts] = USUAL_MACHINES,
    ) -> ConditionVerdict:
        """Whether a launch of the first of these types that an image runs on would be allowed.

        Raises Unusable for what is wrong with user data, that of the pools too; Throttled, ApiFailed where nothing can
        be said.
        """
        if self._is_disabled:
            return GOOD
        claims = {pool.name: largest_claim(pool) for pool in pools}
        key = (*_key(node_class, resolved), tuple(claims.items()))
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = await self._tried(node_class, resolved, claims, machines)
            if not verdict.is_unknown:
                self._verdicts.put(key, verdict, _KEPT_S if verdict.is_good else _FAILED_S)
        return verdict

    async def _tried(
        self,
        node_class: EC2NodeClass,
        resolved: Resolved,
        claims: Mapping[str, ClaimFacts],
        machines: Sequence[MachineFacts],
    ) -> ConditionVerdict:
        runnable = [each for each in machines if image_for(resolved.images, each.requirements)]
        if not runnable:
            return GOOD  # there is no type to try it with, and the policy does not depend on it
        check_user_data(self._templates, node_class, resolved, claims, runnable)
        machine = runnable[0]
        claim = ClaimFacts(tags={NODE_POOL: ""})
        (planned,) = self._templates.planned(node_class, resolved, claim, [machine])
        verdict = await self._try("CreateLaunchTemplate", planned.request())
        if not verdict.is_good:
            return verdict
        tags = tag_list({**made_for(node_class, self._cluster), NODE_POOL: ""})
        for _ in range(_TEMPLATE_TRIES):
            await self._templates.ensure(node_class, resolved, claim, [machine])
            verdict = await self._try("CreateFleet", _fleet(node_class, resolved, planned, tags))
            if verdict.is_good:
                verdict = await self._try("RunInstances", _run(node_class, resolved, planned, tags))
            if verdict.reason != _AWAITING_TEMPLATE:
                break
            self._templates.forget(planned.name)
        return verdict

    async def _try(self, operation: str, parameters: Object) -> ConditionVerdict:
        try:
            await self._api.call(EC2, operation, **parameters, DryRun=True)
        except ApiFailed as error:
            return _verdict(operation, error)
        return GOOD


def _verdict(operation: str, error: ApiFailed) -> ConditionVerdict:
    """Raises `error` where it says nothing about this EC2NodeClass."""
    if error.code == DRY_RUN_PASSED or error.code in _ABOUT_STOCK:
        return GOOD
    if is_unauthorized(error):
        message = f"the controller may not call ec2:{operation}: {error.message}"
        return ConditionVerdict(f"{operation}AuthCheckFailed", message)
    if not is_for_a_person(error):
        raise error
    if error.code in NO_TEMPLATE:
        # Another program has deleted it, or EC2 does not show yet what was made a moment ago.
        return ConditionVerdict(_AWAITING_TEMPLATE, error.message, is_unknown=True)
    if "Invalid IAM Instance Profile" in error.message:
        # EC2 learns of a new profile some seconds after IAM.
        return ConditionVerdict("AwaitingInstanceProfile", error.message, is_unknown=True)
    return ConditionVerdict(f"{operation}Refused", f"{error.code}: {error.message}")


def _key(node_class: EC2NodeClass, resolved: Resolved) -> tuple[object, ...]:
    """All that a launch depends on: free addresses and what is left of reservations change all the time, and do not."""
    subnets = tuple(sorted(subnet.id for subnet in resolved.subnets))
    return (
        node_class.name,
        node_class.spec,
        subnets,
        resolved.security_groups,
        resolved.images,
        resolved.instance_profile,
        resolved.placement_group,
    )


def _fleet(
    node_class: EC2NodeClass, resolved: Resolved, planned: PlannedTemplate, tags: list[dict[str, str]]
) -> Object:
    overrides = [
        {"InstanceType": kind, "SubnetId": subnet.id}
        for kind in planned.template.instance_types
        for subnet in resolved.subnets[:5]
    ]
    context = {"Context": node_class.spec.context} if node_class.spec.context else {}
    return {
        "Type": "instant",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": planned.name, "Version": "$Latest"},
                "Overrides": overrides,
            }
        ],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("fleet", "instance", "volume")],
        **context,
    }


def _run(node_class: EC2NodeClass, resolved: Resolved, planned: PlannedTemplate, tags: list[dict[str, str]]) -> Object:
    subnet = resolved.subnets[0].id
    interfaces: list[Object] = [
        {
            "NetworkCardIndex": each.network_card_index,
            "DeviceIndex": each.device_index,
            "InterfaceType": each.interface_type,
            "SubnetId": subnet,
        }
        for each in node_class.spec.network_interfaces
    ]
    return {
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": planned.template.instance_types[0],
        "LaunchTemplate": {"LaunchTemplateName": planned.name, "Version": "$Latest"},
        "NetworkInterfaces": interfaces or [{"DeviceIndex": 0, "SubnetId": subnet}],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "network-interface")
        ],
    }
