"""What pre-warming learns and warns of: how long nodes take, kept on their pool, and CronJobs that will miss theirs.

The node of a run often is gone before the next one is near, so what its start took must be written down.
"""

from collections.abc import Iterable

from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.explain.runs import warning_text
from kerf.engine.headroom.prewarm import Leads, leads_annotation, observed_leads, prewarmed, warnings
from kerf.model import events
from kerf.model.cronjobs import LEAD_TIMES, CronJob
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.state import ClusterState

_POOL, _CRON_JOB = "pool ", "cronjob "


class Prewarm:
    """Pools whose nodes have become ready, and CronJobs that have changed."""

    name = "prewarm"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports
        # The claims whose nodes are ready, as the watch has shown.
        self._ready: set[str] = set()

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """All of both at the start."""
        if isinstance(event, Synced):
            pools = (_POOL + pool.name for pool in self._state.pools())
            return (*pools, *(_CRON_JOB + each.key for each in self._state.cron_jobs()))
        value = event.value
        if isinstance(value, CronJob):
            return () if isinstance(event, Deleted) else (_CRON_JOB + value.key,)
        if not isinstance(value, NodeClaim):
            return ()
        if isinstance(event, Deleted):
            self._ready.discard(value.name)
        elif value.is_true(INITIALIZED) and value.name not in self._ready:
            # Not by `previous`: what we wrote ourselves is in the state before the watch shows it.
            self._ready.add(value.name)
            return (_POOL + value.node_pool,)
        return ()

    async def reconcile(self, key: str) -> Result:
        """Note what nodes of a pool took, where any CronJob is prewarmed; or say what is wrong with a CronJob."""
        if key.startswith(_POOL):
            await self._note(key.removeprefix(_POOL))
            return DONE
        found = self._state.find("CronJob", key.removeprefix(_CRON_JOB))
        if isinstance(found, CronJob):
            for why in warnings(found, Leads(self._state.pools(), self._state.claims())):
                self._ports.recorder.record(events.prewarm_warning(found.key, warning_text(why)))
        return DONE

    async def _note(self, name: str) -> None:
        pool, claims = self._state.pool(name), self._state.claims()
        if pool is None or not prewarmed(self._state.cron_jobs(), self._state.pools(), claims):
            return
        change = leads_annotation(observed_leads(pool, claims))
        if pool.own_annotations.get(LEAD_TIMES) != change[LEAD_TIMES]:
            await self._ports.writer.annotate_node_pool(name, change)
