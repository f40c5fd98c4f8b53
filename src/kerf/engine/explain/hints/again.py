"""A decision made again with one change, for pods that other pods keep from their place.

Where those are, no look at one type or one node shows whether a change helps: only all pods together do.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from kerf.engine.buy.limits import usage
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.explain.causes import counted_launches
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.world import World
from kerf.model.causes import Paced
from kerf.model.nodepool import NodePool
from kerf.model.owners import top_owner
from kerf.model.placeholders import is_virtual
from kerf.model.pods import Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot

Respec = Callable[[PodSpec], PodSpec]
"""What a change of their workload makes of the spec of its pods."""

_MOST_KNOWN = 16
_MOST_DECIDED = 2_000
"""Pending pods with which a decision is made again; where more wait, hints for related pods are words alone."""


@dataclass(frozen=True, eq=False)
class Again:
    """A decision with a change: how many of the pods in question it serves, and what is said of a slow pool.

    `lost` are other pods that had a place and have none with the change.
    """

    made: Decision
    served: int
    pace: str
    lost: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key, the best last: pods that get a place, pods that lose theirs."""
        return self.served, -len(self.lost)

    def serves(self, pods: Iterable[Pod]) -> bool:
        """Whether all of the pods have a place, though a pool may be slow to launch some. Linear in refused pods."""
        return self._left.isdisjoint(pod.key for pod in pods)

    @cached_property
    def _left(self) -> frozenset[str]:
        return self.made.left

    def used(self, pool: str) -> Resources:
        """What the pool counts against its limits with all that is bought."""
        found = usage(self.made.world).get(pool, Resources())
        for node in self.made.bought:
            if node.load.offered.pool.name == pool:
                found = found + node.load.charge
        return found


@dataclass(frozen=True, eq=False)
class Question:
    """Refused pods of one workload, and the decision that refused them; each answer is one of `tries`.

    `first` is the decision before any change, where `decision` has one already. `known` are the last decisions with
    another pool, and `few` are pools with those types alone that pods may get; questions on one decision share both.
    """

    pods: tuple[Pod, ...]
    decision: Decision
    tries: Tries
    first: Decision | None = None
    known: list[tuple[NodePool, Decision]] = field(default_factory=list)
    few: list[tuple[NodePool, NodePool]] = field(default_factory=list)

    @property
    def snapshot(self) -> ClusterSnapshot:
        """The cluster that was decided for."""
        return self.decision.world.snapshot

    @property
    def spec(self) -> PodSpec:
        """What the pods ask, as their manifest says it."""
        return self._waiting[0].spec if self._waiting else self.pods[0].spec

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(pod.key for pod in self.pods)

    @cached_property
    def _waiting(self) -> tuple[Pod, ...]:
        """All pending pods that a change of the workload changes: placed ones, too."""
        first = self.pods[0]
        if first.owner is None:
            return tuple(pod for pod in self.snapshot.pending if pod.key in self._keys)
        jobs = self.snapshot.cron_job_keys
        mine = first.namespace, top_owner(first, jobs)
        return tuple(
            pod
            for pod in self.snapshot.pending
            if pod.owner is not None and (pod.namespace, top_owner(pod, jobs)) == mine
        )

    @cached_property
    def refused(self) -> frozenset[str]:
        """The keys of all pods that the decision gives no place. Linear in them."""
        return self.decision.left

    @property
    def has_placed(self) -> bool:
        """Whether pods of the workload get a place on nodes that are there. Linear in placements."""
        mine = {pod.key for pod in self._waiting}
        return any(placement.pod.pod in mine for placement in self.decision.placements)

    @property
    def can_be_tried(self) -> bool:
        """Whether decisions may still be made; where not, nothing is known of what would help."""
        return len(self.snapshot.pending) <= _MOST_DECIDED and not self.tries.are_over

    def may_look(self) -> bool:
        """Whether all pods that run or wait may be looked at for these pods, as `tries` allow."""
        return self.tries.take_look(sum(len(node.pods) for node in self.snapshot.nodes) + len(self.snapshot.pending))

    def with_pool(self, pool: NodePool) -> Again | None:
        """The decision with the pool in the place of the one of its name; None where none may be made.

        It is the same whichever pods ask, so it is made once for equal pools.
        """
        made = next((made for known, made in self.known if known == pool), None)
        if made is None:
            found = self._decided(self.decision.world.with_pools((pool,)))
            if found is not None:
                self.known.append((pool, found.made))
                del self.known[:-_MOST_KNOWN]
            return found
        return self._again(made)

    def with_spec(self, respec: Respec) -> Again | None:
        """The decision with other specs for the workload's pods; None where none may be made."""
        made: dict[int, PodSpec] = {}
        for pod in self._waiting:
            if id(pod.spec) not in made:
                made[id(pod.spec)] = respec(pod.spec)
        changed = {pod.key: replace(pod, spec=made[id(pod.spec)]) for pod in self._waiting}
        pending = tuple(changed.get(pod.key, pod) for pod in self.snapshot.pending)
        return self._decided(self.decision.world.with_pending(pending))

    def with_both(self, pool: NodePool | None, spec: PodSpec | None) -> Again | None:
        """The decision with what a hint changes of a pool and of pods; claims stay each pod's own."""
        if pool is not None and spec is None:
            return self.with_pool(pool)
        question = self if pool is None else replace(self, decision=self._with(pool), known=[], few=[])
        if spec is None:
            return question._decided(question.decision.world)
        return question.with_spec(partial(_as_manifest, spec))

    def _with(self, pool: NodePool) -> Decision:
        return replace(self.decision, world=self.decision.world.with_pools((pool,)))

    def _decided(self, world: World) -> Again | None:
        pending = len(world.snapshot.pending)
        expected = max(pending, self.decision.work)
        if pending > _MOST_DECIDED or not self.tries.take_decision(expected):
            return None
        made = decide(world, replace(self.decision.options, with_bound=False))
        self.tries.cost(made.work, expected)
        return self._again(made)

    def _again(self, made: Decision) -> Again:
        lost = losers(made, self.decision if self.first is None else self.first, self._keys)
        return Again(made, len(self._keys - made.left), _pace(made, self._keys), lost)


def _as_manifest(spec: PodSpec, held: PodSpec) -> PodSpec:
    """The spec without what a decision looks up itself: what volumes ask, and the overhead of a RuntimeClass."""
    return replace(
        spec,
        claims=held.claims,
        claim_templates=held.claim_templates,
        mounts=held.mounts,
        overhead=held.overhead,
    )


def losers(made: Decision, before: Decision, asked: frozenset[str]) -> tuple[str, ...]:
    """The pods, but those that were asked for, that have a place in the decision before and none in this one."""
    return tuple(sorted(key for key in made.left - before.left - asked if not is_virtual(key)))


def _pace(made: Decision, keys: Iterable[str]) -> str:
    """What is said of pools that make too few launches a minute for all of the pods to come at once."""
    mine = frozenset(keys)
    found = {
        cause.pool: cause.per_minute
        for refusal in made.refusals
        if isinstance(cause := refusal.innermost.cause, Paced) and any(pod.key in mine for pod in refusal.pods)
    }
    return "".join(f"; NodePool {name} makes {counted_launches(found[name])} a minute" for name in sorted(found))


def most(pods: Sequence[Pod]) -> str:
    """`1 pod`, `3 pods`."""
    return "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
