"""What the conditions of a ProvisioningRequest say of a decision: how far its room is, and what is in the way."""

from dataclasses import dataclass

from kerf.engine.decision import Decision
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.refusals import Telling
from kerf.engine.headroom.bookings import Booking
from kerf.model.causes import Paced
from kerf.model.nodeclaim import FALSE, TRUE, Condition
from kerf.model.provisioningrequests import (
    ACCEPTED,
    BOOKING_EXPIRED,
    FAILED,
    NO_RETRY,
    NODES_STARTING,
    PROVISIONED,
    ProvisioningRequest,
)

_PATIENCE_S = 30
"""How long a PodTemplate may be late: its watch is another than that of the request."""


@dataclass(frozen=True, slots=True)
class BookingVerdict:
    """What a decision means for a booking: places on nodes that are up, all places, and why there are not more.

    Places of pods that are on nodes are among both. `is_paced`: what is refused comes with time alone.
    """

    ready: int
    asked: int
    refusal: str = ""
    is_paced: bool = False


def verdict(booking: Booking, decision: Decision) -> BookingVerdict:
    """How far the room is that the booking asks for."""
    keys = {pod.key for pod in booking.pods}
    nodes = decision.world.snapshot.nodes
    up = {node.name for node in nodes if node.is_initialized and node.node is not None}
    ready = sum(placement.pod.pod in keys and placement.node in up for placement in decision.placements)
    refused = next((each for each in decision.refusals if any(pod.key in keys for pod in each.pods)), None)
    places = booking.bound + ready, booking.bound + len(keys)
    if booking.limited is not None:
        return BookingVerdict(booking.bound, booking.bound + booking.limited.wanted, cause_text(booking.limited))
    if refused is None:
        return BookingVerdict(*places, "" if booking.problem is None else cause_text(booking.problem))
    return BookingVerdict(*places, Telling().without_group(refused), isinstance(refused.innermost.cause, Paced))


def advanced(booking: Booking, seen: BookingVerdict, now_s: float) -> ProvisioningRequest:
    """The request with the conditions that hold now."""
    request = booking.request

    def stated(type_: str, reason: str, message: str, status: str = TRUE) -> ProvisioningRequest:
        return request.with_condition(Condition(type_, status, reason, message, now_s))

    if request.booked_until_s is not None:
        if booking.bound >= request.pods:
            return stated(BOOKING_EXPIRED, "CapacityBookingConsumed", "all pods of the request are on their nodes")
        if now_s >= request.booked_until_s:
            message = "the room was kept for 10m and is not any more"
            return stated(BOOKING_EXPIRED, "CapacityReservationTimeExpired", message)
        return request
    if booking.problem is not None:
        if now_s < request.created_s + _PATIENCE_S:
            return request
        return stated(FAILED, "FailedToCreatePods", cause_text(booking.problem))
    request = stated(ACCEPTED, "Accepted", "; ".join(("Kerf looks for room for it", *request.ignored)))
    if seen.ready == seen.asked:
        return stated(PROVISIONED, "CapacityIsFound", f"{_places(request.pods)} on nodes that are up, kept for 10m")
    if seen.refusal and request.parameters.get(NO_RETRY) == "true" and not seen.is_paced:
        return stated(FAILED, "CapacityIsNotFound", seen.refusal)
    waiting = seen.refusal or f"{seen.ready} of {_places(seen.asked)} on nodes that are up, the others are starting"
    if now_s >= request.fails_s:
        return stated(FAILED, "Expired", f"not provisioned in time: {waiting}")
    return stated(PROVISIONED, "CapacityIsNotFound" if seen.refusal else NODES_STARTING, waiting, FALSE)


def _places(number: int) -> str:
    return "1 place" if number == 1 else f"{number} places"
