"""What is put to the rules: all that one decision, or one command, would do to the cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.world import World
from kerf.model.large import Large
from kerf.model.placeholders import Keeper, Placeholder, is_virtual
from kerf.model.plan import Admission, Cost, Deletion, Eviction, GpuUse, Launch, NodePlacement, Repartition
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot


@dataclass(frozen=True, eq=False, repr=False)
class Proposal(Large):
    """The acts, and the figures that are said of them; None or empty for what is not said.

    `placements` are of pods that wait. `coming` are those that another decision has already promised places to, and
    `bought` the nodes that it buys: they are no part of this one, and count. `refused` are
    the pods that are said to have no place. `kept` are the pods for which room is kept, by key, where they are known.
    """

    world: World
    launches: tuple[Launch, ...] = ()
    placements: tuple[NodePlacement, ...] = ()
    coming: tuple[NodePlacement, ...] = ()
    bought: tuple[Launch, ...] = ()
    relabels: tuple[Repartition, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    admissions: tuple[Admission, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    cost: Cost | None = None
    gpus: GpuUse | None = None
    refused: frozenset[str] | None = None
    kept: Mapping[str, Pod] = field(default_factory=dict)

    @property
    def snapshot(self) -> ClusterSnapshot:
        """The cluster as it was."""
        return self.world.snapshot


def of_decision(decision: Decision) -> Proposal:
    """All that a decision for waiting pods does."""
    pending = {pod.key for pod in decision.world.snapshot.pending}
    placed = sum(len(launch.pods) for launch in decision.launches)
    # Where as many pods are bought for as wait there is nothing else to look for.
    kept = {} if placed <= len(pending) and not _keeps_room(decision) else _kept(decision, pending)
    has_cost = decision.options.with_cost
    return Proposal(
        decision.world,
        decision.launches,
        decision.placements,
        relabels=decision.relabels,
        evictions=decision.evictions,
        admissions=decision.admissions,
        cost=decision.cost if has_cost else None,
        gpus=decision.gpus if has_cost else None,
        refused=frozenset(pod.key for refusal in decision.refusals for pod in refusal.pods),
        kept=kept,
    )


def _keeps_room(decision: Decision) -> bool:
    snapshot = decision.world.snapshot
    return bool(snapshot.windows or snapshot.cron_jobs or snapshot.provisioning_requests or snapshot.capacity_buffers)


def _kept(decision: Decision, pending: set[str]) -> dict[str, Pod]:
    return {pod.key: pod for node in decision.bought for pod in node.pods if pod.key not in pending}


def of_command(world: World, command: Command, coming: tuple[NodePlacement, ...] = ()) -> Proposal:
    """All that a command which takes nodes away does, beside the places that pods which wait are promised."""
    return Proposal(
        world,
        command.launches,
        coming=tuple(each for each in coming if not _is_of_buffer(each)),
        deletions=command.deletions,
        cost=command.cost,
        gpus=command.gpus,
    )


def _is_of_buffer(placement: NodePlacement) -> bool:
    """Whether it is room of a CapacityBuffer, which holds no node: it is found elsewhere where its node goes."""
    kept = Placeholder.of(placement.pod.pod) if is_virtual(placement.pod.pod) else None
    return kept is not None and kept.keeper == Keeper.BUFFER
