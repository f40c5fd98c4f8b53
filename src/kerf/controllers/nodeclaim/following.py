"""Makes the schedulers follow the plan, and undoes it when it did not work out.

HAMi reserves nothing for a nomination and picks among equal nodes at random, so that a plan its rules would not give by
themselves is followed by pinning pods to cards (`nvidia.com/use-gpuuuid`, marked `kerf.dev/pinned` as ours). A node
whose plan needs following is cordoned from its registration until its pods are pinned or nominated.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.model import events
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.nodeclaim import FOLLOW, OBSERVED_DEVICES, NodeClaim
from kerf.model.nodes import CORDON_TAINT, CORDONED_BY_KERF, Node
from kerf.model.plan import NOMINATE, PIN
from kerf.model.pods import Pod
from kerf.model.promises import names, read
from kerf.model.snapshot import Event, Synced, Watched
from kerf.ports import Conflict, NotFound
from kerf.sharing.family import Occupant
from kerf.sharing.hami.pinning import hold, is_free, is_held, is_pinned, pin
from kerf.state import ClusterState, noted_observations
from kerf.telemetry import PODS_FOLLOWED

_LONGEST_S = 10
"""A node opens after so long, even if somebody keeps clearing the marks of its pods."""
AS_PLANNED, OTHER_CARDS, OTHER_NODE = "as-planned", "other-cards", "other-node"


class Following:
    """Cordon, pin or nominate, uncordon."""

    def __init__(self, state: ClusterState, ports: Ports, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings
        # Since when a node waits for its marks, by claim; lost at a restart, which only means waiting again.
        self._began_s: dict[str, float] = {}
        # One node opens at a time: every opening makes all waiting pods try, and those that fail lose their nomination.
        self._opening = asyncio.Lock()

    def cordoned(self, claim: NodeClaim, node: Node) -> Node:
        """The node as it must register: cordoned by us when its plan needs following and nobody else cordoned it."""
        if claim.annotations.get(FOLLOW) not in (PIN, NOMINATE) or node.is_unschedulable:
            return node
        return replace(node, is_unschedulable=True, annotations={**node.annotations, CORDONED_BY_KERF: "true"})

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """The claims that wait for a pod's mark, when a mark has come or gone."""
        if isinstance(event, Synced) or not isinstance(event.value, Pod) or not self._began_s:
            return ()
        before = previous if isinstance(previous, Pod) else None
        if before is None or _mark(before) == _mark(event.value):
            return ()
        waiting = (claim for claim in self._state.claims() if claim.uid in self._began_s)
        return tuple(claim.name for claim in waiting if names(claim.annotations, event.value.key))

    async def hold(self, claim: NodeClaim) -> None:
        """Keep the pods that will be pinned off the cards that are planned for others, until their own are there."""
        if claim.annotations.get(FOLLOW) != PIN:
            return
        change = hold(self._ports.clock.now_s())
        for key in sorted(read(claim.annotations).pods):
            pod = self._state.pod(key)
            if pod is None or not pod.is_pending or not is_free(pod):
                continue
            try:
                await self._ports.writer.annotate_pod(pod, change, unless_present=tuple(sorted(change)))
            except (Conflict, NotFound):
                # The user's own wish stands, or the pod is gone.
                continue

    async def follow(self, claim: NodeClaim, node: Node) -> bool:
        """Pin or nominate the pods that the claim was bought for, then lift our own cordon.

        False: the cordon stays until every mark has come back by the watch, so that the schedulers have it as well
        when the node opens. A nomination that was cleared meanwhile is written again.
        """
        async with self._opening:
            return await self._follow(claim, node)

    async def _follow(self, claim: NodeClaim, node: Node) -> bool:
        mode = claim.annotations.get(FOLLOW)
        marked = 0
        if mode == PIN:
            marked = await self._pin(claim, node)
        elif mode == NOMINATE:
            marked = await self._nominate(claim, node)
        if CORDONED_BY_KERF not in node.annotations:
            # Somebody else keeps it closed, or has opened it.
            return True
        now_s = self._ports.clock.now_s()
        if marked and now_s < self._began_s.setdefault(claim.uid, now_s) + _LONGEST_S:
            return False
        self._began_s.pop(claim.uid, None)
        annotations = {k: v for k, v in node.annotations.items() if k != CORDONED_BY_KERF}
        # In one write: between the cordon and its taint the pods would be tried, and lose their nominations.
        taints = tuple(taint for taint in node.taints if taint.key != CORDON_TAINT)
        opened = replace(node, is_unschedulable=False, annotations=annotations, taints=taints)
        self._state.note(await self._ports.writer.update_node(opened))
        return True

    async def _pin(self, claim: NodeClaim, node: Node) -> int:
        """Pin the pods that are not; how many have been."""
        family, marked = self._state.family_of(node, claim), 0
        ids = {device.index: device.id for device in family.inventory(node) or ()}
        for key, cards in sorted(read(claim.annotations).pods.items()):
            pod = self._state.pod(key)
            if pod is None or not pod.is_pending or not all(card in ids for card in cards):
                continue
            if is_pinned(pod) and not is_held(pod):
                continue
            pinned = [ids[card] for card in cards]
            change = pin(pinned, self._ports.clock.now_s())
            foreign = () if is_held(pod) else tuple(sorted(change))
            try:
                await self._ports.writer.annotate_pod(pod, change, unless_present=foreign)
            except (Conflict, NotFound):
                # The user's own wish stands, or the pod is gone.
                continue
            marked += 1
            self._ports.recorder.record(events.pinned(key, node.name, ", ".join(pinned)))
        return marked

    async def _nominate(self, claim: NodeClaim, node: Node) -> int:
        """Nominate the pods that are not; how many have been."""
        marked = 0
        for key in sorted(read(claim.annotations).pods):
            pod = self._state.pod(key)
            if pod is None or not pod.is_pending or pod.nominated_node:
                continue
            try:
                await self._ports.writer.nominate(pod, node.name)
            except (Conflict, NotFound):
                continue
            marked += 1
        return marked

    def observed_change(self, claim: NodeClaim, node: Node | None) -> Mapping[str, str | None] | None:
        """What to write on the pool when a card has registered less than was predicted or noted; None for nothing."""
        shapes = read(claim.annotations).devices
        pool = self._state.pool(claim.node_pool)
        if node is None or pool is None or not shapes:
            return None
        family = self._state.family_of(node, claim)
        cards = [d.memory_mib for d in family.inventory(node) or () if d.healthy and d.memory_mib > 0]
        registered = min(cards, default=0)
        smallest = min(shape.memory_mib for shape in shapes)
        # A family may scale what it registers; the note is of the card itself, as the catalogue's figure is.
        scaled = min((d.memory_mib for d in family.predict(shapes, node.labels, claim.annotations)), default=0)
        least = registered * smallest // scaled if scaled else 0
        name, noted = claim.labels.get(INSTANCE_TYPE, ""), noted_observations(pool)
        expected = min(noted.get(name, smallest), smallest)
        if not least or least >= expected:
            return None
        return {OBSERVED_DEVICES: json.dumps({**noted, name: least}, sort_keys=True)}


