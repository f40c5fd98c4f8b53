"""A group of pods moves whole or not at all: which nodes have to go together, and which therefore stay.

One that loses a member does nothing until the member runs again, on all its nodes. So a node goes for money or because
it has drifted only where each group that works there keeps as many members as it needs on nodes that stay, or leaves
with all of them in one step. A group that lacks members already has nothing to lose. Broken nodes do not ask here.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Blocked, GroupStays
from kerf.engine.gangs import Minimums
from kerf.model.causes import Name
from kerf.model.groups import GroupKey, GroupKind, GroupName, MinimumUnreadable, group_of, naming_groups
from kerf.model.pods import SUCCEEDED, Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_GROUPS, _MEMBERS = "groups of nodes", "members"


@dataclass(frozen=True)
class GroupHere:
    """How many members run on each node, and how many of them it takes beside those that have ended well.

    `leaving` of them are on nodes that are being deleted, and count as there until they have gone.
    """

    key: GroupKey
    members: Counter[str]
    needed: int
    leaving: int

    def is_broken_by(self, nodes: Collection[str]) -> bool:
        """Whether some members stay when these nodes go, and fewer than are of use."""
        there = self.members.total()
        gone = sum(self.members[node] for node in nodes if node in self.members)
        left = there - gone - self.leaving
        return there >= self.needed and 0 < left < self.needed


def _members(held: ClusterNode) -> Sequence[tuple[GroupKey, Pod]]:
    """The pods of groups that run on a node and stay, each with its group; kept with the node."""
    if _MEMBERS not in held.findings:
        pods = (pod for pod in naming_groups(held.pods) if not (pod.is_daemon or pod.is_opportunistic))
        found = ((group_of(pod), pod) for pod in pods if not pod.is_ended and pod.deleted_s is None)
        held.findings[_MEMBERS] = None, tuple((key, pod) for key, pod in found if key is not None)
    members: Sequence[tuple[GroupKey, Pod]] = held.findings[_MEMBERS][1]
    return members


class WholeGroups:
    """The groups of one snapshot that have members on nodes. Cost: nodes, and the pods of those that have changed."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._placed = dict[GroupKey, list[tuple[str, Pod]]]()
        self._on = dict[str, tuple[GroupKey, ...]]()
        for held in snapshot.nodes:
            members = _members(held)
            for key, pod in members:
                self._placed.setdefault(key, []).append((held.name, pod))
            if members:
                self._on[held.name] = tuple(sorted({key for key, _ in members}))
        self._found: dict[GroupKey, GroupHere | None] = {}

    @cached_property
    def _minimums(self) -> Minimums:
        return Minimums(self._snapshot)

    @cached_property
    def _ended(self) -> Counter[GroupKey | None]:
        return Counter(group_of(pod) for pod in self._snapshot.grouped if pod.phase == SUCCEEDED)

    @cached_property
    def _going(self) -> frozenset[str]:
        return frozenset(node.name for node in self._snapshot.nodes if node.is_going)

    def _group(self, key: GroupKey) -> GroupHere | None:
        """None for one that is whole on one node, or of which one member is of use alone."""
        if key not in self._found:
            members = Counter(node for node, _ in self._placed[key])
            least = self._minimums.of(key, [pod for _, pod in self._placed[key]]) if len(members) > 1 else 0
            needed = members.total() if isinstance(least, MinimumUnreadable) else least - self._ended[key]
            leaving = sum(number for node, number in members.items() if node in self._going)
            self._found[key] = GroupHere(key, members, needed, leaving) if needed > 1 else None
        return self._found[key]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "WholeGroups":
        """Those of the snapshot, found when they are first asked for."""
        if _GROUPS not in snapshot.findings:
            snapshot.findings[_GROUPS] = cls(snapshot)
        found: WholeGroups = snapshot.findings[_GROUPS]
        return found

    def on(self, node: str) -> Sequence[GroupHere]:
        """Those on the node with members elsewhere, too, by name."""
        return tuple(filter(None, map(self._group, self._on.get(node, ()))))

    def broken_by(self, nodes: Collection[str]) -> GroupStays | None:
        """The first group, by name, that loses some members and not all when these nodes go; None for none."""
        found = self._first_broken(nodes)
        if found is None:
            return None
        here = sum(found.members[node] for node in nodes if node in found.members)
        others = sorted(found.members.keys() - set(nodes))
        name = GroupName(GroupKind.GROUP, Name(found.key.name))
        return GroupStays(name, here, found.members.total(), tuple(map(Name, others)))

    def company(self, node: str) -> tuple[str, ...]:
        """The nodes that have to go with a node so that no group loses some members and not all, with itself, by name.

        Cost: the nodes of these groups, once for each group.
        """
        nodes = {node}
        while (found := self._first_broken(nodes)) is not None:
            nodes.update(found.members)
        return tuple(sorted(nodes))

    def _first_broken(self, nodes: Collection[str]) -> GroupHere | None:
        groups = {group.key: group for node in nodes if node in self._on for group in self.on(node)}
        return next((groups[key] for key in sorted(groups) if groups[key].is_broken_by(nodes)), None)

    def together(self, candidate: Candidate, known: Mapping[str, Candidate], allowance: Allowance) -> "OneStep":
        """The nodes that go with a candidate: all of its company, where all are `known`, by name, and budgets allow it.

        Cost: see `company`.
        """
        names = self.company(candidate.node.name)
        if len(names) == 1:
            return OneStep((candidate,))
        stays = self.broken_by([candidate.node.name])
        missing = next((name for name in names if name not in known), None)
        if missing is not None:
            return OneStep((), stays and stays.because_of(Name(missing)))
        found = tuple(known[name] for name in names)
        for pool, nodes in sorted(Counter(each.pool.name for each in found).items()):
            allowed = allowance.left(pool)
            if allowed is not None and allowed < nodes:
                return OneStep((), stays and stays.for_want_of(Name(pool), nodes, allowed))
        return OneStep(found)


@dataclass(frozen=True)
class OneStep:
    """Nodes that go in one step; none where they cannot, and then `stays` says why."""

    candidates: tuple[Candidate, ...]
    stays: GroupStays | None = None

    def blocked(self, candidate: Candidate) -> Sequence[Blocked]:
        """The candidate where it stays for its groups."""
        return [] if self.stays is None else [Blocked(Name(candidate.node.name), self.stays)]
