"""Where a pod may run for the sake of its volumes: one rule of kube-scheduler or Karpenter each."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.place.shapes import group
from kerf.engine.place.volumes import MOST_CHOICES, Volumes
from kerf.model.causes import Cause, Name
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.nodes import Node
from kerf.model.plan import Plan, Stage
from kerf.model.pods import Pod
from kerf.model.quantities import CPU
from kerf.model.runtimeclasses import RuntimeClass, RuntimeClassConflict, RuntimeClassMissing
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.volumecauses import (
    ClaimInUse,
    ClaimProblem,
    ClaimUnusable,
    NoVolumeHere,
    TooManyChoices,
    TooManyVolumes,
    VolumeElsewhere,
    VolumesAgainstPod,
    VolumesApart,
)
from kerf.model.volumes import (
    NO_FORM,
    NO_PROVISIONER,
    ClaimTemplate,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeForm,
)
from kerf.testing.builders import a_node, a_pod, a_pool, a_snapshot, an_instance_type, resources
from tests.engine.worlds import bought, only_unplaced, planned, refused

A, B = "us-east-1a", "us-east-1b"
M5 = an_instance_type(zones=(A, B))
EBS = "ebs.csi.aws.com"
WAITS = StorageClass("fast", EBS, waits=True)
AT_ONCE = StorageClass("now", EBS)
RWO = VolumeForm(frozenset(("ReadWriteOnce",)))


def within(key: str, *values: str) -> Requirements:
    """One requirement."""
    return Requirements([Requirement.of(key, "In", values)])


def claim(name: str = "data", volume: str = "", **given: Any) -> PersistentVolumeClaim:
    """A claim, bound where it names a volume; without one of the class that waits."""
    given.setdefault("storage_class", "fast")
    return PersistentVolumeClaim("default", name, volume=volume, is_bound=bool(volume), **given)


def in_zone(zone: str, name: str = "pv") -> PersistentVolume:
    """A volume of EBS."""
    return PersistentVolume(name, (within(ZONE, zone),), driver=EBS)


def user(name: str = "p", *claims: str, **given: Any) -> Pod:
    """A pod of one core with claims, by default `data`."""
    return a_pod(name, cpu=1, claims=claims or ("data",), **given)


def stored(
    *claims: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume] = (),
    classes: Iterable[StorageClass] = (WAITS, AT_ONCE),
    limits: Iterable[CSINode] = (),
) -> dict[str, Any]:
    """The fields of a snapshot that volumes need."""
    return {
        "volume_claims": {each.key: each for each in claims},
        "volumes": {each.name: each for each in volumes},
        "storage_classes": {each.name: each for each in classes},
        "csi_nodes": {each.name: each for each in limits},
    }


def plan_of(*pods: Pod, **given: Any) -> Plan:
    """What is done for the pods, with one pool of a type that two zones have."""
    return planned(pods, given.pop("pools", [a_pool()]), [M5], **given)


def zones(made: Plan) -> list[str]:
    """Of what is bought."""
    return [launch.offering.zone for launch in made.launches]


def why(pod: Pod, snapshot: ClusterSnapshot) -> Cause:
    """Why no node may take the pod."""
    found = Volumes(snapshot).followed(pod)
    assert isinstance(found, Cause)
    return found


@pytest.mark.parametrize("zone", [A, B])
def test_a_node_is_bought_where_the_volume_is(zone: str) -> None:
    """The claim of a NodePool that leaves the zone open names it."""
    made = plan_of(user(), **stored(claim(volume="pv"), volumes=[in_zone(zone)]))

    assert [zone] == zones(made)
    assert within(ZONE, zone)[ZONE] == made.launches[0].requirements[ZONE]


def test_pods_with_volumes_in_one_zone_are_one_shape() -> None:
    """As many claims as a StatefulSet has, and still two shapes for two zones."""
    names = [f"data-{n}" for n in range(6)]
    held = stored(
        *(claim(name, f"pv-{name}") for name in names),
        volumes=[in_zone((A, B)[n % 2], f"pv-{name}") for n, name in enumerate(names)],
    )
    pods = [user(f"p-{n}", name) for n, name in enumerate(names)]
    volumes = Volumes(a_snapshot(pods=pods, **held))
    followed = [each for pod in pods if isinstance(each := volumes.followed(pod), Pod)]

    assert [3, 3] == [len(shape) for shape in group(followed)]


def test_volumes_in_different_zones_need_a_node_each() -> None:
    """Both pods would fit one node."""
    held = stored(claim("a", "pv-a"), claim("b", "pv-b"), volumes=[in_zone(A, "pv-a"), in_zone(B, "pv-b")])

    assert [A, B] == sorted(zones(plan_of(user("p", "a"), user("q", "b"), **held)))


def test_a_volume_with_several_terms_is_where_one_of_them_holds() -> None:
    """All terms count, not the first alone (Karpenter tries them one by one)."""
    volume = PersistentVolume("pv", (within(ZONE, "us-east-1z"), within(ZONE, B)))

    assert [B] == zones(plan_of(user(), **stored(claim(volume="pv"), volumes=[volume])))


def test_labels_of_a_volume_in_the_old_spelling_count() -> None:
    """Volumezone: a volume without node affinity is where its labels say."""
    volume = PersistentVolume("pv", zones=within("failure-domain.beta.kubernetes.io/zone", B))

    assert [B] == zones(plan_of(user(), **stored(claim(volume="pv"), volumes=[volume])))


def test_a_node_without_any_zone_may_take_a_volume_that_has_one_by_label() -> None:
    """Volumezone passes over nodes without labels of zone and region; node affinity of a volume does not."""
    labels, terms = PersistentVolume("pv", zones=within(ZONE, B)), PersistentVolume("pv", (within(ZONE, B),))
    bare = Node("bare", {HOSTNAME: "bare"}, allocatable=a_node().allocatable)

    def left(volume: PersistentVolume) -> list[str]:
        return refused(plan_of(user(), pools=[], nodes=[bare], **stored(claim(volume="pv"), volumes=[volume])))

    assert ([], ["default/p"]) == (left(labels), left(terms))


def test_a_claim_that_waits_goes_where_its_class_allows() -> None:
    """WaitForFirstConsumer: one of the allowed topologies."""
    limited = StorageClass("fast", EBS, True, (within(ZONE, "us-east-1z"), within(ZONE, B)))

    assert [B] == zones(plan_of(user(), **stored(claim(), classes=[limited])))


@pytest.mark.parametrize(
    "held, problem",
    [
        ({}, ClaimProblem.MISSING),
        (stored(claim(is_lost=True)), ClaimProblem.LOST),
        (stored(claim(is_deleting=True)), ClaimProblem.DELETING),
        (stored(claim(storage_class="now")), ClaimProblem.NOT_BOUND),
        (stored(claim(storage_class="none")), ClaimProblem.CLASS_MISSING),
        (stored(claim(storage_class="")), ClaimProblem.WITHOUT_CLASS),
        (stored(claim(storage_class=None)), ClaimProblem.WITHOUT_CLASS),
        (stored(claim(volume="pv"), volumes=[in_zone(A, "other")]), ClaimProblem.VOLUME_MISSING),
    ],
)
def test_behaviour_38_a_claim_that_no_node_helps_keeps_its_pod_alone(
    held: dict[str, Any], problem: ClaimProblem
) -> None:
    """The others are planned."""
    made = plan_of(user(), a_pod("q", cpu=1), **held)

    unplaced = only_unplaced(made)
    assert ("default/p", Stage.VOLUMES) == (unplaced.pod, unplaced.stage)
    assert isinstance(unplaced.cause, ClaimUnusable)
    assert problem is unplaced.cause.problem
    assert [("m5.xlarge", 1)] == bought(made)


def test_behaviour_38_a_topology_key_that_no_node_gets_keeps_its_pod_alone() -> None:
    """Of the StorageClass; the hint does not ask for another pod."""
    rack = StorageClass("fast", EBS, True, (within("example.com/rack", "r1"),))
    unplaced = only_unplaced(plan_of(user(), a_pod("q", cpu=1), **stored(claim(), classes=[rack])))

    assert "default/p" == unplaced.pod
    assert isinstance(unplaced.misfits[0].cause, VolumeElsewhere)
    assert "no node of NodePool pool can be where its volumes are" == unplaced.hint


def test_a_pod_that_asks_for_another_zone_than_its_volumes_is_shown_both() -> None:
    """Of the StorageClass; the hint is a zone where the volume can be."""
    fast = StorageClass("fast", EBS, True, (within(ZONE, A),))
    pod = user(node_selector=within(ZONE, B))
    unplaced = only_unplaced(plan_of(pod, **stored(claim(), classes=[fast])))

    assert VolumesAgainstPod(within(ZONE, B)[ZONE], within(ZONE, A)[ZONE]) == unplaced.misfits[0].cause
    assert f"its volumes ask {ZONE} In [{A}], and the pod itself asks {ZONE} In [{B}]" in unplaced.reason
    assert f'its volumes ask {ZONE} In [{A}]: let the pod ask {ZONE} "{A}"' == unplaced.hint


def test_a_class_that_is_not_named_is_the_newest_default() -> None:
    """As the server's DefaultStorageClass."""
    old = StorageClass("old", EBS, waits=True, is_default=True, created_s=1)
    new = StorageClass("new", EBS, True, (within(ZONE, B),), is_default=True, created_s=2)

    assert [B] == zones(plan_of(user(), **stored(claim(storage_class=None), classes=[old, new])))


