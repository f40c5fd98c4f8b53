"""Pods whose mistake alone refuses them: what they are without it, and what a decision makes of them then."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kerf.engine.decide import decide
from kerf.engine.decision import Decision, Refusal
from kerf.engine.explain.hints.situation import Change
from kerf.model.constraints import Requirements
from kerf.model.pods import Container, Pod, PodSpec

_MOST_DECIDED_AGAIN = 2_000
"""Pending pods that are decided for again beside the corrected ones; where more wait, these are decided for alone."""


def work_expected(pods: Sequence[Pod], decision: Decision) -> int:
    """What `decided_again` is likely to cost, as `Decision.work`."""
    waiting = len(decision.world.snapshot.pending)
    return len(pods) if waiting > _MOST_DECIDED_AGAIN else max(waiting, decision.work)


def decided_again(pods: Iterable[Pod], change: Change, decision: Decision) -> tuple[Decision, Refusal | None]:
    """The decision with the change made to the pods, and what refuses some of them even so; None where nothing does.

    The refusal has those pods alone. Cost: a decision.
    """
    changed = {pod.key: replace(pod, spec=corrected(pod.spec, change)) for pod in pods}
    snapshot = decision.world.snapshot
    is_much = len(snapshot.pending) > _MOST_DECIDED_AGAIN
    kept = (pod for pod in snapshot.pending if not is_much or pod.key in changed)
    again = decision.world.with_pending(tuple(changed.get(pod.key, pod) for pod in kept))
    made = decide(again, replace(decision.options, with_bound=False))
    for refusal in made.refusals:
        left = tuple(pod for pod in refusal.innermost.pods if pod.key in changed)
        if left or any(pod.key in changed for pod in refusal.pods):
            return made, replace(refusal.innermost, pods=left or refusal.innermost.pods)
    return made, None


def corrected(spec: PodSpec, change: Change) -> PodSpec:
    """The spec as the merge patch of its pod makes it: amounts of containers by name, the scheduler's name, labels of
    the node selector."""
    wanted: Any = change.get("spec", {})
    return replace(
        spec,
        containers=_corrected(spec.containers, wanted.get("containers", ())),
        init_containers=_corrected(spec.init_containers, wanted.get("initContainers", ())),
        scheduler_name=wanted.get("schedulerName", spec.scheduler_name),
        node_selector=_selecting(spec.node_selector, wanted.get("nodeSelector", {})),
    )


def _selecting(held: Requirements, wanted: Mapping[str, str]) -> Requirements:
    return held.without(wanted).intersect(Requirements.of_labels(wanted)) if wanted else held


def _corrected(containers: tuple[Container, ...], wanted: Iterable[Mapping[str, Any]]) -> tuple[Container, ...]:
    amounts = {each["name"]: each["resources"] for each in wanted}
    return tuple(
        replace(
            each,
            limits=each.limits.replaced(amounts[each.name]["limits"]),
            requests=each.requests.replaced(amounts[each.name]["requests"]),
        )
        if each.name in amounts
        else each
        for each in containers
    )
