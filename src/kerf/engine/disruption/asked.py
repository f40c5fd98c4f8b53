"""What looks at a fleet have found before; of a large fleet few nodes are asked again each time.

A node is asked whether its pods have another place. After a change of one pod or node nearly every answer is what it
was, and asking for one takes a millisecond. So those nodes are asked that are new or have changed themselves, and some
of the others in turn, until all have been asked since the last change. Karpenter looks at no more than a hundred nodes
at a time either.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from kerf.engine.disruption.candidates import Candidate
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_AT_ONCE = 20
"""So many of those that were asked before are asked again in one look."""
_STANDS_S = 300.0
"""So long an answer stands at the most while nothing changes."""
_MANY = 100
"""A fleet of no more nodes is asked as a whole each time."""
_LARGE, _PART, _REPACKS_S = 500, 20, 1_800.0
"""Of a fleet of more nodes one in so many must have changed before cheaper ones are looked for again, within a time."""


class Asked:
    """What looks at one cluster have found so far; the controller that looks again and again keeps it.

    Of a fleet that is not large every look asks all nodes, as the first one does.
    """

    def __init__(self) -> None:
        self._refused: dict[str, tuple[ClusterNode, int]] = {}
        self._look, self._changed, self._version, self._last = 0, 0, -1, ""
        self._changed_s, self._due = float("-inf"), False

    @property
    def is_through(self) -> bool:
        """Whether no candidate of the last look is still to be asked since the cluster changed."""
        return not self._due

    def due(self, candidates: Sequence[Candidate], version: int, now_s: float) -> Sequence[Candidate]:
        """The candidates to ask now, in their order; `version` is that of the state. Begins a look. Cost: linear."""
        self._look += 1
        # Time alone changes some answers: room that is kept for pods to be is given back.
        if version != self._version or now_s >= self._changed_s + _STANDS_S:
            self._version, self._changed, self._changed_s = version, self._look, now_s
        if len(candidates) <= _MANY:
            self._due = False
            return candidates
        held = ((each.node.name, each, self._refused.get(each.node.name)) for each in candidates)
        known = {name: was for name, each, was in held if was is not None and was[0] is each.cluster_node}
        waiting = sorted(name for name, (_, look) in known.items() if look < self._changed)
        first = bisect_right(waiting, self._last)
        again = [*waiting[first:], *waiting[:first]][:_AT_ONCE]
        self._due = len(waiting) > len(again)
        if self._due:
            self._last = again[-1]
        self._refused = known
        rest = known.keys() - set(again)
        return [each for each in candidates if each.node.name not in rest]

    def none_left(self) -> None:
        """A look found no candidate, so none is still to be asked."""
        self._due = False

    def refused(self, candidate: Candidate) -> None:
        """Its pods find no other place now."""
        self._refused[candidate.node.name] = candidate.cluster_node, self._look


class Repacks:
    """When cheaper nodes are looked for in the whole fleet again, after a look that found none.

    Such a look takes seconds where there are thousands of nodes, and what it finds follows from the fleet as a whole.
    So of a large fleet some part must have changed, or some time must have passed. `seldom_s` lie between two looks at
    any fleet.
    """

    def __init__(self, seldom_s: float) -> None:
        self._seldom_s = seldom_s
        self._nodes: Mapping[str, ClusterNode] = {}
        self._looked_s = self.next_s = float("-inf")

    def are_due(self, snapshot: ClusterSnapshot) -> bool:
        """Whether to look now. Cost: a look at each node of a large fleet."""
        now_s, nodes = snapshot.taken_at_s, snapshot.nodes
        if now_s < self.next_s:
            return False
        if len(nodes) <= _LARGE or now_s >= self._looked_s + _REPACKS_S:
            return True
        changed = sum(1 for each in nodes if self._nodes.get(each.name) is not each)
        return changed * _PART >= len(nodes)

    def found_none(self, snapshot: ClusterSnapshot) -> None:
        """Nothing was found in the snapshot."""
        self._looked_s = snapshot.taken_at_s
        self.next_s = snapshot.taken_at_s + self._seldom_s
        self._nodes = {each.name: each for each in snapshot.nodes} if len(snapshot.nodes) > _LARGE else {}
