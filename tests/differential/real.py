"""The same cluster on a real API server, with the real kube-scheduler."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.differential.clusters import NAMESPACES, ONLY_ASKED, Json, shared_objects
from tools.controlplane.process import ControlPlaneError
from tools.controlplane.recording import Answer, RealScheduler

_COLLECTIONS = (
    *(f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0" for namespace in NAMESPACES),
    *(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims" for namespace in NAMESPACES),
    "/api/v1/persistentvolumes",
    "/api/v1/nodes",
    "/apis/storage.k8s.io/v1/csinodes",
)
_PROBE_WITHIN_S = 20.0
_LATE_S = 0.3


class RealCluster:
    """A random cluster on a server that keeps only what all clusters share."""

    def __init__(self, scheduler: RealScheduler) -> None:
        self._scheduler, self._probes = scheduler, 0

    def share(self) -> None:
        """Create what all clusters share, once."""
        for obj in shared_objects():
            if obj["metadata"]["name"] != "default":
                self._scheduler.create(obj)

    @contextmanager
    def filled(self, objects: Iterable[Json]) -> Iterator["RealCluster"]:
        """With these objects, which the scheduler knows; they go afterwards. Pods are bound as they say."""
        nodes, given = [], list(objects)
        try:
            for obj in (each for each in given if each["kind"] != "Pod"):
                self._scheduler.create(obj)
                if obj["kind"] == "PersistentVolume":
                    # A server sets the status of a new volume itself.
                    path = f"/api/v1/persistentvolumes/{obj['metadata']['name']}/status"
                    patch = {"status": obj["status"]}
                    self._scheduler.send("PATCH", path, patch, "application/merge-patch+json")
                elif obj["kind"] == "Node":
                    nodes.append(obj["metadata"]["name"])
            self._await(frozenset(nodes))
            for obj in (each for each in given if each["kind"] == "Pod"):
                self._scheduler.create(obj)
            yield self
        finally:
            for path in _COLLECTIONS:
                self._scheduler.send("DELETE", path)

    def begin(self, pod: Json) -> Json:
        """Create a pod; the server's form of it."""
        made: Json = self._scheduler.create(pod)
        return made

    def end(self, made: Json) -> Answer:
        """What the scheduler says of it; it stays where it is bound."""
        return self._scheduler.answer(made)

    def ask_again(self, pod: Json, answer: Answer) -> Answer:
        """The same, after the pod was taken away: a watch may have been late the first time."""
        if answer.node:
            self._scheduler.delete(pod["metadata"]["namespace"], pod["metadata"]["name"])
        time.sleep(_LATE_S)
        return self._scheduler.ask(pod)

    def _await(self, nodes: frozenset[str]) -> None:
        """Until the scheduler knows these nodes and no others: it watches each kind by itself."""
        container = {"name": "main", "image": "none"}
        spec = {"containers": [container], "tolerations": [{"operator": "Exists"}], "priorityClassName": "meek"}
        deadline = time.monotonic() + _PROBE_WITHIN_S
        while True:
            self._probes += 1
            labels = {"app": "probe", ONLY_ASKED: "true"}
            metadata = {"name": f"probe-{self._probes}", "namespace": "default", "labels": labels}
            asked = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            found = self._scheduler.ask(asked).feasible
            if found == nodes:
                return
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"the scheduler: expected {len(nodes)} nodes, knows {len(found)}")
            time.sleep(0.02)
