"""Node, as the API shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kerf.model.constraints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Requirements, Taint
from kerf.model.nodeclaim import Condition
from kerf.model.quantities import NOTHING, Resources

CORDONED_BY_KERF = "kerf.dev/cordoned"
"""Annotation of a node that Kerf cordoned until its plan is followed; only such a cordon is ours to lift."""

# Taints that go away by themselves while a node starts (karpenter pkg/scheduling/taints.go, KnownEphemeralTaints).
EPHEMERAL_TAINTS = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    }
)


CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""The key of the taint that follows `spec.unschedulable`, some time later; the field is what counts."""


RESERVED_FOR = "kerf.dev/reserved-for"
"""Key of the taint that keeps a new node for the pods it was bought for, and of their toleration, both Kerf's."""
OPENING_TAINTS = frozenset({CORDON_TAINT, RESERVED_FOR})
"""Keys of taints that a new node bears for seconds while it is opened, and that keep no planned pod off."""
DRIFTED_TAINT = Taint("kerf.dev/drifted", "", PREFER_NO_SCHEDULE)
"""The taint of a node that has drifted: a pod that comes there moves again, so kube-scheduler prefers the others."""
_LONGEST_VALUE = 63


def reservation(claim: str) -> Taint:
    """The taint that reserves the node of a claim for the pods of its plan."""
    # The value of a taint has the form of a label's. A claim's name may be longer, and is unique by its end.
    return Taint(RESERVED_FOR, claim[-_LONGEST_VALUE:].lstrip("-."), NO_SCHEDULE)


def is_ephemeral(taint: Taint) -> bool:
    """Whether a starting node loses the taint without a decision of a controller."""
    return (taint.key, taint.effect) in EPHEMERAL_TAINTS or taint.key.startswith("readiness.k8s.io/")


@dataclass(frozen=True)
class Node:
    """A node of the cluster; `capacity` and `allocatable` are what kubelet shows, never what we hope for.

    `ready_since_s` is when its Ready condition last changed. `conditions` are all of them, by type, each without its
    message and its heartbeat: kubelet says the same in new words, and that would be another node each time.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    capacity: Resources = NOTHING
    allocatable: Resources = NOTHING
    provider_id: str = ""
    is_ready: bool = True
    ready_since_s: float | None = None
    is_unschedulable: bool = False
    uid: str = ""
    resource_version: str = ""
    created_s: float = 0
    deleted_s: float | None = None
    finalizers: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def condition(self, name: str) -> Condition | None:
        """The condition of that type; None where the node has none."""
        return next((condition for condition in self.conditions if condition.type == name), None)

    @cached_property
    def label_requirements(self) -> Requirements:
        """Its labels, each as a set of one value."""
        return Requirements.of_labels(self.labels)
