"""GPU models and the memory that a driver registers on them.

The number on the box, the number of the cloud's API and the number the driver registers are three different numbers
(T4: 16 GB, 16384 MiB, 15360 MiB). A plan that counts on too much is refused by its own node, so the least of what is
known counts, and where nothing but the API is known, 92 percent of that.
"""

from functools import cache

import msgspec

from kerf.catalog.mig import mig_of
from kerf.catalog.packaged import data
from kerf.model.gpu import DeviceShape, GPUModel

MARGIN_PERCENT = 92
"""What is counted of the cloud API's figure where nothing else is known: cards register 91.7 % (L20) to 100 % of it."""


class CardRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of `gpus.json`; `nvml_mib` is the total the driver reports, None where no source says."""

    name: str
    gib: int
    registered_as: str
    nvml_mib: int | None
    source: str | None


class _Meta(msgspec.Struct, frozen=True):
    units: str
    sources: dict[str, str]


class _File(msgspec.Struct, frozen=True):
    meta: _Meta
    models: tuple[CardRow, ...]


@cache
def _file() -> _File:
    return msgspec.json.decode(data("gpus.json"), type=_File)


def find_card(name: str, memory_mib: int | None = None) -> CardRow | None:
    """The card of that name (`A10G`, `NVIDIA A10G`, `V100 32GB`), of the size nearest to `memory_mib`.

    Without a size the smallest is meant. None when the table has no such card.
    """
    wanted = _plain(name)
    found = [card for card in _file().models if wanted in (_plain(card.name), _plain(card.registered_as))]
    if not found:
        return None
    return min(found, key=lambda card: (abs(card.gib * 1024 - (memory_mib or 0)), card.gib))


def _plain(name: str) -> str:
    """A model's name without vendor, size and case: `NVIDIA V100 32GB` is `v100`."""
    words = [word for word in name.lower().replace("nvidia-", "nvidia ").split() if word not in ("nvidia", "tesla")]
    return " ".join(word for word in words if not word.removesuffix("gb").isdigit() or not word.endswith("gb"))


def model_of(name: str, memory_mib: int | None = None) -> GPUModel:
    """The model of a card that a catalogue names; a name that the table lacks is taken as it stands."""
    card = find_card(name, memory_mib)
    if card is not None:
        return GPUModel(card.name, "nvidia", card.registered_as)
    return GPUModel(name, "nvidia", name if "nvidia" in name.lower() else f"NVIDIA {name}")


@cache
def shape_of(
    name: str, memory_mib: int, source: str, *, nominal_mib: int | None = None, eighths: int = 8
) -> DeviceShape:
    """A card of that model with what is known of it; a fraction of a card has no MIG.

    `memory_mib` is what registers; `nominal_mib`, where given, distinguishes sizes of one model.
    """
    card = find_card(name, nominal_mib or memory_mib)
    model = model_of(name, nominal_mib or memory_mib)
    if card is None or eighths < 8:
        return DeviceShape(model, memory_mib, source, eighths)
    profiles, pci_ids = mig_of(card.name, card.gib, memory_mib)
    return DeviceShape(model, memory_mib, source, eighths, profiles, pci_ids)


@cache
def device_shape(
    name: str, *, api_mib: int | None = None, observed_mib: int | None = None, origin: str, eighths: int = 8
) -> DeviceShape:
    """One card as a plan may count on it.

    `api_mib` is what the cloud states of the card (or of the share it sells), `observed_mib` what drivers registered on
    this cloud; at least one is given. `origin` names where they come from. The least of these and the driver's total
    (its share, for a fraction) counts; with `api_mib` alone, MARGIN_PERCENT of it.
    """
    nominal = (observed_mib or api_mib or 0) * 8 // eighths
    card = find_card(name, nominal)
    known = [] if observed_mib is None else [(observed_mib, origin)]
    if card is not None and card.nvml_mib is not None:
        known.append((card.nvml_mib * eighths // 8, f"driver's total: {_file().meta.sources[card.source or '']}"))
    if not known:
        stated = api_mib or 0
        text = f"{MARGIN_PERCENT} % of {stated} MiB, {origin}; no driver's total is known"
        return shape_of(name, stated * MARGIN_PERCENT // 100, text, nominal_mib=nominal, eighths=eighths)
    if api_mib is not None:
        known.append((api_mib, origin))
    least, source = min(known)
    return shape_of(name, least, source, nominal_mib=nominal, eighths=eighths)
