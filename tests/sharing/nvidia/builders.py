"""ConfigMaps of NVIDIA's plugins, cards that have MIG, and what becomes of pods on them."""

from collections.abc import Mapping, Sequence

from kerf.catalog.gpus import shape_of
from kerf.model.gpu import DeviceShape, DeviceState
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import Family, Fit, NoFit, Refused

A100 = shape_of("A100", 40960, "stated")
A100_80 = shape_of("A100", 81920, "stated")
A30 = shape_of("A30", 24576, "stated")
A10G = shape_of("A10G", 22888, "stated")
PLUGIN, LAYOUT = "nvidia.com/device-plugin.config", "nvidia.com/mig.config"
STRATEGY = "nvidia.com/mig.strategy"


def plugin_map(text: str, name: str = "shared") -> ConfigMap:
    """One configuration of the device plugin, below `version: v1`."""
    return ConfigMap("gpu-operator", "time-slicing-config", {name: f"version: v1\n{text}"})


def sharing(kind: str, replicas: object = 4, name: str = "nvidia.com/gpu", **flags: bool) -> str:
    """`sharing` with one resource."""
    stated = "".join(f"    {key}: {str(value).lower()}\n" for key, value in flags.items())
    return f"sharing:\n  {kind}:\n{stated}    resources: [{{name: {name}, replicas: {replicas}}}]\n"


def mig_map(**configs: str) -> ConfigMap:
    """mig-parted's ConfigMap; each configuration is a list of entries as YAML."""
    text = "version: v1\nmig-configs:\n" + "".join(f"  {name}: {entries}\n" for name, entries in configs.items())
    return ConfigMap("gpu-operator", "custom-mig-config", {"config.yaml": text})


def cut(**counts: int) -> str:
    """A configuration that cuts every card so; `g1_5` stands for `1g.5gb`."""
    devices = ", ".join(f'"{key[1:].replace("_", "g.")}gb": {count}' for key, count in counts.items())
    return f"[{{devices: all, mig-enabled: true, mig-devices: {{{devices}}}}}]"


def asking(limits: Mapping[str, int], *more: Mapping[str, int], init: Sequence[Mapping[str, int]] = ()) -> Pod:
    """A pod with a container for each of these limits."""
    apps = [Container(f"app-{i}", Resources(held), Resources(held)) for i, held in enumerate((limits, *more))]
    first = [Container(f"init-{i}", Resources(held), Resources(held)) for i, held in enumerate(init)]
    return Pod("default", "pod", PodSpec(tuple(apps), tuple(first)))


def fitted(family: Family, devices: Sequence[DeviceState], pod: Pod) -> Fit | NoFit:
    """What becomes of the pod on these devices."""
    demand = family.demand(pod)
    assert not isinstance(demand, Refused)
    return family.fit(devices, demand, pod, None, ())


def how_many(family: Family, devices: tuple[DeviceState, ...], pod: Pod) -> int:
    """How many pods like this one the devices take."""
    count = 0
    while isinstance(found := fitted(family, devices, pod), Fit):
        devices, count = found.devices, count + 1
    return count


def predicted(family: Family, shapes: Sequence[DeviceShape], **labels: str) -> tuple[DeviceState, ...]:
    """The devices of a new node; labels by `plugin`, `layout`, `strategy`."""
    keys = {"plugin": PLUGIN, "layout": LAYOUT, "strategy": STRATEGY}
    return family.predict(shapes, {keys[key]: value for key, value in labels.items()}, {})
