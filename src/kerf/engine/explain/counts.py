"""Why the nodes that there are refuse a pod, counted by reason in the words of kube-scheduler.

The words are those of Kubernetes 1.36 (pkg/scheduler/framework/plugins) and the order of the checks is its filters', so
the line reads as the event of the pod does. What the plan places there before the pod counts as if it ran.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kerf.engine.decision import Decision
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.nearby import filled
from kerf.engine.place.fit import check_resources
from kerf.engine.place.shapes import Shape
from kerf.model.causes import Cause, HostPortTaken, Insufficient, LabelMismatch, UntoleratedTaint
from kerf.model.constraints import untolerated
from kerf.model.plan import Misfit
from kerf.model.pods import Pod
from kerf.model.quantities import PODS
from kerf.model.snapshot import ClusterNode
from kerf.model.topology import (
    AFFINITY,
    SPREAD,
    NotNear,
    NoTopologyLabel,
    SkewExceeded,
    TooFewDomains,
    TooNear,
    Unwelcome,
)
from kerf.model.volumecauses import NoVolumeHere, SharedElsewhere, TooManyVolumes, VolumeElsewhere

_UNSCHEDULABLE = "node(s) were unschedulable"
_TAINTED = "node(s) had untolerated taint(s)"
_UNEVEN = "node(s) didn't match pod topology spread constraints"
_ALONE = "node(s) didn't match pod affinity rules"
_WORDS: dict[type[Cause], str] = {
    UntoleratedTaint: _TAINTED,
    LabelMismatch: "node(s) didn't match Pod's node affinity/selector",
    HostPortTaken: "node(s) didn't have free ports for the requested pod ports",
    VolumeElsewhere: "node(s) didn't match PersistentVolume's node affinity",
    SharedElsewhere: "node(s) didn't match PersistentVolume's node affinity",
    NoVolumeHere: "node(s) didn't find available persistent volumes to bind",
    TooManyVolumes: "node(s) exceed max volume count",
    SkewExceeded: _UNEVEN,
    TooFewDomains: _UNEVEN,
    NotNear: _ALONE,
    TooNear: "node(s) didn't match pod anti-affinity rules",
    Unwelcome: "node(s) didn't satisfy existing pods anti-affinity rules",
}
_OF_VOLUMES = (VolumeElsewhere, NoVolumeHere, TooManyVolumes, SharedElsewhere)


@dataclass(frozen=True)
class NodeCounts:
    """How many nodes there are, and how often each reason refuses the pod; a node that lacks two resources has two.

    `of_pod` stands for the reasons where the pod is refused whatever node there is.
    """

    nodes: int
    reasons: tuple[tuple[str, int], ...] = ()
    of_pod: str = ""

    def __str__(self) -> str:
        listed = self.of_pod or ", ".join(sorted(f"{count} {reason}" for reason, count in self.reasons))
        return f"0/{self.nodes} nodes are available: {listed}."


class NodeReasons:
    """The nodes of a decision with the pods that it places there, asked by pod."""

    def __init__(self, decision: Decision) -> None:
        self._world = decision.world
        self._volumes = decision.world.volumes
        self._trial = filled(decision)

    def of(self, pod: Pod) -> NodeCounts | None:
        """The counts; None where there is no node, or one takes the pod. Linear in nodes."""
        nodes = [node for node in self._world.snapshot.nodes if node.node is not None]
        if not nodes:
            return None
        found = self._volumes.followed(pod)
        if isinstance(found, Cause):
            return NodeCounts(len(nodes), of_pod=cause_text(found))
        shape, counted, spots = Shape((found,)), Counter[str](), self._trial.spots
        index = {spot.cluster_node.name: number for number, spot in enumerate(spots)}
        for node in nodes:
            reasons = tuple(self._on(index[node.name], shape)) if node.name in index else (_closed(node, found),)
            if not reasons:
                return None
            counted.update(reasons)
        return NodeCounts(len(nodes), tuple(sorted(counted.items())))

    def _on(self, index: int, shape: Shape) -> Iterator[str]:
        """What one node has against the pod; nothing where it takes it."""
        misfit, spot = self._trial.fit(index, shape), self._trial.spots[index]
        if not isinstance(misfit, Misfit):
            return
        if isinstance(misfit.cause, _OF_VOLUMES):
            # kube-scheduler asks for ports and resources before it asks for volumes.
            misfit = check_resources(spot.target, self._trial.rooms[index], shape) or misfit
        cause = misfit.cause
        if isinstance(cause, Insufficient):
            for each in cause.shortages:
                yield "Too many pods" if each.resource == PODS else f"Insufficient {each.resource}"
        elif isinstance(cause, NoTopologyLabel):
            words = {SPREAD: f"{_UNEVEN} (missing required label)", AFFINITY: _ALONE}
            yield words.get(cause.constraint, _ALONE)
        else:
            yield _WORDS.get(type(cause)) or cause_text(cause)


def _closed(node: ClusterNode, pod: Pod) -> str:
    """Why no pod is planned on a node that is there."""
    held = node.node
    if held is not None and not held.is_unschedulable and untolerated(held.taints, pod.spec.tolerations) is not None:
        return _TAINTED
    return _UNSCHEDULABLE
