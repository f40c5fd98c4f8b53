"""Which reserved nodes stay closed to others although their own pods are there: those of one purchase open together.

Pods that go by others (affinity, anti-affinity, spread) are planned beside pods of other nodes. Nodes come one by one.
Opened as soon as its own pods were there, the first would take pods that are planned elsewhere: of three pods that must
share a node one would go there, and the other two, for whom it has no room, could go nowhere.
"""

import heapq
import math
from collections.abc import Iterable

from kerf.model.nodeclaim import FOLLOW, INITIALIZED, NodeClaim
from kerf.model.plan import REPLAY
from kerf.model.pods import Pod
from kerf.model.promises import read
from kerf.model.snapshot import Event, Synced
from kerf.state import ClusterState


class OpenedTogether:
    """Follows which claims still wait for planned pods that go by others. All of it is known again after a restart.

    Claims are of one purchase that were made within `one_age_s` of each other: in a steady stream each node waits for
    those alone. Cost: for each event of a claim or of a planned pod the planned pods of that claim.
    """

    def __init__(self, state: ClusterState, one_age_s: float) -> None:
        self._state, self._one_age_s = state, one_age_s
        self._waiting: set[str] = set()
        # Those that wait by age, the oldest first, beside some that wait no more.
        self._by_age: list[tuple[float, str]] = []
        self._held: dict[str, float] = {}

    def holds(self, claim: NodeClaim) -> bool:
        """Whether the claim's node is to stay reserved when its own pods are there."""
        if self._first_s > claim.created_s + self._one_age_s:
            self._held.pop(claim.name, None)
            return False
        self._held[claim.name] = claim.created_s
        return True

    def keys(self, event: Event) -> Iterable[str]:
        """The claims whose nodes no longer have to stay reserved."""
        before = self._first_s
        for name in self._concerned(event):
            self._look(name)
        if self._first_s <= before:
            return ()
        free = [name for name, created_s in self._held.items() if created_s + self._one_age_s < self._first_s]
        for name in free:
            del self._held[name]
        return sorted(free)

    def _concerned(self, event: Event) -> Iterable[str]:
        if isinstance(event, Synced):
            return [claim.name for claim in self._state.claims()]
        if isinstance(event.value, NodeClaim):
            return (event.value.name,)
        return [claim.name for claim in self._state.claims_for(event.value.key)] if isinstance(event.value, Pod) else ()

    def _look(self, name: str) -> None:
        claim = self._state.claim(name)
        if claim is None or not self._is_waiting(claim):
            self._waiting.discard(name)
            if claim is None:
                self._held.pop(name, None)
        elif name not in self._waiting:
            self._waiting.add(name)
            heapq.heappush(self._by_age, (claim.created_s, name))

    def _is_waiting(self, claim: NodeClaim) -> bool:
        if claim.is_deleting or claim.is_true(INITIALIZED) or claim.annotations.get(FOLLOW, REPLAY) == REPLAY:
            return False
        pods = map(self._state.pod, read(claim.annotations).pods)
        return any(pod is not None and pod.is_pending and pod.spec.is_related for pod in pods)

    @property
    def _first_s(self) -> float:
        """When the oldest claim that waits was made; infinite where none does."""
        while self._by_age and self._by_age[0][1] not in self._waiting:
            heapq.heappop(self._by_age)
        return self._by_age[0][0] if self._by_age else math.inf
