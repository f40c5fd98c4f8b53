"""What a group that cannot come keeps from being moved."""

from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.relocation import relocation
from kerf.engine.world import World
from kerf.model.nodeclaim import CONSOLIDATABLE, Condition
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("m5.xlarge", cpu=4))
REACHED = tuple(Condition(each, "True", each) for each in (CONSOLIDATABLE, "Initialized", "Launched", "Registered"))


def world(least: int) -> ClusterSnapshot:
    """Two nodes, a pod on one of them, and one waiting pod of a group that would take the room on the other."""
    labels = {"kerf.dev/pod-group": "g", "kerf.dev/pod-group-min": str(least)}
    pods = [a_pod("moves", cpu=2, node_name="n0", phase="Running"), a_pod("g-0", cpu=3, labels=labels, uid="g")]
    claims = [a_claim(f"c{i}", node_name=f"n{i}", conditions=REACHED) for i in range(2)]
    return a_snapshot(pods=pods, pools=[a_pool()], nodes=[a_node("n0"), a_node("n1")], claims=claims)


def test_a_group_that_lacks_members_keeps_no_room() -> None:
    """A pod may be moved where only they would go; where the group is there, its room is its own."""
    for least, is_movable in ((2, True), (1, False)):
        snapshot = world(least)
        candidate = next(each for each in candidates(snapshot)[0] if each.node.name == "n0")

        assert is_movable == (relocation(World(snapshot, MARKET), candidate) is not None)
