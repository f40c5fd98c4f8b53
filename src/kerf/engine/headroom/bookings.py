"""Room that ProvisioningRequests ask for: virtual pods, all or none.

The same plan that buys for pods finds the room, so a request competes as a group of pods would and nothing is
computed twice. Pods that come for a request take its room: there is one virtual pod fewer for each of them. Until the
request is provisioned only those on nodes do: the others wait with it, since room for them is what it asks for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kerf.engine.headroom.grants import MOST_PODS, Grants
from kerf.model.causes import MostRoom, Name, RoomLimited, TemplateInvalid, TemplateMissing
from kerf.model.placeholders import Keeper, Placeholder
from kerf.model.pods import Pod, PodSpec
from kerf.model.provisioningrequests import (
    BEST_EFFORT_ATOMIC,
    CHECK_CAPACITY,
    ProvisioningRequest,
    consumed_request,
)
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.uses import Use

_LAST_RANK = -1
_KEEPERS = {BEST_EFFORT_ATOMIC: Keeper.REQUEST, CHECK_CAPACITY: Keeper.CHECK}


@dataclass(frozen=True, eq=False)
class Booking:
    """A request that is waited for or kept, and the virtual `pods` that stand for what no pod has taken of it yet.

    `bound` pods that take it are on nodes. `problem` is which PodTemplate is missing or makes no sense, `limited` why
    its namespace may not have so much room; there are no virtual pods then.
    """

    request: ProvisioningRequest
    pods: tuple[Pod, ...]
    bound: int = 0
    problem: TemplateMissing | TemplateInvalid | None = None
    limited: RoomLimited | None = None


def bookings(snapshot: ClusterSnapshot, grants: Grants | None = None) -> tuple[Booking, ...]:
    """Requests of our classes that are not over, the oldest first; room is granted to them in this order."""
    asked = [each for each in snapshot.provisioning_requests if each.is_ours and not each.is_over]
    if not asked:
        return ()
    grants = grants or Grants(snapshot)
    templates = {(each.namespace, each.name): each.pod for each in snapshot.pod_templates}
    consumers: dict[str, list[Pod]] = {}
    for pod in (*snapshot.grouped, *snapshot.pending):
        key = consumed_request(pod)
        if key:
            consumers.setdefault(key, []).append(pod)
    asked.sort(key=lambda each: (each.created_s, each.key))
    now_s = snapshot.taken_at_s
    return tuple(_booking(each, templates, consumers.get(each.key, ()), grants, now_s) for each in asked)


def _booking(
    request: ProvisioningRequest,
    templates: Mapping[tuple[str, str], Pod],
    consumers: Sequence[Pod],
    grants: Grants,
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
    granted = _granted(request, tuple(zip(pods, left, strict=True)), grants)
    if isinstance(granted, RoomLimited):
        return Booking(request, (), bound, limited=granted)
    return Booking(request, tuple(_virtual(request, granted)), bound)


def _granted(
    request: ProvisioningRequest, wanted: Sequence[tuple[Pod, int]], grants: Grants
) -> list[tuple[Pod, int]] | RoomLimited:
    """The templates on the pools that let them, with their numbers; why not all where it is not all."""
    kept = Placeholder(Keeper.REQUEST, request.key)
    total = sum(number for _, number in wanted)
    if total > MOST_PODS:
        return RoomLimited(kept, total, 0, MostRoom(MOST_PODS))
    use = Use.BOOKING if request.class_name == BEST_EFFORT_ATOMIC else None
    mark, found = grants.mark(), []
    for pod, number in wanted:
        granted = grants.grant(use, kept, pod, number, request.namespace) if number else None
        if granted is not None and granted.limited is not None:
            grants.restore(mark)
            return replace(granted.limited, wanted=total, granted=0)
        found.append((pod if granted is None else replace(pod, spec=granted.spec), number))
    return found


def _virtual(request: ProvisioningRequest, sets: Iterable[tuple[Pod, int]]) -> Iterator[Pod]:
    namespace = _virtual_namespace(request)
    for index, (pod, count) in enumerate(sets):
        held = replace(pod, namespace=namespace, created_s=request.created_s, queue_priority=_LAST_RANK, uid="")
        yield from (replace(held, name=f"{index}-{number}") for number in range(count))


def _virtual_namespace(request: ProvisioningRequest) -> str:
    return Placeholder(_KEEPERS[request.class_name], request.key).namespace


def unmade(booking: Booking) -> Iterator[Pod]:
    """The virtual pods that there would be, were it not for their booking's problem; no more than one request gets."""
    sets = enumerate(booking.request.pod_sets)
    names = (f"{index}-{number}" for index, pod_set in sets for number in range(pod_set.count))
    for name in islice(names, MOST_PODS):
        yield Pod(_virtual_namespace(booking.request), name, PodSpec(()))


def _problem(request: ProvisioningRequest, found: Sequence[Pod | None]) -> TemplateMissing | TemplateInvalid | None:
    for pod_set, pod in zip(request.pod_sets, found, strict=True):
        template = Name(f"{request.namespace}/{pod_set.template}")
        if pod is None:
            return TemplateMissing(Name(request.key), template)
        if pod.invalid is not None:
            return TemplateInvalid(Name(request.key), template, pod.invalid)
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
