"""Pods that nodes to be bought let onto nodes that are there or on their way.

A node in another zone evens out a spread, and a pod that comes is company: so room opens that pods were kept off.
kube-scheduler uses it once the new node has its pods, and what is bought for others than these stays empty.
"""

from collections.abc import Callable, Sequence

from kerf.engine.place.checks import Check, Even, Together
from kerf.engine.place.lines import Line
from kerf.engine.place.noderooms import NodeRoom
from kerf.engine.place.queueing import Destined
from kerf.engine.place.shapes import Shape
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.place.trial import Trial
from kerf.model.constraints import HOSTNAME
from kerf.model.placeholders import is_virtual
from kerf.model.pods import Pod, PodSpec


class Joinable:
    """The nodes of a trial with what is left of them; those that are `closed`, by name, take none."""

    def __init__(self, trial: Trial, closed: frozenset[str] = frozenset()) -> None:
        self._trial, self._closed = trial, closed
        # The spec is kept beside the answer: an identity is free again once its object is gone.
        self._known: dict[int, tuple[PodSpec, bool]] = {}

    def may_open(self, shape: Shape, checks: Sequence[Check]) -> bool:
        """Whether some node has room for a pod of the shape, and pods that come may open it.

        No pod that comes opens what others keep off, nor by itself a node whose name alone decides. Cost: once a spec,
        the kinds of nodes.
        """
        if is_virtual(shape.pod.key) or not any(map(_may_open, checks)):
            return False
        known = self._known.get(id(shape.spec))
        if known is None:
            known = self._known[id(shape.spec)] = shape.spec, self._trial.takes_alone(shape, self._is_open)
        return known[1]

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
