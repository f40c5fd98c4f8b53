"""What a cloud must do for Kerf: the one file the author of a provider reads.

A provider is a subclass of `CloudProvider`, found by the entry point group `kerf.clouds`. It decides nothing: it
launches what a claim asks for, among the cheapest that is to be had, and reports the truth. What each error makes Kerf
do is stated where the error is. Five methods and a currency are enough; what follows them has a default that fits a
cloud without the feature. `kerf.testing.conformance` checks the result.
"""

import asyncio
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from kerf.errors import CloudError
from kerf.model.instancetypes import InstanceType, OfferingKey, offerings_text
from kerf.model.nodeclaim import Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.quantities import NOTHING, Resources

_CLOCKS_S = 60.0
"""So far the clocks of a cloud and of the API server may be apart."""
INSUFFICIENT_CAPACITY = "insufficient capacity"
"""The reason of a sold-out offering where the cloud says no more."""


class InsufficientCapacity(CloudError):
    """Everything the claim asks for is sold out.

    `reasons` has each offering that was tried, with what the cloud said of it. Kerf deletes the claim, leaves the
    offerings out for a while (3 minutes, doubling to 30) and plans again at once.
    """

    def __init__(self, reasons: Mapping[OfferingKey, str]) -> None:
        self.reasons = {key: reasons[key] for key in sorted(reasons)}
        super().__init__(reasons_text(reasons))

    @property
    def offerings(self) -> tuple[OfferingKey, ...]:
        """Those that were tried, in order."""
        return tuple(self.reasons)


class NodeClassNotReady(CloudError):
    """The NodeClass cannot be used, and Kerf says so on claim and pool.

    Kerf deletes the claim where the NodeClass itself says so in its condition Ready, so no plan buys with it. Where it
    does not say so yet, the same would be bought again at once: Kerf tries the claim again with back-off until the
    launch deadline.
    """


class Throttled(CloudError):
    """The cloud asks us to slow down. Kerf tries the same call again after `retry_after_s`; nothing is sold out."""

    def __init__(self, retry_after_s: float = 5) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"the cloud throttles us; again in {retry_after_s:g} s")


class LaunchFailed(CloudError):
    """The launch failed for another reason. Kerf tries again with back-off until the launch deadline.

    `reason` is a word in CamelCase, that of the claim's condition Launched, e.g. `Unauthorized`.
    """

    def __init__(self, text: str, reason: str = "LaunchFailed") -> None:
        self.reason = reason
        super().__init__(text)


class Withdrawn(CloudError):
    """The claim is being deleted, and its launch was not asked for yet. Kerf ends the claim."""


class InstanceNotFound(CloudError):
    """There is no such instance: for `delete` that means it is done."""


class InstanceState(StrEnum):
    """Where an instance stands. One that has ended is listed no more."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATING = "terminating"


class InterruptionKind(StrEnum):
    """Why the cloud ends an instance; the word is the reason of the event, as Karpenter has it."""

    SPOT = "SpotInterrupted"
    RESERVATION = "CapacityReservationInstanceInterrupted"
    STOPPING = "InstanceStopping"
    TERMINATING = "InstanceTerminating"
    UNHEALTHY = "InstanceUnhealthy"
    SCHEDULED = "ScheduledChange"
    REBALANCE = "SpotRebalanceRecommendation"

    @property
    def is_advice(self) -> bool:
        """Whether the instance stays: Kerf posts an event and does nothing."""
        return self is InterruptionKind.REBALANCE

    @property
    def is_notice(self) -> bool:
        """Whether the cloud will end the instance soon, where Kerf cannot be the one that ends it."""
        return self in (InterruptionKind.SPOT, InterruptionKind.RESERVATION)

    @property
    def counted_as(self) -> str:
        """Karpenter's word for it in metrics (its AWS provider, "Metrics", 2026-11)."""
        return _COUNTED_AS[self]


_COUNTED_AS = {
    InterruptionKind.SPOT: "spot_interrupted",
    InterruptionKind.RESERVATION: "capacity_reservation_interrupted",
    InterruptionKind.STOPPING: "instance_stopped",
    InterruptionKind.TERMINATING: "instance_terminated",
    InterruptionKind.UNHEALTHY: "instance_status",
    InterruptionKind.SCHEDULED: "scheduled_change",
    InterruptionKind.REBALANCE: "rebalance_recommendation",
}


