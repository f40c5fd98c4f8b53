"""The Protocol behind which a sharing family stands.

A family is whatever decides which part of which card a pod gets: HAMi's scheduler extender, NVIDIA's device plugin
with or without time-slicing, MIG. It knows its own resource names, annotations and rules, and nothing of nodes,
prices or plans. Everything here is pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Lack, Name, Quoted
from kerf.model.evidence import DevicePlugin, PluginEvidence
from kerf.model.gpu import DeviceShape, DeviceState, Slice
from kerf.model.nodes import Node
from kerf.model.plan import Stage
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, ResourceQuota

SHARING = "kerf.dev/gpu-sharing"
"""Annotation of a NodePool: the name of the family that manages its cards, where no label says it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod that the family will never serve as it is written; nothing is bought for it.

    `stage` is INVALID (its admission refuses it, or drops what it asks for) or SCHEDULER (it is not its scheduler's).
    `change` is a merge patch of the pod that fixes it, its containers merged by name; None when none does.
    """

    stage: Stage
    cause: Cause
    change: Mapping[str, object] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class Fit:
    """The pod fits: the slices it gets and the devices as they are afterwards. `score` as the real scheduler's."""

    slices: tuple[Slice, ...]
    devices: tuple[DeviceState, ...]
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class NoFit:
    """The pod does not fit.

    `missing` is the smallest quantity that is lacking on any one card; empty when no quantity would help. `shortfall`
    is the same as a plain number, 0 for none.
    """

    cause: Cause
    missing: tuple[Lack, ...] = ()
    shortfall: int = 0


@dataclass(frozen=True, slots=True)
class Unreadable(Cause):
    """What a node or a ConfigMap states of GPUs cannot be read; `error` is the decoder's."""

    error: Quoted


@dataclass(frozen=True, slots=True)
class PluginKeptOff(Cause):
    """The device plugin's DaemonSet has no toleration for a taint of the nodes, so it never starts there."""

    plugin: Name
    daemon_set: Name
    taint: Name


@dataclass(frozen=True, slots=True)
class Occupant:
    """A pod that holds devices of a node (bound, or booked by the family's scheduler before it binds)."""

    pod: Pod
    demand: PodDemand | None


class Family(Protocol):
    """One way of sharing GPUs. Implementations are immutable values, configured by `configured`."""

    @property
    def name(self) -> str:
        """What the annotation `kerf.dev/gpu-sharing` calls it."""
        ...

    @property
    def title(self) -> str:
        """As people call it, e.g. `HAMi`."""
        ...

    @property
    def selector(self) -> tuple[str, str] | None:
        """The node label, key and value, by which its device plugin selects nodes; None when it needs none."""
        ...

    @property
    def resources(self) -> frozenset[str]:
        """Resources that kubelet does not show and only this family counts; never compared with a node's sum."""
        ...

    @property
    def counted(self) -> str:
        """The resource by which kubelet counts its cards or slots, e.g. `nvidia.com/gpu`."""
        ...

    @property
    def claimed(self) -> frozenset[str]:
        """Resources that only this family gives: a pod that asks for one has a place on its nodes alone, or nowhere."""
        ...

    @property
    def plugins(self) -> tuple[DevicePlugin, ...]:
        """Its device plugins, as the cluster says of them: DaemonSets, or what a policy says of one."""
        ...

    def configured(self, config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> "Family":
        """The family as the cluster's own configuration says; itself when the cluster says nothing.

        Raises DecodeError for what cannot be read; given `faults`, these get it, and the family knows that nodes which
        depend on it register no card.
        """
        ...

    def installed(self, evidence: PluginEvidence) -> "Family":
        """The family as what is installed in the cluster says; itself where that says nothing of it."""
        ...

    def selects(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Whether a node with these labels and annotations has its cards managed by this family."""
        ...

    def claims(self, pod: Pod) -> bool:
        """Whether the pod asks for something that only this family can give."""
        ...

    def demand(self, pod: Pod) -> PodDemand | Refused:
        """What the pod asks of this family's devices; admission is emulated for a pod without uid.

        An empty demand means that it asks for no GPU at all.
        """
        ...

    def assumptions(self, labels: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
        """What is assumed of new nodes where it is not stated: labels, one set each; one empty set for nothing.

        Pods are planned for under each; feature discovery corrects such a label on the node itself.
        """
        ...

    def configurations(self, pod: Pod) -> tuple[Mapping[str, str], ...]:
        """Labels, each set of which gives a node a configuration that might serve the pod, in order; for advice."""
        ...

    def obstacle(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Cause | None:
        """Why a new node with these cards, labels and annotations would never register them; None when it will."""
        ...

    def predict(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> tuple[DeviceState, ...]:
        """The idle devices that a new node will register; none where there is an obstacle.

        `labels` and `annotations` are the node's, as its pool states them.
        """
        ...

    def kubelet_capacity(self, devices: Sequence[DeviceState]) -> Resources:
        """What the family's device plugin makes kubelet show for these devices."""
        ...

    def divided(self, devices: Sequence[DeviceState], jobs: int) -> Resources:
        """What each of so many equal containers asks of these idle devices of a node, so all find a place.

        Whole devices while there are enough of them. Empty where they cannot be divided so often.
        """
        ...

    def inventory(self, node: Node) -> tuple[DeviceState, ...] | None:
        """The devices that a node has registered, idle; None while it has registered none."""
        ...

    def has_record(self, pod: Pod) -> bool:
        """Whether a record of the family's own says what the pod holds: then `occupied` does not read its demand."""
        ...

    def occupied(self, devices: Sequence[DeviceState], occupants: Sequence[Occupant]) -> tuple[DeviceState, ...]:
        """`devices` with what the occupants hold; from the family's own records where some can be read."""
        ...

    def fit(
        self,
        devices: Sequence[DeviceState],
        demand: PodDemand,
        pod: Pod,
        node: Node | None,
        quotas: Sequence[ResourceQuota],
    ) -> Fit | NoFit:
        """Which devices the pod gets on this node by the real scheduler's own choice, or why none."""
        ...

    def distinguishes(self, demand: PodDemand) -> bool:
        """Whether devices that differ only in their ids may answer a pod differently: it names some, or their links."""
        ...

    def booked_node(self, pod: Pod) -> str:
        """The node where the family's scheduler has booked devices for the pod, also before it binds; empty if none."""
        ...

    def quota_used(self, occupants: Sequence[Occupant]) -> Resources:
        """What pods of one namespace hold of the ResourceQuota keys that the family enforces."""
        ...

    def quota_asked(self, demand: PodDemand) -> Resources:
        """What one pod with this demand would count against a ResourceQuota's keys, by the family's admission."""
        ...

    def quota_held(self, demand: PodDemand, cards: int) -> Resources:
        """What the family then counts for one pod with this demand, on nodes of at most so many cards."""
        ...

    def quota_limits(self, quota: ResourceQuota) -> Resources:
        """The limits of a quota that the family enforces, in the units of what it counts."""
        ...

    def node_score_order(self, demand: PodDemand, score: float) -> float:
        """Sort key among fitting nodes: the real scheduler takes the smallest."""
        ...
