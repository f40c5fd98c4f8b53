"""Models of GPU that pods have where they run, and get where they are moved: what an owner wants to know of a move.

A move that saves money may lead from an A10G to a T4. Kerf takes what a pod asks for as all that it needs, so the words
of the move name both.
"""

from collections.abc import Sequence
from dataclasses import replace

from kerf.engine.disruption.causes import TakesPods
from kerf.engine.supply.cardmodels import exchanges, models_of
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.plan import Deletion, Launch


def with_exchanges(
    world: World, deletions: Sequence[Deletion], launches: Sequence[Launch]
) -> tuple[tuple[Deletion, ...], tuple[Launch, ...]]:
    """The same, each with the models that its pods exchange. Cost: the pods of the nodes that go."""
    known = dict[str, tuple[Name, ...]]()

    def models(name: str) -> tuple[Name, ...]:
        if name not in known:
            known[name] = models_of(world.snapshot.node(name), world.supply)
        return known[name]

    bought = {launch.name: launch for launch in launches}
    into: dict[str, set[tuple[Name, Name]]] = {}
    made = list[Deletion]()
    for deletion in deletions:
        node = world.snapshot.node(deletion.node)
        old = models(deletion.node)
        found = set[tuple[Name, Name]]()
        for place in deletion.moved if old else ():
            if place.pod.parts:
                found.update(exchanges(old, models(place.node)))
        mine = {pod.key for pod in node.pods} if node is not None and old else set[str]()
        for name in deletion.replaced_by:
            launch = bought.get(name)
            if launch is not None and any(each.parts and each.pod in mine for each in launch.pods):
                pairs = exchanges(old, (Name(shape.model.name) for shape in launch.devices))
                found.update(pairs)
                into.setdefault(name, set()).update(pairs)
        made.append(replace(deletion, exchanges=tuple(sorted(found))) if found else deletion)
    return tuple(made), tuple(_taking(launch, into.get(launch.name, set())) for launch in launches)


def _taking(launch: Launch, pairs: set[tuple[Name, Name]]) -> Launch:
    cause = launch.cause
    if not pairs or not isinstance(cause, TakesPods):
        return launch
    return replace(launch, cause=replace(cause, exchanges=tuple(sorted(pairs))))