def test_volumes_that_are_apart_let_the_pod_run_nowhere() -> None:
    """One in each zone: it is said of both claims, and nothing is bought."""
    held = stored(claim("a", "pv-a"), claim("b", "pv-b"), volumes=[in_zone(A, "pv-a"), in_zone(B, "pv-b")])

    assert VolumesApart((Name("a"), Name("b"))) == only_unplaced(plan_of(user("p", "a", "b"), **held)).cause


def test_more_combinations_than_are_tried_are_a_reason() -> None:
    """The terms of the pod times those of its volumes."""
    many = PersistentVolume("pv", tuple(within(ZONE, f"z{n}") for n in range(9)))
    pod = user(affinity=tuple(within(HOSTNAME, f"n{n}") for n in range(8)))
    snapshot = a_snapshot(pods=[pod], **stored(claim(volume="pv"), volumes=[many]))

    assert TooManyChoices(72, MOST_CHOICES) == why(pod, snapshot)


def test_behaviour_39_a_local_volume_keeps_its_pod_on_its_node_and_off_other_ones() -> None:
    """On nodes there are its name counts; a node to be bought need not have it, as Karpenter plans."""
    local = PersistentVolume("pv", (within(HOSTNAME, "n1"),), is_local=True)
    held = stored(claim(volume="pv"), volumes=[local])
    on_its_own = plan_of(user(), nodes=[a_node("n0"), a_node("n1")], **held)
    elsewhere = plan_of(user(), nodes=[a_node("n0")], **held)

    assert ["n1"] == [placement.node for placement in on_its_own.placements]
    assert ([], [("m5.xlarge", 1)]) == ([*elsewhere.placements], bought(elsewhere))


