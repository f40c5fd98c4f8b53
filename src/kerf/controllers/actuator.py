"""Plan -> calls. The only place that acts on a Plan.

Before each act it looks whether the state still shows what the plan was made from; what has changed is left to the
next pass. Claims are taken into the state as soon as they are created, so that no second pass buys them again before
the watch tells of them.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from kerf.model import events
from kerf.model.nodeclaim import (
    DISRUPTED_TAINT,
    DISRUPTION_REASON,
    FOLLOW,
    PLANNED_OFFERING,
    PLANNED_PODS,
    PREDICTED_DEVICES,
    TRUE,
    Condition,
    NodeClaim,
)
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.plan import Deletion, Launch, Plan
from kerf.model.quantities import NODES
from kerf.model.snapshot import ClusterSnapshot, Upserted
from kerf.ports import AlreadyExists, Clock, KubeWriter, NotFound, Recorder
from kerf.state import ClusterState, devices_annotation


class Actuator:
    """Carries out launches and deletions."""

    def __init__(self, state: ClusterState, writer: KubeWriter, recorder: Recorder, clock: Clock) -> None:
        self._state, self._writer, self._recorder, self._clock = state, writer, recorder, clock

    async def launch(self, plan: Plan, snapshot: ClusterSnapshot) -> None:
        """Create a claim for each launch whose pods still wait, and tell pods and operators."""
        counts = _nodes_by_pool(snapshot)
        totals = {name: sum(1 for each in plan.launches if each.node_pool == name) for name in counts}
        for launch in plan.launches:
            pool = snapshot.pool(launch.node_pool)
            waiting = [p.pod for p in launch.pods if self._is_waiting(p.pod)]
            if pool is None or not waiting:
                continue
            claim = await self._create(claim_of(launch, pool, snapshot.taken_at_s))
            before = counts.get(pool.name, 0)
            after = before + totals.get(pool.name, 0)
            most = pool.limits.get(NODES) if pool.limits is not None else None
            for pod in waiting:
                self._recorder.record(events.triggered_scale_up(pod, claim.name, pool.name, before, after, most))
                self._recorder.record(events.nominated(pod, f"nodeclaim/{claim.name}"))

    def _is_waiting(self, key: str) -> bool:
        pod = self._state.pod(key)
        return pod is not None and pod.is_pending

    async def _create(self, claim: NodeClaim) -> NodeClaim:
        try:
            created = await self._writer.create_node_claim(claim)
        except AlreadyExists:
            return claim
        self._state.apply(Upserted(created))
        return created

    async def delete(self, deletion: Deletion) -> None:
        """Keep new pods off the node, say why it goes, and delete its claim; the lifecycle drains it."""
        claim = self._state.claim(deletion.claim)
        if claim is None or claim.is_deleting:
            return
        node = self._state.node(deletion.node)
        if node is not None and DISRUPTED_TAINT not in node.taints:
            await self._writer.update_node(replace(node, taints=(*node.taints, DISRUPTED_TAINT)))
        reason = Condition(DISRUPTION_REASON, TRUE, deletion.reason, deletion.why, self._clock.now_s())
        claim = await self._writer.update_node_claim_status(claim.with_condition(reason))
        self._recorder.record(
            events.disruption_terminating("NodeClaim", claim.name, f"{deletion.reason}: {deletion.why}")
        )
        try:
            await self._writer.delete_node_claim(claim.name)
        except NotFound:
            return
        self._state.apply(Upserted(replace(claim, deleted_s=self._clock.now_s())))

    async def release(self, node: Node) -> None:
        """Open a node again that an earlier life tainted and did not come to delete."""
        taints = tuple(taint for taint in node.taints if taint.key != DISRUPTED_TAINT.key)
        self._state.apply(Upserted(await self._writer.update_node(replace(node, taints=taints))))


def _nodes_by_pool(snapshot: ClusterSnapshot) -> dict[str, int]:
    counts = {pool.name: 0 for pool in snapshot.node_pools}
    for node in snapshot.nodes:
        if node.claim is not None and not node.is_deleting:
            counts[node.claim.node_pool] = counts.get(node.claim.node_pool, 0) + 1
    return counts


def claim_of(launch: Launch, pool: NodePool, now_s: float) -> NodeClaim:
    """The NodeClaim that a launch becomes. Slices are not among its requests: kubelet never shows them."""
    planned = {p.pod: sorted({part.device for part in p.slices}) for p in launch.pods}
    offering = launch.offering
    text = "|".join([pool.name, offering.instance_type, f"{now_s:.6f}", *planned])
    name = f"{pool.name}-{hashlib.sha256(text.encode()).hexdigest()[:5]}"
    annotations = {
        **pool.annotations,
        PLANNED_OFFERING: f"{offering.instance_type}/{offering.zone}/{offering.capacity_type}",
        PLANNED_PODS: json.dumps(planned),
        FOLLOW: launch.follow,
    }
    if launch.devices:
        annotations[PREDICTED_DEVICES] = devices_annotation(launch.devices)
    return NodeClaim(
        name=name,
        node_pool=pool.name,
        node_class=pool.node_class,
        requirements=launch.requirements,
        requests=launch.requests,
        taints=pool.taints,
        startup_taints=pool.startup_taints,
        labels=pool.node_labels,
        annotations=annotations,
        expire_after_s=pool.expire_after_s,
        termination_grace_period_s=pool.termination_grace_period_s,
    )


def planned_pods(claim: NodeClaim) -> dict[str, Sequence[int]]:
    """Pods the claim was bought for, with the indexes of their cards; empty once somebody broke the annotation."""
    try:
        return {str(pod): tuple(map(int, cards)) for pod, cards in json.loads(claim.annotations[PLANNED_PODS]).items()}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}
