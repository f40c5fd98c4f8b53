"""Who comes first to the nodes of one purchase, and which of these stay closed although their own pods are there.

Pods that go by others (affinity, anti-affinity, spread) are planned beside pods of other nodes. Nodes come one by one.
Opened as soon as its own pods were there, the first would take pods that are planned elsewhere: of three pods that must
share a node one would go there, and the other two, for whom it has no room, could go nowhere. And a pod that counts in
the spread of others, and asks for none itself, would come before them when its own node is there first, and keep them
off for ever.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from kerf.engine.place.shapes import queue_order
from kerf.model.constraints import untolerated
from kerf.model.nodeclaim import FOLLOW, INITIALIZED, NodeClaim
from kerf.model.nodes import OPENING_TAINTS, Node
from kerf.model.plan import REPLAY
from kerf.model.pods import Pod, PodSpec
from kerf.model.promises import Promises, read
from kerf.model.quantities import CPU, MEMORY, NOTHING, PODS, Resources
from kerf.model.snapshot import Event, Synced
from kerf.model.topology import PodAffinityTerm, TopologySpreadConstraint
from kerf.state import ClusterState

_OF_ONE_POD = frozenset(
    (
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
    )
)
"""Labels that controllers write on single pods: a selector that reads one of them speaks of no workload."""
_MOST_KINDS = 200
"""Kinds of pods that wait at once of which each is asked about each other."""
_Term = TopologySpreadConstraint | PodAffinityTerm


class _Turn(NamedTuple):
    """When a pod comes, by the plan: the scheduler's round, and its place in the queue."""

    round: int
    place: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class _Kind:
    """Pods that ask the same of others, and are the same to them."""

    namespace: str
    spec: PodSpec
    labels: Mapping[str, str]


@dataclass(frozen=True)
class _Waiting:
    """The pods that wait for one claim's node, each by its kind and its turn; `by_key` has them by key."""

    created_s: float
    pods: frozenset[tuple[_Kind, _Turn]]
    kinds: frozenset[_Kind]
    by_key: Mapping[str, tuple[_Kind, _Turn]]

    def is_before(self, turn: _Turn, kinds: frozenset[_Kind]) -> bool:
        """Whether some pods of these kinds come before that turn."""
        return any(kind in kinds and own < turn for kind, own in self.pods)


class _Answer(NamedTuple):
    """What a kind asks of another: anything at all, and whether these may keep it off by coming first."""

    is_asked: bool
    is_hindered: bool


