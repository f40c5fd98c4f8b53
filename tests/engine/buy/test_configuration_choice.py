"""Which configuration of MIG or of time-slicing a new node gets, where its pool leaves a choice."""

from collections import Counter
from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.catalog.gpus import shape_of
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap
from kerf.testing.builders import a_pool, an_instance_type
from tests.engine.worlds import bought, per_hour, planned, refused
from tests.sharing.nvidia.builders import LAYOUT, PLUGIN, cut, mig_map, plugin_map, sharing

A100 = shape_of("A100", 40960, "stated")
T4 = shape_of("T4", 15360, "stated")
P4D = an_instance_type("p4d.24xlarge", cpu=96, memory="1152Gi", devices=(A100,) * 2, price="8.00", pods=200)
LONE = an_instance_type("one-a100", cpu=96, memory="1152Gi", devices=(A100,), price="4.10", pods=200)
G4 = an_instance_type("g4dn.xlarge", cpu=4, memory="16Gi", devices=(T4,), price="0.526")
LAYOUTS = {
    "small": {"1g.5gb": 7},
    "balanced": {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
    "halves": {"3g.20gb": 2},
}
OPEN = {"kerf.dev/mig-configs": ", ".join(LAYOUTS)}


def config_map() -> ConfigMap:
    """The three layouts."""
    return mig_map(
        **{
            name: cut(**{f"g{profile.replace('g.', '_').removesuffix('gb')}": n for profile, n in counts.items()})
            for name, counts in LAYOUTS.items()
        }
    )


def pods(counts: Mapping[str, int]) -> list[Pod]:
    """So many pods of each resource of NVIDIA's, by its last part."""
    return [
        Pod("default", f"{kind}-{i}".replace(".", "-"), PodSpec((Container("main", held, held),)))
        for kind, count in counts.items()
        for held in [Resources({f"nvidia.com/{kind}": 1})]
        for i in range(count)
    ]


def cheapest(wanted: Mapping[str, int]) -> tuple[int, int]:
    """Price and nodes of the best purchase, by trying every node for what is left of the pods."""
    names = sorted(wanted)
    kinds = [
        (kind.offerings[0].price_micro, tuple(len(kind.devices) * layout.get(name, 0) for name in names))
        for kind in (P4D, LONE)
        for layout in LAYOUTS.values()
    ]

    @cache
    def best(left: tuple[int, ...]) -> tuple[int, int]:
        if not any(left):
            return 0, 0
        tries = []
        for price, holds in kinds:
            after = tuple(max(0, n - m) for n, m in zip(left, holds, strict=True))
            if after != left:
                rest, nodes = best(after)
                tries.append((rest + price, nodes + 1))
        return min(tries)

    return best(tuple(wanted[name] for name in names))


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["1g.5gb", "2g.10gb", "3g.20gb"]), min_size=12, max_size=12).map(Counter))
def test_twelve_pods_get_the_cheapest_configurations(wanted: Counter[str]) -> None:
    """Price and number of nodes equal to a brute force that shares no code with the chooser."""
    decided = planned(
        pods({f"mig-{name}": count for name, count in wanted.items()}),
        [a_pool(own_annotations=OPEN)],
        [P4D, LONE],
        config_maps=(config_map(),),
    )

    assert [] == refused(decided)
    assert cheapest(wanted) == (per_hour(decided), len(decided.launches))
    assert all(launch.labels[LAYOUT] in LAYOUTS for launch in decided.launches)


def test_the_choice_is_written_and_explained() -> None:
    """As labels of the launch, which its claim bears, and in its reason."""
    decided = planned(pods({"mig-3g.20gb": 2}), [a_pool(own_annotations=OPEN)], [LONE], config_maps=(config_map(),))

    assert [{LAYOUT: "halves", "nvidia.com/mig.strategy": "mixed"}] == [
        dict(launch.labels) for launch in decided.launches
    ]
    assert "labelled nvidia.com/mig.config=halves, nvidia.com/mig.strategy=mixed" in decided.launches[0].why


