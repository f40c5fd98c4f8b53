"""HAMi's ConfigMap decides names, slots and sizes; a broken one is reported with its field."""

import pytest

from kerf.errors import DecodeError
from kerf.model.causes import Name
from kerf.model.gpu import DeviceShape, GPUModel
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap
from kerf.sharing.hami.config import ConfigsDiffer
from kerf.sharing.hami.family import Hami
from kerf.sharing.registry import problem_in


def config_map(text: str, namespace: str = "kube-system") -> ConfigMap:
    """HAMi's device configuration."""
    return ConfigMap(namespace, "hami-scheduler-device", {"device-config.yaml": text})


A10G = DeviceShape(GPUModel("A10G"), 22888)


def test_without_a_config_map_the_charts_defaults_hold() -> None:
    """Ten slots, 100 cores, the memory as it is, the type with HAMi's prefix."""
    (card,) = Hami().configured([ConfigMap("x", "other", {})]).predict([A10G], {}, {})

    assert ("gpu-0", "NVIDIA-A10G", 10, 100, 22888, "hami-core") == (
        card.id,
        card.model,
        card.slots,
        card.cores,
        card.memory_mib,
        card.mode,
    )


def test_split_count_and_scalings_change_what_a_card_registers() -> None:
    """Scalings are decimal numbers, rounded down: 22888 * 1.2 = 27465.6."""
    text = "nvidia:\n  deviceSplitCount: 4\n  deviceMemoryScaling: 1.2\n  deviceCoreScaling: 2\n"
    hami = Hami().configured([config_map(text)])
    (card,) = hami.predict([A10G], {}, {})

    assert (4, 27465, 200) == (card.slots, card.memory_mib, card.cores)
    assert Resources({"nvidia.com/gpu": 4}) == hami.kubelet_capacity([card])


def test_renamed_resources_are_followed() -> None:
    """Names are the cluster's; kubelet shows the renamed count."""
    text = "nvidia:\n  resourceCountName: example.com/vgpu\n  resourceMemoryName: example.com/mem\n"
    hami = Hami().configured([config_map(text)])

    assert "example.com/mem" in hami.resources
    assert ["example.com/vgpu"] == list(hami.kubelet_capacity(hami.predict([A10G], {}, {})))


def test_a_card_of_unknown_memory_has_the_preconfigured_one() -> None:
    """preConfiguredDeviceMemory is for cards whose driver states no memory."""
    hami = Hami().configured([config_map("nvidia: {preConfiguredDeviceMemory: 119000}")])

    assert [119000, 22888] == [d.memory_mib for d in hami.predict([DeviceShape(GPUModel("GB10"), 0), A10G], {}, {})]


@pytest.mark.parametrize(
    "text", ["", "nvidia:\n", "nvidia: {gpuCorePolicy: force, migProfileAllowlist: []}", "mlu: {}"]
)
def test_what_does_not_change_a_fit_is_accepted(text: str) -> None:
    """An empty file and keys for others leave the defaults."""
    assert Hami().predict([A10G], {}, {}) == Hami().configured([config_map(text)]).predict([A10G], {}, {})


BROKEN = [
    ("nvidia: {deviceSplitCount: many}", ".nvidia.deviceSplitCount: expected 1 or more, got 'many'"),
    ("nvidia: {deviceSplitCount: 0}", ".nvidia.deviceSplitCount: expected 1 or more, got 0"),
    ("nvidia: {deviceMemoryScaling: true}", ".nvidia.deviceMemoryScaling: expected a number above 0, got True"),
    (
        "nvidia: {resourceCoreName: 7}",
        ".nvidia.resourceCoreName: expected a resource's name with its domain, such as nvidia.com/gpu, got 7",
    ),
    ("nvidia: [1]", ".nvidia: expected a mapping, got [1]"),
    ("just text", ".nvidia: expected a mapping, got 'just text'"),
]


@pytest.mark.parametrize(("text", "expected"), BROKEN)
def test_a_broken_config_map_is_reported_with_its_field(text: str, expected: str) -> None:
    """Place, path, expected, got."""
    with pytest.raises(DecodeError) as caught:
        Hami().configured([config_map(text)])

    assert f'ConfigMap kube-system/hami-scheduler-device: data["device-config.yaml"]{expected}' == str(caught.value)


NO_YAML = {"open": "nvidia: {", "tag": "a: !!python/none x", "date": "a: 2026-13-45", "deep": "[" * 5000}


@pytest.mark.parametrize("text", NO_YAML.values(), ids=list(NO_YAML))
def test_text_that_is_no_yaml_is_reported(text: str) -> None:
    """With the parser's own words, in one line."""
    with pytest.raises(DecodeError, match="expected YAML, got <text that is none"):
        Hami().configured([config_map(text)])


def test_a_config_map_without_its_key_is_reported() -> None:
    """HAMi would not start either."""
    with pytest.raises(DecodeError, match="expected HAMi's device configuration, got <nothing>"):
        Hami().configured([ConfigMap("kube-system", "hami-scheduler-device", {})])


def test_two_configurations_that_differ_are_refused() -> None:
    """Two HAMi in one cluster: which one a node follows is not known. Equal ones are no question."""
    two, four = (config_map(f"nvidia: {{deviceSplitCount: {n}}}", f"ns-{n}") for n in (2, 4))

    assert 2 == Hami().configured([two, config_map("nvidia: {deviceSplitCount: 2}", "b")]).config.split_count
    problem = problem_in([four, two])
    assert "<ns-2/hami-scheduler-device, ns-4/hami-scheduler-device differ>" == (problem and problem.got)
    names = (Name("ns-2/hami-scheduler-device"), Name("ns-4/hami-scheduler-device"))
    assert ConfigsDiffer(names) == Hami().configured([four, two]).obstacle([A10G], {}, {})
