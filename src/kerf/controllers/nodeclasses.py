"""The provider's NodeClasses: what each selects is found again and again, and written on it.

A pool buys nothing before its NodeClass is resolved, and a NodeClass that goes waits for its claims: an instance that
starts without what was made for it never joins. So the finalizer comes before anything is made.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.cloudprovider import NodeClasses
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.model import events
from kerf.model.nodeclaim import NodeClaim, NodeClassRef
from kerf.model.nodepool import NodePool, is_read_alike
from kerf.model.snapshot import Deleted, Event, NodeClass, Synced, Watched
from kerf.ports import NodeClassStore, NotFound
from kerf.state import ClusterState

_WAITS_S = 60.0


class NodeClassLoop:
    """One NodeClass at a time; none where the provider has no kind of its own. A dry run writes nothing."""

    name = "node-classes"

    def __init__(self, state: ClusterState, ports: Ports, *, is_dry_run: bool = False) -> None:
        self._state, self._ports, self._is_dry_run = state, ports, is_dry_run
        self._kinds, self._store = ports.cloud.node_classes, ports.node_classes

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """NodeClasses that change, those whose pools do, and those whose claims go."""
        kinds = self._kinds
        if kinds is None:
            return ()
        if isinstance(event, Synced):
            return tuple(each.name for each in self._state.node_classes() if _is_of(kinds, each.reference))
        value = event.value
        if isinstance(value, NodeClass):
            return (value.name,) if _is_of(kinds, value.reference) else ()
        if isinstance(value, NodePool):
            before = previous if isinstance(previous, NodePool) else None
            if before is not None and not isinstance(event, Deleted) and is_read_alike(before, value):
                return ()
            named = {each.node_class for each in (value, before) if each is not None}
            return tuple(sorted(each.name for each in named if _is_of(kinds, each)))
        is_gone = isinstance(event, Deleted) and isinstance(value, NodeClaim) and _is_of(kinds, value.node_class)
        return (value.node_class.name,) if is_gone and isinstance(value, NodeClaim) else ()

    async def reconcile(self, key: str) -> Result:
        """Resolve it and write what was found, or end it."""
        kinds, store = self._kinds, self._store
        if kinds is None or store is None:
            return DONE
        try:
            held = await store.read(key)
        except NotFound:
            kinds.forget(key)
            return DONE
        if held["metadata"].get("deletionTimestamp"):
            return await self._end(kinds, store, held)
        if self._is_dry_run:
            return Result((await kinds.resolve(held, pools=self._pools(kinds, key), only_reads=True)).again_s)
        if kinds.finalizer not in _finalizers(held):
            held = await store.mark(held, finalizers=(*_finalizers(held), kinds.finalizer))
        found = await kinds.resolve(held, pools=self._pools(kinds, key))
        if not found.annotations.items() <= (held["metadata"].get("annotations") or {}).items():
            held = await store.mark(held, annotations=found.annotations)
        if found.status != held.get("status"):
            await store.write_status(held, found.status)
        return Result(found.again_s)

    def _pools(self, kinds: NodeClasses, name: str) -> tuple[NodePool, ...]:
        """The pools that name it, by name, as their manifests have them: what changes by itself is left out."""
        named = (each for each in self._state.pools() if _is_of(kinds, each.node_class))
        return tuple(each.template() for each in named if each.node_class.name == name and each.deleted_s is None)

    async def _end(self, kinds: NodeClasses, store: NodeClassStore, held: Mapping[str, Any]) -> Result:
        """Let it go once no claim uses it and nothing is left of it. Launches by it have ended: it is not usable."""
        name = held["metadata"]["name"]
        if self._is_dry_run or kinds.finalizer not in _finalizers(held):
            return DONE
        await kinds.resolve(held, only_reads=True)
        claims = sorted(
            claim.name
            for claim in self._state.claims()
            if claim.node_class.name == name and _is_of(kinds, claim.node_class)
        )
        if claims:
            self._ports.recorder.record(events.node_class_waits(kinds.kind, name, claims))
            return Result(_WAITS_S)
        await kinds.release(held)
        rest = tuple(each for each in _finalizers(held) if each != kinds.finalizer)
        await store.mark(held, finalizers=rest)
        return DONE


def _finalizers(held: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(held["metadata"].get("finalizers") or ())


def _is_of(kinds: NodeClasses, reference: NodeClassRef) -> bool:
    return (reference.group, reference.kind) == (kinds.group, kinds.kind)
