"""Models of GPU that pods have where they run, and get where they are moved: what an owner wants to know of a move.

A move that saves money may lead from an A10G to a T4. Kerf takes what a pod asks for as all that it needs, so the words
of the move name both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kerf.engine.disruption.causes import TakesPods
from kerf.engine.supply.pricing import present_type
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.plan import Deletion, Launch
from kerf.model.snapshot import ClusterNode

Pairs = tuple[tuple[Name, Name], ...]
"""Models before and after, each pair once, in their order."""


def with_exchanges(
    world: World, deletions: Sequence[Deletion], launches: Sequence[Launch]
) -> tuple[tuple[Deletion, ...], tuple[Launch, ...]]:
    """The same, each with the models that its pods exchange. Cost: the pods of the nodes that go."""
    models = _Models(world)
    bought = {launch.name: launch for launch in launches}
    into: dict[str, set[tuple[Name, Name]]] = {}
    made = list[Deletion]()
    for deletion in deletions:
        node = world.snapshot.node(deletion.node)
        old = models.of(node) if node is not None else ()
        found = set[tuple[Name, Name]]()
        for place in deletion.moved if old else ():
            if place.pod.parts:
                found.update(_pairs(old, models.of(world.snapshot.node(place.node))))
        mine = {pod.key for pod in node.pods} if node is not None and old else set[str]()
        for name in deletion.replaced_by:
            launch = bought.get(name)
            if launch is not None and any(each.parts and each.pod in mine for each in launch.pods):
                pairs = _pairs(old, (Name(shape.model.name) for shape in launch.devices))
                found.update(pairs)
                into.setdefault(name, set()).update(pairs)
        made.append(replace(deletion, exchanges=tuple(sorted(found))) if found else deletion)
    return tuple(made), tuple(_taking(launch, into.get(launch.name, set())) for launch in launches)


def _taking(launch: Launch, pairs: set[tuple[Name, Name]]) -> Launch:
    cause = launch.cause
    if not pairs or not isinstance(cause, TakesPods):
        return launch
    return replace(launch, cause=replace(cause, exchanges=tuple(sorted(pairs))))


def _pairs(old: Iterable[Name], new: Iterable[Name]) -> Pairs:
    """None where a card of the same model is on both sides."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    return () if before.keys() & after.keys() else tuple((one, other) for one in before for other in after)


class _Models:
    """The models of nodes by their types, or as their cards register where the type is not known."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, tuple[Name, ...]] = {}

    def of(self, node: ClusterNode | None) -> tuple[Name, ...]:
        """Those of a node; none where nothing says."""
        if node is None:
            return ()
        if node.name not in self._known:
            kind = present_type(node, self._world.supply)
            named = [shape.model.name for shape in kind.devices] if kind is not None else []
            held = named or [device.model for device in node.devices]
            self._known[node.name] = tuple(dict.fromkeys(Name(model) for model in held if model))
        return self._known[node.name]
