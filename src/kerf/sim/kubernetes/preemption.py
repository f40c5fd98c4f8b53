"""kube-scheduler's preemption: which pods of lower priority must go so that one finds its place.

On each node all lower ones are thought away and then taken back, the most important first, as long as the pod still
fits. Chosen is the node whose most important victim is least important, then the one with fewest victims, then by name.
Budgets, which the real one spares where it can, are not looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerf.model.pods import Pod
from kerf.sim.kubernetes.filters import Attempt, refusal
from kerf.sim.kubernetes.rooms import NodePods


@dataclass(frozen=True)
class Preemption:
    """A node, and the pods that have to go there; empty where those that have to are going already."""

    node: str
    victims: tuple[Pod, ...]


def preemption(attempt: Attempt, rooms: Iterable[NodePods], promised: Mapping[str, Sequence[Pod]]) -> Preemption | None:
    """Where the pod would fit without pods of lower priority; None where it would nowhere."""
    found: list[tuple[tuple[int, int, str], Preemption]] = []
    for room in rooms:
        lower = [pod for pod in room.pods.values() if pod.spec.priority < attempt.pod.spec.priority]
        if not lower:
            continue
        victims = _victims(attempt, room, lower, promised.get(room.node.name, ()))
        if victims is None:
            continue
        there = tuple(pod for pod in victims if pod.deleted_s is None)
        most = max((pod.spec.priority for pod in there), default=-(2**31))
        found.append(((most, len(there), room.node.name), Preemption(room.node.name, there)))
    return min(found, key=lambda each: each[0], default=(None, None))[1]


def _victims(attempt: Attempt, room: NodePods, lower: Sequence[Pod], promised: Sequence[Pod]) -> list[Pod] | None:
    left = NodePods(room.node)
    for pod in room.pods.values():
        if pod not in lower:
            left.put(pod)
    thought = attempt.copied()
    thought.move(lower, room, -1)
    if refusal(thought, left, promised) is not None:
        return None
    victims = []
    for pod in sorted(lower, key=_importance):
        left.put(pod)
        thought.move((pod,), room, 1)
        if pod.deleted_s is not None or refusal(thought, left, promised) is not None:
            left.drop(pod.key)
            thought.move((pod,), room, -1)
            victims.append(pod)
    return victims


def _importance(pod: Pod) -> tuple[bool, int, float, str]:
    """Sort key, the most important first; what is ending comes last."""
    return pod.deleted_s is not None, -pod.spec.priority, pod.created_s, pod.key
