"""Pods by what topology can tell of them, and specs by what they ask of other pods: equal ones have one number."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from kerf.engine.place.reaches import Label, Likeness, Reach
from kerf.engine.place.shapes import read_labels
from kerf.engine.place.tallies import Reaches, averse_terms
from kerf.model.pods import Pod, PodSpec
from kerf.model.topology import PodAffinityTerm

Labels = Mapping[str, str]
Findings = dict[str, tuple[Any, Any]]
"""What was worked out of a node's pods before: see `model.snapshot.ClusterNode.findings`."""
Residents = Sequence[tuple[Findings, Sequence[Pod]]]
"""By number of a node what is known of its pods, and these."""
_CLASSES, _SOUGHT = "classes", "sought"
_FEW = 16
"""For so many texts the nodes are gone through, each time all; for more they are put in order once."""


class PodClasses:
    """Pods by what topology can tell of them; `keys` are the labels that selectors read."""

    def __init__(self, keys: frozenset[str]) -> None:
        self.keys = keys
        self.all: list[Likeness] = []
        self.texts: list[list[str]] = []
        """By number of the class what its pods are known by: several texts may say the same."""
        self._numbers: dict[Likeness, int] = {}
        # The labels are kept beside what is read of them: an identity is free again once its object is gone.
        self._read: dict[int, tuple[Labels, tuple[tuple[str, str], ...]]] = {}
        self._known: dict[str, int] = {}
        self._same: dict[str, str] = {}
        self.placed: dict[int, tuple[Pod, int]] = {}
        """By identity pods that are asked for again and again, as each is that is being placed, with their classes."""
        self._meant: dict[Reaches, dict[int, bool]] = {}
        self._specs: list[PodSpec] = []
        """By number of the class the spec of one of its pods."""

    def meant(self, reaches: Reaches) -> dict[int, bool]:
        """What is known of whom they all mean, by number of the class: see `_is_meant`. One answer for all ledgers."""
        return self._meant.setdefault(reaches, {})

    def by_sought(self, number: int) -> Mapping[Label | None, Sequence[PodAffinityTerm]]:
        """The terms by which pods of a class keep others off, by labels of which a pod must have one that they mean.

        Labels are as `hooks_of` says them; under None those that no label finds. Linear in the terms, once a spec.
        """
        namespace, answers = self.all[number].namespace, self._specs[number].answers
        question = _SOUGHT, namespace
        if question not in answers:
            found = dict[Label | None, list[PodAffinityTerm]]()
            for term in self.all[number].averse:
                for label in _sought(term, namespace):
                    found.setdefault(label, []).append(term)
            answers[question] = found
        known: Mapping[Label | None, Sequence[PodAffinityTerm]] = answers[question]
        return known

    def labels(self, pod: Pod) -> tuple[tuple[str, str], ...]:
        """Those of the pod's labels that are read, sorted."""
        held = self._read.get(id(pod.labels))
        if held is None:
            held = self._read[id(pod.labels)] = pod.labels, read_labels(pod.labels, self.keys)
        return held[1]

    def of(self, pod: Pod) -> int:
        """The number of the pod's class."""
        return self._of(self._key(pod), pod)

    def together(self, findings: Findings, pods: Iterable[Pod]) -> Mapping[str, int]:
        """How many pods a node has of each class, by one of its `texts`; those that have ended are of none.

        Cost: the pods of a node that no ledger with the same keys has asked about before, else its classes.
        """
        keys, found = findings.get(_CLASSES, (None, ({}, ())))
        if keys is not self.keys:
            if keys is not None and keys == self.keys:
                self.keys = keys
            else:
                firsts, numbers = dict[str, Pod](), dict[str, int]()
                for pod in pods:
                    if not pod.is_ended:
                        text = self._key(pod)
                        # One object for equal texts is found sooner.
                        key = self._same.setdefault(text, text)
                        firsts.setdefault(key, pod)
                        numbers[key] = numbers.get(key, 0) + 1
                found = numbers, tuple(firsts.values())
                findings[_CLASSES] = self.keys, found
        counts: Mapping[str, int] = found[0]
        if not counts.keys() <= self._known.keys():
            for key, first in zip(counts, found[1], strict=True):
                self._of(key, first)
        return counts

    def _key(self, pod: Pod) -> str:
        # A text, because it remembers its hash: of a large fleet each ledger looks up 100,000. Terms are slow to hash.
        spec = str(id(pod.spec)) if averse_terms(pod) else ""
        labels = (part for label in self.labels(pod) for part in label)
        return "\n".join((pod.namespace, spec, "" if pod.deleted_s is None else "ending", *labels))

    def _of(self, key: str, pod: Pod) -> int:
        number = self._known.get(key)
        if number is None:
            like = Likeness(pod.namespace, self.labels(pod), averse_terms(pod), pod.deleted_s is not None)
            number = self._numbers.setdefault(like, len(self.all))
            if number == len(self.all):
                self.all.append(like)
                self._specs.append(pod.spec)
                self.texts.append([])
            self.texts[number].append(key)
            self._same.setdefault(key, key)
            self._known[key] = number
        return number


def _sought(term: PodAffinityTerm, namespace: str) -> tuple[Label | None, ...]:
    """Labels of which a pod must have one that a term of pods of the namespace means; None for no such label."""
    if term.match_label_keys or term.mismatch_label_keys:
        # What it selects depends on the labels of the pod that states it.
        return (None,)
    return min(Reach.of(term, namespace, {}, is_of_new=False).hooks, key=len, default=None) or (None,)


class Population:
    """How many pods of each class each node has, by number of the node.

    Cost: the nodes, and their pods as far as they are new; then for a class the nodes, and once many are asked about
    the classes of all nodes.
    """

    def __init__(self, classes: PodClasses, residents: Residents) -> None:
        self._classes = classes
        self._held = [classes.together(findings, pods) for findings, pods in residents]
        self._asked = 0

    def where(self, number: int) -> Iterable[tuple[int, int]]:
        """The nodes with pods of the class, and how many; a node may come more than once."""
        texts = self._classes.texts[number]
        self._asked += len(texts)
        if self._asked <= _FEW:
            return [(node, held[text]) for text in texts for node, held in enumerate(self._held) if text in held]
        return [each for text in texts for each in self._places.get(text, ())]

    @cached_property
    def _places(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        found = defaultdict[str, list[tuple[int, int]]](list)
        for node, held in enumerate(self._held):
            for text, pods in held.items():
                found[text].append((node, pods))
        return dict(found)


class Relations:
    """Specs by what they ask of other pods: those that ask the same have one number."""

    def __init__(self) -> None:
        # A spec is kept beside its number: an identity is free again once its object is gone.
        self._by_identity: dict[int, tuple[PodSpec, int]] = {}
        self._by_value: dict[Hashable, int] = {}

    def of(self, spec: PodSpec) -> int:
        """The number of what the spec asks; terms are slow to hash, so each spec is looked at once."""
        held = self._by_identity.get(id(spec))
        if held is None:
            wish, terms = spec.wish, (spec.pod_affinity.required, spec.pod_anti_affinity.required)
            nodes = (spec.own_alternatives, spec.tolerations) if spec.required_spread or wish.spread else ()
            asked = spec.required_spread, terms, wish.near, wish.away, wish.spread, nodes, spec.mounts.beside
            held = self._by_identity[id(spec)] = spec, self._by_value.setdefault(asked, len(self._by_value))
        return held[1]
