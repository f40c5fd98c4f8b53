"""How often hints are tried, and what is said of those that are not."""

import pytest

from kerf.engine.decide import decide
from kerf.engine.explain.hints.tries import LEAST_DECIDED, Tries
from kerf.engine.explain.plan import explain
from kerf.engine.world import World
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.plan import Plan
from kerf.model.pods import Owner, Pod, PodSpec
from kerf.model.snapshot import ClusterNode
from kerf.model.topology import PodAffinity, PodAffinityTerm
from kerf.testing.builders import a_container, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type
from tests.engine.explain.test_evidence import OPTIONS, a_world


def explained(tries: Tries | None) -> Plan:
    """Four shapes that a limit leaves out, each of which a higher one would place."""
    world = a_world(*(a_pod(f"p{cpu}", cpu=cpu) for cpu in (1, 2, 3, 4)), limits={"cpu": "1m"})
    return explain(decide(world, OPTIONS), tries)


def test_hints_that_cannot_be_tried_come_without_a_patch() -> None:
    """The reasons are the same, and a note says that some hints were not tried."""
    tried, untried = explained(None), explained(Tries(0))

    assert [each.reason for each in tried.unplaced] == [each.reason for each in untried.unplaced]
    assert (True, False) == tuple(any(each.patch for each in plan.unplaced) for plan in (tried, untried))
    assert (False, True) == tuple(
        any("too much is refused" in note for note in plan.notes) for plan in (tried, untried)
    )


def test_a_limit_that_was_not_searched_to_the_end_is_not_called_the_smallest() -> None:
    """It is one that does."""
    hints = {each.hint for each in explained(Tries(1)).unplaced}

    assert not [hint for hint in hints if "smallest" in hint]


def test_no_limit_below_what_pods_ask_in_sum_is_searched() -> None:
    """Ten cpu take three nodes of four, so once that many do there is nothing left to try."""
    hints = {each.hint for each in explained(Tries(2)).unplaced}

    assert hints == {"12 is the smallest cpu limit of NodePool pool that places all 4 pods"}


@pytest.mark.parametrize("tries", [None, Tries(0)])
def test_of_types_that_were_not_looked_at_nothing_is_said(tries: Tries | None) -> None:
    """A limit on tries is no reason why no type would take a pod: there is one that is not allowed here."""
    market = a_market(an_instance_type("small", cpu=2, price="0.1"), an_instance_type("large", cpu=16, price="0.8"))
    pool = a_pool(requirements=Requirements([Requirement.of(INSTANCE_TYPE, "In", ("small",))]))
    (left,) = explain(decide(World(a_snapshot(pools=[pool], pods=[a_pod(cpu=8)]), market), OPTIONS), tries).unplaced

    assert "sold" not in left.hint
    assert ("allow instance type large" in left.hint) == (tries is None)


def test_tries_end_for_good_once_something_better_is_to_be_done() -> None:
    """Even where it is done soon."""
    wanted = iter([True, False, True])
    tries = Tries(10, lambda: next(wanted))

    assert [True, False, False] == [tries.take() for _ in range(3)]
    assert tries.are_over


A, B = "us-east-1a", "us-east-1b"
ONE_IN_A_ZONE = PodAffinity((PodAffinityTerm(ZONE, Requirements([Requirement.of("app", "Exists", ())])),))


def apart(count: int, *, cpu: int = 1, step: int = 0, is_owned: bool = False) -> list[Pod]:
    """Pods with labels of their own, of which each zone takes one; `step` more cpu for each, perhaps with owners."""
    specs = [PodSpec((a_container(cpu=cpu + n * step),), pod_anti_affinity=ONE_IN_A_ZONE) for n in range(count)]
    owners = [Owner("StatefulSet", f"set-{n}") if is_owned else None for n in range(count)]
    return [
        a_pod(f"p{n}", spec=spec, owner=owner, labels={"app": f"v{n}"})
        for n, (spec, owner) in enumerate(zip(specs, owners, strict=True))
    ]