class Followed:
    """Counts whether pods were bound to the node and the cards that were bought for them."""

    name = "followed"

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Pods that have just been bound."""
        if isinstance(event, Synced) or not isinstance(event.value, Pod) or not isinstance(previous, Pod):
            return ()
        return (event.value.key,) if event.value.node_name and not previous.node_name else ()

    async def reconcile(self, key: str) -> Result:
        """Compare with the plan; a pod for which nothing was bought is none of ours."""
        outcome = self._outcome(key)
        if outcome:
            PODS_FOLLOWED.labels(outcome).inc()
        return DONE

    def _outcome(self, key: str) -> str:
        pod = self._state.pod(key)
        node = self._state.node(pod.node_name) if pod is not None else None
        if pod is None or node is None:
            return ""
        claim = self._state.claim_of(node)
        planned = read(claim.annotations).pods if claim is not None else {}
        if claim is None or not any(names(held.annotations, key) for held in self._state.claims()):
            return ""
        # Pods of one shape are the same to the plan, so that each may take the place of another.
        equals = [name for name in planned if name == key or _is_equal(self._state.pod(name), pod)]
        if not equals:
            return OTHER_NODE
        cards = self._cards(claim, node, pod)
        return AS_PLANNED if cards is None or any(cards == sorted(planned[name]) for name in equals) else OTHER_CARDS

    def _cards(self, claim: NodeClaim, node: Node, pod: Pod) -> list[int] | None:
        """The indexes of the cards that the pod holds; None where nobody but kubelet knows."""
        family = self._state.family_of(node, claim)
        if family.selector is None:
            return None
        devices = family.occupied(family.inventory(node) or (), (Occupant(pod, None),))
        return [device.index for device in devices if device.used_slots]


def _mark(pod: Pod) -> tuple[bool, str]:
    return is_pinned(pod) and not is_held(pod), pod.nominated_node


def _is_equal(other: Pod | None, pod: Pod) -> bool:
    return other is not None and other.spec == pod.spec and other.namespace == pod.namespace
