"""001-22: price caps and floors of NodePools, and a limit of what a pool costs."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from kerf.engine.buy.limits import usage
from kerf.engine.disruption.budgets import Census
from kerf.engine.supply.caps import excess
from kerf.engine.world import World
from kerf.model.bounds import MAX_GPU_PRICE, MAX_PRICE, MIN_NODES, bounds_of
from kerf.model.causes import OverPriceCap
from kerf.model.constraints import INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, NodeOverlay, Offering
from kerf.model.nodeclaim import REPLACED_BY
from kerf.model.nodepool import EMPTY, Budget, Disruption, NodePool
from kerf.model.plan import Stage
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import G5, G5_12X, M5, bought, offer, only_unplaced, planned, some, supply_of

COST = "kerf.dev/cost-per-hour"
G6 = an_instance_type("g6.xlarge", devices=cards(1, 23034, "L4"), price="0.8048")
EIGHTH = an_instance_type("g6f.large", devices=[replace(cards(1, 2860, "L4")[0], eighths=1)], price="0.2", family="g6f")


def capped(price: str, key: str = MAX_PRICE, **given: Any) -> NodePool:
    """A pool with a cap on itself."""
    return a_pool(own_annotations={key: price}, **given)


def test_no_offering_above_the_cap_is_bought() -> None:
    """The cheaper type is; the dearer one says by how much it is too dear."""
    decided = planned([a_pod(gpu=1)], [capped("0.90", types=["g5.xlarge", "g6.xlarge"])], [G5, G6])

    assert [("g6.xlarge", 1)] == bought(decided)
    assert () == decided.launches[0].alternatives
    assert "g5.xlarge: price 1.006 > cap 0.90" in decided.launches[0].why


def test_a_cap_that_leaves_nothing_is_the_reason() -> None:
    """Stage offerings; the patch is the least cap that helps, and planning with it places the pod."""
    unplaced = only_unplaced(planned([a_pod(gpu=1)], [capped("0.90")], [G5]))

    assert (Stage.OFFERINGS, "g5.xlarge: price 1.006 > cap 0.90") == (unplaced.stage, unplaced.reason.split(" (")[0])
    assert unplaced.patch is not None
    assert {"metadata": {"annotations": {MAX_PRICE: "1.006"}}} == unplaced.patch.change
    assert [("g5.xlarge", 1)] == bought(planned([a_pod(gpu=1)], [capped("1.006")], [G5]))


def test_the_price_of_a_gpu_is_that_of_a_physical_one() -> None:
    """Four cards share the price of their node, an eighth of a card is an eighth, and no card has no price."""
    bounds = bounds_of({MAX_GPU_PRICE: "1.50"})

    assert [None, None, None] == [bounds.excess(kind, kind.offerings[0].price_micro) for kind in (G5, G5_12X, M5)]
    assert OverPriceCap(1_600_000, 1_500_000, per_gpu=True) == bounds.excess(EIGHTH, EIGHTH.offerings[0].price_micro)
    excess_ = OverPriceCap(1_418_000, 1_400_000, per_gpu=True)
    assert excess_ == bounds_of({MAX_GPU_PRICE: "1.4"}).excess(G5_12X, 5_672_000)


def test_a_cap_that_holds_in_some_zones_only_narrows_the_claim() -> None:
    """Whoever launches the claim knows its requirements and not the cap."""
    prices = {"us-east-1a": 400_000, "us-east-1b": 950_000}
    offerings = tuple(Offering(zone, SPOT, price) for zone, price in prices.items())
    kind = an_instance_type(
        "g5.xlarge", devices=cards(1), zones=tuple(prices), capacity_types=(SPOT,), offerings=offerings
    )
    decided = planned([a_pod(gpu=1)], [capped("0.90", capacity_types=(SPOT,))], [kind])

    assert {"us-east-1a"} == decided.launches[0].requirements[ZONE].values


def test_overlays_correct_prices_before_they_are_capped() -> None:
    """For what is bought, and for a node that runs: it is told by how much it is too dear by now."""
    named = Requirements([Requirement.of(INSTANCE_TYPE, "In", ("g5.xlarge",))])
    overlay = NodeOverlay("discount", named, price="0.70")
    pool, market = capped("0.90"), a_market(G5)
    given: dict[str, Any] = {
        "pools": [pool],
        "nodes": [a_node(instance_type="g5.xlarge")],
        "claims": [a_claim(instance_type="g5.xlarge", node_name="node")],
    }
    low = a_snapshot(**given, overlays=(overlay,))
    high = a_snapshot(**given, overlays=(replace(overlay, price="1.12"),))

    assert 700_000 == offer(pool, G5, overlays=(overlay,)).price_micro
    found = [excess(seen.nodes[0], pool, World(seen, market).supply) for seen in (low, high)]
    assert [None, OverPriceCap(1_120_000, 900_000)] == found


@pytest.mark.parametrize("key", [MAX_PRICE, MAX_GPU_PRICE])
@pytest.mark.parametrize("text", ["", "0", "0,90", "$0.90", "-1", "1e3", "0.9 USD", "0.1234567", "٠.٩"])
def test_a_price_that_is_none_is_not_taken_for_absent(key: str, text: str) -> None:
    """The pool takes no nodes, and says which annotation, what was expected and what came."""
    unplaced = only_unplaced(planned([a_pod(cpu=1)], [capped(text, key)], [M5]))

    assert f"annotation {key}: expected a price above 0" in unplaced.reason
    assert repr(text) in unplaced.reason


def test_the_annotation_of_the_template_wins() -> None:
    """As with every annotation that counts on both."""
    pool = a_pool(own_annotations={MAX_PRICE: "0.10"}, annotations={MAX_PRICE: "0.50"})

    assert 500_000 == pool.bounds.max_price_micro


def test_the_cost_of_a_pool_is_a_limit_like_any_other() -> None:
    """12 an hour hold eleven nodes at 1.006 and not a twelfth; the stage is `limits`."""
    decided = planned(some(13, gpu=1), [a_pool(limits={COST: "12"})], [G5])

    assert 11 == len(decided.launches)
    left = decided.unplaced[0]
    assert (2, Stage.LIMITS) == (len(decided.unplaced), left.stage)
    assert "limit kerf.dev/cost-per-hour 12.00 of NodePool pool: 11.066 planned, 1.006 more needed" in left.reason
    assert left.patch is not None
    assert {"spec": {"limits": {"kerf.dev/cost-per-hour": "13.078"}}} == left.patch.change


def test_what_runs_counts_at_its_present_price() -> None:
    """Where the pool limits the cost, and nowhere else."""
    claims = [a_claim("a", pool="priced"), a_claim("b", pool="other")]
    pools = [a_pool("priced", limits={COST: 1}), a_pool("other", limits={"cpu": 9})]
    used = usage(World(a_snapshot(pools=pools, claims=claims), a_market(M5)))

    assert (192_000, False) == (used["priced"][COST], COST in used["other"])


def test_a_node_is_charged_at_the_highest_price_it_may_get() -> None:
    """Two zones, one claim for both: the limit holds wherever the cloud places it."""
    offerings = (Offering("us-east-1a", ON_DEMAND, 400_000), Offering("us-east-1b", ON_DEMAND, 700_000))
    kind = an_instance_type("m5.xlarge", zones=("us-east-1a", "us-east-1b"), offerings=offerings)
    decided = planned(some(2, cpu=4), [a_pool(limits={COST: "1.2"})], [kind])

    assert (1, 1) == (len(decided.launches), len(decided.unplaced))


def test_a_pool_below_its_floor_buys_without_pods() -> None:
    """The cheapest type that it offers, as often as nodes are missing; those on their way count."""
    pool = a_pool(own_annotations={MIN_NODES: "3"})
    decided = planned([], [pool], [M5, G5], claims=[a_claim(reached=())])

    assert [("m5.xlarge", 0)] * 2 == bought(decided)
    assert "NodePool pool keeps 3 nodes (kerf.dev/min-nodes) and has 1" == decided.launches[0].why
    assert Fraction(2 * 192_000) == decided.cost.after_micro - decided.cost.before_micro


@pytest.mark.parametrize(("replaced_by", "more"), [("b", 2), ("gone", 1)])
def test_a_node_in_whose_place_another_comes_does_not_count(replaced_by: str, more: int) -> None:
    """Where that one is there; a crash can leave the name of a claim that was never created."""
    pool, marked = a_pool(own_annotations={MIN_NODES: "3"}), {REPLACED_BY: replaced_by}
    claims = [a_claim("a", reached=(), annotations=marked), a_claim("b", reached=())]

    assert [("m5.xlarge", 0)] * more == bought(planned([], [pool], [M5], claims=claims))


def test_nodes_that_pods_need_count_towards_the_floor() -> None:
    """Two pods fill two nodes: one more makes three."""
    decided = planned(some(2, cpu=4), [a_pool(own_annotations={MIN_NODES: "3"})], [M5])

    assert [("m5.xlarge", 0), ("m5.xlarge", 1), ("m5.xlarge", 1)] == bought(decided)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"limits": {"nodes": 1}}, "1 of 2 nodes (kerf.dev/min-nodes): its limit nodes leaves no room for a m5.xlarge"),
        ({"types": ["x1.large"]}, "0 of 2 nodes (kerf.dev/min-nodes): it offers no instance type"),
    ],
)
def test_a_floor_that_cannot_be_had_says_what_stands_in_the_way(given: dict[str, Any], why: str) -> None:
    """As a note of the plan, and for the events."""
    decided = planned([], [a_pool(own_annotations={MIN_NODES: "2"}, **given)], [M5])

    assert any(note.startswith(f"NodePool pool has {why}") for note in decided.notes)
    assert ["pool"] == [pool for pool, _ in decided.unmet_floors]


def test_a_static_pool_at_its_limit_names_its_replicas() -> None:
    """It keeps no floor of ours, and its number is one of its spec."""
    decided = planned([], [a_pool(replicas=2, limits={"nodes": 1})], [M5])

    why = "1 of 2 nodes (spec.replicas): its limit nodes leaves no room for a m5.xlarge"
    assert [f"NodePool pool has {why}"] == [note for note in decided.notes if "replicas" in note]


@pytest.mark.parametrize(("floor", "may_go"), [("0", 3), ("2", 1), ("3", 0), ("5", 0), ("two", 0)])
def test_no_node_of_the_floor_may_go(floor: str, may_go: int) -> None:
    """Whatever the budgets say; a floor that cannot be read keeps every node."""
    pool = a_pool(own_annotations={MIN_NODES: floor}, disruption=Disruption(budgets=(Budget("100%"),)))
    nodes, claims = zip(*((a_node(f"n{n}"), a_claim(f"c{n}", node_name=f"n{n}")) for n in range(3)), strict=True)
    snapshot = a_snapshot(pools=[pool], nodes=nodes, claims=claims)

    assert may_go == Census(snapshot).allowed(pool, EMPTY)


def test_a_cap_of_cards_a_node_is_a_requirement() -> None:
    """`karpenter.k8s.aws/instance-gpu-count Lt 5`: a node of eight cards is not offered, one of four is."""
    key = "karpenter.k8s.aws/instance-gpu-count"
    four = an_instance_type("four", devices=cards(4), labels={key: "4"})
    eight = an_instance_type("eight", devices=cards(8), labels={key: "8"}, price="0.5")
    pool = a_pool(requirements=Requirements([Requirement.of(key, "Lt", ("5",))]))

    assert ["four"] == [c.kind.name for c in supply_of(pool, types=[four, eight]).available]
