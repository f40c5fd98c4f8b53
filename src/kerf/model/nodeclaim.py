"""NodeClaim (`karpenter.sh/v1`): one node on its way, its conditions and the table of its legal steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kerf.model.constraints import Requirements, Taint
from kerf.model.printable import one_line
from kerf.model.quantities import NOTHING, Resources

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
LAUNCHED, REGISTERED, INITIALIZED, READY = "Launched", "Registered", "Initialized", "Ready"
CONSOLIDATABLE, DISRUPTION_REASON = "Consolidatable", "DisruptionReason"
DRAINED, VOLUMES_DETACHED, INSTANCE_TERMINATING = "Drained", "VolumesDetached", "InstanceTerminating"
CONSISTENT_STATE_FOUND = "ConsistentStateFound"
"""Condition of a claim: whether its node has the shape that the cloud promised."""
VALIDATED = "ValidationSucceeded"
DRIFTED = "Drifted"
"""Condition of a claim whose node is not what its pool or NodeClass says now, with the reason."""
UNHEALTHY = "Unhealthy"
"""Condition of a claim whose node is broken; its reason is the condition that the provider tolerates no longer."""
INSTANCE_ENDS = frozenset(
    {"SpotInterrupted", "CapacityReservationInstanceInterrupted", "InstanceStopping", "InstanceTerminating"}
)
"""Reasons of DISRUPTION_REASON for which the cloud ends the instance within minutes, whatever its pods forbid."""
GPUS_HEALTHY = "GPUsHealthy"
"""Condition of a claim: False while a card of its node is broken or gone, with which and who is on it."""
PRICE_CAP_EXCEEDED = "PriceCapExceeded"
"""Condition of a claim whose price has risen above a cap of its pool."""
OVERLOADED = "Overloaded"
"""Condition of a claim whose node is busy although little is asked of it."""
STAGES = (LAUNCHED, REGISTERED, INITIALIZED)
"""The legal steps of a claim: each becomes True only after the one before it. None goes back, except for a node that is
relabelled: it initialises again."""

TERMINATION_FINALIZER = "karpenter.sh/termination"
DISRUPTED_TAINT = Taint("karpenter.sh/disrupted", "", "NoSchedule")
EXCLUDED_FROM_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"
"""Label of a node that is being drained; its value is Karpenter's name there, which other tools look for."""
TERMINATION_TIMESTAMP = "karpenter.sh/nodeclaim-termination-timestamp"
"""Annotation of a claim that is deleted: when its last pod must have gone; an instant."""
UNREGISTERED_TAINT = Taint("karpenter.sh/unregistered", "", "NoExecute")
REGISTERED_LABEL, INITIALIZED_LABEL = "karpenter.sh/registered", "karpenter.sh/initialized"
COMING_LABELS = Requirements.of_labels({REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"})
"""Labels that each node gets on its way and no claim may ask for: pods that select them run on it once it is up, and
those of DaemonSets take of it from then on (kubernetes-sigs/karpenter#2161)."""
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DO_NOT_REPAIR = "karpenter.sh/do-not-repair"
"""Annotation of a node or its pool: `true` where it is not replaced because it is broken."""

PLANNED_PODS = "kerf.dev/planned-pods"
"""Annotation of a claim: the pods it was bought for, each with the indexes of its cards; JSON `{"ns/pod": [0]}`."""
PLANNED_ROUNDS = "kerf.dev/planned-rounds"
"""Annotation of a claim: those of its pods that come after others which are behind them in the queue; JSON
`{"ns/pod": 1}`: how often their scheduler has to refuse them first."""
PLANNED_OFFERING = "kerf.dev/planned-offering"
"""Annotation of a claim: `type/zone/capacity-type` it was planned as."""
PLANNED_PRICE = "kerf.dev/planned-price"
"""Annotation of a claim that was bought in the place of others: what its offering cost then; decimal, for an hour."""
PREDICTED_DEVICES = "kerf.dev/predicted-devices"
"""Annotation of a claim: the cards its node must register; JSON `[{"model", "registeredAs", "memoryMiB"}]`."""
FOLLOW = "kerf.dev/follow"
"""Annotation of a claim: `replay`, `reserve` or `pin`."""
REPLACES = "kerf.dev/replaces"
"""Annotation of a claim: the claims of the nodes in whose place it was bought, one after another with commas."""
REPLACED_BY = "kerf.dev/replaced-by"
"""Annotation of a claim whose node goes once others are up: the claims of these, one after another with commas."""
MIN_VALUES_RELAXED = "karpenter.sh/nodeclaim-min-values-relaxed"
"""Annotation of a claim: `true` where it names fewer types than minValues of its pool ask for."""
PODS_SEEN = "kerf.dev/pods-seen"
"""Annotation of a claim: a digest of the pods that were on its node at the last pod event."""
OVERLOADED_BY = "kerf.dev/overloaded-by"
"""Annotation: the workloads that events of this episode name as overloading the node; a JSON list."""
RELABELLED = "kerf.dev/relabelled"
"""Annotation of a claim: since when its node is being given another configuration of GPU sharing; an instant."""
REGISTERED_LESS = "kerf.dev/registered-less"
"""Annotation of a claim: its node registered less than was predicted and is kept with that; what, for a person."""
OBSERVED_DEVICES = "kerf.dev/observed-devices"
"""Annotation of a NodePool: the least memory in MiB that a card of each instance type has registered; JSON."""


_LONGEST_START_S = 3600
"""What a clock or a condition that was written again says beyond this is no time that a node took to start."""


@dataclass(frozen=True, slots=True)
class NodeClassRef:
    """Which provider configuration a pool uses, e.g. karpenter.k8s.aws/EC2NodeClass default."""

    group: str
    kind: str
    name: str

    @property
    def label(self) -> str:
        """The node label that names it, e.g. `karpenter.k8s.aws/ec2nodeclass`."""
        return f"{self.group}/{self.kind.lower()}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A status condition; `since_s` is its last transition."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since_s: float = 0

    def __post_init__(self) -> None:
        """Others may write conditions, and kubectl shows them as they are."""
        object.__setattr__(self, "message", one_line(self.message))


@dataclass(frozen=True)
class NodeClaim:
    """One node that was asked for. The spec is final at creation; only status and metadata change."""

    name: str
    node_pool: str
    node_class: NodeClassRef
    requirements: Requirements
    requests: Resources = NOTHING
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    expire_after_s: int | None = 720 * 3600
    termination_grace_period_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    created_s: float = 0
    deleted_s: float | None = None
    finalizers: tuple[str, ...] = ()
    provider_id: str = ""
    node_name: str = ""
    capacity: Resources = NOTHING
    allocatable: Resources = NOTHING
    conditions: tuple[Condition, ...] = ()
    last_pod_event_s: float | None = None

    def condition(self, name: str) -> Condition | None:
        """The condition of that type; None when it was never set."""
        # A loop, not a generator: each decision asks this of every claim several times.
        for condition in self.conditions:
            if condition.type == name:
                return condition
        return None

    def is_true(self, name: str) -> bool:
        """Whether the condition of that type is True."""
        found = self.condition(name)
        return found is not None and found.status == TRUE

    def with_condition(self, condition: Condition) -> "NodeClaim":
        """The same with one condition set; its time stays when its status does."""
        held = self.condition(condition.type)
        if held is not None and held.status == condition.status:
            condition = replace(condition, since_s=held.since_s)
        others = [c for c in self.conditions if c.type != condition.type]
        return replace(self, conditions=tuple(sorted([*others, condition], key=lambda c: c.type)))

    def without_condition(self, name: str) -> "NodeClaim":
        """The same without the condition of that type."""
        return replace(self, conditions=tuple(c for c in self.conditions if c.type != name))

    @property
    def is_deleting(self) -> bool:
        """Whether it has a deletion timestamp."""
        return self.deleted_s is not None

    @property
    def has_broken_node(self) -> bool:
        """Whether its node is broken as a whole, and not a card of it alone: then its repair takes pods by force."""
        found = self.condition(UNHEALTHY)
        return found is not None and found.status == TRUE and found.reason != GPUS_HEALTHY

    @property
    def expires_s(self) -> float | None:
        """When it is as old as `expireAfter`, from its creation; None where that is never.

        A node serves at least as long as it took to start: where `expireAfter` is too short, nodes would be bought and
        thrown away as fast as they come.
        """
        if self.expire_after_s is None or not self.created_s:
            return None
        ready = self.condition(INITIALIZED)
        start_s = ready.since_s - self.created_s if ready is not None and ready.status == TRUE else 0
        return self.created_s + max(self.expire_after_s, 2 * min(start_s, _LONGEST_START_S))

    @property
    def replaced_by(self) -> tuple[str, ...]:
        """The claims that must be up before its node goes; empty where it goes for no others."""
        return names_in(self.annotations.get(REPLACED_BY, ""))

    @property
    def replaces(self) -> tuple[str, ...]:
        """The claims of the nodes in whose place it was bought; empty for any other."""
        return names_in(self.annotations.get(REPLACES, ""))

    @property
    def is_terminated(self) -> bool:
        """Whether its instance is gone and only finalizers of others keep the object: it stands for nothing."""
        is_let_go = self.is_deleting and TERMINATION_FINALIZER not in self.finalizers
        return is_let_go and self.is_true(INSTANCE_TERMINATING)

    @property
    def instance_type(self) -> str:
        """The type it was launched as; before that, the cheapest it asks for is unknown and this is empty."""
        return self.labels.get("node.kubernetes.io/instance-type", "")


def names_in(text: str) -> tuple[str, ...]:
    """The names in an annotation that has them one after another with commas."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)
