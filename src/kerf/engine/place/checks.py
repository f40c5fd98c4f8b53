"""What the pods of one shape ask of other pods, ready to be asked of any node at a constant cost.

The rules are kube-scheduler's of 1.36 (pkg/scheduler/framework/plugins: podtopologyspread/filtering.go,
interpodaffinity/filtering.go), in the order of its filters: spread, affinity, anti-affinity, others' anti-affinity.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kerf.engine.place.domains import Site
from kerf.engine.place.tallies import Aversion, Company, Presence, Reach, Spread, Tally
from kerf.model.causes import Cause, Name
from kerf.model.plan import Stage
from kerf.model.topology import (
    AFFINITY,
    ANTI_AFFINITY,
    SPREAD,
    NotNear,
    NoTopologyLabel,
    SkewExceeded,
    TooFewDomains,
    TooNear,
    TopologySpreadConstraint,
    Unwelcome,
)
from kerf.model.volumecauses import SharedElsewhere

VOLUMES = "volumes"
"""The claims of a pod by their name in a manifest."""
_SHOWN = 8
"""Domains of which a refusal gives the counts."""


class Check(ABC):
    """One constraint; `stage` is where a refusal belongs, `field` its name in a manifest."""

    stage: ClassVar[Stage]
    field: ClassVar[str]
    tally: Tally

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """The topology keys whose domains decide."""

    @abstractmethod
    def allows(self, node: int, site: Site) -> bool:
        """Whether one more pod of the shape may come to the node."""

    @property
    def is_shut(self) -> bool:
        """Whether no node at all is allowed, as far as one look can tell."""
        return False

    @abstractmethod
    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """Why not, and how far it is from that; only where it does not allow it."""


@dataclass(frozen=True, eq=False)
class Even(Check):
    """A spread constraint; `own` is 1 where the pod itself counts."""

    tally: Spread
    constraint: TopologySpreadConstraint
    own: int
    stage, field = Stage.TOPOLOGY, SPREAD

    @property
    def keys(self) -> tuple[str, ...]:
        """See Check."""
        return (self.constraint.key,)

    def _skew(self, value: str) -> int:
        return self.tally.counts.get(value, 0) + self.own - self.tally.least(self.constraint.min_domains)

    def allows(self, node: int, site: Site) -> bool:
        """See Check."""
        value = self.tally.values[node]
        if value is None:
            return site.will_have(self.constraint.key)
        return self._skew(value) <= self.constraint.max_skew

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check."""
        key, value = Name(self.constraint.key), self.tally.values[node]
        if value is None:
            return NoTopologyLabel(Name(SPREAD), key), 1
        asked, tally = self.constraint, self.tally
        found = SkewExceeded(
            key,
            Name(value),
            tally.reaches[0].selector,
            tally.counts.get(value, 0),
            tally.least(asked.min_domains),
            asked.max_skew,
            bool(self.own),
            tuple((Name(domain), count) for domain, count in tally.extremes(_SHOWN)),
        )
        over = found.skew - asked.max_skew
        if tally.domains < asked.min_domains:
            return TooFewDomains(found, asked.min_domains, tally.domains), over
        return found, over