class OpenedTogether:
    """Follows which planned pods wait for the nodes of claims. All but the times is known again after a restart.

    Claims are of one purchase that were made within `one_age_s` of each other, or before. Cost: for each event of a
    claim, or at which a planned pod begins or ends to wait, the planned pods of that claim; for each question the kinds
    of pods that wait, and the claims that wait where one of these matters; the square of the kinds each time that one
    comes or goes.
    """

    def __init__(self, state: ClusterState, one_age_s: float) -> None:
        self._state, self._one_age_s = state, one_age_s
        self._waiting: dict[str, _Waiting] = {}
        self._numbers = Counter[_Kind]()
        self._relating: frozenset[_Kind] | None = None
        # When pods of a kind came to their places last.
        self._came_s: dict[_Kind, float] = {}
        # The claims to look at again when another, by whose name they are found, waits for less.
        self._held: dict[str, set[str]] = {}
        self._kept_back: dict[str, set[str]] = {}
        self._kinds: dict[tuple[str, int, tuple[tuple[str, str], ...]], _Kind] = {}
        self._answers: dict[tuple[int, int], _Answer] = {}

    def held_since_s(self, claim: NodeClaim, node: Node) -> float | None:
        """Since when no pod has come of those for which the claim's node is to stay reserved when its own are there.

        They are those that depend on these; and those that could come here and leave their places, while others wait
        that go by them, or they by those. None where there is no such pod: others never keep the node.
        """
        there = map(self._state.pod, read(claim.annotations).pods)
        own = {self._kind(pod) for pod in there if pod is not None}
        room = _Room(node, self._state.pods_on(node.name))
        wanted = frozenset(k for k in self._numbers if self._depends(k, own) or self._is_led_astray(k, room))
        youngest = self._youngest(claim, lambda other: not wanted.isdisjoint(other.kinds))
        if not youngest:
            return None
        self._held.setdefault(youngest, set()).add(claim.name)
        return max(self._came_s.get(kind, 0.0) for kind in wanted)

    def is_kept_back(self, claim: NodeClaim, pod: Pod) -> bool:
        """Whether the pod is to wait for others of the purchase, which come before it in the plan.

        Either it would keep them off: it counts in what they ask and asks for nothing of the kind itself. Or it comes
        in a later round, after pods that it goes by. Bound before these, it would be the first of its own kind, which
        may run anywhere, in the place of the one that is planned to be the first and then can run nowhere.
        """
        if self._is_mixed:
            return False
        kind, turn = self._kind(pod), _turn(pod, read(claim.annotations))
        elders = frozenset(
            each
            for each in self._numbers
            if self._answer(each, kind).is_hindered or (turn.round and self._answer(kind, each).is_asked)
        )
        youngest = elders and self._youngest(claim, lambda other: other.is_before(turn, elders))
        if youngest:
            self._kept_back.setdefault(youngest, set()).add(claim.name)
        return bool(youngest)

    def keys(self, event: Event, now_s: float) -> Iterable[str]:
        """The claims whose nodes may no longer have to stay reserved, or whose pods may come now."""
        found: set[str] = set()
        for name in self._concerned(event):
            before, after = self._waiting.get(name), self._look(name)
            if before is None or before == after:
                continue
            self._came_s.update((kind, now_s) for kind, _ in (before.pods - (after.pods if after else frozenset())))
            found |= self._kept_back.pop(name, set())
            if after is None or after.kinds != before.kinds:
                found |= self._held.pop(name, set())
        if not self._waiting:
            for known in (self._kinds, self._answers, self._came_s):
                known.clear()
        return sorted(found)

    def _youngest(self, claim: NodeClaim, waits: Callable[[_Waiting], bool]) -> str:
        """The claim of the purchase that waits so and was made last, so others are looked at again as rarely as can be;
        empty where none does."""
        until_s = claim.created_s + self._one_age_s
        found = ((e.created_s, name) for name, e in self._waiting.items() if e.created_s <= until_s and waits(e))
        return max(found, default=(0.0, ""))[1]

    def _concerned(self, event: Event) -> Iterable[str]:
        if isinstance(event, Synced):
            return [claim.name for claim in self._state.claims()]
        if isinstance(event.value, NodeClaim):
            return (event.value.name,)
        if not isinstance(event.value, Pod):
            return ()
        return [
            claim.name for claim in self._state.claims_for(event.value.key) if self._is_news(claim, event.value.key)
        ]

    def _is_news(self, claim: NodeClaim, key: str) -> bool:
        """Whether the pod waits for the claim's node otherwise than it did. While it waits it is written to often."""
        before = self._waiting.get(claim.name)
        if not _is_awaited(claim):
            return before is not None
        held = before.by_key.get(key) if before is not None else None
        return held != self._as_waiting(key, read(claim.annotations))

    def _look(self, name: str) -> _Waiting | None:
        claim = self._state.claim(name)
        before, after = self._waiting.pop(name, None), self._waiting_for(claim) if claim is not None else None
        known = len(self._numbers)
        self._numbers.subtract(before.kinds if before is not None else ())
        if after is not None:
            self._waiting[name] = after
            self._numbers.update(after.kinds)
        gone = [kind for kind in (before.kinds if before is not None else ()) if not self._numbers[kind]]
        for kind in gone:
            del self._numbers[kind]
        if gone or len(self._numbers) != known:
            self._relating = None
        return after

    def _waiting_for(self, claim: NodeClaim) -> _Waiting | None:
        if not _is_awaited(claim):
            return None
        promises = read(claim.annotations)
        found = ((key, self._as_waiting(key, promises)) for key in promises.pods)
        by_key = {key: each for key, each in found if each is not None}
        pods = frozenset(by_key.values())
        return _Waiting(claim.created_s, pods, frozenset(kind for kind, _ in pods), by_key) if pods else None

    def _as_waiting(self, key: str, promises: Promises) -> tuple[_Kind, _Turn] | None:
        """None of a pod that does not wait, or is not there."""
        pod = self._state.pod(key)
        return (self._kind(pod), _turn(pod, promises)) if pod is not None and pod.is_pending else None

    def _kind(self, pod: Pod) -> _Kind:
        labels = tuple(sorted((key, text) for key, text in pod.labels.items() if key not in _OF_ONE_POD))
        key = pod.namespace, id(pod.spec), labels
        if key not in self._kinds:
            # The spec is kept with it: an identity is free once its object is gone.
            self._kinds[key] = _Kind(pod.namespace, pod.spec, dict(labels))
        return self._kinds[key]

    @property
    def _is_mixed(self) -> bool:
        """Whether there are too many kinds to tell which go by which: all that go by others at all count then."""
        return len(self._numbers) > _MOST_KINDS

    def _depends(self, kind: _Kind, own: Iterable[_Kind]) -> bool:
        """Whether where pods of the kind may run depends on some of these, or the other way round."""
        if not kind.spec.is_related or self._is_mixed:
            return kind.spec.is_related
        return any(self._answer(kind, each).is_asked or self._answer(each, kind).is_asked for each in own)

    def _is_led_astray(self, kind: _Kind, room: "_Room") -> bool:
        """Whether pods of the kind could come there, and would change what pods that wait go by."""
        if self._relating is None and not self._is_mixed:
            asking = [each for each in self._numbers if each.spec.is_related]
            pairs = ((each, other) for each in asking for other in self._numbers)
            met = [pair for pair in pairs if self._answer(*pair).is_asked]
            self._relating = frozenset(each for pair in met for each in pair)
        return kind in (self._relating or ()) and room.takes(kind.spec)

    def _answer(self, kind: _Kind, other: _Kind) -> _Answer:
        key = id(kind), id(other)
        if key not in self._answers:
            self._answers[key] = _answer(kind, other)
        return self._answers[key]


