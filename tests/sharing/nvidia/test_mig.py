"""MIG as the MIG manager sets it up: layouts of mig-parted's ConfigMap, shown by NVIDIA's device plugin."""

import pytest

from kerf.catalog.mig import mig_cards
from kerf.model.causes import Cause, Name
from kerf.model.gpu import DeviceShape
from kerf.model.nodes import Node
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import Family, NoFit
from kerf.sharing.nvidia.choice import as_chosen, label_choices
from kerf.sharing.nvidia.config_names import UnknownConfig
from kerf.sharing.nvidia.mig import MpsOnInstances, NoMig, NoPlace, NoSuchProfile
from kerf.sharing.nvidia.mig_geometry import ProfileStarts
from kerf.sharing.nvidia.mig_parted import find_mig_configs
from kerf.sharing.registry import configured, family_named, owner_of, problem_in
from tests.sharing.nvidia.builders import (
    A10G,
    A30,
    A100,
    A100_80,
    LAYOUT,
    PLUGIN,
    STRATEGY,
    asking,
    cut,
    fitted,
    how_many,
    mig_map,
    plugin_map,
    predicted,
    sharing,
)

BALANCED = cut(g1_5=2, g2_10=1, g3_20=1)
WANTED = Name("wanted")
OF_A30 = tuple(map(Name, ("1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb")))
MANY = "[{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}, {devices: [1], mig-enabled: false}]"


def mig(*maps: ConfigMap) -> Family:
    """The family in a cluster with these ConfigMaps."""
    return family_named("mig", configured(maps))


def one(name: str, count: int = 1) -> dict[str, int]:
    """A limit of an instance."""
    return {f"nvidia.com/mig-{name}": count}


def test_each_profile_of_a_layout_is_a_resource() -> None:
    """Scenario 57: what the layout does not have, no pod gets, however much of the card is free."""
    held = mig(mig_map(balanced=BALANCED))
    two = predicted(held, [A100] * 2, layout="balanced")

    assert held.kubelet_capacity(two) == Resources({**one("1g.5gb", 4), **one("2g.10gb", 2), **one("3g.20gb", 2)})
    assert [4, 2, 0] == [how_many(held, two, asking(one(name))) for name in ("1g.5gb", "3g.20gb", "4g.20gb")]
    assert [(4864, 14), (9856, 28), (19968, 42)] == [(p.memory_mib, p.cores) for p in two[0].partitions]


