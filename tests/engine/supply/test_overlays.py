"""NodeOverlays: prices, capacities, order and conflicts as Karpenter's, and cards that they never make."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.causes import cause_text
from kerf.engine.supply.overlays import adjusted_price, apply, conflicts
from kerf.model.causes import Name, OverlayContradicts, OverlayInvalid, Quoted
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType, NodeOverlay
from kerf.model.nodepool import NodePool
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap
from kerf.testing.builders import a_market, a_pod, a_pool, an_instance_type
from tests.engine.worlds import G5, G5_12X, M5, a_hami_pool, a_slice, bought, planned, refused
from tests.sharing.nvidia.builders import PLUGIN, plugin_map, sharing

FUSE = "smarter-devices/fuse"
POOL = a_pool()


def an_overlay(name: str = "overlay", *, on: dict[str, str] | None = None, **given: Any) -> NodeOverlay:
    """An overlay on the types with these labels, by default all."""
    capacity = Resources(given.pop("capacity", {}))
    return NodeOverlay(name, Requirements.of_labels(on or {}), capacity=capacity, **given)


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"price": "1.20"}, 1_200_000),
        ({"price": "0"}, 0),
        ({"price_adjustment": "+0.5"}, 2_500_000),
        ({"price_adjustment": "-0.5"}, 1_500_000),
        ({"price_adjustment": "-3"}, 0),
        ({"price_adjustment": "-10%"}, 1_800_000),
        ({"price_adjustment": "+12.5%"}, 2_250_000),
        ({"price_adjustment": "-200%"}, 0),
    ],
)
def test_a_price_is_replaced_or_adjusted(given: dict[str, Any], expected: int) -> None:
    """Absolute, plus or minus an amount, or in percent; never below zero."""
    assert expected == adjusted_price(2_000_000, an_overlay(**given))


def test_a_price_is_set_per_offering() -> None:
    """An overlay on one zone and capacity type leaves the other offerings alone."""
    kind = an_instance_type(price="1", zones=("a", "b"), capacity_types=(SPOT, ON_DEMAND))
    overlay = an_overlay(on={ZONE: "a", CAPACITY_TYPE: SPOT}, price="0.3")

    changed = apply([overlay], POOL, (kind,)).types[0]

    assert {("a", SPOT): 300_000, ("a", ON_DEMAND): 1_000_000, ("b", SPOT): 1_000_000, ("b", ON_DEMAND): 1_000_000} == {
        (o.zone, o.capacity_type): o.price_micro for o in changed.offerings
    }


def test_a_price_that_is_final_is_changed_by_none() -> None:
    """What a scenario says that something costs from now on is what it costs."""
    kind = replace(M5, offerings=tuple(replace(offering, is_final=True) for offering in M5.offerings))
    (found,) = apply([an_overlay(price="0.01")], POOL, (kind,)).types

    assert kind.offerings == found.offerings


def test_the_catalogue_is_left_alone_where_no_overlay_matches() -> None:
    """An overlay for another type, or for another pool, changes nothing."""
    other_type = an_overlay("a", on={INSTANCE_TYPE: "c5.large"}, price="9")
    other_pool = an_overlay("b", on={"karpenter.sh/nodepool": "other"}, price="9")

    assert (M5,) == apply([other_type, other_pool], POOL, (M5,)).types


@pytest.mark.parametrize(
    "on",
    [
        {"karpenter.sh/nodepool": "pool"},
        {"karpenter.k8s.aws/ec2nodeclass": "default"},
        {"team": "a"},
        {INSTANCE_TYPE: "m5.xlarge"},
    ],
)
def test_overlays_match_by_labels_of_type_and_pool(on: dict[str, str]) -> None:
    """The pool's name, its NodeClass, its template's labels and the type's own."""
    pool = a_pool(labels={"team": "a"})

    assert 9_000_000 == apply([an_overlay(on=on, price="9")], pool, (M5,)).types[0].offerings[0].price_micro


def test_a_label_that_nothing_defines_matches_nothing() -> None:
    """In and Exists on an unknown label exclude."""
    overlay = NodeOverlay("o", Requirements([Requirement.of("team", "Exists")]), price="9")

    assert (M5,) == apply([overlay], POOL, (M5,)).types


def test_capacity_is_added_to_the_whole_type() -> None:
    """Any extended resource; offerings and other resources stay."""
    changed = apply([an_overlay(on={ZONE: "us-east-1a"}, capacity={FUSE: 20})], POOL, (M5,)).types[0]

    assert {**M5.capacity, FUSE: 20} == dict(changed.capacity)


