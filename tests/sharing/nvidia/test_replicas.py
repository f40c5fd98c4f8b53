"""Time-slicing and MPS: cards that NVIDIA's device plugin shows several times, as its ConfigMap says."""

from dataclasses import replace

import pytest

from kerf.model.causes import Lack, Name
from kerf.model.gpu import DeviceState
from kerf.model.nodes import Node
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import Family, Fit, NoFit, Occupant, Refused
from kerf.sharing.nvidia.config_names import TornConfig, UnknownConfig
from kerf.sharing.nvidia.partitions import TooFewParts, TooManyAtOnce
from kerf.sharing.registry import DoubleBooked, configured, double_booked, family_named, owner_of, problem_in
from tests.sharing.hami.test_config import config_map
from tests.sharing.nvidia.builders import A10G, PLUGIN, asking, fitted, how_many, plugin_map, predicted, sharing

GPU = Name("nvidia.com/gpu")
ONE = {"nvidia.com/gpu": 1}
SHARED = {"nvidia.com/gpu.shared": 1}


def family(name: str, text: str) -> Family:
    """The family in a cluster with one configuration, `shared`."""
    return family_named(name, configured([plugin_map(text)]))


def cards(held: Family, count: int = 1) -> tuple[DeviceState, ...]:
    """What a new node with that configuration shows."""
    return predicted(held, [A10G] * count, plugin="shared")


def test_each_card_is_there_as_often_as_it_has_replicas() -> None:
    """001-1, scenario 58: two cards by four are eight places, and kubelet deals them out evenly."""
    held = family("time-slicing", sharing("timeSlicing"))
    two = cards(held, 2)

    assert Resources({"nvidia.com/gpu": 8}) == held.kubelet_capacity(two)
    assert 8 == how_many(held, two, asking(ONE))
    found = fitted(held, two, asking({"nvidia.com/gpu": 3}))
    assert isinstance(found, Fit)
    assert [0, 1, 0] == [part.device for part in found.slices]
    assert [5000, 2500] == [device.allocated_percent_points for device in found.devices]


def test_a_third_pod_needs_a_second_card() -> None:
    """001-24: two tasks a card are two replicas."""
    held = family("time-slicing", sharing("timeSlicing", 2))

    assert 2 == how_many(held, cards(held), asking(ONE))


def test_a_renamed_resource_is_another_resource() -> None:
    """Scenario 60: who asks `nvidia.com/gpu` does not get `nvidia.com/gpu.shared`."""
    held = family("time-slicing", sharing("timeSlicing", renameByDefault=True))
    refused = fitted(held, cards(held), asking(ONE))

    assert 4 == how_many(held, cards(held), asking(SHARED))
    assert isinstance(refused, NoFit)
    assert TooFewParts(GPU, wanted=1, free=0, there=0, shown=(Name("nvidia.com/gpu.shared"),)) == refused.cause
    assert (Lack(1, GPU),) == refused.missing


@pytest.mark.parametrize(
    ("name", "text", "each"),
    [
        ("time-slicing", sharing("timeSlicing", failRequestsGreaterThanOne=True), (0, 0)),
        ("mps", sharing("mps"), (5722, 25)),
    ],
)
def test_requests_above_one_are_refused_where_the_plugin_refuses_them(
    name: str, text: str, each: tuple[int, int]
) -> None:
    """By MPS always (001-30: a share of the SMs), by time-slicing if it is set so; one in each container is fine."""
    held = family(name, text)
    refused = fitted(held, cards(held), asking({"nvidia.com/gpu": 2}))

    assert isinstance(refused, NoFit)
    assert TooManyAtOnce(GPU, 2, 1, 4, *each) == refused.cause
    assert isinstance(fitted(held, cards(held), asking(ONE, ONE)), Fit)


def test_mps_divides_memory_and_time_slicing_does_not() -> None:
    """001-17: memory is never promised twice; a time-sliced replica is promised none."""
    both = [family("mps", sharing("mps")), family("time-slicing", sharing("timeSlicing"))]

    assert [(5722, 25), (0, 0)] == [
        (part.memory_mib, part.cores) for held in both for device in cards(held) for part in device.partitions
    ]


def test_init_containers_give_their_replica_to_the_others() -> None:
    """Kubelet counts the larger of both."""
    held = family("time-slicing", sharing("timeSlicing", 2))
    pod = asking(ONE, init=[{"nvidia.com/gpu": 2}])
    demand = held.demand(pod)
    assert not isinstance(demand, Refused)

    assert 1 == how_many(held, cards(held), pod)
    used = [held.occupied(cards(held), [Occupant(replace(pod, initialised=done), demand)]) for done in (False, True)]
    assert [2, 1] == [device.used_slots for (device,) in used]