def test_a_volume_that_is_not_local_keeps_its_host_name() -> None:
    """Only local and hostPath volumes are made again."""
    bound = PersistentVolume("pv", (within(HOSTNAME, "n1"),), driver=EBS)

    assert ["default/p"] == refused(plan_of(user(), **stored(claim(volume="pv"), volumes=[bound])))


def test_a_claim_of_a_class_without_provisioner_takes_a_free_volume() -> None:
    """Of its class and large enough, on the node where that is."""
    by_hand = StorageClass("hand", NO_PROVISIONER, waits=True)
    disks = [
        PersistentVolume(f"pv-{n}", (within(HOSTNAME, f"n{n}"),), storage_class="hand", is_free=True, capacity_bytes=n)
        for n in range(3)
    ]
    held = stored(claim(storage_class="hand", requested_bytes=2), volumes=disks, classes=[by_hand])
    made = plan_of(user(), nodes=[a_node(f"n{n}") for n in range(3)], pools=[], **held)
    none = plan_of(user(), nodes=[a_node("n0")], pools=[], **held)

    assert ["n2"] == [placement.node for placement in made.placements]
    assert isinstance(only_unplaced(none).misfits[0].cause, VolumeElsewhere)


def test_labels_of_a_free_volume_say_nothing_of_zones() -> None:
    """Volumezone reads those of bound volumes alone; a free one asks what its node affinity says."""
    free = PersistentVolume("pv", zones=within(ZONE, B), storage_class="hand", is_free=True)
    held = stored(
        claim(storage_class="hand"), volumes=[free], classes=[StorageClass("hand", NO_PROVISIONER, waits=True)]
    )
    made = plan_of(user(), nodes=[a_node(labels={ZONE: A})], pools=[], **held)

    assert ["node"] == [placement.node for placement in made.placements]