def test_a_pod_may_ask_for_several_profiles() -> None:
    """Each is counted by itself, and what is used of a card is the larger of memory and compute."""
    held = mig(mig_map(balanced=BALANCED))
    found = fitted(held, predicted(held, [A100], layout="balanced"), asking({**one("1g.5gb", 2), **one("3g.20gb")}))

    assert not isinstance(found, NoFit)
    assert [("nvidia.com/mig-1g.5gb", 4864)] * 2 + [("nvidia.com/mig-3g.20gb", 19968)] == [
        (part.resource, part.memory_mib) for part in found.slices
    ]
    assert [(2 * 4864 + 19968) * 10_000 // 40960] == [d.allocated_percent_points for d in found.devices]


@pytest.mark.parametrize(
    ("strategy", "layout", "expected"),
    [
        ("single", "all-1g.5gb", {"nvidia.com/gpu": 7}),
        ("mixed", "all-1g.5gb", {"nvidia.com/mig-1g.5gb": 7}),
        ("mixed", "all-1g.5gb+me", {"nvidia.com/mig-1g.5gb.me": 1}),
        ("mixed", "all-1g.10gb", {"nvidia.com/mig-1g.10gb": 4}),
        ("single", "all-3g.20gb", {"nvidia.com/gpu": 2}),
        ("none", "all-1g.5gb", {}),
        ("single", "balanced", {}),
    ],
)
def test_how_instances_are_shown(strategy: str, layout: str, expected: dict[str, int]) -> None:
    """By profile, or all as `nvidia.com/gpu` where they are alike; a layout that `single` cannot show shows nothing."""
    held = mig(mig_map(balanced=BALANCED))
    devices = predicted(held, [A100], layout=layout, strategy=strategy)

    assert Resources(expected) == held.kubelet_capacity(devices)
    assert bool(expected) == (held.obstacle([A100], {LAYOUT: layout, STRATEGY: strategy}, {}) is None)


def test_a_strategy_that_is_not_stated_is_open() -> None:
    """It is a flag of the plugin, so that pods are planned for under both; the plugin's configuration may state it."""
    stated = mig(plugin_map("flags: {migStrategy: mixed}"))

    assert [{STRATEGY: "mixed"}, {STRATEGY: "single"}] == list(mig().assumptions({LAYOUT: "all-1g.5gb"}))
    assert [{}] == list(mig().assumptions({LAYOUT: "all-1g.5gb", STRATEGY: "single"}))
    assert [{}] == list(stated.assumptions({LAYOUT: "all-1g.5gb", PLUGIN: "shared"}))


@pytest.mark.parametrize(
    ("shape", "config", "expected"),
    [
        (A10G, BALANCED, NoMig(WANTED, Name("A10G"))),
        (A30, BALANCED, NoSuchProfile(WANTED, Name("A30"), Name("1g.5gb"), OF_A30)),
        (A100, cut(g3_20=2, g1_5=1), NoPlace(WANTED, Name("A100"), Name("1g.5gb"), ((Name("3g.20gb"), 2),), ())),
        (A100, cut(g1_5=8), NoPlace(WANTED, Name("A100"), Name("1g.5gb"), ((Name("1g.5gb"), 7),), ())),
        (A100, cut(g4_20=1, g3_20=1), None),
        (A100_80, cut(g7_80=1), None),
    ],
)
def test_a_layout_that_the_hardware_cannot_have_is_refused(
    shape: DeviceShape, config: str, expected: Cause | None
) -> None:
    """001-25, scenarios 48, 49 and 52: with what has no place, and beside what."""
    assert expected == mig(mig_map(wanted=config)).obstacle([shape], {LAYOUT: "wanted", STRATEGY: "mixed"}, {})


def test_a_layout_without_room_is_refused_with_the_room_that_is_left() -> None:
    """Beside one 4g there are starts for smaller profiles, and none for a second 4g."""
    found = mig(mig_map(wanted=cut(g4_20=2))).obstacle([A100], {LAYOUT: "wanted", STRATEGY: "mixed"}, {})

    assert isinstance(found, NoPlace)
    assert ("4g.20gb", (("4g.20gb", 1),)) == (found.profile, found.beside)
    assert ProfileStarts(Name("1g.5gb"), (4, 5, 6)) == found.free[0]
    assert "4g.20gb" not in {each.profile for each in found.free}


def test_instances_are_shared_in_time_but_not_by_mps() -> None:
    """Each instance is there as often as the plugin's configuration says; MPS it refuses."""
    name = "nvidia.com/mig-1g.5gb"
    sliced = mig(mig_map(balanced=BALANCED), plugin_map(sharing("timeSlicing", 3, name, renameByDefault=True)))
    devices = predicted(sliced, [A100], layout="balanced", plugin="shared", strategy="mixed")

    assert 6 == sliced.kubelet_capacity(devices)[f"{name}.shared"]
    assert 1 == sliced.kubelet_capacity(devices)["nvidia.com/mig-3g.20gb"]
    mps = mig(mig_map(balanced=BALANCED), plugin_map(sharing("mps")))
    refused = MpsOnInstances(Name("balanced"), Name(PLUGIN), Name("shared"))
    assert refused == mps.obstacle([A100], {LAYOUT: "balanced", PLUGIN: "shared"}, {})


def test_cards_of_one_node_may_be_cut_differently() -> None:
    """By index, and by model; of a card that nobody speaks of nothing is cut."""
    by_id = "[{device-filter: ['0x20B010DE'], devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]"
    held = mig(mig_map(many=MANY, forty=by_id))

    assert [{"nvidia.com/mig-1g.5gb": 7}, {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}] == [
        {part.resource: part.count for part in device.partitions}
        for device in predicted(held, [A100] * 3, layout="many", strategy="mixed")
    ]
    assert [7, 1] == [
        device.partitions[0].count for device in predicted(held, [A100, A100_80], layout="forty", strategy="mixed")
    ]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({LAYOUT: "balanced"}, "mig"),
        ({LAYOUT: "unknown"}, "mig"),
        ({LAYOUT: "all-disabled", "nvidia.com/gpu.sharing-strategy": "none"}, "whole"),
        ({"nvidia.com/mig-1g.5gb.count": "7"}, "mig"),
        ({LAYOUT: "balanced", PLUGIN: "shared"}, "mig"),
        ({LAYOUT: "all-disabled", PLUGIN: "shared"}, "time-slicing"),
    ],
)
def test_which_nodes_are_cut(labels: dict[str, str], expected: str) -> None:
    """Those whose label names a layout with instances, or on which feature discovery has seen some."""
    families = configured([mig_map(balanced=BALANCED), plugin_map(sharing("timeSlicing"))])

    assert expected == owner_of(labels, {}, families).name


RUNNING = [
    ({}, {"nvidia.com/gpu": 1}, {STRATEGY: "mixed"}, None),
    ({}, {**one("1g.5gb", 7), "nvidia.com/gpu": 0}, {}, [7]),
    ({"nvidia.com/mig.config.state": "pending"}, one("1g.5gb", 7), {}, None),
    ({"nvidia.com/gpu.count": "2"}, one("1g.5gb", 7), {}, [4, 3]),
    ({}, {"nvidia.com/gpu": 7}, {STRATEGY: "single"}, [7]),
    ({}, {}, {}, None),
]