def test_the_higher_weight_wins_price_and_each_resource() -> None:
    """Prices come from one overlay, capacities resource by resource."""
    light = an_overlay("z", weight=1, price="1", capacity={FUSE: 1, "other": 7})
    heavy = an_overlay("a", weight=2, price="2", capacity={FUSE: 2})

    for order in ([light, heavy], [heavy, light]):
        changed = apply(order, POOL, (M5,)).types[0]
        assert 2_000_000 == changed.offerings[0].price_micro
        assert (2, 7) == (changed.capacity[FUSE], changed.capacity["other"])


def test_at_equal_weight_the_later_name_comes_first() -> None:
    """As Karpenter's code does; its documents say otherwise. Also where one name begins with the other."""
    first, second, third = (an_overlay(name, price="1") for name in ("b", "ab", "a"))

    assert [first, second, third] == sorted([third, second, first], key=lambda o: o.order)


def test_an_invalid_overlay_is_applied_nowhere() -> None:
    """It gives its own reason, and stands in nobody's way."""
    overlays = [an_overlay("a", price="1"), an_overlay("b", price="1", invalid="spec.x: expected y, got z")]

    assert {"b": OverlayInvalid(Quoted("spec.x: expected y, got z"))} == conflicts(overlays, [POOL], a_market(M5))


def test_two_prices_at_equal_weight_conflict() -> None:
    """The later in order (the earlier name) is applied nowhere, also when both say the same price."""
    overlays = [an_overlay("a", price="1"), an_overlay("b", price="1")]

    assert {"a": OverlayContradicts(Name("b"))} == conflicts(overlays, [POOL], a_market(M5))


