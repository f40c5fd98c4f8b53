"""Conditions that follow from what is there: when a node may go, and what a pool counts.

`lastPodEventTime` starts the clock of consolidateAfter, as in Karpenter; our own start does not reset it.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import replace

from kerf.controllers.elapsed import Steady, passed_s
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.disruption.quiet import remaining_s
from kerf.engine.explain.causes import cause_text
from kerf.engine.headroom.prewarm import prewarm_problem
from kerf.engine.supply import overlays
from kerf.engine.supply.offered import pool_problem
from kerf.model.instancetypes import NodeOverlay
from kerf.model.nodeclaim import (
    CONSOLIDATABLE,
    FALSE,
    INITIALIZED,
    PODS_SEEN,
    READY,
    TRUE,
    VALIDATED,
    Condition,
    NodeClaim,
)
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import Deleted, Event, NodeClass, Synced, Upserted, Watched
from kerf.model.uses import uses_problems
from kerf.sharing.registry import unknown_sharing
from kerf.state import ClusterState

_POD_EVENT_STEP_S = 10.0
"""lastPodEventTime is written at most this often, as Karpenter's, and so is the note of the pods."""


class PodEvents:
    """Notes on a claim when a pod came to its node or left it.

    Which pods were there is noted as well, as a digest: a pod that leaves while Kerf is down leaves no other trace, and
    the node would seem to have been idle all the time. A burst of pods is noted twice, when it begins and ten seconds
    later; after a crash in between the node rests once more.
    """

    name = "pod-events"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports
        # By the uid of the claim the pods that were seen last, and when they were noted last (`passed_s`).
        self._seen: dict[str, tuple[str, float]] = {}

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Claims on whose nodes something happened to a pod; all of them at the start."""
        if isinstance(event, Synced):
            return tuple(claim.name for claim in self._state.claims())
        if isinstance(event, Deleted) and isinstance(event.value, NodeClaim):
            self._seen.pop(event.value.uid, None)
        if not isinstance(event.value, Pod) or not _counts(event.value) or not event.value.node_name:
            return ()
        node = self._state.node(event.value.node_name)
        claim = self._state.claim_of(node) if node is not None else None
        return (claim.name,) if claim is not None else ()

    async def reconcile(self, key: str) -> Result:
        """Compare the pods with those seen last; write the time, then the note, each at most once in ten seconds."""
        claim, now, passed = self._state.claim(key), self._ports.clock.now_s(), passed_s()
        if claim is None or claim.is_deleting or not claim.node_name:
            return DONE
        pods = digest(pod.uid for pod in self._state.pods_on(claim.node_name) if _counts(pod))
        noted = claim.annotations.get(PODS_SEEN, "")
        seen, noted_s = self._seen.get(claim.uid, (noted, -math.inf))
        # One that is still to come was written before the clock was set back.
        if pods != seen and not 0 <= now - (claim.last_pod_event_s or 0) < _POD_EVENT_STEP_S:
            changed = replace(claim, last_pod_event_s=now).without_condition(CONSOLIDATABLE)
            claim = await self._ports.writer.update_node_claim_status(changed)
            self._state.note(claim)
        left_s = 0.0 if pods == noted else noted_s + _POD_EVENT_STEP_S - passed
        if pods != noted and left_s <= 0:
            named = replace(claim, annotations={**claim.annotations, PODS_SEEN: pods})
            self._state.note(await self._ports.writer.update_node_claim(named))
            noted_s = passed
        self._seen[claim.uid] = pods, noted_s
        return Result(left_s) if left_s > 0 else DONE


def _counts(pod: Pod) -> bool:
    """Whether a node is in use by the pod: daemons are on every node, and opportunistic pods hold none."""
    return not pod.is_daemon and not pod.is_opportunistic


def digest(uids: Iterable[str]) -> str:
    """A short text that is equal for equal sets of pods; empty for none."""
    held = sorted(uids)
    return hashlib.sha256("|".join(held).encode()).hexdigest()[:12] if held else ""


class Consolidatable:
    """Sets `Consolidatable` once a node has had no pod come or go for consolidateAfter."""

    name = "consolidatable"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports, self._steady = state, ports, Steady(ports.clock)

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Claims that change; all of a pool when its consolidateAfter does, and not whenever its status is written."""
        if isinstance(event, Synced):
            return tuple(claim.name for claim in self._state.claims())
        value = event.value
        if isinstance(value, NodeClaim):
            return (value.name,)
        if not isinstance(value, NodePool) or _consolidate_after(value) == _consolidate_after(previous):
            return ()
        return tuple(claim.name for claim in self._state.claims_of(value.name))

    async def reconcile(self, key: str) -> Result:
        """True when the time is over, else again when it will be."""
        claim = self._state.claim(key)
        pool = self._state.pool(claim.node_pool) if claim is not None else None
        if claim is None or pool is None or claim.is_deleting or not claim.is_true(INITIALIZED):
            self._steady.forget(key)
            return DONE
        now_s = self._steady.now_s(key, (claim.uid, claim.last_pod_event_s))
        left_s = remaining_s(claim, pool, now_s)
        if left_s is None:
            return DONE
        if left_s > 0:
            return Result(left_s)
        if not claim.is_true(CONSOLIDATABLE):
            done = claim.with_condition(Condition(CONSOLIDATABLE, TRUE, CONSOLIDATABLE, "", self._ports.clock.now_s()))
            self._state.note(await self._ports.writer.update_node_claim_status(done))
        return DONE


