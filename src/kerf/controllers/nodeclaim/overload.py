"""Says of nodes that are overloaded by pods which ask for too little, once when it begins.

Nothing is done about it: pods that are scheduled are the scheduler's, and what they ask is their owner's. The condition
of the claim is the memory of an episode, and an annotation has the workloads that were named, so a restart says nothing
again; a node without a claim has neither, and events repeat after one. Usage may be known before the pods that cause it
are: a workload that is found later has its event later.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.controllers.usage import UsageBook
from kerf.engine.study.usage.overload import Crowd, NodeLoad, crowd_text, crowds, is_calm, load_of, load_text
from kerf.model import events
from kerf.model.nodeclaim import FALSE, OVERLOADED, OVERLOADED_BY, TRUE, Condition, NodeClaim
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, Event, Synced, Watched
from kerf.model.usage import NO_USAGE, Usage
from kerf.state import ClusterState

_LOOK_S = 5.0
"""How often to look whether usage was read again; all else waits for that."""
_MOST_NAMED = 5
"""Workloads of one node in an episode, those that use most first: each run of an orchestrator is a Job of its own."""
_WITHIN = "WithinRequests"


class Overload:
    """Keeps the condition Overloaded of claims, and informs nodes and workloads."""

    name = "overload"

    def __init__(self, state: ClusterState, ports: Ports, book: UsageBook, settings: Settings) -> None:
        self._state, self._ports, self._book, self._settings = state, ports, book, settings
        self._seen: Usage = NO_USAGE
        # Overloaded nodes that have no claim to keep it, with who was named.
        self._unclaimed: dict[str, tuple[str, ...]] = {}

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
        loads: dict[str, NodeLoad] = {}
        self._unclaimed = {name: owners for name, owners in self._unclaimed.items() if snapshot.node(name) is not None}
        known = {owner for node in snapshot.nodes for owner in self._owners(node)}
        fresh: dict[str, tuple[str, ...]] = {}
        for node in snapshot.nodes:
            # Most nodes are calm, and a hundred thousand pods need not be summed up for them.
            load = None if is_calm(node, usage) and not self._was(node) else load_of(node, usage)
            if load is None or node.is_deleting:
                continue
            loads[node.name] = load
            resources = load.overloaded(was=self._was(node))
            held = self._owners(node)
            found = [_name(crowd) for crowd in crowds(node.pods, usage, resources)] if resources else []
            owners = (*held, *(name for name in found if name not in held))[:_MOST_NAMED] if resources else ()
            if bool(resources) != self._was(node) or owners != held:
                await self._mark(node, load, resources, owners)
                fresh.update({name: resources for name in owners if name not in known})
        self._tell(snapshot, loads, usage, fresh)

    def _was(self, node: ClusterNode) -> bool:
        return node.claim.is_true(OVERLOADED) if node.claim is not None else node.name in self._unclaimed

    def _owners(self, node: ClusterNode) -> tuple[str, ...]:
        """Who was named for this node in this episode."""
        claim = node.claim
        if claim is None:
            return self._unclaimed.get(node.name, ())
        return _read(claim.annotations.get(OVERLOADED_BY, "")) if claim.is_true(OVERLOADED) else ()

    async def _mark(
        self, node: ClusterNode, load: NodeLoad, resources: tuple[str, ...], owners: tuple[str, ...]
    ) -> None:
        """Write the condition, with those who are to be named, then say it on the node when it begins."""
        claim, now_s, is_new = node.claim, self._ports.clock.now_s(), not self._was(node)
        text = load_text(load, resources)
        if claim is not None:
            status, reason = (TRUE, "UsedBeyondRequests") if resources else (FALSE, _WITHIN)
            message = text + ("; by " + ", ".join(owners) if owners else "")
            # First: after a crash the condition never stands there without them.
            noted = await self._note(claim, owners)
            marked = noted.with_condition(Condition(OVERLOADED, status, reason, message, now_s))
            self._state.note(await self._ports.writer.update_node_claim_status(marked))
        elif resources:
            self._unclaimed[node.name] = owners
        else:
            self._unclaimed.pop(node.name, None)
        if resources and is_new:
            self._ports.recorder.record(events.node_overloaded(node.name, text, now_s))

    async def _note(self, claim: NodeClaim, owners: tuple[str, ...]) -> NodeClaim:
        """The claim with these workloads in its annotation, or without the annotation where there are none."""
        annotations = {key: value for key, value in claim.annotations.items() if key != OVERLOADED_BY}
        if owners:
            annotations[OVERLOADED_BY] = json.dumps(owners)
        if annotations == claim.annotations:
            return claim
        noted = await self._ports.writer.update_node_claim(replace(claim, annotations=annotations))
        self._state.note(noted)
        return noted

    def _tell(
        self,
        snapshot: ClusterSnapshot,
        loads: Mapping[str, NodeLoad],
        usage: Usage,
        fresh: Mapping[str, tuple[str, ...]],
    ) -> None:
        """One event for each of these owners, with all its pods on overloaded nodes."""
        if not fresh:
            return
        busy = [node for node in snapshot.nodes if node.name in loads and loads[node.name].overloaded()]
        resources = tuple(dict.fromkeys(name for names in fresh.values() for name in names))
        for crowd in crowds((pod for node in busy for pod in node.pods), usage, resources):
            if _name(crowd) in fresh:
                nodes = [node.name for node in busy if any(_is_of(pod, crowd) for pod in node.pods)]
                where = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes"
                text = f"{crowd_text(crowd, fresh[_name(crowd)])} on {where}"
                now_s = snapshot.taken_at_s
                self._ports.recorder.record(events.workload_overloads(crowd.kind, crowd.key, crowd.uid, text, now_s))


def _read(text: str) -> tuple[str, ...]:
    """The names in the annotation; none where anything else stands there."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()


def _name(crowd: Crowd) -> str:
    return f"{crowd.kind} {crowd.key}"


def _is_of(pod: Pod, crowd: Crowd) -> bool:
    owner = pod.owner
    kind, name = (owner.kind, owner.name) if owner is not None else ("Pod", pod.name)
    return (kind, pod.namespace, name) == (crowd.kind, crowd.namespace, crowd.name)
