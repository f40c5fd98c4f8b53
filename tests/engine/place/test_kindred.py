"""Terms that mean all pods but few: what they share is counted once, and verdicts are those of each by itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from benchmarks import judging
from kerf.engine.decide import decide
from kerf.engine.options import Options
from kerf.engine.place.kindred import FEW
from kerf.engine.place.shapes import Readings, Shape, group, queue_order
from kerf.engine.place.tallies import Likeness, Reach, hooks_of
from kerf.engine.place.trial import Trial
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.pods import RUNNING, Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import PodAffinity, PodAffinityTerm, TooNear, Unwelcome
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type
from tests.engine.place.test_topology import node

MARKET = a_market(an_instance_type("m5.4xlarge", cpu=16, memory="64Gi", price="0.80", zones=("1", "2")))
MANY = 3 * FEW
NEGATIVE = (
    [Requirement.of("a", "NotIn", ["x"])],
    [Requirement.of("a", "DoesNotExist")],
    [Requirement.of("a", "NotIn", ["x"]), Requirement.of("a", "Exists")],
    [Requirement.of("a", "NotIn", ["x", "y"]), Requirement.of("b", "NotIn", ["y"])],
    [Requirement.of("a", "NotIn", ["x"]), Requirement.of("b", "DoesNotExist"), Requirement.of("c", "In", ["x"])],
    [Requirement.of("a", "NotIn", ["x"]), Requirement.of("b", "Exists"), Requirement.of("b", "NotIn", ["z"])],
)
VALUES = (None, "x", "y", "z")


SPACES: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "blue": {"team": "blue", "env": "prod"},
    "red": {"team": "red"},
    "test": {"team": "blue", "env": "test"},
}
SPACE_SELECTORS: tuple[list[Requirement] | None, ...] = (
    None,
    [],
    [Requirement.of("team", "NotIn", ["blue"])],
    [Requirement.of("team", "NotIn", ["blue"]), Requirement.of("team", "Exists")],
    [Requirement.of("team", "In", ["blue"]), Requirement.of("env", "DoesNotExist")],
    [Requirement.of("team", "In", ["blue"]), Requirement.of("env", "NotIn", ["prod"])],
)


@pytest.mark.parametrize("is_of_new", [False, True])
@pytest.mark.parametrize("spaces", SPACE_SELECTORS, ids=str)
@pytest.mark.parametrize("asked", [[], *NEGATIVE], ids=lambda asked: str(Requirements(asked)))
def test_the_parts_of_a_reach_are_the_reach(
    asked: list[Requirement], spaces: list[Requirement] | None, is_of_new: bool
) -> None:
    """Of every pod that the wider one means either this one means it, or just one of those that are left out does.

    Each is found by its labels, its namespace and the labels of that.
    """
    names = frozenset(("default", "blue")) if spaces is None else frozenset[str]()
    stated = Reach(Requirements(asked), names, None if spaces is None else Requirements(spaces), is_of_new)
    reach = stated.settled()
    whole, less = reach.parted()

    for space, *values in ((space, a, b, c) for space in SPACES for a in VALUES for b in VALUES for c in VALUES):
        labels = tuple((key, value) for key, value in zip("abc", values, strict=True) if value is not None)
        like = Likeness(space, labels, (), is_ending=False)
        held = set(hooks_of(like, SPACES))
        assert stated.means(like, SPACES) == reach.means(like, SPACES)
        left_out = [each for each in less if each.means(like, SPACES)]
        assert whole.means(like, SPACES) == reach.means(like, SPACES) + len(left_out)
        if whole.means(like, SPACES):
            assert bool(left_out) == (not held.isdisjoint(reach.left_out))
        for each in (stated, whole, *less):
            assert not each.means(like, SPACES) or all(not held.isdisjoint(hooks) for hooks in each.hooks)


@pytest.mark.parametrize("asked", [[], [Requirement.of("a", "In", ["x"])], [Requirement.of("a", "Exists")]])
def test_what_leaves_nothing_out_has_no_parts(asked: list[Requirement]) -> None:
    """It is looked for by its labels, or means all."""
    reach = Reach(Requirements(asked), frozenset({"default"}))

    assert (reach, ()) == reach.parted()


def test_a_selector_that_leaves_out_very_much_has_no_parts() -> None:
    """They would be as many as its requirements, each as long as the selector."""
    reach = Reach(Requirements(Requirement.of(f"k{n}", "NotIn", ["x"]) for n in range(9)), frozenset())

    assert (reach, ()) == reach.parted()


def test_each_of_many_namespaces_finds_its_own_nodes() -> None:
    """Terms that differ in the namespaces they leave out; the one that is to come reads them as kube-scheduler does."""
    spaces = {f"ns{n}": {"team": f"t{n}"} for n in range(MANY)}
    nodes = [node(f"n{n}") for n in range(MANY + 1)]

    def of(number: int, at: str = "") -> Pod:
        others = Requirements([Requirement.of("team", "NotIn", [f"t{number}"])])
        away = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements(), namespace_selector=others),))
        phase, averse = (RUNNING, away) if at else ("Pending", PodAffinity())
        return a_pod(f"p{at}", namespace=f"ns{number}", pod_anti_affinity=averse, node_name=at, phase=phase)

    pods = [*(of(n, f"n{n}") for n in range(MANY)), *map(of, range(MANY))]
    trial = Trial(a_snapshot(nodes=nodes, pods=pods, namespaces=spaces), MARKET)

    for number in range(MANY):
        refusing = {misfit.target.name for misfit in trial.misfits(Shape((of(number),)))}
        assert {f"n{n}" for n in range(MANY)} - {f"n{number}"} == refusing


def tenant(number: int, copy: str = "", key: str = HOSTNAME, at: str = "", **given: Any) -> Pod:
    """A pod that lets none but its own tenant's into its domain, in whatever namespace."""
    others = Requirements([Requirement.of("tenant", "NotIn", [f"t{number}"])])
    away = PodAffinity((PodAffinityTerm(key, others, namespace_selector=Requirements()),))
    fields: dict[str, Any] = {"labels": {"tenant": f"t{number}"}, "cpu": "100m", "pod_anti_affinity": away}
    fields |= {"node_name": at, "phase": RUNNING if at else "Pending", "namespace": f"ns{number % 2}"}
    return a_pod(f"p{number}{copy}", **{**fields, **given})


