"""What mig-parted's ConfigMap says: which MIG instances each card of a node has, by the name of a configuration.

The MIG manager of NVIDIA's GPU operator applies the configuration that the node's label names. Form and meaning as
mig-parted v0.15 (api/spec/v1): entries are taken in order, each for the cards it names, and a later one wins.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Quoted
from kerf.model.gpu import DeviceShape
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import Field, document
from kerf.sharing.family import Unreadable
from kerf.sharing.nvidia.config_names import name_problem

MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE, MIG_DONE = "nvidia.com/mig.config.state", "success"
_MARKS = re.compile(r"""(?m)^["']?mig-configs["']?\s*:|\A\s*\{(?s:.*)(?<![\w-])mig-configs["']?\s*:""")
"""In YAML at the beginning of a line, or in a mapping of braces, as JSON has it."""
_ALL = "all"
_WHOLE_NAMES = ("all-disabled",)
_UNIFORM = re.compile(r"all-(\d+g\.\d+gb(?:[+.-][a-z.]+)?)")
"""Configurations that the operator ships for every card: all instances of one profile, as many as there is room for."""


@dataclass(frozen=True)
class Layout:
    """What one card has. `counts` by profile name; `fills` a profile of which it has as many as there is room for."""

    is_enabled: bool = True
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    fills: str = ""


@dataclass(frozen=True)
class _Entry:
    layout: Layout
    indexes: tuple[int, ...] | None
    pci_ids: tuple[str, ...] = ()

    def concerns(self, index: int, shape: DeviceShape) -> bool:
        if self.indexes is not None and index not in self.indexes:
            return False
        return not self.pci_ids or any(pci_id in self.pci_ids for pci_id in shape.pci_ids)


@dataclass(frozen=True)
class MigConfigs:
    """All of a cluster, by name; `broken` are those that cannot be read. `unread` is why whole texts of them cannot."""

    by_name: Mapping[str, tuple[_Entry, ...]] = field(default_factory=dict, hash=False)
    torn: tuple[str, ...] = ()
    broken: tuple[tuple[str, Unreadable], ...] = ()
    unread: tuple[Unreadable, ...] = ()

    def knows(self, name: str) -> bool:
        """Whether there is a configuration of that name, be it one that the operator ships."""
        return (name in self.by_name and name not in self.torn) or bool(_shipped(name))

    def layouts(self, name: str, shapes: Sequence[DeviceShape]) -> tuple[Layout, ...]:
        """What each card will have; of a card that the configuration does not speak of, that it is left whole."""
        entries = self.by_name.get(name) or _shipped(name)
        return tuple(
            next((e.layout for e in reversed(entries) if e.concerns(index, shape)), Layout(is_enabled=False))
            for index, shape in enumerate(shapes)
        )

    def cuts(self, name: str) -> bool:
        """Whether it makes MIG instances on any card."""
        return any(entry.layout.is_enabled for entry in self.by_name.get(name) or _shipped(name))

    def problem(self, name: str) -> Cause | None:
        """Why the name cannot be used; None when it can."""
        why = dict(self.broken).get(name)
        if why is not None or (self.unread and name not in self.by_name and not _shipped(name)):
            return why or self.unread[0]
        is_shipped = name not in self.torn and bool(_shipped(name))
        return None if is_shipped else name_problem(MIG_CONFIG, name, self.by_name, self.torn)


def _shipped(name: str) -> tuple[_Entry, ...]:
    if name in _WHOLE_NAMES:
        return (_Entry(Layout(is_enabled=False), None),)
    uniform = _UNIFORM.fullmatch(name)
    return (_Entry(Layout(fills=uniform[1]), None),) if uniform else ()


def find_mig_configs(config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> MigConfigs:
    """The configurations of mig-parted, in whatever map they are.

    Raises DecodeError with map, key and field; given `faults`, these get it, and what cannot be read is known as such.
    """
    found: dict[str, tuple[_Entry, ...]] = {}
    broken: dict[str, Unreadable] = {}
    unread: list[Unreadable] = []
    torn = set()
    for config_map, key in _marked(config_maps):
        try:
            configs = dict(_configs(document(config_map, key, config_map.data[key])))
        except DecodeError as error:
            unread.append(_noted(error, faults))
            continue
        for name, entries in configs.items():
            try:
                config = tuple(_entry(entry) for entry in entries.items())
            except DecodeError as error:
                broken.setdefault(name, _noted(error, faults))
                continue
            if found.setdefault(name, config) != config:
                torn.add(name)
    return MigConfigs(found, tuple(sorted(torn)), tuple(sorted(broken.items())), tuple(unread))


def _marked(config_maps: Sequence[ConfigMap]) -> Iterator[tuple[ConfigMap, str]]:
    """The maps in the order of their names, with each key whose text is mig-parted's."""
    for config_map in sorted(config_maps, key=lambda m: (m.namespace, m.name)):
        for key, text in sorted(config_map.data.items()):
            if _MARKS.search(text):
                yield config_map, key


def _configs(whole: Field) -> Iterator[tuple[str, Field]]:
    if whole.child("version").value != "v1":
        raise whole.child("version").wrong("v1")
    yield from whole.child("mig-configs").children()


def _noted(error: DecodeError, faults: list[DecodeError] | None) -> Unreadable:
    """The error as a cause; raised without a list that collects them."""
    if faults is None:
        raise error
    faults.append(error)
    return Unreadable(Quoted(str(error)))


def states_layouts(config_maps: Sequence[ConfigMap]) -> bool:
    """Whether a map holds layouts of mig-parted, be they such as cannot be read."""
    return any(_MARKS.search(text) for config_map in config_maps for text in config_map.data.values())


def _entry(entry: Field) -> _Entry:
    is_enabled = entry.child("mig-enabled").truth()
    devices = entry.child("mig-devices")
    counts = {name: count.whole(0) for name, count in devices.children()}
    if counts and not is_enabled:
        raise devices.wrong("nothing where mig-enabled is false")
    return _Entry(Layout(is_enabled, counts), _indexes(entry.child("devices")), _pci_ids(entry.child("device-filter")))


def _indexes(devices: Field) -> tuple[int, ...] | None:
    """The cards it is for; None for all."""
    if devices.value == _ALL:
        return None
    if not isinstance(devices.value, list):
        raise devices.wrong("all, or a list of indices")
    return tuple(index.whole(0) for index in devices.items())


def _pci_ids(held: Field) -> tuple[str, ...]:
    """Device ids such as `20B0`, from `0x20B010DE` (device and vendor)."""
    texts = [held.text()] if isinstance(held.value, str) else [item.text() for item in held.items()]
    return tuple(text.lower().removeprefix("0x")[:4].upper() for text in texts)
