"""Groups of pods have room all together, or none of it is bought."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from kerf.model.groups import (
    COSCHEDULING,
    NATIVE,
    VOLCANO,
    CoschedulingGroup,
    GroupKey,
    NativeWorkload,
    VolcanoGroup,
    group_of,
    naming_groups,
    stated_min,
)
from kerf.model.pods import SUCCEEDED, Pod
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.verify.after import After


def violations(after: After) -> Iterator[Violation]:
    """Groups of which some pods get places and too few have one then. Cost: linear in pods of groups."""
    proposal, snapshot = after.proposal, after.snapshot
    if proposal.deletions:
        return
    waiting = naming_groups(snapshot.pending, snapshot.pending_samples)
    if not waiting:
        return
    places = {
        placed.pod: PlanPart(PartKind.LAUNCH, launch.name) for launch in proposal.launches for placed in launch.pods
    }
    places |= {each.pod.pod: PlanPart(PartKind.PLACEMENT, each.pod.pod) for each in proposal.placements}
    members = defaultdict[GroupKey, list[Pod]](list)
    for pod in waiting:
        key = group_of(pod)
        if key is not None and not pod.is_daemon:
            members[key].append(pod)
    others = defaultdict[GroupKey, list[Pod]](list)
    keys = {pod.key for pods in members.values() for pod in pods}
    for pod in snapshot.grouped:
        key = group_of(pod)
        if key in members and key is not None and pod.key not in keys:
            others[key].append(pod)
    for key, pods in sorted(members.items()):
        parts = dict.fromkeys(places[pod.key] for pod in pods if pod.key in places)
        least = _least(after, key, [*pods, *others[key]])
        if not parts or not least:
            continue
        counts = Counter(_has_place(pod) for pod in others[key])
        ready = counts[True] + sum(pod.key in places for pod in pods)
        if ready < least:
            yield violation(PlanRule.GROUP, f"group {key}", f"{least} pods with a place, or none", ready, *parts)


def _has_place(pod: Pod) -> bool:
    return bool(pod.node_name or pod.nominated_node) or pod.phase == SUCCEEDED


def _least(after: After, key: GroupKey, pods: list[Pod]) -> int:
    """How many pods of the group are of use only together; 0 where nothing says it."""
    if key.api in (COSCHEDULING, VOLCANO):
        kind = CoschedulingGroup if key.api == COSCHEDULING else VolcanoGroup
        same = (
            each.min_member
            for each in after.snapshot.pod_groups
            if isinstance(each, kind) and (each.namespace, each.name) == (key.namespace, key.name)
        )
        return next(same, 0)
    if key.api == NATIVE:
        found = (g for g in after.snapshot.pod_groups if isinstance(g, NativeWorkload) and g.namespace == key.namespace)
        return max((each.least(key.name) for each in found), default=0)
    stated = [stated_min(pod, key.api) for pod in pods]
    return max((each for each in stated if isinstance(each, int)), default=0)
