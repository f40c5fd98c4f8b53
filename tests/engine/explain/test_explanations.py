"""Why a pod has no place, and the smallest change that helps: every patch is applied and planned again."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.causes import misfit_reason, missing_text
from kerf.engine.explain.plan import plan
from kerf.manifests.decode import decode
from kerf.manifests.read import parse
from kerf.manifests.workloads.expansion import expand
from kerf.model.causes import FieldRefusal, Name, Quoted
from kerf.model.constraints import HOSTNAME, NODE_NAME, ZONE, Requirement, Requirements, Taint
from kerf.model.instancetypes import ON_DEMAND, InstanceType, OfferingKey
from kerf.model.market import BackOff, Market, SoldOut
from kerf.model.plan import Misfit, Plan, Stage, Unplaced
from kerf.model.pods import Container, PodSpec
from kerf.testing.builders import (
    NOON_S,
    a_container,
    a_market,
    a_node,
    a_pod,
    a_pool,
    a_snapshot,
    an_instance_type,
    cards,
    resources,
)
from tests.engine.worlds import (
    G5,
    G5_2X,
    G5_12X,
    M5,
    a_daemon_set,
    a_hami_pool,
    a_slice,
    only_unplaced,
    planned,
    port_spec,
    some,
)
from tests.patches import Object, patched

TYPE, ARCH = "node.kubernetes.io/instance-type", "kubernetes.io/arch"
L40S = an_instance_type("g6e.xlarge", devices=cards(1, 45458, "L40S"), price="1.861")


def requirement(key: str, operator: str, *values: str) -> Object:
    """One entry of a list of requirements."""
    return {"key": key, "operator": operator, "values": list(values)}


def a_pool_manifest(*types: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """NodePool `blue`; `template` holds further fields of its template's spec."""
    template: Object = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [requirement("karpenter.sh/capacity-type", "In", "on-demand"), *spec.pop("requirements", [])],
        **spec.pop("template", {}),
    }
    if types:
        template["requirements"].append(requirement(TYPE, "In", *types))
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "blue", "annotations": spec.pop("annotations", {})},
        "spec": {"template": {"metadata": {"labels": labels or {}}, "spec": template}, **spec},
    }


def a_workload(kind: str = "Deployment", replicas: int = 1, *, limits: Object | None = None, **spec: Any) -> Object:
    """Workload `web` whose pods have this spec."""
    container = {"name": "main", "image": "x", "resources": {"limits": limits or {"cpu": "1"}}}
    pod_spec: Object = {"containers": [container], **spec}
    template: Object = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": pod_spec}
    if kind == "Job":
        pod_spec["restartPolicy"] = "Never"
        job = {"parallelism": replicas, "completions": replicas, "template": template}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}, "spec": job}
    workload = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": workload}


def plan_of(objects: list[Object], market: Market) -> Plan:
    """The plan for these manifests."""
    decoded = decode(parse("\n---\n".join(map(json.dumps, objects))))
    classes = {each.name: each for each in decoded.runtime_classes}
    return plan(a_snapshot(pools=decoded.node_pools, pods=expand(decoded), runtime_classes=classes), market)


