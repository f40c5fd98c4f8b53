"""Settings that stand in a plugin's ConfigMap and change nothing on a node that is bought."""

import json

import pytest

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name, Quoted
from kerf.model.snapshot import ConfigMap
from kerf.sharing.nvidia.device_plugin import find_plugin_configs
from kerf.sharing.unheeded import (
    DevicesUnheeded,
    GeometriesUnheeded,
    NamesUnheeded,
    NodeSettingsUnread,
    NodesSetAlone,
    RenameUnheeded,
    sets_nodes,
    unheeded,
)
from tests.sharing.nvidia.builders import plugin_map

GPU, HERE = Name("nvidia.com/gpu"), Name("gpu-operator/time-slicing-config, shared")
UUID = "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"


def entry(more: str, kind: str = "timeSlicing", flags: str = "") -> ConfigMap:
    """A configuration that shares `gpu` four times, with more in its entry."""
    return plugin_map(f"sharing: {{{kind}: {{{flags}resources: [{{name: gpu, replicas: 4{more}}}]}}}}")


def nodes(text: str) -> ConfigMap:
    """HAMi's settings for single nodes."""
    return ConfigMap("kube-system", "hami-device-plugin", {"config.json": text})


def causes(config_map: ConfigMap) -> list[Cause]:
    """What does nothing in the map."""
    return [each.cause for each in unheeded(config_map)]


@pytest.mark.parametrize("kind", ["timeSlicing", "mps"])
@pytest.mark.parametrize(
    ("flags", "asked", "shown"),
    [
        ("", "nvidia.com/gpu.light", "nvidia.com/gpu"),
        ("", "gpu.light", "nvidia.com/gpu"),
        ("", "nvidia.com/gpu.shared", "nvidia.com/gpu"),
        ("renameByDefault: true, ", "gpu.light", "nvidia.com/gpu.shared"),
    ],
)
def test_a_name_of_ones_own_is_no_name(kind: str, flags: str, asked: str, shown: str) -> None:
    """Only `renameByDefault` renames; the configuration shows what the plugin would."""
    config_map = entry(f", rename: {asked}", kind, flags)

    assert [RenameUnheeded(HERE, GPU, Quoted(asked), Name(shown))] == causes(config_map)
    assert shown == find_plugin_configs((config_map,)).by_name["shared"].shown_as(GPU)


@pytest.mark.parametrize(("flags", "asked"), [("", "gpu"), ("renameByDefault: true, ", "gpu.shared")])
def test_a_name_that_it_has_anyway_is_no_finding(flags: str, asked: str) -> None:
    """In short or in full."""
    for name in (asked, f"nvidia.com/{asked}"):
        assert [] == causes(entry(f", rename: {name}", flags=flags))


@pytest.mark.parametrize("chosen", ["1", "[0, 1]", '["2"]', f"[{UUID}]", f"[0, MIG-{UUID}/3/0]", '["0:1"]'])
def test_a_choice_of_cards_is_no_choice(chosen: str) -> None:
    """Every card is shown so often, as the plugin does it."""
    config_map = entry(f", devices: {chosen}")

    assert [DevicesUnheeded(HERE, GPU, 4)] == causes(config_map)
    assert {GPU: 4} == find_plugin_configs((config_map,)).by_name["shared"].replicas


@pytest.mark.parametrize("chosen", ["some", "0", "-1", "true", "[-1]", "[first]", "{a: 1}", "null", "1.5"])
def test_a_choice_that_the_plugin_cannot_read_keeps_it_from_starting(chosen: str) -> None:
    """As any other value of a wrong form."""
    with pytest.raises(DecodeError, match="devices"):
        find_plugin_configs((entry(f", devices: {chosen}"),))


def test_of_two_entries_for_a_resource_the_higher_count_is_shown() -> None:
    """Each adds its replicas of every card by number, whichever comes first."""
    two = "sharing: {timeSlicing: {resources: [{name: gpu, replicas: %d, devices: [0]}, {name: gpu, replicas: %d}]}}"
    for counts in ((2, 5), (5, 2)):
        assert {GPU: 5} == find_plugin_configs((plugin_map(two % counts),)).by_name["shared"].replicas


def test_names_of_models_are_passed_over_and_all_is_said_with_its_place() -> None:
    """In the order of the text."""
    text = 'resources: {gpus: [{pattern: "A10*", name: a10}]}\n' + entry(", rename: a, devices: 1").data["shared"][12:]

    found = unheeded(plugin_map(text))

    assert NamesUnheeded(HERE) == found[0].cause
    places = ["resources", "sharing.timeSlicing.resources[0].rename", "sharing.timeSlicing.resources[0].devices"]
    assert places == [each.path for each in found]


def test_what_cards_are_cut_into_has_another_key() -> None:
    """The old one, where it says anything."""
    for text, said in (("knownMigGeometries: [{models: [A100]}]", 1), ("knownMigGeometries: []", 0), ("a: 1", 0)):
        config_map = ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": f"nvidia: {{{text}}}"})
        assert [GeometriesUnheeded(Name("kube-system/hami-scheduler-device"))] * said == causes(config_map)


def test_settings_of_single_nodes_are_said_by_their_names() -> None:
    """Sorted; in any case, as Go reads JSON; those of the charts' examples say nothing."""
    entries = [
        {"Name": "b", "deviceSplitCount": 2},
        {"name": "a", "filterdevices": {"index": [0]}},
        {"name": "only-a-name"},
        {"name": "m5-cloudinfra-online02", "devicesplitcount": 10},
        {"name": "your-node-name", "devicesplitcount": 10},
    ]
    config_map = nodes(json.dumps({"nodeConfig": entries}))

    expected = NodesSetAlone(Name("kube-system/hami-device-plugin"), (Name("a"), Name("b")))
    assert [expected] == causes(config_map)
    assert sets_nodes(config_map)


@pytest.mark.parametrize(
    "text",
    ['{"nodeconfig": [', '["nodeconfig"]', '{"nodeconfig": {}}', '{"nodeconfig": ["a"]}', "[" * 9999 + "nodeconfig"],
)
def test_settings_of_single_nodes_of_a_wrong_form_are_said(text: str) -> None:
    """HAMi's plugin logs it and does without all of them."""
    (found,) = causes(nodes(text))

    assert isinstance(found, NodeSettingsUnread)


@pytest.mark.parametrize("text", ["{}", '{"nodeconfig": []}', '{"servers": [{"name": "a", "port": 1}]}', "no json", ""])
def test_a_file_of_another_program_says_nothing(text: str) -> None:
    """Many have a `config.json`."""
    assert [] == causes(nodes(text))
    assert not sets_nodes(nodes(text))
