"""kube-scheduler's PodTopologySpread: no domain may hold too many more of some pods than the emptiest one.

What counts as a domain is the hard part: only nodes that have every key of every constraint, and that the pod's own
affinity, and its tolerations where it says so, admit. Source: Kubernetes 1.36, plugins/podtopologyspread/{common,
filtering}.go. The constraints that a cluster has by default only prefer, and are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kerf.model.constraints import untolerated
from kerf.model.pods import Pod
from kerf.sim.kubernetes.filters import SPREAD, FilterRefusal, tolerations_of
from kerf.sim.kubernetes.rooms import NodePods, Rooms
from kerf.sim.kubernetes.selectors import Labels, LabelSelector, NodeTerms, node_terms
from kerf.sim.objects import Json, labels_of

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
_REASON = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One of a pod's constraints, with the defaults of the API."""

    max_skew: int
    key: str
    selector: LabelSelector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    @classmethod
    def of(cls, raw: Json, labels: Labels) -> "SpreadConstraint":
        """From a document; `labels` are the pod's own, of which `matchLabelKeys` names some."""
        selector = LabelSelector.of(raw.get("labelSelector"))
        own = {key: labels[key] for key in raw.get("matchLabelKeys") or () if key in labels}
        return cls(
            raw["maxSkew"],
            raw["topologyKey"],
            selector.narrowed(own),
            raw.get("minDomains") or 1,
            (raw.get("nodeAffinityPolicy") or "Honor") == "Honor",
            (raw.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        )

    def counts(self, pod: Pod, wanted: NodeTerms, room: NodePods) -> bool:
        """Whether the node is of a domain that counts."""
        if self.honors_affinity and not wanted.matches(room.node.name, room.labels):
            return False
        return not self.honors_taints or untolerated(room.node.taints, tolerations_of(pod)) is None

    def matching(self, namespace: str, others: Iterable[Pod]) -> int:
        """How many of the pods count: none that is ending, and none at all where the selector takes everything."""
        if self.selector.is_empty:
            return 0
        return sum(
            other.namespace == namespace and other.deleted_s is None and self.selector.matches(other.labels)
            for other in others
        )


def constraints_of(raw: Json, action: str) -> list[SpreadConstraint]:
    """A pod's constraints that do not schedule it where they cannot hold, or those that do."""
    found = raw["spec"].get("topologySpreadConstraints") or ()
    return [SpreadConstraint.of(c, labels_of(raw)) for c in found if c["whenUnsatisfiable"] == action]


def has_all_keys(constraints: Iterable[SpreadConstraint], labels: Labels) -> bool:
    """Whether a node is of some domain of each constraint."""
    return all(constraint.key in labels for constraint in constraints)


class PodTopologySpread:
    """What one attempt counts: by constraint and domain, the pods that match."""

    plugin = SPREAD

    def __init__(self, pod: Pod, wanted: NodeTerms, constraints: Sequence[SpreadConstraint]) -> None:
        self._pod, self._wanted, self._constraints = pod, wanted, constraints
        self._counts: list[dict[str, int]] = [{} for _ in constraints]
        self._own = [int(constraint.selector.matches(pod.labels)) for constraint in constraints]
        self._least: list[int] | None = None

    @classmethod
    def of(cls, pod: Pod, raw: Json, rooms: Rooms) -> "PodTopologySpread | None":
        """None where the pod has no such constraint. Linear in all pods else."""
        constraints = constraints_of(raw, DO_NOT_SCHEDULE)
        if not constraints:
            return None
        made = cls(pod, node_terms(raw["spec"]), constraints)
        for room in rooms.by_name.values():
            for number, domain in made._domains(room):
                counts = made._counts[number]
                found = constraints[number].matching(pod.namespace, room.pods.values())
                counts[domain] = counts.get(domain, 0) + found
        return made

    def _domains(self, room: NodePods) -> Iterator[tuple[int, str]]:
        """By number of the constraint, the domain of the node that counts."""
        if has_all_keys(self._constraints, room.labels):
            for number, constraint in enumerate(self._constraints):
                if constraint.counts(self._pod, self._wanted, room):
                    yield number, room.labels[constraint.key]

    def moved(self, other: Pod, room: NodePods, by: int) -> None:
        """Think a pod onto the node (1) or away from it (-1)."""
        if other.namespace != self._pod.namespace:
            return
        self._least = None
        for number, domain in self._domains(room):
            # Unlike the first count this one takes ending pods and empty selectors (updateWithPod).
            if self._constraints[number].selector.matches(other.labels):
                counts = self._counts[number]
                counts[domain] = counts.get(domain, 0) + by

    def copied(self) -> "PodTopologySpread":
        """The same; neither changes with the other."""
        made = PodTopologySpread(self._pod, self._wanted, self._constraints)
        made._counts = [dict(counts) for counts in self._counts]
        return made

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod; None when it can."""
        if self._least is None:
            self._least = [self._minimum(number) for number in range(len(self._constraints))]
        for number, constraint in enumerate(self._constraints):
            domain = room.labels.get(constraint.key)
            if domain is None:
                return FilterRefusal(SPREAD, (f"{_REASON} (missing required label)",), is_final=True)
            skew = self._counts[number].get(domain, 0) + self._own[number] - self._least[number]
            if skew > constraint.max_skew:
                return FilterRefusal(SPREAD, (_REASON,))
        return None

    def _minimum(self, number: int) -> int:
        """Of the emptiest domain; 0 while there are fewer than there are to be."""
        counts = self._counts[number]
        return 0 if len(counts) < self._constraints[number].min_domains else min(counts.values())