def by_hand(*volumes: PersistentVolume, claims: Iterable[PersistentVolumeClaim] = (), count: int = 2) -> list[str]:
    """The nodes, of `n0`, `n1` and so on, that a pod with the claims of a class without provisioner may run on."""
    held = stored(*claims, volumes=volumes, classes=[StorageClass("hand", NO_PROVISIONER, waits=True)])
    pod = user("p", *(each.name for each in claims))
    nodes = [a_node(f"n{n}") for n in range(count)]
    made = plan_of(pod, nodes=nodes, pools=[], **held)
    return [placement.node for placement in made.placements]


def disk(number: int, node: int, **given: Any) -> PersistentVolume:
    """A free local one of a node."""
    fields = {"storage_class": "hand", "is_free": True, "form": RWO, **given}
    return PersistentVolume(f"pv-{number}", (within(HOSTNAME, f"n{node}"),), **fields)


def unbound(name: str = "data", **given: Any) -> PersistentVolumeClaim:
    """A claim of that class."""
    return claim(name, storage_class="hand", **{"form": RWO, **given})


def test_two_claims_take_two_volumes() -> None:
    """The first node has a single one."""
    both = [unbound("a"), unbound("b")]

    assert ["n1"] == by_hand(disk(0, 0), disk(1, 1), disk(2, 1), claims=both)
    assert [] == by_hand(disk(0, 0), disk(1, 1), claims=both)


@pytest.mark.parametrize(
    "volume, asked",
    [
        ({"form": VolumeForm(frozenset(("ReadOnlyMany",)))}, {}),
        ({"form": replace(RWO, is_block=True)}, {}),
        ({"form": replace(RWO, attributes_class="gold")}, {}),
        ({"labels": (("tier", "tin"),)}, {"selector": Requirements.of_labels({"tier": "gold"})}),
        ({"capacity_bytes": 1}, {"requested_bytes": 2}),
        ({"is_free": False, "kept_for": "default/other"}, {}),
    ],
)
def test_a_claim_takes_a_volume_of_its_kind(volume: dict[str, Any], asked: dict[str, Any]) -> None:
    """FindMatchingVolume: modes, file system or block, attributes class, labels, size, and for whom it is kept."""
    fits = {"capacity_bytes": 2, "labels": (("tier", "gold"),), "form": VolumeForm(RWO.access_modes | {"ReadOnlyMany"})}

    assert ["n1"] == by_hand(disk(0, 0, **volume), disk(1, 1, **fits), claims=[unbound(**asked)])


def test_a_volume_that_is_kept_for_the_claim_is_the_only_one() -> None:
    """Its labels and modes do not count then (IsVolumeBoundToClaim)."""
    kept = disk(1, 1, is_free=False, kept_for="default/data", form=NO_FORM)

    assert ["n1"] == by_hand(disk(0, 0), kept, claims=[unbound()])


