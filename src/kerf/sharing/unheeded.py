"""Settings of GPU plugins that stand in a ConfigMap and do nothing on the nodes that Kerf buys.

Their programs know the keys, so no program complains: NVIDIA's device plugin drops every name and every choice of cards
when it has read its configuration (`DisableResourceNamingInConfig`, api/config/v1/config.go, up to 0.20), HAMi 2.10 has
another key for what cards in MIG mode are cut into, and its file for single nodes goes by names that no new node has
(`readFromConfigFile`, pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go). Each is found here for the linter,
for the notes of a plan and for `kerf doctor`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name, Quoted
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import MOST_CHARACTERS, Field, document
from kerf.sharing.hami.config import CONFIG_KEY, is_config
from kerf.sharing.nvidia.device_plugin import full_name, plugin_keys, shared_name

NODES_KEY = "config.json"
"""The key of HAMi's settings for single nodes, in the ConfigMap `hami-device-plugin` of its chart."""
_NODES, _GEOMETRIES = "nodeconfig", "knownMigGeometries"
_OF_THE_CHART = ("m5-cloudinfra-online02", "your-node-name", "")
"""Names in the charts' own examples of such settings, which mean nothing (values.yaml of HAMi's chart)."""
_MOST = 20


@dataclass(frozen=True, slots=True)
class RenameUnheeded(Cause):
    """A configuration of NVIDIA's plugin gives a shared resource a name of its own, `asked`; nodes show `shown`."""

    config: Name
    resource: Name
    asked: Quoted
    shown: Name


@dataclass(frozen=True, slots=True)
class DevicesUnheeded(Cause):
    """A configuration of NVIDIA's plugin shares some cards of a node alone; the plugin shows each `replicas` times."""

    config: Name
    resource: Name
    replicas: int


@dataclass(frozen=True, slots=True)
class NamesUnheeded(Cause):
    """A configuration of NVIDIA's plugin gives cards names by their model, in `resources`; they keep NVIDIA's own."""

    config: Name


@dataclass(frozen=True, slots=True)
class GeometriesUnheeded(Cause):
    """HAMi's configuration says by the key of versions before 2.10 what cards in MIG mode are cut into."""

    config_map: Name


@dataclass(frozen=True, slots=True)
class NodesSetAlone(Cause):
    """HAMi's settings for single nodes, by their names: they hold for these, and for no node that is bought."""

    config_map: Name
    nodes: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class NodeSettingsUnread(Cause):
    """HAMi's settings for single nodes are no JSON of that form, so its plugin does without all of them."""

    config_map: Name
    problem: Quoted


@dataclass(frozen=True, slots=True)
class UnheededSetting:
    """Under which key of `data` it stands, its path there, and what it does not do."""

    data_key: str
    path: str
    cause: Cause


def unheeded(config_map: ConfigMap) -> tuple[UnheededSetting, ...]:
    """Such settings of one map, at most 20 of each text; none where a text cannot be read, which is another finding.

    Cost: linear in the texts, whose sizes are bounded.
    """
    found: list[UnheededSetting] = []
    for key in sorted(plugin_keys(config_map)):
        found += list(_of_plugin(config_map, key))[:_MOST]
    if is_config(config_map):
        found += _of_hami(config_map)
    if NODES_KEY in config_map.data:
        found += _of_nodes(config_map)
    return tuple(found)


def sets_nodes(config_map: ConfigMap) -> bool:
    """Whether the map has HAMi's settings for single nodes."""
    return any(True for _ in _of_nodes(config_map))


def _of_plugin(config_map: ConfigMap, key: str) -> Iterator[UnheededSetting]:
    config = Name(f"{config_map.key}, {key}")
    try:
        whole = document(config_map, key, config_map.data[key])
        prefix = f"{whole.path}."
        if any(whole.child("resources").child(part).value for part in ("gpus", "mig", "migs")):
            yield UnheededSetting(key, "resources", NamesUnheeded(config))
        for kind in ("timeSlicing", "mps"):
            section = whole.child("sharing").child(kind)
            renames = section.child("renameByDefault").truth()
            for entry in section.child("resources").items():
                for setting, cause in _of_resource(entry, config, renames=renames):
                    yield UnheededSetting(key, entry.child(setting).path.removeprefix(prefix), cause)
    except DecodeError:
        return


def _of_resource(entry: Field, config: Name, *, renames: bool) -> Iterator[tuple[str, Cause]]:
    resource = full_name(entry.child("name").text())
    shown, asked = shared_name(resource) if renames else resource, entry.child("rename").value
    if isinstance(asked, str) and asked and full_name(asked) != shown:
        yield "rename", RenameUnheeded(config, Name(resource), Quoted(asked), Name(shown))
    if entry.child("devices").value not in (None, "all"):
        yield "devices", DevicesUnheeded(config, Name(resource), entry.child("replicas").whole(2))


def _of_hami(config_map: ConfigMap) -> Iterator[UnheededSetting]:
    try:
        whole = document(config_map, CONFIG_KEY, config_map.data.get(CONFIG_KEY, ""), joins=True)
        if whole.child("nvidia").child(_GEOMETRIES).value:
            cause = GeometriesUnheeded(Name(config_map.key))
            yield UnheededSetting(CONFIG_KEY, f"nvidia.{_GEOMETRIES}", cause)
    except DecodeError:
        return


def _of_nodes(config_map: ConfigMap) -> Iterator[UnheededSetting]:
    """What the file for single nodes says, of a map that has one: other programs have a `config.json` as well."""
    text = config_map.data.get(NODES_KEY, "")
    if _NODES not in text.lower():
        return
    try:
        entries = _entries(text)
    except (ValueError, RecursionError) as error:
        cause: Cause = NodeSettingsUnread(Name(config_map.key), Quoted(" ".join(str(error).split())))
        yield UnheededSetting(NODES_KEY, _NODES, cause)
        return
    names = sorted({str(entry.get("name", "")) for entry in entries if entry.keys() - {"name"}} - {*_OF_THE_CHART})
    if names:
        yield UnheededSetting(NODES_KEY, _NODES, NodesSetAlone(Name(config_map.key), tuple(map(Name, names))))


def _entries(text: str) -> list[Mapping[str, object]]:
    """The entries, with keys in small letters, as Go's encoding/json takes them. Raises ValueError for another form."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has {len(text)} characters, and {MOST_CHARACTERS} are read")
    whole = json.loads(text)
    if not isinstance(whole, dict):
        raise ValueError("no mapping")
    held = next((value for key, value in whole.items() if str(key).lower() == _NODES), None)
    if held is None:
        return []
    if not isinstance(held, list) or not all(isinstance(each, dict) for each in held):
        raise ValueError(f"{_NODES} is no list of mappings")
    return [{str(key).lower(): value for key, value in each.items()} for each in held]