@dataclass(frozen=True, eq=False)
class Together(Check):
    """All affinity terms of a pod; `is_own` says that the pod satisfies them itself, so the first may come alone."""

    tally: Company
    is_own: bool
    stage, field = Stage.AFFINITY, AFFINITY

    @property
    def keys(self) -> tuple[str, ...]:
        """See Check."""
        return self.tally.keys

    def allows(self, node: int, site: Site) -> bool:
        """See Check."""
        is_there = True
        for key, values in zip(self.tally.keys, self.tally.values, strict=True):
            value = values[node]
            if value is None:
                if not site.will_have(key):
                    return False
            elif (key, value) not in self.tally.counts:
                is_there = False
        return is_there or (self.is_own and not self.tally.counts)

    @property
    def is_shut(self) -> bool:
        """See Check. Without any such pod only a node allows it whose domain is not known yet. Linear in nodes."""
        if self.is_own or self.tally.counts:
            return False
        return any(None not in values for values in self.tally.values)

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check."""
        missing: list[Cause] = []
        selectors = tuple(dict.fromkeys(reach.selector for reach in self.tally.reaches))
        for key, values, reach in zip(self.tally.keys, self.tally.values, self.tally.reaches, strict=True):
            value = values[node]
            if value is None and not site.will_have(key):
                return NoTopologyLabel(Name(AFFINITY), Name(key)), 2
            if value is not None and (key, value) not in self.tally.counts:
                also = tuple(each for each in selectors if each != reach.selector)
                missing.append(NotNear(Name(key), Name(value), reach.selector, _names(reach), also))
        return missing[0], 1


@dataclass(frozen=True, eq=False)
class Sharing(Together):
    """A claim whose volume is still to be made: where the first pod with it runs, and no other one elsewhere.

    Where nodes have no zone at all, those are one place.
    """

    claim: Name
    stage, field = Stage.TOPOLOGY, VOLUMES

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check."""
        key = self.tally.keys[0]
        zones = tuple(Name(value) for _, value in sorted(self.tally.counts))
        # Nearer than other constraints: where these hold, no change of this pod alone helps.
        return SharedElsewhere(self.claim, Name(key), zones, Name(self.tally.values[0][node] or "")), 0


@dataclass(frozen=True, eq=False)
class Apart(Check):
    """An anti-affinity term of the pod: no pods of `tally` may be near but those of `less`, which are among them."""

    tally: Presence
    reach: Reach
    less: tuple[Presence, ...] = ()
    stage, field = Stage.AFFINITY, ANTI_AFFINITY

    @property
    def keys(self) -> tuple[str, ...]:
        """See Check."""
        return (self.tally.key,)

    def allows(self, node: int, site: Site) -> bool:
        """See Check. A node without the label has no pod near."""
        return _is_free(self.tally, self.less, node)

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check."""
        value, reach = self.tally.values[node] or "", self.reach
        count = self.tally.counts.get(value, 0) - _among(self.less, value)
        return TooNear(Name(self.tally.key), Name(value), reach.selector, _names(reach), count), count


@dataclass(frozen=True, eq=False)
class Welcome(Check):
    """Anti-affinity terms of other pods that mean this one: of all that `tally` has those that `less` have not.

    `terms` are the tallies of single terms, where that of the check has those of several.
    """

    tally: Aversion
    less: tuple[Aversion, ...] = ()
    terms: Sequence[Aversion] = ()
    stage, field = Stage.AFFINITY, ANTI_AFFINITY

    @property
    def keys(self) -> tuple[str, ...]:
        """See Check."""
        return (self.tally.key,)

    def allows(self, node: int, site: Site) -> bool:
        """See Check."""
        return _is_free(self.tally, self.less, node)

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check. The first of the terms that refuse it. Cost: their number."""
        value, passed = self.tally.values[node] or "", set(map(id, self.less))
        refusing = (each for each in self.terms if value in each.counts and id(each) not in passed)
        tally = next(refusing, self.tally)
        count = tally.counts.get(value, 0)
        return Unwelcome(Name(tally.key), Name(value), Name(tally.workload), count), count


def _is_free(tally: Presence, less: Sequence[Presence], node: int) -> bool:
    """Whether the node's domain has no pods that are counted, except for those of `less`."""
    value = tally.values[node]
    if value is None or value not in tally.counts:
        return True
    return bool(less) and tally.counts[value] == _among(less, value)


def _among(tallies: Iterable[Presence], value: str) -> int:
    return sum([each.counts.get(value, 0) for each in tallies])


def _names(reach: Reach) -> tuple[Name, ...]:
    return () if reach.namespace_selector is not None else tuple(map(Name, sorted(reach.namespaces)))


def openings(checks: Sequence[Check]) -> int:
    """Grows with every change that may open a node which one of the checks refused."""
    return sum(check.tally.openings for check in checks)
