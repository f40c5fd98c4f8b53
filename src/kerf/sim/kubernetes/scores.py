"""kube-scheduler's scores: which of the nodes that can take a pod it prefers.

Those are here that decide between nodes that Kerf makes, and the preferences that a pod states. What a cluster spreads
by default, images that are there already and balanced use of resources are left out. Rules of Kubernetes 1.36.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence

from kerf.model.constraints import HOSTNAME, PREFER_NO_SCHEDULE, Taint
from kerf.model.pods import Pod
from kerf.sim.kubernetes.affinity import Domain, PodTerm, preferred_terms, required_terms
from kerf.sim.kubernetes.filters import Attempt
from kerf.sim.kubernetes.rooms import NodePods, Rooms, has_pod_terms
from kerf.sim.kubernetes.scoring import MOST_SCORE, ScoringStrategy
from kerf.sim.kubernetes.spread import SCHEDULE_ANYWAY, SpreadConstraint, constraints_of, has_all_keys
from kerf.sim.objects import Json

_TAINT_WEIGHT, _AFFINITY_WEIGHT, _RESOURCES_WEIGHT, _SPREAD_WEIGHT, _POD_AFFINITY_WEIGHT = 3, 2, 1, 2, 2
_HARD_WEIGHT = 1
"""What a running pod's required affinity weighs (InterPodAffinityArgs.hardPodAffinityWeight)."""


def best(attempt: Attempt, raw: Json, feasible: Sequence[NodePods], rooms: Rooms, scoring: ScoringStrategy) -> NodePods:
    """The node that kube-scheduler prefers among those that can take the pod; the first by name among equals."""
    stated = _stated(attempt, raw, feasible, rooms)
    taints = [_intolerable(attempt.pod, room.node.taints) for room in feasible]
    affinities = [
        sum(weight for weight, term in attempt.pod.spec.preferred if term.unsatisfied_by(room.node.labels) is None)
        for room in feasible
    ]
    scores = {
        room.node.name: _TAINT_WEIGHT * (MOST_SCORE - taint * MOST_SCORE // max(1, *taints))
        + _AFFINITY_WEIGHT * (affinity * MOST_SCORE // max(1, *affinities))
        + _RESOURCES_WEIGHT * scoring.score(attempt.pod, room)
        + stated[room.node.name]
        for room, taint, affinity in zip(feasible, taints, affinities, strict=True)
    }
    return min(feasible, key=lambda room: (-scores[room.node.name], room.node.name))


def _intolerable(pod: Pod, taints: Collection[Taint]) -> int:
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not any(t.tolerates(taint) for t in pod.spec.tolerations)
        for taint in taints
    )


def _stated(attempt: Attempt, raw: Json, feasible: Sequence[NodePods], rooms: Rooms) -> Counter[str]:
    """By node, what the preferences for other pods come to; nothing where none is stated."""
    found: Counter[str] = Counter()
    constraints = constraints_of(raw, SCHEDULE_ANYWAY)
    if constraints:
        for name, score in _spread(attempt, constraints, feasible, rooms).items():
            found[name] += _SPREAD_WEIGHT * score
    if rooms.related or has_pod_terms(raw):
        for name, score in _company(attempt.pod, raw, feasible, rooms).items():
            found[name] += _POD_AFFINITY_WEIGHT * score
    return found


def _spread(
    attempt: Attempt, constraints: Sequence[SpreadConstraint], feasible: Sequence[NodePods], rooms: Rooms
) -> dict[str, int]:
    """PodTopologySpread: the fewer matching pods in a node's domains, the better (podtopologyspread/scoring.go)."""
    scored = [room for room in feasible if has_all_keys(constraints, room.labels)]
    sums = dict.fromkeys((room.node.name for room in scored), 0.0)
    for constraint in constraints:
        counts = _domain_counts(attempt, constraint, scored, rooms, constraints)
        size = len(scored) if constraint.key == HOSTNAME else len(counts)
        for room in scored:
            if constraint.key == HOSTNAME:
                count = constraint.matching(attempt.pod.namespace, room.pods.values())
            else:
                count = counts[room.labels[constraint.key]]
            sums[room.node.name] += count * math.log(size + 2) + (constraint.max_skew - 1)
    raws = {name: _rounded(value) for name, value in sums.items()}
    least, most = min(raws.values(), default=0), max(raws.values(), default=0)
    return {name: MOST_SCORE * (most + least - value) // most if most else MOST_SCORE for name, value in raws.items()}


def _rounded(value: float) -> int:
    """Half away from zero, as Go rounds."""
    return math.floor(value + 0.5)


def _domain_counts(
    attempt: Attempt,
    constraint: SpreadConstraint,
    scored: Sequence[NodePods],
    rooms: Rooms,
    constraints: Sequence[SpreadConstraint],
) -> dict[str, int]:
    """By domain of the nodes that are scored, the matching pods in it; a node's own are counted for its score."""
    if constraint.key == HOSTNAME:
        return {}
    counts = dict.fromkeys((room.labels[constraint.key] for room in scored), 0)
    for room in rooms.by_name.values():
        domain = room.labels.get(constraint.key)
        if domain not in counts or not has_all_keys(constraints, room.labels):
            continue
        if constraint.counts(attempt.pod, attempt.wanted, room):
            counts[domain] += constraint.matching(attempt.pod.namespace, room.pods.values())
    return counts


def _company(pod: Pod, raw: Json, feasible: Sequence[NodePods], rooms: Rooms) -> dict[str, int]:
    """InterPodAffinity: what the pod prefers near it, and what prefers it (interpodaffinity/scoring.go)."""
    weights: Counter[Domain] = Counter()

    def weigh(weight: int, term: PodTerm, room: NodePods) -> None:
        value = room.labels.get(term.key)
        if value is not None:
            weights[term.key, value] += weight

    own = [*preferred_terms(raw, "podAffinity")]
    own += [(-weight, term) for weight, term in preferred_terms(raw, "podAntiAffinity")]
    for room in rooms.by_name.values() if own else ():
        for other in room.pods.values():
            labels = rooms.labels_of_namespace(other.namespace)
            for weight, term in own:
                if term.means_of_new(other, labels):
                    weigh(weight, term, room)
    labels = rooms.labels_of_namespace(pod.namespace)
    for _, other_raw, room in rooms.related_pods():
        theirs = [(_HARD_WEIGHT, term) for term in required_terms(other_raw, "podAffinity")]
        theirs += preferred_terms(other_raw, "podAffinity")
        theirs += [(-weight, term) for weight, term in preferred_terms(other_raw, "podAntiAffinity")]
        for weight, term in theirs:
            if term.means(pod, labels):
                weigh(weight, term, room)
    if not weights:
        return {}
    sums = {room.node.name: sum(weights[domain] for domain in room.labels.items()) for room in feasible}
    least, most = min(sums.values()), max(sums.values())
    span = most - least
    return {name: int(MOST_SCORE * ((value - least) / span)) if span else 0 for name, value in sums.items()}
