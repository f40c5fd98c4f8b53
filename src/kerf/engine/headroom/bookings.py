"""Room that ProvisioningRequests ask for: virtual pods, all or none.

The same plan that buys for pods finds the room, so that a request competes as a group of pods would and nothing is
computed twice. Pods that come for a request take its room: there is one virtual pod fewer for each of them. Until the
request is provisioned only those on nodes do: the others wait with it, since room for them is what it asks for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.model.causes import Name, Quoted, TemplateInvalid, TemplateMissing
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.pods import Pod, PodSpec
from kerf.model.provisioningrequests import (
    BEST_EFFORT_ATOMIC,
    CHECK_CAPACITY,
    ProvisioningRequest,
    consumed_request,
)
from kerf.model.snapshot import ClusterSnapshot

_LAST_RANK = -1
_KEEPERS = {BEST_EFFORT_ATOMIC: Keeper.REQUEST, CHECK_CAPACITY: Keeper.CHECK}


@dataclass(frozen=True, eq=False)
class Booking:
    """A request that is waited for or kept, and the virtual `pods` that stand for what no pod has taken of it yet.

    `bound` pods that take it are on nodes. `problem` is which PodTemplate is missing or makes no sense.
    """

    request: ProvisioningRequest
    pods: tuple[Pod, ...]
    bound: int = 0
    problem: TemplateMissing | TemplateInvalid | None = None


def bookings(snapshot: ClusterSnapshot) -> tuple[Booking, ...]:
    """Requests of our classes that are not over, the oldest first."""
    asked = [each for each in snapshot.provisioning_requests if each.is_ours and not each.is_over]
    if not asked:
        return ()
    templates = {(each.namespace, each.name): each.pod for each in snapshot.pod_templates}
    consumers: dict[str, list[Pod]] = {}
    for pod in (*snapshot.grouped, *snapshot.pending):
        key = consumed_request(pod)
        if key:
            consumers.setdefault(key, []).append(pod)
    asked.sort(key=lambda each: (each.created_s, each.key))
    return tuple(_booking(each, templates, consumers.get(each.key, ()), snapshot.taken_at_s) for each in asked)


def _booking(
    request: ProvisioningRequest,
    templates: Mapping[tuple[str, str], Pod],
    consumers: Sequence[Pod],
    now_s: float,
) -> Booking:
    bound = sum(bool(pod.node_name) for pod in consumers)
    if request.booked_until_s is not None and now_s >= request.booked_until_s:
        return Booking(request, (), bound)
    found = [templates.get((request.namespace, each.template)) for each in request.pod_sets]
    problem = _problem(request, found)
    if problem:
        return Booking(request, (), bound, problem)
    pods = [pod for pod in found if pod is not None]
    taking = [pod for pod in consumers if pod.node_name or request.booked_until_s is not None]
    left = _left([each.count for each in request.pod_sets], pods, taking)
    virtual = (
        replace(
            pod,
            namespace=_virtual_namespace(request),
            name=f"{index}-{number}",
            created_s=request.created_s,
            queue_priority=_LAST_RANK,
            uid="",
        )
        for index, (pod, count) in enumerate(zip(pods, left, strict=True))
        for number in range(count)
    )
    return Booking(request, tuple(virtual), bound)


def _virtual_namespace(request: ProvisioningRequest) -> str:
    return Placeholder(_KEEPERS[request.class_name], request.key).namespace


def unmade(booking: Booking) -> Iterator[Pod]:
    """The virtual pods that there would be, were it not for the problem of their booking."""
    for index, pod_set in enumerate(booking.request.pod_sets):
        for number in range(pod_set.count):
            yield Pod(_virtual_namespace(booking.request), f"{index}-{number}", PodSpec(()))


def _problem(request: ProvisioningRequest, found: Sequence[Pod | None]) -> TemplateMissing | TemplateInvalid | None:
    for pod_set, pod in zip(request.pod_sets, found, strict=True):
        template = Name(f"{request.namespace}/{pod_set.template}")
        if pod is None:
            return TemplateMissing(Name(request.key), template)
        if pod.invalid:
            return TemplateInvalid(Name(request.key), template, Quoted(pod.invalid))
    return None


def _left(counts: list[int], templates: Sequence[Pod], consumers: Iterable[Pod]) -> list[int]:
    """What is left of each set: a pod takes of the one that asks the same, else of the first that has any."""
    left = list(counts)
    for pod in consumers:
        open_ = [index for index, count in enumerate(left) if count]
        alike = [index for index in open_ if templates[index].spec.requests == pod.spec.requests]
        for index in (alike or open_)[:1]:
            left[index] -= 1
    return left


def awaited_request(pod: Pod, found: Iterable[Booking]) -> str:
    """The request (`namespace/name`) without whose room a pod is not planned for yet; empty for every other pod."""
    consumed = consumed_request(pod)
    is_awaited = consumed and any(
        each.request.key == consumed and each.request.booked_until_s is None for each in found
    )
    return consumed if is_awaited else ""


def is_check(pod: Pod) -> bool:
    """Whether a virtual pod asks only whether there is room on nodes that are up."""
    return pod.kept_for is not None and pod.kept_for.keeper == Keeper.CHECK


def buys_nothing(pod: Pod) -> bool:
    """Whether a pod takes room that is there, or on its way, and no node is bought for it."""
    return is_check(pod) or bool(consumed_request(pod))


def next_change_s(request: ProvisioningRequest) -> float:
    """When its conditions change though nothing else does."""
    return request.fails_s if request.booked_until_s is None else request.booked_until_s
