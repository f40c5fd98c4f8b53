"""Keys in the ConfigMaps of GPU plugins that their programs do not know, or that stand there twice.

Both NVIDIA's plugin and HAMi pass over such a key without a word, so a typing error leaves the default in force. The
keys are those of k8s-device-plugin (api/config/v1, up to 0.18, and `health` of its main branch) and of HAMi v2.10.0
(`device-config.yaml`, with the keys of older versions).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from kerf.errors import DecodeError
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import Field, document, repeated_keys
from kerf.sharing.hami.config import CONFIG_KEY, CONFIG_MAP, NVIDIA_KEYS
from kerf.sharing.nvidia.device_plugin import is_configuration
from kerf.sharing.unheeded import NODES_KEY, sets_nodes

_MOST = 20
HAMI, _FOR_NODES = "HAMi", "HAMi's device plugin"
"""The program, as findings name it."""
_PLUGIN_MAPS = ("time-slicing-config", "mps-config", "device-plugin-config", "nvidia-device-plugin-configs")
_VERSION = re.compile(r"""(?m)^version\s*:\s*["']?v1\b""")
_Keys = Mapping[str, "_Keys | None"]
"""The keys of a mapping, or of each mapping in a list, with those below them; None for what is not looked into."""


def _leaves(names: str) -> dict[str, "_Keys | None"]:
    return dict.fromkeys(names.split())


_SHARED: _Keys = {
    **_leaves("renameByDefault failRequestsGreaterThanOne"),
    "resources": _leaves("name rename devices replicas"),
}
_PLUGIN: _Keys = {
    **_leaves("version health"),
    "flags": {
        **_leaves("migStrategy failOnInitError mpsRoot nvidiaDriverRoot nvidiaDevRoot gdrcopyEnabled gdsEnabled"),
        **_leaves("mofedEnabled useNodeFeatureAPI deviceDiscoveryStrategy restartOnDeviceUnhealthy"),
        "plugin": _leaves(
            "passDeviceSpecs deviceListStrategy deviceIDStrategy cdiAnnotationPrefix nvidiaCTKPath containerDriverRoot"
            " kubeletSocket cdiFeatureFlags"
        ),
        "gfd": _leaves("oneshot noTimestamp sleepInterval outputFile machineTypeFile"),
    },
    "resources": {"gpus": _leaves("pattern name"), "mig": _leaves("pattern name")},
    "sharing": {"timeSlicing": _SHARED, "mps": _SHARED},
    "imex": _leaves("channelIDs required"),
}
_HAMI: _Keys = {
    **_leaves("cambricon hygon metax enflame mthreads iluvatar iluvatars kunlun awsneuron amd vastai biren vnpus"),
    "nvidia": {
        **dict.fromkeys(NVIDIA_KEYS),
        **_leaves("disableCoreLimit runtimeClassName libCudaLogLevel enableNumaTopology knownMigGeometries"),
        "migProfileAllowlist": _leaves("models profiles"),
    },
}


_NODES: _Keys = {
    "nodeconfig": {
        **_leaves(
            "name operatingmode devicememoryscaling devicecorescaling devicesplitcount preconfigureddevicememory"
        ),
        **_leaves("enablenumatopology migstrategy enablegetpreferredallocation"),
        "filterdevices": _leaves("uuid index"),
    }
}
"""Of HAMi's settings for single nodes, which Go's encoding/json reads in any case."""


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that `program` passes over: under which key of `data` it stands, its path there, and its known siblings."""

    program: str
    data_key: str
    path: str
    key: str
    known: tuple[str, ...]


def unknown_keys(config_map: ConfigMap) -> tuple[UnknownKey, ...]:
    """Such keys, at most 20 of each text; none where a text cannot be read, which is another finding.

    Cost: linear in the values of a text, aliases counted in full, whose number is bounded.
    """
    found: list[UnknownKey] = []
    for data_key, text, program in _texts(config_map):
        keys = {HAMI: _HAMI, _FOR_NODES: _NODES}.get(program, _PLUGIN)
        try:
            whole = document(config_map, data_key, text)
        except DecodeError:
            continue
        prefix = f"{whole.path}."
        for path, key, known in islice(_unknown(whole, keys, in_any_case=program == _FOR_NODES), _MOST):
            found.append(UnknownKey(program, data_key, path.removeprefix(prefix), key, known))
    return tuple(found)


def repeated(config_map: ConfigMap) -> tuple[tuple[str, str, str], ...]:
    """(program, key of `data`, path) of keys that stand twice in a mapping, at most 20 of each text."""
    return tuple(
        (program, data_key, path)
        for data_key, text, program in _texts(config_map)
        for path in islice(repeated_keys(text), _MOST)
    )


def _texts(config_map: ConfigMap) -> Iterator[tuple[str, str, str]]:
    """(key of `data`, text, the program that reads it) of each configuration of a plugin."""
    for data_key, text in sorted(config_map.data.items()):
        is_hami = config_map.name == CONFIG_MAP and data_key == CONFIG_KEY
        # Without a key that it knows a text is no configuration to Kerf: then the name of the map says what it is.
        is_named = config_map.name in _PLUGIN_MAPS and "mig-configs" not in text
        if data_key == NODES_KEY and sets_nodes(config_map):
            yield data_key, text, _FOR_NODES
        elif is_hami or is_configuration(text) or (is_named and _VERSION.search(text)):
            yield data_key, text, HAMI if is_hami else "NVIDIA's device plugin"


def _unknown(whole: Field, keys: _Keys, *, in_any_case: bool) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    word = str.lower if in_any_case else str
    # By a stack: the text is any tenant's, and what is below a known key has the depth of `keys` and no more.
    waiting: list[tuple[Field, _Keys]] = [(whole, keys)]
    while waiting:
        field, known = waiting.pop()
        if isinstance(field.value, list):
            waiting += [(item, known) for item in reversed(list(field.items()))]
        elif isinstance(field.value, dict):
            for key, child in field.children():
                if word(key) not in known:
                    yield child.path, key, tuple(sorted(known))
            below = [(child, held) for key, child in field.children() if (held := known.get(word(key))) is not None]
            waiting += reversed(below)