def test_local_disks_of_many_nodes_are_one_choice() -> None:
    """One of each node would be more choices than are tried."""
    disks = [disk(n, n) for n in range(MOST_CHOICES + 1)]

    assert ["n9"] == by_hand(*disks[9:], claims=[unbound()], count=10)


def test_a_free_volume_goes_before_one_that_is_made() -> None:
    """FindMatchingVolume: where one is, the topologies of the class are not asked."""
    fast = StorageClass("fast", EBS, waits=True, topologies=(within(ZONE, A),))
    free = PersistentVolume("pv", (within(ZONE, B),), storage_class="fast", is_free=True)
    made = plan_of(
        user(), nodes=[a_node(labels={ZONE: B})], pools=[], **stored(claim(), volumes=[free], classes=[fast])
    )

    assert ["node"] == [placement.node for placement in made.placements]


def test_without_any_free_volume_the_reason_is_the_volume() -> None:
    """No label is said to be missing."""
    held = stored(claim(storage_class="hand"), classes=[StorageClass("hand", NO_PROVISIONER, waits=True)])
    made = plan_of(user(), nodes=[a_node()], pools=[], **held)

    assert NoVolumeHere() == only_unplaced(made).misfits[0].cause


def test_a_volume_that_is_being_made_for_a_node_waits_for_it() -> None:
    """The scheduler has chosen; a node that is gone is no choice."""
    chosen = stored(claim(selected_node="n1"))
    made = plan_of(user(), nodes=[a_node("n0"), a_node("n1")], **chosen)

    assert ["n1"] == [placement.node for placement in made.placements]
    assert [("m5.xlarge", 1)] == bought(plan_of(user(), **chosen))


def test_a_claim_of_one_pod_refuses_the_second() -> None:
    """ReadWriteOncePod (volumerestrictions): one that runs has it, else the first in the queue."""
    held = stored(claim(is_of_one_pod=True))
    running = user("r", node_name="node", phase="Running")
    waiting = plan_of(user("p"), user("q"), **held)
    in_use = plan_of(user("p"), running, nodes=[a_node()], **held)

    assert ClaimInUse(Name("data"), Name("default/p")) == only_unplaced(waiting).cause
    assert ClaimInUse(Name("data"), Name("default/r")) == only_unplaced(in_use).cause


def test_a_claim_of_one_pod_goes_to_the_next_where_the_first_has_no_place() -> None:
    """As kube-scheduler gives it to the first that it binds: the reason of the first pod is its own."""
    held = stored(claim(is_of_one_pod=True))
    waiting = plan_of(a_pod("p", cpu=99, claims=("data",)), user("q"), user("r"), **held)

    assert [("m5.xlarge", 1)] == bought(waiting)
    assert ["default/q"] == [pod.pod for launch in waiting.launches for pod in launch.pods]
    causes = {each.pod: each.cause for each in waiting.unplaced}
    assert ClaimInUse(Name("data"), Name("default/q")) == causes["default/r"]
    assert not isinstance(causes["default/p"], ClaimInUse)
    assert "default/p" in causes


def test_a_claim_of_one_pod_is_kept_by_one_that_runs_and_not_by_one_that_has_ended() -> None:
    """Of a pod that runs nothing is asked; one that has ended has let go of it."""
    held = stored(claim(is_of_one_pod=True))
    running, ended = (user("r", node_name="node", phase=phase) for phase in ("Running", "Succeeded"))

    assert ["default/p"] == refused(plan_of(user("p"), running, nodes=[a_node()], **held))
    assert [] == refused(plan_of(user("p"), ended, nodes=[a_node()], **held))


def test_many_pods_without_a_place_before_a_claim_of_one_pod_end_the_search() -> None:
    """After a few the others are refused for the sake of the one before them: nothing is bought."""
    held = stored(claim(is_of_one_pod=True))
    pods = [a_pod(f"p{n}", cpu=99, claims=("data",)) for n in range(9)]
    made = plan_of(*pods, **held)

    assert ([], 9) == (bought(made), len(made.unplaced))