@dataclass(frozen=True, slots=True)
class Interruption:
    """The cloud ends an instance: why, and when at the latest; `deadline_s` is None where it does not say.

    Kerf orders the replacement and drains the node before the deadline. `word` is Karpenter's for it in metrics, where
    it has another than that of the kind.
    """

    kind: InterruptionKind
    deadline_s: float | None = None
    detail: str = ""
    word: str = ""

    @property
    def counted_as(self) -> str:
        """Karpenter's word for it in metrics."""
        return self.word or self.kind.counted_as


@dataclass(frozen=True)
class Instance:
    """A machine as the cloud sees it.

    `claim_uid` is the idempotency token it was created with, kept as a tag. It is empty where another autoscaler
    launched the instance for a claim that Kerf took over: only the provider id connects them. `labels` are those its
    node will have. `sold_out` are offerings that were tried first and could not be had, each with the cloud's reason.
    Facts that a cloud lacks stay empty: `image` and `subnet` are ids, `zone_id` is the zone's name in all accounts.
    """

    provider_id: str
    claim_uid: str
    claim_name: str
    offering: OfferingKey
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    capacity: Resources = NOTHING
    allocatable: Resources = NOTHING
    launched_s: float = 0
    state: InstanceState = InstanceState.RUNNING
    interruption: Interruption | None = None
    sold_out: Mapping[OfferingKey, str] = field(default_factory=dict, hash=False)
    image: str = ""
    subnet: str = ""
    zone_id: str = ""

    def is_of(self, claim: NodeClaim) -> bool:
        """Whether it was launched for the claim: by its uid; without one by its name, and not for an older claim."""
        if self.claim_uid:
            return self.claim_uid == claim.uid
        return self.claim_name == claim.name and self.launched_s >= claim.created_s - _CLOCKS_S

    @property
    def is_interrupted(self) -> bool:
        """Whether the cloud ends it; advice is none."""
        return self.interruption is not None and not self.interruption.kind.is_advice