HAMI_POOL = a_pool_manifest("g5.xlarge", labels={"gpu": "on"})
CAP = {"kerf.dev/max-price-per-gpu-hour": "1.1"}
SLICE: Object = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}
TERM = {"matchExpressions": [requirement(ARCH, "In", "arm64"), {"key": "x", "operator": "DoesNotExist"}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}}
CASES: dict[str, tuple[Stage, list[Object], str]] = {
    "limit": (
        Stage.LIMITS,
        [a_pool_manifest("g5.2xlarge", limits={"cpu": "10"}), a_workload(replicas=5, limits={"nvidia.com/gpu": 1})],
        "40 is the smallest cpu limit of NodePool blue that places all 5 pods",
    ),
    "two limits": (
        Stage.LIMITS,
        [a_pool_manifest("m5.xlarge", limits={"cpu": "4", "nodes": 1}), a_workload(replicas=3, limits={"cpu": "4"})],
        "12 is the smallest cpu limit, 3 is the smallest nodes limit of NodePool blue that places all 3 pods",
    ),
    "limit beside a cap": (
        Stage.OFFERINGS,
        [
            a_pool_manifest("g5.xlarge", "g5.2xlarge", limits={"kerf.dev/cost-per-hour": "1.1"}, annotations=CAP),
            a_workload(replicas=2, limits={"nvidia.com/gpu": 1}),
        ],
        "2.012 is the smallest kerf.dev/cost-per-hour limit of NodePool blue that places all 2 pods",
    ),
    "cap and limit": (
        Stage.OFFERINGS,
        [
            a_pool_manifest("g5.2xlarge", limits={"kerf.dev/cost-per-hour": "1.1"}, annotations=CAP),
            a_workload(replicas=2, limits={"nvidia.com/gpu": 1}),
        ],
        'kerf.dev/max-price-per-gpu-hour: "1.212" is the least cap of NodePool blue that lets g5.2xlarge in; or allow '
        "a cheaper instance type; and 2.424 is the smallest kerf.dev/cost-per-hour limit of NodePool blue that places "
        "all 2 pods",
    ),
    "taint and label": (
        Stage.TAINTS,
        [
            a_pool_manifest("m5.xlarge", template={"taints": [{"key": "team", "effect": "NoSchedule"}]}),
            a_workload(nodeSelector={"team": "a"}),
        ],
        "add a toleration for team:NoSchedule to the pod; and "
        'add the label team: "a" to the template of NodePool blue, if its nodes deserve it',
    ),
    "taint": (
        Stage.TAINTS,
        [
            a_pool_manifest("m5.xlarge", template={"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}),
            a_workload("StatefulSet", tolerations=[{"key": "other", "operator": "Exists"}]),
        ],
        "add a toleration for team=a:NoSchedule to the pod",
    ),
    "selector": (
        Stage.REQUIREMENTS,
        [a_pool_manifest("m5.xlarge", labels={"team": "b"}), a_workload("Job", nodeSelector={"team": "a"})],
        'the NodePool has team In [b]: let the pod ask team "b"',
    ),
    "affinity": (
        Stage.REQUIREMENTS,
        [a_pool_manifest("m5.xlarge", requirements=[requirement(ARCH, "In", "amd64")]), a_workload(affinity=AFFINITY)],
        'the NodePool has kubernetes.io/arch In [amd64]: let the pod ask kubernetes.io/arch "amd64"',
    ),
    "label": (
        Stage.REQUIREMENTS,
        [a_pool_manifest("m5.xlarge"), a_workload("Pod", nodeSelector={"team": "a"})],
        'add the label team: "a" to the template of NodePool blue, if its nodes deserve it',
    ),
    "size": (
        Stage.RESOURCES,
        [a_pool_manifest("m5.xlarge"), a_workload(limits={"cpu": "7"})],
        "allow instance type m5.2xlarge (0.384 USD/h) in NodePool blue",
    ),
    "larger than every type": (
        Stage.RESOURCES,
        [a_pool_manifest("m5.xlarge"), a_workload(limits={"cpu": "99", "memory": "20Gi"})],
        "4 cpu of container main and 16Gi memory of container main is the most that fits in NodePool blue",
    ),
    "zone that is not sold": (
        Stage.REQUIREMENTS,
        [a_pool_manifest("m5.xlarge"), a_workload(nodeSelector={ZONE: "mars"})],
        f'no node of NodePool blue can have {ZONE} In [mars]: let the pod ask {ZONE} "us-east-1a"',
    ),
    "zone of the pool": (
        Stage.REQUIREMENTS,
        [
            a_pool_manifest("m5.xlarge", "c5.2xlarge", requirements=[requirement(ZONE, "In", "us-east-1a")]),
            a_workload(nodeSelector={ZONE: "us-east-1b"}, limits={"cpu": "7"}),
        ],
        f"allow {ZONE} us-east-1b in NodePool blue",
    ),
    "card": (
        Stage.DEVICES,
        [HAMI_POOL, a_workload(limits={"nvidia.com/gpu": 1, "nvidia.com/gpumem": 40000})],
        "allow instance type g6e.xlarge (1.861 USD/h) with 45458 MiB a GPU in NodePool blue, "
        "with L40S where it has A10G now",
    ),
    "cards": (
        Stage.DEVICES,
        [a_pool_manifest("g5.xlarge"), a_workload(limits={"nvidia.com/gpu": 3})],
        "allow instance type g5.12xlarge (5.672 USD/h) with 22888 MiB a GPU in NodePool blue",
    ),
    "family": (
        Stage.DEVICES,
        [a_pool_manifest("g5.xlarge"), a_workload(limits=SLICE)],
        'add the label gpu: "on" to the template of NodePool blue',
    ),
    "scheduler": (
        Stage.SCHEDULER,
        [HAMI_POOL, a_workload(limits=SLICE, schedulerName="volcano")],
        "set schedulerName: hami-scheduler, or leave it out",
    ),
    "unit": (
        Stage.INVALID,
        [HAMI_POOL, a_workload(limits={"nvidia.com/gpu": 1, "nvidia.com/gpumem": "4Gi"})],
        "write nvidia.com/gpumem: 4096",
    ),
}
TYPES: tuple[InstanceType, ...] = (
    M5,
    an_instance_type("m5.2xlarge", cpu=8, memory="32Gi", price="0.384"),
    an_instance_type("c5.2xlarge", cpu=8, price="0.5", zones=("us-east-1b",)),
    G5,
    G5_2X,
    G5_12X,
    L40S,
)


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_patch_is_applied_and_helps(name: str) -> None:
    """The hint says it in words; with the patch nothing is left over."""
    stage, objects, hint = CASES[name]
    unplaced = plan_of(objects, a_market(*TYPES)).unplaced

    assert {(stage, hint)} == {(u.stage, u.hint) for u in unplaced}
    assert () == plan_of(patched(objects, *unplaced[0].patches), a_market(*TYPES)).unplaced


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "StatefulSet", "Job"])
def test_the_patch_is_for_the_object_that_makes_the_pods(kind: str) -> None:
    """Not for a pod that its controller would make anew without it."""
    objects = [a_pool_manifest("m5.xlarge", labels={"team": "b"}), a_workload(kind, nodeSelector={"team": "a"})]

    patch = plan_of(objects, a_market(M5)).unplaced[0].patch

    assert patch is not None
    assert (kind, "web", "default") == (patch.kind, patch.name, patch.namespace)
    assert () == plan_of(patched(objects, patch), a_market(M5)).unplaced


