"""Pods that share a claim whose volume is still to be made run in one zone, because the first of them decides where."""

import random
from dataclasses import replace
from typing import Any

import pytest

from kerf.model.causes import Name
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.plan import RESERVE, Plan
from kerf.model.pods import Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.model.volumecauses import SharedElsewhere
from kerf.model.volumes import NO_PROVISIONER, CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kerf.testing.builders import a_node, a_pool, an_instance_type
from tests.engine.place.test_volumes import A, B, claim, stored, user, within, zones
from tests.engine.worlds import planned, refused

M5 = an_instance_type(zones=(A, B))
APP = Requirements.of_labels({"app": "web"})
APART = PodAffinity((PodAffinityTerm(HOSTNAME, APP),))
SPREAD = (TopologySpreadConstraint(ZONE, 1, APP),)
"""Over zones, evenly."""
ELSEWHERE = SharedElsewhere(Name("data"), Name(ZONE), (Name(A),), Name(B))


def sharer(name: str, *claims: str, **given: Any) -> Pod:
    """A pod that shares a claim, `data` by default, and no node with another one."""
    return user(name, *claims, labels={"app": "web"}, pod_anti_affinity=APART, **given)


def plan_of(*pods: Pod, **given: Any) -> Plan:
    """What is done for the pods, with a pool that has two zones."""
    return planned(pods, given.pop("pools", [a_pool()]), [M5], **given)


def of_team(name: str, team: str) -> PersistentVolumeClaim:
    """A claim of a namespace."""
    return replace(claim(name), namespace=team)


def test_what_is_bought_for_pods_with_one_claim_is_in_one_zone() -> None:
    """Each NodeClaim names it, or the cloud could choose another."""
    made = plan_of(sharer("p"), sharer("q"), sharer("r"), **stored(claim()))

    assert ([], 3, 1) == (refused(made), len(zones(made)), len(set(zones(made))))
    assert {within(ZONE, zones(made)[0])[ZONE]} == {launch.requirements[ZONE] for launch in made.launches}
    assert {RESERVE} == {launch.follow for launch in made.launches}


def test_the_reason_of_a_pod_that_cannot_be_in_that_zone_is_the_claim() -> None:
    """It must keep off the zone of the first pod, and its volume will be there: it cannot run."""
    away = PodAffinity((PodAffinityTerm(ZONE, APP),))
    pods = [user(name, labels={"app": "web"}, pod_anti_affinity=away) for name in "pq"]
    made = plan_of(*pods, **stored(claim()))

    assert [ELSEWHERE] == [each.cause for each in made.unplaced]
    assert "other pods with claim data are to run in zone us-east-1a, so its volume is made there, not in zone " in (
        made.unplaced[0].reason
    )


def test_one_that_asks_for_a_zone_decides_for_all() -> None:
    """Also where it comes last: the others can follow it, and it cannot follow them."""
    pods = [sharer("p"), sharer("q"), sharer("r", node_selector=within(ZONE, B))]
    random.Random(7).shuffle(pods)
    made = plan_of(*pods, **stored(claim()))

    assert ([], [B, B, B]) == (refused(made), zones(made))


def test_of_two_that_ask_for_two_zones_one_is_refused() -> None:
    """The first in the queue has the volume. The hint is a zone in which it can run."""
    made = plan_of(
        sharer("p", node_selector=within(ZONE, A)), sharer("q", node_selector=within(ZONE, B)), **stored(claim())
    )

    assert (["default/q"], [ELSEWHERE]) == (refused(made), [each.cause for each in made.unplaced])
    assert f'let the pod ask {ZONE} "{A}"' == made.unplaced[0].hint


@pytest.mark.parametrize("zone", [A, B])
def test_a_node_that_is_there_decides_for_what_is_bought(zone: str) -> None:
    """It takes the first pod, and nodes for the others are bought in its zone."""
    made = plan_of(sharer("p"), sharer("q"), nodes=[a_node(labels={ZONE: zone})], **stored(claim()))

    assert (["default/p"], [zone]) == ([placement.pod.pod for placement in made.placements], zones(made))