@dataclass(frozen=True)
class News:
    """What a turn of a background loop found out: interruptions by provider id, sold-out offerings with reasons."""

    interruptions: Mapping[str, Interruption] = field(default_factory=dict)
    sold_out: Mapping[OfferingKey, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Loop:
    """Work that a provider wants done again and again while Kerf leads, such as reading a queue.

    Kerf awaits `turn`, acts on its news, waits `period_s`, and calls it again. So a turn that begins says that Kerf has
    acted on the news of the last one, and a message can be deleted then: after a crash it comes again. A turn that
    raises is repeated with back-off. One that `only_reads` changes nothing in the cloud and runs in a dry run too.
    """

    name: str
    turn: Callable[[], Awaitable[News]]
    period_s: float
    only_reads: bool = False


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """A node whose condition of that type has had that status for longer than `toleration_s` is broken.

    With a `reason`, a regular expression, only where the condition's reason has it somewhere; of the policies of one
    type and status those without a reason hold where no other does, as in Karpenter. Its drain ends after `drain_s` at
    the latest, whatever its pods say (in Karpenter the policy's TerminationGracePeriod).
    """

    condition: str
    status: str
    toleration_s: float
    drain_s: float = 600.0
    reason: str = ""


def repair_policies_of(policies: Iterable[RepairPolicy], condition: Condition) -> tuple[RepairPolicy, ...]:
    """Those of the policies that hold for a condition of a node as it is; none for one that no policy names."""
    found = [each for each in policies if (each.condition, each.status) == (condition.type, condition.status)]
    matched = tuple(each for each in found if each.reason and re.search(each.reason, condition.reason))
    return matched or tuple(each for each in found if not each.reason)


@dataclass(frozen=True)
class NodeClassState:
    """What became of a NodeClass: its whole status, conditions included, and annotations to set.

    Kerf resolves it again when its spec changes, and after `again_s`.
    """

    status: Mapping[str, Any]
    annotations: Mapping[str, str] = field(default_factory=dict)
    again_s: float = 60


class NodeClasses(Protocol):
    """A provider's own kind of NodeClass. Documents are objects of the API as JSON, metadata included."""

    group: str
    kind: str
    finalizer: str

    async def resolve(
        self, node_class: Mapping[str, Any], *, pools: Sequence[NodePool] = (), only_reads: bool = False
    ) -> NodeClassState:
        """Find what the spec selects. What is wrong with it is said in conditions, and no error.

        `pools` are those that name it, by name: what they add to a launch is checked with it. `instance_types`,
        `create` and `drift` go by what was resolved last. `only_reads`: in a dry run, which changes nothing in the
        cloud, and whose answer is written nowhere.
        """
        ...

    async def release(self, node_class: Mapping[str, Any]) -> None:
        """Remove what was made for a NodeClass that is being deleted and that no claim uses. Must be safe to repeat."""
        ...

    def forget(self, name: str) -> None:
        """The NodeClass of that name is gone."""
        ...


class CloudProvider(Protocol):
    """A cloud. Every method may raise Throttled or CloudError; none blocks the event loop."""

    name: str

    @property
    @abstractmethod
    def currency(self) -> str:
        """Of every price it states, e.g. `USD`."""
        ...

    @abstractmethod
    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """What can be bought by the NodeClass of a pool, in name order, with current prices.

        Called before every plan: keep a cache, and return the same value until something has changed.
        """
        ...

    @abstractmethod
    async def create(self, claim: NodeClaim) -> Instance:
        """Launch an available offering that the claim's requirements allow, among the cheapest.

        The planned offering (`model.promises.offering_of`) goes before others of its price. Idempotent by `claim.uid`:
        a repeated call, also after a lost reply or a restart, returns the same instance. A call that is cancelled may
        have launched all the same. Raises InsufficientCapacity, NodeClassNotReady, LaunchFailed.
        """
        ...

    @abstractmethod
    async def delete(self, provider_id: str) -> None:
        """Terminate. Returns when the request is accepted; raises InstanceNotFound once the instance is gone."""
        ...

    @abstractmethod
    async def list_instances(self) -> Sequence[Instance]:
        """Every instance launched for a claim of this cluster that has not ended, by provider id."""
        ...

    # What follows is optional.

    async def get(self, provider_id: str) -> Instance:
        """One instance, asked by its id. Raises InstanceNotFound."""
        for instance in await self.list_instances():
            if instance.provider_id == provider_id:
                return instance
        raise InstanceNotFound(f"no instance {provider_id}")

    def launches_while(self, is_wanted: Callable[[NodeClaim], bool]) -> None:
        """What to ask just before a launch that had to wait for its turn: `create` raises Withdrawn where it is False.

        A launch that was asked for is finished. A cloud without such a line has nothing to do.
        """
        del is_wanted

    async def create_all(self, claims: Sequence[NodeClaim]) -> Sequence[Instance]:
        """Launch all of the claims or none, in their order, each as `create` does.

        What was launched is terminated where one of them is sold out or not ready. After any other error some may run:
        the next call gets them.
        """
        results = await asyncio.gather(*(self.create(claim) for claim in claims), return_exceptions=True)
        errors = [each for each in results if isinstance(each, BaseException)]
        launched = [each for each in results if isinstance(each, Instance)]
        final = next((each for each in errors if isinstance(each, InsufficientCapacity | NodeClassNotReady)), None)
        if final is not None:
            for instance in launched:
                with suppress(InstanceNotFound):
                    await self.delete(instance.provider_id)
            raise final
        if errors:
            raise errors[0]
        return launched

    async def drift(self, claim: NodeClaim) -> str | None:
        """Why the claim's instance is not what its NodeClass says now, e.g. `AMIDrift`; None when it is."""
        del claim
        return None

    def boot_log(self, claim: NodeClaim) -> str:
        """The command that shows what the claim's machine wrote while it started; empty where there is none.

        Stands in the claim's condition while no node comes, and in the event when the claim is given up.
        """
        del claim
        return ""

    @property
    def has_drift(self) -> bool:
        """Whether `drift` is worth asking: False where it always says None."""
        return False

    @property
    def node_classes(self) -> NodeClasses | None:
        """Its kind of NodeClass; None where Kerf has nothing to do for one."""
        return None

    @property
    def loops(self) -> Sequence[Loop]:
        """What it wants done beside the calls; each name once."""
        return ()

    @property
    def repair_policies(self) -> Sequence[RepairPolicy]:
        """Which nodes its machines show to be broken."""
        return ()


def reasons_text(reasons: Mapping[OfferingKey, str]) -> str:
    """Sold-out offerings by the cloud's reason: `insufficient capacity: g5.xlarge spot in us-east-1a; ...`."""
    found: dict[str, list[OfferingKey]] = {}
    for key in sorted(reasons):
        found.setdefault(reasons[key], []).append(key)
    return "; ".join(f"{reason}: {offerings_text(keys)}" for reason, keys in sorted(found.items()))