def limited(count: int, *pods: Pod, number: int = 4) -> Plan:
    """The pods with claims `c0`, `c1`, ... and a node whose driver attaches so many volumes."""
    names = [f"c{n}" for n in range(number)]
    held = stored(
        *(claim(name, f"pv-{name}") for name in names),
        volumes=[in_zone(A, f"pv-{name}") for name in names],
        limits=[CSINode("node", ((EBS, count),))],
    )
    return plan_of(*pods, nodes=[a_node(allocatable={CPU: 64, "memory": "64Gi", "pods": 99})], **held)


def test_behaviour_37_volumes_beyond_the_limit_of_a_driver_need_another_node() -> None:
    """Counted with those of pods that run there."""
    running = user("r", "c0", node_name="node", phase="Running")
    made = limited(2, running, user("p1", "c1"), user("p2", "c2"), user("p3", "c3"))

    assert ["default/p1"] == [placement.pod.pod for placement in made.placements]
    assert [("m5.xlarge", 2)] == bought(made)


def test_behaviour_37_a_shared_volume_counts_once_a_node() -> None:
    """However many pods use it, and whether one of them runs there already."""
    running = user("r", "c0", node_name="node", phase="Running")
    made = limited(1, running, *(user(f"p{n}", "c0") for n in range(5)))

    assert (5, []) == (len(made.placements), bought(made))


def test_a_node_whose_driver_can_attach_no_more_says_so() -> None:
    """With the figures."""
    made = planned(
        [user("p", "c0")],
        [],
        nodes=[a_node()],
        **stored(claim("c0", "pv"), volumes=[in_zone(A)], limits=[CSINode("node", ((EBS, 0),))]),
    )

    assert TooManyVolumes(Name(EBS), 0, 0, 1) == only_unplaced(made).misfits[0].cause


def test_a_claim_that_a_statefulset_will_make_counts_by_its_template() -> None:
    """A manifest has no claims yet: the class of the template says where."""
    topology = StorageClass("fast", EBS, True, (within(ZONE, B),))
    pods = [a_pod(f"db-{n}", cpu=1, claim_templates=(ClaimTemplate("data", "fast"),)) for n in range(2)]
    made = plan_of(*pods, **stored(classes=[topology]))

    assert [B] == zones(made)


def test_a_claim_that_is_there_goes_before_its_template() -> None:
    """`data-db-0` has a volume in another zone than new ones would have."""
    topology = StorageClass("fast", EBS, True, (within(ZONE, B),))
    pod = a_pod("db-0", cpu=1, claim_templates=(ClaimTemplate("data", "fast"),))
    made = plan_of(pod, **stored(claim("data-db-0", "pv"), volumes=[in_zone(A)], classes=[topology]))

    assert [A] == zones(made)


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own() -> None:
    """Component-helpers ephemeral.VolumeIsForPod: one of the same name may be another's."""
    template = ClaimTemplate("scratch", "fast", is_ephemeral=True)
    pod = a_pod("p", cpu=1, uid="u1", claim_templates=(template,))
    others = a_snapshot(pods=[pod], **stored(claim("p-scratch", owner_uid="u2")))
    own = a_snapshot(pods=[pod], **stored(claim("p-scratch", owner_uid="u1")))

    assert ClaimUnusable(Name("p-scratch"), ClaimProblem.OF_ANOTHER_POD) == why(pod, others)
    assert isinstance(Volumes(own).followed(pod), Pod)


def test_an_ephemeral_volume_does_not_hold_a_pod_that_moves() -> None:
    """Its claim goes with the pod, and the next one makes another (Karpenter, volumetopology.go)."""
    template = ClaimTemplate("scratch", "fast", is_ephemeral=True)
    pod = a_pod("p", cpu=1, uid="u1", claim_templates=(template,))
    held = stored(claim("p-scratch", "pv", owner_uid="u1"), volumes=[in_zone(A)])
    moved = Volumes(a_snapshot(pods=[pod], **held)).followed(pod, is_moved=True)

    assert isinstance(moved, Pod)
    assert pod.spec.own_alternatives == moved.spec.alternatives


