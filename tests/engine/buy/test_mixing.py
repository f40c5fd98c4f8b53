"""Pods that are nearly all different: nodes are filled on arrays, and every rule holds all the same."""

from dataclasses import replace

from benchmarks import diverse, judging
from kerf.engine.buy.bound import lower_bound
from kerf.engine.buy.filling import Filler
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.mixing import mixed, suits
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.place.shapes import Crowding, group, queue_order
from kerf.engine.world import World
from kerf.model.pods import Pod
from kerf.testing.builders import a_pod, a_pool, a_snapshot
from tests.engine.worlds import port_spec, supply_of

MARKET = diverse.types(16)
POOL = a_pool(capacity_types=())
OFFERED = supply_of(POOL, types=MARKET.types).available
MANY = 600


def decided(pods: list[Pod], **limits: str) -> Decision:
    """What is bought for them on types of 1 to 16 cores."""
    pool = a_pool(capacity_types=(), limits=limits or None)
    return decide(World(a_snapshot(pools=[pool], pods=pods), MARKET), Options(with_bound=False))


def different(count: int) -> list[Pod]:
    """Pods of which no two are equal."""
    return [a_pod(f"p-{n}", cpu=f"{100 + n}m", memory=f"{64 + 7 * n % 997}Mi") for n in range(count)]


def test_a_diverse_workload_can_be_bound_where_it_is_planned() -> None:
    """Judged without Kerf's own checks; the pods that keep each other off have one node each, and no other has one."""
    snapshot = diverse.diverse(MANY)
    made = decide(World(snapshot, MARKET), Options(with_bound=False))

    assert () == made.refusals
    assert [] == judging.wrong(made.launches, sorted(snapshot.pending, key=queue_order), MARKET)
    assert MANY // 5 <= len(made.launches) <= MANY // 5 * 1.02


def test_pods_without_relations_fill_nodes_near_the_bound() -> None:
    """Within 5 % of what any plan costs at least."""
    pods = different(MANY)
    made = decided(pods)
    bound = lower_bound(group(pods), OFFERED)

    assert [] == judging.wrong(made.launches, pods, MARKET)
    assert bound is not None
    assert bound <= sum(launch.price_micro for launch in made.launches) <= 1.05 * bound


def test_a_pod_that_no_type_holds_is_left_alone() -> None:
    """The others have their nodes."""
    made = decided([*different(MANY), a_pod("huge", cpu=17)])

    assert ["default/huge"] == [pod.key for refusal in made.refusals for pod in refusal.pods]
    assert MANY == sum(len(launch.pods) for launch in made.launches)


def test_alternatives_are_those_that_hold_the_same_pods() -> None:
    """Found on arrays where no limit counts, and type by type where one does that binds nothing."""
    few = different(20)
    free, counted = decided(few), decided(few, cpu="100000")

    assert [launch.alternatives for launch in counted.launches] == [launch.alternatives for launch in free.launches]
    assert [launch.charge for launch in counted.launches] == [launch.charge for launch in free.launches]


def test_one_pod_of_a_group_a_node() -> None:
    """However few the shapes: the node begins with one of those that keep each other off."""
    alone = Crowding((0,), ((0, 1),))
    shapes = [replace(shape, crowding=alone) for shape in group(different(3))]

    purchase = mixed(Filler(shapes), OFFERED, [1, 1, 1])

    assert [[0, 0, 1], [0, 1, 0], [1, 0, 0]] == sorted(list(load.counts) for load, _ in purchase.loads)
    assert [0, 0, 0] == purchase.left


def test_pods_that_let_only_their_own_pass_share_nodes_with_none_else() -> None:
    """Of two tenants with two kinds of pods each: a node for each tenant."""
    of_tenants = [Crowding((0, 1 + tenant), apart=((0, (1 + tenant,)),)) for tenant in (0, 0, 1, 1)]
    shapes = [replace(shape, crowding=each) for shape, each in zip(group(different(4)), of_tenants, strict=True)]

    purchase = mixed(Filler(shapes), OFFERED, [2] * 4)

    assert [[0, 0, 2, 2], [2, 2, 0, 0]] == sorted(list(load.counts) for load, _ in purchase.loads)
    assert [0] * 4 == purchase.left


def test_pods_with_ports_are_searched_for() -> None:
    """So are those whose pools have limits, and those of few shapes."""
    pods = different(MANY)
    port = a_pod("port", spec=port_spec(80))
    free, limited = Ledger((), {}), Ledger([a_pool(limits={"cpu": 9})], {})

    def is_mixed(pods: list[Pod], ledger: Ledger) -> bool:
        shapes = group(pods)
        return suits(Filler(shapes), OFFERED, [1] * len(shapes), ledger)

    assert is_mixed(pods, free)
    assert not is_mixed([*pods, port], free)
    assert not is_mixed(pods, limited)
    assert not is_mixed(pods[:10], free)


def test_the_bound_of_many_rows_is_hardly_less() -> None:
    """Types that others imply are left out of 400, and not of 100; each of the latter is one of the former."""
    shapes = group(different(30))
    few, many = (supply_of(POOL, types=diverse.types(n).types).available for n in (100, 400))

    exact, rough = lower_bound(shapes, few), lower_bound(shapes, many)

    assert exact is not None
    assert rough is not None
    assert 0.95 * exact < rough <= exact
