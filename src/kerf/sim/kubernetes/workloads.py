"""The controller manager of the embedded cluster: everything that makes pods, counts them, or clears up after nodes.

Each kind has its own module; here they are put together, informed of what has changed, and given their turn.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from kerf.ports import Clock
from kerf.sim.kubernetes.api import DELETED, Change, InMemoryApi
from kerf.sim.kubernetes.budgets import Covering, count_budget
from kerf.sim.kubernetes.cronjobs import CronJobs
from kerf.sim.kubernetes.daemonsets import DaemonSets
from kerf.sim.kubernetes.deployments import Deployments
from kerf.sim.kubernetes.jobs import Jobs
from kerf.sim.kubernetes.jobsets import JobSets
from kerf.sim.kubernetes.provisioner import EphemeralClaims, VolumeClaims
from kerf.sim.kubernetes.quotas import Quotas, within_quotas
from kerf.sim.kubernetes.reconcilers import Key, PodMaker, Queue, Reconciler, Watcher
from kerf.sim.kubernetes.replicas import ReplicaSets
from kerf.sim.kubernetes.schedules import check_schedule
from kerf.sim.kubernetes.statefulsets import StatefulSets
from kerf.sim.objects import Json, JsonList, controller_of, key_of, name_of, node_of, uid_of, with_condition

QUARANTINE_S = 40
"""How long the pod collector waits before it believes that a node is gone for good, as the real one."""


class DisruptionBudgets(Watcher):
    """Keeps the status of PodDisruptionBudgets, from which clients read whether an eviction has a chance."""

    kind = "PodDisruptionBudget"

    def __init__(self, api: InMemoryApi, clock: Clock, queue: Queue, pods: PodMaker) -> None:
        super().__init__(api, clock, queue, pods)
        self._covering = Covering(api)

    def notice(self, change: Change) -> Iterable[Key]:
        """Pods change what budgets that select them allow, and so do the replicas of what makes such pods."""
        obj = change.obj
        if obj["kind"] not in ("Pod", "ReplicaSet", "Deployment", "StatefulSet"):
            return ()
        namespace, pod = obj["metadata"]["namespace"], obj
        if obj["kind"] != "Pod":
            labels = obj["spec"]["template"].get("metadata") or {}
            pod = {"metadata": {**labels, "namespace": namespace}}
        return [(namespace, name_of(held)) for held in self._covering.of(pod)]

    def reconcile(self, obj: Json) -> None:
        """Count again."""
        count = count_budget(self.api, obj)
        self.set_status(
            obj,
            disruptionsAllowed=count.allowed,
            currentHealthy=count.healthy,
            desiredHealthy=count.desired,
            expectedPods=count.expected,
        )


class LostPods(Watcher):
    """The pod collector: pods on a node that is gone are removed by force, since no kubelet will ever end them."""

    kind = "Pod"
    _lost: ClassVar[Json] = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}

    def notice(self, change: Change) -> Iterable[Key]:
        """The pods of a node that has just gone, and a pod that was bound to one that is not there."""
        found: JsonList = []
        if change.obj["kind"] == "Pod" and change.type != DELETED:
            found = [change.obj] if self._is_lost(change.obj) else []
        elif change.obj["kind"] == "Node" and change.type == DELETED:
            found = [pod for pod in self.api.list("Pod") if node_of(pod) == name_of(change.obj)]
        return [(pod["metadata"]["namespace"], name_of(pod)) for pod in found]

    def _is_lost(self, pod: Json) -> bool:
        return bool(node_of(pod)) and self.api.get("Node", "", node_of(pod)) is None

    def reconcile(self, obj: Json) -> None:
        """Remove the pod when its node has been missing for the whole quarantine."""
        if not self._is_lost(obj):
            return
        uid = uid_of(obj)
        self.clock.call_at(self.clock.now_s() + QUARANTINE_S, lambda: self._remove(key_of(obj), uid))

    def _remove(self, key: tuple[str, str, str], uid: str) -> None:
        pod = self.api.get(*key)
        if pod is None or uid_of(pod) != uid or not self._is_lost(pod):
            return
        conditions = with_condition(pod, self._lost, self.now_text())
        self.api.patch(*key, {"status": {"conditions": conditions}}, subresource="status")
        self.api.delete(*key, grace_s=0)


class Workloads:
    """The workload controllers; `start` once.

    `on_refusal` gets the kind and key of the object whose controller was refused a write, and the API's words; again
    when these change.
    """

    _KINDS: ClassVar[tuple[type[Reconciler], ...]] = (
        CronJobs,
        JobSets,
        Jobs,
        Deployments,
        ReplicaSets,
        StatefulSets,
        DaemonSets,
        DisruptionBudgets,
        Quotas,
        VolumeClaims,
    )

    def __init__(
        self, api: InMemoryApi, clock: Clock, on_refusal: Callable[[str, Key, str], None] = lambda *_: None
    ) -> None:
        self._api, self._clock = api, clock
        self._queue = Queue(clock, self._reconcile, on_refusal)
        pods = PodMaker(api)
        every = [of_kind(api, clock, self._queue, pods) for of_kind in self._KINDS]
        self._reconcilers = {reconciler.kind: reconciler for reconciler in every}
        self._of_pods = [of_pods(api, clock, self._queue, pods) for of_pods in (LostPods, EphemeralClaims)]
        self._watchers = [*(held for held in self._reconcilers.values() if isinstance(held, Watcher)), *self._of_pods]

    def is_refused(self, obj: Json) -> bool:
        """Whether the API has refused what its controller last wanted, such as a pod beyond a quota."""
        return (obj["kind"], _key(obj)) in self._queue.refused

    def start(self) -> None:
        """Look at everything there is, then at everything that changes."""
        self._api.admission += [check_schedule, within_quotas(self._api)]
        self._api.subscribe(self._on_event)
        for kind in self._reconcilers:
            for obj in self._api.list(kind):
                self._queue.add(kind, _key(obj))

    def _on_event(self, type_: str, obj: Json) -> None:
        if obj["kind"] in self._reconcilers:
            self._queue.add(obj["kind"], _key(obj))
        owner = controller_of(obj)
        if owner is not None and owner["kind"] in self._reconcilers:
            self._queue.add(owner["kind"], (obj["metadata"]["namespace"], owner["name"]))
        change = Change(self._clock.now_s(), type_, obj)
        for watcher in self._watchers:
            for key in watcher.notice(change):
                self._queue.add(watcher.kind, key)

    def _reconcile(self, kind: str, key: Key) -> None:
        obj = self._api.get(kind, *key)
        if obj is None:
            return
        for reconciler in self._of_pods if kind == "Pod" else (self._reconcilers[kind],):
            reconciler.reconcile(obj)


def _key(obj: Json) -> Key:
    _, namespace, name = key_of(obj)
    return namespace, name
