"""What a scheduler remembers of earlier attempts."""

from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.sim.kubernetes.attempts import KnownRefusals, prepared, verdict
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.filters import Attempt
from kerf.sim.kubernetes.rooms import Rooms
from tests.sim.world import World, node, pod


def test_of_nodes_that_come_and_go_no_more_is_remembered_than_there_are() -> None:
    """Else weeks of a fleet, each of whose nodes lives for hours, would fill the memory."""
    world = World()
    rooms, known = Rooms(world.api), KnownRefusals()
    raw = world.api.create(pod())
    value = decoded(raw)
    assert isinstance(value, Pod)
    attempt = prepared(value, raw, rooms)
    assert isinstance(attempt, Attempt)
    for number in range(20):
        made = decoded(world.api.create(node(f"node-{number:02}")))
        assert isinstance(made, Node)
        rooms.set_node(made)
        verdict(attempt, rooms, {}, known)
        assert len(known.of(attempt)) <= 2 * len(rooms)
        if number >= 2:
            rooms.drop_node(f"node-{number - 2:02}")
    world.loop.close()
