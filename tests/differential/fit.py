"""What Kerf's own fit says of the same cluster: the nodes of a trial that take the pod.

A node with a cordon is never a target of Kerf's, whatever a pod tolerates; those are left out of the comparison.
"""

from collections.abc import Iterable
from dataclasses import replace

from kerf.engine.mounting import mounted
from kerf.engine.place.fit import Placed
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial
from kerf.engine.place.volumes import Volumes
from kerf.manifests.decode import decode_object
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, Upserted
from kerf.sim.kubernetes.decoding import decoded
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_market
from tests.differential.clusters import Json


class Fit:
    """Kerf's state of a cluster, to which objects come as a watch reports them."""

    def __init__(self, objects: Iterable[Json]) -> None:
        self._state = ClusterState()
        for obj in objects:
            self.apply(obj)

    def apply(self, obj: Json) -> None:
        """An object is new or has changed; kinds that Kerf does not follow are passed over."""
        value = decoded(obj)
        if value is not None:
            self._state.apply(Upserted(value))

    def feasible(self, raw: Json) -> frozenset[str]:
        """The nodes that take the pod, by name."""
        pod = decode_object(raw)
        assert isinstance(pod, Pod)
        return takers(self._state.snapshot(NOON_S), pod)


def takers(snapshot: ClusterSnapshot, pod: Pod) -> frozenset[str]:
    """The nodes of a snapshot that take the pod, by name."""
    # Kerf counts who uses a volume before it asks: the pod is one of them.
    snapshot = replace(snapshot, pending=(pod,))
    volumes = Volumes(snapshot)
    _, pods = mounted([pod], volumes)
    trial = Trial(snapshot, a_market(), volumes=volumes)
    found = (
        spot.cluster_node.name
        for index, spot in enumerate(trial.spots)
        for each in pods
        if isinstance(trial.fit(index, Shape((each,))), Placed)
    )
    return frozenset(found)


def feasible(objects: Iterable[Json], pod: Json) -> frozenset[str]:
    """The nodes of a cluster that take the pod, by name."""
    return Fit(objects).feasible(pod)
