"""What a decision leaves to say of room that is kept: once for all runs of a namespace.

A tenant writes as many CronJobs as it likes, and one note for each of them would hide every other note.
"""

from collections.abc import Iterable
from dataclasses import replace

from kerf.engine.explain.causes import cause_text, some
from kerf.model.causes import Cause, Name, RoomLimited, RoomUnbounded
from kerf.model.placeholders import Keeper

__all__ = ["decision_notes"]


def decision_notes(notes: Iterable[Cause]) -> tuple[str, ...]:
    """The texts of a decision's notes in their order; runs of a namespace with the same kind of reason share the first.

    Cost: linear in the notes.
    """
    found: dict[object, list[Cause]] = {}
    for number, note in enumerate(notes):
        is_of_run = isinstance(note, RoomLimited) and note.kept.keeper == Keeper.RUN
        found.setdefault(_kind(note) if is_of_run else number, []).append(note)
    return tuple(_text(alike) for alike in found.values())


def _kind(note: Cause) -> object:
    assert isinstance(note, RoomLimited)
    return note.kept.name.partition("/")[0], type(note.why)


def _text(alike: list[Cause]) -> str:
    if len(alike) == 1:
        return cause_text(alike[0])
    limited = [each for each in alike if isinstance(each, RoomLimited)]
    kept, wanted = sum(each.granted for each in limited), sum(each.wanted for each in limited)
    whose = f"{len(limited)} CronJobs ({some([each.kept.name for each in limited])})"
    room = f"room is kept for {kept} of {wanted} pods" if kept else f"no room is kept for {wanted} pods"
    return f"{whose}: {room}: {cause_text(_common(limited))}"


def _common(limited: list[RoomLimited]) -> Cause:
    """The reason of the first; where each lacks a quota of another resource, with the names of the others."""
    why = limited[0].why
    if not isinstance(why, RoomUnbounded):
        return why
    resources = dict.fromkeys(each.why.resource for each in limited if isinstance(each.why, RoomUnbounded))
    return replace(why, resource=Name(some(list(resources))))
