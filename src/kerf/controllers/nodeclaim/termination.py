"""The end of a NodeClaim: drain the node, detach its volumes, terminate the instance, then let both objects go.

The steps, their order and their words on the claim are Karpenter's: the termination time, taint and label, `Drained`,
`VolumesDetached`, `InstanceTerminating`, the node, the claim. Each is written before the next begins, and nothing else
is remembered, so a restart goes on where the API says. A claim whose launch never answered may have an instance all
the same: it is looked for by its token, and one that another autoscaler launched by the claim's name, so nothing leaks.
"""

from collections.abc import Iterable
from dataclasses import replace

from kerf.cloudprovider import InstanceNotFound, repair_policies_of
from kerf.config import Settings
from kerf.controllers.elapsed import passed_s
from kerf.controllers.market import MarketBook
from kerf.controllers.nodeclaim.evictions import Evictions
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.draining import MIN_DRAIN_S, Drain, awaited_attachments
from kerf.engine.explain.draining import failed_draining_text, held_text
from kerf.engine.lifecycle import drain_deadline_s
from kerf.model import events
from kerf.model.nodeclaim import (
    DISRUPTED_TAINT,
    DISRUPTION_REASON,
    DRAINED,
    EXCLUDED_FROM_LOAD_BALANCERS,
    FALSE,
    INITIALIZED,
    INSTANCE_TERMINATING,
    READY,
    TERMINATION_FINALIZER,
    TERMINATION_TIMESTAMP,
    TRUE,
    UNKNOWN,
    VOLUMES_DETACHED,
    Condition,
    NodeClaim,
)
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import Event, Synced
from kerf.model.times import instant_s, instant_text
from kerf.model.volumes import PersistentVolumeClaim, VolumeAttachment
from kerf.ports import KubeWriter, NotFound
from kerf.state import ClusterState

_REWORDED_S = 30.0
"""What holds a drain is written on the claim at most this often: it changes with each pod that goes."""
_AT_MOST_AHEAD_S = 1.0
"""Times on objects are whole seconds, so one can be so far ahead."""
_SOONEST_S = 0.1
"""No look follows another sooner, whatever a clock says."""
_EXCLUDED_BY = "karpenter"
_MOST_NAMES = 3


