"""Who holds how much of which GPU, as gauges: worked out when Prometheus asks, and kept nowhere.

A pod that has gone must leave no series behind, so all of them are set again each time.
"""

from dataclasses import replace

from kerf.cli.cards import Card, Holder, cards_of
from kerf.cli.inventory import pool_of
from kerf.model.gpu import DeviceState
from kerf.model.snapshot import ClusterSnapshot
from kerf.telemetry import GPU_ALLOCATED_RATIO, POD_GPUS

_WHOLE = 10_000


def measure_gpus(snapshot: ClusterSnapshot) -> None:
    """Set the gauges to what the snapshot has; cards that are only predicted are left out.

    The share of a card is the largest of its memory, core and slot share, as everywhere.
    """
    GPU_ALLOCATED_RATIO.clear()
    POD_GPUS.clear()
    held: dict[tuple[str, str], int] = {}
    for node in snapshot.nodes:
        for card in cards_of(node, snapshot) if node.node is not None else ():
            device = card.device
            labels = GPU_ALLOCATED_RATIO.labels(pool_of(node), card.node, str(device.index), device.model)
            labels.set(device.allocated_percent_points / _WHOLE)
            for holder in card.holders:
                key = (holder.pod, card.node)
                held[key] = held.get(key, 0) + _share(card, holder)
    for (pod, name), share in held.items():
        POD_GPUS.labels(*pod.split("/", 1), name).set(share / _WHOLE)


def _share(card: Card, holder: Holder) -> int:
    alone: DeviceState = replace(
        card.device, used_memory_mib=holder.memory_mib, used_cores=holder.cores, used_slots=holder.slots
    )
    return alone.allocated_percent_points
