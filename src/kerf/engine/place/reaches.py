"""Which pods a constraint of one pod means, and what is common to the constraints of many.

A thousand constraints such as `tenant NotIn [own]` mean a thousand pods each. What they mean except for their
exceptions is the same, and exceptions are few, and are found by their labels. So a reach has a wider one that others
have, too: without what it alone leaves out, and with no value that it alone lists. What it means is then what the wider
one does, less those that bear one of the first labels, and more of those that bear one of the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.model.constraints import Requirement, Requirements
from kerf.model.topology import PodAffinityTerm, TopologySpreadConstraint

Label = tuple[str, str]
ANY_VALUE = "*"
"""Stands for every value of a label; no label has it."""
_OWN_NAME = "kubernetes.io/metadata.name"
_OF_NAMESPACE = "<namespace>"
"""Before the labels of namespaces, where these stand among those of pods; alone it stands for the name of one."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """What topology can tell of a pod: pods that are equal in it count alike everywhere.

    `labels` are those that some selector reads, sorted; `averse` are the terms by which it keeps others off.
    """

    namespace: str
    labels: tuple[Label, ...]
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

    def parted(self, common: "CommonLabels") -> "Parting":
        """What others mean as well, and the labels of which each pod has one that only one of both means.

        Cost: its requirements and their values.
        """
        less, more = list[Label](), list[Label]()
        selector = _shared(self.selector, "", common, less, more)
        spaces = self.namespace_selector
        if spaces is not None:
            spaces = _shared(spaces, _OF_NAMESPACE, common, less, more)
        names = frozenset(name for name in self.namespaces if (_OF_NAMESPACE, name) in common) or self.namespaces
        more += [(_OF_NAMESPACE, name) for name in sorted(self.namespaces - names)]
        whole = replace(self, selector=selector, namespaces=names, namespace_selector=spaces) if less or more else self
        return Parting(whole, tuple(less), tuple(more))

    @property
    def hooks(self) -> tuple[tuple[Label, ...], ...]:
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


@dataclass(frozen=True, slots=True)
class Parting:
    """A reach that many have in the place of one, and labels: each pod that the wider one means and that one does not
    has one of `less`; each that only that one means has one of `more`. Both are empty where it is the same."""

    whole: Reach
    less: tuple[Label, ...]
    more: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """The pods that all of some reaches mean, and not all of others; each of them has one of `labels`."""

    all_of: tuple[Reach, ...]
    but: tuple[Reach, ...]
    labels: tuple[Label, ...]

    def means(self, like: Likeness, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether such a pod is one of them."""
        if not all(each.means(like, namespaces) for each in self.all_of):
            return False
        return not all(each.means(like, namespaces) for each in self.but)

    @property
    def hooks(self) -> tuple[tuple[Label, ...], ...]:
        """As those of a reach."""
        return (self.labels,)


def hooks_of(like: Likeness, namespaces: Mapping[str, Mapping[str, str]]) -> tuple[Label, ...]:
    """The labels of a pod, its namespace, and that one's labels; and each label once more for its key alone."""
    spaces = namespaces.get(like.namespace) or {_OWN_NAME: like.namespace}
    pairs = [*like.labels, *((_OF_NAMESPACE + key, value) for key, value in spaces.items())]
    return (*pairs, *((key, ANY_VALUE) for key, _ in pairs), (_OF_NAMESPACE, like.namespace))


def _hooks(selector: Requirements, prefix: str = "") -> Iterator[tuple[Label, ...]]:
    held = sorted(selector.values(), key=lambda each: each.key)
    yield from (tuple((prefix + r.key, v) for v in sorted(r.values)) for r in held if not r.complement and r.values)
    yield from (((prefix + r.key, ANY_VALUE),) for r in held if r.complement and not r.allows_absence)


def _shared(
    selector: Requirements, prefix: str, common: "CommonLabels", less: list[Label], more: list[Label]
) -> Requirements:
    """The selector as far as others have it, too; labels that it alone refuses go to `less`, others to `more`."""
    rest: list[Requirement] = []
    for each in sorted(selector.values(), key=lambda each: each.key):
        key = prefix + each.key
        if not each.values:
            # DoesNotExist of a label of its own; a label that must be there is found by its key.
            if each.allows_absence and (key, ANY_VALUE) not in common:
                less.append((key, ANY_VALUE))
            else:
                rest.append(each)
            continue
        shared = frozenset(value for value in each.values if (key, value) in common)
        own = [(key, value) for value in sorted(each.values - shared)]
        if each.complement and each.at_least is None and each.at_most is None:
            less += own
            if shared:
                rest.append(replace(each, values=shared))
            elif not each.allows_absence:
                rest.append(Requirement(each.key, True))
        else:
            # Where all values are its own, pods are found by them.
            is_split = bool(shared and own) and not each.complement
            more += own if is_split else ()
            rest.append(replace(each, values=shared) if is_split else each)
    return Requirements(rest)


class CommonLabels:
    """Labels that many selectors name: more than the root of their number.

    Tallies that each of so many selectors needs for itself then have few pods each, or are few. They are asked
    for once, when a label is first looked up: those of constraints, of pods and of their namespaces.
    """

    def __init__(self, constraints: Callable[[], Iterable[PodAffinityTerm | TopologySpreadConstraint]]) -> None:
        self._constraints = constraints

    def __contains__(self, label: Label) -> bool:
        return label in self._found

    @cached_property
    def _found(self) -> frozenset[Label]:
        counts, number = Counter[Label](), 0
        for each in self._constraints():
            number += 1
            counts.update(_named(each.selector, ""))
            if isinstance(each, PodAffinityTerm):
                counts.update((_OF_NAMESPACE, name) for name in each.namespaces)
                counts.update(_named(each.namespace_selector or Requirements(), _OF_NAMESPACE))
        return frozenset(label for label, count in counts.items() if count * count > number)


NOTHING_COMMON = CommonLabels(tuple)


def _named(selector: Requirements, prefix: str) -> Iterator[Label]:
    for key, each in selector.items():
        yield from ((prefix + key, value) for value in each.values or (ANY_VALUE,))
