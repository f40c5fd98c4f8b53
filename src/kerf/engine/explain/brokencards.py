"""Which cards of a node that was sound are broken or gone, and who is on them."""

from kerf.engine.explain.causes import counted, some
from kerf.model.nodeclaim import REGISTERED_LESS
from kerf.model.pods import PodDemand
from kerf.model.promises import read
from kerf.model.snapshot import ClusterNode
from kerf.sharing.family import Family, Occupant


def broken_cards_text(node: ClusterNode, family: Family) -> str:
    """`GPU 3 (GPU-5f1c) is unhealthy, with pod default/a on it; 1 of 4 GPUs is not registered`; empty for none.

    Cost: the pods of the node, where a card is broken.
    """
    broken = [device for device in node.devices if not device.healthy]
    found = []
    for device in sorted(broken, key=lambda device: device.index):
        pods = _on(node, device.index, family)
        who = f", with {'pod' if len(pods) == 1 else 'pods'} {some(pods)} on it" if pods else ""
        found.append(f"GPU {device.index} ({device.id}) is unhealthy{who}")
    claim = node.claim
    if claim is not None and REGISTERED_LESS not in claim.annotations:
        promised = len(read(claim.annotations).devices)
        lost = promised - len(node.devices)
        if lost > 0:
            found.append(f"{lost} of {counted(promised, 'GPU')} {'is' if lost == 1 else 'are'} not registered")
    return "; ".join(found)


def _on(node: ClusterNode, index: int, family: Family) -> list[str]:
    found = []
    for pod in node.pods:
        demand = family.demand(pod)
        if pod.is_ended or not isinstance(demand, PodDemand) or demand.is_empty:
            continue
        before = next(device for device in node.devices if device.index == index)
        after = family.occupied((before,), (Occupant(pod, demand),))
        if after and after[0] != before:
            found.append(pod.key)
    return found
