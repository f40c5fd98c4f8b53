"""Nodes that are busy although little is asked of them: the pile-up that no autoscaler sees.

kube-scheduler fills nodes by requests. Pods that ask for less than they use pile up on one node, nothing waits, and so
nothing is bought. Usage is reported and advised upon here, and never decides where a pod goes or what is bought.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kerf.model.pods import Owner, Pod
from kerf.model.quantities import CPU, MEMORY, NOTHING, Resources, quantity_text
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.usage import PodUsage, Usage

HIGH_PERCENT, CALM_PERCENT = 90, 80
"""Of allocatable: from which use on a node is overloaded, and below which it is so no longer. Between the two it stays
what it was, so use that sways about one bound is not reported again and again."""
LOW_PERCENT = 50
"""Of allocatable: requests below it leave room by which the scheduler goes on filling the node."""
MEASURED = (CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What a node was asked for and what it was seen to use, of what pods can have of it; cpu and memory."""

    node: str
    allocatable: Resources
    requested: Resources
    used: Resources

    def used_percent(self, resource: str) -> int:
        """Of allocatable, rounded to the nearest."""
        return _percent(self.used.get(resource, 0), self.allocatable.get(resource, 0))

    def requested_percent(self, resource: str) -> int:
        """Of allocatable, rounded to the nearest."""
        return _percent(self.requested.get(resource, 0), self.allocatable.get(resource, 0))

    def overloaded(self, *, was: bool = False) -> tuple[str, ...]:
        """The resources of which much is used and little is asked, cpu first; `was`: the node has been overloaded."""
        least = CALM_PERCENT if was else HIGH_PERCENT
        return tuple(
            name
            for name in MEASURED
            if 0 < self.allocatable.get(name, 0) * least <= self.used.get(name, 0) * 100
            and self.requested.get(name, 0) * 100 < self.allocatable[name] * LOW_PERCENT
        )


def _percent(part: int, whole: int) -> int:
    return (200 * part + whole) // (2 * whole) if whole > 0 else 0


@dataclass(frozen=True, slots=True)
class Crowd:
    """Pods of one owner: how many, what they ask together and, as far as is known, use together.

    `uid` is the owner's; empty where it is not known.
    """

    kind: str
    namespace: str
    name: str
    pods: int
    requested: Resources = field(hash=False)
    used: Resources = field(hash=False)
    uid: str = ""

    @property
    def key(self) -> str:
        """`namespace/name` of the owner."""
        return f"{self.namespace}/{self.name}"


def node_loads(snapshot: ClusterSnapshot, usage: Usage) -> Mapping[str, NodeLoad]:
    """By name, the nodes of which use is known."""
    found = ((node.name, load_of(node, usage)) for node in snapshot.nodes)
    return {name: load for name, load in found if load is not None}


def is_calm(node: ClusterNode, usage: Usage) -> bool:
    """Whether it is known without a look at its pods that the node is not overloaded."""
    sample = usage.nodes.get(node.name)
    if node.node is None or sample is None:
        return node.node is None
    used, allocatable = {CPU: sample.cpu_millis, MEMORY: sample.memory_bytes}, node.node.allocatable
    return all(used[name] * 100 < allocatable.get(name, 0) * CALM_PERCENT for name in MEASURED)


def load_of(node: ClusterNode, usage: Usage) -> NodeLoad | None:
    """The node's load; None while nothing is known of its use. Where only its pods are known, their sum counts."""
    if node.node is None:
        return None
    sample = usage.nodes.get(node.name)
    if sample is not None:
        used = Resources({CPU: sample.cpu_millis, MEMORY: sample.memory_bytes})
    else:
        used = used_by(node.pods, usage)
        if not used:
            return None
    return NodeLoad(node.name, node.node.allocatable, requested_by(node.pods), used)


def requested_by(pods: Iterable[Pod]) -> Resources:
    """What pods that have not ended ask together."""
    total = NOTHING
    for pod in pods:
        if not pod.is_ended:
            total = total + pod.spec.requests
    return total


def used_by(pods: Iterable[Pod], usage: Usage) -> Resources:
    """What those of the pods were seen to use of which something is known; empty where nothing is."""
    known = [usage.pods[pod.key] for pod in pods if pod.key in usage.pods and not pod.is_ended]
    return _sum(known) if known else NOTHING


def _sum(samples: Iterable[PodUsage]) -> Resources:
    held = list(samples)
    return Resources({CPU: sum(s.cpu_millis for s in held), MEMORY: sum(s.memory_bytes for s in held)})


def crowds(pods: Iterable[Pod], usage: Usage, resources: Iterable[str]) -> tuple[Crowd, ...]:
    """Whose pods ask less than they use of one of these resources; the most used first.

    Where no use of a pod is known it counts if it asks for nothing of the resource.
    """
    wanted = tuple(resources)
    groups: dict[tuple[str, str, str], list[Pod]] = {}
    uids: dict[tuple[str, str, str], str] = {}
    for pod in pods:
        if pod.is_ended or pod.is_daemon or not any(_asks_too_little(pod, name, usage) for name in wanted):
            continue
        owner = pod.owner or Owner("Pod", pod.name, pod.uid)
        key = (owner.kind, pod.namespace, owner.name)
        groups.setdefault(key, []).append(pod)
        uids[key] = owner.uid
    found = [
        Crowd(*key, len(held), requested_by(held), used_by(held, usage), uids[key]) for key, held in groups.items()
    ]
    first = wanted[0] if wanted else CPU
    return tuple(sorted(found, key=lambda c: (-c.used.get(first, 0), -c.pods, c.kind, c.key)))


def _asks_too_little(pod: Pod, resource: str, usage: Usage) -> bool:
    asked, sample = pod.spec.requests.get(resource, 0), usage.pods.get(pod.key)
    if sample is None:
        return asked == 0
    return asked < (sample.cpu_millis if resource == CPU else sample.memory_bytes)


def load_text(load: NodeLoad, resources: Iterable[str]) -> str:
    """`uses 97 % of its cpu and is asked for 0 %`."""
    return ", and ".join(
        f"uses {load.used_percent(name)} % of its {name} and is asked for {load.requested_percent(name)} %"
        for name in resources
    )


def crowd_text(crowd: Crowd, resources: Iterable[str]) -> str:
    """`25 pods of Job data/dagster-run ask 0 cpu`; with what they use, where that is known."""
    who = f"Pod {crowd.key} asks" if crowd.kind == "Pod" else _pods_of(crowd)
    asked = " and ".join(f"{quantity_text(name, crowd.requested.get(name, 0))} {name}" for name in resources)
    used = " and ".join(f"{quantity_text(name, crowd.used[name])} {name}" for name in resources if name in crowd.used)
    return f"{who} {asked}" + (f" and {'uses' if crowd.kind == 'Pod' else 'use'} {used}" if used else "")


def _pods_of(crowd: Crowd) -> str:
    number = "1 pod" if crowd.pods == 1 else f"{crowd.pods} pods"
    return f"{number} of {crowd.kind} {crowd.key} {'asks' if crowd.pods == 1 else 'ask'}"