def tried(pods: list[Pod], tries: Tries, *, zones: tuple[str, ...] = (A,), asked: tuple[str, ...] = ()) -> Plan:
    """What is said of them where a pool allows these of two zones, tried first for those that are asked about."""
    market = a_market(an_instance_type("m5.4xlarge", cpu=16, price="0.768", zones=(A, B)))
    on_demand = Requirement.of(CAPACITY_TYPE, "In", ("on-demand",))
    pool = a_pool("common", requirements=Requirements([on_demand, Requirement.of(ZONE, "In", zones)]))
    return explain(decide(World(a_snapshot(pools=[pool], pods=pods), market), OPTIONS), tries, asked)


def test_bare_pods_that_ask_the_same_share_one_tried_hint() -> None:
    """Ten and twenty refused pods cost as many decisions."""
    few, many = Tries(), Tries()
    tried(apart(11), few)
    found = tried(apart(21), many)

    assert few.decisions == many.decisions > 0
    assert 1 == len({each.hint for each in found.unplaced})


@pytest.mark.parametrize("zones", [(A,), (A, B)], ids=["one more zone helps one", "nothing helps"])
def test_what_is_in_vain_for_one_workload_is_not_tried_for_its_equals(zones: tuple[str, ...]) -> None:
    """Four and seven refused workloads cost as many decisions."""
    few, many = Tries(), Tries()
    tried(apart(5, is_owned=True), few, zones=zones)
    tried(apart(8, is_owned=True), many, zones=zones)

    assert few.decisions == many.decisions > 0


def test_decisions_for_hints_are_bounded_by_the_pods_they_are_made_for() -> None:
    """Pods that all differ have no hint in common; what is left has no patch, and a note says so."""
    tries = Tries(decided=3 * LEAST_DECIDED)
    found = tried(apart(8, step=1), tries)

    assert 2 == tries.decisions
    assert any("too much is refused" in note for note in found.notes)
    assert found.unplaced[0].patch is not None
    assert (None, False) == (found.unplaced[-1].patch, "found no change" in found.unplaced[-1].hint)


def test_tries_go_to_the_pods_that_come_first_in_the_plan() -> None:
    """Whatever the order of the queue; the row of each other says which command tries more."""
    tries = Tries(decided=3 * LEAST_DECIDED, are_short=True)
    found = tried(apart(8, step=1)[::-1], tries)

    assert found.unplaced[0].patch is not None
    more = [f"kerf explain pod/{each.pod} tries more" for each in found.unplaced]
    assert [False] + [True] * 6 == [text in each.hint for text, each in zip(more, found.unplaced, strict=True)]


def test_cells_that_are_asked_are_part_of_what_a_decision_costs() -> None:
    """Pods that all go by others cost more than as many that go by none."""

    def work(pods: list[Pod]) -> int:
        market = a_market(an_instance_type("m5.4xlarge", cpu=16, price="0.768", zones=(A, B)))
        return decide(World(a_snapshot(pools=[a_pool()], pods=pods), market), OPTIONS).work

    alone = [a_pod(f"p{number}", cpu=1 + number) for number in range(8)]
    assert work(alone) < work(apart(8, step=1))


def test_what_a_pod_asks_of_others_is_part_of_what_a_cell_costs() -> None:
    """A pod that all others keep off asks as much as there are pods; cells are given to it fewer times over."""

    def work(*, keeps_off_others: bool) -> int:
        def one(number: int) -> Pod:
            others = [f"v-{at}" for at in range(40) if (at != number) is keeps_off_others]
            away = PodAffinity((PodAffinityTerm(ZONE, Requirements([Requirement.of("app", "In", others)])),))
            return a_pod(f"p{number}", cpu="10m", labels={"app": f"v-{number}"}, pod_anti_affinity=away)

        market = a_market(an_instance_type("m5.4xlarge", cpu=16, price="0.768", zones=(A, B)))
        return decide(
            World(a_snapshot(pools=[a_pool()], pods=[one(number) for number in range(40)]), market), OPTIONS
        ).work

    assert 3 * work(keeps_off_others=False) < work(keeps_off_others=True)


