"""What containers ask for."""

from collections.abc import Iterator

from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Edit, Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import WORKLOADS, Subject
from kerf.manifests.pods.resources import is_extended
from kerf.manifests.schema import Path, is_quantity
from kerf.model.quantities import PODS, quantity_of
from kerf.sharing.unsupported import counted_by, unsupported_by

_OVERCOMMITTED = ("cpu", "memory", "ephemeral-storage")
"""Whose limit may differ from the request, and only upwards."""
_PLANNED_FOR = "ask by HAMi, MIG, time-slicing or MPS, or for whole GPUs"


def amounts(subject: Subject, path: Path, kind: str) -> Iterator[tuple[Path, str, object]]:
    """(path, resource, what is written) of the extended resources in the `limits` or `requests` of a container."""
    for name, amount in subject.mapping(*path, "resources", kind).items():
        if is_extended(name) and isinstance(amount, str | int | float) and not isinstance(amount, bool):
            yield (*path, "resources", kind, name), name, amount


@rule("KL030", "extended-resource-without-limit", Severity.ERROR, WORKLOADS, is_fixable=True)
def without_limit(subject: Subject, context: LintContext) -> Notes:
    """A GPU is requested and not limited.

    Extended resources cannot be overcommitted, so the API server refuses a request without an equal limit:
    `Limit must be set for non overcommitable resources`. A limit alone is enough, the request follows it. `--fix` adds
    the limit. Document 000, line 6.
    """
    del context
    for path, _ in subject.containers:
        limits = subject.mapping(*path, "resources", "limits")
        for at, name, amount in amounts(subject, path, "requests"):
            if name not in limits:
                fix = _limited(subject, path, name, amount)
                yield Note(at, f"{name} is requested and has no limit", f"limits: {{{name}: {amount}}}", True, fix)


def _limited(subject: Subject, path: Path, name: str, amount: object) -> tuple[Edit, ...]:
    resources = (*path, "resources")
    written = f'"{amount}"' if isinstance(amount, str) else str(amount)
    limits = subject.mapping(*resources, "limits")
    if limits:
        return (Edit((*resources, "limits", next(iter(limits))), f"{name}: {written}\n", is_insertion=True),)
    if "limits" in subject.mapping(*resources):
        return ()
    return (Edit((*resources, "requests"), f"limits: {{{name}: {written}}}\n", is_insertion=True),)


@rule("KL031", "extended-resource-differs", Severity.ERROR, WORKLOADS)
def differs(subject: Subject, context: LintContext) -> Notes:
    """The request of a GPU is not its limit.

    Extended resources cannot be overcommitted: the API server refuses the pod with `must be equal to nvidia.com/gpu
    limit`. Leave the request away, it follows the limit. To let several pods use a card share it by time-slicing, MIG
    or HAMi. Document 000, line 6.
    """
    del context
    for path, _ in subject.containers:
        limits = {name: amount for _, name, amount in amounts(subject, path, "limits")}
        for at, name, amount in amounts(subject, path, "requests"):
            limit = limits.get(name)
            if limit is None or not (is_quantity(name, amount) and is_quantity(name, limit)):
                continue
            if quantity_of(name, str(amount)) != quantity_of(name, str(limit)):
                message = f"{name} is requested {amount} times and limited to {limit}: the API server refuses the pod"
                yield Note(at, message, "leave the request away, it follows the limit")


@rule("KL032", "fraction-of-extended-resource", Severity.ERROR, WORKLOADS)
def fraction(subject: Subject, context: LintContext) -> Notes:
    """A fraction of a GPU is asked for.

    Extended resources are whole numbers: the API server refuses `nvidia.com/gpu: 0.5` with `must be an integer`. Half a
    card is asked of HAMi as `nvidia.com/gpu: 1` with `nvidia.com/gpucores: 50` and `nvidia.com/gpumem` in MiB, of MIG
    as `nvidia.com/mig-3g.20gb: 1`, and of time-slicing as one of its replicas.
    """
    del context
    for path, _ in subject.containers:
        for kind in ("limits", "requests"):
            for at, name, amount in amounts(subject, path, kind):
                if not is_quantity(name, str(amount)):
                    continue
                # A thousandth of it is whole exactly when it is written without a fraction.
                if quantity_of("cpu", str(amount)) % 1000 != 0:
                    yield Note(at, f"{name}: {amount} is no whole number: the API server refuses the pod", _share(name))


def _share(name: str) -> str:
    if name != "nvidia.com/gpu":
        return "ask for a whole number"
    return "with HAMi: nvidia.com/gpu: 1 and nvidia.com/gpucores: 50; or MIG, or time-slicing"


