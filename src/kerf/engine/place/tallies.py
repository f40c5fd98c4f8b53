"""Counts of pods by domain, each kept as pods come and go and never counted again.

There is one tally for each question that some pod asks of others: how evenly they are spread, whether company is there,
whether a pod is there that it must be away from, or that must be away from it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kerf.engine.place.domains import Domains, NodeRule
from kerf.engine.place.reaches import Between, Likeness, Reach
from kerf.model.pods import Pod
from kerf.model.topology import PodAffinityTerm

Reaches = tuple[Reach | Between, ...]
"""Pods count that all of them mean."""


class Tally(ABC):
    """Pods by domain. `openings` grows with every change that may open a node which was refused."""

    openings: int
    reaches: Reaches

    def takes(self, like: Likeness) -> bool:
        """Whether such pods count, if all `reaches` mean them."""
        return True

    @abstractmethod
    def add(self, node: int, pods: int) -> None:
        """So many more pods are on a node; fewer where negative. A node in no domain counts nowhere. Constant cost."""

    def close(self, node: int) -> None:  # noqa: B027 -- to most tallies a node without pods is nothing
        """The node, which has no pods that count any more, is as good as gone."""

    def reopen(self, node: int) -> None:  # noqa: B027
        """Undo `close`."""

    @abstractmethod
    def copy(self) -> "Tally":
        """The same; neither changes with the other."""


@dataclass
class Presence(Tally):
    """How many pods there are in each domain of one key."""

    key: str
    reaches: Reaches
    values: tuple[str | None, ...]
    counts: dict[str, int] = field(default_factory=dict)
    openings: int = 0

    def add(self, node: int, pods: int) -> None:
        """See Tally."""
        value = self.values[node]
        if value is None:
            return
        left = self.counts.get(value, 0) + pods
        if left:
            self.counts[value] = left
        else:
            del self.counts[value]
        self.openings += pods < 0

    def copy(self) -> "Presence":
        """See Tally."""
        return Presence(self.key, self.reaches, self.values, dict(self.counts), self.openings)


@dataclass
class Exceptions(Presence):
    """Pods by domain that a spread constraint counts and others of its kind do not, or the other way round.

    The `values` of nodes that do not count for it are None.
    """

    def takes(self, like: Likeness) -> bool:
        """See Spread."""
        return not like.is_ending

    def copy(self) -> "Exceptions":
        """See Tally."""
        return Exceptions(self.key, self.reaches, self.values, dict(self.counts), self.openings)


@dataclass
class Aversion(Presence):
    """Pods, by domain, that keep off those whom `reaches` mean; `classes` are theirs, by number."""

    term: PodAffinityTerm | None = None
    classes: list[int] = field(default_factory=list)

    def takes(self, like: Likeness) -> bool:
        """See Tally. Such pods are found by their terms, and not by whom they keep off."""
        return False

    def copy(self) -> "Aversion":
        """See Tally."""
        held = dict(self.counts)
        return Aversion(self.key, self.reaches, self.values, held, self.openings, self.term, list(self.classes))


@dataclass
class Company(Tally):
    """Pods that satisfy all affinity terms of a pod at once, in each term's domains.

    As kube-scheduler's `affinityCounts` (interpodaffinity/filtering.go): what satisfies some terms counts for none.

    `total` is the sum of the counts, and `changes` is how often any of them changed.
    """

    keys: tuple[str, ...]
    reaches: Reaches
    values: tuple[tuple[str | None, ...], ...]
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    openings: int = 0
    total: int = 0
    changes: int = 0

    def add(self, node: int, pods: int) -> None:
        """See Tally."""
        self.changes += 1
        for key, values in zip(self.keys, self.values, strict=True):
            value = values[node]
            if value is None:
                continue
            before = self.counts.get((key, value), 0)
            self.total += pods
            if before + pods:
                self.counts[key, value] = before + pods
            else:
                del self.counts[key, value]
            self.openings += before == 0 or pods < 0

    def copy(self) -> "Company":
        """See Tally."""
        held = dict(self.counts)
        return Company(self.keys, self.reaches, self.values, held, self.openings, self.total, self.changes)


class Spread(Tally):
    """How evenly pods are spread over the domains of the nodes that count. The fewest is known without a search.

    `is_shared`: the reach is that of many constraints, none of which means so many pods.
    """

    def __init__(self, domains: Domains, rule: NodeRule, key: str, reach: Reach, *, is_shared: bool = False) -> None:
        self.key, self.rule, self.reaches, self.openings = key, rule, (reach,), 0
        self._is_empty = not (reach.selector or is_shared)
        self.values, self._counting = domains.of(key), domains.counting(rule)
        self._sizes, self._owns_sizes = domains.sizes(rule, key), False
        self._lasting = domains.lasting.get(key, frozenset[str]())
        self.counts: dict[str, int] = {}
        self._levels: Counter[int] = Counter({0: len(self._sizes)})
        self._least = 0
        self._gone: dict[str, int] = {}

    @property
    def values_now(self) -> Iterable[str]:
        """The domains that there are."""
        return self._sizes

    @property
    def domains(self) -> int:
        """How many domains there are."""
        return len(self._sizes)

    def is_domain(self, node: int) -> bool:
        """Whether the domain of the node is one now: with a node that counts and is not closed."""
        return self.values[node] in self._sizes

    def least(self, min_domains: int) -> int:
        """Pods in the domain with the fewest; 0 where there are fewer than `min_domains`."""
        return self._least if self.domains >= min_domains else 0

    def is_there(self, value: str) -> bool:
        """Whether it is a domain now: see `is_domain`."""
        return value in self._sizes

    def least_with(self, counts: Mapping[str, int], min_domains: int) -> int:
        """The same where some domains have other numbers of pods. Cost: those, and at times the numbers of others."""
        if self.domains < min_domains:
            return 0
        held = Counter(self.counts.get(value, 0) for value in counts)
        level: int | None = self._least
        if self._levels[self._least] <= held[self._least]:
            found = (each for each, domains in self._levels.items() if domains > held.get(each, 0))
            level = min(found, default=None)
        return min((*counts.values(), *(() if level is None else (level,))), default=0)

    def extremes(self, counts: Iterable[tuple[str, int]], most: int) -> tuple[tuple[str, int], ...]:
        """Of domains with these numbers of pods the emptiest and the fullest, so many at most, by number and name."""
        ordered = sorted(counts, key=lambda each: each[::-1])
        half = most // 2
        return tuple(ordered if len(ordered) <= most else (*ordered[:half], *ordered[half - most :]))

    def takes(self, like: Likeness) -> bool:
        """See Tally. Ending pods count no more, and an empty selector counts none (`countPodsMatchSelector`)."""
        return not like.is_ending and not self._is_empty

    def add(self, node: int, pods: int) -> None:
        """See Tally."""
        value = self.values[node]
        if value is None or not self._counting[node] or value in self._gone:
            return
        before = self.counts.get(value, 0)
        after = before + pods
        if after:
            self.counts[value] = after
        else:
            del self.counts[value]
        self._move(before, after)

    def _move(self, before: int | None, after: int | None) -> None:
        """A domain goes from one level to another; None is none."""
        if before is not None:
            self._levels[before] -= 1
            if not self._levels[before]:
                del self._levels[before]
        if after is not None:
            self._levels[after] += 1
        held = self._least
        if after is not None and after < held:
            self._least = after
        elif held not in self._levels:
            # The level above is most often the next one: pods come one by one.
            self._least = held + 1 if held + 1 in self._levels else min(self._levels, default=0)
        self.openings += self._least > held or before is None or after is None or after < before

    def close(self, node: int) -> None:
        """See Tally."""
        self._resize(node, -1)

    def reopen(self, node: int) -> None:
        """See Tally."""
        self._resize(node, 1)

    def _resize(self, node: int, nodes: int) -> None:
        value = self.values[node]
        if value is None or not self._counting[node] or value in self._lasting:
            return
        if not self._owns_sizes:
            self._sizes, self._owns_sizes = self._sizes.copy(), True
        before = self._sizes[value]
        self._sizes[value] += nodes
        if not self._sizes[value]:
            del self._sizes[value]
            self._gone[value] = self.counts.pop(value, 0)
            self._move(self._gone[value], None)
        elif not before:
            count = self._gone.pop(value, 0)
            if count:
                self.counts[value] = count
            self._move(None, count)

    def copy(self) -> "Spread":
        """See Tally."""
        other = object.__new__(Spread)
        other.__dict__.update(self.__dict__)
        other.counts, other._levels, other._gone = dict(self.counts), self._levels.copy(), dict(self._gone)
        other._owns_sizes = False
        self._owns_sizes = False
        return other


def averse_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """The terms by which the pod keeps others off, each once."""
    return tuple(dict.fromkeys(pod.spec.pod_anti_affinity.required))
