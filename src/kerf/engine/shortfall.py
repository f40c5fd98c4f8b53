"""A node whose cards registered less than was predicted: whether pods can use it as it is, and which.

Given back, it would be bought again for the same pods, and the time it took paid twice. What its claim promised is no
measure any more, so what decides is a plan that is made with the node as it registered.
"""

from collections.abc import Mapping

from kerf.engine.decision import Decision
from kerf.model.promises import read


def kept_for(decision: Decision, name: str) -> Mapping[str, tuple[int, ...]] | None:
    """The pods that the node's claim promises a place from now on, each with its cards; None where no pod can use it.

    The decision must be made from a snapshot that has the node with the cards that it registered. A pod uses it that
    holds a card there or is placed on one: a pod without cards is no reason to keep a machine with broken ones. Of the
    promised pods those stay that are placed there or are there already; in the order of the promise, because some
    loads of a card hold in no other. Empty where only other pods use the node. Cost: placements and promised pods.
    """
    node = decision.world.snapshot.node(name)
    if node is None or node.claim is None:
        return None
    found = {
        each.pod.pod: tuple(sorted({part.device for part in each.pod.slices}))
        for each in decision.placements
        if each.node == name and each.pod.slices
    }
    if not found and not any(device.used_slots for device in node.devices):
        return None
    there = {pod.key for pod in node.pods}
    promised = read(node.claim.annotations).pods
    return {key: found.get(key, cards) for key, cards in promised.items() if key in found or key in there}
