"""What the in-memory scheduler says of a cluster to which pods come one by one."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.sim.clock import VirtualClock, VirtualLoop
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.attempts import prepared, verdict
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.filters import Attempt, refusals
from kerf.sim.kubernetes.rooms import Rooms
from tests.differential.clusters import Json, shared_objects

START_S = 1_767_596_400


@dataclass(frozen=True)
class Answer:
    """The nodes that can take a pod, what it is told where there is none, and by plugin the nodes it alone refused."""

    feasible: frozenset[str]
    message: str
    alone: Counter[str]


class Memory:
    """The in-memory API and what its scheduler knows of it. Close it at the end."""

    def __init__(self, objects: Iterable[Json]) -> None:
        self._loop = VirtualLoop()
        self.api = InMemoryApi(VirtualClock(self._loop, START_S))
        self._rooms = Rooms(self.api)
        for obj in (*shared_objects(), *objects):
            stored = self.api.create(obj)
            value = decoded(stored)
            if isinstance(value, Node):
                self._rooms.set_node(value)
            elif isinstance(value, Pod):
                self._rooms.put(value, stored)

    def close(self) -> None:
        """Let its loop go."""
        self._loop.close()

    def ask(self, pod: Json) -> Answer:
        """Create the pod, and say which nodes can take it."""
        raw = self.api.create(pod)
        value = decoded(raw)
        assert isinstance(value, Pod)
        attempt = prepared(value, raw, self._rooms)
        found = verdict(attempt, self._rooms, {})
        alone: Counter[str] = Counter()
        if isinstance(attempt, Attempt):
            by_node = ({refused.plugin for refused in refusals(attempt, room)} for room in self._rooms.sorted())
            alone.update(plugin for plugins in by_node if len(plugins) == 1 for plugin in plugins)
        names = frozenset(room.node.name for room in found.feasible)
        return Answer(names, "" if names else found.message(len(self._rooms)), alone)

    def bind(self, namespace: str, name: str, node: str) -> None:
        """The pod comes to the node."""
        self.api.bind(namespace, name, node)
        raw = self.api.get("Pod", namespace, name)
        assert raw is not None
        value = decoded(raw)
        assert isinstance(value, Pod)
        self._rooms.put(value, raw)

    def drop(self, namespace: str, name: str) -> None:
        """The pod goes."""
        self._rooms.drop(f"{namespace}/{name}")
        self.api.delete("Pod", namespace, name, grace_s=0)

    def pod(self, namespace: str, name: str) -> Json:
        """One that is there, as the API has it."""
        found = self.api.get("Pod", namespace, name)
        assert found is not None
        return found

    def objects(self) -> list[Json]:
        """All that is there, as the API has it."""
        return [obj for kind in self.api.kinds() for obj in self.api.list(kind)]
