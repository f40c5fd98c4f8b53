"""Keeps a node whose cards registered less than was predicted, where pods can use it as it is.

The annotation `kerf.dev/registered-less` is written once and stays: from then on the claim initialises with what its
node has, after a restart too, and goes by the ordinary rules.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from kerf.config import Settings
from kerf.controllers.market import MarketBook
from kerf.controllers.nodeclaim.following import Following
from kerf.controllers.nodeclaim.stages import shortfall_text
from kerf.controllers.options import options_of
from kerf.controllers.portions import Portions
from kerf.controllers.provisioning import is_provisionable
from kerf.controllers.runtime import Ports
from kerf.engine.decide import decide
from kerf.engine.lifecycle import Shortfall
from kerf.engine.shortfall import kept_for
from kerf.engine.world import World
from kerf.model import events
from kerf.model.nodeclaim import REGISTERED_LESS, NodeClaim
from kerf.model.nodes import Node
from kerf.model.promises import read, with_pods
from kerf.model.snapshot import ClusterSnapshot
from kerf.state import ClusterState


class LessThanPredicted:
    """Asks once what is missing is known, and once more when its time is over: each costs a whole plan."""

    def __init__(
        self, state: ClusterState, ports: Ports, book: MarketBook, following: Following, settings: Settings
    ) -> None:
        self._state, self._ports, self._book, self._settings = state, ports, book, settings
        self._following, self._portions = following, Portions(state, settings)

    async def keep(self, claim: NodeClaim, node: Node, missing: Shortfall) -> bool:
        """Whether the claim is kept from now on with what its node has; nothing is written where no pod can use it.

        The promised pods that do not fit any more are promised nothing, so the next plan finds them another place.
        Raises CloudError.
        """
        text = shortfall_text(missing)
        marked = replace(claim, annotations={**claim.annotations, REGISTERED_LESS: text})
        snapshot = self._snapshot(marked, node)
        market = await self._book.market(snapshot)
        options = options_of(self._settings, follows=True)
        decision = await self._ports.deciding.run(partial(decide, World(snapshot, market), options))
        pods = kept_for(decision, node.name)
        if pods is None:
            return False
        await self._write(claim, marked, pods)
        self._ports.recorder.record(events.registered_less(claim.name, text))
        return True

    async def _write(self, claim: NodeClaim, marked: NodeClaim, pods: Mapping[str, tuple[int, ...]]) -> None:
        # A Conflict where the claim has changed while it was decided: then all is looked at again.
        kept = replace(marked, annotations={**marked.annotations, **with_pods(pods)})
        self._state.note(await self._ports.writer.update_node_claim(kept))
        await self._following.let_go(claim, [key for key in read(claim.annotations).pods if key not in pods])

    def _snapshot(self, claim: NodeClaim, node: Node) -> ClusterSnapshot:
        """Everything at this moment, with the node as it would be under this form of its claim."""
        part = self._portions.of(tuple(pod for pod in self._state.pending() if is_provisionable(pod)))
        snapshot = self._state.snapshot(self._ports.clock.now_s(), part.pods)
        registered = self._state.cluster_node(node.name, {pod.key for pod in part.pods}, claim)
        nodes = ((registered if each.node is not None and each.name == node.name else each) for each in snapshot.nodes)
        return replace(snapshot, nodes=tuple(each for each in nodes if each is not None))
