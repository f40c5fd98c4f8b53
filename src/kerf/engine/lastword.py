"""The scheduler has the last word: for a pod that it refused on its planned node nothing is planned for a while.

So the node is held for no pod and goes by the ordinary rules, and no other is bought meanwhile. After that the pod may
go to any node but those that were refused. Of a workload one pod is tried at a time: a wrong guess costs one node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kerf.engine.decision import Refusal
from kerf.engine.place.shapes import queue_order
from kerf.model.causes import Name, Quoted
from kerf.model.constraints import HOSTNAME, Requirement, Requirements
from kerf.model.plan import Stage
from kerf.model.pods import Pod
from kerf.model.rejections import (
    REJECTED,
    AnotherIsTried,
    RejectedByScheduler,
    Rejection,
    Workload,
    rejection_of,
    workload_of,
)
from kerf.model.snapshot import ClusterSnapshot

_UNMOVABLE = "unmovable"


def heeded(
    pods: list[Pod], of_each_mark: Iterable[Pod], snapshot: ClusterSnapshot
) -> tuple[tuple[Refusal, ...], list[Pod]]:
    """Refusals of the pods that a scheduler has rejected, and the pods to plan for, without the nodes they may not use.

    `of_each_mark` are `samples` of the pods; the same list where none is refused. Cost: linear in the pods where some
    have annotations, which are parsed.
    """
    generations = {pool.name: pool.generation for pool in snapshot.node_pools}
    if not any(pod.annotations for pod in of_each_mark) or not any(REJECTED in pod.annotations for pod in pods):
        return (), pods
    in_vain = _in_vain(pods, generations, snapshot.taken_at_s)
    refusals: list[Refusal] = []
    planned: list[Pod] = []
    resumed: list[tuple[Pod, Rejection]] = []
    for pod in pods:
        found = rejection_of(pod) if REJECTED in pod.annotations else None
        if found is None:
            known = in_vain.get(workload_of(pod), ()) if in_vain else ()
            same = next((held for held in known if held[0].spec == pod.spec), None)
            if same is None:
                planned.append(pod)
            else:
                refusals.append(Refusal((pod,), Stage.SCHEDULER, _cause(*same)))
        elif found.is_in_force(pod, generations, snapshot.taken_at_s):
            refusals.append(Refusal((pod,), Stage.SCHEDULER, _cause(pod, found)))
        elif snapshot.taken_at_s < found.again_s or found.retry_s(pod) is None:
            planned.append(_elsewhere(pod, found, snapshot))
        else:
            resumed.append((pod, found))
    first: dict[Workload, Pod] = {}
    for pod, found in sorted(resumed, key=lambda each: queue_order(each[0])):
        tried = first.setdefault(workload_of(pod), pod)
        if tried is pod:
            planned.append(_elsewhere(pod, found, snapshot))
        else:
            cause = AnotherIsTried(Name(pod.spec.scheduler_name), Name(tried.key), Quoted(found.said))
            refusals.append(Refusal((pod,), Stage.SCHEDULER, cause))
    return tuple(refusals), planned


def resumed_at(pods: Iterable[Pod], now_s: float) -> tuple[str, ...]:
    """The pods whose pause is over: with each of them a plan may differ, though nothing else has changed."""
    found = ((pod, rejection_of(pod)) for pod in pods if REJECTED in pod.annotations)
    return tuple(pod.key for pod, held in found if held is not None and now_s >= held.again_s)


def unmovable(snapshot: ClusterSnapshot) -> frozenset[Workload]:
    """Workloads of which a pod was rejected: where the plan sees room for their pods, their scheduler may see none.

    Moved, they would be rejected again, and their node bought again. Cost: linear in nodes, and in the pods that wait
    or are on nodes that were not looked at before.
    """
    found = set(_rejected(snapshot.pending))
    for node in snapshot.nodes:
        if _UNMOVABLE not in node.findings:
            node.findings[_UNMOVABLE] = None, _rejected(node.pods)
        if own := node.findings[_UNMOVABLE][1]:
            found |= own
    return frozenset(found)


def _rejected(pods: Iterable[Pod]) -> frozenset[Workload]:
    noted = (pod for pod in pods if REJECTED in pod.annotations)
    return frozenset(workload_of(pod) for pod in noted if rejection_of(pod) is not None)


def _in_vain(
    pods: Sequence[Pod], generations: Mapping[str, int], now_s: float
) -> Mapping[Workload, Sequence[tuple[Pod, Rejection]]]:
    """By workload the pods that wait because the node that was bought for them is not what was planned, one a spec.

    The next node would be no other: pods that are equal to them wait as long.
    """
    found: dict[Workload, list[tuple[Pod, Rejection]]] = {}
    for pod in pods:
        held = rejection_of(pod) if REJECTED in pod.annotations else None
        if held is None or not held.lacks or not held.is_in_force(pod, generations, now_s):
            continue
        known = found.setdefault(workload_of(pod), [])
        if all(each.spec != pod.spec for each, _ in known):
            known.append((pod, held))
    return found


def _cause(pod: Pod, found: Rejection) -> RejectedByScheduler:
    nodes = tuple(map(Name, found.nodes[-1:] if found.lacks else found.nodes))
    retry_s, lacks = found.retry_s(pod), Quoted(found.lacks)
    return RejectedByScheduler(Name(pod.spec.scheduler_name), nodes, Quoted(found.said), retry_s, lacks)


def _elsewhere(pod: Pod, found: Rejection, snapshot: ClusterSnapshot) -> Pod:
    """The pod, to be placed on none of the nodes that were refused and are still there."""
    held = (snapshot.node(name) for name in found.nodes)
    names = sorted({node.labels.get(HOSTNAME, node.name) for node in held if node is not None})
    if not names:
        return pod
    others = Requirements([Requirement.of(HOSTNAME, "NotIn", names)])
    return replace(pod, spec=replace(pod.spec, node_selector=pod.spec.node_selector.intersect(others)))