@pytest.mark.parametrize(
    ("configs", "labels", "expected"),
    [
        ({"a": "timeSlicing", "b": "mps"}, {PLUGIN: "b"}, "mps"),
        ({"a": "timeSlicing", "b": "mps"}, {}, "whole"),
        ({"default": "timeSlicing", "b": "mps"}, {}, "time-slicing"),
        ({"only": "mps"}, {}, "mps"),
        ({"only": "mps"}, {PLUGIN: "other"}, "whole"),
        ({"only": "mps"}, {"nvidia.com/gpu.sharing-strategy": "none"}, "whole"),
        ({}, {"nvidia.com/gpu.sharing-strategy": "time-slicing"}, "time-slicing"),
        ({}, {"gpu": "on"}, "hami"),
        ({"only": "mps"}, {"gpu": "on"}, "mps"),
    ],
)
def test_which_configuration_a_node_has(configs: dict[str, str], labels: dict[str, str], expected: str) -> None:
    """The one its label names; else `default`, else the only one; what feature discovery has seen goes before."""
    data = {name: f"version: v1\n{sharing(kind)}" for name, kind in configs.items()}

    assert expected == owner_of(labels, {}, configured([ConfigMap("gpu-operator", "any", data)])).name


def test_a_configuration_that_is_not_known_is_no_whole_card() -> None:
    """How its cards are shared is open, so that none is planned with; the known names are said."""
    families = configured([plugin_map(sharing("mps"), "quarter")])
    whole = owner_of({PLUGIN: "half"}, {}, families)

    assert () == predicted(whole, [A10G], plugin="half")
    expected = UnknownConfig(Name(PLUGIN), Name("half"), (Name("quarter"),))
    assert expected == whole.obstacle([A10G], {PLUGIN: "half"}, {})


def test_two_maps_that_differ_about_a_name_leave_it_open() -> None:
    """Equal ones do not."""
    maps = [plugin_map(sharing("mps", replicas)) for replicas in (2, 4)]
    torn = configured([maps[0], replace(maps[1], namespace="other")])
    agreed = configured([maps[0], replace(maps[0], namespace="other")])

    found = owner_of({PLUGIN: "shared"}, {}, torn).obstacle([A10G], {PLUGIN: "shared"}, {})
    assert TornConfig(Name(PLUGIN), Name("shared")) == found
    assert "mps" == owner_of({PLUGIN: "shared"}, {}, agreed).name


def test_two_families_on_a_node_are_refused() -> None:
    """HAMi's label and NVIDIA's would book the same memory twice; one that only might be there is no matter."""
    families = configured([plugin_map(sharing("mps")), config_map("nvidia: {}")])

    assert None is double_booked({"gpu": "on"}, {}, families)
    assert None is double_booked({"gpu": "on", PLUGIN: "shared"}, {"kerf.dev/gpu-sharing": "hami"}, families)
    stated = (Name("gpu"), Name("on")), (Name(PLUGIN), Name("shared"))
    expected = DoubleBooked((Name("HAMi"), Name("MPS")), stated)
    assert expected == double_booked({"gpu": "on", PLUGIN: "shared"}, {}, families)


@pytest.mark.parametrize(
    ("labels", "allocatable", "expected"),
    [
        ({}, {"nvidia.com/gpu": 8}, [4, 4]),
        ({}, {"nvidia.com/gpu": 7}, [4, 3]),
        ({}, {"nvidia.com/gpu.shared": 8}, None),
        ({}, {}, None),
        ({PLUGIN: "gone", "nvidia.com/gpu.replicas": "8"}, {"nvidia.com/gpu": 8}, [8]),
        ({PLUGIN: "gone"}, {"nvidia.com/gpu.shared": 2}, [1, 1]),
    ],
)
def test_replicas_of_a_running_node(
    labels: dict[str, str], allocatable: dict[str, int], expected: list[int] | None
) -> None:
    """Kubelet's number, over as many cards as the configuration or feature discovery says; none before it shows any."""
    held = family("time-slicing", sharing("timeSlicing"))
    devices = held.inventory(Node("n", labels, allocatable=Resources(allocatable)))

    assert expected == (None if devices is None else [part.count for d in devices for part in d.partitions])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (sharing("timeSlicing", 1), "timeSlicing.resources[0].replicas: expected a whole number from 2, got 1"),
        (sharing("mps", 0), "mps.resources[0].replicas: expected a whole number from 2, got 0"),
        (sharing("mps", "many"), "expected a whole number from 2, got 'many'"),
        (sharing("mps", 2, "cpu/x"), "resources[0].name: expected nvidia.com/gpu or nvidia.com/mig-PROFILE"),
        ("sharing: [mps]", 'data["shared"].sharing: expected a mapping, got '),
        ("sharing: {mps: {resources: {}, renameByDefault: 3}}\nsharing: {mps: [}", 'data["shared"]: expected YAML'),
        ("flags: {migStrategy: some}", "flags.migStrategy: expected none, single or mixed, got 'some'"),
    ],
)
def test_what_the_plugin_would_not_start_with_is_said(text: str, expected: str) -> None:
    """With map, key and field: the plugin itself would leave the node without any GPU."""
    problem = str(problem_in([plugin_map(text)]))

    assert "ConfigMap gpu-operator/time-slicing-config: " in problem
    assert expected in problem


def test_other_config_maps_are_left_alone() -> None:
    """However they look."""
    maps = [ConfigMap("default", "any", {"nginx.conf": "flags: {", "app.yaml": "version: v2\nsharing: 3"})]

    assert configured([]) == configured(maps)
