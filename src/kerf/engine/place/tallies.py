"""Counts of pods by domain, each kept as pods come and go and never counted again.

There is one tally for each question that some pod asks of others: how evenly they are spread, whether company is there,
whether a pod is there that it must be away from, or that must be away from it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerf.engine.place.domains import Domains, NodeRule
from kerf.model.constraints import Requirement, Requirements
from kerf.model.pods import Pod
from kerf.model.topology import PodAffinityTerm

_OWN_NAME = "kubernetes.io/metadata.name"
ANY_VALUE = "*"
"""Stands for every value of a label; no label has it."""
_OF_NAMESPACE = "<namespace>"
"""Before the labels of namespaces, where these stand among those of pods; alone it stands for the name of one."""
_MOST_NEGATIVE = 4
"""Requirements of a selector that are set apart from the others; each makes a reach as long as the selector."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """What topology can tell of a pod: pods that are equal in it count alike everywhere.

    `labels` are those that some selector reads, sorted; `averse` are the terms by which it keeps others off.
    """

    namespace: str
    labels: tuple[tuple[str, str], ...]
    averse: tuple[PodAffinityTerm, ...]
    is_ending: bool

    def held(self) -> dict[str, str]:
        """The labels as a mapping."""
        return dict(self.labels)


@dataclass(frozen=True, slots=True)
class Reach:
    """The pods that a constraint of one pod means.

    `is_of_new`: the pod is to be placed, and kube-scheduler 1.36 reads its selector of namespaces otherwise. The list
    of the namespaces that the selector takes is meant to stand for it; but `mergeAffinityTermNamespacesIfNotEmpty`
    changes a copy, so the selector is asked too, about no labels. NotIn and DoesNotExist then take every namespace.
    """

    selector: Requirements
    namespaces: frozenset[str]
    namespace_selector: Requirements | None = None
    is_of_new: bool = False

    @classmethod
    def of(cls, term: PodAffinityTerm, namespace: str, labels: Mapping[str, str], *, is_of_new: bool) -> "Reach":
        """Those of an affinity term of a pod (kube-scheduler framework, `getNamespacesFromPodAffinityTerm`)."""
        names, selector = term.namespaces, term.namespace_selector
        if not names and selector is None:
            names = (namespace,)
        return cls(term.selected(labels), frozenset(names), selector, is_of_new and selector is not None)

    def means(self, like: Likeness, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether such a pod is one of them; `namespaces` are the labels of namespaces."""
        if like.namespace not in self.namespaces and not self._selects(like.namespace, namespaces):
            return False
        return self.selector.unsatisfied_by(like.held()) is None

    def _selects(self, namespace: str, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        if self.namespace_selector is None:
            return False
        if self.is_of_new and self.namespace_selector.unsatisfied_by({}) is None:
            return True
        labels = namespaces.get(namespace) or {_OWN_NAME: namespace}
        return self.namespace_selector.unsatisfied_by(labels) is None

    def settled(self) -> "Reach":
        """The same, where a selector of namespaces that takes all of them asks nothing of them."""
        takes_all = self.is_of_new and self.namespace_selector and self.namespace_selector.unsatisfied_by({}) is None
        return replace(self, namespace_selector=Requirements()) if takes_all else self

    def parted(self) -> tuple["Reach", tuple["Reach", ...]]:
        """A wider reach, and others without a pod in common that it is to be had without: together they are this one.

        What is asked not to be (`NotIn`, `DoesNotExist`), of pods or of namespaces, is left out of the first. The
        others are none where nothing such is asked, or too much.
        """
        pods, spaces = self._negative
        if not (pods or spaces):
            return self, ()
        of_pods, of_spaces = _Parts(self.selector, pods), _Parts(self.namespace_selector or Requirements(), spaces)
        less = [replace(self, selector=each, namespace_selector=self._of(of_spaces.rest)) for each in of_pods.less()]
        less += [replace(self, namespace_selector=each) for each in of_spaces.less()]
        return replace(self, selector=of_pods.rest, namespace_selector=self._of(of_spaces.rest)), tuple(less)

    def _of(self, selector: Requirements) -> Requirements | None:
        return None if self.namespace_selector is None else selector

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Labels of which a pod has one that the wider reach means, see `parted`, and this one does not; as `hooks`."""
        pods, spaces = self._negative
        pairs = [(each.key, each) for each in pods] + [(_OF_NAMESPACE + each.key, each) for each in spaces]
        return tuple((key, value) for key, each in pairs for value in sorted(each.values) or (ANY_VALUE,))

    @property
    def _negative(self) -> tuple[tuple[Requirement, ...], tuple[Requirement, ...]]:
        """Requirements that are set apart from the others, of pods and of their namespaces."""
        pods = tuple(filter(_is_negative, self.selector.values()))
        selector = self.namespace_selector if not self.namespaces else None
        spaces = tuple(filter(_is_negative, selector.values())) if selector is not None else ()
        return (pods, spaces) if len(pods) + len(spaces) <= _MOST_NEGATIVE else ((), ())

    @property
    def hooks(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Sets of labels, one of each of which every pod has that it means, see `hooks_of`; empty where there is no
        such set.

        Where only a key is asked for, whatever its value, that is ANY_VALUE.
        """
        found = tuple(_hooks(self.selector))
        names = tuple((_OF_NAMESPACE, name) for name in sorted(self.namespaces))
        if self.namespace_selector is None:
            return (*found, names) if names else found
        if self.is_of_new and self.namespace_selector.unsatisfied_by({}) is None:
            return found
        spaces = _hooks(self.namespace_selector, _OF_NAMESPACE)
        return (*found, *((*names, *each) for each in spaces))


def hooks_of(like: Likeness, namespaces: Mapping[str, Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    """The labels of a pod, its namespace, and that one's labels; and each label once more for its key alone."""
    spaces = namespaces.get(like.namespace) or {_OWN_NAME: like.namespace}
    pairs = [*like.labels, *((_OF_NAMESPACE + key, value) for key, value in spaces.items())]
    return (*pairs, *((key, ANY_VALUE) for key, _ in pairs), (_OF_NAMESPACE, like.namespace))


def _hooks(selector: Requirements, prefix: str = "") -> Iterator[tuple[tuple[str, str], ...]]:
    held = sorted(selector.values(), key=lambda each: each.key)
    yield from (tuple((prefix + r.key, v) for v in sorted(r.values)) for r in held if not r.complement and r.values)
    yield from (((prefix + r.key, ANY_VALUE),) for r in held if r.complement and not r.allows_absence)


class _Parts:
    """A selector without what it asks not to be, and the selectors of what that leaves out."""

    def __init__(self, selector: Requirements, negative: Sequence[Requirement]) -> None:
        self._negative = sorted(negative, key=lambda each: each.key)
        self._keys = [each.key for each in self._negative]
        rest = [each for key, each in selector.items() if key not in self._keys]
        # Of a label that must be there, and have none of some values, the rest asks that it be there.
        rest += [Requirement(each.key, True) for each in self._negative if not each.allows_absence]
        self.rest = Requirements(rest)

    def less(self) -> Iterator[Requirements]:
        """Of each requirement what it refuses, of what those before it let pass."""
        for number, each in enumerate(self._negative):
            others = (own for own in self.rest.values() if own.key not in self._keys[: number + 1])
            yield Requirements([*others, *self._negative[:number], Requirement(each.key, not each.values, each.values)])


def _is_negative(requirement: Requirement) -> bool:
    if requirement.at_least is not None or requirement.at_most is not None:
        return False
    return bool(requirement.values) if requirement.complement else requirement.allows_absence


class Tally(ABC):
    """Pods by domain. `openings` grows with every change that may open a node which was refused."""

    openings: int
    reaches: tuple[Reach, ...]

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
    reaches: tuple[Reach, ...]
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
class Aversion(Presence):
    """Pods, by domain, that keep off those whom `reaches` mean; `workload` made the first of them."""

    term: PodAffinityTerm | None = None
    workload: str = ""

    def takes(self, like: Likeness) -> bool:
        """See Tally. Such pods are found by their terms, and not by whom they keep off."""
        return False

    def copy(self) -> "Aversion":
        """See Tally."""
        held = dict(self.counts)
        return Aversion(self.key, self.reaches, self.values, held, self.openings, self.term, self.workload)


@dataclass
class Company(Tally):
    """Pods that satisfy all affinity terms of a pod at once, in each term's domains.

    As kube-scheduler's `affinityCounts` (interpodaffinity/filtering.go): what satisfies some terms counts for none.
    """

    keys: tuple[str, ...]
    reaches: tuple[Reach, ...]
    values: tuple[tuple[str | None, ...], ...]
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    openings: int = 0

    def add(self, node: int, pods: int) -> None:
        """See Tally."""
        for key, values in zip(self.keys, self.values, strict=True):
            value = values[node]
            if value is None:
                continue
            before = self.counts.get((key, value), 0)
            if before + pods:
                self.counts[key, value] = before + pods
            else:
                del self.counts[key, value]
            self.openings += before == 0 or pods < 0

    def copy(self) -> "Company":
        """See Tally."""
        return Company(self.keys, self.reaches, self.values, dict(self.counts), self.openings)


class Spread(Tally):
    """How evenly pods are spread over the domains of the nodes that count. The fewest is known without a search."""

    def __init__(self, domains: Domains, rule: NodeRule, key: str, reach: Reach) -> None:
        self.key, self.rule, self.reaches, self.openings = key, rule, (reach,), 0
        self.values, self._counting = domains.of(key), domains.counting(rule)
        self._sizes, self._owns_sizes = domains.sizes(rule, key), False
        self._lasting = domains.lasting.get(key, frozenset[str]())
        self.counts: dict[str, int] = {}
        self._levels: Counter[int] = Counter({0: len(self._sizes)})
        self._least = 0
        self._gone: dict[str, int] = {}

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

    def extremes(self, most: int) -> tuple[tuple[str, int], ...]:
        """The emptiest and the fullest domains, so many at most, by number and name."""
        ordered = sorted(((value, self.counts.get(value, 0)) for value in self._sizes), key=lambda each: each[::-1])
        half = most // 2
        return tuple(ordered if len(ordered) <= most else (*ordered[:half], *ordered[half - most :]))

    def takes(self, like: Likeness) -> bool:
        """See Tally. Ending pods count no more, and an empty selector counts none (`countPodsMatchSelector`)."""
        return not like.is_ending and bool(self.reaches[0].selector)

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