@rule("KL064", "request-above-limit", Severity.ERROR, WORKLOADS)
def above_limit(subject: Subject, context: LintContext) -> Notes:
    """A container requests more than its limit.

    The API server refuses the pod with `must be less than or equal to cpu limit`; of a workload it takes the template,
    and no pod ever comes. Raise the limit with the request, or leave the limit away. Extended resources are KL031's.
    Document 002, line 4.
    """
    del context
    for path, _ in subject.containers:
        limits = subject.mapping(*path, "resources", "limits")
        for name, asked in subject.mapping(*path, "resources", "requests").items():
            limit = limits.get(name)
            if name not in _OVERCOMMITTED or not (is_quantity(name, asked) and is_quantity(name, limit)):
                continue
            if quantity_of(name, str(asked)) > quantity_of(name, str(limit)):
                message = f"{name} is requested {asked} and limited to {limit}: the API server refuses the pod"
                yield Note((*path, "resources", "requests", name), message, "raise the limit or leave it away")


@rule("KL040", "no-requests", Severity.WARNING, WORKLOADS)
def no_requests(subject: Subject, context: LintContext) -> Notes:
    """No container of the pods requests anything.

    kube-scheduler counts requests, not use: pods that request nothing fit anywhere, so twenty-five of them land on
    one node, are slow there, and wait for a node only when those there are at their pod limit. Request what a pod
    uses; for N jobs a node that is the node's allocatable CPU over N, not its cores over N. A LimitRange of the
    namespace with `defaultRequest` counts as a request. Document 002, lines 1 to 6.
    """
    held = held_by(subject)
    if held is None or subject.kind == "DaemonSet":
        return
    if any(name != PODS and amount > 0 for name, amount in held.pod.spec.requests.items()):
        return
    count = held.replicas
    many = f"{count} pods request" if count > 1 else "the pod requests"
    fits = "they fit" if count > 1 else "it fits"
    message = f"{many} nothing: {fits} any node, however loaded; another is bought only when none has a pod slot left"
    path: Path = (*subject.pod, "containers", 0)
    yield Note(path, message, "state requests.cpu and requests.memory of what it uses")


@rule("KL066", "unsupported-sharing", Severity.ERROR, WORKLOADS)
def unsupported_sharing(subject: Subject, context: LintContext) -> Notes:
    """The pods have resource claims (DRA), or ask for parts of GPUs by a way of sharing that Kerf does not plan for.

    No node is bought for such pods, because a sum over a node says nothing of its cards. Recognised are KAI Scheduler
    (Run:ai), Koordinator, Volcano vGPU, Alibaba's gpushare and cGPU, Tencent's gpu-manager and qGPU, Baidu's cGPU and
    XPU, Volcengine's mGPU, elastic-gpu, HAMi for AMD, Intel's GPU Aware Scheduling, and the accelerators of Huawei,
    Cambricon, Hygon, Kunlunxin, Moore Threads, MetaX, Enflame and Iluvatar: by resource, by annotation, and where the
    pods ask for a GPU by scheduler. So is any other resource whose name says a share of a card, such as
    `example.com/gpu-core`, `-memory`, `-percentage` or `vgpu`. Nor is a node bought for pods with `resourceClaims`
    (Dynamic Resource Allocation), or with a resource of a DeviceClass (`deviceclass.resource.kubernetes.io/`). Kerf
    plans for HAMi, MIG, time-slicing, MPS and whole GPUs, and counts other devices whole.
    """
    held = held_by(subject)
    for what in held.pod.spec.not_planned if held is not None else ():
        at = next(iter(_asking(subject, what)), (*subject.pod, what))
        message = f"Kerf does not plan for {what} (Dynamic Resource Allocation), and no node is bought for it"
        yield Note(at, message, _PLANNED_FOR)
    cause = unsupported_by(held.pod, counted_by(context.families)) if held is not None else None
    if cause is None:
        return
    places = _asking(subject, cause.asked)
    metadata = (*(subject.template or ()), "metadata", "annotations", cause.asked)
    is_stated = held is not None and cause.asked in held.pod.annotations
    at = places[0] if places else metadata if is_stated else (*subject.pod, "schedulerName")
    whose = f"{cause.title} gives out what {cause.asked} asks for"
    unknown = f"{cause.asked} is by its name a share of a card that Kerf does not know"
    message = f"{whose if cause.title else unknown}, and no node is bought for it"
    yield Note(at, message, _PLANNED_FOR)


def _asking(subject: Subject, resource: str) -> list[Path]:
    """Where containers ask for the resource."""
    held = ((*path, "resources", kind) for path, _ in subject.containers for kind in ("limits", "requests"))
    return [(*at, resource) for at in held if resource in subject.mapping(*at)]
