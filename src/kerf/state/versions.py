"""Which form of an object is the newest: one from the watch, or one from the answer to a write.

Answers and events come on different connections, so in every order: an answer may come seconds after the watch has
shown what others made of the object since, even its end, and the watch may lag behind an answer.

Two forms are compared by their resource versions. These are decimal numbers that grow within one kind, over all of its
objects, since Kubernetes 1.35 by promise (KEP-5504; `k8s.io/apimachinery/pkg/util/resourceversion`), and before by how
etcd counts: client-go's `tools/cache/mutation_cache.go` compares them so. Of a server that writes something else
only equality is known. Then the watch alone counts, because its events are in the server's order.
"""

from dataclasses import dataclass

_MOST_ENDED = 20_000
"""So many ends are remembered. An answer is awaited for a minute at most, and no cluster ends more objects in one."""

_MOST_DIGITS = 40


def compared(one: str, other: str) -> int | None:
    """Below 0 where `one` is older, 0 where both are the same version; None where it cannot be known."""
    if one == other:
        return 0
    if not all(text.isdecimal() and len(text) <= _MOST_DIGITS for text in (one, other)):
        return None
    return -1 if int(one) < int(other) else 1


@dataclass(frozen=True, slots=True)
class Ahead:
    """What an answer has shown of an object and the watch has not yet.

    `is_made`: the watch has not shown the object at all.
    """

    uid: str
    version: str
    is_made: bool = False

    def is_newer_than(self, version: str) -> bool:
        """Whether it came after that version, of this object or of one that had its name before."""
        order = compared(version, self.version)
        return order is not None and order < 0

    def is_by(self, version: str) -> bool:
        """Whether a list of that version shows this one."""
        order = compared(self.version, version)
        return order is not None and order <= 0


class Ends:
    """The uids of objects that the watch has shown to be gone, the last ones. No uid comes again."""

    def __init__(self) -> None:
        self._uids: dict[str, None] = {}

    def add(self, uid: str) -> None:
        """It is gone."""
        if uid:
            self._uids.pop(uid, None)
            self._uids[uid] = None
            if len(self._uids) > _MOST_ENDED:
                del self._uids[next(iter(self._uids))]

    def discard(self, uid: str) -> None:
        """It is shown again: it was only out of sight."""
        self._uids.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids
