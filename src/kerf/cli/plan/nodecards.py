"""The cards of nodes that pods are placed on, as a plan shows them: of a node on its way those that it is promised."""

from collections.abc import Mapping

from kerf.engine.place.noderooms import cards_of, family_of
from kerf.engine.world import World
from kerf.model.gpu import DeviceState
from kerf.sharing.registry import families_of


class NodeCards:
    """Cards by the name of their node and their index. Each node is looked at once, however many pods come to it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._families = families_of(world.snapshot)
        self._known: dict[str, Mapping[int, DeviceState]] = {}

    def of(self, name: str) -> Mapping[int, DeviceState]:
        """The cards of the node; none where there is no such node."""
        if name not in self._known:
            node = self._world.snapshot.node(name)
            if node is None:
                return {}
            found = cards_of(node, family_of(node, self._families), self._world.market)
            self._known[name] = {device.index: device for device in found}
        return self._known[name]
