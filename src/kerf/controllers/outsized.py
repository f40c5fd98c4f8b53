"""Pods that ask for more cpu or memory than any machine has, sold or there: no pod that leaves makes room for one.

A plan is made again for each pod that waits whenever anything has changed, since any change may have made room. For
these it can only come out the same, and on a busy cluster something changes all the time.
"""

from collections.abc import Iterable, Sequence

from kerf.engine.decision import Decision
from kerf.model.market import Market
from kerf.model.nodepool import NodePool, is_read_alike
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY, Resources
from kerf.state import ClusterState

_SIZES = (CPU, MEMORY)


class Outsized:
    """Remembers of the last decision what it refused for ever, and until when that need not be asked again."""

    def __init__(self, state: ClusterState, settled_s: float) -> None:
        self._state, self._settled_s = state, settled_s
        self._pods: dict[str, tuple[int, int]] = {}
        self._pools: Sequence[NodePool] = ()
        self._until_s = float("-inf")

    def note(self, decision: Decision, now_s: float) -> None:
        """Take note of a decision that was carried out. Cost: the shapes it refused, by the types of the market."""
        refused = [pod for refusal in decision.refusals for pod in refusal.pods]
        known: dict[tuple[int, int], bool] = {}
        found = {}
        for pod in refused:
            size = _size(pod.spec.requests)
            if size not in known:
                known[size] = not any(_holds(each, size) for each in _sold(decision.world.market))
            if known[size]:
                found[pod.uid] = size
        self._pods, self._pools, self._until_s = found, self._state.pools(), now_s + self._settled_s

    def are_all(self, waiting: Iterable[Pod], now_s: float) -> bool:
        """Whether only such pods wait, of which the last decision knew, and nothing has come that could hold one.

        Pools are as they were, and no node is that large. The market is asked again in time.
        """
        if not self._pods or now_s >= self._until_s:
            return False
        sizes = set()
        for pod in waiting:
            size = _size(pod.spec.requests)
            # A pod can be resized while it waits.
            if self._pods.get(pod.uid) != size:
                return False
            sizes.add(size)
        if any(_holds(node.allocatable, size) for node in self._state.nodes() for size in sizes):
            return False
        pools = self._state.pools()
        return len(pools) == len(self._pools) and all(map(is_read_alike, pools, self._pools))


def _sold(market: Market) -> Iterable[Resources]:
    """What machines of each type have, and where those of some offerings have another capacity, those."""
    kinds = [*market.types, *(kind for own in market.types_by_node_class.values() for kind in own)]
    for kind in kinds:
        yield kind.capacity
        yield from (kind.capacity.replaced(each.capacity) for each in kind.offerings if each.capacity)


def _size(requests: Resources) -> tuple[int, int]:
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


def _holds(has: Resources, size: tuple[int, int]) -> bool:
    return all(has.get(name, 0) >= amount for name, amount in zip(_SIZES, size, strict=True))