def test_no_patch_is_given_that_would_not_help() -> None:
    """Where no other change does either, the hint says so."""
    pool = a_pool_manifest("m5.xlarge", labels={"team": "b"})
    workload = a_workload(nodeSelector={"team": "a"}, limits={"nvidia.com/gpu": 99})
    unplaced = plan_of([pool, workload], a_market(M5)).unplaced[0]

    assert unplaced.patch is None
    assert unplaced.hint.endswith("which alone does not help; Kerf found no change that does")


@pytest.mark.parametrize("key", ["karpenter.sh/foo", "compute.karpenter.sh/foo"])
def test_no_hint_names_a_label_that_no_pool_may_set(key: str) -> None:
    """Kerf refuses such a NodePool itself."""
    unplaced = plan_of([a_pool_manifest("m5.xlarge"), a_workload(nodeSelector={key: "x"})], a_market(M5)).unplaced[0]

    assert (None, f"no node of NodePool blue has the label {key}") == (unplaced.patch, unplaced.hint.partition(",")[0])


def test_the_pool_that_a_pod_names_gives_the_reason() -> None:
    """That the others have other names is true, and no help."""
    pools = [a_pool("other"), a_pool("wanted")]
    pod = a_pod(selector={"karpenter.sh/nodepool": "wanted", "team": "a"})

    assert (
        "the pod asks team In [a], NodePool wanted has no label team"
        == only_unplaced(planned([pod], pools, [M5])).reason
    )


