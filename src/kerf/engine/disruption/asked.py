"""What looks at a fleet have found before; of a large fleet few nodes are asked again each time.

A node is asked whether its pods have another place. After a change of one pod or node nearly every answer is what it
was, and asking for one takes a millisecond. So those nodes are asked that are new or have changed themselves, and some
of the others in turn, until all have been asked since the last change. Karpenter looks at no more than a hundred nodes
at a time either.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate, may_save
from kerf.model.instancetypes import NodeOverlay
from kerf.model.market import Market
from kerf.model.nodepool import UNDERUTILIZED, NodePool, is_read_alike
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_AT_ONCE = 20
"""So many of those that were asked before are asked again in one look."""
_STANDS_S = 300.0
"""So long an answer stands at the most while nothing changes."""
_MANY = 100
"""A fleet of no more nodes is asked as a whole each time."""
_SHORTEST, _SOONER = 0.2, 4
"""The part of the time between two searches that always passes, and how much sooner changes make the next due: a fifth
of the nodes is enough for that part."""
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
        self.staying: Sequence[Candidate] = ()
        """The candidates of the last look that no method takes, where it came to no command; () where it did."""

    @property
    def is_through(self) -> bool:
        """Whether no candidate of the last look is still to be asked since the cluster changed."""
        return not self._due

    def due(self, candidates: Sequence[Candidate], version: int, now_s: float) -> Sequence[Candidate]:
        """The candidates to ask now, in their order; `version` is that of the state. Begins a look. Cost: linear."""
        self._look += 1
        # Time alone changes some answers: room that is kept for pods to be is given back.
        if version != self._version or not 0 <= now_s - self._changed_s < _STANDS_S:
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


@dataclass(frozen=True)
class _Search:
    """A search that found nothing: when, among which nodes with which pods, by node name, and what was for sale."""

    at_s: float
    pods: Mapping[str, tuple[Pod, ...]]
    pools: frozenset[str]
    market: Market
    node_pools: tuple[NodePool, ...]
    overlays: tuple[NodeOverlay, ...]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, market: Market, candidates: Iterable[Candidate]) -> "_Search | None":
        """None where no budget lets any of the candidates go: then there is nothing to search."""
        allowance = Allowance(snapshot, UNDERUTILIZED, are_replaced=True)
        pods, pools = dict[str, tuple[Pod, ...]](), set[str]()
        for each in candidates:
            if may_save(each, allowance):
                pods[each.node.name] = each.pods
                pools.add(each.pool.name)
        if not pods:
            return None
        return cls(snapshot.taken_at_s, pods, frozenset(pools), market, snapshot.node_pools, snapshot.overlays)

    def has_other_rules(self, before: "_Search") -> bool:
        """Whether prices, stock, pools or overlays differ, or nodes of more pools may go than before."""
        if self.market is not before.market or self.overlays != before.overlays or not self.pools <= before.pools:
            return True
        if len(self.node_pools) != len(before.node_pools):
            return True
        return not all(map(is_read_alike, self.node_pools, before.node_pools))

    def changed(self, before: "_Search") -> int:
        """How many of its nodes have other pods than before, or were not searched."""
        known = before.pods
        others = (each for each in self.pods.items() if each[1] is not known.get(each[0]))
        return sum(not _are_same(pods, known.get(name)) for name, pods in others)


def _are_same(pods: Sequence[Pod], before: Sequence[Pod] | None) -> bool:
    if before is None or len(pods) != len(before):
        return False
    return all(each.uid == was.uid and each.asks_as(was) for each, was in zip(pods, before, strict=True))


class Repacks:
    """When cheaper nodes are looked for in the whole fleet again, after a search that found none.

    Such a search takes seconds where there are thousands of nodes, and where little has changed it finds nothing again.
    So `seldom_s` lie between two. The more nodes have other pods, the sooner the next is due; a fifth of that time lies
    between any two, and no more where prices or pools have changed, or budgets have opened. Of a large fleet some part
    must have changed, or half an hour must have passed. A look while budgets let no node go is no search, and only that
    fifth of the time follows it.
    """

    def __init__(self, seldom_s: float) -> None:
        self._seldom_s = seldom_s
        self._last: _Search | None = None
        self._looked_s = self.next_s = float("-inf")

    def are_due(self, snapshot: ClusterSnapshot, market: Market, candidates: Sequence[Candidate]) -> bool:
        """Whether to search now; else `next_s` is when, if nothing changes. Cost: linear in nodes, once the shortest
        time has passed."""
        last, now_s = self._last, snapshot.taken_at_s
        if now_s < self._looked_s:
            # The clock was set back.
            self._last = last = None
            self._looked_s = float("-inf")
        self.next_s = self._looked_s + self._seldom_s * _SHORTEST
        if last is None or now_s < self.next_s:
            return now_s >= self.next_s
        present = _Search.of(snapshot, market, candidates)
        if present is not None and not present.has_other_rules(last):
            self.next_s = last.at_s + self._wait_s(present.changed(last), len(snapshot.nodes))
        return now_s >= self.next_s

    def found_none(self, snapshot: ClusterSnapshot, market: Market, candidates: Sequence[Candidate]) -> None:
        """Nothing was found in the snapshot."""
        present = _Search.of(snapshot, market, candidates)
        if present is not None:
            self._last, self._looked_s, self.next_s = present, present.at_s, present.at_s + self._seldom_s
        elif any(each.is_quiet and each.pods for each in candidates):
            self._looked_s = snapshot.taken_at_s

    def _wait_s(self, changed: int, nodes: int) -> float:
        wait_s = self._seldom_s * max(_SHORTEST, 1 - _SOONER * changed / max(1, nodes))
        return wait_s if nodes <= _LARGE or changed * _PART >= nodes else max(wait_s, _REPACKS_S)
