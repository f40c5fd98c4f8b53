"""The nodes and the pods on them, as kube-scheduler's cache holds them between two attempts.

Most pods ask nothing of other pods and mount nothing; those that do are kept in an index by name, so an attempt
looks at them alone and not at every pod of every node.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kerf.model.nodes import Node
from kerf.model.pods import Container, Pod
from kerf.model.quantities import CPU, MEMORY, MIB, NOTHING, Resources
from kerf.sim.kubernetes.selectors import Labels
from kerf.sim.objects import Json, JsonList, ObjectLookup, labels_of

LEAST_COUNTED = {CPU: 100, MEMORY: 200 * MIB}
"""What a container without a request counts in the scores (kube-scheduler's GetNonzeroRequests)."""
_MOUNTED = ("persistentVolumeClaim", "ephemeral", "gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")


@dataclass(slots=True)
class NodePods:
    """A node and the pods that count on it; `used` is their sum, `counted` the sum that the scores count.

    `changes` is how often node or pods have changed in what any filter looks at.
    """

    node: Node
    pods: dict[str, Pod] = field(default_factory=dict)
    used: Resources = NOTHING
    counted: Resources = NOTHING
    changes: int = 0
    _listed: tuple[Pod, ...] | None = None

    def listed(self) -> tuple[Pod, ...]:
        """The pods; the same tuple until one of them changes."""
        if self._listed is None:
            self._listed = tuple(self.pods.values())
        return self._listed

    @property
    def labels(self) -> Labels:
        """Those of the node, as they are written."""
        return self.node.labels

    def put(self, pod: Pod) -> None:
        """Count a pod, in place of its earlier form."""
        held = self.pods.get(pod.key)
        self._listed = None
        if held is not None and held.spec is pod.spec:
            # Only its state has changed, as that of every pod does several times.
            self.pods[pod.key] = pod
            return
        self.drop(pod.key)
        self.changes += 1
        self.pods[pod.key] = pod
        self.used = self.used + pod.spec.requests
        self.counted = self.counted + counted(pod)

    def drop(self, key: str) -> None:
        """Stop counting a pod; nothing when it was not counted."""
        held = self.pods.pop(key, None)
        if held is not None:
            self.changes += 1
            self._listed = None
            self.used = self.used - held.spec.requests
            self.counted = self.counted - counted(held)

    def with_pods(self, others: Iterator[Pod]) -> "NodePods":
        """It as it would be with more pods; nothing of it changes."""
        made = NodePods(self.node, dict(self.pods), self.used, self.counted)
        for other in others:
            made.put(other)
        return made


def counted(pod: Pod) -> Resources:
    """What the scores count of a pod."""

    def of(container: Container, name: str) -> int:
        return container.requests.get(name) or LEAST_COUNTED[name]

    spec = pod.spec
    return Resources(
        (name, max([sum(of(c, name) for c in spec.containers), *(of(c, name) for c in spec.init_containers)]))
        for name in LEAST_COUNTED
    )


def has_pod_terms(raw: Json) -> bool:
    """Whether a pod's document asks anything of other pods by affinity."""
    affinity = raw["spec"].get("affinity") or {}
    return bool(affinity.get("podAffinity") or affinity.get("podAntiAffinity"))


def mounts_of(raw: Json) -> JsonList:
    """The volumes of a pod's document that some filter looks at."""
    volumes: JsonList = raw["spec"].get("volumes") or []
    return [volume for volume in volumes if not volume.keys().isdisjoint(_MOUNTED)]


class Rooms:
    """All nodes by name, with their pods. `api` answers for what a filter has to look up beside them."""

    def __init__(self, api: ObjectLookup) -> None:
        self.api = api
        self.by_name: dict[str, NodePods] = {}
        self.related: dict[str, Json] = {}
        self.mounts: dict[str, JsonList] = {}
        self._users: dict[tuple[str, str], set[str]] = {}
        self._place: dict[str, str] = {}
        self._homeless: dict[str, dict[str, Pod]] = {}

    def __len__(self) -> int:
        return len(self.by_name)

    def sorted(self) -> list[NodePods]:
        """By name."""
        return [room for _, room in sorted(self.by_name.items())]

    def set_node(self, node: Node) -> Node | None:
        """A node is new or has changed; how it was before, None for a new one."""
        room = self.by_name.get(node.name)
        if room is not None:
            old, room.node = room.node, node
            room.changes += 1
            return old
        room = self.by_name[node.name] = NodePods(node)
        for pod in self._homeless.pop(node.name, {}).values():
            room.put(pod)
        return None

    def drop_node(self, name: str) -> NodePods | None:
        """A node is gone, which its pods survive here; None where it was not known."""
        room = self.by_name.pop(name, None)
        if room is not None and room.pods:
            self._homeless[name] = dict(room.pods)
        return room

    def place_of(self, key: str) -> str:
        """The node of a pod; empty for one that is on none."""
        return self._place.get(key, "")

    def pod(self, key: str) -> Pod | None:
        """A pod that is on a node; None for another."""
        name = self._place.get(key, "")
        room = self.by_name.get(name)
        return self._homeless.get(name, {}).get(key) if room is None else room.pods.get(key)

    def put(self, pod: Pod, raw: Json) -> None:
        """A pod is on its node, or has changed there."""
        room = self.by_name.get(pod.node_name)
        if room is not None and self._is_plain(pod, raw) and pod.key in room.pods:
            room.put(pod)
            return
        self.drop(pod.key)
        self._place[pod.key] = pod.node_name
        if has_pod_terms(raw):
            self.related[pod.key] = raw
        mounts = mounts_of(raw)
        if mounts:
            self.mounts[pod.key] = mounts
            for claim in claim_names(mounts):
                self._users.setdefault((pod.namespace, claim), set()).add(pod.key)
        room = self.by_name.get(pod.node_name)
        if room is not None:
            room.put(pod)
        else:
            self._homeless.setdefault(pod.node_name, {})[pod.key] = pod

    def _is_plain(self, pod: Pod, raw: Json) -> bool:
        """Whether nothing of the pod but its size concerns other pods and volumes, now or before."""
        return not (pod.key in self.related or pod.key in self.mounts or has_pod_terms(raw) or mounts_of(raw))

    def drop(self, key: str) -> bool:
        """A pod is on no node any more; whether it was on one."""
        name = self._place.pop(key, None)
        if name is None:
            return False
        self.related.pop(key, None)
        namespace = key.partition("/")[0]
        for claim in claim_names(self.mounts.pop(key, [])):
            self._users.get((namespace, claim), set()).discard(key)
        self._homeless.get(name, {}).pop(key, None)
        room = self.by_name.get(name)
        if room is not None:
            room.drop(key)
        return True

    def users(self, namespace: str, claim: str) -> frozenset[str]:
        """The pods on nodes that mount a claim."""
        return frozenset(self._users.get((namespace, claim), ()))

    def related_pods(self) -> Iterator[tuple[Pod, Json, NodePods]]:
        """The pods that ask something of other pods, with their documents and their nodes."""
        for key, raw in self.related.items():
            room = self.by_name.get(self._place[key])
            if room is not None and key in room.pods:
                yield room.pods[key], raw, room

    def labels_of_namespace(self, name: str) -> Mapping[str, str]:
        """Those of a Namespace; each has its name as a label, also where the object was never made."""
        found = self.api.get("Namespace", "", name)
        own = {"kubernetes.io/metadata.name": name}
        return own if found is None else {**labels_of(found), **own}


def claim_names(mounts: JsonList) -> list[str]:
    """The claims that volumes name."""
    return [volume["persistentVolumeClaim"]["claimName"] for volume in mounts if volume.get("persistentVolumeClaim")]
