"""Which samples of usage still speak of the cluster as it is.

A metrics server answers from memory: for a while it tells of pods that are gone, and a kubelet that has stopped
answering leaves its last sample standing. Advice from either would be advice about yesterday.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kerf.model.usage import NO_USAGE, NodeUsage, PodUsage, Usage

STALE_S = 300
"""A sample that is older says nothing of now: a metrics server takes one each minute or oftener."""

_Sample = TypeVar("_Sample", PodUsage, NodeUsage)


@dataclass(frozen=True, slots=True)
class Joined:
    """Usage of what exists, and how many samples were left out: those of what is gone, and those too old to count."""

    usage: Usage = NO_USAGE
    gone: int = 0
    stale: int = 0


def joined(usage: Usage, pods: Collection[str], nodes: Collection[str], now_s: float) -> Joined:
    """The samples of these pods (`namespace/name`) and nodes, at most `STALE_S` from `now_s`, before or after."""
    there = Usage(_of(usage.pods, pods), _of(usage.nodes, nodes))
    fresh = Usage(_near(there.pods, now_s), _near(there.nodes, now_s))
    gone, stale = _count(usage) - _count(there), _count(there) - _count(fresh)
    return Joined(fresh, gone, stale)


def _of(samples: Mapping[str, _Sample], names: Collection[str]) -> dict[str, _Sample]:
    return {name: sample for name, sample in samples.items() if name in names}


def _near(samples: Mapping[str, _Sample], now_s: float) -> dict[str, _Sample]:
    return {name: sample for name, sample in samples.items() if abs(now_s - sample.at_s) <= STALE_S}


def _count(usage: Usage) -> int:
    return len(usage.pods) + len(usage.nodes)
