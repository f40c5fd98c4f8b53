"""What a pod would rather have, one preference at a time, and all that is treated as required just now.

A scheduler only scores preferences, and a node that is bought without them is bought in the wrong place. So a decision
asks for them first and drops them one by one where they cannot be had.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kerf.model.causes import Cause, Name
from kerf.model.constraints import ANYTHING, Requirements
from kerf.model.topology import PodAffinityTerm, TopologySpreadConstraint


@dataclass(frozen=True, slots=True)
class PrefersNode:
    """A preferred term of node affinity."""

    weight: int
    labels: Requirements


@dataclass(frozen=True, slots=True)
class PrefersNear:
    """A preferred term of pod affinity."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class PrefersAway:
    """A preferred term of pod anti-affinity."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class PrefersEven:
    """A spread constraint with ScheduleAnyway."""

    constraint: TopologySpreadConstraint


@dataclass(frozen=True, slots=True)
class PrefersUntainted:
    """No node with a PreferNoSchedule taint that the pod does not tolerate."""


Preference = PrefersNode | PrefersNear | PrefersAway | PrefersEven | PrefersUntainted


@dataclass(frozen=True, slots=True)
class PreferenceDropped(Cause):
    """So many pods of these workloads have their place without a preference: none was to be had with it."""

    preference: Preference
    workloads: tuple[Name, ...]
    pods: int


@dataclass(frozen=True, slots=True)
class Wish:
    """Preferences that are treated as required of a pod just now; a decision sets it, no API does.

    `labels` are those of the heaviest term of node affinity. `avoids_taints`: PreferNoSchedule keeps it off as
    NoSchedule does. `is_settled` says that others were heeded when its pods were given their domain.
    """

    labels: Requirements = ANYTHING
    near: tuple[PodAffinityTerm, ...] = ()
    away: tuple[PodAffinityTerm, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()
    avoids_taints: bool = False
    is_settled: bool = False

    @property
    def is_related(self) -> bool:
        """Whether it says where other pods are to be."""
        return bool(self.near or self.away or self.spread)

    @property
    def settled(self) -> "Wish":
        """The same once the domain of its pods is decided."""
        if not self.is_related:
            return self
        return replace(self, near=(), away=(), spread=(), is_settled=True)

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of pods that it reads."""
        found = [each.label_keys for each in self.spread]
        return frozenset[str]().union(*found, *(term.label_keys for term in (*self.near, *self.away)))

    @property
    def selects_without_labels(self) -> bool:
        """Whether one of them may select a pod that has none of the labels which it reads."""
        return any(selector.unsatisfied_by({}) is None for selector in self.selectors())

    def selectors(self) -> Iterator[Requirements]:
        """Which pods it means."""
        yield from (constraint.selector for constraint in self.constraints())

    def constraints(self) -> Iterator[TopologySpreadConstraint | PodAffinityTerm]:
        """Those of spread, then affinity and anti-affinity."""
        yield from self.spread
        yield from (*self.near, *self.away)


NO_WISH = Wish()
