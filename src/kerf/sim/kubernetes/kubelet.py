"""Stand-in for everything that runs on nodes: machines that join as nodes, and pods that start, end and go.

A node becomes usable in steps that different programs take at different times (boot, join, ready, device plugin), and
it disappears in another order than it came: the machine first, then the Node object once all its finalizers are gone.
Kerf's controllers meet every one of these half-way states here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kerf.cloudprovider import Instance
from kerf.clouds.device_plugins import NEVER_JOINS
from kerf.clouds.fake import ENDED, RUNNING, CloudEvent, FakeCloud
from kerf.model.constraints import ALIASES, HOSTNAME, NODE_POOL
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.nodeclaim import TERMINATION_FINALIZER, UNREGISTERED_TAINT
from kerf.model.quantities import Resources, quantity_text
from kerf.model.times import duration_s, instant_text
from kerf.ports import Clock
from kerf.sharing.hami.records import BIND_PHASE, TO_ALLOCATE
from kerf.sim.kubernetes.api import DELETED, InMemoryApi
from kerf.sim.kubernetes.device_plugins import DevicePlugins
from kerf.sim.kubernetes.node_lifecycle import NodeLifecycle
from kerf.sim.objects import (
    Json,
    annotations_of,
    condition_of,
    is_deleting,
    key_of,
    labels_of,
    name_of,
    node_of,
    phase_of,
    uid_of,
    with_condition,
)

RUN_FOR = "kerf.dev/run-for"
"""Annotation of a Job's pod: how long its containers run before they succeed."""

_START_S, _INIT_S, _STOP_S, _AGENT_S = 1, 5, 2, 5


@dataclass(frozen=True, slots=True)
class NodeLatencies:
    """Seconds from a running machine to its Node, from there to Ready, and from the end of
    `karpenter.sh/unregistered` to registered cards."""

    register_s: float = 35
    ready_s: float = 5
    devices_ready_s: float = 50


