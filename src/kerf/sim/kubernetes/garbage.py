"""Who owns whom, by uid, so the dependents of a vanished owner can be collected.

Names are not enough: a Deployment deleted and made again has the same name, and the pods of the first are not its own.
"""

from collections.abc import Iterable

from kerf.sim.objects import Json, ObjectKey, key_of, owners_of, uid_of


class OwnerIndex:
    """The live uids, and the dependents of each owner in the order in which they came."""

    def __init__(self) -> None:
        self._live: set[str] = set()
        self._dependents: dict[str, dict[ObjectKey, None]] = {}

    def is_live(self, uid: str) -> bool:
        """Whether an object of that uid exists."""
        return uid in self._live

    def dependents(self, uid: str) -> tuple[ObjectKey, ...]:
        """The objects that refer to that uid as an owner."""
        return tuple(self._dependents.get(uid, ()))

    def replace(self, old: Json | None, new: Json | None) -> None:
        """Take note that `old` has become `new`; None for an object that was not, or is not any more."""
        if old is not None and new is not None and owners_of(old) is owners_of(new):
            return
        if old is not None:
            self._live.discard(uid_of(old))
            self._forget(key_of(old), (owner["uid"] for owner in owners_of(old)))
        if new is not None:
            self._live.add(uid_of(new))
            for owner in owners_of(new):
                self._dependents.setdefault(owner["uid"], {})[key_of(new)] = None

    def _forget(self, key: ObjectKey, owners: Iterable[str]) -> None:
        for uid in owners:
            held = self._dependents.get(uid, {})
            held.pop(key, None)
            if not held:
                self._dependents.pop(uid, None)

    def living_owners(self, obj: Json) -> list[Json]:
        """The owner references of `obj` whose owners exist."""
        return [owner for owner in owners_of(obj) if owner["uid"] in self._live]