def test_a_closed_pool_is_no_near_miss_of_a_pod_that_it_would_not_take() -> None:
    """Neither by its labels nor by its taints: when it opens, the pod waits on."""
    closed = (a_pool("a", invalid="x", labels={"team": "b"}), a_pool("b", invalid="x", taints=(Taint("dedicated"),)))
    unplaced = only_unplaced(
        planned([a_pod(cpu=9, selector={"team": "a"})], [*closed, a_pool("c", labels={"team": "a"})], [M5])
    )

    assert {"a": Stage.REQUIREMENTS, "b": Stage.TAINTS, "c": Stage.RESOURCES} == {
        misfit.target.node_pool: misfit.stage for misfit in unplaced.misfits
    }
    assert "Insufficient cpu" in unplaced.reason


def test_a_port_that_a_daemon_set_has_needs_no_larger_type() -> None:
    """On no node of the pool is it free."""
    daemon_sets = (a_daemon_set(spec=port_spec(9100)),)
    unplaced = only_unplaced(planned([a_pod(spec=port_spec(9100))], [a_pool()], [M5], daemon_sets=daemon_sets))

    assert "a DaemonSet has the port on nodes of NodePool pool: ask for another port or NodePool" == unplaced.hint


def test_a_zone_that_no_node_has_is_named() -> None:
    """The pool's nodes have the label; it is the value that none has."""
    unplaced = only_unplaced(planned([a_pod(selector={ZONE: "mars"})], [a_pool()], [M5]))

    asked = "topology.kubernetes.io/zone In [mars]"
    assert unplaced.hint.startswith(f"no node of NodePool pool can have {asked}: let the pod ask ")


def test_the_largest_container_asks_for_less_and_an_init_container_for_no_more() -> None:
    """The sidecar keeps what it asks."""
    spec = PodSpec(
        (a_container("small", cpu=1), a_container("large", cpu=4)),
        (Container("mesh", resources(cpu=1), is_sidecar=True), a_container("setup", cpu=6)),
    )
    unplaced = only_unplaced(planned([a_pod(spec=spec)], [a_pool("blue", types=["m5.xlarge"])], [M5]))

    assert "2 cpu of container large and 3 cpu of container setup is the most that fits in NodePool blue" == (
        unplaced.hint
    )


@pytest.mark.parametrize(
    ("taint", "hint"),
    [
        (Taint("team", "a"), "add a toleration for team=a:NoSchedule to the pod, as node n has room for it"),
        (Taint("node.kubernetes.io/unreachable"), "fix NodePool blue: until then it takes no nodes"),
    ],
    ids=["of a team", "of its state"],
)
def test_a_node_with_room_is_reached_by_a_toleration(taint: Taint, hint: str) -> None:
    """Where nothing can be bought; what says that a node is not well is not to be tolerated."""
    pools, nodes = [a_pool("blue", invalid="x")], [a_node("n", taints=(taint,))]
    [unplaced] = plan(a_snapshot(pools=pools, pods=[a_pod(cpu=1)], nodes=nodes), a_market(M5)).unplaced

    assert hint == unplaced.hint


@pytest.mark.parametrize("value", ["x" * 64, "a b", "-a"])
def test_no_patch_has_a_label_value_that_no_node_can_have(value: str) -> None:
    """The server would refuse it."""
    unplaced = only_unplaced(planned([a_pod(selector={"team": value})], [a_pool()], [M5]))

    assert None is unplaced.patch
    assert f"no node can have the label team that it asks: {value!r} is no label value" == unplaced.hint


