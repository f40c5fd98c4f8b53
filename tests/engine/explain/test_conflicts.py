"""NodePools whose requirements exclude each other: the reason names them, and a hint is tried or says that none is."""

import pytest

from kerf.model.instancetypes import ON_DEMAND
from kerf.model.plan import Stage, Unplaced
from kerf.testing.builders import a_market, an_instance_type, cards
from tests.engine.explain.test_explanations import ARCH, a_pool_manifest, a_workload, plan_of, requirement
from tests.patches import Object, patched

ZONE, CAPACITY, GPUS = (
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "karpenter.k8s.aws/instance-gpu-count",
)
EAST_A, EAST_B = "us-east-1a", "us-east-1b"
T4 = cards(1, 15360, "T4")
MARKET = a_market(
    an_instance_type("g4dn.xlarge", devices=T4, price="0.526", labels={GPUS: "1"}, capacity_types=[ON_DEMAND, "spot"]),
    an_instance_type("g5g.xlarge", devices=T4, price="0.42", labels={ARCH: "arm64", GPUS: "1"}),
    an_instance_type("m6g.xlarge", price="0.154", labels={ARCH: "arm64"}, zones=[EAST_A, EAST_B]),
    an_instance_type("p9.xlarge", cpu=64, price="9", zones=[EAST_B]),
)


def refused(*objects: Object) -> Unplaced:
    """The one pod that has no place."""
    (found,) = plan_of(list(objects), MARKET).unplaced
    return found


def helps(objects: list[Object], found: Unplaced) -> bool:
    """Whether its patches place every pod."""
    return not plan_of(patched(objects, *found.patches), MARKET).unplaced


CASES: dict[str, tuple[Object, Object, str, str]] = {
    "arch": (
        a_pool_manifest("g4dn.xlarge", requirements=[requirement(ARCH, "In", "arm64")]),
        {"nvidia.com/gpu": 1},
        "NodePool blue offers no instance type: g4dn.xlarge does not satisfy kubernetes.io/arch In [arm64]",
        "allow kubernetes.io/arch amd64 in NodePool blue, if the images run there",
    ),
    "gpu count": (
        a_pool_manifest("g4dn.xlarge", requirements=[requirement(GPUS, "Gt", "3")]),
        {"nvidia.com/gpu": 1},
        f"NodePool blue offers no instance type: g4dn.xlarge does not satisfy {GPUS} Gte 4",
        f"drop {GPUS} Gte 4 from NodePool blue",
    ),
    "another type": (
        a_pool_manifest("g4dn.xlarge", requirements=[requirement(ZONE, "In", EAST_B)]),
        {"cpu": "40"},
        f"NodePool blue offers no instance type: g4dn.xlarge does not satisfy {ZONE} In [us-east-1b]",
        "allow instance type p9.xlarge (9.00 USD/h) in NodePool blue",
    ),
    "no named type": (
        a_pool_manifest(requirements=[requirement(ZONE, "In", "us-east-1z")]),
        {"cpu": "1"},
        f"no instance type here satisfies the requirements of NodePool blue: {ZONE} In [us-east-1z]",
        f"allow {ZONE} us-east-1a in NodePool blue",
    ),
    "two together": (
        a_pool_manifest(requirements=[requirement(ARCH, "In", "arm64"), requirement(GPUS, "Gt", "1")]),
        {"nvidia.com/gpu": 1},
        f"no instance type here satisfies the requirements of NodePool blue: {GPUS} Gte 2",
        f"drop {GPUS} Gte 2 from NodePool blue",
    ),
    "beside a taint": (
        a_pool_manifest(
            "g4dn.xlarge",
            requirements=[requirement(ARCH, "In", "arm64")],
            template={"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]},
        ),
        {"nvidia.com/gpu": 1},
        "NodePool blue offers no instance type: g4dn.xlarge does not satisfy kubernetes.io/arch In [arm64]",
        "allow kubernetes.io/arch amd64 in NodePool blue, if the images run there; "
        "and add a toleration for team=a:NoSchedule to the pod",
    ),
}


@pytest.mark.parametrize("pool, limits, reason, hint", CASES.values(), ids=CASES)
def test_requirements_that_exclude_each_other_are_named_and_one_gives_way(
    pool: Object, limits: Object, reason: str, hint: str
) -> None:
    """The change is tried, alone or with what else is in the way, and its patches place the pod."""
    objects = [pool, a_workload(limits=limits)]

    found = refused(*objects)

    assert (reason, hint) == (found.reason, found.hint)
    assert helps(objects, found)


def test_a_type_that_is_not_sold_is_answered_by_one_that_is() -> None:
    """Waiting would not help: nothing of it was ever sold."""
    objects = [a_pool_manifest("zz"), a_workload(limits={"nvidia.com/gpu": 1})]

    found = refused(*objects)

    assert "allow instance type g4dn.xlarge (0.526 USD/h) with 15360 MiB a GPU in NodePool blue" == found.hint
    assert helps(objects, found)


def test_where_no_requirement_gives_way_the_hint_says_that_none_was_found() -> None:
    """A pod that nothing here holds: no patch, and no word of waiting."""
    pool = a_pool_manifest("g4dn.xlarge", requirements=[requirement(ARCH, "In", "arm64")])

    found = refused(pool, a_workload(limits={"cpu": "999"}))

    assert found.hint.endswith("Kerf found no change that does")
    assert ((), False) == (found.patches, "wait until" in found.hint)


def test_a_static_pool_is_not_waited_for() -> None:
    """A hint says what opens it, not that an offering comes back."""
    found = refused(a_pool_manifest("g4dn.xlarge", replicas=1), a_workload())

    assert found.hint.startswith("raise spec.replicas of NodePool blue, or let another")


def test_a_static_pool_at_its_limit_has_both_raised() -> None:
    """More replicas than its limit of nodes would be bought by nobody."""
    pool = a_pool_manifest("g4dn.xlarge", replicas=2, limits={"nodes": 2})

    found = refused(pool, a_workload())

    assert found.hint.startswith("raise spec.replicas and the limit nodes of NodePool blue, or let another")


def test_a_mistake_in_a_pod_is_put_right_together_with_what_else_it_needs() -> None:
    """`4Gi` of HAMi's memory, in a pool whose types have no GPU: both patches, which place it."""
    objects = [
        a_pool_manifest("p9.xlarge", labels={"gpu": "on"}),
        a_workload(limits={"nvidia.com/gpu": 1, "nvidia.com/gpumem": "4Gi"}),
    ]

    found = refused(*objects)

    assert "write nvidia.com/gpumem: 4096; and allow instance type g4dn.xlarge" in found.hint
    assert {"Deployment", "NodePool"} == {each.kind for each in found.patches}
    assert helps(objects, found)


def test_a_mistake_whose_correction_does_not_help_says_what_stands_in_the_way_then() -> None:
    """No patch, because with it the pod still waits."""
    asked = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "4Gi"}
    workload = a_workload(limits=asked, nodeSelector={"karpenter.sh/foo": "x"})

    found = refused(a_pool_manifest("g4dn.xlarge", labels={"gpu": "on"}), workload)

    then = "then the pod asks karpenter.sh/foo In [x]"
    assert found.hint.startswith(f"write nvidia.com/gpumem: 4096, which alone does not help: {then}")
    assert () == found.patches


