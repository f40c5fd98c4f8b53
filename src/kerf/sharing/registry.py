"""The families Kerf knows, in the order in which they are asked whether a node's cards are theirs."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import Family, Refused
from kerf.sharing.hami import Hami
from kerf.sharing.whole import Whole

FAMILIES: tuple[Family, ...] = (Hami(), Whole())
"""With default configuration; `Whole` is last and owns every card that nobody else claims."""


def configured(config_maps: Sequence[ConfigMap]) -> tuple[Family, ...]:
    """The families as the cluster configures them. Raises DecodeError when a ConfigMap cannot be read."""
    return _configured(tuple(config_maps))


@lru_cache(maxsize=4)
def _configured(config_maps: tuple[ConfigMap, ...]) -> tuple[Family, ...]:
    return tuple(family.configured(config_maps) for family in FAMILIES)


def demand_of(pod: Pod, family: Family) -> PodDemand | Refused:
    """What a pod asks of a family, worked out once for each value of both: snapshots ask it of every pod."""
    held: dict[str, tuple[Family, PodDemand | Refused]] = pod.__dict__.setdefault("_demands", {})
    known = held.get(family.name)
    if known is None or known[0] != family:
        known = held[family.name] = (family, family.demand(pod))
    return known[1]


def owner_of(
    labels: Mapping[str, str], annotations: Mapping[str, str], families: Sequence[Family] = FAMILIES
) -> Family:
    """The family that manages the cards of a node with these labels and annotations."""
    return next(family for family in families if family.selects(labels, annotations))


def family_named(name: str, families: Sequence[Family] = FAMILIES) -> Family:
    """The family of that name. Raises KeyError when there is none."""
    return {family.name: family for family in families}[name]
