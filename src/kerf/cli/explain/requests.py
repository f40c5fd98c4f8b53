"""A ProvisioningRequest: what it asks for, how much of it has a place and where, and what its conditions would say."""

from collections import Counter
from collections.abc import Collection, Iterator

from kerf.cli.explain.explanation import Explanation
from kerf.cli.explain.pods import PodAnswers
from kerf.cli.plan.json import Json, patch_object
from kerf.cli.render import counted, patch_command
from kerf.engine.explain.requests import BookingVerdict, advanced, verdict
from kerf.engine.headroom.bookings import bookings
from kerf.model.nodeclaim import TRUE
from kerf.model.provisioningrequests import FAILED, PROVISIONED, ProvisioningRequest


def explain_request(request: ProvisioningRequest, answers: PodAnswers) -> Explanation:
    """Class, pods, places and conditions; of another's class only that."""
    snapshot = answers.read.snapshot
    booking = next((each for each in bookings(snapshot) if each.request.key == request.key), None)
    seen = verdict(booking, answers.decision) if booking is not None else BookingVerdict(0, 0)
    current = advanced(booking, seen, snapshot.taken_at_s) if booking is not None else request
    places = places_of({pod.key for pod in booking.pods} if booking is not None else set(), answers)
    first = (
        next((answers.unplaced[pod.key] for pod in booking.pods if pod.key in answers.unplaced), None)
        if booking
        else None
    )
    data = {
        "kind": "ProvisioningRequest",
        "namespace": request.namespace,
        "name": request.name,
        "provisioningClassName": request.class_name,
        "isOurs": request.is_ours,
        "pods": request.pods,
        "places": dict(sorted(places.items())),
        "refusal": seen.refusal,
        "hint": first.hint if first is not None else "",
        "patch": patch_object(first.patch) if first is not None and first.patch is not None else None,
        "conditions": [
            {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
            for each in current.conditions
        ],
    }
    needs_look = request.is_ours and (current.is_true(FAILED) or bool(seen.refusal or request.ignored))
    lines = [*_lines(current, places, data)]
    if first is not None and first.hint:
        lines.append(f"  hint: {first.hint}")
    lines += [f"  {patch_command(patch)}" for patch in (first.patches if first is not None else ())]
    return Explanation(data, tuple(lines), needs_look)


def places_of(keys: Collection[str], answers: PodAnswers) -> Counter[str]:
    """How many places each node holds for the pods, by `namespace/name`, and each node that would be bought."""
    found = Counter(each.node for each in answers.plan.placements if each.pod.pod in keys)
    for launch in answers.plan.launches:
        number = sum(placed.pod in keys for placed in launch.pods)
        if number:
            found[f"{launch.name} ({launch.offering}), to be bought"] += number
    return found


def _lines(request: ProvisioningRequest, places: Counter[str], data: Json) -> Iterator[str]:
    yield f"ProvisioningRequest {request.key} asks for {counted(request.pods, 'pod')}"
    whose = "" if request.is_ours else ", which is not Kerf's: it is left to others"
    yield f"  class: {request.class_name}{whose}"
    yield from (f"  {counted(number, 'place')} on {node}" for node, number in sorted(places.items()))
    for each in request.conditions:
        status = each.type if each.status == TRUE else f"not {each.type}"
        yield f"  {status} ({each.reason}): {each.message}"
    if data["refusal"] and not request.condition(PROVISIONED) and not request.is_true(FAILED):
        yield f"  {data['refusal']}"