def test_mistakes_in_two_containers_are_put_right_in_one_patch() -> None:
    """A container each, merged by name."""
    asked = {"resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "4Gi"}}, "image": "x"}
    containers = [{"name": name, **asked} for name in ("main", "other")]
    objects = [a_pool_manifest("g4dn.xlarge", labels={"gpu": "on"}), a_workload("Pod", containers=containers)]

    found = refused(*objects)

    assert "write nvidia.com/gpumem: 4096; and write nvidia.com/gpumem: 4096" == found.hint
    assert 1 == len(found.patches)
    assert helps(objects, found)


def test_a_hint_whose_nodes_do_not_come_at_once_says_how_fast_they_come() -> None:
    """Under a pace of one launch a minute the second pod comes a minute later, though the limit allows it."""
    pool = a_pool_manifest("g4dn.xlarge", limits={"nodes": "0"}, annotations={"kerf.dev/max-launches-per-minute": "1"})
    objects = [pool, a_workload(replicas=2, limits={"nvidia.com/gpu": 1})]

    found = plan_of(objects, MARKET).unplaced[0]

    assert (
        "2 is the smallest nodes limit of NodePool blue that places all 2 pods; NodePool blue makes 1 launch a minute"
    ) == found.hint
    (left,) = plan_of(patched(objects, *found.patches), MARKET).unplaced
    assert left.reason.startswith("paced: ")


RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "scheduling": {"nodeSelector": {ZONE: EAST_A}},
}


def asking(selector: Object, **more: object) -> Object:
    """A workload of one core whose pods select nodes by these labels."""
    found = a_workload(limits={"cpu": "1"})
    found["spec"]["template"]["spec"].update({"nodeSelector": selector, **more})
    return found


def test_a_value_that_a_pool_excludes_is_allowed() -> None:
    """The one value: the others stay excluded."""
    pool = a_pool_manifest("m6g.xlarge", requirements=[requirement(ZONE, "NotIn", EAST_B, "us-east-1z")])
    objects = [pool, asking({ZONE: EAST_B})]

    found = refused(*objects)

    assert f"allow {ZONE} us-east-1b in NodePool blue" == found.hint
    assert helps(objects, found)


