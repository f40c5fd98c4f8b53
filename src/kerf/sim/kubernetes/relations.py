"""What a pod asks of other pods and of volumes: kube-scheduler's InterPodAffinity and VolumeBinding, required terms.

Kerf plans without them, so these are where its plan and the scheduler differ. Namespace selectors and `matchLabelKeys`
are left out; a claim of a volume is missing, or bound to a volume, and never waits for its provisioner.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kerf.manifests.pods.decode import selector_of
from kerf.model.constraints import Requirements
from kerf.model.pods import Pod
from kerf.sim.kubernetes.filters import POD_AFFINITY, VOLUMES, FilterRefusal, NodePods
from kerf.sim.objects import Json, ObjectLookup

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Relations:
    """What one pod asks of others, and what others ask of it.

    `rooms` are all nodes with their pods, `averse` the pods there that keep others off.
    """

    pod: Pod
    raw: Json
    rooms: Mapping[str, NodePods]
    averse: Mapping[str, Pod]
    api: ObjectLookup

    @property
    def is_any(self) -> bool:
        """Whether anything is asked at all: of most pods nothing is, and every node would be asked."""
        return bool(self.averse or self.pod.spec.claims) or is_related(self.pod)

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod for the sake of other pods or of volumes; None when it can."""
        missing = self.missing_claim()
        if missing:
            return FilterRefusal(VOLUMES, (f'persistentvolumeclaim "{missing}" not found',))
        if any(wanted.unsatisfied_by(room.node.labels) is not None for wanted in self._volumes()):
            return FilterRefusal(VOLUMES, ("node(s) had volume node affinity conflict",))
        if not all(self._has_company(term, room) for term in _terms(self.raw, "podAffinity")):
            return FilterRefusal(POD_AFFINITY, ("node(s) didn't match pod affinity rules",))
        if any(self._meets(term, self.pod, room) for term in _terms(self.raw, "podAntiAffinity")):
            return FilterRefusal(POD_AFFINITY, ("node(s) didn't match pod anti-affinity rules",))
        if any(self._is_unwanted(other, room) for other in self.averse.values()):
            return FilterRefusal(POD_AFFINITY, ("node(s) didn't satisfy existing pods anti-affinity rules",))
        return None

    def missing_claim(self) -> str:
        """A claim of a volume that does not exist; empty when all do."""
        names = self.pod.spec.claims
        return next((n for n in names if self.api.get("PersistentVolumeClaim", self.pod.namespace, n) is None), "")

    def _volumes(self) -> Iterable[Requirements]:
        """What the volumes behind its claims ask of a node: the first term of each, as provisioners write one."""
        for name in self.pod.spec.claims:
            claim = self.api.get("PersistentVolumeClaim", self.pod.namespace, name) or {"spec": {}}
            volume = self.api.get("PersistentVolume", "", claim["spec"].get("volumeName", ""))
            terms = ((volume or {}).get("spec", {}).get("nodeAffinity") or {}).get("required", {})
            for term in terms.get("nodeSelectorTerms", ())[:1]:
                yield selector_of({"matchExpressions": term.get("matchExpressions", ())})

    def _all(self, room: NodePods) -> Iterable[NodePods]:
        """All nodes, this one as it is thought of."""
        yield room
        yield from (other for name, other in self.rooms.items() if name != room.node.name)

    def _has_company(self, term: Json, room: NodePods) -> bool:
        """Whether a pod that the term asks for is in the node's domain; the first of its own kind needs none."""
        if self._meets(term, self.pod, room):
            return True
        everywhere = (other for at in self._all(room) for other in at.pods.values())
        is_first = not any(_is_meant(term, self.pod, other) for other in everywhere)
        return is_first and _is_meant(term, self.pod, self.pod) and term["topologyKey"] in room.node.labels

    def _meets(self, term: Json, asker: Pod, room: NodePods) -> bool:
        """Whether a pod that `asker` means by the term is in the node's domain."""
        return any(
            _is_meant(term, asker, other)
            for at in self._all(room)
            if _is_near(term, at, room)
            for other in at.pods.values()
            if other.key != self.pod.key
        )

    def _is_unwanted(self, other: Pod, room: NodePods) -> bool:
        raw, at = self.api.get("Pod", other.namespace, other.name), self.rooms.get(other.node_name)
        if raw is None or at is None or (at.node.name == room.node.name and other.key not in room.pods):
            return False
        terms = _terms(raw, "podAntiAffinity")
        return any(_is_near(term, at, room) and _is_meant(term, other, self.pod) for term in terms)


def is_related(pod: Pod) -> bool:
    """Whether the pod itself asks anything of other pods."""
    return bool(pod.spec.pod_affinity.required or pod.spec.pod_anti_affinity.required)


def is_averse(pod: Pod) -> bool:
    """Whether the pod may keep others off."""
    return bool(pod.spec.pod_anti_affinity.required)


def _terms(raw: Json, kind: str) -> list[Json]:
    asked = (raw["spec"].get("affinity") or {}).get(kind) or {}
    return list(asked.get(_REQUIRED) or ())


def _is_near(term: Json, one: NodePods, other: NodePods) -> bool:
    """Whether two nodes are in one domain; a node without the label is in none."""
    value = one.node.labels.get(term["topologyKey"])
    return value is not None and value == other.node.labels.get(term["topologyKey"])


def _is_meant(term: Json, asker: Pod, other: Pod) -> bool:
    if term.get("labelSelector") is None or other.namespace not in (term.get("namespaces") or (asker.namespace,)):
        return False
    return selector_of(term["labelSelector"]).unsatisfied_by(other.labels) is None
