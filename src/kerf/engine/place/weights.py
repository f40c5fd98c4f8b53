"""What it costs to plan for a pod, by how much its spec says: a manifest may hold thousands of terms.

A plan costs by kinds of pods, and each of them by what it asks. So a kind that says much counts as several. The
figures are what one entry took beside one ordinary kind of pods, on one processor (benchmarks/bench_hostile.py).
"""

from collections.abc import Iterable

from kerf.model.pods import PodSpec

_AMPLE = 128
"""Entries that any workload may well have: its pods are one kind like any other."""
_A_KIND = 32
"""So many entries more cost as much as another kind of pods."""
_A_RELATION = 16
"""Entries that one constraint on other pods is worth: each is counted over all nodes."""
MOST = 2_000
"""A pod of a greater weight is not planned for: alone on an idle cluster it would take minutes."""
MOST_ENTRIES = _AMPLE + MOST * _A_KIND
"""The same in entries."""
_WEIGHT = "weight"


def weight_of(spec: PodSpec) -> int:
    """As how many kinds of pods a pod with the spec counts; at least 1. Worked out once for each spec."""
    known: int | None = spec.answers.get(_WEIGHT)
    if known is None:
        known = spec.answers[_WEIGHT] = 1 + max(0, entries_of(spec) - _AMPLE) // _A_KIND
    return known


def relations_of(spec: PodSpec) -> int:
    """How many constraints on other pods it states, wishes included."""
    held = (spec.pod_affinity, spec.pod_anti_affinity)
    return len(spec.spread) + sum(len(each.required) + len(each.preferred) for each in held)


def entries_of(spec: PodSpec) -> int:
    """What the spec says, counted; a constraint on other pods is _A_RELATION. Linear in it."""
    terms = [spec.node_selector, *spec.affinity, *(term for _, term in spec.preferred)]
    containers = (*spec.containers, *spec.init_containers)
    return (
        _A_RELATION * relations_of(spec)
        + sum(1 + len(term) + sum(len(asked.values) // _A_RELATION for asked in term.values()) for term in terms)
        + _sizes((spec.tolerations, spec.scheduling_gates, spec.claims, spec.not_planned, spec.claim_templates))
        + sum(1 + len(each.requests) + len(each.limits) + len(each.host_ports) for each in containers)
    )


def _sizes(lists: Iterable[tuple[object, ...]]) -> int:
    return sum(map(len, lists))
