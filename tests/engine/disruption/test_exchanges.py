"""A move to another model of GPU is named in the words of what goes and of what is bought, and no other move is."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.command import Command
from kerf.engine.disruption.consolidation import propose as delete
from kerf.engine.disruption.repacking import propose as repack
from kerf.engine.explain.disruption import explained
from kerf.engine.world import World
from kerf.model.instancetypes import InstanceType
from kerf.model.pods import Owner, Pod
from kerf.testing.builders import NOON_S, a_market, an_instance_type, cards
from tests.engine.disruption.clusters import a_cluster, free_pool, may_go, on, ours
from tests.engine.worlds import seen

DEAR = an_instance_type("g5.xlarge", cpu=4, devices=cards(1, model="A10G"), price="1.00")
CHEAP = an_instance_type("g4dn.xlarge", cpu=4, devices=cards(1, 15_360, "T4"), price="0.50")
CHEAP_ALIKE = an_instance_type("g5.large", cpu=4, devices=cards(1, model="A10G"), price="0.50")


def node(name: str, kind: InstanceType) -> tuple[Any, Any]:
    """A node of the type, which may go."""
    size = {"cpu": 4, "memory": "16Gi", "pods": 58, "nvidia.com/gpu": 1}
    return ours(name, instance_type=kind.name, allocatable=size)


def pod(name: str, **asked: Any) -> Pod:
    """One that has run for a day on the node of the name."""
    return on(name, f"of-{name}", owner=Owner("ReplicaSet", "web"), created_s=NOON_S - 86_400, **asked)


def words(command: Command | None) -> tuple[list[str], list[str]]:
    """Why nodes go, and why others are bought."""
    assert command is not None
    made = explained(command)
    return [each.why for each in made.deletions], [each.why for each in made.launches]


@pytest.mark.parametrize("new, said", [(CHEAP, "; A10G -> T4"), (CHEAP_ALIKE, "")])
def test_a_pod_that_gets_another_model_on_a_new_node_is_named(new: InstanceType, said: str) -> None:
    """Both models, in the words of the old node and of the new one."""
    snapshot = a_cluster([free_pool()], [node("old", DEAR)], [pod("old", gpu=1)])
    going, coming = words(next(repack(World(snapshot, a_market(DEAR, new)), may_go(snapshot)), None))

    assert [f"1 pod costs less on 1 new node, saves 0.50 USD/h{said}"] == going
    assert [f"takes 1 pod of node old, which then goes{said}"] == coming


@pytest.mark.parametrize("asked, said", [({"gpu": 1}, "; A10G -> T4"), ({"cpu": 1}, "")])
def test_a_pod_that_moves_to_a_node_there_is_named_the_same(asked: dict[str, int], said: str) -> None:
    """Where it asks for a GPU; any other pod has no model."""
    nodes = [node("old", DEAR), node("there", CHEAP)]
    values = [free_pool(), *(value for pair in nodes for value in pair), pod("old", **asked)]
    snapshot = seen(*values)
    world = World(snapshot, a_market(DEAR, CHEAP))
    (command,) = [each for each in delete(world, may_go(snapshot)) if each.deletions[0].node == "old"][:1]

    assert [f"1 pod fits on other nodes, saves 1.00 USD/h{said}"] == words(command)[0]


def test_a_node_of_an_unknown_type_has_the_models_that_its_cards_register() -> None:
    """And one of which nothing is known names none."""
    snapshot = a_cluster([free_pool()], [node("old", DEAR)], [pod("old", gpu=1)])
    known = next(repack(World(snapshot, a_market(DEAR, CHEAP)), may_go(snapshot)), None)
    assert known is not None
    nameless = replace(DEAR, devices=cards(1, model=""))
    unnamed = next(repack(World(snapshot, a_market(nameless, CHEAP)), may_go(snapshot)), None)

    assert (("A10G", "T4"),) == known.deletions[0].exchanges
    assert "->" not in words(unnamed)[0][0]
