"""Terms that mean all pods but few: what they share is counted once, and verdicts are those of each by itself."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks import judging
from kerf.engine.decide import decide
from kerf.engine.options import Options
from kerf.engine.place.kindred import FEW
from kerf.engine.place.reaches import Between, CommonLabels, Likeness, Reach, hooks_of
from kerf.engine.place.shapes import Readings, Shape, group, queue_order
from kerf.engine.place.trial import Trial
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.pods import RUNNING, Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import (
    AffinityCircle,
    PodAffinity,
    PodAffinityTerm,
    TooNear,
    TopologySpreadConstraint,
    Unwelcome,
)
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
    [Requirement.of("a", "In", ["x", "y"])],
    [Requirement.of("a", "In", ["x", "y"]), Requirement.of("b", "NotIn", ["x", "y"])],
    [Requirement.of("a", "NotIn", ["x", "y"]), Requirement.of("b", "DoesNotExist"), Requirement.of("c", "Exists")],
)
COMMON: tuple[list[Requirement], ...] = (
    [],
    [Requirement.of("a", "In", ["x"])],
    [Requirement.of("a", "NotIn", ["x"]), Requirement.of("b", "DoesNotExist")],
    [Requirement.of("b", "In", ["y"]), Requirement.of("c", "In", ["x"])],
)
"""What selectors have in common beside those under test."""
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


@pytest.mark.parametrize("common", COMMON, ids=lambda common: str(Requirements(common)))
@pytest.mark.parametrize("is_of_new", [False, True])
@pytest.mark.parametrize("spaces", SPACE_SELECTORS, ids=str)
@pytest.mark.parametrize("asked", [[], *NEGATIVE], ids=lambda asked: str(Requirements(asked)))
def test_the_parts_of_a_reach_are_the_reach(
    asked: list[Requirement], spaces: list[Requirement] | None, is_of_new: bool, common: list[Requirement]
) -> None:
    """It means the pods of the wider one but those of one part, and those of another.

    Each is found by its labels, its namespace and the labels of that.
    """
    names = frozenset(("default", "blue")) if spaces is None else frozenset[str]()
    stated = Reach(Requirements(asked), names, None if spaces is None else Requirements(spaces), is_of_new)
    reach = stated.settled()
    parting = reach.parted(often(common))
    whole = parting.whole
    less, more = Between((whole,), (reach,), parting.less), Between((reach,), (whole,), parting.more)

    for space, *values in ((space, a, b, c) for space in SPACES for a in VALUES for b in VALUES for c in VALUES):
        labels = tuple((key, value) for key, value in zip("abc", values, strict=True) if value is not None)
        like = Likeness(space, labels, (), is_ending=False)
        held = set(hooks_of(like, SPACES))
        assert stated.means(like, SPACES) == reach.means(like, SPACES)
        counts = whole.means(like, SPACES) - less.means(like, SPACES) + more.means(like, SPACES)
        assert counts == reach.means(like, SPACES)
        for each in (stated, whole, less, more):
            assert not each.means(like, SPACES) or all(not held.isdisjoint(hooks) for hooks in each.hooks)


def often(*selectors: list[Requirement], times: int = 9) -> CommonLabels:
    """What is common to these selectors, each of so many constraints."""
    return CommonLabels(lambda: [PodAffinityTerm(ZONE, Requirements(each)) for each in selectors for _ in range(times)])


@pytest.mark.parametrize("asked", [[], [Requirement.of("a", "In", ["x"])], [Requirement.of("a", "Exists")]])
def test_what_leaves_nothing_out_has_no_parts(asked: list[Requirement]) -> None:
    """It is looked for by its labels, or means all."""
    reach = Reach(Requirements(asked), frozenset({"default"}))

    assert reach == reach.parted(often()).whole


@pytest.mark.parametrize("count", range(1, 21))
def test_however_much_a_selector_leaves_out_has_one_part(count: int) -> None:
    """Its labels are as many as it names; what others leave out as well is no part of it."""
    own = [Requirement.of("own", "NotIn", ["v"])]
    others = [Requirement.of(f"k{n}", "NotIn", ["x"]) for n in range(count - 1)]
    reach = Reach(Requirements([*own, *others]), frozenset({"default"}))

    alone, beside = reach.parted(often()), reach.parted(often(others))

    assert (Requirements(), count) == (alone.whole.selector, len(alone.less))
    assert (Requirements(others), (("own", "v"),)) == (beside.whole.selector, beside.less)


def test_a_value_that_others_list_too_is_no_part() -> None:
    """Of a thousand terms that each mean one large set and a pod more the set is counted once."""
    reach = Reach(Requirements([Requirement.of("tier", "In", ["web", "own"])]), frozenset({"a", "b"}))

    parting = reach.parted(often([Requirement.of("tier", "In", ["web"])]))

    assert Requirements([Requirement.of("tier", "In", ["web"])]) == parting.whole.selector
    assert ((), (("tier", "own"),)) == (parting.less, parting.more)


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


@pytest.mark.parametrize("operator", ["NotIn", "In"])
@pytest.mark.parametrize("skew", [1, 3])
@pytest.mark.parametrize("are_alike", [True, False], ids=["of one size", "of many sizes"])
def test_nodes_are_bought_for_pods_that_are_spread_over_them(operator: str, skew: int, *, are_alike: bool) -> None:
    """Each counts the pods of other tenants, or those of one tenant and its own; no pod comes to one too many."""
    pods = []
    for n in range(2 * MANY):
        labels = {"tenant": f"t{n % MANY // 2}"}
        named = [labels["tenant"]] if operator == "NotIn" else [labels["tenant"], "t0"]
        even = (TopologySpreadConstraint(HOSTNAME, skew, Requirements([Requirement.of("tenant", operator, named)])),)
        cpu = "100m" if are_alike else f"{100 + n}m"
        pods.append(a_pod(f"p{n:03}", cpu=cpu, labels=labels, spread=even if n % 5 else ()))

    made = decide(World(a_snapshot(pools=[a_pool()], pods=pods), MARKET), Options(with_bound=False))

    assert () == made.refusals
    assert [] == judging.wrong(made.launches, sorted(pods, key=queue_order), MARKET)


def seeking(number: int, key: str) -> Pod:
    """A pod that must be with one of another tenant."""
    others = Requirements([Requirement.of("tenant", "NotIn", [f"t{number}"])])
    near = PodAffinity((PodAffinityTerm(key, others),))
    return a_pod(f"p{number}", cpu="100m", labels={"tenant": f"t{number}"}, pod_affinity=near)


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
def test_those_that_seek_all_but_their_own_follow_one_that_seeks_none(key: str) -> None:
    """It is of the first tenant, whose own pod comes once another one has."""
    pods = [a_pod("seed", cpu="100m", labels={"tenant": "t0"}), *(seeking(n, key) for n in range(MANY))]

    made = decide(World(a_snapshot(pools=[a_pool()], pods=pods), MARKET), Options(with_bound=False))

    assert ((), [MANY + 1]) == (made.refusals, [len(launch.pods) for launch in made.launches])


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
def test_those_that_seek_all_but_their_own_cannot_begin(key: str) -> None:
    """Each waits for another one. A pod alone with its own label would be no company for it."""
    pods = [seeking(n, key) for n in range(MANY)]

    made = decide(World(a_snapshot(pools=[a_pool()], pods=pods), MARKET), Options(with_bound=False))

    assert [] == [*made.launches]
    causes = {pod: refusal.cause for refusal in made.refusals for pod in (each.name for each in refusal.pods)}
    assert AffinityCircle((Name("default/p0"), Name("default/p1")), 2, True) == causes["p0"]
    assert AffinityCircle((Name("default/p1"), Name("default/p0")), 2, True) == causes["p1"]
    assert MANY == len(causes)


def related(draw: Random, number: int, kind: str, key: str, form: int) -> dict[str, Any]:
    """What a pod asks of nearly all others, or of those of a large tenant and its own."""
    own = draw.choice((f"t{number}", f"t{number}", f"t{draw.randrange(3)}"))
    operator, named = (("NotIn", [own]), ("NotIn", [own, "t0"]), ("In", [own, "t0"]))[form % 3]
    also = ([], [Requirement.of("app", "NotIn", ["g"])], [Requirement.of(f"k{number}", "DoesNotExist")])[form // 3 % 3]
    selector = Requirements([Requirement.of("tenant", operator, named), *also])
    term = PodAffinityTerm(key, selector, namespace_selector=(None, Requirements())[form % 2])
    match kind:
        case "even":
            return {"spread": (TopologySpreadConstraint(key, draw.choice((1, 2)), selector),)}
        case "few domains":
            return {"spread": (TopologySpreadConstraint(key, 1, selector, min_domains=4),)}
        case "near":
            return {"pod_affinity": PodAffinity((term,))}
        case "near two":
            return {"pod_affinity": PodAffinity((term, PodAffinityTerm(HOSTNAME, Requirements())))}
    return {"pod_anti_affinity": PodAffinity((term,))}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
@pytest.mark.parametrize("kind", ["even", "few domains", "near", "near two", "away"])
def test_each_of_many_is_refused_where_it_would_be_by_itself(kind: str, key: str, seed: int) -> None:
    """Of one pod alone the ledger counts what it means; of many it counts what they share, and what each does not."""
    draw = Random(f"{kind} {key} {seed}")
    nodes = [node(f"n{n}", draw.choice(("1", "2", "3", ""))) for n in range(6)]

    def made(number: int, at: str) -> Pod:
        labels = {
            "tenant": f"t{draw.choice((number, number, 0, 1))}",
            **draw.choice(({}, {"app": "g"}, {f"k{number}": "x"})),
        }
        where = {"node_name": at, "phase": RUNNING, "deleted_s": draw.choice((None, None, 1.0))} if at else {}
        asked: dict[str, Any] = {} if at else related(draw, number, kind, key, seed)
        asked["cpu"] = f"{100 + number}m"
        return a_pod(
            f"p{number}-{at}", namespace=draw.choice(("one", "one", "one", "two")), labels=labels, **asked, **where
        )

    running = [made(draw.randrange(9), draw.choice(nodes).name) for _ in range(draw.randrange(3, 20))]
    waiting = [made(number, "") for number in range(MANY)]

    found = refused(a_snapshot(nodes=nodes, pods=[*running, *waiting]))

    alone = [refused(a_snapshot(nodes=nodes, pods=[*running, pod])) for pod in waiting]
    assert {name: names for each in alone for name, names in each.items()} == found