@pytest.mark.parametrize(
    "others", [[], [requirement(GPUS, "Gt", "0")], [{"key": GPUS, "operator": "Exists", "minValues": 1}]]
)
def test_what_else_a_pool_states_of_the_label_stays(others: list[Object]) -> None:
    """Bounds and minValues: of the value that is excluded nothing is left."""
    market = a_market(*(an_instance_type(f"p{n}.xlarge", price=str(n), labels={GPUS: str(n)}) for n in (1, 2)))
    pool = a_pool_manifest("p1.xlarge", "p2.xlarge", requirements=[requirement(GPUS, "NotIn", "1"), *others])
    objects = [pool, asking({GPUS: "1"})]

    (found,) = plan_of(objects, market).unplaced
    (patch,) = found.patches

    assert f"allow {GPUS} 1 in NodePool blue" == found.hint
    stated = patch.change["spec"]["template"]["spec"]["requirements"]  # type: ignore[index]
    assert others == [each for each in stated if each["key"] == GPUS]
    assert not plan_of(patched(objects, patch), market).unplaced


def test_an_architecture_that_no_type_of_the_pool_has_is_that_of_another_type() -> None:
    """The pool names types, and says nothing of the architecture."""
    objects = [a_pool_manifest("p9.xlarge"), asking({ARCH: "arm64"})]

    found = refused(*objects)

    assert "allow instance type m6g.xlarge (0.154 USD/h) in NodePool blue" == found.hint
    assert helps(objects, found)


@pytest.mark.parametrize(
    "count, hint",
    [
        ("2", "allow instance type p9.2xlarge (10.00 USD/h) in NodePool blue"),
        ("3", "allow instance type g5g.4xlarge (1.20 USD/h) in NodePool blue, if the images run there"),
    ],
)
def test_another_type_has_the_architecture_of_those_that_are_named_where_one_has_it(count: str, hint: str) -> None:
    """An image is built for one architecture, and the pod does not say for which."""
    market = a_market(
        an_instance_type("p9.xlarge", price="9", labels={GPUS: "1"}),
        an_instance_type("p9.2xlarge", price="10", labels={GPUS: "2"}),
        an_instance_type("g5g.2xlarge", price="0.6", labels={ARCH: "arm64", GPUS: "2"}),
        an_instance_type("g5g.4xlarge", price="1.2", labels={ARCH: "arm64", GPUS: "3"}),
    )
    objects = [a_pool_manifest("p9.xlarge"), asking({GPUS: count})]

    (found,) = plan_of(objects, market).unplaced

    assert hint == found.hint
    assert not plan_of(patched(objects, *found.patches), market).unplaced


def test_a_pod_that_selects_other_nodes_than_its_runtime_class_is_refused_as_by_the_server() -> None:
    """The plug-in RuntimeClass refuses it; with the value of the class it has a place."""
    objects = [a_pool_manifest("m6g.xlarge"), RUNTIME_CLASS, asking({ZONE: EAST_B}, runtimeClassName="kata")]

    found = refused(*objects)

    asks = f"{ZONE} In [us-east-1b], that of its RuntimeClass kata asks {ZONE} In [us-east-1a]"
    assert (Stage.INVALID, f"the nodeSelector of the pod asks {asks}") == (found.stage, found.reason)
    assert f'let the pod ask {ZONE} "us-east-1a", as its RuntimeClass kata does' == found.hint
    assert helps(objects, found)


FAMILY, CPUS = "karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-cpu"
SIZES = a_market(
    *(an_instance_type(f"m5.{n}", cpu=n, price=f"0.{n}", labels={FAMILY: "m5", CPUS: str(n)}) for n in (2, 4, 8)),
    an_instance_type("c5.16", cpu=16, price="0.9", labels={FAMILY: "c5", CPUS: "16", "disk": "nvme"}),
    an_instance_type("c6g.2", price="0.1", labels={ARCH: "arm64", FAMILY: "c6g", CPUS: "2", "disk": "nvme"}),
)
M5 = a_pool_manifest(requirements=[requirement(FAMILY, "In", "m5")])


@pytest.mark.parametrize("operator, bound, value", [("Gt", "9", "8"), ("Lt", "2", "2"), ("In", "5", "4")])
def test_a_label_of_types_is_said_of_all_types_of_the_pool(operator: str, bound: str, value: str) -> None:
    """Not of one of them, and the pod may ask for the nearest value that is sold."""
    objects = [M5, a_workload(affinity=required(requirement(CPUS, operator, bound)))]

    (found,) = plan_of(objects, SIZES).unplaced

    assert found.reason.endswith(f"NodePool blue has {CPUS} In [2, 4, 8]")
    assert found.hint.endswith(f'let the pod ask {CPUS} "{value}"')
    assert not plan_of(patched(objects, *found.patches), SIZES).unplaced


@pytest.mark.parametrize(
    "key, value, hint", [("disk", "nvme", f"allow {FAMILY} c5"), (ARCH, "arm64", f"allow {FAMILY} c6g")]
)
def test_a_label_that_types_of_another_family_have_opens_the_pool_to_it(key: str, value: str, hint: str) -> None:
    """Of a type whose images run where those of the pool do, unless the pod asks for the architecture."""
    objects = [M5, a_workload(affinity=required(requirement(key, "In", value)))]

    (found,) = plan_of(objects, SIZES).unplaced

    assert f"{hint} in NodePool blue" == found.hint
    assert not plan_of(patched(objects, *found.patches), SIZES).unplaced


def required(expression: Object) -> Object:
    """Required node affinity of one expression."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
