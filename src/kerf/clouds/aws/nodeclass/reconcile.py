"""An EC2NodeClass and what is in AWS, to its status.

What makes it hard is that AWS does not always answer. A call that fails says nothing about subnets, so what was found
before counts on, and the condition stays. Only a refusal of the call itself, by policy, is a finding: it stays until a
person does something.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.codes import is_for_a_person, is_passing, is_unauthorized
from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.nodeclass.status import (
    AMIS_READY,
    CAPACITY_RESERVATIONS_READY,
    FOUND_CONDITIONS,
    GOOD,
    INSTANCE_PROFILE_READY,
    PLACEMENT_GROUP_READY,
    SECURITY_GROUPS_READY,
    STATUS_FIELDS,
    SUBNETS_READY,
    CapacityReservation,
    ConditionVerdict,
    Image,
    PlacementGroup,
    Resolved,
    SecurityGroup,
    Subnet,
    conditions_of,
    read_conditions,
    status_of,
)
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.errors import CloudError, DecodeError, cut
from kerf.model.nodeclaim import TRUE, VALIDATED, Condition
from kerf.model.nodepool import NodePool
from kerf.ports import Clock

INVALID_SPEC, INVALID_KUBELET = "InvalidSpec", "InvalidKubeletConfiguration"
DEPENDENCIES_NOT_READY = "DependenciesNotReady"
_SOON_S, _LATER_S = 60, 300
_MOST_NAMES, _MOST_LETTERS = 5, 80
_NEEDED = (AMIS_READY, SUBNETS_READY, SECURITY_GROUPS_READY, INSTANCE_PROFILE_READY)
"""Conditions without which a dry run cannot be tried."""

Object = dict[str, Any]


class Discovery(Protocol):
    """What an EC2NodeClass selects. Each raises Unusable where there is nothing, ApiFailed, Throttled."""

    async def images(self, node_class: EC2NodeClass) -> Sequence[Image]:
        """Newest first."""
        ...

    async def subnets(self, node_class: EC2NodeClass) -> Sequence[Subnet]:
        """Most free addresses first."""
        ...

    async def security_groups(self, node_class: EC2NodeClass) -> Sequence[SecurityGroup]:
        """By id."""
        ...

    async def reservations(self, node_class: EC2NodeClass) -> Sequence[CapacityReservation]:
        """By id; there may be none."""
        ...

    async def placement_group(self, node_class: EC2NodeClass) -> PlacementGroup | None:
        """None where none is asked for."""
        ...

    async def instance_profile(self, node_class: EC2NodeClass) -> str:
        """Its name."""
        ...


class Validation(Protocol):
    """Whether a launch would be allowed."""

    async def validate(
        self, node_class: EC2NodeClass, resolved: Resolved, pools: Sequence[NodePool] = ()
    ) -> ConditionVerdict:
        """The verdict on ValidationSucceeded for launches of these pools.

        Raises Unusable, and Throttled, ApiFailed where AWS does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known of an EC2NodeClass now. `status` is to be written where it differs from the server's.

    `node_class` is None where its spec cannot be read. `again_s` is when to look again, in seconds from now.
    """

    node_class: EC2NodeClass | None
    resolved: Resolved
    conditions: tuple[Condition, ...]
    status: Object
    again_s: float

    @property
    def is_ready(self) -> bool:
        """Whether nodes can be launched with it."""
        return self.conditions[-1].status == TRUE


@dataclass
class _Known:
    """What was last found for one spec, by condition."""

    node_class: EC2NodeClass
    values: dict[str, Any] = field(default_factory=dict)
    verdicts: dict[str, ConditionVerdict] = field(default_factory=dict)


class NodeClassStatus:
    """Makes the status of EC2NodeClasses; remembers what was found for each while AWS does not answer."""

    def __init__(self, discovery: Discovery, validation: Validation, clock: Clock) -> None:
        self._discovery, self._validation, self._clock = discovery, validation, clock
        self._known: dict[str, _Known] = {}

    async def reconcile(self, raw: Mapping[str, Any], pools: Sequence[NodePool] = ()) -> Outlook:
        """The status of the object as a server has it, for these pools. Raises nothing but what is a bug."""
        try:
            node_class = decode(raw)
        except DecodeError as error:
            return self._unreadable(raw, error)
        known = self._known.get(node_class.uid)
        if known is None or known.node_class.spec != node_class.spec:
            known = self._known[node_class.uid] = _Known(node_class)
        for condition, find in self._finders().items():
            await self._find(known, condition, find, node_class)
        resolved = _resolved(known.values)
        await self._validate(known, node_class, resolved, pools)
        return self._outlook(raw, node_class, resolved, known.verdicts)

    def forget(self, uid: str) -> None:
        """The object is gone."""
        self._known.pop(uid, None)

    def _finders(self) -> dict[str, Callable[[EC2NodeClass], Awaitable[Any]]]:
        return {
            AMIS_READY: self._discovery.images,
            SUBNETS_READY: self._discovery.subnets,
            SECURITY_GROUPS_READY: self._discovery.security_groups,
            INSTANCE_PROFILE_READY: self._discovery.instance_profile,
            PLACEMENT_GROUP_READY: self._discovery.placement_group,
            CAPACITY_RESERVATIONS_READY: self._discovery.reservations,
        }

    async def _find(
        self, known: _Known, condition: str, find: Callable[[EC2NodeClass], Awaitable[Any]], node_class: EC2NodeClass
    ) -> None:
        try:
            known.values[condition] = await find(node_class)
            known.verdicts[condition] = GOOD
        except Unusable as error:
            known.values.pop(condition, None)
            known.verdicts[condition] = ConditionVerdict(error.reason, error.message)
        except CloudError as error:
            _unanswered(known, condition, error)

    async def _validate(
        self, known: _Known, node_class: EC2NodeClass, resolved: Resolved, pools: Sequence[NodePool]
    ) -> None:
        missing = [name for name in _NEEDED if not known.verdicts[name].is_good]
        if missing:
            unknown = all(known.verdicts[name].is_unknown for name in missing)
            message = f"waits for {', '.join(missing)}"
            known.verdicts[VALIDATED] = ConditionVerdict(DEPENDENCIES_NOT_READY, message, unknown)
            return
        try:
            verdict = await self._validation.validate(node_class, resolved, pools)
            known.verdicts[VALIDATED] = (
                replace(verdict, message=_without_effect(node_class)) if verdict.is_good else verdict
            )
        except Unusable as error:
            known.verdicts[VALIDATED] = ConditionVerdict(error.reason, error.message)
        except CloudError as error:
            _unanswered(known, VALIDATED, error)

    def _unreadable(self, raw: Mapping[str, Any], error: DecodeError) -> Outlook:
        """A spec that cannot be read: nothing is launched with it, and what stands in its status stays."""
        reason = INVALID_KUBELET if error.path.startswith("spec.kubelet") else INVALID_SPEC
        before = {each.type: each for each in _conditions(raw)}
        verdicts = {
            name: GOOD if name in before and before[name].status == TRUE else ConditionVerdict(reason, "", True)
            for name in FOUND_CONDITIONS
        }
        verdicts[VALIDATED] = ConditionVerdict(reason, str(error))
        conditions = conditions_of(verdicts, before.values(), self._clock.now_s())
        meta = raw.get("metadata")
        generation = meta.get("generation") if isinstance(meta, dict) else None
        bare = EC2NodeClass("", "", generation=generation if isinstance(generation, int) else 0)
        kept = raw.get("status") if isinstance(raw.get("status"), dict) else {}
        status = {**(kept or {}), "conditions": status_of(bare, Resolved(), conditions)["conditions"]}
        return Outlook(None, Resolved(), conditions, status, _LATER_S)

    def _outlook(
        self,
        raw: Mapping[str, Any],
        node_class: EC2NodeClass,
        resolved: Resolved,
        verdicts: Mapping[str, ConditionVerdict],
    ) -> Outlook:
        conditions = conditions_of(verdicts, _conditions(raw), self._clock.now_s())
        # A new life that AWS does not answer must not take away what an earlier one found: Karpenter's profile, too, is
        # known by the status alone.
        unanswered = [name for name in STATUS_FIELDS if name in resolved.unknown and verdicts[name].is_unknown]
        before = raw.get("status")
        held = before if isinstance(before, dict) else {}
        kept = {STATUS_FIELDS[name]: held[STATUS_FIELDS[name]] for name in unanswered if STATUS_FIELDS[name] in held}
        status = {**kept, **status_of(node_class, resolved, conditions)}
        # What is missing may be made any moment; reservations and free addresses change all the time.
        return Outlook(node_class, resolved, conditions, status, _SOON_S)


def _without_effect(node_class: EC2NodeClass) -> str:
    """What is to be said of fields of a newer EC2NodeClass: nodes are launched all the same, without them."""
    said = {"leaves out": node_class.unknown, "passes on to kubelet unread": node_class.unread}
    parts = [f"{what}: {_listed(names)}" for what, names in said.items() if names]
    return f"this version of Kerf does not know, and {'; '.join(parts)}" if parts else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(cut(each, _MOST_LETTERS) for each in names[:_MOST_NAMES]) + more


def _unanswered(known: _Known, condition: str, error: CloudError) -> None:
    """A refusal that comes again until a person has seen to it is a finding; any other failure leaves what is known.

    Where nothing is, it is Unknown: as a refusal where AWS has answered, in words that Kerf does not know.
    """
    is_unknown = condition not in known.verdicts or known.verdicts[condition].is_unknown
    if isinstance(error, ApiFailed) and is_unauthorized(error):
        message = f"the controller may not call {error.operation}: {error.message}"
        known.verdicts[condition] = ConditionVerdict("Unauthorized", message)
    elif isinstance(error, ApiFailed) and is_for_a_person(error):
        known.verdicts[condition] = ConditionVerdict("Refused", str(error))
    elif is_unknown and isinstance(error, ApiFailed) and not is_passing(error):
        known.verdicts[condition] = ConditionVerdict("Refused", str(error), True)
    elif is_unknown:
        known.verdicts[condition] = ConditionVerdict("AWSUnavailable", str(error), True)


def _resolved(values: Mapping[str, Any]) -> Resolved:
    return Resolved(
        subnets=tuple(values.get(SUBNETS_READY) or ()),
        security_groups=tuple(values.get(SECURITY_GROUPS_READY) or ()),
        images=tuple(values.get(AMIS_READY) or ()),
        reservations=tuple(values.get(CAPACITY_RESERVATIONS_READY) or ()),
        placement_group=values.get(PLACEMENT_GROUP_READY),
        instance_profile=values.get(INSTANCE_PROFILE_READY) or "",
        unknown=frozenset(FOUND_CONDITIONS) - values.keys(),
    )


def _conditions(raw: Mapping[str, Any]) -> tuple[Condition, ...]:
    status = raw.get("status")
    return read_conditions(status) if isinstance(status, dict) else ()