def test_resource_claims_are_refused() -> None:
    """Nothing is bought for a pod whose devices are not planned for."""
    decided = planned([a_pod("a", cpu=1, not_planned=("resourceClaims",)), a_pod("b", cpu=1)], [a_pool()], [M5])

    assert [1] == [len(launch.pods) for launch in decided.launches]
    assert "the pod has resourceClaims, which this version does not plan for" == only_unplaced(decided).reason


def test_a_pod_and_a_pool_are_changed_together() -> None:
    """Two objects, two patches: the selector of the one, the limit of the other."""
    pool = a_pool_manifest("m5.xlarge", labels={"team": "b"}, limits={"cpu": "4"})
    objects = [pool, a_workload(replicas=2, nodeSelector={"team": "a"}, limits={"cpu": "4"})]
    unplaced = plan_of(objects, a_market(M5)).unplaced[0]

    assert unplaced.hint.endswith("8 is the smallest cpu limit of NodePool blue that places all 2 pods")
    assert () == plan_of(patched(objects, *unplaced.patches), a_market(M5)).unplaced


def test_one_less_than_the_smallest_limit_is_too_little() -> None:
    """The named limit is 40; under 39 one pod is left."""
    pool = a_pool_manifest("g5.2xlarge", limits={"cpu": "39"})
    workload = a_workload(replicas=5, limits={"nvidia.com/gpu": 1})

    assert 1 == len(plan_of([pool, workload], a_market(G5_2X)).unplaced)


def test_a_limit_is_still_searched_where_another_pod_fits_nowhere() -> None:
    """What the limit keeps out and what no machine holds are two matters."""
    pods = [*some(3, cpu=4), a_pod("huge", cpu=99)]

    unplaced = {u.pod: u for u in planned(pods, [a_pool("blue", limits={"cpu": 4})], [M5]).unplaced}

    served = "3 of 4 pods (default/p-0, default/p-1, default/p-2)"
    assert f"12 is the smallest cpu limit of NodePool blue that places {served}" == unplaced["default/p-1"].hint
    assert Stage.RESOURCES == unplaced["default/huge"].stage


def test_one_row_a_pool_and_one_for_the_nearest_node() -> None:
    """The reason is the nearest pool's, and so is the stage."""
    pools = [a_hami_pool("slices", types=["g5.xlarge"]), a_pool("tainted", types=["m5.xlarge"])]
    pod = a_slice(gpumem=40000, cpu=1)

    unplaced = only_unplaced(planned([pod], pools, [M5, G5], nodes=[a_node("n-1"), a_node("n-2", taints=())]))

    assert {"NodePool slices/g5.xlarge", "NodePool tainted/m5.xlarge"} < {str(m.target) for m in unplaced.misfits}
    assert 3 == len(unplaced.misfits)
    assert "needs 40000 MiB on one GPU" in unplaced.reason
    assert Stage.DEVICES == unplaced.stage


def test_stage_and_reason_are_of_one_target() -> None:
    """A node takes the pod further than any pool does: the row of the node says so, and the reason is the pool's."""
    taint = Taint("team", "a", "NoSchedule")
    pool = a_pool(types=["m5.xlarge"], taints=(taint,))
    small = a_node("small", allocatable={"cpu": 1, "memory": "4Gi", "pods": 10}, taints=())

    unplaced = only_unplaced(planned([a_pod(cpu=2)], [pool], [M5], nodes=[small]))

    assert [("NodePool pool/m5.xlarge", Stage.TAINTS), ("node small", Stage.RESOURCES)] == [
        (str(each.target), each.stage) for each in unplaced.misfits
    ]
    assert "NodePool pool/m5.xlarge" in unplaced.reason
    assert Stage.TAINTS == unplaced.stage


def the_misfit(unplaced: Unplaced) -> Misfit:
    """Its only row."""
    assert 1 == len(unplaced.misfits)
    return unplaced.misfits[0]


