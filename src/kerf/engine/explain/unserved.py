"""What follows from a field that is accepted and not done."""

from collections.abc import Iterable

from kerf.model.nodepool import NodePool
from kerf.model.unserved import Unserved, unserved

_FOLLOWS = {
    Unserved.EXPIRE_AFTER: "no node goes because of its age",
    Unserved.BALANCED: "the pool is consolidated as with WhenEmptyOrUnderutilized",
}


def unserved_text(field: Unserved) -> str:
    """That it is not done, and what happens instead."""
    return f"{field} is accepted and not done yet: {_FOLLOWS[field]}"


def unserved_notes(pools: Iterable[NodePool]) -> tuple[str, ...]:
    """One note for each such field, with the pools that state it by name."""
    stated: dict[Unserved, list[str]] = {}
    for pool in sorted(pools, key=lambda pool: pool.name):
        for field in unserved(pool):
            stated.setdefault(field, []).append(pool.name)
    return tuple(
        f"NodePool {', '.join(stated[field])}: {unserved_text(field)}" for field in Unserved if field in stated
    )
