"""Pods with what their volumes and RuntimeClasses ask of nodes; those that no node would help are refused."""

from collections.abc import Container, Iterable

from kerf.engine.decision import Refusal
from kerf.engine.place.volumes import Volumes
from kerf.model.causes import Cause
from kerf.model.plan import Stage
from kerf.model.pods import Pod
from kerf.model.runtimeclasses import RuntimeClassMissing


def mounted(
    pods: Iterable[Pod], volumes: Volumes, leaving: Container[str] = ()
) -> tuple[tuple[Refusal, ...], list[Pod]]:
    """Refusals, one for each cause, and the pods to plan for with what they ask. Linear in the pods.

    `leaving` are keys of those that run now, and whose volumes will be free when they are made again.
    """
    refused: dict[Cause, list[Pod]] = {}
    planned: list[Pod] = []
    for pod in pods:
        found = volumes.followed(pod, is_moved=pod.key in leaving)
        if isinstance(found, Cause):
            refused.setdefault(found, []).append(pod)
        else:
            planned.append(found)
    return tuple(Refusal(tuple(each), _stage(cause), cause) for cause, each in refused.items()), planned


def _stage(cause: Cause) -> Stage:
    return Stage.INVALID if isinstance(cause, RuntimeClassMissing) else Stage.VOLUMES