@pytest.mark.parametrize(("labels", "allocatable", "more", "expected"), RUNNING)
def test_instances_of_a_running_node(
    labels: dict[str, str], allocatable: dict[str, int], more: dict[str, str], expected: list[int] | None
) -> None:
    """Kubelet's numbers once the MIG manager is done: before that, the card is shown whole (gpu-operator#2670)."""
    node = Node("n", {LAYOUT: "all-1g.5gb", **labels, **more}, allocatable=Resources(allocatable))
    devices = mig().inventory(node)

    assert expected == (None if devices is None else [part.count for d in devices for part in d.partitions])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mig-configs: {}", "version: expected v1"),
        ("version: v1\nmig-configs: [1]", "mig-configs: expected a mapping"),
        ("version: v1\nmig-configs:\n  a: [{devices: some}]", "mig-configs.a[0].devices: expected all, or a list"),
        (
            "version: v1\nmig-configs:\n  a: [{devices: all, mig-enabled: 3}]",
            "a[0].mig-enabled: expected true or false",
        ),
        (
            "version: v1\nmig-configs:\n  a: [{devices: all, mig-devices: {1g.5gb: 1}}]",
            "a[0].mig-devices: expected nothing where mig-enabled is false",
        ),
        (
            "version: v1\nmig-configs:\n  a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: -1}}]",
            "a[0].mig-devices.1g.5gb: expected a whole number from 0, got -1",
        ),
        ("version: v1\nmig-configs: {a: [", "expected YAML"),
    ],
)
def test_what_mig_parted_would_not_apply_is_said(text: str, expected: str) -> None:
    """With map, key and field."""
    problem = str(problem_in([ConfigMap("gpu-operator", "custom-mig-config", {"config.yaml": text})]))

    assert 'ConfigMap gpu-operator/custom-mig-config: data["config.yaml"]' in problem
    assert expected in problem


def test_a_pool_leaves_open_what_its_label_does_not_fix() -> None:
    """In its own order of preference; a layout only for cards that have MIG."""
    stated = {"kerf.dev/mig-configs": "b, a,,b", "kerf.dev/device-plugin-configs": "x"}

    assert [{LAYOUT: "b", PLUGIN: "x"}, {LAYOUT: "a", PLUGIN: "x"}] == list(label_choices({}, stated, has_mig=True))
    assert [{PLUGIN: "x"}] == list(label_choices({}, stated, has_mig=False))
    assert [{PLUGIN: "x"}] == list(label_choices({LAYOUT: "c"}, stated, has_mig=True))
    assert [{}] == list(label_choices({}, {}, has_mig=True))


def test_a_label_that_was_chosen_is_said_of_the_pools_annotation() -> None:
    """Only where the label in question was chosen; what concerns no name of a configuration stays as it is."""
    unknown = UnknownConfig(Name(LAYOUT), Name("a"), ())
    chosen = UnknownConfig(Name(LAYOUT), Name("a"), (), Name("kerf.dev/mig-configs"))
    bare = NoMig(WANTED, Name("A10G"))

    assert chosen == as_chosen(unknown, {LAYOUT: "a", PLUGIN: "x"})
    assert [unknown, bare, None] == [as_chosen(each, {PLUGIN: "x"}) for each in (unknown, bare, None)]


def test_every_model_with_mig_is_a_known_card() -> None:
    """The two tables name them alike, and memory never comes to more than the card has."""
    assert {"A30", "A100", "H100", "H200", "B200", "B300", "RTX PRO Server 6000"} == set(mig_cards())
    for shape in (A30, A100, A100_80):
        assert all(profile.memory_mib <= shape.memory_mib for profile in shape.profiles)


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ('{"version": "v1", "mig-configs": {"mine": [{"devices": "all", "mig-enabled": false}]}}', True),
        ('\n{\n  "mig-configs": {"mine": [{"devices": "all", "mig-enabled": false}]},\n  "version": "v1"\n}', True),
        ("{version: v1, mig-configs: {mine: [{devices: all, mig-enabled: false}]}}", True),
        ('"version": v1\n"mig-configs":\n  mine: [{devices: all, mig-enabled: false}]\n', True),
        ("version: v1\nnotes: no mig-configs here\n", False),
        ("other:\n  mig-configs: {mine: []}\n", False),
    ],
)
def test_layouts_are_found_in_whatever_style_they_are_written(text: str, is_known: bool) -> None:
    """mig-parted reads YAML, and JSON is YAML."""
    found = find_mig_configs((ConfigMap("gpu-operator", "any-name", {"config.yaml": text}),))

    assert is_known == found.knows("mine")