def test_nodes_that_are_there_take_them_in_one_zone() -> None:
    """The other zone has more room, and the first pod went elsewhere."""
    nodes = [a_node("a", labels={ZONE: A}), a_node("b", labels={ZONE: B}), a_node("c", labels={ZONE: B})]
    made = plan_of(sharer("p", node_selector=within(ZONE, B)), sharer("q"), nodes=nodes, pools=[], **stored(claim()))

    assert ({"b", "c"}, []) == ({placement.node for placement in made.placements}, refused(made))


def test_nodes_without_any_zone_are_one_place() -> None:
    """A cluster on one site has no zones, and its volumes can be anywhere."""
    made = plan_of(sharer("p"), sharer("q"), nodes=[a_node("a"), a_node("b")], pools=[], **stored(claim()))

    assert 2 == len(made.placements)


def test_claims_of_one_name_in_two_namespaces_are_two() -> None:
    """Each namespace has its own."""
    pods = [
        replace(sharer(team, node_selector=within(ZONE, zone)), namespace=team) for team, zone in (("x", A), ("y", B))
    ]
    made = plan_of(*pods, **stored(of_team("data", "x"), of_team("data", "y")))

    assert ([], [A, B]) == (refused(made), sorted(zones(made)))


def test_a_pod_with_two_claims_ties_their_pods_together() -> None:
    """Each volume is where it is, and so where all pods of both are."""
    pods = [
        sharer("p", "one", node_selector=within(ZONE, B)),
        sharer("q", "two"),
        sharer("r", "one", "two"),
        sharer("s", "three", node_selector=within(ZONE, A)),
        sharer("t", "three"),
    ]
    made = plan_of(*pods, **stored(claim("one"), claim("two"), claim("three")))

    assert ([], [A, A, B, B, B]) == (refused(made), sorted(zones(made)))


@pytest.mark.parametrize(
    "held",
    [
        stored(claim(), limits=[CSINode("n", everywhere=("ebs.csi.aws.com",))]),
        stored(claim(), classes=[StorageClass("fast", "efs.csi.aws.com", waits=True)]),
        stored(claim(volume="pv"), volumes=[PersistentVolume("pv")]),
    ],
)
def test_volumes_that_every_node_reaches_tie_no_pods(held: dict[str, Any]) -> None:
    """A driver without topology keys, a share on the network, or a volume that is there and asks for no zone."""
    made = plan_of(sharer("p", spread=SPREAD), sharer("q", spread=SPREAD), **held)

    assert ([], [A, B]) == (refused(made), sorted(zones(made)))


def test_a_claim_of_a_pod_that_runs_is_where_that_runs() -> None:
    """Its volume is being made, and no watch has shown it yet."""
    running = sharer("r", node_name="node", phase="Running")
    made = plan_of(sharer("p"), running, nodes=[a_node(labels={ZONE: B})], **stored(claim()))

    assert [B] == zones(made)


def test_a_claim_that_one_pod_alone_has_ties_nothing() -> None:
    """Equal pods with claims of their own stay one shape in what they ask of others."""
    pods = [sharer(f"p{n}", f"data-{n}", spread=SPREAD) for n in range(2)]
    made = plan_of(*pods, **stored(claim("data-0"), claim("data-1")))

    assert ([], [A, B]) == (refused(made), sorted(zones(made)))


SMALL: dict[str, str | int] = {"cpu": 1, "memory": "4Gi", "pods": 9}
HAND = StorageClass("hand", NO_PROVISIONER, waits=True)


def disks(count: int) -> dict[str, Any]:
    """A free disk on each of so many nodes, and a claim that takes one of them."""
    found = [
        PersistentVolume(f"pv-{n}", (within(HOSTNAME, f"n{n}"),), storage_class="hand", is_local=True, is_free=True)
        for n in range(count)
    ]
    return stored(claim(storage_class="hand"), volumes=found, classes=[HAND])


