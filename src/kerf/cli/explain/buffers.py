"""A CapacityBuffer: for how many pods it keeps room, where, and what its conditions would say."""

from collections.abc import Iterator

from kerf.cli.explain.explanation import Explanation
from kerf.cli.explain.pods import PodAnswers
from kerf.cli.explain.requests import places_of
from kerf.cli.plan.json import patch_object
from kerf.cli.render import counted, patch_command
from kerf.engine.explain.buffers import buffer_status, buffer_verdict
from kerf.engine.headroom.buffers import Buffered, buffered
from kerf.model.capacitybuffers import ACTIVE, BufferStatus, CapacityBuffer
from kerf.model.nodeclaim import TRUE
from kerf.model.plan import Unplaced


def explain_buffer(buffer: CapacityBuffer, answers: PodAnswers) -> Explanation:
    """Strategy, pods, places and conditions; of another's strategy only that."""
    snapshot = answers.read.snapshot
    found = next((each for each in buffered(snapshot) if each.buffer.key == buffer.key), None)
    status, refusal = buffer.status, ""
    if found is not None:
        seen = buffer_verdict(found, answers.decision)
        status, refusal = buffer_status(found, seen, snapshot.taken_at_s), seen.refusal
    keys = {pod.key for pod in found.pods} if found is not None else set()
    places = dict(sorted(places_of(keys, answers).items()))
    first = next((answers.unplaced[key] for key in sorted(keys) if key in answers.unplaced), None)
    data = {
        "kind": "CapacityBuffer",
        "namespace": buffer.namespace,
        "name": buffer.name,
        "provisioningStrategy": buffer.strategy,
        "isOurs": buffer.is_ours,
        "replicas": found.wanted if found is not None else None,
        "places": places,
        "refusal": refusal,
        "hint": first.hint if first is not None else "",
        "patch": patch_object(first.patch) if first is not None and first.patch is not None else None,
        "conditions": [
            {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
            for each in status.conditions
        ],
    }
    lines = tuple(_lines(buffer, found, status, places, first))
    return Explanation(data, lines, found is not None and bool(refusal or found.problem))


def _lines(
    buffer: CapacityBuffer,
    found: Buffered | None,
    status: BufferStatus,
    places: dict[str, int],
    first: Unplaced | None,
) -> Iterator[str]:
    if found is None:
        yield f"CapacityBuffer {buffer.key}: no room is kept"
        yield f"  strategy: {buffer.strategy}" + (
            f", which is not Kerf's: only {ACTIVE} is" if not buffer.is_ours else ""
        )
        return
    yield f"CapacityBuffer {buffer.key} keeps room for {counted(found.wanted, 'pod')}"
    yield from (f"  {counted(number, 'place')} on {node}" for node, number in places.items())
    for each in status.conditions:
        yield f"  {each.type if each.status == TRUE else f'not {each.type}'} ({each.reason}): {each.message}"
    if first is not None and first.hint:
        yield f"  hint: {first.hint}"
    yield from (f"  {patch_command(patch)}" for patch in (first.patches if first is not None else ()))
