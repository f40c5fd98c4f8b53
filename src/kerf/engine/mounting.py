"""Pods with what their volumes and RuntimeClasses ask of nodes; those that no node would help are refused."""

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

from kerf.engine.decision import Refusal
from kerf.engine.place.volumes import Volumes, claims_of, may_ask
from kerf.model.causes import Cause
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Stage
from kerf.model.pods import Pod, samples, specs_of
from kerf.model.runtimeclasses import RuntimeClassConflict, RuntimeClassMissing
from kerf.model.volumecauses import ClaimOverQuota

_NONE: Mapping[str, ClaimOverQuota] = MappingProxyType({})


def mounted(
    pods: list[Pod],
    volumes: Volumes,
    leaving: Container[str] = (),
    missing: Mapping[str, ClaimOverQuota] = _NONE,
    of_each_mark: Iterable[Pod] | None = None,
) -> tuple[tuple[Refusal, ...], list[Pod]]:
    """Refusals, one for each cause, and the pods to plan for with what they ask. Linear in the pods.

    `of_each_mark` are their `samples`, where these are known.
    `leaving` are keys of those that run now, and whose volumes will be free when they are made again. `missing` are
    claims that do not come to be, by `namespace/name`.
    """
    refused: dict[tuple[Stage, Cause], list[Pod]] = {}
    planned = list[Pod]()
    specs = specs_of(samples(pods) if of_each_mark is None else of_each_mark)
    if not missing and not any(map(may_ask, specs.values())):
        return (), pods
    for pod in pods:
        if pod.invalid is not None or pod.spec.scheduling_gates:
            # No server takes it, or the scheduler does not look at it yet: `engine.eligible` says so.
            planned.append(pod)
            continue
        without = _without_claim(pod, missing) if missing else None
        if without is not None:
            refused.setdefault(without, []).append(pod)
            continue
        if not volumes.asks(pod):
            planned.append(pod)
            continue
        found = volumes.followed(pod, is_moved=pod.key in leaving)
        if isinstance(found, Cause):
            refused.setdefault((_stage(found), found), []).append(pod)
        else:
            planned.append(found)
    return tuple(_refusal(each, stage, cause) for (stage, cause), each in refused.items()), planned


def _refusal(pods: Iterable[Pod], stage: Stage, cause: Cause) -> Refusal:
    """With the change that the cause names, where there is one."""
    change = {"spec": {"nodeSelector": cause.agreed}} if isinstance(cause, RuntimeClassConflict) else None
    return Refusal(tuple(pods), stage, cause, change=change)


def _without_claim(pod: Pod, missing: Mapping[str, ClaimOverQuota]) -> tuple[Stage, Cause] | None:
    """Its first claim that is missing: the pod of a StatefulSet is not made, any other one waits for its claim."""
    if is_virtual(pod.key):
        # Room is kept for a pod that is to come, and its claims may come with it.
        return None
    for name, template in claims_of(pod, pod.spec):
        cause = missing.get(f"{pod.namespace}/{name}")
        if cause is not None:
            return Stage.VOLUMES if template is None or template.is_ephemeral else Stage.HELD, cause
    return None


def _stage(cause: Cause) -> Stage:
    return Stage.INVALID if isinstance(cause, RuntimeClassConflict | RuntimeClassMissing) else Stage.VOLUMES