def test_pods_that_share_a_disk_of_a_node_are_on_that_node() -> None:
    """Whichever of the disks the first takes. Of a zone all nodes would do, and only on one would the others run."""
    nodes = [a_node(f"n{n}") for n in range(2)]
    made = plan_of(*(user(name) for name in "pqr"), nodes=nodes, pools=[], **disks(2))

    assert ([], 1) == (refused(made), len({placement.node for placement in made.placements}))


def test_a_pod_that_has_no_room_beside_the_disk_says_so() -> None:
    """The disk is where the first pod is. No node is bought: the others would not run there."""
    nodes = [a_node(f"n{n}", allocatable=SMALL) for n in range(2)]
    made = plan_of(*(user(name) for name in "pqr"), nodes=nodes, **disks(2))

    assert ([], ["default/q", "default/r"]) == ([*made.launches], refused(made))
    assert "other pods with claim data are to run on node n0, so its volume is there, not on a new node" in (
        made.unplaced[0].reason
    )
    assert "on one node" in made.unplaced[0].hint


def test_a_node_is_bought_for_those_that_share_a_disk_to_be() -> None:
    """The disk comes with the node, as Karpenter plans; who has no room there is refused for the sake of the claim."""
    made = plan_of(*(user(name) for name in "pqrstu"), **disks(2))

    assert (1, ["default/t", "default/u"]) == (len(made.launches), refused(made))
    assert "it must be on one node with all pods that share claim data, whose volume is a part of a node, and no " in (
        made.unplaced[0].reason
    )
    assert "<" not in f"{made.unplaced[0].reason}{made.unplaced[0].hint}"


def bound_disk(host: str) -> dict[str, Any]:
    """A claim that has a disk of a node."""
    local = PersistentVolume("pv", (within(HOSTNAME, host),), is_local=True)
    return stored(claim(volume="pv"), volumes=[local])


def test_no_node_is_bought_for_the_sharer_of_a_disk_whose_node_is_there() -> None:
    """It would not run on a new one: the disk stays. Once its node goes, it is made again elsewhere (behaviour 39)."""
    node, running = a_node("n1", allocatable=SMALL), user("r", node_name="n1", phase="Running")
    made = plan_of(user("p"), running, nodes=[node], **bound_disk("n1"))
    alone = plan_of(user("p"), nodes=[a_node("n0", allocatable=SMALL)], pools=[a_pool()], **bound_disk("n1"))

    assert ([], ["default/p"]) == ([*made.launches], refused(made))
    assert 1 == len(alone.launches) + len(alone.placements)


LVM = StorageClass("lvm", "topolvm.io", waits=True)
OWN = StorageClass("own", "disks.example.com", waits=True)
"""Of a driver that only its CSINodes know."""
OWN_DRIVER = CSINode("n0", of_node=("disks.example.com",))