def refused(snapshot: ClusterSnapshot) -> dict[str, set[str]]:
    """By waiting pod the nodes that refuse it."""
    trial = Trial(snapshot, MARKET)
    shapes = group(snapshot.pending, Readings.of(snapshot))
    return {shape.pod.name: {misfit.target.name for misfit in trial.misfits(shape)} for shape in shapes}


def test_each_of_many_tenants_finds_its_own_nodes() -> None:
    """The node with its own pods, and those without any; a pod without such a term is kept off by all of them."""
    nodes = [node(f"n{n}") for n in range(MANY + 2)]
    running = [tenant(n, "-there", at=f"n{n}") for n in range(MANY)]
    guest = a_pod("guest", labels={"app": "g"}, cpu="100m")

    found = refused(a_snapshot(nodes=nodes, pods=[*running, *map(tenant, range(MANY)), guest]))

    taken = {f"n{n}" for n in range(MANY)}
    assert found == {**{f"p{n}": taken - {f"n{n}"} for n in range(MANY)}, "guest": taken}


def test_a_refusal_names_who_is_there() -> None:
    """By its own term, or by that of the first of the others that keeps it off."""
    nodes = [node("n")]
    running = [tenant(n, "-there", at="n" if n == 5 else "elsewhere") for n in range(MANY)]
    guest = a_pod("guest", labels={"app": "g"}, cpu="100m")
    snapshot = a_snapshot(nodes=nodes, pods=[*running, *map(tenant, range(MANY)), guest])
    trial = Trial(snapshot, MARKET)
    asked = {each.name: trial.misfits(Shape((each,))) for each in snapshot.pending}

    (of_guest,), (of_last,) = asked["guest"], asked[f"p{MANY - 1}"]
    assert isinstance(of_guest.cause, Unwelcome)
    assert (Name("ns1/Pod/p5-there"), 1) == (of_guest.cause.workload, of_guest.cause.count)
    assert isinstance(of_last.cause, TooNear)
    assert (f"tenant NotIn [t{MANY - 1}]", 1) == (str(of_last.cause.selector), of_last.cause.count)
    assert () == asked["p5"]


def test_a_pod_with_two_terms_of_a_kind_counts_for_each() -> None:
    """One lets the guest pass and the other does not: the guest stays away, though a third pod lets it pass twice."""
    both = [Requirement.of("tenant", "NotIn", ["t1"])], [Requirement.of("app", "NotIn", ["g"])]
    away = PodAffinity(tuple(PodAffinityTerm(HOSTNAME, Requirements(each)) for each in both))
    kin = [tenant(n, "-there", at="elsewhere", namespace="default") for n in range(MANY)]
    kin = [replace(each, spec=replace(each.spec, pod_anti_affinity=_own_namespace(each))) for each in kin]
    there = a_pod("there", labels={"tenant": "t1"}, pod_anti_affinity=away, node_name="n", phase=RUNNING)
    guests = [a_pod("guest", labels={"app": "g"}), a_pod("friend", labels={"app": "g", "tenant": "t1"})]

    found = refused(a_snapshot(nodes=[node("n")], pods=[there, *kin, *guests]))

    assert {"guest": {"n"}, "friend": set[str]()} == found


def _own_namespace(pod: Pod) -> PodAffinity:
    (term,) = pod.spec.pod_anti_affinity.required
    return PodAffinity((replace(term, namespace_selector=None),))


@pytest.mark.parametrize(("key", "most"), [(HOSTNAME, MANY), (ZONE, 2)])
def test_nodes_are_bought_for_each_tenant_by_itself(key: str, most: int) -> None:
    """Two pods of a tenant share a node; in zones only as many tenants as there are zones get one."""
    pods = [tenant(n, copy, key) for n in range(MANY) for copy in ("-a", "-b")]

    made = decide(World(a_snapshot(pools=[a_pool()], pods=pods), MARKET), Options(with_bound=False))

    names = [{each.pod.split("/p")[1].split("-")[0] for each in launch.pods} for launch in made.launches]
    assert [1] * most == list(map(len, names))
    assert 2 * most == sum(len(launch.pods) for launch in made.launches)
    assert 2 * (MANY - most) == sum(len(each.pods) for each in made.refusals)
    bought = {each.pod for launch in made.launches for each in launch.pods}
    assert [] == judging.wrong(made.launches, sorted((p for p in pods if p.key in bought), key=queue_order), MARKET)