def test_missing_quantity_of_a_card() -> None:
    """40000 of 22888: 17112 MiB are missing on one GPU."""
    misfit = the_misfit(only_unplaced(planned([a_slice(gpumem=40000)], [a_hami_pool()], [G5, G5_12X])))

    assert ("CardInsufficientMemory", "17112 MiB") == (misfit_reason(misfit), missing_text(misfit))


def test_without_a_pool_every_pod_says_so() -> None:
    """Nothing can be bought; the hint is to apply one."""
    unplaced = planned(some(2), [], [M5]).unplaced

    assert {("there is no NodePool, so nothing can be bought", "apply a NodePool")} == {
        (u.reason, u.hint) for u in unplaced
    }


@pytest.mark.parametrize("key", [HOSTNAME, NODE_NAME])
def test_of_a_pod_that_names_its_node_that_one_is_the_nearest(key: str) -> None:
    """Whatever keeps it off: another node never takes it, and a toleration lets it in."""
    nodes = [a_node("mine", taints=(Taint("team", "a", "NoSchedule"),)), a_node("other", pool="")]
    spec = PodSpec((a_container(cpu=1),), node_selector=Requirements([Requirement.of(key, "In", ["mine"])]))

    unplaced = only_unplaced(planned([a_pod(spec=spec)], [a_pool()], [M5], nodes=nodes))

    assert ["NodePool pool/m5.xlarge", "node mine"] == [str(each.target) for each in unplaced.misfits]
    assert "add a toleration for team=a:NoSchedule to the pod, as node mine has room for it" == unplaced.hint


@pytest.mark.parametrize(
    "given, stage",
    [({"invalid": FieldRefusal(Name("spec.x"), Quoted("y"), Quoted("z"))}, Stage.INVALID), ({}, Stage.HELD)],
)
def test_what_no_scheduler_looks_at_is_said_before_a_claim_that_is_missing(given: Any, stage: Stage) -> None:
    """A pod that the server refuses, and one that a gate holds."""
    pod = replace(a_pod(claims=("nope",), scheduling_gates=() if given else ("quota",)), **given)

    assert stage == only_unplaced(planned([pod], [a_pool()], [M5])).stage


def test_a_gated_pod_is_held() -> None:
    """Whoever set the gate must remove it; nothing is bought."""
    unplaced = only_unplaced(planned([a_pod(scheduling_gates=("quota", "review"))], [a_pool()], [M5]))

    assert (Stage.HELD, "held back by scheduling gates: quota, review") == (unplaced.stage, unplaced.reason)


def test_an_invalid_pod_says_what_the_api_would() -> None:
    """Decode found it; the plan repeats it, and plans the others."""
    problem = FieldRefusal(Name("spec.x"), Quoted("1"), Quoted("2"), Quoted("say 1"), Name("in.yaml:3:1"))
    decided = planned([a_pod("bad", invalid=problem), a_pod("good")], [a_pool()], [M5])

    bad = only_unplaced(decided)
    assert (Stage.INVALID, "spec.x: expected 1, got 2") == (bad.stage, bad.reason)
    assert ("say 1", "in.yaml:3:1") == (bad.hint, bad.place)
    assert 1 == len(decided.launches)


def test_a_pool_that_takes_no_nodes_says_why() -> None:
    """A NodeClass that is not there is the answer, not a lack of machines."""
    decided = planned([a_pod()], [a_pool("blue")], [M5], assume_node_classes=False)

    assert "NodePool blue takes no nodes: NodeClassNotFound: EC2NodeClass default" == only_unplaced(decided).reason


