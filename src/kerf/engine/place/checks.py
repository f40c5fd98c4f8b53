"""What the pods of one shape ask of other pods, ready to be asked of any node at a constant cost.

The rules are kube-scheduler's of 1.36 (pkg/scheduler/framework/plugins: podtopologyspread/filtering.go,
interpodaffinity/filtering.go), in the order of its filters: spread, affinity, anti-affinity, others' anti-affinity.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kerf.engine.place.domains import Site
from kerf.engine.place.reaches import Reach
from kerf.engine.place.tallies import Aversion, Company, Presence, Spread, Tally
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
_NO_CLAIM = Name("")


class Check(ABC):
    """One constraint; `stage` is where a refusal belongs, `field` its name in a manifest.

    It is about the pods of `tally` but those of `less`, which are among them, and about those of `more`, which are not:
    see `engine.place.reaches`. Both are empty where its tally is its own.
    """

    stage: ClassVar[Stage]
    field: ClassVar[str]
    tally: Tally
    less: Sequence[Tally]
    more: Sequence[Tally]

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """Those in which all pods count that it is about, and others may."""
        return (self.tally, *self.more)

    @property
    def identity(self) -> Hashable:
        """Equal for checks that are about the same pods."""
        return tuple([id(each) for each in (self.tally, *self.less, *self.more)])

    @property
    def openings(self) -> Hashable:
        """Differs after a change that may open a node which was refused."""
        return self.tally.openings

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
    reach: Reach
    less: tuple[Presence, ...] = ()
    more: tuple[Presence, ...] = ()
    stage, field = Stage.TOPOLOGY, SPREAD

    @property
    def keys(self) -> tuple[str, ...]:
        """See Check."""
        return (self.constraint.key,)

    @property
    def openings(self) -> Hashable:
        """See Check. Where the least is not that of the tally it may grow while that stays."""
        if not (self.less or self.more):
            return self.tally.openings
        return self.tally.openings, sum([each.openings for each in self.more]), self.least

    def count(self, value: str) -> int:
        """How many of the pods are in the domain."""
        count = self.tally.counts.get(value, 0)
        if (self.less or self.more) and self.tally.is_there(value):
            count += _among(self.more, value) - _among(self.less, value)
        return count

    @property
    def least(self) -> int:
        """Pods in the domain with the fewest of them."""
        if not (self.less or self.more):
            return self.tally.least(self.constraint.min_domains)
        apart = dict.fromkeys(value for each in (*self.less, *self.more) for value in each.counts)
        counts = {value: self.count(value) for value in apart if self.tally.is_there(value)}
        return self.tally.least_with(counts, self.constraint.min_domains)

    def _skew(self, value: str) -> int:
        return self.count(value) + self.own - self.least

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
        counts = ((each, self.count(each)) for each in tally.values_now)
        found = SkewExceeded(
            key,
            Name(value),
            self.reach.selector,
            self.count(value),
            self.least,
            asked.max_skew,
            bool(self.own),
            tuple((Name(domain), count) for domain, count in tally.extremes(counts, _SHOWN)),
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
    reaches: tuple[Reach, ...]
    less: tuple[Company, ...] = ()
    more: tuple[Company, ...] = ()
    stage, field = Stage.AFFINITY, AFFINITY

    @property
    def keys(self) -> tuple[str, ...]:
        """See Check."""
        return self.tally.keys

    @property
    def openings(self) -> Hashable:
        """See Check."""
        if not (self.less or self.more):
            return self.tally.openings
        return self.tally.changes, sum([each.changes for each in self.more])

    @property
    def is_absent(self) -> bool:
        """Whether no such pod is anywhere."""
        if not (self.less or self.more):
            return not self.tally.counts
        more, less = (sum([each.total for each in parts]) for parts in (self.more, self.less))
        return self.tally.total + more == less

    def _is_there(self, place: tuple[str, str]) -> bool:
        held = place in self.tally.counts
        if not (self.less or self.more):
            return held
        if any(place in each.counts for each in self.more):
            return True
        return held and self.tally.counts[place] > sum([each.counts.get(place, 0) for each in self.less])

    def allows(self, node: int, site: Site) -> bool:
        """See Check."""
        is_there = True
        for key, values in zip(self.tally.keys, self.tally.values, strict=True):
            value = values[node]
            if value is None:
                if not site.will_have(key):
                    return False
            elif not self._is_there((key, value)):
                is_there = False
        return is_there or (self.is_own and self.is_absent)

    @property
    def is_shut(self) -> bool:
        """See Check. Without any such pod only a node allows it whose domain is not known yet. Linear in nodes."""
        if self.is_own or not self.is_absent:
            return False
        return any(None not in values for values in self.tally.values)

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check."""
        missing: tuple[str, str, Reach] | None = None
        for key, values, reach in zip(self.tally.keys, self.tally.values, self.reaches, strict=True):
            value = values[node]
            if value is None and not site.will_have(key):
                return NoTopologyLabel(Name(AFFINITY), Name(key)), 2
            if missing is None and value is not None and not self._is_there((key, value)):
                missing = key, value, reach
        assert missing is not None
        key, value, reach = missing
        also = dict.fromkeys(each.selector for each in self.reaches)
        del also[reach.selector]
        return NotNear(Name(key), Name(value), reach.selector, _names(reach), tuple(also)), 1


