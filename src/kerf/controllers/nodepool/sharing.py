"""Says of each NodePool what is wrong with its sharing of GPUs, as long as it is: nodes of it would show none."""

from collections.abc import Iterable

from kerf.controllers.conditions import complaint
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.explain.causes import cause_text
from kerf.engine.world import World
from kerf.model.nodepool import GPU_SHARING_MISCONFIGURED, NodePool
from kerf.model.snapshot import ConfigMap, Event, Synced, Watched
from kerf.sharing.registry import unreadable_for
from kerf.state import ClusterState

_MOST_SHOWN = 3
"""Problems in one message."""


class SharingStatus:
    """Keeps the condition GPUSharingMisconfigured of every pool."""

    name = "gpu-sharing-status"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook) -> None:
        self._state, self._ports, self._book = state, ports, book

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key: ConfigMaps, also those that cannot be read, and what pools state."""
        if isinstance(event, Synced) or isinstance(event.value, ConfigMap):
            return ("pools",)
        if not isinstance(event.value, NodePool):
            return ()
        is_same = isinstance(previous, NodePool) and previous.template() == event.value.template()
        return () if is_same else ("pools",)

    async def reconcile(self, key: str) -> Result:
        """Write the condition of every pool of which it says something else."""
        if not self._state.pools():
            return DONE
        now = self._ports.clock.now_s()
        snapshot = self._state.snapshot(now)
        offered = World(snapshot, await self._book.market(snapshot)).supply
        for pool in snapshot.node_pools:
            unreadable = unreadable_for(
                pool.labels,
                pool.stated_annotations,
                offered.families,
                self._state.unreadable_config_maps(),
                snapshot.config_maps,
            )
            unshown = (cause_text(problem) for name, problem in offered.sharing_problems if name == pool.name)
            problems = (*(cause_text(problem) for problem in unreadable), *unshown)
            condition = complaint(pool, GPU_SHARING_MISCONFIGURED, _message(problems), "AsConfigured", now)
            if condition is not None:
                await self._ports.writer.update_node_pool_status(pool.name, None, (condition,))
        return DONE


def _message(problems: tuple[str, ...]) -> str:
    more = len(problems) - _MOST_SHOWN
    return "; ".join((*problems[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])))