@pytest.mark.parametrize(
    "market, reason",
    [
        (
            a_market(M5, sold_out=(SoldOut(OfferingKey("m5.xlarge", "us-east-1a", ON_DEMAND), NOON_S),)),
            "m5.xlarge is sold out (on-demand)",
        ),
        (
            a_market(M5, back_offs=(BackOff("blue", "m5.xlarge", NOON_S, Quoted("never registered")),)),
            "m5.xlarge backs off in NodePool blue until 2026-01-05T12:00:00Z: never registered",
        ),
        (
            a_market(M5, back_offs=(BackOff("blue", "m5.xlarge", NOON_S, Quoted("never registered"), is_tried=True),)),
            "m5.xlarge backs off in NodePool blue until 2026-01-05T12:00:00Z: one node is tried at a time: never "
            "registered",
        ),
    ],
)
def test_what_cannot_be_had_now_is_stage_offerings(market: Market, reason: str) -> None:
    """The pod would fit: the cloud, or our own back-off, has nothing for it."""
    unplaced = only_unplaced(planned([a_pod()], [a_pool("blue")], market=market))

    assert Stage.OFFERINGS == unplaced.stage
    assert unplaced.reason.startswith(reason)
    assert unplaced.hint.startswith("allow further instance types, zones or capacity types in NodePool blue")


@pytest.mark.parametrize(
    "named, market, reason",
    [
        ("m5.xlrge", a_market(M5), "unknown instance type m5.xlrge (nearest known: m5.xlarge)"),
        ("zz", a_market(M5), "unknown instance type zz"),
        ("p9", a_market(M5, not_sold={"p9": "it has no price here"}), "p9: it has no price here"),
        ("g5.xlarge", a_market(G5), "g5.xlarge does not satisfy karpenter.sh/capacity-type In [spot]"),
    ],
)
def test_a_pool_that_offers_nothing_names_the_culprit(named: str, market: Market, reason: str) -> None:
    """A misspelt type, one that is not sold here, or one that the other requirements exclude."""
    capacity_types = ("spot",) if named == "g5.xlarge" else (ON_DEMAND,)

    pool = a_pool("blue", types=[named], capacity_types=capacity_types)
    unplaced = only_unplaced(planned([a_pod()], [pool], market=market))

    assert f"NodePool blue offers no instance type: {reason}" == unplaced.reason


def test_a_pool_whose_requirements_nothing_satisfies_says_so() -> None:
    """Without a named type the culprits are the requirements that no type satisfies together."""
    pool = a_pool("blue", capacity_types=["spot"])

    asked = "karpenter.sh/capacity-type In [spot]"
    assert f"no instance type here satisfies the requirements of NodePool blue: {asked}" == (
        only_unplaced(planned([a_pod()], [pool], [M5])).reason
    )


def test_a_pod_too_large_for_everything_is_advised_to_ask_for_less() -> None:
    """Where no type is sold that holds it, no type is named; less of a GPU is another workload."""
    decided = planned([a_pod(cpu=999)], [a_pool("blue", types=["m5.xlarge"])], [M5, G5])
    of_cards = planned([a_pod(gpu=9)], [a_pool("blue", types=["g5.xlarge"])], [M5, G5])

    assert "4 cpu of container main is the most that fits in NodePool blue" == only_unplaced(decided).hint
    assert "no instance type that is sold here takes the pod; ask for less" == only_unplaced(of_cards).hint
    assert only_unplaced(decided).reason.startswith("Insufficient cpu: needs 999 cpu, 4 free, 995 cpu missing")


def test_a_hint_that_costs_another_pod_its_place_says_so() -> None:
    """One pod asks for a label, the other one for nodes without it, and there is one pool."""
    without = Requirements([Requirement.of("team", "DoesNotExist")])
    pods = [a_pod("asks", selector={"team": "a"}), a_pod("avoids", affinity=(without,))]
    unplaced = only_unplaced(planned(pods, [a_pool("blue", types=["m5.xlarge"])], [M5]))

    said = 'add the label team: "a" to the template of NodePool blue, if its nodes deserve it'
    assert f"{said}; 1 other pod loses its place: default/avoids" == unplaced.hint
