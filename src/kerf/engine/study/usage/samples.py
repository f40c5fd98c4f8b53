"""Which samples of usage speak of the cluster as it is.

A metrics server answers from memory: for a while it reports pods that are gone, and a kubelet that has stopped
answering leaves its last sample standing. Advice from either would be advice about yesterday. Clocks and counters may
be wrong as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY
from kerf.model.usage import NO_USAGE, NodeUsage, PodUsage, Usage

STALE_S = 300
"""A sample that is older says nothing of now: a metrics server takes one each minute or oftener."""
_MOST_TIMES = 2
"""Above so many times a node's capacity nothing on it can be: rates overshoot a little when a counter begins."""

_Sample = TypeVar("_Sample", PodUsage, NodeUsage)


class SampleFault(StrEnum):
    """What is wrong with a sample, in the order in which it is asked."""

    GONE = "of what is not there"
    AHEAD = "of the future"
    IMPOSSIBLE = "above what the machine has"
    OVER_LIMIT = "of more memory than the container's limit"
    STALE = "older than 5m"


@dataclass(frozen=True)
class Joined:
    """Usage of what exists, and how many samples were left out, by what is wrong with them."""

    usage: Usage = NO_USAGE
    left_out: Mapping[SampleFault, int] = field(default_factory=dict)


def joined(usage: Usage, pods: Mapping[str, Pod], nodes: Mapping[str, Node], now_s: float) -> Joined:
    """The samples of these pods (by `namespace/name`) and nodes that are of now; ended pods use nothing."""
    counts: dict[SampleFault, int] = {}
    there = {key: pod for key, pod in pods.items() if not pod.is_ended}
    of_pods = _sound(believed(usage.pods.values(), there, nodes, now_s, counts), now_s, counts)
    of_nodes: list[NodeUsage] = []
    for sample in usage.nodes.values():
        fault = _fault(sample, nodes.get(sample.name), sample.name in nodes, now_s)
        if fault is None:
            of_nodes.append(sample)
        else:
            counts[fault] = counts.get(fault, 0) + 1
    fresh = _sound(of_nodes, now_s, counts)
    kept = Usage({f"{each.namespace}/{each.name}": each for each in of_pods}, {each.name: each for each in fresh})
    return Joined(kept, {fault: counts[fault] for fault in SampleFault if fault in counts})


def believed(
    samples: Iterable[PodUsage],
    pods: Mapping[str, Pod],
    nodes: Mapping[str, Node],
    now_s: float,
    counts: dict[SampleFault, int] | None = None,
) -> list[PodUsage]:
    """The samples, however old, that can be true of these pods, without containers that a pod does not have.

    `counts` is added to, by what is wrong with the others.
    """
    found = []
    for sample in samples:
        pod = pods.get(f"{sample.namespace}/{sample.name}")
        if pod is not None:
            names = {each.name for each in (*pod.spec.init_containers, *pod.spec.containers)}
            sample = replace(sample, containers=tuple(each for each in sample.containers if each.name in names))
        is_there = pod is not None and bool(sample.containers)
        fault = _fault(sample, nodes.get(pod.node_name) if pod is not None else None, is_there, now_s)
        if fault is None and pod is not None and _is_over_limit(sample, pod):
            fault = SampleFault.OVER_LIMIT
        if fault is None:
            found.append(sample)
        elif counts is not None:
            counts[fault] = counts.get(fault, 0) + 1
    return found


def _is_over_limit(sample: PodUsage, pod: Pod) -> bool:
    """Whether a container uses more memory than the kernel lets it have: it would have been killed before."""
    limits = {each.name: each.limits.get(MEMORY, 0) for each in (*pod.spec.init_containers, *pod.spec.containers)}
    return any(0 < limits.get(each.name, 0) < each.memory_bytes for each in sample.containers)


def _fault(sample: PodUsage | NodeUsage, node: Node | None, is_there: bool, now_s: float) -> SampleFault | None:
    if not is_there:
        return SampleFault.GONE
    if sample.at_s > now_s + STALE_S:
        return SampleFault.AHEAD
    for resource, used in ((CPU, sample.cpu_millis), (MEMORY, sample.memory_bytes)):
        capacity = node.capacity.get(resource, 0) if node is not None else 0
        if capacity and used > _MOST_TIMES * capacity:
            return SampleFault.IMPOSSIBLE
    return None


def _sound(samples: Iterable[_Sample], now_s: float, counts: dict[SampleFault, int]) -> list[_Sample]:
    """Those that are of now."""
    found = []
    for sample in samples:
        if sample.at_s >= now_s - STALE_S:
            found.append(sample)
        else:
            counts[SampleFault.STALE] = counts.get(SampleFault.STALE, 0) + 1
    return found
