"""Which cards of a node that was sound are broken or gone, and who is on them."""

from kerf.engine.explain.causes import counted, some
from kerf.model.nodeclaim import REGISTERED_LESS, NodeClaim
from kerf.model.pods import PodDemand
from kerf.model.promises import read
from kerf.model.snapshot import ClusterNode
from kerf.sharing.family import Family, Occupant

_PREFIX = "nvidia.com/"


def broken_cards_text(node: ClusterNode, family: Family) -> str:
    """`GPU 3 (GPU-5f1c) is unhealthy, with pod default/a on it; 1 of 4 GPUs is not registered`; empty for none.

    Where no card is left, the pods that ask for one are named. Of a claim that does not say how many cards there were,
    what it requests says that there were some. Cost: the pods of the node, where a card is broken.
    """
    broken = [device for device in node.devices if not device.healthy]
    found = []
    for device in sorted(broken, key=lambda device: device.index):
        pods, text = _on(node, device.index, family), f"GPU {device.index} ({device.id}) is unhealthy"
        found.append(f"{text}{_with(pods)} on it" if pods else text)
    lost = _lost_text(node)
    if lost:
        users = [] if node.devices else _users(node, family)
        found.append(f"{lost}{_with(users)} there" if users else lost)
    return "; ".join(found)


def _with(pods: list[str]) -> str:
    return f", with {'pod' if len(pods) == 1 else 'pods'} {some(pods)}"


def _lost_text(node: ClusterNode) -> str:
    """How many cards have left the register; empty for none. A node that is kept with less had some all the same."""
    claim = node.claim
    if claim is None:
        return ""
    promised = len(read(claim.annotations).devices)
    lost = promised - len(node.devices)
    if promised and REGISTERED_LESS not in claim.annotations:
        return f"{lost} of {counted(promised, 'GPU')} {'is' if lost == 1 else 'are'} not registered" if lost > 0 else ""
    shown = node.node.allocatable if node.node is not None else claim.requests
    is_hidden = any(amount > 0 and shown.get(name, 0) <= 0 for name, amount in _cards_asked(claim))
    return "none of its GPUs is registered" if not node.devices and (promised or is_hidden) else ""


def _cards_asked(claim: NodeClaim) -> list[tuple[str, int]]:
    """What the claim requests of the resources of cards: it did not initialise without."""
    return [(name, amount) for name, amount in claim.requests.items() if name.startswith(_PREFIX)]


def _users(node: ClusterNode, family: Family) -> list[str]:
    """The pods that ask for a card, by key."""
    running = (pod for pod in node.pods if not pod.is_ended)
    return [pod.key for pod in running if isinstance(asked := family.demand(pod), PodDemand) and not asked.is_empty]


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