def test_a_decision_for_many_pods_uses_up_more_than_one_for_few() -> None:
    """So all decisions together take a bounded time, however many pods wait."""
    tries = Tries(decided=10 * LEAST_DECIDED)

    assert [True, True, False, True] == [tries.take_decision(pods) for pods in (1, 8 * LEAST_DECIDED, 90, 2)]


def test_looks_at_all_pods_for_the_words_of_a_hint_are_bounded() -> None:
    """The first look is made, however many pods there are."""
    tries = Tries()

    assert [True, False] == [tries.take_look(pods) for pods in (5_000_000, 1)]


def test_a_decision_that_cost_more_than_expected_uses_up_what_it_cost() -> None:
    """A change that opens a whole catalogue is dearer than the decision before it."""
    tries = Tries(decided=10 * LEAST_DECIDED)

    assert tries.take_decision(1)
    tries.cost(10 * LEAST_DECIDED, expected=1)
    assert not tries.take_decision(1)


def test_the_first_decision_is_made_whatever_it_costs() -> None:
    """Explaining may always take as long as deciding did."""
    tries = Tries(decided=LEAST_DECIDED)

    assert [True, False] == [tries.take_decision(100 * LEAST_DECIDED) for _ in range(2)]


def test_nodes_and_shapes_are_part_of_what_a_decision_costs() -> None:
    """Ten times the nodes, or pods that all differ, are more work than the same number of equal pods."""

    def work(nodes: int, step: int) -> int:
        held = [ClusterNode(a_node(f"n{number}"), None) for number in range(nodes)]
        pods = [a_pod(f"p{number}", cpu=1 + step * number) for number in range(8)]
        return decide(World(a_snapshot(nodes=held, pods=pods), a_market()), OPTIONS).work

    assert work(1, 0) < work(50, 0) < work(50, 1)


def test_work_beside_decisions_uses_them_up() -> None:
    """To look at all that a pool would offer costs as much as a decision for a few pods."""
    tries = Tries(decided=4 * LEAST_DECIDED)

    assert tries.take_decision(1)
    tries.pay(3 * LEAST_DECIDED)
    assert not tries.take_decision(1)


def test_tries_end_once_they_have_asked_so_many_types() -> None:
    """The first is made whatever it costs; then they end for good."""
    tries = Tries(10, asked=100)

    assert [True, False, False] == [tries.take(types) for types in (101, 1, 0)]
    assert tries.are_over


def test_tries_go_first_to_the_pods_that_are_asked_about() -> None:
    """By `kerf explain`, whichever pods come first in the plan."""
    tries = Tries(decided=3 * LEAST_DECIDED, are_short=True)
    found = tried(apart(8, step=1), tries, asked=("default/p5",))

    assert ["default/p5"] == [each.pod for each in found.unplaced if "found no change" in each.hint]


class _Costs(Tries):
    """Tries that keep what each decision cost."""

    def __init__(self) -> None:
        super().__init__()
        self.costs: list[int] = []

    def cost(self, work: int, expected: int) -> None:
        self.costs.append(work)
        super().cost(work, expected)


def test_a_pool_is_opened_to_the_types_that_pods_may_get() -> None:
    """A catalogue has a thousand: what none of the pods would get costs a decision nothing."""
    together = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements([Requirement.of("app", "Exists", ())])),))
    spec = PodSpec((a_container(cpu=4),), pod_affinity=together)
    pods = [a_pod(f"p{n}", spec=spec, labels={"app": "a"}, owner=Owner("StatefulSet", "a")) for n in range(4)]
    named = Requirements([Requirement.of(INSTANCE_TYPE, "In", ("small",))])
    sizes = {"small": 8, "medium": 20, "large": 40}

    def explained_with(more: int) -> tuple[Plan, int]:
        types = [an_instance_type(name, cpu=cpu, price=str(cpu)) for name, cpu in sizes.items()]
        others = [an_instance_type(f"other-{n}", cpu=20, price=str(100 + n)) for n in range(more)]
        world = World(a_snapshot(pools=[a_pool("p", requirements=named)], pods=pods), a_market(*types, *others))
        tries = _Costs()
        return explain(decide(world, OPTIONS), tries), sum(tries.costs)

    (few, least), (many, most) = explained_with(0), explained_with(200)

    assert {f"allow {INSTANCE_TYPE} medium in NodePool p"} == {each.hint for each in (*few.unplaced, *many.unplaced)}
    assert most < 2 * least


