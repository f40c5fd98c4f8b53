"""Which resources a node shows, and which of them its cards decide.

A resource exists on a node because something registers it there: kubelet cpu and memory, a device plugin the cards it
was configured for, by the names it was configured with. What the cloud or a NodeOverlay says of GPUs is a number of
cards and no name: where HAMi calls its slots `nvidia.com/vgpu`, the node has no `nvidia.com/gpu`, whatever its type
is sold with. What no plugin of a node registers counts by what kubelet shows, so by nothing on a node to be; it is
never without bound.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kerf.model.gpu import NVIDIA_GPU, DeviceState
from kerf.model.quantities import Resources
from kerf.sharing.family import Family


def decided_by_cards(family: Family, families: Iterable[Family]) -> frozenset[str]:
    """Resources of which no sum decides on a node whose cards are the family's: each pod is put to its cards instead.

    These are the family's own, and those that only another one gives, since the cards turn pods away that ask for
    them (`Family.claimed`). All else is compared with what the node shows.
    """
    return frozenset({family.counted, *family.resources}).union(*(each.claimed for each in families))


def of_cards(families: Iterable[Family]) -> frozenset[str]:
    """The names by which some family's plugin shows cards, or gives out parts of them, as it is configured."""
    return frozenset({NVIDIA_GPU}).union(*({each.counted, *each.resources} for each in families))


def will_show(
    stated: Resources, family: Family, families: Iterable[Family], devices: Sequence[DeviceState]
) -> Resources:
    """What a node shows once its plugin has registered these cards.

    `stated` is what the cloud, overlays and the node itself say so far; of cards the family alone is believed.
    """
    registered = family.kubelet_capacity(devices).items()
    return stated.without(of_cards(families)).replaced({name: amount for name, amount in registered if amount})


def counted_as_shown(stated: Resources, family: Family, devices: Sequence[DeviceState]) -> Resources:
    """What a node with these cards counts against limits of its pool, of which the cloud says `stated`.

    Of a resource that its plugin shows, as many as that shows: replicas, slots, instances (Karpenter counts the
    capacity of nodes). By a name that it does not show, its cards: a limit in that name still bounds the pool. A card
    that is broken counts as before.
    """
    registered = family.kubelet_capacity([d if d.healthy else replace(d, healthy=True) for d in devices])
    return stated.replaced({name: amount for name, amount in registered.items() if amount})
