"""Says of nodes that are overloaded by pods which ask for too little, once when it begins.

Nothing is done about it: pods that are scheduled are the scheduler's, and what they ask is their owner's. The condition
of the claim is the memory of an episode, so that a restart says nothing anew; a node without a claim has none, and is
told again after one.
"""

from collections.abc import Iterable, Mapping

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.controllers.usage import UsageBook
from kerf.engine.overload import NodeLoad, crowd_text, crowds, load_text, node_loads
from kerf.model import events
from kerf.model.nodeclaim import FALSE, OVERLOADED, TRUE, Condition
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, Event, Synced, Watched
from kerf.model.usage import NO_USAGE, Usage
from kerf.state import ClusterState

_LOOK_S = 5.0
"""How often to look whether usage was read anew; all else waits for that."""
_MOST_TOLD = 5
"""Workloads of one episode that are told, those that use most first: a run of an orchestrator is a Job of its own."""
_WITHIN = "WithinRequests"


class Overload:
    """Keeps the condition Overloaded of claims, and tells nodes and workloads."""

    name = "overload"

    def __init__(self, state: ClusterState, ports: Ports, book: UsageBook, settings: Settings) -> None:
        self._state, self._ports, self._book, self._settings = state, ports, book, settings
        self._seen: Usage = NO_USAGE
        # Overloaded nodes that have no claim to keep it.
        self._unclaimed: set[str] = set()

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Once, when all is known: from there on it is usage that changes."""
        is_on = self._ports.usage is not None and self._settings.usage_poll_s > 0
        return ("nodes",) if is_on and isinstance(event, Synced) else ()

    async def reconcile(self, key: str) -> Result:
        """Compare each node of which something new is known with what was said of it."""
        if self._ports.usage is None:
            return DONE
        usage = self._book.usage
        if usage is not self._seen and (usage.nodes or usage.pods):
            await self._look(usage)
        self._seen = usage
        return Result(min(_LOOK_S, self._settings.usage_poll_s))

    async def _look(self, usage: Usage) -> None:
        snapshot = self._state.snapshot(self._ports.clock.now_s())
        loads = node_loads(snapshot, usage)
        self._unclaimed &= {node.name for node in snapshot.nodes}
        known = {_owner(pod) for node in snapshot.nodes if self._was(node) for pod in node.pods}
        begun: dict[str, tuple[str, ...]] = {}
        for node in snapshot.nodes:
            load = loads.get(node.name)
            if load is None or node.is_deleting:
                continue
            resources = load.overloaded(was=self._was(node))
            if bool(resources) != self._was(node):
                await self._mark(node, load, resources, snapshot.taken_at_s)
                if resources:
                    begun[node.name] = resources
        pods = [pod for name in begun for pod in _pods_on(snapshot, name) if _owner(pod) not in known]
        self._tell(pods, begun, usage, snapshot.taken_at_s)

    def _was(self, node: ClusterNode) -> bool:
        if node.claim is not None:
            return node.claim.is_true(OVERLOADED)
        return node.name in self._unclaimed

    async def _mark(self, node: ClusterNode, load: NodeLoad, resources: tuple[str, ...], now_s: float) -> None:
        """Write the condition, then say it on the node when it begins."""
        text = load_text(load, resources)
        claim = node.claim
        if claim is not None:
            status, reason = (TRUE, "UsedBeyondRequests") if resources else (FALSE, _WITHIN)
            marked = claim.with_condition(Condition(OVERLOADED, status, reason, text, now_s))
            self._state.note(await self._ports.writer.update_node_claim_status(marked))
        elif resources:
            self._unclaimed.add(node.name)
        else:
            self._unclaimed.discard(node.name)
        if resources:
            self._ports.recorder.record(events.node_overloaded(node.name, text, now_s))

    def _tell(self, pods: Iterable[Pod], begun: Mapping[str, tuple[str, ...]], usage: Usage, now_s: float) -> None:
        """One event for each workload whose pods do it; those that are told of another node already are left out."""
        resources = tuple(dict.fromkeys(name for names in begun.values() for name in names))
        for crowd in crowds(pods, usage, resources)[:_MOST_TOLD]:
            where = f"node {next(iter(begun))}" if len(begun) == 1 else f"{len(begun)} nodes"
            text = f"{crowd_text(crowd, resources)} on {where}"
            self._ports.recorder.record(events.workload_overloads(crowd.kind, crowd.key, crowd.uid, text, now_s))


def _owner(pod: Pod) -> tuple[str, str, str]:
    return (pod.namespace, pod.owner.kind, pod.owner.name) if pod.owner is not None else (pod.namespace, "", pod.name)


def _pods_on(snapshot: ClusterSnapshot, name: str) -> tuple[Pod, ...]:
    node = snapshot.node(name)
    return node.pods if node is not None else ()
