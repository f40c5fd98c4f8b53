"""Room that ProvisioningRequests ask for: virtual pods, all or none, and what their conditions then say.

The same plan that buys for pods finds the room, so that a request competes as a group of pods would and nothing is
computed twice. Pods that come for a request take its room: there is one virtual pod fewer for each of them. Until the
request is provisioned only those on nodes do: the others wait with it, since room for them is what it asks for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.model.nodeclaim import FALSE, TRUE, Condition
from kerf.model.plan import PACED, Plan, Stage, Unplaced
from kerf.model.pods import VIRTUAL, Pod
from kerf.model.provisioningrequests import (
    ACCEPTED,
    BEST_EFFORT_ATOMIC,
    BOOKING_EXPIRED,
    CHECK_CAPACITY,
    FAILED,
    NO_RETRY,
    PROVISIONED,
    ProvisioningRequest,
    consumed_request,
)
from kerf.model.snapshot import ClusterSnapshot

_LAST_RANK = -1
_PREFIXES = {BEST_EFFORT_ATOMIC: f"provisioningrequest{VIRTUAL}", CHECK_CAPACITY: f"checkcapacity{VIRTUAL}"}
_PATIENCE_S = 30
"""How long a PodTemplate may be late: its watch is another than that of the request."""


@dataclass(frozen=True, eq=False)
class Booking:
    """A request that is waited for or kept, and the virtual `pods` that stand for what no pod has taken of it yet.

    `bound` pods that take it are on nodes. `problem` says which PodTemplate is missing or makes no sense.
    """

    request: ProvisioningRequest
    pods: tuple[Pod, ...]
    bound: int = 0
    problem: str = ""


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
    return f"{_PREFIXES[request.class_name]}{request.namespace}.{request.name}"


def unmade(booking: Booking) -> Iterator[Unplaced]:
    """Why there are no virtual pods of a booking: the answer for each that there would be."""
    if booking.problem:
        reason = f"{title(booking.request)}: {booking.problem}"
        for index, pod_set in enumerate(booking.request.pod_sets):
            for number in range(pod_set.count):
                key = f"{_virtual_namespace(booking.request)}/{index}-{number}"
                yield Unplaced(key, Stage.INVALID, reason)


def _problem(request: ProvisioningRequest, found: Sequence[Pod | None]) -> str:
    for pod_set, pod in zip(request.pod_sets, found, strict=True):
        if pod is None:
            return f"there is no PodTemplate {request.namespace}/{pod_set.template}"
        if pod.invalid:
            return f"PodTemplate {request.namespace}/{pod_set.template}: {pod.invalid}"
    return ""


def _left(counts: list[int], templates: Sequence[Pod], consumers: Iterable[Pod]) -> list[int]:
    """What is left of each set: a pod takes of the one that asks the same, else of the first that has any."""
    left = list(counts)
    for pod in consumers:
        open_ = [index for index, count in enumerate(left) if count]
        alike = [index for index in open_ if templates[index].spec.requests == pod.spec.requests]
        for index in (alike or open_)[:1]:
            left[index] -= 1
    return left


def request_of(key: str) -> str:
    """The request (`namespace/name`) behind a virtual pod's `namespace/name`; empty for every other pod."""
    namespace = key.partition("/")[0]
    prefix = next((each for each in _PREFIXES.values() if namespace.startswith(each)), "")
    return namespace.removeprefix(prefix).replace(".", "/", 1) if prefix else ""


def awaited_request(pod: Pod, found: Iterable[Booking]) -> str:
    """The request (`namespace/name`) without whose room a pod is not planned for yet; empty for every other pod."""
    consumed = consumed_request(pod)
    is_awaited = consumed and any(
        each.request.key == consumed and each.request.booked_until_s is None for each in found
    )
    return consumed if is_awaited else ""


def is_check(pod: Pod) -> bool:
    """Whether a virtual pod asks only whether there is room on nodes that are up."""
    return pod.namespace.startswith(_PREFIXES[CHECK_CAPACITY])


def buys_nothing(pod: Pod) -> bool:
    """Whether a pod takes room that is there, or on its way, and no node is bought for it."""
    return is_check(pod) or bool(consumed_request(pod))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a plan says of a booking: places on nodes that are up, all places, and why there are not more.

    Places of pods that are on nodes are among both.
    """

    ready: int
    asked: int
    refusal: str = ""


def verdict(booking: Booking, plan: Plan, snapshot: ClusterSnapshot) -> Verdict:
    """How far the room is that the booking asks for."""
    keys = {pod.key for pod in booking.pods}
    up = {node.name for node in snapshot.nodes if node.is_initialized and node.node is not None}
    ready = sum(placement.pod.pod in keys and placement.node in up for placement in plan.placements)
    refusal = next((each.reason for each in plan.unplaced if each.pod in keys), booking.problem)
    return Verdict(
        booking.bound + ready, booking.bound + len(keys), refusal.removeprefix(f"{title(booking.request)}: ")
    )


def title(request: ProvisioningRequest) -> str:
    """What messages call it."""
    return f"ProvisioningRequest {request.key}"


def advanced(booking: Booking, seen: Verdict, now_s: float) -> ProvisioningRequest:
    """The request with the conditions that hold now."""
    request = booking.request

    def told(type_: str, reason: str, message: str, status: str = TRUE) -> ProvisioningRequest:
        return request.with_condition(Condition(type_, status, reason, message, now_s))

    if request.booked_until_s is not None:
        if booking.bound >= request.pods:
            return told(BOOKING_EXPIRED, "CapacityBookingConsumed", "all pods of the request are on their nodes")
        if now_s >= request.booked_until_s:
            return told(
                BOOKING_EXPIRED, "CapacityReservationTimeExpired", "the room was kept for 10m and is not any more"
            )
        return request
    if booking.problem:
        if now_s < request.created_s + _PATIENCE_S:
            return request
        return told(FAILED, "FailedToCreatePods", booking.problem)
    request = told(ACCEPTED, "Accepted", "; ".join(("Kerf looks for room for it", *request.ignored)))
    if seen.ready == seen.asked:
        return told(PROVISIONED, "CapacityIsFound", f"{_places(request.pods)} on nodes that are up, kept for 10m")
    is_final = request.parameters.get(NO_RETRY) == "true" and f"{PACED}: " not in seen.refusal
    if seen.refusal and is_final:
        return told(FAILED, "CapacityIsNotFound", seen.refusal)
    waiting = seen.refusal or f"{seen.ready} of {_places(seen.asked)} on nodes that are up, the others are starting"
    if now_s >= request.fails_s:
        return told(FAILED, "Expired", f"not provisioned in time: {waiting}")
    return told(PROVISIONED, "CapacityIsNotFound" if seen.refusal else "NodesStarting", waiting, FALSE)


def _places(number: int) -> str:
    return "1 place" if number == 1 else f"{number} places"


def next_change_s(request: ProvisioningRequest) -> float:
    """When its conditions change though nothing else does."""
    return request.fails_s if request.booked_until_s is None else request.booked_until_s
