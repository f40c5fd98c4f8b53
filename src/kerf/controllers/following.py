"""Makes the schedulers follow the plan, and undoes it when it did not work out.

HAMi reserves nothing for a nomination and picks among equal nodes at random, so that a plan its rules would not give by
themselves is followed by pinning pods to cards (`nvidia.com/use-gpuuuid`, marked `kerf.dev/pinned` as ours). A node
whose plan needs following is cordoned from its registration until its pods are pinned or nominated.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from kerf.config import Settings
from kerf.controllers.actuator import planned_pods
from kerf.controllers.runtime import Ports
from kerf.model import events
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.nodeclaim import FOLLOW, OBSERVED_DEVICES, NodeClaim
from kerf.model.nodes import CORDONED_BY_KERF, Node
from kerf.model.plan import NOMINATE, PIN
from kerf.model.snapshot import Upserted
from kerf.ports import Conflict, NotFound
from kerf.sharing.pinning import pin
from kerf.state import ClusterState, noted_observations, predicted_shapes


class Following:
    """Cordon, pin or nominate, uncordon."""

    def __init__(self, state: ClusterState, ports: Ports, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings

    def cordoned(self, claim: NodeClaim, node: Node) -> Node:
        """The node as it must register: cordoned by us when its plan needs following and nobody else cordoned it."""
        if claim.annotations.get(FOLLOW) not in (PIN, NOMINATE) or node.is_unschedulable:
            return node
        return replace(node, is_unschedulable=True, annotations={**node.annotations, CORDONED_BY_KERF: "true"})

    async def follow(self, claim: NodeClaim, node: Node) -> None:
        """Pin or nominate the pods that the claim was bought for, then lift our own cordon."""
        mode = claim.annotations.get(FOLLOW)
        if mode == PIN:
            await self._pin(claim, node)
        elif mode == NOMINATE:
            await self._nominate(claim, node)
        if CORDONED_BY_KERF in node.annotations:
            annotations = {k: v for k, v in node.annotations.items() if k != CORDONED_BY_KERF}
            opened = replace(node, is_unschedulable=False, annotations=annotations)
            self._state.apply(Upserted(await self._ports.writer.update_node(opened)))

    async def _pin(self, claim: NodeClaim, node: Node) -> None:
        family = self._state.family_of(node, claim)
        ids = {device.index: device.id for device in family.inventory(node) or ()}
        for key, cards in sorted(planned_pods(claim).items()):
            pod = self._state.pod(key)
            if pod is None or not pod.is_pending or not all(card in ids for card in cards):
                continue
            pinned = [ids[card] for card in cards]
            change = pin(pinned, self._ports.clock.now_s())
            try:
                await self._ports.writer.annotate_pod(pod, change, unless_present=tuple(sorted(change)))
            except (Conflict, NotFound):
                # The user's own wish stands, or the pod is gone.
                continue
            self._ports.recorder.record(events.pinned(key, node.name, ", ".join(pinned)))

    async def _nominate(self, claim: NodeClaim, node: Node) -> None:
        for key in sorted(planned_pods(claim)):
            pod = self._state.pod(key)
            if pod is None or not pod.is_pending or pod.nominated_node:
                continue
            try:
                await self._ports.writer.nominate(pod, node.name)
            except (Conflict, NotFound):
                continue

    def observed_change(self, claim: NodeClaim, node: Node | None) -> Mapping[str, str | None] | None:
        """What to write on the pool when a card has registered less than was predicted or noted; None for nothing."""
        shapes = predicted_shapes(claim)
        pool = self._state.pool(claim.node_pool)
        if node is None or pool is None or not shapes:
            return None
        family = self._state.family_of(node, claim)
        cards = [d.memory_mib for d in family.inventory(node) or () if d.healthy and d.memory_mib > 0]
        registered = min(cards, default=0)
        smallest = min(shape.memory_mib for shape in shapes)
        # A family may scale what it registers; the note is of the card itself, as the catalogue's figure is.
        scaled = min(device.memory_mib for device in family.predict(shapes, claim.annotations))
        least = registered * smallest // scaled if scaled else 0
        name, noted = claim.labels.get(INSTANCE_TYPE, ""), noted_observations(pool)
        expected = min(noted.get(name, smallest), smallest)
        if not least or least >= expected:
            return None
        return {OBSERVED_DEVICES: json.dumps({**noted, name: least}, sort_keys=True)}
