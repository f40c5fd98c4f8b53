"""CapacityBuffer (`autoscaling.x-k8s.io/v1beta1`): room that is kept free for pods that may come.

Names and meanings are those of the definition in Cluster Autoscaler (apis/capacitybuffer) and of Karpenter 1.15's
controller, which reads the same objects. A buffer of another strategy than the active one is another's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kerf.model.nodeclaim import TRUE, Condition
from kerf.model.pods import Pod
from kerf.model.quantities import Resources

ACTIVE = "buffer.x-k8s.io/active-capacity"
"""The strategy that keeps nodes with room up; the default, and the only one that Kerf follows."""
READY_FOR_PROVISIONING, PROVISIONING, LIMITED = "ReadyForProvisioning", "Provisioning", "LimitedByQuotas"
TEMPLATE_NOT_FOUND, SCALABLE_NOT_FOUND = "PodTemplateNotFound", "ScalableRefNotFound"
RESOLUTION_FAILED, LIMITED_BY_QUOTAS = "ResolutionFailed", "LimitedByQuotas"
PROBLEMS = frozenset({TEMPLATE_NOT_FOUND, SCALABLE_NOT_FOUND, RESOLUTION_FAILED, LIMITED_BY_QUOTAS})
"""Reasons of conditions that a user has to do something about."""
SCALABLE_KINDS = ("Deployment", "ReplicaSet", "StatefulSet")
"""What a `scalableRef` may name, of the group `apps`."""
SCALABLE_GROUP = "apps"
MOST_REPLICAS = 2**31 - 1
"""What a field of 32 bits holds: limits may be a number of small pods that is larger."""
LEAST_PRIORITY = -(2**31)
"""Of the pods that stand for a buffer: no pod that exists comes after them."""


@dataclass(frozen=True, slots=True)
class ScalableRef:
    """An object that can be scaled, in the namespace of the buffer that names it."""

    group: str
    kind: str
    name: str

    @property
    def is_known(self) -> bool:
        """Whether it is of a kind whose pods Kerf knows."""
        return self.group == SCALABLE_GROUP and self.kind in SCALABLE_KINDS


@dataclass(frozen=True)
class Scalable:
    """A Deployment, StatefulSet or ReplicaSet: how many pods it is to have, and `pod` as it makes them, without uid."""

    namespace: str
    kind: str
    workload: str
    replicas: int
    pod: Pod

    @property
    def name(self) -> str:
        """`Deployment/web`: objects of several kinds may have one name."""
        return f"{self.kind}/{self.workload}"

    @property
    def key(self) -> str:
        """`namespace/kind/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class BufferStatus:
    """What the status says: so many `replicas` are wanted, of this generation of the PodTemplate."""

    replicas: int | None = None
    pod_template: str = ""
    pod_template_generation: int | None = None
    strategy: str = ""
    conditions: tuple[Condition, ...] = ()

    def condition(self, name: str) -> Condition | None:
        """The condition of that type; None when it was never set."""
        return next((each for each in self.conditions if each.type == name), None)

    def is_true(self, name: str) -> bool:
        """Whether the condition of that type is True."""
        found = self.condition(name)
        return found is not None and found.status == TRUE

    def with_condition(self, condition: Condition) -> "BufferStatus":
        """The same with one condition set; its time stays when its status does."""
        held = self.condition(condition.type)
        if held is not None and held.status == condition.status:
            condition = replace(condition, since_s=held.since_s)
        others = [each for each in self.conditions if each.type != condition.type]
        return replace(self, conditions=tuple(sorted([*others, condition], key=lambda each: each.type)))


@dataclass(frozen=True)
class CapacityBuffer:
    """A buffer as its manifest states it, plus its status. One of `pod_template` and `scalable` is given, or neither.

    `percentage` is of the pods that `scalable` is to have; `limits` are in the units of `Resources`.
    """

    namespace: str
    name: str
    pod_template: str = ""
    scalable: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Resources | None = None
    strategy: str = ACTIVE
    uid: str = ""
    resource_version: str = ""
    created_s: float = 0
    deleted_s: float | None = None
    status: BufferStatus = BufferStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def asks_as(self, other: "CapacityBuffer") -> bool:
        """Whether the other differs in nothing but its status and its version."""
        return replace(self, status=other.status, resource_version=other.resource_version) == other

    @property
    def is_ours(self) -> bool:
        """Whether it is of the strategy that Kerf follows."""
        return self.strategy == ACTIVE

    @property
    def is_kept(self) -> bool:
        """Whether room is kept for it."""
        return self.is_ours and self.deleted_s is None

    @property
    def scalable_key(self) -> str:
        """`namespace/kind/name` of what it names to be scaled, where Kerf knows its kind; empty for none."""
        ref = self.scalable
        return f"{self.namespace}/{ref.kind}/{ref.name}" if ref is not None and ref.is_known else ""

    def wanted(self, requests: Mapping[str, int], scale: int | None = None) -> int:
        """For how many pods room is to be kept, each with these requests; `scale` is what `scalable` is to have.

        The larger of `replicas` and the percentage, rounded up; at most what the limits hold; the limits alone where
        neither is given. As Karpenter, except for a percentage of nothing: that is nothing, also where limits are
        given. A limit of what no pod asks limits nothing.
        """
        asked = [] if self.replicas is None else [self.replicas]
        if self.percentage is not None and scale is not None:
            asked.append(-(-scale * self.percentage // 100))
        held = [limit // requests[name] for name, limit in (self.limits or {}).items() if requests.get(name, 0) > 0]
        if not asked:
            return max(0, min([*held, MOST_REPLICAS])) if held else 0
        return max(0, min([max(asked), *held, MOST_REPLICAS]))
