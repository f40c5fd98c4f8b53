"""An idle node gets another configuration where that serves pods, instead of a launch; one in use never does."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.model.nodepool import NodePool
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.promises import Promises, written
from kerf.model.snapshot import ClusterNode, ConfigMap
from kerf.sharing.registry import configured, owner_of
from kerf.testing.builders import a_claim, a_node, a_pod, a_pool
from tests.engine.buy.test_configuration_choice import LONE, OPEN, config_map, pods
from tests.engine.worlds import per_hour, planned
from tests.sharing.nvidia.builders import LAYOUT, PLUGIN, plugin_map

MIXED: ConfigMap = plugin_map("flags: {migStrategy: mixed}")
POOL = a_pool(labels={PLUGIN: "shared"}, own_annotations=OPEN)
SMALL = {LAYOUT: "small", PLUGIN: "shared"}


def cut_node(running: int = 0, name: str = "n", *, initialised: bool = True) -> ClusterNode:
    """A node of one A100 cut into seven small instances, of which some are in use."""
    amounts = {"cpu": 96, "memory": 1 << 40, "pods": 200, "nvidia.com/mig-1g.5gb": 7}
    node = a_node(name, instance_type=LONE.name, labels=SMALL, allocatable=amounts)
    reached = ("Launched", "Registered", "Initialized", "Ready") if initialised else ("Launched", "Registered")
    claim = a_claim(f"claim-{name}", instance_type=LONE.name, node_name=name, labels=SMALL, reached=reached)
    family = owner_of(SMALL, {}, configured([config_map(), MIXED]))
    (card,) = family.predict(LONE.devices, SMALL, {})
    part = replace(card.partitions[0], used=running)
    held = replace(card, partitions=(part,), used_slots=running)
    users = tuple(replace(pod, name=f"user-{i}", node_name=name) for i, pod in enumerate(pods({"mig-1g.5gb": running})))
    return ClusterNode(node, claim, users, (held,), "mig")


def decided(waiting: list[Pod], *nodes: ClusterNode, pool: NodePool = POOL) -> Plan:
    """The plan for these pods."""
    return planned(waiting, [pool], [LONE], nodes=nodes, config_maps=(config_map(), MIXED))


def test_an_idle_node_is_cut_again_instead_of_a_launch() -> None:
    """For as many pods as it then holds; the others get a node."""
    made = decided(pods({"mig-3g.20gb": 3}), cut_node())
    (relabel,) = made.relabels

    assert ("n", "claim-n", {LAYOUT: "halves"}) == (relabel.node, relabel.claim, dict(relabel.labels))
    assert [0, 0] == [part.device for placed in relabel.pods for part in placed.slices]
    assert {"n"} == {placement.node for placement in made.placements}
    assert [1] == [len(launch.pods) for launch in made.launches]
    assert "2 pods need 1 nvidia.com/mig-3g.20gb; no pod uses a GPU of the node" in relabel.why


def test_the_node_that_helps_most_is_cut_first() -> None:
    """And no more of them than are needed."""
    made = decided(pods({"mig-3g.20gb": 2}), cut_node(name="a"), cut_node(name="b"))

    assert ["a"] == [relabel.node for relabel in made.relabels]
    assert () == made.launches


def test_a_node_in_use_stays_as_it_is() -> None:
    """One instance in use is enough: the MIG manager cannot change such a card."""
    assert () == decided(pods({"mig-3g.20gb": 1}), cut_node(running=1)).relabels


def test_a_node_is_left_alone_where_nothing_is_gained() -> None:
    """Pods that it holds as it is, a pool that leaves no choice, a node that still starts, and none that asks a GPU."""
    plain = replace(POOL, own_annotations={})

    assert () == decided(pods({"mig-1g.5gb": 7}), cut_node()).relabels
    assert () == decided(pods({"mig-3g.20gb": 1}), cut_node(), pool=plain).relabels
    assert () == decided(pods({"mig-3g.20gb": 1}), cut_node(initialised=False)).relabels
    assert () == decided([a_pod("big", cpu=200)], cut_node()).relabels


def relabels_of(made: Plan) -> list[tuple[str, str]]:
    """Which node gets which layout."""
    return [(each.node, each.labels[LAYOUT]) for each in made.relabels]


def test_a_node_is_cut_again_for_pods_that_fit_it_too_where_that_saves_a_launch() -> None:
    """As it is it takes the small pods, and the half would need a node of its own; balanced it holds all three."""
    made = decided(pods({"mig-1g.5gb": 2, "mig-3g.20gb": 1}), cut_node())

    assert ([("n", "balanced")], ()) == (relabels_of(made), made.launches)
    assert 3 == len(made.placements)


def test_a_node_that_takes_pods_as_it_is_stays_where_both_ways_cost_the_same() -> None:
    """Whichever kind of pod gets the node, the other needs a launch."""
    made = decided(pods({"mig-1g.5gb": 7, "mig-3g.20gb": 2}), cut_node())

    assert ([], 1) == (relabels_of(made), len(made.launches))
    assert 7 == len(made.placements)


def test_of_several_nodes_those_are_cut_again_that_need_be() -> None:
    """One holds the small pods as it is, the other the halves."""
    counts = {"mig-1g.5gb": 8, "mig-3g.20gb": 1}
    made = decided(pods(counts), cut_node(name="a"), cut_node(name="b"))

    assert (["balanced"], ()) == ([layout for _, layout in relabels_of(made)], made.launches)
    assert 9 == len(made.placements)


def test_pods_without_cards_stay_on_a_node_that_is_cut_again() -> None:
    """They are no reason to change it, and it has room for them beside the instances."""
    plain = [a_pod("plain", cpu=90)]
    made = decided([*plain, *pods({"mig-1g.5gb": 2, "mig-3g.20gb": 1})], cut_node())

    assert ([("n", "balanced")], ()) == (relabels_of(made), made.launches)
    assert 4 == len(made.placements)


def test_a_node_that_was_promised_to_a_pod_stays_as_it_is() -> None:
    """Its scheduler may bind the pod at any moment, and the MIG manager cannot change a card in use."""
    waiting = pods({"mig-1g.5gb": 2, "mig-3g.20gb": 1})
    node = cut_node()
    assert node.claim is not None
    promised = replace(node.claim, annotations=written(Promises({"default/mig-1g-5gb-0": (0,)})))

    assert () == decided(waiting, replace(node, claim=promised)).relabels


def test_a_pod_that_loses_its_place_may_go_to_another_node_there_is() -> None:
    """Before a node is bought for it: one that is in use holds the small pods, the idle one the halves."""
    counts = {"mig-1g.5gb": 4, "mig-3g.20gb": 2}
    made = decided(pods(counts), cut_node(name="idle"), cut_node(3, name="used"))

    assert ([("idle", "halves")], ()) == (relabels_of(made), made.launches)
    assert 6 == len(made.placements)


@settings(max_examples=40)
@given(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))
def test_idle_nodes_never_cost_a_launch_more(small: int, middle: int, half: int, idle: int) -> None:
    """Than the same pods without any choice of layouts for the nodes that are there."""
    waiting = pods({"mig-1g.5gb": small, "mig-2g.10gb": middle, "mig-3g.20gb": half})
    nodes = [cut_node(name=f"n{number}") for number in range(idle)]
    in_use = [replace(node, claim=None) for node in nodes]
    free, fixed = decided(waiting, *nodes), decided(waiting, *in_use)

    assert (len(free.unplaced), per_hour(free)) <= (len(fixed.unplaced), per_hour(fixed))
