"""The end of a NodeClaim: drain the node, terminate the instance, then let both objects go.

The order is Karpenter's: taint, evict ordinary pods, then daemons, then critical ones; then the instance until the
cloud no longer knows it; then the node, then the claim. A claim whose launch never answered may have an instance all
the same: it is looked for by its token, and one that another autoscaler launched by the claim's name, so nothing leaks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kerf.cloudprovider import InstanceNotFound
from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.lifecycle import drain_deadline_s
from kerf.model import events
from kerf.model.nodeclaim import DISRUPTED_TAINT, DISRUPTION_REASON, TERMINATION_FINALIZER, NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import Deleted, Event, Synced
from kerf.ports import EvictionBlocked, KubeWriter, NotFound
from kerf.state import ClusterState

_STUCK_S = 60.0
"""A pod that is still there so long after its grace has ended will not end by itself, as in Karpenter."""
_CRITICAL = 2_000_000_000
"""Priority from which system-cluster-critical and system-node-critical begin."""


class Termination:
    """Steps of a claim that is being deleted."""

    def __init__(self, state: ClusterState, ports: Ports, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings

    def keys(self, event: Event) -> Iterable[str]:
        """The claim whose drain goes on because a pod has left its node."""
        if isinstance(event, Synced) or not isinstance(event, Deleted) or not isinstance(event.value, Pod):
            return ()
        node = self._state.node(event.value.node_name)
        claim = self._state.claim_of(node) if node is not None else None
        return (claim.name,) if claim is not None and claim.is_deleting else ()

    async def step(self, claim: NodeClaim) -> Result:
        """One step; again after some seconds until the claim is gone."""
        node = self._state.node_of(claim)
        if node is not None:
            await self._close(node)
            waiting = await self._drain(claim, node)
            if waiting:
                return Result(self._settings.drain_poll_s)
        if not await self._terminate(claim):
            return Result(self._settings.drain_poll_s)
        if node is not None:
            await release_node(self._ports.writer, node)
        if TERMINATION_FINALIZER in claim.finalizers:
            left = tuple(f for f in claim.finalizers if f != TERMINATION_FINALIZER)
            await self._ports.writer.update_node_claim(replace(claim, finalizers=left))
            self._ports.recorder.record(events.terminated(claim.name, node.name if node is not None else ""))
        return DONE

    async def _close(self, node: Node) -> None:
        if DISRUPTED_TAINT not in node.taints:
            await self._ports.writer.update_node(replace(node, taints=(*node.taints, DISRUPTED_TAINT)))

    async def _drain(self, claim: NodeClaim, node: Node) -> int:
        """Evict the next tier; the number of pods still there. A node that is not ready waits for nobody."""
        now = self._ports.clock.now_s()
        pods = [pod for pod in self._state.pods_on(node.name) if _is_drained(pod, now)]
        if not pods or not node.is_ready:
            return 0
        deadline = drain_deadline_s(claim)
        condition = claim.condition(DISRUPTION_REASON)
        reason = condition.reason if condition is not None else "its node is terminated"
        blocked = 0
        for pod in _next_tier(pods):
            if pod.deleted_s is not None:
                continue
            try:
                if deadline is not None and now >= deadline - pod.spec.termination_grace_s:
                    await self._ports.writer.delete_pod(pod, pod.spec.termination_grace_s)
                else:
                    await self._ports.writer.evict(pod)
                self._ports.recorder.record(events.evicted(pod.key, reason))
            except EvictionBlocked:
                blocked += 1
            except NotFound:
                continue
        if blocked:
            self._ports.recorder.record(events.failed_draining(node.name, blocked))
        return len(pods)

    async def _terminate(self, claim: NodeClaim) -> bool:
        """Ask for the end of the instance; True once the cloud has none."""
        provider_id = claim.provider_id
        if not provider_id:
            instances = await self._ports.cloud.list_instances()
            provider_id = next((each.provider_id for each in instances if each.is_of(claim)), "")
        if not provider_id:
            return True
        try:
            await self._ports.cloud.delete(provider_id)
        except InstanceNotFound:
            return True
        return False


async def release_node(writer: KubeWriter, node: Node) -> None:
    """Take our finalizer from a node and delete it; nothing where it has gone meanwhile."""
    try:
        if TERMINATION_FINALIZER in node.finalizers:
            left = tuple(f for f in node.finalizers if f != TERMINATION_FINALIZER)
            node = await writer.update_node(replace(node, finalizers=left))
        await writer.delete_node(node)
    except NotFound:
        return


def _is_drained(pod: Pod, now_s: float) -> bool:
    """Whether a drain waits for the pod: not for static and stuck ones, nor for those that tolerate the disruption."""
    if pod.owner is not None and pod.owner.kind == "Node":
        return False
    if pod.deleted_s is not None and now_s > pod.deleted_s + _STUCK_S:
        return False
    return not any(t.tolerates(DISRUPTED_TAINT) for t in pod.spec.tolerations)


def _next_tier(pods: Sequence[Pod]) -> list[Pod]:
    def tier(pod: Pod) -> int:
        return 2 * (pod.spec.priority >= _CRITICAL) + pod.is_daemon

    first = min(map(tier, pods))
    return [pod for pod in pods if tier(pod) == first]
