"""The cluster as the present plan leaves it, beside which it is decided what nodes go: both are carried out.

The plan for the pods that wait comes first, as in Karpenter, which nominates nodes for them. What it gives away is
given away: a pod that waits and has a place on a node takes its room and its cards there, and a node that is bought
counts against limits. Decided without it, a node would go whose pods find room that is promised to others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from kerf.engine.buy.floors import lacking
from kerf.engine.buy.limits import Ledger
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.world import World
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import NodeClaim
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Launch, PlacedPod
from kerf.model.pods import Pod
from kerf.model.promises import Promises, written
from kerf.model.quantities import COST_PER_HOUR, NODES, RESERVED_PREFIX, Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_SETTLED = "settled"


class Settled:
    """The places of the pods that wait, by the present plan of a world; decided once, when it is first asked for."""

    def __init__(self, world: World, present: Callable[[], Decision] | None = None) -> None:
        self._world, self._present = world, present

    @classmethod
    def of(cls, world: World) -> "Settled":
        """That of the world's snapshot: the one that was given, or one that decides for itself."""
        findings = world.snapshot.findings
        if _SETTLED not in findings:
            findings[_SETTLED] = cls(world)
        found: Settled = findings[_SETTLED]
        return found

    def given_to(self, world: World) -> None:
        """Make it that of the world's snapshot."""
        world.snapshot.findings[_SETTLED] = self

    @cached_property
    def _decision(self) -> Decision | None:
        """The present plan; None where no pod waits and no pool lacks a node, so there is none."""
        if self._present is not None:
            return self._present()
        world = self._world.with_leaving()
        snapshot = world.snapshot
        claims = (node.claim for node in snapshot.nodes if node.claim is not None)
        if not snapshot.pending and not lacking(snapshot.node_pools, claims):
            return None
        return decide(world, replace(world.options, with_bound=False, with_cost=False))

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """By pod that waits the node on which the plan puts it; without those that hold idle room alone, and room that
        is kept for pods to be."""
        if self._decision is None:
            return {}
        placed = ((each.pod.pod, each.node) for each in self._decision.placements)
        return {pod: node for pod, node in placed if pod not in self.idle and not is_virtual(pod)}

    @cached_property
    def idle(self) -> frozenset[str]:
        """Opportunistic pods that wait: the room that they get is as good as free."""
        pending = self._decision.world.snapshot.pending if self._decision is not None else ()
        return frozenset(pod.key for pod in pending if pod.is_opportunistic)

    @cached_property
    def bought_for(self) -> frozenset[str]:
        """The pods for which it buys nodes."""
        launches = self._decision.launches if self._decision is not None else ()
        return frozenset(each.pod for launch in launches for each in launch.pods)

    @cached_property
    def refused(self) -> frozenset[str]:
        """The pods that get nothing now, whatever room there is."""
        refusals = self._decision.refusals if self._decision is not None else ()
        return frozenset(pod.key for refusal in refusals for pod in refusal.pods)

    @cached_property
    def changing(self) -> frozenset[str]:
        """Nodes from which pods must go before others come, or whose cards are shared another way first."""
        if self._decision is None:
            return frozenset()
        evictions = (each.node for each in self._decision.evictions)
        return frozenset((*evictions, *(each.node for each in self._decision.relabels)))

    def with_places(self, snapshot: ClusterSnapshot, takes: Callable[[str], bool]) -> ClusterSnapshot:
        """The snapshot in which pods that wait are on their nodes, with their cards, where `takes` says so of a node.

        Cost: linear in nodes and in the pods that wait.
        """
        coming = dict[str, list[PlacedPod]]()
        for placement in self._decision.placements if self._decision is not None else ():
            if placement.pod.pod in self.homes and takes(placement.node):
                coming.setdefault(placement.node, []).append(placement.pod)
        pods = {pod.key: pod for pod in snapshot.pending}
        coming = {node: [each for each in placed if each.pod in pods] for node, placed in coming.items()}
        if not any(coming.values()):
            return snapshot
        come = {each.pod for placed in coming.values() for each in placed}
        nodes = tuple(
            _holding(node, coming[node.name], pods, has_cards=node.name not in self.changing)
            if coming.get(node.name)
            else node
            for node in snapshot.nodes
        )
        return replace(snapshot, nodes=nodes, pending=tuple(pod for pod in snapshot.pending if pod.key not in come))

    @cached_property
    def coming(self) -> tuple[ClusterNode, ...]:
        """The nodes that it buys, as claims with their pods: those that limits count or whose pods others go by."""
        if self._decision is None:
            return ()
        snapshot = self._decision.world.snapshot
        pods = {pod.key: pod for pod in snapshot.pending}
        return tuple(
            _bought(launch, snapshot, [pods[each.pod] for each in launch.pods if each.pod in pods])
            for launch in self._decision.launches
            if self._counts(launch, pods)
        )

    @property
    def ledger(self) -> Ledger:
        """What limits and reservations have left beside it; a copy to spend."""
        snapshot = self._world.snapshot
        if not self.coming:
            return Ledger.of(self._world)
        return Ledger.of(self._world.of(replace(snapshot, nodes=(*snapshot.nodes, *self.coming))))

    def _counts(self, launch: Launch, pods: Mapping[str, Pod]) -> bool:
        pool = self._world.snapshot.pool(launch.node_pool)
        if pool is None:
            return False
        if pool.limits is not None or launch.offering.reservation:
            return True
        return any(each.pod in pods and pods[each.pod].spec.has_relations for each in launch.pods)


def _holding(
    node: ClusterNode, placed: Sequence[PlacedPod], pods: Mapping[str, Pod], *, has_cards: bool
) -> ClusterNode:
    here = tuple(replace(pods[each.pod], node_name=node.name) for each in placed)
    devices = {device.index: device for device in node.devices}
    for part in (part for each in placed for part in each.slices) if has_cards else ():
        held = devices.get(part.device)
        if held is not None:
            devices[part.device] = held.holding(part)
    cards: tuple[DeviceState, ...] = tuple(devices[index] for index in sorted(devices))
    return replace(node, pods=(*node.pods, *here), devices=cards)


def _bought(launch: Launch, snapshot: ClusterSnapshot, pods: Sequence[Pod]) -> ClusterNode:
    pool = snapshot.pool(launch.node_pool)
    assert pool is not None
    # No Node has such a name, nor has any launch of what is decided beside it.
    name, planned = f"planned/{launch.name}", launch.offering
    sold = {INSTANCE_TYPE: planned.instance_type, CAPACITY_TYPE: planned.capacity_type, ZONE: planned.zone}
    claim = NodeClaim(
        name,
        pool.name,
        pool.node_class,
        launch.requirements,
        launch.requests,
        taints=(*pool.taints, *launch.taints),
        labels={**pool.node_labels, **launch.labels, **sold},
        annotations=written(Promises(offering=planned)),
        created_s=snapshot.taken_at_s,
        # As the cloud would state it of the largest type that it may give: nodes, prices and reservations count apart.
        capacity=Resources({name: amount for name, amount in launch.charge.items() if not _is_counted_apart(name)}),
    )
    return ClusterNode(None, claim, tuple(replace(pod, node_name=name) for pod in pods))


def _is_counted_apart(resource: str) -> bool:
    return resource in (NODES, COST_PER_HOUR) or resource.startswith(RESERVED_PREFIX)
