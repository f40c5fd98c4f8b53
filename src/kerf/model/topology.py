"""What a pod asks of where other pods are: spread over domains, beside some pods, or away from them.

A domain is all nodes that have one value of a label, the topology key. The values here are those of a pod's spec, so
all pods of a workload share them: what depends on the pod's own labels or namespace is worked out at use.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kerf.model.causes import Cause, Name
from kerf.model.constraints import Requirement, Requirements, all_of
from kerf.model.namespaces import NAMESPACE_NAME

SPREAD, AFFINITY, ANTI_AFFINITY = "topologySpreadConstraints", "podAffinity", "podAntiAffinity"
"""The constraints by their names in a manifest."""
_NONE = Name("")


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """At most `max_skew` more pods in a domain than in the one with the fewest.

    `selector` says which pods of the namespace count. `is_required` is DoNotSchedule; otherwise it is a wish. With
    fewer domains than `min_domains` the fewest counts as 0. Nodes count where the pod's own node selector and affinity
    allow them (`honors_affinity`), and where it tolerates their taints (`honors_taints`).
    """

    key: str
    max_skew: int
    selector: Requirements
    is_required: bool = True
    min_domains: int = 1
    match_label_keys: tuple[str, ...] = ()
    honors_affinity: bool = True
    honors_taints: bool = False

    def selected(self, labels: Mapping[str, str]) -> Requirements:
        """The selector for a pod with such labels."""
        return _narrowed(self.selector, labels, self.match_label_keys)

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of pods that it reads."""
        return frozenset((*self.selector, *self.match_label_keys))


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """Pods in the same domain as which a pod is to run, or is not.

    It means pods of `namespaces` and of those whose labels `namespace_selector` selects; where it has neither, of the
    pod's own. None as a selector of namespaces selects none, an empty one all.
    """

    key: str
    selector: Requirements
    namespaces: tuple[str, ...] = ()
    namespace_selector: Requirements | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()

    def selected(self, labels: Mapping[str, str]) -> Requirements:
        """The selector for a pod with such labels."""
        return _narrowed(self.selector, labels, self.match_label_keys, self.mismatch_label_keys)

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of pods that it reads."""
        return frozenset((*self.selector, *self.match_label_keys, *self.mismatch_label_keys))


def reads_labels(term: PodAffinityTerm) -> bool:
    """Whether which namespaces the term means depends on labels of theirs beside their names."""
    return term.namespace_selector is not None and any(key != NAMESPACE_NAME for key in term.namespace_selector)


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """Terms that must all hold, and wishes with their weights from 1 to 100."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[tuple[int, PodAffinityTerm], ...] = ()


NO_AFFINITY = PodAffinity()


def _narrowed(
    selector: Requirements, labels: Mapping[str, str], same: Iterable[str], other: Iterable[str] = ()
) -> Requirements:
    """The selector with the pod's own values of some labels, or without them; a label that it lacks is passed over."""
    added = [Requirement.spelt(key, "In", (labels[key],)) for key in same if key in labels]
    added += [Requirement.spelt(key, "NotIn", (labels[key],)) for key in other if key in labels]
    # A selector that selects nothing stays so: the API server adds nothing to it.
    return all_of([*selector.values(), *added]) if added and not selector.is_never else selector


# Why a node refuses a pod for the sake of other pods.


@dataclass(frozen=True, slots=True)
class NoTopologyLabel(Cause):
    """The node is in no domain: it lacks the label that a constraint of the pod goes by."""

    constraint: Name
    key: Name


@dataclass(frozen=True, slots=True)
class SkewExceeded(Cause):
    """One more pod in the domain would be too many.

    `count` pods are there, `least` in the domain with the fewest; `counts` are the fullest and the emptiest domains.
    """

    key: Name
    domain: Name
    selector: Requirements
    count: int
    least: int
    max_skew: int
    is_counted: bool
    counts: tuple[tuple[Name, int], ...]

    @property
    def skew(self) -> int:
        """What it would be with the pod there."""
        return self.count + int(self.is_counted) - self.least


@dataclass(frozen=True, slots=True)
class TooFewDomains(Cause):
    """The same, where `min_domains` are asked for and there are `domains`: the fewest counts as 0."""

    skew: SkewExceeded
    min_domains: int
    domains: int


@dataclass(frozen=True, slots=True)
class NotNear(Cause):
    """No pod that it must be with is in the domain; `namespaces` is empty where any will do.

    An empty `domain` is a node to be bought. `also` are the selectors of its other terms, which must mean the same pod.
    """

    key: Name
    domain: Name
    selector: Requirements
    namespaces: tuple[Name, ...]
    also: tuple[Requirements, ...] = ()


@dataclass(frozen=True, slots=True)
class TooNear(Cause):
    """The domain has `count` pods that it must be away from."""

    key: Name
    domain: Name
    selector: Requirements
    namespaces: tuple[Name, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Unwelcome(Cause):
    """The domain has `count` pods that must be away from it; `workload` made some, the first by name."""

    key: Name
    domain: Name
    workload: Name
    count: int


@dataclass(frozen=True, slots=True)
class NoRoomBeside(Cause):
    """It must share a node with others, and no node that can be bought holds more than `held` such pods.

    0 where none can have even one of them beside it. `claim` is the one that they share, whose volume is a part of a
    node; empty where the pod's affinity asks for them.
    """

    selector: Requirements
    namespaces: tuple[Name, ...]
    held: int
    claim: Name = _NONE


@dataclass(frozen=True, slots=True)
class KeptOffByDaemonSet(Cause):
    """Each node that could be bought for it gets a pod of the DaemonSet (`namespace/name`), and that stands against it.

    `constraint` is the pod's own that means the DaemonSet's pod; empty where that pod's anti-affinity keeps it off.
    """

    daemon_set: Name
    constraint: Name
    key: Name


@dataclass(frozen=True, slots=True)
class AffinityCircle(Cause):
    """Each of the pods (`namespace/name`) must be with the next one, the last with the first, and none of them runs.

    So none can come first. `pods` are the first few of `count`; `is_one`: the refused pod is the first of them, else it
    waits for one.
    """

    pods: tuple[Name, ...]
    count: int
    is_one: bool


@dataclass(frozen=True, slots=True)
class OutOfTurn(Cause):
    """Pods that come before it leave its constraints on others unmet on every node that the plan has for it.

    `why` is the constraint on the node that was meant for it, once these are there.
    """

    why: Cause = field(default_factory=Cause)


@dataclass(frozen=True, slots=True)
class NeverMet(Cause):
    """A constraint of the pod that nothing can meet: it contradicts itself, or selects nothing.

    `both` are the two requirements that contradict each other; empty where it selects nothing.
    """

    constraint: Name
    both: tuple[Name, ...] = ()
