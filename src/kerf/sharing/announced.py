"""What a number of `nvidia.com/gpu` that a person announced for a type of machine says of how its cards are shared.

Karpenter's users announce time-sliced cards so, since Karpenter knows no other way. Kerf believes it only where nothing
else says how the cards are shared.
"""

from collections.abc import Mapping, Sequence

from kerf.sharing.family import SHARING, Family
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL, TIME_SLICING
from kerf.sharing.nvidia.replicas import REPLICAS_LABEL, STRATEGY_LABEL, Replicated
from kerf.sharing.registry import family_named, owner_of


def replicas_announced(
    amount: int, cards: int, labels: Mapping[str, str], annotations: Mapping[str, str], families: Sequence[Family]
) -> Mapping[str, str] | None:
    """The labels that feature discovery gives a node which shows each of its cards `amount / cards` times.

    None where that is no whole number from 2 on, or where labels, annotations or the plugin's configuration already say
    how the cards are shared, be it that they are whole.
    """
    if cards < 1 or amount % cards or amount < 2 * cards:
        return None
    owner, slicing = owner_of(labels, annotations, families), family_named(TIME_SLICING, families)
    assert isinstance(slicing, Replicated)
    way = owner if isinstance(owner, Replicated) else slicing
    is_open = isinstance(owner, Replicated) or (owner.name == "whole" and SHARING not in annotations)
    is_stated = STRATEGY_LABEL in labels or CONFIG_LABEL in labels
    if not is_open or is_stated or way.is_configured(labels):
        return None
    return {STRATEGY_LABEL: way.name, REPLICAS_LABEL: str(amount // cards)}
