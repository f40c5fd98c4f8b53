"""DaemonSets: one pod on every node that fits.

Fitting is about labels and taints alone: a node that is cordoned, not ready or short of memory gets its pod all the
same, which is why a starting node is never quite empty. Each pod asks for its node by name; the scheduler binds it.
"""

from collections.abc import Iterable

from kerf.model.constraints import NO_EXECUTE, Taint, untolerated
from kerf.model.pods import PodSpec
from kerf.model.snapshot import DaemonSet
from kerf.ports import Clock
from kerf.sim.kubernetes.api import DELETED, Change, InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.kubernetes.reconcilers import Key, PodMaker, Queue, Watcher, template_hash
from kerf.sim.kubernetes.statefulsets import REVISION_LABEL
from kerf.sim.objects import (
    Json,
    is_active,
    is_deleting,
    is_ended,
    is_ready,
    labels_of,
    name_of,
)

# What the DaemonSet controller adds to every pod: nodes in these states keep their daemons.
_TOLERATED = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": effect}
    for state, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]


class DaemonSets(Watcher):
    """DaemonSets with RollingUpdate (one pod at a time) or OnDelete."""

    kind = "DaemonSet"

    def __init__(self, api: InMemoryApi, clock: Clock, queue: Queue, pods: PodMaker) -> None:
        super().__init__(api, clock, queue, pods)
        self._seen: dict[str, tuple[object, object]] = {}

    def notice(self, change: Change) -> Iterable[Key]:
        """A node that comes, goes or changes its labels or taints concerns every DaemonSet."""
        if change.obj["kind"] != "Node" or not self._has_changed(change):
            return ()
        return tuple((held["metadata"]["namespace"], name_of(held)) for held in self.api.list("DaemonSet"))

    def _has_changed(self, change: Change) -> bool:
        node = change.obj
        before = self._seen.pop(name_of(node), None)
        if change.type == DELETED:
            return True
        after = (labels_of(node), node.get("spec"))
        self._seen[name_of(node)] = after
        return before != after

    def reconcile(self, obj: Json) -> None:
        """Make pods where they are missing, and take those away that may not stay."""
        nodes = {name_of(node): node for node in self.api.list("Node")}
        prefix = f"{name_of(obj)}-"
        pods = {name_of(pod).removeprefix(prefix): pod for pod in self.controlled(obj)}
        if not is_deleting(obj):
            spec = pod_spec(obj)
            for name, node in nodes.items():
                self._settle(obj, spec, node, pods.get(name))
            self._renew(obj, pods)
        self._report(obj, nodes.values())

    def _settle(self, obj: Json, spec: PodSpec, node: Json, pod: Json | None) -> None:
        if pod is None:
            if fits(spec, node):
                self._make(obj, node)
        elif not is_deleting(pod) and (is_ended(pod) or not fits(spec, node, may_stay=True)):
            self.delete(pod)

    def _make(self, obj: Json, node: Json) -> None:
        labels = {REVISION_LABEL: template_hash(obj["spec"]["template"])}
        pod = self.pods.make(obj, obj["spec"]["template"], f"{name_of(obj)}-{name_of(node)}", labels)
        self.api.create({**pod, "spec": _for_node(pod["spec"], name_of(node))})

    def _renew(self, obj: Json, pods: dict[str, Json]) -> None:
        """Replace one pod of an older template while all others are ready."""
        if (obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
            return
        revision = template_hash(obj["spec"]["template"])
        old = [pod for _, pod in sorted(pods.items()) if labels_of(pod).get(REVISION_LABEL) != revision]
        unready = [pod for pod in old if is_active(pod) and not is_ready(pod)]
        is_busy = any(not is_active(pod) or not is_ready(pod) for pod in pods.values() if pod not in unready)
        for pod in unready or ([] if is_busy else old[:1]):
            self.delete(pod)

    def _report(self, obj: Json, nodes: Iterable[Json]) -> None:
        spec = pod_spec(obj)
        active = [pod for pod in self.controlled(obj) if is_active(pod)]
        ready = sum(1 for pod in active if is_ready(pod))
        self.set_status(
            obj,
            desiredNumberScheduled=sum(1 for node in nodes if fits(spec, node)),
            currentNumberScheduled=len(active),
            numberReady=ready,
            numberAvailable=ready,
        )


def pod_spec(daemon_set: Json) -> PodSpec:
    """The spec of its pods as a model value."""
    value = decoded(daemon_set)
    assert isinstance(value, DaemonSet)
    return value.pod.spec


def _for_node(spec: Json, node: str) -> Json:
    """The spec of the pod for one node: as the real controller does, its name replaces every other node term."""
    affinity = spec.get("affinity") or {}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}},
        "tolerations": [*(spec.get("tolerations") or ()), *_TOLERATED],
    }


def fits(spec: PodSpec, node: Json, *, may_stay: bool = False) -> bool:
    """Whether the node gets such a pod; with `may_stay`, whether one that is there may stay despite NoSchedule."""
    if all(terms.unsatisfied_by(labels_of(node)) is not None for terms in spec.alternatives):
        return False
    taints = [
        Taint(taint["key"], taint.get("value") or "", taint["effect"])
        for taint in node.get("spec", {}).get("taints") or ()
        if not may_stay or taint["effect"] == NO_EXECUTE
    ]
    return untolerated(taints, spec.tolerations) is None
