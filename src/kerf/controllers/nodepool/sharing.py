"""Says of each NodePool what is wrong with its sharing of GPUs, as long as it is: nodes of it would show none."""

from collections.abc import Iterable, Iterator

from kerf.controllers.conditions import complaint
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.explain.causes import cause_text
from kerf.engine.supply.offered import Supply
from kerf.engine.world import World
from kerf.model.evidence import ClusterPolicy
from kerf.model.nodepool import GPU_SHARING_MISCONFIGURED, NodePool
from kerf.model.snapshot import ClusterSnapshot, ConfigMap, DaemonSet, Event, Synced, Watched
from kerf.sharing.installed import plugin_of, runs_on
from kerf.sharing.registry import unreadable_for
from kerf.sharing.wiring import ConfigMapAbsent, findings
from kerf.state import ClusterState

_MOST_SHOWN = 3
"""Problems in one message."""


class SharingStatus:
    """Keeps the condition GPUSharingMisconfigured of every pool."""

    name = "gpu-sharing-status"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook) -> None:
        self._state, self._ports, self._book = state, ports, book

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key: ConfigMaps, also those that cannot be read, what reads them, and what pools state."""
        if isinstance(event, Synced) or isinstance(event.value, ConfigMap | ClusterPolicy):
            return ("pools",)
        if isinstance(event.value, DaemonSet):
            is_plugin = plugin_of(event.value) is not None
            return ("pools",) if is_plugin else ()
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
            absent = self._absent(pool, snapshot, offered)
            unshown = (cause_text(problem) for name, problem in offered.sharing_problems if name == pool.name)
            problems = (*(cause_text(problem) for problem in unreadable), *absent, *unshown)
            condition = complaint(pool, GPU_SHARING_MISCONFIGURED, _message(problems), "AsConfigured", now)
            if condition is not None:
                await self._ports.writer.update_node_pool_status(pool.name, None, (condition,))
        return DONE

    def _absent(self, pool: NodePool, snapshot: ClusterSnapshot, offered: Supply) -> Iterator[str]:
        """The ConfigMaps that plugins of the pool's nodes read and that were not: `kerf run` reads by name."""
        held = (*offered.by_pool.get(pool.name, ()), *(c for c in offered.unavailable if c.pool.name == pool.name))
        if not any(each.kind.devices for each in held):
            return
        for each in findings(snapshot.config_maps, snapshot.evidence):
            is_theirs = each.plugin is not None and runs_on(each.plugin, pool.labels)
            if is_theirs and isinstance(each.cause, ConfigMapAbsent):
                yield f"{cause_text(each.cause)}; if it is there, kerf doctor has the command by which Kerf can read it"


def _message(problems: tuple[str, ...]) -> str:
    more = len(problems) - _MOST_SHOWN
    return "; ".join((*problems[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])))