def test_without_claims_and_classes_a_pod_stays_the_same_object() -> None:
    """What costs nothing for most pods."""
    pod = a_pod(cpu=1)

    assert pod is Volumes(a_snapshot(pods=[pod])).followed(pod)


def test_where_the_input_has_no_class_at_all_one_is_assumed() -> None:
    """A file with a workload alone; of a cluster that would be known."""
    pod = user()
    files = a_snapshot(pods=[pod], **stored(claim(), classes=[]))
    cluster = a_snapshot(pods=[pod], assume_node_classes=False, **stored(claim(), classes=[]))

    assert isinstance(Volumes(files).followed(pod), Pod)
    assert ClaimUnusable(Name("data"), ClaimProblem.CLASS_MISSING, Name("fast")) == why(pod, cluster)


def test_a_runtime_class_adds_what_admission_would() -> None:
    """Overhead, node selector and tolerations, for a pod that no server has seen."""
    gvisor = RuntimeClass("gvisor", resources(cpu=1), within(ZONE, B))
    classes = {"gvisor": gvisor}
    made = plan_of(*(a_pod(f"p{n}", cpu=1, runtime_class="gvisor") for n in range(3)), runtime_classes=classes)

    assert ([B, B], [("m5.xlarge", 1), ("m5.xlarge", 2)]) == (zones(made), bought(made))


@pytest.mark.parametrize("given", [{"overhead": resources(cpu=2)}, {"uid": "u", "overhead": resources(cpu=2)}])
def test_an_overhead_that_the_pod_states_stays(given: dict[str, Any]) -> None:
    """Its own counts, not that of the class as it is now."""
    pod = a_pod(cpu=1, runtime_class="gvisor", **given)
    classes = {"gvisor": RuntimeClass("gvisor", resources(cpu=1))}
    followed = Volumes(a_snapshot(pods=[pod], runtime_classes=classes)).followed(pod)

    assert isinstance(followed, Pod)
    assert 3000 == followed.spec.requests[CPU]


@pytest.mark.parametrize("given, is_refused", [({"A": "x"}, True), ({"A": "y", "B": "x"}, False)])
def test_a_new_pod_that_selects_other_nodes_than_its_class_is_refused(given: dict[str, str], is_refused: bool) -> None:
    """As by the server. A label that both select by one value is none in conflict."""
    classes = {"gvisor": RuntimeClass("gvisor", node_selector=Requirements.of_labels({"A": "y"}))}
    new, running = (
        a_pod(cpu=1, runtime_class="gvisor", node_selector=Requirements.of_labels(given), uid=uid) for uid in ("", "u")
    )
    volumes = Volumes(a_snapshot(pods=[new], runtime_classes=classes))

    assert is_refused == isinstance(volumes.followed(new), RuntimeClassConflict)
    assert running is volumes.followed(running)


def test_a_runtime_class_that_is_missing_is_a_reason_of_that_pod() -> None:
    """The server would refuse it."""
    classes = {"gvisor": RuntimeClass("gvisor")}
    made = plan_of(a_pod("p", runtime_class="kata"), a_pod("q", cpu=1), runtime_classes=classes)

    assert RuntimeClassMissing(Name("kata")) == only_unplaced(made).cause
    assert [("m5.xlarge", 1)] == bought(made)


def test_a_pool_that_is_elsewhere_is_to_allow_the_zone_of_the_volume() -> None:
    """The hint widens the pool; another zone in the pod would not help."""
    pool = a_pool(requirements=within(ZONE, A))
    made = plan_of(user(), pools=[pool], **stored(claim(volume="pv"), volumes=[in_zone(B)]))

    unplaced = only_unplaced(made)
    assert f"its volumes ask {ZONE} In [{B}], NodePool pool has {ZONE} In [{A}]" in unplaced.reason
    assert f"allow {ZONE} {B} in NodePool pool, where its volumes are" == unplaced.hint
    assert unplaced.patch is not None