class _Room:
    """A node once it is open to all, with the pods on it; asked for cpu, memory and number, not for cards."""

    def __init__(self, node: Node, pods: Iterable[Pod]) -> None:
        self._node, self._pods = node, tuple(pods)
        self._taints = [taint for taint in node.taints if taint.key not in OPENING_TAINTS]

    @cached_property
    def _used(self) -> Resources:
        return sum((pod.spec.requests for pod in self._pods), NOTHING)

    def takes(self, spec: PodSpec) -> bool:
        """Whether the scheduler could bind such a pod there."""
        labels, free = self._node.labels, self._node.allocatable
        if untolerated(self._taints, spec.tolerations) is not None:
            return False
        if all(asked.unsatisfied_by(labels) is not None for asked in spec.own_alternatives):
            return False
        asked = self._used + spec.requests
        return all(asked.get(name, 0) <= free.get(name, 0) for name in (CPU, MEMORY, PODS))


def _answer(kind: _Kind, other: _Kind) -> _Answer:
    asked = kind.spec
    terms: tuple[_Term, ...] = (
        *asked.required_spread,
        *asked.pod_affinity.required,
        *asked.pod_anti_affinity.required,
    )
    found = [term for term in terms if _means(term, kind, other)]
    return _Answer(bool(found), any(_is_free_of(term, kind, other) for term in found))


def _is_awaited(claim: NodeClaim) -> bool:
    """Whether pods may wait for the claim's node in an order."""
    return not (claim.is_deleting or claim.is_true(INITIALIZED) or claim.annotations.get(FOLLOW, REPLAY) == REPLAY)


def _turn(pod: Pod, promises: Promises) -> _Turn:
    return _Turn(promises.rounds.get(pod.key, 0), queue_order(pod))


def _means(term: _Term, kind: _Kind, other: _Kind) -> bool:
    """Whether the term of a kind speaks of other pods; a selector of namespaces is taken for one of all."""
    if term.selected(kind.labels).unsatisfied_by(other.labels) is not None:
        return False
    if isinstance(term, TopologySpreadConstraint):
        return kind.namespace == other.namespace
    return term.namespace_selector is not None or other.namespace in (term.namespaces or (kind.namespace,))


def _is_free_of(term: _Term, kind: _Kind, other: _Kind) -> bool:
    """Whether the term does not bind the other pods as it does this kind, so they can come when this kind no more can.

    Away from others pods are in the plan, in any order.
    """
    mine, its = kind.spec, other.spec
    if term in mine.pod_anti_affinity.required:
        return False
    if term not in (*its.required_spread, *its.pod_affinity.required):
        return True
    return mine.own_alternatives != its.own_alternatives or mine.tolerations != its.tolerations
