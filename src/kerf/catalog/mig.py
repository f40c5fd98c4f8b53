"""MIG profiles of each GPU model: what an instance has, and where the hardware lets it start.

The `gb` in a profile's name is a rounding and says nothing exact: memory is from the table, and where no source states
it the instance's share of the card, less the margin that whole cards have too.
"""

from functools import cache

import msgspec

from kerf.catalog.packaged import data
from kerf.model.gpu import Profile

MARGIN_PERCENT = 95
"""What is counted of an instance's share of the card's memory where no source states its own: 95 % (1g of A100 40 GB,
4864 of 5120 MiB) is the least of all that are known."""


class _Class(msgspec.Struct, frozen=True):
    compute: int
    size: int
    starts: tuple[int, ...]


class _Geometry(msgspec.Struct, frozen=True):
    slices: int
    compute: int
    source: str
    classes: dict[str, _Class]


class _Card(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    gib: int
    geometry: str
    pci_ids: tuple[str, ...]
    profiles: tuple[tuple[str, str, int | None], ...]


class _File(msgspec.Struct, frozen=True):
    geometries: dict[str, _Geometry]
    cards: tuple[_Card, ...]


@cache
def _file() -> _File:
    return msgspec.json.decode(data("mig.json"), type=_File)


def mig_cards() -> tuple[str, ...]:
    """The models that have MIG, each once, as the GPU table names them."""
    return tuple(dict.fromkeys(card.name for card in _file().cards))


@cache
def mig_of(name: str, gib: int, memory_mib: int) -> tuple[tuple[Profile, ...], tuple[str, ...]]:
    """Profiles and PCI device ids of a model of that size, as the GPU table names it; both empty without MIG.

    `memory_mib` is what a driver registers of the whole card.
    """
    card = next((card for card in _file().cards if (card.name, card.gib) == (name, gib)), None)
    if card is None:
        return (), ()
    geometry = _file().geometries[card.geometry]
    return tuple(_profile(row, geometry, memory_mib) for row in card.profiles), card.pci_ids


def _profile(row: tuple[str, str, int | None], geometry: _Geometry, card_mib: int) -> Profile:
    kind, name, memory = row
    held = geometry.classes[kind]
    share = card_mib * held.size // geometry.slices * MARGIN_PERCENT // 100
    return Profile(
        name,
        held.size,
        held.starts,
        memory if memory is not None else share,
        held.compute * 100 // geometry.compute,
        held.compute,
        has_media_engine=name.endswith("+me"),
    )