def test_each_namespace_has_its_share_of_tries() -> None:
    """Sixty kinds of one tenant leave another the hint that it gets alone, wherever the names stand in order."""
    for name in ("aa", "zz"):
        many = [a_pod(f"m{n}", namespace="mean", cpu=1, memory=f"{n + 1}Mi") for n in range(60)]
        world = a_world(*many, a_pod("other", namespace=name, cpu=4), limits={"cpu": "1m"})
        plan = explain(decide(world, OPTIONS), Tries(30))
        by_key = {each.pod: each for each in plan.unplaced}

        assert by_key[f"{name}/other"].patch is not None
        assert any(each.patch is None for each in plan.unplaced)


def test_what_one_leaves_of_its_share_is_for_those_after_it() -> None:
    """Of ten tries each of two may have five; the first takes one, the second the rest."""
    tries = Tries(10)
    tries.share(1)
    assert tries.take()
    tries.share(0)

    assert [True] * 9 + [False] == [tries.take() for _ in range(10)]


def test_one_that_has_used_its_share_ends_no_others() -> None:
    """It is said of all tries that some were not made, and only in its own turn that they are over."""
    tries = Tries(4)
    tries.share(1)
    assert [True, True, False] == [tries.take() for _ in range(3)]
    assert tries.are_over
    tries.share(0)

    assert not tries.are_over
    assert tries.take()
    assert 1 == tries.refusals


def test_a_try_for_a_long_spec_costs_more_of_the_types_that_may_be_asked() -> None:
    """Four terms that no pool meets cost what any pod costs, four thousand end the tries of their namespace."""
    refusals = []
    for number in (4, 4000):
        terms = tuple(Requirements.of_labels({"team": f"t{n}"}) for n in range(number))
        tries = Tries(asked=60)
        explain(
            decide(a_world(*(a_pod(f"p{n}", affinity=terms, memory=f"{n + 1}Mi") for n in range(3))), OPTIONS), tries
        )
        refusals.append(tries.refusals)

    assert refusals[0] == 0 < refusals[1]


def test_terms_that_a_hint_makes_equal_are_said_once() -> None:
    """The patch of a pod with a thousand zones that are not sold has one term, and serves the pod."""
    terms = tuple(Requirements.of_labels({ZONE: f"nowhere-{n}"}) for n in range(1000))
    (unplaced,) = explain(decide(a_world(a_pod("p", cpu=1, affinity=terms)), OPTIONS)).unplaced

    assert unplaced.patch is not None
    assert 1 == str(unplaced.patch.change).count("matchExpressions")


def test_the_words_about_a_long_list_are_short() -> None:
    """Of values, gates and the like some are named, and how many more there are."""
    values = Requirements([Requirement.of("team", "In", [f"team-{n}" for n in range(5000)])])
    pods = (
        a_pod("values", affinity=(values,)),
        a_pod("gates", scheduling_gates=tuple(f"example.com/{n}" for n in range(5000))),
        a_pod("keys", selector={f"team-{n}": "x" for n in range(5000)}),
    )
    for each in explain(decide(a_world(*pods), OPTIONS)).unplaced:
        assert len(each.reason) < 1000, each.pod
        assert len(each.hint) < 1000, each.pod
        assert " more" in each.reason or each.pod == "default/keys"


def test_how_far_it_is_grows_with_the_pods_that_are_explained() -> None:
    """From the first to all of them."""
    world, told = a_world(*(a_pod(f"p{cpu}", cpu=cpu) for cpu in (1, 2, 3, 4)), limits={"cpu": "1m"}), list[float]()
    explain(decide(world, OPTIONS), tell=told.append)

    assert [0.25, 0.5, 0.75, 1.0] == told
