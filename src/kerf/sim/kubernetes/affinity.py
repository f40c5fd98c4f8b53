"""kube-scheduler's InterPodAffinity: which pods want or bear no other pods in their domain.

It is symmetric: what pods that run do not bear keeps a new one off, whatever that one asks. And a pod that wants
company of its own kind would wait for ever, so the first of them needs none. Source: Kubernetes 1.36,
plugins/interpodaffinity/filtering.go and `AffinityTerm` of kube-scheduler/framework/types.go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerf.model.pods import Pod
from kerf.sim.kubernetes.filters import POD_AFFINITY, FilterRefusal
from kerf.sim.kubernetes.rooms import NodePods, Rooms, has_pod_terms
from kerf.sim.kubernetes.selectors import PREFERRED, REQUIRED, Labels, LabelSelector
from kerf.sim.objects import Json

_NO_COMPANY = FilterRefusal(POD_AFFINITY, ("node(s) didn't match pod affinity rules",), is_final=True)
_RIVAL = FilterRefusal(POD_AFFINITY, ("node(s) didn't match pod anti-affinity rules",))
_UNWANTED = FilterRefusal(POD_AFFINITY, ("node(s) didn't satisfy existing pods anti-affinity rules",))
_NO_LABELS: Labels = {}

Domain = tuple[str, str]
"""A topology key and its value."""


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Which pods are meant, and in which domain."""

    key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector

    @classmethod
    def of(cls, raw: Json, namespace: str) -> "PodTerm":
        """From a document, and the namespace of the pod that asks.

        An API server has merged `matchLabelKeys` and `mismatchLabelKeys` into the selector.
        """
        named = frozenset(raw.get("namespaces") or ())
        selector = raw.get("namespaceSelector")
        own = {*named} if named or selector is not None else {namespace}
        return cls(
            raw["topologyKey"], LabelSelector.of(raw.get("labelSelector")), frozenset(own), LabelSelector.of(selector)
        )

    def means(self, other: Pod, namespace_labels: Labels) -> bool:
        """Whether another pod is meant; the labels are those of its namespace."""
        if other.namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(other.labels)

    def means_of_new(self, other: Pod, namespace_labels: Labels) -> bool:
        """The same for a term of the pod that is to be placed, which kube-scheduler 1.36 reads otherwise.

        Its list of the namespaces that the selector takes is meant to stand for the selector; but the selector stays
        in force (mergeAffinityTermNamespacesIfNotEmpty changes a copy), and is asked about no labels. So NotIn and
        DoesNotExist take every namespace.
        """
        return self.means(other, namespace_labels) or self.means(other, _NO_LABELS)


def required_terms(raw: Json, kind: str) -> list[PodTerm]:
    """Those of `podAffinity` or `podAntiAffinity`."""
    asked = (raw["spec"].get("affinity") or {}).get(kind) or {}
    return [PodTerm.of(term, _namespace(raw)) for term in asked.get(REQUIRED) or ()]


def preferred_terms(raw: Json, kind: str) -> list[tuple[int, PodTerm]]:
    """Those of `podAffinity` or `podAntiAffinity`, with weights."""
    asked = (raw["spec"].get("affinity") or {}).get(kind) or {}
    return [
        (each["weight"], PodTerm.of(each["podAffinityTerm"], _namespace(raw))) for each in asked.get(PREFERRED) or ()
    ]


def _namespace(raw: Json) -> str:
    return raw["metadata"].get("namespace") or "default"


class InterPodAffinity:
    """What one attempt counts, by domain.

    `company` are pods that meet all terms of the pod's affinity, `rivals` those that meet a term of its anti-affinity,
    `unwanting` terms of running pods that do not bear it.
    """

    plugin = POD_AFFINITY

    def __init__(self, pod: Pod, raw: Json, rooms: Rooms) -> None:
        self._pod, self._rooms = pod, rooms
        self._affinity = required_terms(raw, "podAffinity")
        self._anti = required_terms(raw, "podAntiAffinity")
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._company: Counter[Domain] = Counter()
        self._rivals: Counter[Domain] = Counter()
        self._unwanting: Counter[Domain] = Counter()

    @classmethod
    def of(cls, pod: Pod, raw: Json, rooms: Rooms) -> "InterPodAffinity | None":
        """None where nothing is asked. Linear in all pods where the pod asks, else in those that do."""
        if not rooms.related and not has_pod_terms(raw):
            return None
        made = cls(pod, raw, rooms)
        for _, other, room in rooms.related_pods():
            made._count_unwanting(other, room, 1)
        if made._affinity or made._anti:
            for room in rooms.by_name.values():
                for running in room.pods.values():
                    made._count_others(running, room, 1)
        return made if made._unwanting or made._affinity or made._anti else None

    def moved(self, other: Pod, room: NodePods, by: int) -> None:
        """Think a pod onto the node (1) or away from it (-1)."""
        self._count_others(other, room, by)
        raw = self._rooms.api.get("Pod", other.namespace, other.name)
        if raw is not None and has_pod_terms(raw):
            self._count_unwanting(raw, room, by)

    def copied(self) -> "InterPodAffinity":
        """The same; neither changes with the other."""
        made = object.__new__(InterPodAffinity)
        made._pod, made._rooms, made._namespaces = self._pod, self._rooms, self._namespaces
        made._affinity, made._anti = self._affinity, self._anti
        made._company, made._rivals = Counter(self._company), Counter(self._rivals)
        made._unwanting = Counter(self._unwanting)
        return made

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod; None when it can."""
        if not self._has_company(room.labels):
            return _NO_COMPANY
        if any(self._rivals[domain] > 0 for domain in _domains(self._anti, room.labels)):
            return _RIVAL
        if self._unwanting and any(self._unwanting[domain] > 0 for domain in room.labels.items()):
            return _UNWANTED
        return None

    def _has_company(self, labels: Labels) -> bool:
        domains = _domains(self._affinity, labels)
        if len(domains) < len(self._affinity):
            return False
        if all(self._company[domain] > 0 for domain in domains):
            return True
        is_first = not any(count > 0 for count in self._company.values())
        return is_first and self._is_company(self._pod)

    def _is_company(self, other: Pod) -> bool:
        return bool(self._affinity) and all(self._means(term, other) for term in self._affinity)

    def _means(self, term: PodTerm, other: Pod) -> bool:
        return term.means_of_new(other, self._namespace_labels(other))

    def _namespace_labels(self, other: Pod) -> Labels:
        labels = self._namespaces.get(other.namespace)
        if labels is None:
            labels = self._namespaces[other.namespace] = self._rooms.labels_of_namespace(other.namespace)
        return labels

    def _count_others(self, other: Pod, room: NodePods, by: int) -> None:
        if self._is_company(other):
            _add(self._company, self._affinity, room, by)
        _add(self._rivals, [term for term in self._anti if self._means(term, other)], room, by)

    def _count_unwanting(self, raw: Json, room: NodePods, by: int) -> None:
        terms = required_terms(raw, "podAntiAffinity")
        labels = self._namespace_labels(self._pod)
        _add(self._unwanting, [term for term in terms if term.means(self._pod, labels)], room, by)


def _domains(terms: Sequence[PodTerm], labels: Labels) -> list[Domain]:
    return [(term.key, labels[term.key]) for term in terms if term.key in labels]


def _add(counts: Counter[Domain], terms: Iterable[PodTerm], room: NodePods, by: int) -> None:
    for term in terms:
        value = room.labels.get(term.key)
        if value is not None:
            counts[term.key, value] += by
