"""ProvisioningRequest (`autoscaling.x-k8s.io/v1`): room that a controller such as Kueue asks for before pods.

Names and meanings are Cluster Autoscaler's (cluster-autoscaler/proposals/provisioning-request.md, and the constants of
its package `provisioningrequest/conditions`). A request of a class that is not among ours is another's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kerf.errors import brief
from kerf.model.nodeclaim import TRUE, Condition
from kerf.model.pods import Pod

CHECK_CAPACITY = "check-capacity.autoscaling.x-k8s.io"
"""Class: is there room on the nodes that are up? Nothing is bought."""
BEST_EFFORT_ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""Class: room for all pods together, or none; what is missing is bought."""
CONSUMES = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations of a pod that takes the room of the request they name; the second is the older one."""
ACCEPTED, PROVISIONED, FAILED = "Accepted", "Provisioned", "Failed"
BOOKING_EXPIRED, CAPACITY_REVOKED = "BookingExpired", "CapacityRevoked"
NODES_STARTING = "NodesStarting"
"""Reason why a request is not provisioned yet: what it needs is bought."""
NO_RETRY, VALID_UNTIL = "noRetry", "ValidUntilSeconds"
"""Parameters: `"true"` fails at the first refusal; after so many seconds since its creation a request fails."""
BOOKED_S, EXPIRES_S = 600, 7 * 24 * 3600
"""How long room is kept once it is there, and after how long a request without any fails."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many pods of one PodTemplate of the same namespace."""

    template: str
    count: int


@dataclass(frozen=True)
class PodTemplate:
    """A core/v1 PodTemplate; `pod` has no uid, since no API has seen one."""

    namespace: str
    name: str
    pod: Pod
    uid: str = ""
    resource_version: str = ""
    generation: int = 1


@dataclass(frozen=True)
class ProvisioningRequest:
    """A request as its manifest states it, plus its conditions."""

    namespace: str
    name: str
    class_name: str
    pod_sets: tuple[PodSet, ...]
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    uid: str = ""
    resource_version: str = ""
    created_s: float = 0
    deleted_s: float | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_ours(self) -> bool:
        """Whether it is of a class that Kerf serves."""
        return self.class_name in (CHECK_CAPACITY, BEST_EFFORT_ATOMIC)

    @property
    def pods(self) -> int:
        """For how many pods it asks."""
        return sum(each.count for each in self.pod_sets)

    @property
    def is_over(self) -> bool:
        """Whether nothing is kept or bought for it any more."""
        return self.deleted_s is not None or any(
            self.is_true(name) for name in (FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED)
        )

    @property
    def booked_until_s(self) -> float | None:
        """Until when its room is kept; None where it has none yet."""
        found = self.condition(PROVISIONED)
        return found.since_s + BOOKED_S if found is not None and found.status == TRUE else None

    @property
    def fails_s(self) -> float:
        """When it fails if it has found no room by then. A parameter that is no number counts as none."""
        text = self.parameters.get(VALID_UNTIL, "")
        return self.created_s + (int(text) if _is_seconds(text) else EXPIRES_S)

    @property
    def ignored(self) -> tuple[str, ...]:
        """What is wrong with parameters that count as none."""
        found = []
        if not _is_seconds(self.parameters.get(VALID_UNTIL, "1")):
            text = self.parameters[VALID_UNTIL]
            found.append(f"parameters.{VALID_UNTIL} is ignored: expected seconds, 1 or more, got {brief(text)}")
        if self.parameters.get(NO_RETRY, "true") not in ("true", "false"):
            text = self.parameters[NO_RETRY]
            found.append(f'parameters.{NO_RETRY} is ignored: expected "true" or "false", got {brief(text)}')
        return tuple(found)

    def condition(self, name: str) -> Condition | None:
        """The condition of that type; None when it was never set."""
        return next((each for each in self.conditions if each.type == name), None)

    def is_true(self, name: str) -> bool:
        """Whether the condition of that type is True."""
        found = self.condition(name)
        return found is not None and found.status == TRUE

    def with_condition(self, condition: Condition) -> "ProvisioningRequest":
        """The same with one condition set; its time stays when its status does."""
        held = self.condition(condition.type)
        if held is not None and held.status == condition.status:
            condition = replace(condition, since_s=held.since_s)
        others = [each for each in self.conditions if each.type != condition.type]
        return replace(self, conditions=tuple(sorted([*others, condition], key=lambda each: each.type)))


def _is_seconds(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < len(text) <= 9 and int(text) > 0


def consumed_request(pod: Pod) -> str:
    """`namespace/name` of the request whose room a pod takes; empty for other pods."""
    name = next((name for key in CONSUMES if (name := pod.annotations.get(key, ""))), "")
    return f"{pod.namespace}/{name}" if name else ""
