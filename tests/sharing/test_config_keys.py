"""Keys that the program of a ConfigMap would pass over."""

import pytest

from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_keys import repeated, unknown_keys
from kerf.sharing.config_yaml import document
from kerf.sharing.hami.config import find_configs
from tests.sharing.nvidia.builders import mig_map, plugin_map, sharing

FULL = """\
flags:
  migStrategy: none
  failOnInitError: true
  plugin: {passDeviceSpecs: false, deviceListStrategy: [envvar], deviceIDStrategy: uuid}
  gfd: {oneshot: false, sleepInterval: 60s}
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources: [{name: nvidia.com/gpu, rename: nvidia.com/g, devices: all, replicas: 4}]
imex: {channelIDs: [0], required: false}
"""


def hami(text: str) -> ConfigMap:
    """HAMi's ConfigMap."""
    return ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": text})


def paths(config_map: ConfigMap) -> list[str]:
    """Where unknown keys stand."""
    return [each.path for each in unknown_keys(config_map)]


def test_documented_keys_are_known() -> None:
    """Of the plugin's configuration file, and of HAMi's chart."""
    assert [] == paths(plugin_map(FULL))
    allowed = "migProfileAllowlist: [{models: [A100], profiles: [1g.5gb]}]"
    assert [] == paths(hami(f"nvidia: {{deviceSplitCount: 4, libCudaLogLevel: '0', {allowed}}}\nhygon: {{any: 1}}\n"))


@pytest.mark.parametrize(
    ("config_map", "found"),
    [
        (plugin_map("flags: {migStrategie: mixed}"), ["flags.migStrategie"]),
        (plugin_map("flags: {}\nshraing: {}"), ["shraing"]),
        (plugin_map("shraing: {timeSlicing: {}}"), ["shraing"]),
        (
            plugin_map(sharing("timeSlicing").replace("replicas", "replica")),
            ["sharing.timeSlicing.resources[0].replica"],
        ),
        (
            ConfigMap(
                "kube-system",
                "hami-device-plugin",
                {"config.json": '{"nodeConfig": [{"Name": "a", "deviceSplitCount": 2, "deviceSplitCounts": 3}]}'},
            ),
            ["nodeConfig[0].deviceSplitCounts"],
        ),
        (hami("nvdia: {deviceSplitCount: 4}\nnvidia: {deviceSplitcount: 4}"), ["nvdia", "nvidia.deviceSplitcount"]),
    ],
)
def test_other_keys_are_named_with_their_place(config_map: ConfigMap, found: list[str]) -> None:
    """In lists too, and at the top, where all that is below is passed over with it."""
    assert found == paths(config_map)


def test_what_is_no_configuration_of_a_plugin_is_left_alone() -> None:
    """mig-parted's own file, a map of another program, and what is no YAML."""
    others = (
        mig_map(a="[{devices: all, mig-enabled: false}]"),
        ConfigMap("default", "app", {"a": "version: v1\nx: 1"}),
    )

    assert [[], [], []] == [paths(each) for each in (*others, plugin_map("flags: {a: ["))]


def test_a_text_of_many_such_keys_is_cut() -> None:
    """Any tenant may write one."""
    keys = ", ".join(f"x{number}: 1" for number in range(2_000))

    assert 20 == len(paths(plugin_map(f"flags: {{{keys}}}")))


@pytest.mark.parametrize(
    ("text", "found", "split", "cores"),
    [
        ("nvidia:\n  deviceSplitCount: 4\n  deviceSplitCount: 5\n", ["nvidia.deviceSplitCount"], 5, 0),
        ("nvidia: {deviceSplitCount: 4, defaultCores: 7}\nnvidia: {deviceSplitCount: 5}\n", ["nvidia"], 5, 7),
        ("a: &a {deviceSplitCount: 4}\nnvidia: *a\nnvidia: {defaultCores: 7}\n", ["nvidia"], 4, 7),
        ("a: &a {deviceSplitCount: 4}\nnvidia: {<<: *a, deviceSplitCount: 5}\n", [], 5, 0),
        ("nvidia: {deviceSplitCount: 4}\nhygon: {a: 1}\nhygon: [1]\n", ["hygon"], 4, 0),
    ],
)
def test_of_a_key_that_stands_twice_hami_takes_the_last(text: str, found: list[str], split: int, cores: int) -> None:
    """gopkg.in/yaml.v2 reads into structs: of two sections the keys of both count, and it says nothing."""
    (held,) = find_configs([hami(text)])
    config = held.config

    assert found == [path for _, _, path in repeated(hami(text))]
    assert (split, cores) == (config.split_count, config.default_cores)


def test_of_a_section_that_stands_twice_nvidias_plugin_takes_the_last() -> None:
    """sigs.k8s.io/yaml reads a map first. A text that cannot be read has another finding."""
    twice = "flags: {migStrategy: mixed}\nflags: {failOnInitError: true}\n"

    assert [("NVIDIA's device plugin", "flags")] == [(each[0], each[2]) for each in repeated(plugin_map(twice))]
    assert {"flags": {"failOnInitError": True}} == document(plugin_map(twice), "any", twice).value
    assert () == repeated(plugin_map("flags: {a: ["))
