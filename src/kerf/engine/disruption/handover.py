"""Whether the pods of a node that goes for others have their places once these are up.

Between the purchase and that moment a scheduler may put any pod on the new nodes.
"""

from dataclasses import replace
from enum import StrEnum

from kerf.engine.decide import decide
from kerf.engine.world import World


class Handover(StrEnum):
    """Where the pods can go: to nodes that are up, to nodes that start or are to be bought, or some of them nowhere."""

    READY = "ready"
    COMING = "coming"
    NOWHERE = "nowhere"


def handover(world: World, node: str) -> Handover:
    """Of the pods of that node, with those of all others that go. Cost: one decision for these pods."""
    snapshot = replace(world.snapshot, windows=(), windowed=(), cron_jobs=())
    made = decide(world.of(snapshot), replace(world.options, with_bound=False))
    mine = {key for key, home in made.world.snapshot.leaving.items() if home == node}
    up = {each.name for each in snapshot.nodes if each.node is not None and each.is_initialized}
    homes = {each.pod.pod: each.node for each in made.placements}
    if all(homes.get(key, "") in up for key in mine):
        return Handover.READY
    refused = {pod.key for refusal in made.refusals for pod in refusal.pods}
    return Handover.NOWHERE if mine & refused else Handover.COMING
