"""Says which pods of a plan for an empty cluster cannot run where they are planned, without Kerf's own checks.

Every rule is kube-scheduler's, written plainly: pods are bound in queue order, and those that are refused are tried
again as long as any other was bound. A spread constraint is judged by the counts at that moment.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, ZONE, Requirements
from kerf.model.market import Market
from kerf.model.plan import Launch
from kerf.model.pods import Pod

_Question = tuple[str, Requirements]
"""A topology key, and whom a constraint means: all pods here are of one namespace."""


@dataclass
class _Node:
    """A node as it is planned, with what its pods ask in all."""

    labels: Mapping[str, str]
    free: Counter[str] = field(default_factory=Counter)


class _Counts:
    """Pods by domain for each question that some pod asks, and pods that keep others off."""

    def __init__(self, pods: Iterable[Pod], nodes: Sequence[_Node]) -> None:
        self._questions: dict[_Question, Counter[str]] = {}
        self._averse: dict[_Question, Counter[str]] = {}
        for spec in {id(pod.spec): pod.spec for pod in pods}.values():
            terms = (*spec.pod_affinity.required, *spec.pod_anti_affinity.required)
            asked = [(each.key, each.selector) for each in spec.spread]
            for question in (*asked, *((term.key, term.selector) for term in terms)):
                self._questions.setdefault(question, Counter())
        self._domains = {key: {node.labels[key] for node in nodes} for key in (HOSTNAME, ZONE, CAPACITY_TYPE)}
        self._meant: dict[Hashable, bool] = {}

    def bind(self, pod: Pod, node: _Node) -> None:
        """The pod runs there from now on."""
        for question, held in self._questions.items():
            if self._means(question, pod):
                held[node.labels[question[0]]] += 1
        for term in pod.spec.pod_anti_affinity.required:
            self._averse.setdefault((term.key, term.selector), Counter())[node.labels[term.key]] += 1

    def allows(self, pod: Pod, node: _Node) -> bool:
        """Whether the other pods let it run there."""
        spec = pod.spec
        return (
            all(self._is_even(each.key, each.selector, each.max_skew, pod, node) for each in spec.spread)
            and all(self._is_near((each.key, each.selector), pod, node) for each in spec.pod_affinity.required)
            and not any(
                self._questions[each.key, each.selector][node.labels[each.key]]
                for each in spec.pod_anti_affinity.required
            )
            and not any(
                held[node.labels[question[0]]] and self._means(question, pod) for question, held in self._averse.items()
            )
        )

    def _is_even(self, key: str, selector: Requirements, most: int, pod: Pod, node: _Node) -> bool:
        held = self._questions[key, selector]
        least = min(held[domain] for domain in self._domains[key])
        return held[node.labels[key]] + self._means((key, selector), pod) - least <= most

    def _is_near(self, question: _Question, pod: Pod, node: _Node) -> bool:
        held = self._questions[question]
        return bool(held[node.labels[question[0]]]) or (not held.total() and self._means(question, pod))

    def _means(self, question: _Question, pod: Pod) -> bool:
        key = id(question[1]), *pod.labels.items()
        if key not in self._meant:
            self._meant[key] = question[1].unsatisfied_by(pod.labels) is None
        return self._meant[key]


def wrong(launches: Sequence[Launch], pods: Sequence[Pod], market: Market) -> list[str]:
    """Keys of pods that cannot be bound where they are planned: nodes are too full, or other pods stand against it.

    `pods` are in queue order, and their node affinity, taints and namespaces are all alike. A pod that is planned
    twice, or that is not one of them, raises. Cost: pods times domains.
    """
    nodes = [_node(launch, market) for launch in launches]
    places = {placed.pod: node for node, launch in zip(nodes, launches, strict=True) for placed in launch.pods}
    waiting = [pod for pod in pods if pod.key in places]
    if len(waiting) != sum(len(launch.pods) for launch in launches):
        raise ValueError(f"{len(waiting)} pods on launches of {sum(len(launch.pods) for launch in launches)}")
    full = _overfull(waiting, places)
    counts = _Counts(waiting, nodes)
    while waiting:
        left = []
        for pod in waiting:
            if counts.allows(pod, places[pod.key]):
                counts.bind(pod, places[pod.key])
            else:
                left.append(pod)
        if len(left) == len(waiting):
            break
        waiting = left
    return sorted({*full, *(pod.key for pod in waiting)})


def _node(launch: Launch, market: Market) -> _Node:
    key = launch.offering
    sold = market.find(key.instance_type)
    if sold is None or (key.zone, key.capacity_type) not in {(o.zone, o.capacity_type) for o in sold.offerings}:
        raise ValueError(f"{key} is not for sale")
    labels = {HOSTNAME: launch.name, ZONE: key.zone, CAPACITY_TYPE: key.capacity_type}
    return _Node(labels, Counter(dict(sold.allocatable)))


def _overfull(pods: Iterable[Pod], places: Mapping[str, _Node]) -> list[str]:
    found = []
    for pod in pods:
        node = places[pod.key]
        node.free.subtract(dict(pod.spec.requests))
        if any(amount < 0 for amount in node.free.values()):
            found.append(pod.key)
    return found