class Termination:
    """Steps of a claim that is being deleted."""

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings
        self._evictions = Evictions(state, ports, book)
        self._worded_s: dict[str, float] = {}

    def keys(self, event: Event) -> Iterable[str]:
        """The claim whose end goes on because a pod on its node has changed, or a volume has been detached."""
        if isinstance(event, Synced) or not isinstance(event.value, Pod | VolumeAttachment):
            return ()
        node = self._state.node(event.value.node_name)
        claim = self._state.claim_of(node) if node is not None else None
        return (claim.name,) if claim is not None and claim.is_deleting else ()

    async def step(self, claim: NodeClaim) -> Result:
        """One step; again after some seconds until the claim is gone."""
        if claim.is_terminated:
            return DONE
        claim = await self._dated(claim)
        node = self._state.node_of(claim)
        if node is not None and not claim.is_true(INSTANCE_TERMINATING) and not await self._is_lost(claim, node):
            claim, again_s = await self._empty(claim, node)
            if again_s is not None:
                return Result(again_s)
        claim, again_s = await self._terminate(claim)
        if again_s is not None:
            return Result(again_s)
        if node is not None:
            await release_node(self._ports.writer, node)
            self._evictions.forget(node)
        await self._let_go(claim, node)
        return DONE

    async def _dated(self, claim: NodeClaim) -> NodeClaim:
        """The claim with its termination time, which from then on decides, whatever becomes of the spec."""
        value = claim.annotations.get(TERMINATION_TIMESTAMP)
        if value is not None and _is_instant(value):
            return claim
        if value is not None:
            self._ports.recorder.record(events.termination_time_not_understood(claim.name, value))
        deadline_s = drain_deadline_s(claim, self._repair_s(claim))
        if deadline_s is None:
            return claim
        annotations = {**claim.annotations, TERMINATION_TIMESTAMP: instant_text(deadline_s)}
        written = await self._ports.writer.update_node_claim(replace(claim, annotations=annotations))
        self._state.note(written)
        return written

    def _repair_s(self, claim: NodeClaim) -> dict[str, float]:
        """How long the drain of the node may take, by the condition that is bad; the least where several say it.

        Where the condition has changed since, all policies of it count.
        """
        node, bounds = self._state.node_of(claim), dict[str, float]()
        policies = self._ports.cloud.repair_policies
        for name in {policy.condition for policy in policies}:
            condition = node.condition(name) if node is not None else None
            matched = () if condition is None else repair_policies_of(policies, condition)
            bounds[name] = min(each.drain_s for each in matched or policies if each.condition == name)
        return bounds

    async def _is_lost(self, claim: NodeClaim, node: Node) -> bool:
        """Whether no kubelet is there to end pods: the instance is gone, or the node is not ready and never served.

        The kubelet of a node that is Ready runs, whatever the cloud says.
        """
        if node.is_ready:
            return False
        if not claim.is_true(INITIALIZED) or not claim.provider_id:
            return True
        try:
            await self._ports.cloud.get(claim.provider_id)
        except InstanceNotFound:
            return True
        return False

    async def _empty(self, claim: NodeClaim, node: Node) -> tuple[NodeClaim, float | None]:
        """Drain the node, then wait for its volumes; the seconds until the next look, None once both are done."""
        await self._close(node)
        deadline_s = drain_deadline_s(claim)
        if claim.condition(DRAINED) is None:
            claim = await self._say(claim, Condition(DRAINED, UNKNOWN, "Draining", "", self._now()))
            if deadline_s is not None:
                for kind, name in (("Node", node.name), ("NodeClaim", claim.name)):
                    self._ports.recorder.record(events.grace_period_expiring(kind, name, deadline_s))
        disrupted = claim.condition(DISRUPTION_REASON)
        reason = disrupted.reason if disrupted is not None else "its node is terminated"
        drain, again_s = await self._evictions.go_on(node, deadline_s, reason)
        if drain.awaited:
            return await self._say_held(claim, node, drain), max(_SOONEST_S, min(again_s, self._settings.drain_poll_s))
        drained = claim.condition(DRAINED)
        if drained is not None and drained.status != TRUE and (left_s := self._left_s(drained, MIN_DRAIN_S)) > 0:
            return claim, left_s
        return await self._detach(claim, node, deadline_s)

    def _left_s(self, said: Condition, wait_s: float) -> float:
        """How much is left of a short wait that began with this condition; none of one that a clock set back would
        make longer."""
        left_s = said.since_s + wait_s - self._now()
        return left_s if left_s <= wait_s + _AT_MOST_AHEAD_S else 0

    async def _close(self, node: Node) -> None:
        """Keep new pods off the node, and the traffic of load balancers."""
        taints = node.taints if DISRUPTED_TAINT in node.taints else (*node.taints, DISRUPTED_TAINT)
        labels = {EXCLUDED_FROM_LOAD_BALANCERS: _EXCLUDED_BY, **node.labels}
        closed = replace(node, taints=taints, labels=labels)
        if (closed.taints, closed.labels) != (node.taints, node.labels):
            self._state.note(await self._ports.writer.update_node(closed))

    async def _say_held(self, claim: NodeClaim, node: Node, drain: Drain) -> NodeClaim:
        """Which pods hold the drain, why, and what would free them: on the claim, and as an event."""
        now_s = self._now()
        text = held_text(drain, self._evictions.now_s(node))
        if drain.held:
            first = f"{drain.held[0].pod.key} {type(drain.held[0].why).__name__}"
            self._ports.recorder.record(events.failed_draining(node.name, failed_draining_text(drain), first))
        worded_s = self._worded_s.get(claim.uid)
        if worded_s is not None and passed_s() < worded_s + _REWORDED_S:
            return claim
        said = await self._say(claim, Condition(DRAINED, UNKNOWN, "Draining", text, now_s))
        if said is not claim:
            kept = {uid: said_s for uid, said_s in self._worded_s.items() if said_s > passed_s() - _REWORDED_S}
            self._worded_s = {**kept, claim.uid: passed_s()}
        return said

    async def _detach(self, claim: NodeClaim, node: Node, deadline_s: float | None) -> tuple[NodeClaim, float | None]:
        """Wait until the volumes of the pods that have gone are detached, or until the node's time is over."""
        now_s, pods = self._now(), self._state.pods_on(node.name)
        left = awaited_attachments(self._state.attachments_to(node.name), pods, self._volume_claim, now_s)
        drained = Condition(DRAINED, TRUE, DRAINED, "", now_s)
        if not left:
            return await self._say(claim, drained, Condition(VOLUMES_DETACHED, TRUE, VOLUMES_DETACHED, "", now_s)), None
        names = [each.name for each in left]
        more = " and others" if len(names) > _MOST_NAMES else ""
        text = f"VolumeAttachments {', '.join(names[:_MOST_NAMES])}{more}"
        if deadline_s is not None and self._evictions.now_s(node) >= deadline_s:
            text += " were still there"
            over = Condition(VOLUMES_DETACHED, FALSE, "TerminationGracePeriodElapsed", text, now_s)
            return await self._say(claim, drained, over), None
        self._ports.recorder.record(events.awaiting_detachment(node.name, names))
        awaiting = Condition(VOLUMES_DETACHED, UNKNOWN, "AwaitingVolumeDetachment", f"{text} are still there", now_s)
        claim = await self._say(claim, drained, awaiting)
        left_s = self._settings.drain_poll_s if deadline_s is None else deadline_s - self._evictions.now_s(node)
        return claim, min(left_s, self._settings.drain_poll_s)

    def _volume_claim(self, key: str) -> PersistentVolumeClaim | None:
        found = self._state.find("PersistentVolumeClaim", key)
        return found if isinstance(found, PersistentVolumeClaim) else None

    async def _terminate(self, claim: NodeClaim) -> tuple[NodeClaim, float | None]:
        """Ask for the end of the instance; None once the cloud has none, else the seconds until the next time."""
        poll_s, asked = self._settings.drain_poll_s, claim.condition(INSTANCE_TERMINATING)
        if asked is not None and (left_s := self._left_s(asked, poll_s)) > 0:
            # Our own write wakes us at once, and the cloud needs its time.
            return claim, left_s
        provider_id = claim.provider_id
        if not provider_id:
            instances = await self._ports.cloud.list_instances()
            provider_id = next((each.provider_id for each in instances if each.is_of(claim)), "")
        if not provider_id:
            return claim, None
        try:
            await self._ports.cloud.delete(provider_id)
        except InstanceNotFound:
            return claim, None
        done = Condition(INSTANCE_TERMINATING, TRUE, INSTANCE_TERMINATING, "", self._now())
        return await self._say(claim, done), poll_s

    async def _let_go(self, claim: NodeClaim, node: Node | None) -> None:
        """Take our finalizer from the claim. Those of others stay, and the claim says that it waits for them alone."""
        if TERMINATION_FINALIZER not in claim.finalizers:
            return
        left = tuple(finalizer for finalizer in claim.finalizers if finalizer != TERMINATION_FINALIZER)
        if left:
            text = f"the instance is gone; the object waits for the finalizers of others: {', '.join(sorted(left))}"
            done = Condition(INSTANCE_TERMINATING, TRUE, "InstanceTerminated", text, self._now())
            claim = await self._say(claim, done, Condition(READY, FALSE, "InstanceTerminated", text, self._now()))
        await self._ports.writer.update_node_claim(replace(claim, finalizers=left))
        waits_for = () if node is None else tuple(each for each in node.finalizers if each != TERMINATION_FINALIZER)
        self._ports.recorder.record(events.terminated(claim.name, node.name if node is not None else "", waits_for))

    async def _say(self, claim: NodeClaim, *conditions: Condition) -> NodeClaim:
        """The claim with these conditions, in one write; the very same where it says so already."""
        changed = claim
        for condition in conditions:
            held = changed.condition(condition.type)
            said = None if held is None else (held.status, held.reason, held.message)
            if said != (condition.status, condition.reason, condition.message):
                changed = changed.with_condition(condition)
        if changed is claim:
            return claim
        written = await self._ports.writer.update_node_claim_status(changed)
        self._state.note(written)
        return written

    def _now(self) -> float:
        return self._ports.clock.now_s()


async def release_node(writer: KubeWriter, node: Node) -> None:
    """Take our finalizer from a node and delete it; nothing where it has gone meanwhile."""
    try:
        if TERMINATION_FINALIZER in node.finalizers:
            left = tuple(f for f in node.finalizers if f != TERMINATION_FINALIZER)
            node = await writer.update_node(replace(node, finalizers=left))
        await writer.delete_node(node)
    except NotFound:
        return


def _is_instant(text: str) -> bool:
    try:
        instant_s(text)
    except ValueError:
        return False
    return True
