"""The model value of an object of the in-memory API, decoded once however many look at it.

The schedulers, the onlookers and Kerf's reader get the same object, and a Kerf that was started again reads all
of them again. Objects never change in place (see `objects`), so the object itself is what its value is known by.
"""

from kerf.manifests.decode import decode_object
from kerf.model.snapshot import Watched
from kerf.sim.objects import Json, uid_of

_MOST = 8192
"""So many values are kept; then all are let go. More objects than that rarely exist at one time."""

_held: dict[int, tuple[Json, Watched | None]] = {}
_last: dict[tuple[str, str], Json] = {}
"""By kind and uid the form of each object that was decoded last. Each run has uids of its own; a kind has one form."""


def decoded(obj: Json) -> Watched | None:
    """As `decode_object`, for an object that the API has stored: no later step of its admission may change it.

    Raises DecodeError, again each time.
    """
    known = _held.get(id(obj))
    if known is not None:
        return known[1]
    named = obj["kind"], uid_of(obj)
    value = decode_object(obj, _last.get(named))
    if len(_held) >= _MOST:
        _held.clear()
        _last.clear()
    _last[named] = obj
    # The object is kept beside its value: while it is, no other can have its id.
    _held[id(obj)] = obj, value
    return value