@pytest.mark.parametrize(("count", "expected"), [(2, "two"), (3, "four"), (8, "four")])
def test_how_often_cards_are_shared_in_time_is_chosen_too(count: int, expected: str) -> None:
    """Of equal price the configuration that the pool names first."""
    configs = ConfigMap(
        "gpu-operator",
        "time-slicing-config",
        {name: f"version: v1\n{sharing('timeSlicing', n)}" for name, n in (("two", 2), ("four", 4))},
    )
    pool = a_pool(own_annotations={"kerf.dev/device-plugin-configs": "two,four"})
    decided = planned(pods({"gpu": count}), [pool], [G4], config_maps=(configs,))

    assert {expected} == {launch.labels[PLUGIN] for launch in decided.launches}
    assert -(-count // (2 if expected == "two" else 4)) == len(decided.launches)


@pytest.mark.parametrize(
    ("replicas", "count", "expected"),
    [
        (8, 8, [("g4dn.xlarge", 8)]),
        (8, 9, [("g4dn.xlarge", 1), ("g4dn.xlarge", 8)]),
        (2, 3, [("g4dn.xlarge", 1), ("g4dn.xlarge", 2)]),
    ],
)
def test_nodes_for_pods_on_time_sliced_cards(replicas: int, count: int, expected: list[tuple[str, int]]) -> None:
    """001-1 and 001-24: eight pods share one card by eight, the ninth needs another node."""
    pool = a_pool(labels={PLUGIN: "shared"})
    decided = planned(pods({"gpu": count}), [pool], [G4], config_maps=(plugin_map(sharing("timeSlicing", replicas)),))

    assert expected == bought(decided)


def test_a_pod_learns_which_configuration_would_hold_it() -> None:
    """As a label of the pool's template, with the patch."""
    decided = planned(pods({"mig-3g.20gb": 1}), [a_pool()], [LONE], config_maps=(config_map(),))
    unplaced = decided.unplaced[0]

    assert 'add the label nvidia.com/mig.config: "balanced" to the template of NodePool pool' == unplaced.hint
    assert unplaced.patch is not None


def test_a_card_without_mig_in_a_pool_with_layouts_stays_whole() -> None:
    """A layout is chosen for cards that have MIG; the others are bought as they are."""
    decided = planned(pods({"gpu": 1}), [a_pool(own_annotations=OPEN)], [G4, LONE], config_maps=(config_map(),))

    assert [("g4dn.xlarge", {})] == [
        (launch.offering.instance_type, dict(launch.labels)) for launch in decided.launches
    ]


@pytest.mark.parametrize(("resource", "expected"), [("gpu", "reserve"), ("mig-1g.5gb", "replay")])
def test_a_card_that_is_shown_whole_before_it_is_cut_is_kept_closed(resource: str, expected: str) -> None:
    """With `single` an instance and a whole card have one name: a pod would take the card (gpu-operator#2670)."""
    decided = planned(pods({resource: 2}), [a_pool(labels={LAYOUT: "all-1g.5gb"})], [LONE])

    assert [expected] == [launch.follow for launch in decided.launches]


@pytest.mark.parametrize(
    ("wanted", "labels", "hint"),
    [
        ("mig-2g.10gb", {}, 'add the label nvidia.com/mig.config: "all-2g.10gb" to the template of NodePool pool'),
        (
            "gpu",
            {LAYOUT: "unknown"},
            "change labels or annotations of NodePool pool, or the ConfigMap, as the",
        ),
        ("gpu.shared", {}, "ask for nvidia.com/gpu, or label the pool with a configuration that has renameByDefault"),
    ],
)
def test_hints_help(wanted: str, labels: dict[str, str], hint: str) -> None:
    """Where no ConfigMap is known: what can be had without one, else what to mend; never to ask for less."""
    assert hint in planned(pods({wanted: 1}), [a_pool(labels=labels)], [LONE]).unplaced[0].hint


def test_an_unknown_name_is_reported_beside_good_ones() -> None:
    """By the annotation in which it stands."""
    pool = a_pool(own_annotations={"kerf.dev/mig-configs": "nosuch, halves"})
    decided = planned(pods({"mig-3g.20gb": 1}), [pool], [LONE], config_maps=(config_map(),))

    assert ["halves"] == [launch.labels[LAYOUT] for launch in decided.launches]
    told = [note for note in decided.notes if "NodePool pool: annotation" in note]
    assert ["NodePool pool: annotation kerf.dev/mig-configs: expected a configuration of mig-parted"] == [
        note.partition(" (")[0] for note in told
    ]
