"""What the controllers need of the world, as Protocols; `kube/` and `sim/` implement them.

Nothing here speaks Kubernetes JSON: adapters translate at the edge, so a controller sees model values only.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from kerf.errors import ApiError
from kerf.model.capacitybuffers import CapacityBuffer, Scalable
from kerf.model.constraints import Taint
from kerf.model.events import Occurrence
from kerf.model.market import Market
from kerf.model.nodeclaim import Condition, NodeClaim
from kerf.model.nodes import Node
from kerf.model.plan import Launch, Plan
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import ProvisioningRequest
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot, Report, Watched
from kerf.model.usage import Usage
from kerf.model.violations import Violation
from kerf.model.windows import CapacityWindow


class Conflict(ApiError):
    """The object has changed since we read it, or a test in a patch failed: look again and decide again.

    `current` is the object as the server has it now, where that was asked before writing.
    """

    def __init__(self, text: str, current: Watched | None = None) -> None:
        super().__init__(text)
        self.current = current


class NotFound(ApiError):
    """The object is gone: what we wanted to do to it is moot."""


class AlreadyExists(ApiError):
    """An object of that name exists: we, or our own earlier run, have made it already."""


class WriteRefused(ApiError):
    """The server forbids the write or its result (403, 422), and would again: go on without it."""


class EvictionBlocked(ApiError):
    """A PodDisruptionBudget forbids the eviction just now: try again later."""


class Clock(Protocol):
    """Where time comes from."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        ...

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """Run `callback` at that time, or at once when it has passed; equal times in the order of the calls."""
        ...


class KubeReader(Protocol):
    """What happens in the cluster."""

    def events(self) -> AsyncIterator[Report]:
        """Everything that exists as Upserted, one Synced, then every change in order, for ever.

        An object that cannot be decoded is logged and left out, so it stops no decision about the others.
        A relist after a lost watch is reported as ordinary events: Upserted for all, Deleted for what has vanished.
        Each whole list of a kind ends with Relisted.
        """
        ...


class Scalables(Protocol):
    """Workloads that CapacityBuffers name: asked for, not followed. A cluster has thousands, and buffers name a few."""

    async def scalable(self, namespace: str, kind: str, name: str) -> Scalable | None:
        """A Deployment, StatefulSet or ReplicaSet as it is now; None where there is none. Raises ApiError, and
        DecodeError where it cannot be read.
        """
        ...


class KubeWriter(Protocol):
    """The verbs of the controllers. Each is one call, safe to repeat; each raises NotFound, Conflict or ApiError."""

    async def create_node_claim(self, claim: NodeClaim) -> NodeClaim:
        """Create it with its owner and finalizer; returns it with uid. Raises AlreadyExists."""
        ...

    async def update_node_claim(self, claim: NodeClaim) -> NodeClaim:
        """Write labels, annotations and finalizers as they are in `claim`. Raises Conflict on an old version."""
        ...

    async def update_node_claim_status(self, claim: NodeClaim) -> NodeClaim:
        """Write the status as it is in `claim`. Raises Conflict on an old version."""
        ...

    async def delete_node_claim(self, claim: NodeClaim) -> None:
        """Ask for deletion; the object stays until its finalizers are gone. Raises Conflict for another of its name."""
        ...

    async def update_node(self, node: Node) -> Node:
        """Write labels, annotations, taints, `is_unschedulable`, finalizers. Raises Conflict on an old version."""
        ...

    async def delete_node(self, node: Node) -> None:
        """Ask for deletion; the object stays until its finalizers are gone. Raises Conflict for another of its name."""
        ...

    async def update_node_pool_status(
        self, name: str, resources: Resources | None, conditions: Sequence[Condition]
    ) -> None:
        """Write a pool's counted resources, unless they are None, and these conditions; others stay as they are."""
        ...

    async def update_node_overlay_status(self, name: str, conditions: Sequence[Condition]) -> None:
        """Write an overlay's conditions."""
        ...

    async def update_window_status(self, window: CapacityWindow) -> CapacityWindow:
        """Write the status as it is in `window`. Raises Conflict on an old version."""
        ...

    async def update_window_finalizers(self, window: CapacityWindow) -> CapacityWindow:
        """Write the finalizers as they are in `window`. Raises Conflict on an old version."""
        ...

    async def update_provisioning_request_status(self, request: ProvisioningRequest) -> ProvisioningRequest:
        """Write the conditions as they are in `request`. Raises Conflict on an old version."""
        ...

    async def update_capacity_buffer_status(self, buffer: CapacityBuffer) -> CapacityBuffer:
        """Write the status as it is in `buffer`. Raises Conflict on an old version."""
        ...

    async def open_gates(self, pod: Pod, gates: Sequence[str], annotations: Mapping[str, str]) -> None:
        """Take these scheduling gates off a pod, and no other, and annotate it, in one write.

        Raises Conflict when it has none of them any more.
        """
        ...

    async def annotate_node_pool(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a pool; None removes one."""
        ...

    async def annotate_pod(
        self, pod: Pod, annotations: Mapping[str, str | None], *, unless_present: Sequence[str] = ()
    ) -> None:
        """Set annotations of a pod; None removes one. Raises Conflict when one of `unless_present` exists already."""
        ...

    async def tolerate(self, pod: Pod, taint: Taint) -> None:
        """Let a pod onto nodes with exactly this taint, for good: the API takes none away. Raises WriteRefused."""
        ...

    async def evict(self, pod: Pod) -> None:
        """Evict by the eviction API. Raises EvictionBlocked while a budget forbids it, WriteRefused if a hook does."""
        ...

    async def delete_pod(self, pod: Pod, grace_s: int) -> None:
        """Delete, giving it `grace_s` to end; for a drain whose deadline has come."""
        ...


class NodeClassStore(Protocol):
    """NodeClasses of the provider's own kind, as documents. A write raises Conflict on an old version."""

    async def read(self, name: str) -> Mapping[str, Any]:
        """The object as it is now. Raises NotFound."""
        ...

    async def mark(
        self,
        node_class: Mapping[str, Any],
        *,
        finalizers: Sequence[str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """Set its finalizers, and annotations beside those it has; gives it as it is then."""
        ...

    async def write_status(self, node_class: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """Put this status in the place of the one it has."""
        ...


class UsageSource(Protocol):
    """What pods and nodes use, and where its history outlives a process."""

    async def read(self) -> tuple[Usage, tuple[str, ...]]:
        """The newest samples, and what cannot be true and was left out. Raises ApiError while no source reports any."""
        ...

    async def checkpoints(self) -> Mapping[str, Mapping[str, str]]:
        """The entries that were written, by shard and key. Raises ApiError."""
        ...

    async def write(self, shard: str, changes: Mapping[str, str | None]) -> None:
        """Set entries of a shard, and remove those that are None; others stay. Raises ApiError, and Conflict."""
        ...


class Recorder(Protocol):
    """Where events for people go."""

    def record(self, occurrence: Occurrence) -> None:
        """Post it, unless an equal one was posted within its own period."""
        ...


class PlanFeed(Protocol):
    """The last snapshots and plans, for the code that shows them."""

    def launching(self, launches: Sequence[Launch]) -> None:
        """Take note of nodes that are about to be bought; their causes have no words yet."""
        ...

    def publish(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """Take note of a decision."""
        ...

    def refuse(self, snapshot: ClusterSnapshot, market: Market, breaches: Sequence[Violation]) -> None:
        """Take note of what of a decision broke a rule and is not carried out, and of the input that led to it."""
        ...
