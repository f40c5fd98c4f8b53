"""What pods are worth: what they would cost an hour at the least in the cheapest fleet.

Prices of what nodes have (the proof of a lower bound, `model.lowerbound`) say so for all pods at once, so a node that
costs much more than its pods are worth is wasted, whatever its size.
"""

from collections.abc import Iterable, Sequence

from kerf.engine.bounding import alone
from kerf.engine.buy.bound import proven_of_served
from kerf.engine.world import World
from kerf.model.lowerbound import NANO
from kerf.model.pods import Pod


class Worths:
    """Of some pods, by key. Those that nothing for sale holds are not known, nor any where nothing can be proven.

    Cost: the bound of all these pods.
    """

    def __init__(self, world: World, pods: Sequence[Pod]) -> None:
        self._nano = dict[str, int]()
        if not pods or not world.market.types:
            return
        bound, shapes = proven_of_served(alone(pods), world.supply.available, world.holding)
        if bound is not None:
            by_first = {each.pod: each.nano for each in bound.worths}
            self._nano = {pod.key: by_first.get(shape.pods[0].key, 0) for shape in shapes for pod in shape.pods}

    def knows(self, pods: Iterable[Pod]) -> bool:
        """Whether all of them are known."""
        return all(pod.key in self._nano for pod in pods)

    def nano(self, pod: Pod) -> int:
        """In nano-units an hour; 0 of one that is not known."""
        return self._nano.get(pod.key, 0)

    def micro(self, pods: Iterable[Pod]) -> int:
        """What they are worth together, in micro-units an hour, rounded down."""
        return sum(map(self.nano, pods)) // NANO
