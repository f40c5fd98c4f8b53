"""Says on a claim that its node is broken: GPUsHealthy as soon as a card is, Unhealthy once that is tolerated no more.

A broken card takes no new slices, whatever is said here. Its node is replaced where nodes are repaired: what its
provider tolerates for so long, and a broken card for ten minutes, makes the claim Unhealthy. Which node goes when is
decided elsewhere (`engine.disruption.repair`). A node or its pool may forbid it with `karpenter.sh/do-not-repair`.
"""

from collections.abc import Iterable

from kerf.cloudprovider import repair_policies_of
from kerf.controllers.elapsed import Steady
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.explain.brokencards import broken_cards_text
from kerf.model import events
from kerf.model.nodeclaim import (
    DO_NOT_REPAIR,
    FALSE,
    GPUS_HEALTHY,
    INITIALIZED,
    TRUE,
    UNHEALTHY,
    Condition,
    NodeClaim,
)
from kerf.model.nodes import Node
from kerf.model.snapshot import Event, Synced, Watched
from kerf.state import ClusterState

_CARD_S = 600.0
"""A broken card is tolerated for so long, as AWS's agent tolerates AcceleratedHardwareReady: it may be reset."""


class Health:
    """One claim at a time, when its node's conditions change and when a toleration ends."""

    name = "node-health"

    def __init__(self, state: ClusterState, ports: Ports, *, repairs: bool) -> None:
        self._state, self._ports, self._repairs = state, ports, repairs
        self._steady = Steady(ports.clock)

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Claims of nodes that change."""
        if isinstance(event, Synced):
            return tuple(claim.name for claim in self._state.claims())
        if not isinstance(event.value, Node):
            return ()
        claim = self._state.claim_of(event.value)
        return (claim.name,) if claim is not None else ()

    async def reconcile(self, key: str) -> Result:
        """Write what has changed, and look again when the next toleration ends."""
        claim = self._state.claim(key)
        node = self._state.node_of(claim) if claim is not None else None
        if claim is None or node is None or claim.is_deleting or not claim.is_true(INITIALIZED):
            self._steady.forget(key)
            return DONE
        claim = await self._with_cards(claim, node)
        pool = self._state.pool(claim.node_pool)
        kept = (node.annotations, pool.stated_annotations if pool is not None else {})
        is_kept = not self._repairs or any(each.get(DO_NOT_REPAIR) == "true" for each in kept)
        ends = [] if is_kept else self._ends(claim, node)
        # A clock that is set must not make all nodes with a condition of a moment broken at once.
        now_s = self._steady.now_s(key, (claim.uid, *ends))
        # A node that is broken as a whole need not wait until the pods of its sound cards may move.
        ended = sorted((name for at_s, name in ends if at_s <= now_s), key=lambda name: (name == GPUS_HEALTHY, name))
        held = claim.condition(UNHEALTHY)
        if ended and (held is None or held.reason != ended[0]):
            condition = Condition(UNHEALTHY, TRUE, ended[0], "", self._ports.clock.now_s())
            self._state.note(await self._ports.writer.update_node_claim_status(claim.with_condition(condition)))
            self._ports.recorder.record(events.unhealthy(node.name, ended[0]))
        elif not ended and held is not None:
            self._state.note(await self._ports.writer.update_node_claim_status(claim.without_condition(UNHEALTHY)))
        left_s = [at_s - now_s for at_s, _ in ends if at_s > now_s]
        return Result(min(left_s)) if left_s else DONE

    async def _with_cards(self, claim: NodeClaim, node: Node) -> NodeClaim:
        """The claim that says how the cards of its node are, and an event where that is news.

        What a node that is not ready shows of them, or one whose register cannot be read, is no news.
        """
        joined, held = self._state.cluster_node(node.name), claim.condition(GPUS_HEALTHY)
        if joined is None or joined.problem is not None or not node.is_ready:
            return claim
        text = broken_cards_text(joined, self._state.family_of(node, claim))
        if text == (held.message if held is not None else "") and (held is not None or not text):
            return claim
        status, reason = (FALSE, "GPUBroken") if text else (TRUE, GPUS_HEALTHY)
        condition = Condition(GPUS_HEALTHY, status, reason, text, self._ports.clock.now_s())
        claim = await self._ports.writer.update_node_claim_status(claim.with_condition(condition))
        self._state.note(claim)
        if text:
            self._ports.recorder.record(events.gpu_broken(node.name, text))
        return claim

    def _ends(self, claim: NodeClaim, node: Node) -> list[tuple[float, str]]:
        """When each of its conditions that is tolerated for a while will have been so too long."""
        found = []
        cards = claim.condition(GPUS_HEALTHY)
        if cards is not None and cards.status == FALSE:
            found.append((cards.since_s + _CARD_S, GPUS_HEALTHY))
        policies = self._ports.cloud.repair_policies
        for condition in node.conditions:
            for policy in repair_policies_of(policies, condition):
                found.append((condition.since_s + policy.toleration_s, policy.condition))
        return found
