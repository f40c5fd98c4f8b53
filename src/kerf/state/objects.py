"""The objects of the cluster by kind and name, as last reported."""

from collections.abc import Mapping
from typing import Any, TypeVar

from kerf.model.capacitybuffers import CapacityBuffer, Scalable
from kerf.model.cronjobs import CronJob
from kerf.model.groups import CoschedulingGroup, NativeWorkload, PodGroup, VolcanoGroup
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDisruptionBudget
from kerf.model.provisioningrequests import ProvisioningRequest
from kerf.model.snapshot import NodeClass, Watched
from kerf.model.windows import CapacityWindow
from kerf.state.shelves import Shelf

_Value = TypeVar("_Value")


class Objects:
    """What there is of each kind; all of one kind in the order of their keys."""

    def __init__(self) -> None:
        self._shelves: dict[str, Shelf[Any]] = {}

    def _shelf(self, kind: str) -> Shelf[Any]:
        return self._shelves.setdefault(kind, Shelf())

    def find(self, kind: str, key: str) -> Watched | None:
        """The object of that kind and `namespace/name`; None when there is none."""
        found: Watched | None = self._shelf(kind).held.get(key)
        return found

    def _all(self, kind: type[_Value]) -> tuple[_Value, ...]:
        """All objects of a class, by key."""
        return self._shelf(kind.__name__).values()

    def _named(self, kind: type[_Value]) -> Mapping[str, _Value]:
        """All objects of a class by key, in that order; the same mapping until one of them changes."""
        return self._shelf(kind.__name__).by_key()

    def _found(self, kind: type[_Value], key: str) -> _Value | None:
        found: _Value | None = self._shelf(kind.__name__).held.get(key)
        return found

    def pods(self) -> tuple[Pod, ...]:
        """All pods, by key. Linear in them after each change: `pending` and `pods_on` are what a decision needs."""
        return self._all(Pod)

    def pod(self, key: str) -> Pod | None:
        """The pod of that `namespace/name`; None when there is none."""
        return self._found(Pod, key)

    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """All PodDisruptionBudgets, by key; the same tuple until one of them changes."""
        return self._all(PodDisruptionBudget)

    def windows(self) -> tuple[CapacityWindow, ...]:
        """All CapacityWindows, by name."""
        return self._all(CapacityWindow)

    def window(self, name: str) -> CapacityWindow | None:
        """The CapacityWindow of that name; None when there is none."""
        return self._found(CapacityWindow, name)

    def cron_jobs(self) -> tuple[CronJob, ...]:
        """All CronJobs, by key."""
        return self._all(CronJob)

    def provisioning_requests(self) -> tuple[ProvisioningRequest, ...]:
        """All ProvisioningRequests, by key; also those that are another's."""
        return self._all(ProvisioningRequest)

    def capacity_buffers(self) -> tuple[CapacityBuffer, ...]:
        """All CapacityBuffers, by key; also those that are another's."""
        return self._all(CapacityBuffer)

    def scalables(self) -> tuple[Scalable, ...]:
        """What buffers name to be scaled, as it was last asked for, by key."""
        return self._all(Scalable)

    def pod_groups(self) -> tuple[PodGroup, ...]:
        """All PodGroups, those of the coscheduling plugin first, then native Workloads, by key."""
        return (*self._all(CoschedulingGroup), *self._all(VolcanoGroup), *self._all(NativeWorkload))

    def claims(self) -> tuple[NodeClaim, ...]:
        """All claims, by name."""
        return self._all(NodeClaim)

    def claim(self, name: str) -> NodeClaim | None:
        """The claim of that name; None when there is none."""
        return self._found(NodeClaim, name)

    def pool(self, name: str) -> NodePool | None:
        """The pool of that name; None when there is none."""
        return self._found(NodePool, name)

    def pools(self) -> tuple[NodePool, ...]:
        """All pools, by name."""
        return self._all(NodePool)

    def node_classes(self) -> tuple[NodeClass, ...]:
        """All NodeClasses, by name."""
        return self._all(NodeClass)

    def nodes(self) -> tuple[Node, ...]:
        """All node objects, by name."""
        return self._all(Node)

    def node(self, name: str) -> Node | None:
        """The node object of that name; None when there is none."""
        return self._found(Node, name)