class Kubelets:
    """The kubelet of every node, and with them what follows nodes in the controller manager."""

    def __init__(
        self, api: InMemoryApi, clock: Clock, cloud: FakeCloud, plugins: DevicePlugins, latencies: NodeLatencies
    ) -> None:
        self._api, self._clock, self._cloud, self._plugins, self._latencies = api, clock, cloud, plugins, latencies
        self._joined = 0
        self._node_of: dict[str, str] = {}
        self._claim_of: dict[str, str] = {}
        self._dead_nodes: set[str] = set()
        self._silent: set[str] = set()
        self._pods_by_node: dict[str, dict[tuple[str, str], str]] = {}
        self._timers: set[tuple[str, str]] = set()

    def start(self) -> None:
        """Watch cloud and API from now on."""
        NodeLifecycle(self._api, self._clock).start()
        self._cloud.subscribe(self._on_cloud)
        self._api.subscribe(self._on_event)

    # Machines and nodes.

    def _on_cloud(self, event: CloudEvent) -> None:
        if event.instance is None:
            return
        instance = event.instance
        if event.what == RUNNING:
            self._after(self._latencies.register_s, lambda: self._join(instance))
        elif event.what == ENDED:
            # Asked for in a later turn, so a cloud call never changes the API in the middle of a caller's step.
            self._after(0, lambda: self._machine_gone(instance.provider_id))

    def _join(self, instance: Instance) -> None:
        pool = self._pool_of(instance)
        if self._cloud.is_terminating(instance.provider_id) or self._plugins.takes(NEVER_JOINS, pool) is not None:
            return
        self._joined += 1
        name = f"ip-10-0-{self._joined // 256}-{self._joined % 256}"
        self._node_of[instance.provider_id] = name
        self._claim_of[name] = instance.claim_name
        self._plugins.install(name, instance)
        self._api.create(_node(name, instance, self._now_text()))
        self._after(self._latencies.ready_s, lambda: self._ready(name))

    def _pool_of(self, instance: Instance) -> str:
        claim = self._api.get("NodeClaim", "", instance.claim_name)
        return "" if claim is None else labels_of(claim).get(NODE_POOL, "")

    def _ready(self, name: str) -> None:
        if name in self._dead_nodes or self._api.get("Node", "", name) is None:
            return
        self._set_ready(name, "True", "KubeletReady", "kubelet is posting ready status")

    def _set_ready(self, name: str, status: str, reason: str, message: str) -> None:
        node = self._api.get("Node", "", name)
        if node is not None:
            ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
            conditions = with_condition(node, ready, self._now_text())
            self._api.patch("Node", "", name, {"status": {"conditions": conditions}}, subresource="status")

    def _machine_gone(self, provider_id: str) -> None:
        name = self._node_of.pop(provider_id, None)
        if name is None:
            return
        self._dead_nodes.add(name)
        self._plugins.remove(name)
        self._drop_pods(name)
        node = self._api.get("Node", "", name)
        if node is None:
            return
        self._set_ready(name, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        if TERMINATION_FINALIZER not in (node["metadata"].get("finalizers") or ()):
            self._api.delete("Node", "", name)

    def _startup_taints(self, node: Json) -> list[tuple[str, str]]:
        """The startup taints that a node still has, by key and effect."""
        claim = self._api.get("NodeClaim", "", self._claim_of.get(name_of(node), ""))
        startup = {_identity(taint) for taint in (claim or {"spec": {}})["spec"].get("startupTaints") or ()}
        return [found for taint in node["spec"].get("taints") or () if (found := _identity(taint)) in startup]

    def _end_startup(self, name: str) -> None:
        """What the agents do for which startup taints keep pods off."""
        node = self._api.get("Node", "", name)
        if node is not None:
            gone = self._startup_taints(node)
            kept = [taint for taint in node["spec"].get("taints", ()) if _identity(taint) not in gone]
            self._api.patch("Node", "", name, {"spec": {"taints": kept or None}})

    # Pods.

    def _on_event(self, what: str, obj: Json) -> None:
        if obj["kind"] == "Pod":
            self._on_pod(what, obj)
        elif obj["kind"] == "Node" and what != DELETED:
            self._on_node(obj)

    def _on_node(self, node: Json) -> None:
        name, was_silent = name_of(node), name_of(node) in self._silent
        self._silent.discard(name)
        if (condition_of(node, "Ready") or {}).get("status") == "Unknown":
            self._silent.add(name)
        elif was_silent:
            pods = [self._live_pod(key, uid) for key, uid in self._pods_by_node.get(name, {}).items()]
            for pod in pods:
                if pod is not None:
                    self._act_on(pod)
        if self._startup_taints(node):
            self._once("startup", uid_of(node), _AGENT_S, lambda: self._end_startup(name))

    def _on_pod(self, type_: str, pod: Json) -> None:
        _, namespace, name = key_of(pod)
        if type_ == DELETED:
            self._pods_by_node.get(node_of(pod), {}).pop((namespace, name), None)
            self._timers -= {(what, uid_of(pod)) for what in ("start", "stop", "end")}
            return
        if node_of(pod):
            self._pods_by_node.setdefault(node_of(pod), {})[namespace, name] = uid_of(pod)
        if node_of(pod) not in self._silent:
            self._act_on(pod)

    def _act_on(self, pod: Json) -> None:
        """What the kubelet of a node that is heard of does for its pod."""
        _, *rest = key_of(pod)
        key, uid, node = (rest[0], rest[1]), uid_of(pod), node_of(pod)
        if is_deleting(pod):
            grace_s = pod["metadata"].get("deletionGracePeriodSeconds") or 0
            self._once("stop", uid, min(grace_s, _STOP_S), lambda: self._remove(key, uid))
        elif node and node not in self._dead_nodes:
            self._run(key, uid, pod)

    def _run(self, key: tuple[str, str], uid: str, pod: Json) -> None:
        if phase_of(pod) == "Pending":
            initialises = any(c.get("restartPolicy") != "Always" for c in pod["spec"].get("initContainers") or ())
            self._once("start", uid, _START_S + (_INIT_S if initialises else 0), lambda: self._started(key, uid))
        run_for = annotations_of(pod).get(RUN_FOR)
        if phase_of(pod) == "Running" and run_for and pod["spec"].get("restartPolicy") != "Always":
            self._once("end", uid, duration_s(run_for) or 0, lambda: self._succeeded(key, uid))

    def _started(self, key: tuple[str, str], uid: str) -> None:
        pod = self._live_pod(key, uid)
        if pod is None or is_deleting(pod):
            return
        now = self._now_text()
        if annotations_of(pod).get(BIND_PHASE) == "allocating":
            allocated = {BIND_PHASE: "success", TO_ALLOCATE: ""}
            pod = self._api.patch("Pod", *key, {"metadata": {"annotations": allocated}})
        running = {"ready": True, "started": True, "restartCount": 0, "state": {"running": {"startedAt": now}}}
        containers = [{"name": container["name"], **running} for container in pod["spec"]["containers"]]
        status = {"phase": "Running", "startTime": now, "containerStatuses": containers}
        status |= self._conditions(pod, ("Initialized", "ContainersReady", "Ready"), "True")
        self._api.patch("Pod", *key, {"status": status}, subresource="status")

    def _succeeded(self, key: tuple[str, str], uid: str) -> None:
        pod = self._live_pod(key, uid)
        if pod is None or is_deleting(pod):
            return
        status = {"phase": "Succeeded"} | self._conditions(pod, ("ContainersReady", "Ready"), "False")
        self._api.patch("Pod", *key, {"status": status}, subresource="status")

    def _conditions(self, pod: Json, names: tuple[str, ...], status: str) -> Json:
        now = self._now_text()
        for name in names:
            conditions = with_condition(pod, {"type": name, "status": status}, now)
            pod = {**pod, "status": {**pod.get("status", {}), "conditions": conditions}}
        return {"conditions": pod["status"]["conditions"]}

    def _remove(self, key: tuple[str, str], uid: str) -> None:
        if self._live_pod(key, uid) is not None:
            self._api.remove_pod(*key)

    def _drop_pods(self, node: str) -> None:
        """The pods of a machine that is gone end with it; nothing is left to end them gracefully."""
        for key, uid in sorted(self._pods_by_node.pop(node, {}).items()):
            if self._live_pod(key, uid) is not None:
                self._api.delete("Pod", *key, grace_s=0)
                self._remove(key, uid)

    def _live_pod(self, key: tuple[str, str], uid: str) -> Json | None:
        pod = self._api.get("Pod", *key)
        return pod if pod is not None and uid_of(pod) == uid else None

    # Time.

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._clock.call_at(self._clock.now_s() + seconds, action)

    def _once(self, what: str, uid: str, seconds: float, action: Callable[[], None]) -> None:
        if (what, uid) not in self._timers:
            self._timers.add((what, uid))
            self._after(seconds, action)

    def _now_text(self) -> str:
        return instant_text(self._clock.now_s())


def _identity(taint: Json) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def _node(name: str, instance: Instance, now: str) -> Json:
    """The Node as its kubelet registers it: without GPUs, which the device plugin adds."""
    taints = [{"key": UNREGISTERED_TAINT.key, "effect": UNREGISTERED_TAINT.effect}]
    labels = dict(sorted(instance.labels.items()))
    # Cloud and node controllers keep the old spellings beside the new ones (cloud-provider, `labelReconcileInfo`).
    olds = {old: labels[new] for old, new in ALIASES.items() if new in labels}
    not_ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": now}
    status = {
        "capacity": _shown(instance.capacity),
        "allocatable": _shown(instance.allocatable),
        "conditions": [not_ready],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **olds, HOSTNAME: name}},
        "spec": {"providerID": instance.provider_id, "taints": taints},
        "status": status,
    }


def _shown(resources: Resources) -> dict[str, str]:
    return {name: quantity_text(name, n) for name, n in sorted(resources.items()) if name != NVIDIA_GPU}
