"""Which resources a node shows, and which of them its cards decide.

A resource exists on a node because something registers it there: kubelet cpu and memory, a device plugin the cards it
was configured for, by the names it was configured with. What the cloud or a NodeOverlay says of GPUs is a number of
cards and no name: where HAMi calls its slots `nvidia.com/vgpu`, the node has no `nvidia.com/gpu`, whatever its type
is sold with. What no plugin of a node registers counts by what kubelet shows, so by nothing on a node to be; it is
never without bound.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.model.gpu import NVIDIA_GPU, DeviceState
from kerf.model.quantities import Resources
from kerf.sharing.family import Family

NEURON_CORES = "aws.amazon.com/neuroncore"
NEURON_DEVICES = ("aws.amazon.com/neuron", "aws.amazon.com/neurondevice")
"""AWS Neuron's plugin shows its chips twice, as devices and as the cores of these; the second device name is newer."""


def cores_of_a_device(shown: Mapping[str, int]) -> int:
    """The NeuronCores of each Neuron device, where a node shows both; else 0."""
    devices = max([shown.get(name, 0) for name in NEURON_DEVICES])
    return shown.get(NEURON_CORES, 0) // devices if devices > 0 else 0


@dataclass(frozen=True, slots=True)
class Counting:
    """How a sum over a node counts what a pod asks: `by_cards` is left out, since cards decide of it.

    A Neuron device counts as its `cores` beside: who has it leaves none of them to others. With c cores in use of k a
    device there are whole devices left as far as their cores are, so one sum says it for both.
    """

    by_cards: frozenset[str] = frozenset()
    cores: int = 0

    def of(self, requests: Resources) -> Resources:
        """These amounts as the node counts them."""
        counted = requests.without(self.by_cards)
        devices = sum([counted.get(name, 0) for name in NEURON_DEVICES]) if self.cores else 0
        return counted + {NEURON_CORES: self.cores * devices} if devices > 0 else counted


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
