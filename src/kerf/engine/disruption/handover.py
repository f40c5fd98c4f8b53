"""Whether the pods of a node that goes for others have their places once these are up.

Between the purchase and that moment a scheduler may put any pod on the new nodes.
"""

from collections.abc import Mapping, Set
from dataclasses import replace
from enum import StrEnum

from kerf.engine.decide import decide
from kerf.engine.leaving import without_windows
from kerf.engine.world import World


class Handover(StrEnum):
    """Where the pods can go: to nodes that are up, to nodes that start or are to be bought, or some of them nowhere."""

    READY = "ready"
    COMING = "coming"
    NOWHERE = "nowhere"


def handovers(world: World) -> Mapping[str, Handover]:
    """Of the pods of each node that goes, by its name; a node that is not there has no pods that need a place.

    Cost: one decision for all these pods.
    """
    snapshot = without_windows(world.snapshot)
    made = decide(world.of(snapshot), replace(world.options, with_bound=False, with_cost=False))
    up = {each.name for each in snapshot.nodes if each.node is not None and each.is_initialized}
    homes = {each.pod.pod: each.node for each in made.placements}
    refused = {pod.key for refusal in made.refusals for pod in refusal.pods}
    pods: dict[str, set[str]] = {}
    for key, node in made.world.snapshot.leaving.items():
        pods.setdefault(node, set()).add(key)
    return {node: _handover(mine, homes, up, refused) for node, mine in pods.items()}


def _handover(mine: Set[str], homes: Mapping[str, str], up: Set[str], refused: Set[str]) -> Handover:
    if all(homes.get(key, "") in up for key in mine):
        return Handover.READY
    return Handover.NOWHERE if mine & refused else Handover.COMING