@dataclass(frozen=True, eq=False)
class Sharing(Together):
    """A claim whose volume is still to be made: where the first pod with it runs, and no other one elsewhere.

    Where nodes have no zone at all, those are one place.
    """

    claim: Name = _NO_CLAIM
    stage, field = Stage.TOPOLOGY, VOLUMES

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check."""
        key = self.tally.keys[0]
        zones = tuple(Name(value) for _, value in sorted(self.tally.counts))
        # Nearer than other constraints: where these hold, no change of this pod alone helps.
        return SharedElsewhere(self.claim, Name(key), zones, Name(self.tally.values[0][node] or "")), 0


@dataclass(frozen=True, eq=False)
class Apart(Check):
    """An anti-affinity term of the pod: none of the pods may be near."""

    tally: Presence
    reach: Reach
    less: tuple[Presence, ...] = ()
    more: tuple[Presence, ...] = ()
    stage, field = Stage.AFFINITY, ANTI_AFFINITY

    @property
    def keys(self) -> tuple[str, ...]:
        """See Check."""
        return (self.tally.key,)

    def allows(self, node: int, site: Site) -> bool:
        """See Check. A node without the label has no pod near."""
        value = self.tally.values[node]
        if value is not None and any(value in each.counts for each in self.more):
            return False
        return _is_free(self.tally, self.less, node)

    @property
    def openings(self) -> Hashable:
        """See Check."""
        if not self.more:
            return self.tally.openings
        return self.tally.openings + sum([each.openings for each in self.more])

    def cause(self, node: int, site: Site) -> tuple[Cause, int]:
        """See Check."""
        value, reach = self.tally.values[node] or "", self.reach
        count = self.tally.counts.get(value, 0) + _among(self.more, value) - _among(self.less, value)
        return TooNear(Name(self.tally.key), Name(value), reach.selector, _names(reach), count), count


@dataclass(frozen=True, eq=False)
class Welcome(Check):
    """Anti-affinity terms of other pods that mean this one: of all that `tally` has those that `less` have not.

    `terms` are the tallies of single terms, where that of the check has those of several; `keeper` says which workload
    pods are of that a tally counts in a domain, the first by name.
    """

    tally: Aversion
    keeper: Callable[[Aversion, str], str]
    less: tuple[Aversion, ...] = ()
    more: tuple[Aversion, ...] = ()
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
        """See Check. Of the terms that refuse it that of the first workload by name. Cost: their number."""
        value, passed = self.tally.values[node] or "", set(map(id, self.less))
        refusing = [each for each in self.terms if value in each.counts and id(each) not in passed] or [self.tally]
        workload, count = min((self.keeper(each, value), each.counts.get(value, 0)) for each in refusing)
        return Unwelcome(Name(self.tally.key), Name(value), Name(workload), count), count


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


def openings(checks: Sequence[Check]) -> Hashable:
    """Differs after every change that may open a node which one of the checks refused."""
    return tuple([check.openings for check in checks])
