"""ResourceQuotas: what pods that get a place would hold is within what their namespaces may have."""

from collections import defaultdict
from collections.abc import Iterator

from kerf.model.placeholders import is_virtual
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import NOTHING, Resources, quantity_text
from kerf.model.resourcequotas import OBJECTS
from kerf.model.snapshot import ResourceQuota
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.sharing.registry import demand_of
from kerf.verify.after import After


def violations(after: After) -> Iterator[Violation]:
    """The quotas that the plan goes beyond. Cost: pods of namespaces with a quota."""
    quotas = after.snapshot.quotas
    if not quotas:
        return
    namespaces = {quota.namespace for quota in quotas}
    placed = defaultdict[str, list[tuple[Pod, PlanPart]]](list)
    for key, part in _places(after):
        pod = after.pods.get(key)
        if pod is not None and pod.namespace in namespaces and not is_virtual(key):
            placed[pod.namespace].append((pod, part))
    for quota in quotas:
        pods = placed.get(quota.namespace, [])
        yield from _of_cards(after, quota, pods)
        yield from _of_admission(after, quota, pods)


def _places(after: After) -> Iterator[tuple[str, PlanPart]]:
    """The pods that the plan places newly: those that move hold now what they hold afterwards."""
    for launch in after.proposal.launches:
        if not launch.replaces:
            part = PlanPart(PartKind.LAUNCH, launch.name)
            yield from ((placed.pod, part) for placed in launch.pods)
    for placement in after.proposal.placements:
        yield placement.pod.pod, PlanPart(PartKind.PLACEMENT, placement.pod.pod)


def _of_cards(after: After, quota: ResourceQuota, placed: list[tuple[Pod, PlanPart]]) -> Iterator[Violation]:
    """What the scheduler of cards counts: what pods hold, and what it will read of these."""
    for family in after.families:
        limits = family.quota_limits(quota)
        if not limits:
            continue
        counted = Resources({name: quota.used.get(name, 0) for name in limits})
        beyond = dict[str, list[PlanPart]]()
        for pod, part in placed:
            demand = demand_of(pod, family)
            if not isinstance(demand, PodDemand) or demand.is_empty or family.booked_node(pod):
                continue
            asked, held = family.quota_asked(demand), family.quota_held(demand, 1)
            over = [name for name in limits if held.get(name, 0) > 0 and counted[name] + held[name] > limits[name]]
            for name in over:
                beyond.setdefault(name, []).append(part)
            del asked
            if not over:
                counted = counted + {name: held.get(name, 0) for name in limits}
        for name, parts in sorted(beyond.items()):
            of, got = f"ResourceQuota {quota.namespace}/{quota.name}", f"{len(parts)} pods beyond"
            yield violation(PlanRule.QUOTA, of, f"at most {limits[name]} {name}", got, *dict.fromkeys(parts))


def _of_admission(after: After, quota: ResourceQuota, placed: list[tuple[Pod, PlanPart]]) -> Iterator[Violation]:
    """What the API server counts: pods that it has not seen come beside all that it has."""
    new = [(pod, part) for pod, part in placed if not pod.uid and pod.key not in after.snapshot.leaving]
    if not new:
        return
    used = NOTHING if quota.scopes else Resources({OBJECTS: quota.used.get(OBJECTS, 0)})
    for pod in _there(after, quota.namespace):
        counted = quota.counted(pod.spec)
        used = used if counted is None else used + counted
    beyond = dict[str, list[PlanPart]]()
    for pod, part in new:
        asked = quota.counted(pod.spec)
        if asked is None:
            continue
        over = [name for name in asked if 0 < asked[name] > quota.hard[name] - used.get(name, 0)]
        for name in over:
            beyond.setdefault(name, []).append(part)
        if not over:
            used = used + asked
    for name, parts in sorted(beyond.items()):
        of, got = f"ResourceQuota {quota.namespace}/{quota.name}", f"{len(parts)} pods beyond"
        expected = f"at most {quantity_text(name.removeprefix('requests.'), quota.hard[name])} {name}"
        yield violation(PlanRule.QUOTA, of, expected, got, *dict.fromkeys(parts))


def _there(after: After, namespace: str) -> Iterator[Pod]:
    """The pods of a namespace that run, or that the API server has taken already."""
    for node in after.snapshot.nodes:
        yield from (pod for pod in node.pods if pod.namespace == namespace and not pod.is_ended and not pod.invalid)
    waiting = {pod.key: pod for pod in (*after.snapshot.grouped, *after.snapshot.pending)}
    for pod in waiting.values():
        if pod.namespace == namespace and pod.uid and not pod.node_name and not pod.is_ended and not pod.invalid:
            yield pod
