"""Pods that nodes to be bought let onto nodes that are there or on their way.

A node in another zone evens out a spread, and a pod that comes is company: so room opens that pods were kept off.
kube-scheduler uses it once the new node has its pods, and what is bought for others than these stays empty.
"""

from collections.abc import Callable, Hashable, Sequence

from kerf.engine.place.checks import Check, Even, Together
from kerf.engine.place.lines import Line
from kerf.engine.place.noderooms import NodeRoom
from kerf.engine.place.queueing import Destined
from kerf.engine.place.shapes import Shape
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.place.trial import Trial
from kerf.model.constraints import HOSTNAME
from kerf.model.placeholders import is_virtual
from kerf.model.pods import Pod


class Joinable:
    """The nodes of a trial with what is left of them; those that are `closed`, by name, take none."""

    def __init__(self, trial: Trial, closed: frozenset[str] = frozenset()) -> None:
        self._trial, self._closed = trial, closed
        self._known: dict[Hashable, bool] = {}

    def may_open(self, shape: Shape, checks: Sequence[Check]) -> bool:
        """Whether some node has room for a pod of the shape, and pods that come may open it.

        No pod that comes opens what others keep off, nor by itself a node whose name alone decides.
        """
        return not is_virtual(shape.pod.key) and any(map(_may_open, checks)) and self.has_room(shape)

    def has_room(self, shape: Shape) -> bool:
        """Whether some node had room for a pod of the shape before any was bought, whatever pods are elsewhere.

        Cost: the kinds of nodes, once for all shapes that differ only in what they ask of other pods.
        """
        spec, pod = shape.spec, shape.pod
        key = spec.alone(), pod.namespace, tuple(sorted(pod.annotations.items()))
        if key not in self._known:
            self._known[key] = self._trial.takes_alone(shape, self._is_open)
        return self._known[key]

    def beside(self, ledger: TopologyLedger) -> "Joining":
        """To be joined in a plan whose nodes are in the ledger after those that are there."""
        return Joining(self._trial.beside(ledger), self._is_open)

    def _is_open(self, spot: NodeRoom) -> bool:
        return spot.cluster_node.name not in self._closed


class Joining:
    """The same nodes in one plan. `joined` are the pods that have come, in their order."""

    def __init__(self, trial: Trial, among: Callable[[NodeRoom], bool]) -> None:
        self._trial, self._among = trial, among
        self._lines: dict[int, Line] = {}
        self.joined: list[Destined] = []

    def join(self, number: int, shape: Shape, pod: Pod) -> bool:
        """Whether a node takes the pod, which is of the shape of that number, and has it from now on."""
        if number not in self._lines:
            self._lines[number] = self._trial.line(shape, among=self._among)
        found = self._lines[number].take()
        if found is None:
            return False
        index, result = found
        self._trial.occupy(index, result.room, pod)
        self.joined.append(Destined(shape, pod, index))
        return True


def _may_open(check: Check) -> bool:
    return isinstance(check, Even | Together) and any(key != HOSTNAME for key in check.keys)
