"""CapacityBuffers: what a server takes and that keeps no room, or not what it says."""

from collections.abc import Mapping

from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import Subject
from kerf.model.capacitybuffers import ACTIVE, CapacityBuffer
from kerf.model.provisioningrequests import PodTemplate

_NUMBERS = ("replicas", "percentage", "limits")


@rule("KL075", "buffer-keeps-nothing", Severity.WARNING, ("CapacityBuffer",))
def buffer_keeps_nothing(subject: Subject, context: LintContext) -> Notes:
    """A CapacityBuffer keeps room for no pod, or one of its fields does nothing.

    Kerf and Karpenter follow the strategy `buffer.x-k8s.io/active-capacity` alone. Without a `podTemplateRef` or a
    `scalableRef` to a Deployment, StatefulSet or ReplicaSet of `apps` nothing says what a pod asks. A `percentage` is
    of a `scalableRef`; beside a `podTemplateRef` it does nothing. `limits` below what one pod asks leave no room, and
    those that name nothing that the pods ask limit nothing. Where the PodTemplate or the workload is not in the input,
    its amounts are not looked at.
    """
    buffer = subject.value
    if not isinstance(buffer, CapacityBuffer):
        return
    if not buffer.is_ours:
        yield Note(("spec", "provisioningStrategy"), f"only the strategy {ACTIVE} is followed", ACTIVE)
        return
    if not buffer.pod_template and buffer.scalable is None:
        yield Note(("spec",), "neither a podTemplateRef nor a scalableRef says for what pods room is kept", "")
        return
    if buffer.scalable is not None and not buffer.scalable.is_known:
        kinds = "a Deployment, ReplicaSet or StatefulSet with apiGroup: apps"
        yield Note(("spec", "scalableRef"), "the pods of this kind are not known: no room is kept", kinds)
        return
    if buffer.pod_template and buffer.percentage is not None:
        yield Note(("spec", "percentage"), "a percentage beside a podTemplateRef does nothing", "replicas")
    yield from _numbers(subject, buffer, context)


def _numbers(subject: Subject, buffer: CapacityBuffer, context: LintContext) -> Notes:
    stated = next((name for name in _NUMBERS if subject.get("spec", name) is not None), "")
    path = ("spec", stated) if stated else ("spec",)
    is_of_share = bool(buffer.percentage) and buffer.scalable is not None
    if not buffer.replicas and not is_of_share and (buffer.limits is None or buffer.replicas is not None):
        yield Note(path, "it keeps room for no pod", "replicas of at least 1")
        return
    asked = _asked(buffer, context)
    if asked is None or buffer.limits is None:
        return
    requests, scale = asked
    if not any(requests.get(name, 0) > 0 for name in buffer.limits):
        yield Note(("spec", "limits"), "its pods ask for nothing of this: it limits nothing", "name what they request")
    elif not buffer.wanted(requests, None if scale is None else max(1, scale)):
        yield Note(("spec", "limits"), "one of its pods asks for more: it keeps room for no pod", "")


def _asked(buffer: CapacityBuffer, context: LintContext) -> tuple[Mapping[str, int], int | None] | None:
    """What one pod asks, and how many the workload is to have; None where the input does not say."""
    for each in context.of_kind("PodTemplate") if buffer.pod_template else ():
        value = each.value
        if isinstance(value, PodTemplate) and (value.namespace, value.name) == (buffer.namespace, buffer.pod_template):
            return None if value.pod.invalid else (value.pod.spec.requests, None)
    ref = buffer.scalable
    for held in context.workloads if ref is not None else ():
        named = (held.subject.kind, held.subject.namespace, held.subject.name)
        if ref is not None and named == (ref.kind, buffer.namespace, ref.name):
            return None if held.pod.invalid else (held.pod.spec.requests, held.replicas)
    return None