def _consolidate_after(pool: Watched | None) -> tuple[float | None, ...]:
    """As a tuple, which is empty for no pool."""
    return (pool.disruption.consolidate_after_s,) if isinstance(pool, NodePool) else ()


class PoolStatus:
    """Counts a pool's resources, and says whether its spec can be carried out and whether it takes nodes.

    A broken schedule stops disruption only, as in Karpenter: such a pool is not valid and Ready none the less. An
    annotation that names no sharing family counts as absent, and is said in the same way; so is a floor that cannot be
    read, which stops disruption too.
    """

    name = "nodepool-status"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """The pool of a claim that changes or of a node that shows something else, the pool itself, all pools when a
        NodeClass changes."""
        if isinstance(event, Synced) or isinstance(event.value, NodeClass):
            return tuple(pool.name for pool in self._state.pools())
        if isinstance(event.value, NodeClaim):
            return (event.value.node_pool,)
        if isinstance(event.value, Node):
            claim = self._state.claim_of(event.value)
            is_same = isinstance(previous, Node) and previous.capacity == event.value.capacity
            return () if claim is None or is_same else (claim.node_pool,)
        return (event.value.name,) if isinstance(event.value, NodePool) and isinstance(event, Upserted) else ()

    async def reconcile(self, key: str) -> Result:
        """Write resources and conditions where they have changed."""
        now = self._ports.clock.now_s()
        pool = self._state.pool(key)
        if pool is None:
            return DONE
        resources = self._state.counted(key)
        problem = pool_problem(pool, self._state.node_classes(), assume_ready=self._state.assumes_node_classes)
        unknown = unknown_sharing(pool.stated_annotations)
        invalid = "; ".join(
            filter(
                None,
                (
                    pool.invalid,
                    pool.bounds.invalid,
                    pool.invalid_schedule,
                    pool.bounds.invalid_floor,
                    prewarm_problem(pool),
                    *(why for _, why in uses_problems(pool.stated_annotations)),
                    cause_text(unknown) if unknown is not None else "",
                ),
            )
        )
        not_ready = "" if problem is None else cause_text(problem)
        conditions = (
            _judged(pool, Condition(VALIDATED, TRUE, VALIDATED, invalid, now), "NodePoolValidationFailed"),
            _judged(
                pool,
                Condition(READY, TRUE, READY, not_ready, now),
                "NodePoolNotReady",
            ),
        )
        if resources != pool.resources or any(condition not in pool.conditions for condition in conditions):
            await self._ports.writer.update_node_pool_status(key, resources, conditions)
        return DONE


def _judged(pool: NodePool, condition: Condition, refusal: str) -> Condition:
    """The condition, False for the reason `refusal` where it has a message; as the pool holds it where it says so."""
    if condition.message:
        condition = replace(condition, status=FALSE, reason=refusal)
    held = next((c for c in pool.conditions if c.type == condition.type), None)
    if held is None or (held.status, held.message) != (condition.status, condition.message):
        return condition
    return held


def complaint(pool: NodePool, kind: str, message: str, otherwise: str, now_s: float) -> Condition | None:
    """A condition that is True while there is a message, else False for the reason `otherwise`.

    None where the pool says so already, and where there is nothing to say and never was.
    """
    held = next((condition for condition in pool.conditions if condition.type == kind), None)
    status = TRUE if message else FALSE
    if (held is None and not message) or (held is not None and (held.status, held.message) == (status, message)):
        return None
    return Condition(kind, status, kind if message else otherwise, message, now_s)


class OverlayStatus:
    """Says of each NodeOverlay whether it is applied: one that is invalid or contradicts another is applied nowhere."""

    name = "nodeoverlay-status"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook) -> None:
        self._state, self._ports, self._book = state, ports, book

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key: overlays are judged together, against all pools."""
        if isinstance(event, Synced):
            return ("overlays",)
        value = event.value
        changed = getattr(value, "generation", 0) != getattr(previous, "generation", None) or isinstance(event, Deleted)
        return ("overlays",) if isinstance(value, NodeOverlay | NodePool) and changed else ()

    async def reconcile(self, key: str) -> Result:
        """Write the condition of every overlay whose verdict has changed."""
        now = self._ports.clock.now_s()
        snapshot = self._state.snapshot(now)
        if not snapshot.overlays:
            return DONE
        market = await self._book.market(snapshot)
        conflicting = overlays.conflicts(snapshot.overlays, snapshot.node_pools, market)
        for overlay in snapshot.overlays:
            problem = conflicting.get(overlay.name)
            why = "" if problem is None else cause_text(problem)
            refusal = "RuntimeValidation" if overlay.invalid else "Conflict"
            status, reason = (FALSE, refusal) if why else (TRUE, VALIDATED)
            held = next((c for c in overlay.conditions if c.type == VALIDATED), None)
            if held is None or (held.status, held.message) != (status, why):
                condition = Condition(VALIDATED, status, reason, why, now)
                ready = Condition(READY, status, reason if why else READY, why, now)
                await self._ports.writer.update_node_overlay_status(overlay.name, (condition, ready))
        return DONE
