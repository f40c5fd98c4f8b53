"""The nearest node and the nearest types for pods that other pods or their volumes keep from a place.

A decision keeps no evidence of these: it refuses them before it compares nodes. So the nodes are filled again as the
decision fills them, and asked.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from kerf.engine.buy.firstfit import first_fit
from kerf.engine.buy.limits import Ledger
from kerf.engine.decision import Decision, Evidence, Refusal
from kerf.engine.explain.hints.related import RELATED
from kerf.engine.explain.misses import nearest_in, takers_in
from kerf.engine.place.fit import fit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room, Target
from kerf.engine.place.trial import Trial
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit, Stage
from kerf.model.pods import Pod
from kerf.model.topology import KeptOffByDaemonSet
from kerf.model.volumecauses import ClaimInUse, ClaimUnusable, VolumesApart

BESIDE_OTHERS = (*RELATED, KeptOffByDaemonSet)
OF_VOLUMES = (ClaimInUse, ClaimUnusable, VolumesApart)


def filled(decision: Decision) -> Trial:
    """The nodes that there are with the pods that the decision places there. Linear in nodes and pods."""
    snapshot, volumes = decision.world.snapshot, decision.world.volumes
    trial = Trial(snapshot, decision.world.market, volumes=volumes)
    at = {spot.cluster_node.name: index for index, spot in enumerate(trial.spots)}
    pending = {pod.key: pod for pod in snapshot.pending}
    for placement in decision.placements:
        pod = volumes.followed(pending[placement.pod.pod]) if placement.pod.pod in pending else None
        if isinstance(pod, Pod) and placement.node in at:
            result = trial.fit(at[placement.node], Shape((pod,)))
            if not isinstance(result, Misfit):
                trial.occupy(at[placement.node], result.room, pod)
    return trial


class Nearby:
    """A decision, asked for what comes nearest to taking refused pods."""

    def __init__(self, decision: Decision) -> None:
        self._decision, self._world = decision, decision.world

    @property
    def cost(self) -> int:
        """How many nodes and types one answer asks at most."""
        supply = self._world.supply
        return len(self._world.snapshot.nodes) + len(supply.available) + len(supply.unavailable)

    def misses(self, refusal: Refusal) -> tuple[Misfit, ...]:
        """One for each pool, its nearest type, then the nearest node; nothing for refusals of another kind.

        Where only other pods or volumes keep the pods off a type or a node, these are what is missing there.
        Cost: types and nodes.
        """
        pod, cause = refusal.pods[0], refusal.cause
        if isinstance(cause, BESIDE_OTHERS):
            shape, others = Shape((self._followed(pod),)), list[Shape]()
        elif isinstance(cause, OF_VOLUMES):
            claims = cause.claims if isinstance(cause, VolumesApart) else ()
            shape, *others = [self._with_claim(pod, name) for name in claims] or [self._with_claim(pod, None)]
        else:
            return ()
        found = [self._on_types(pool, shape, others, refusal) for pool in self._pools]
        on_node = self._evidence.trial.nearest(shape) or self._on_node(shape, others, refusal)
        return tuple(filter(None, (*found, on_node)))

    @property
    def _pools(self) -> list[NodePool]:
        return sorted(self._world.snapshot.node_pools, key=lambda pool: pool.order)

    @cached_property
    def _evidence(self) -> Evidence:
        before = Ledger.of(self._world)
        after = before.copy()
        for launch in self._decision.launches:
            after.charge(launch.node_pool, launch.charge)
        return Evidence(self._world, filled(self._decision), before, after, (), (), first_fit)

    def _followed(self, pod: Pod) -> Pod:
        """The pod with what its volumes ask, as far as that is known."""
        found = self._world.volumes.followed(pod)
        return found if isinstance(found, Pod) else replace(pod, spec=replace(pod.spec, claims=(), claim_templates=()))

    def _with_claim(self, pod: Pod, name: str | None) -> Shape:
        """The pod as it would be with one of its claims alone, or none."""
        claims = () if name is None else (name,)
        return Shape((self._followed(replace(pod, spec=replace(pod.spec, claims=claims, claim_templates=()))),))

    def _on_types(self, pool: NodePool, shape: Shape, others: Sequence[Shape], refusal: Refusal) -> Misfit | None:
        """What the nearest type of the pool lacks; None where none is known."""
        takers = takers_in(pool, shape, self._evidence)
        if takers:
            best = min(takers, key=lambda each: each.order)
            return _lacking(best.target, best.room, others, refusal)
        return nearest_in(pool, shape, self._evidence)

    def _on_node(self, shape: Shape, others: Sequence[Shape], refusal: Refusal) -> Misfit | None:
        """What the first node lacks that would take the pods; None where there is none."""
        trial = self._evidence.trial
        taking = (at for at in range(len(trial.spots)) if not isinstance(trial.fit(at, shape), Misfit))
        at = next(taking, None)
        return None if at is None else _lacking(trial.spots[at].target, trial.rooms[at], others, refusal)


def _lacking(target: Target, room: Room, others: Sequence[Shape], refusal: Refusal) -> Misfit:
    """What a target lacks that takes the pods with their first claim: what another claim asks, else the cause."""
    found = (fit(target, room, each) for each in others)
    own = Misfit(target.name, refusal.stage or Stage.TOPOLOGY, refusal.cause)
    return next((each for each in found if isinstance(each, Misfit)), own)