@pytest.mark.parametrize(
    "first, second",
    [
        ({"price": "1", "weight": 1}, {"price": "2", "weight": 2}),
        ({"capacity": {FUSE: 1}}, {"capacity": {FUSE: 1}}),
        ({"capacity": {FUSE: 1}}, {"capacity": {"other": 2}}),
        ({"capacity": {FUSE: 1}}, {"price": "1"}),
        ({"price": "1", "on": {ZONE: "us-east-1a"}}, {"price": "2", "on": {ZONE: "us-east-1b"}}),
        ({"price": "1", "on": {INSTANCE_TYPE: "m5.xlarge"}}, {"price": "2", "on": {INSTANCE_TYPE: "g5.xlarge"}}),
    ],
    ids=["weights", "equal capacity", "other resource", "price and capacity", "zones", "types"],
)
def test_overlays_that_can_stand_together_do(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Different weights, equal capacities, and different offerings are no conflict."""
    kind = an_instance_type(zones=("us-east-1a", "us-east-1b"))

    assert {} == conflicts([an_overlay("a", **first), an_overlay("b", **second)], [POOL], a_market(kind, G5))


def test_different_capacities_at_equal_weight_conflict() -> None:
    """The same resource with two values."""
    overlays = [an_overlay("a", capacity={FUSE: 1}), an_overlay("b", capacity={FUSE: 2})]

    assert {"a"} == set(conflicts(overlays, [POOL], a_market(M5)))


def test_a_conflicting_overlay_is_applied_in_no_pool() -> None:
    """It conflicts in one pool and is void in all; the plan says so."""
    both = an_overlay("a", price="0.1")
    one = an_overlay("b", on={"karpenter.sh/nodepool": "one"}, price="0.2")
    pools = [a_pool("one", limits={"nodes": 0}), a_pool("two")]

    decided = planned([a_slice(gpu=0, cpu=1)], pools, [M5], overlays=(both, one))

    assert 192_000 == decided.launches[0].price_micro
    assert "NodeOverlay a is not applied: conflict with another overlay: b" in decided.notes


def test_an_overlay_makes_no_cards() -> None:
    """What it announces of memory and cards is compared with the catalogue, and planned nowhere."""
    overlay = an_overlay(on={INSTANCE_TYPE: "g5.xlarge"}, capacity={"nvidia.com/gpu": 8, "nvidia.com/gpumem": 24000})
    pods = [a_slice(f"p-{n}", gpumem=8000, cores=30) for n in range(3)]

    decided = planned(pods, [a_hami_pool()], [G5], overlays=(overlay,))

    assert [("g5.xlarge", 1), ("g5.xlarge", 2)] == bought(decided)
    assert 1 == G5.gpu_count == len(decided.launches[0].devices)


def test_a_disagreement_is_noted_with_both_numbers() -> None:
    """24000 announced, 22888 planned; per card where there are several; nothing where they agree."""
    memory = an_overlay(capacity={"nvidia.com/gpumem": 24000})
    agreeing = an_overlay(capacity={"nvidia.com/gpumem": 22888, "nvidia.com/gpucores": 100})

    assert (
        "NodeOverlay overlay announces 24000 MiB of nvidia.com/gpumem on g5.xlarge; "
        "planned with 22888 MiB, which is what its cards register",
    ) == tuple(map(cause_text, apply([memory], POOL, (G5,)).notes))
    assert "planned with 91552 MiB, 22888 on each of 4 cards" in cause_text(apply([memory], POOL, (G5_12X,)).notes[0])
    assert () == apply([agreeing], POOL, (G5,)).notes


def test_cards_of_a_type_without_devices_stay_what_the_overlay_says() -> None:
    """Where the catalogue knows no device, the number is a plain resource, which no pod's device comes from."""
    kind = an_instance_type("x1.large")
    changed = apply([an_overlay(capacity={"nvidia.com/gpu": 1})], POOL, (kind,)).types[0]

    assert 1 == changed.capacity["nvidia.com/gpu"]
    assert () == changed.devices


# The number of GPUs.


def sharers(count: int, gpus: int = 1) -> list[Pod]:
    """Pods that ask for so many GPUs."""
    return [a_pod(f"p-{number}", gpu=gpus) for number in range(count)]


def gpu_notes(decided: Plan) -> list[str]:
    """What the plan says of overlays."""
    return [note for note in decided.notes if note.startswith("NodeOverlay")]


@pytest.mark.parametrize(("kind", "amount"), [(G5, 4), (G5_12X, 16)])
def test_a_multiple_of_the_cards_is_read_as_replicas(kind: InstanceType, amount: int) -> None:
    """Where nothing says how cards are shared: four pods on each card, and a note that it is believed."""
    overlay = an_overlay(capacity={"nvidia.com/gpu": amount})
    decided = planned(sharers(amount), [POOL], [kind], overlays=(overlay,))

    assert [(kind.name, amount)] == bought(decided)
    labels = decided.launches[0].labels
    assert ("time-slicing", "4") == (labels["nvidia.com/gpu.sharing-strategy"], labels["nvidia.com/gpu.replicas"])
    (note,) = gpu_notes(decided)
    assert "read as time-slicing with 4 replicas a card, because nothing else says how its cards are shared" in note


def test_replicas_are_read_where_only_the_way_of_sharing_is_stated() -> None:
    """MPS by the pool's annotation and no configuration: the overlay says how often. MPS gives one replica at most."""
    pool = a_pool(own_annotations={"kerf.dev/gpu-sharing": "mps"})
    overlay = an_overlay(capacity={"nvidia.com/gpu": 4})

    assert [("g5.xlarge", 4)] == bought(planned(sharers(4), [pool], [G5], overlays=(overlay,)))
    assert ["default/p-0"] == refused(planned(sharers(1, gpus=2), [pool], [G5], overlays=(overlay,)))


@pytest.mark.parametrize("amount", [3, 6])
def test_no_multiple_of_the_cards_is_said(amount: int) -> None:
    """The cards of the catalogue are planned with."""
    decided = planned(sharers(8), [POOL], [G5_12X], overlays=(an_overlay(capacity={"nvidia.com/gpu": amount}),))

    assert [("g5.12xlarge", 4), ("g5.12xlarge", 4)] == bought(decided)
    expected = f"announces {amount} of nvidia.com/gpu on g5.12xlarge; planned with 4, which is what its cards register"
    assert [f"NodeOverlay overlay {expected}"] == gpu_notes(decided)


@pytest.mark.parametrize(
    ("pool", "maps", "planned_with"),
    [
        (a_hami_pool(), (), 10),
        (a_pool(own_annotations={"kerf.dev/gpu-sharing": "whole"}), (), 1),
        (a_pool(labels={PLUGIN: "shared"}), (plugin_map(sharing("timeSlicing", 8)),), 8),
        (a_pool(labels={PLUGIN: "shared"}), (plugin_map("flags: {migStrategy: none}"),), 1),
    ],
    ids=["hami", "stated-whole", "configured", "configured-whole"],
)
def test_what_is_known_of_sharing_stands_before_the_overlay(
    pool: NodePool, maps: tuple[ConfigMap, ...], planned_with: int
) -> None:
    """HAMi, an annotation, a configuration of the plugin: the difference is said."""
    overlay = an_overlay(capacity={"nvidia.com/gpu": 4})
    (note,) = gpu_notes(planned(sharers(1), [pool], [G5], overlays=(overlay,), config_maps=maps))

    assert f"announces 4 of nvidia.com/gpu on g5.xlarge; planned with {planned_with}," in note


@pytest.mark.parametrize(("pool", "amount"), [(POOL, 1), (a_hami_pool(), 10)])
def test_a_number_that_kubelet_will_show_is_not_worth_a_word(pool: NodePool, amount: int) -> None:
    """As many as cards, or as HAMi's slots."""
    overlay = an_overlay(capacity={"nvidia.com/gpu": amount})

    assert [] == gpu_notes(planned(sharers(1), [pool], [G5], overlays=(overlay,)))