@pytest.mark.parametrize(
    "held",
    [
        stored(claim(storage_class="lvm"), classes=[LVM]),
        stored(claim(storage_class="own"), classes=[OWN], limits=[OWN_DRIVER]),
    ],
    ids=["known", "stated"],
)
class TestDisksThatAreMade:
    """Volumes of a provisioner that makes them on the node where the first pod runs, as LVM's and hostPath's do."""

    def test_the_pods_are_on_one_node_that_is_there(self, held: dict[str, Any]) -> None:
        """Not merely in one zone: no other node reaches the volume."""
        nodes = [a_node(f"n{n}", labels={ZONE: A}) for n in range(2)]
        made = plan_of(*(user(name) for name in "pqr"), nodes=nodes, pools=[], **held)

        assert ([], 1) == (refused(made), len({placement.node for placement in made.placements}))

    def test_one_that_has_no_room_there_says_so(self, held: dict[str, Any]) -> None:
        """And no node is bought on which it would not run."""
        nodes = [a_node(f"n{n}", labels={ZONE: A}, allocatable=SMALL) for n in range(2)]
        made = plan_of(*(user(name) for name in "pq"), nodes=nodes, **held)

        assert ([], ["default/q"]) == ([*made.launches], refused(made))
        assert "run on node n0, so its volume is there, not on a new node" in made.unplaced[0].reason

    def test_one_node_is_bought_for_all(self, held: dict[str, Any]) -> None:
        """Two that may not share a node cannot both run."""
        made = plan_of(*(user(name) for name in "pq"), **held)
        apart = plan_of(sharer("p"), sharer("q"), **held)

        assert ([], 1) == (refused(made), len(made.launches))
        assert (["default/q"], 1) == (refused(apart), len(apart.launches))

    def test_a_pod_that_runs_has_it_on_its_node(self, held: dict[str, Any]) -> None:
        """No watch has shown the volume yet."""
        nodes = [a_node("n0", labels={ZONE: A}), a_node("n1", labels={ZONE: A}, allocatable=SMALL)]
        running = user("r", node_name="n1", phase="Running")
        made = plan_of(user("p"), running, nodes=nodes, **held)

        assert ([], ["default/p"]) == ([*made.launches], refused(made))


def test_a_disk_of_its_own_ties_no_pods() -> None:
    """Each is made where its pod runs."""
    pods = [sharer(f"p{n}", f"data-{n}", spread=SPREAD) for n in range(2)]
    held = stored(*(claim(f"data-{n}", storage_class="lvm") for n in range(2)), classes=[LVM])
    made = plan_of(*pods, **held)

    assert ([], [A, B]) == (refused(made), sorted(zones(made)))


def mixed(*names: str) -> dict[str, Any]:
    """Claims of which those whose name begins with `disk` are parts of nodes, and others of zones."""
    found = (claim(name, storage_class="lvm" if name.startswith("disk") else "fast") for name in names)
    return stored(*found, classes=[LVM, StorageClass("fast", "ebs.csi.aws.com", waits=True)])


def test_a_disk_ties_no_more_pods_to_its_node_than_have_it() -> None:
    """Those that share another volume with one of them are in its zone, on whatever node."""
    nodes = [a_node(f"n{n}", labels={ZONE: zone}, allocatable=SMALL) for n, zone in enumerate((B, B, A))]
    pods = [user("p", "disk", "data"), user("q", "data"), user("r", "disk")]
    there = plan_of(*pods, nodes=nodes, pools=[], **mixed("disk", "data"))
    pods = [user("p", "disk"), user("q", "disk", "data"), sharer("r", "data"), sharer("s", "data")]
    bought = plan_of(*pods, **mixed("disk", "data"))

    assert {"default/p": "n0", "default/q": "n1"} == {each.pod.pod: each.node for each in there.placements}
    assert ["default/r"] == refused(there)
    assert ([], 2, 1) == (refused(bought), len(bought.launches), len(set(zones(bought))))


def test_disks_on_two_nodes_are_in_one_zone_where_a_volume_ties_them() -> None:
    """A pod of each shares the volume."""
    pods = [
        user("p", "disk-1", node_selector=within(ZONE, B)),
        user("q", "disk-1", "data"),
        sharer("r", "disk-2", "data"),
        user("s", "disk-2"),
        sharer("t", "disk-3", node_selector=within(ZONE, A)),
        user("u", "disk-3"),
    ]
    made = plan_of(*pods, **mixed("disk-1", "disk-2", "disk-3", "data"))

    where = {each.pod: launch for launch in made.launches for each in launch.pods}
    at = {name: (id(where[f"default/{name}"]), where[f"default/{name}"].offering.zone) for name in "pqrstu"}
    assert [] == refused(made)
    assert (at["p"], at["r"], at["t"]) == (at["q"], at["s"], at["u"])
    assert [B, B, A] == [at[name][1] for name in "prt"]
