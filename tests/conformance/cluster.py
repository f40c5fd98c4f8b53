"""A cluster as the rules of `cluster_rules` see it, whichever it is: objects as JSON, Kerf's reader and writer, time.

The loop is the cluster's own: in the in-memory one `rest(60)` is an instant and in the real one a minute. A rule calls
what is its own by short names: namespaced objects lie in a namespace of the test, cluster-wide ones bear it before
their name.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from kerf.manifests.decode import decode_object
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import Deleted, Event, Relisted, Report, Synced
from kerf.ports import Conflict, KubeReader, KubeWriter
from kerf.sim.objects import condition_of, is_cluster_wide, is_deleting, is_ready
from kerf.testing.builders import a_claim
from tests.conformance.raw_api import Json, RawApi

T = TypeVar("T")
Rule = Callable[["Cluster"], None]
POLL_S = 0.1
LABEL = "conformance"
Object = Pod | Node | NodeClaim


class Cluster:
    """One test's part of a cluster. `close` ends what it has started and takes away what is not in its namespace."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        api: RawApi,
        writer: KubeWriter,
        new_reader: Callable[[], KubeReader],
    ) -> None:
        self.name, self.api = name, api
        self._loop, self._writer, self._new_reader = loop, writer, new_reader
        self._made: list[tuple[str, str]] = []
        self._told: list[Event] = []
        self._reading: asyncio.Task[None] | None = None
        self._reader: KubeReader | None = None

    # Objects.

    def own(self, name: str) -> str:
        """The name that a cluster-wide object of this test has."""
        return f"{self.name}-{name}"

    def short(self, name: str) -> str:
        """The name by which the test knows a cluster-wide object; empty stays empty."""
        return name.removeprefix(f"{self.name}-")

    def create(self, *objects: Json) -> Json:
        """Create all, in this order; the last as it is stored."""
        stored: Json = {}
        for obj in objects:
            metadata = {**obj["metadata"]}
            if is_cluster_wide(obj["kind"]):
                metadata["name"] = self.own(metadata["name"])
                self._made.append((obj["kind"], metadata["name"]))
            else:
                metadata["namespace"] = self.name
            stored = self._do(self.api.create({**obj, "metadata": metadata}))
        return stored

    def find(self, kind: str, name: str) -> Json | None:
        """The object, None when there is none."""
        return self._do(self.api.get(*self._key(kind, name)))

    def get(self, kind: str, name: str) -> Json:
        """The object, which is there."""
        found = self.find(kind, name)
        assert found is not None, f"{kind} {name} is not there"
        return found

    def all_of(self, kind: str) -> Sequence[Json]:
        """The objects of a namespaced kind, by name."""
        return sorted(self._do(self.api.list(kind, self.name)), key=lambda obj: str(obj["metadata"]["name"]))

    def update(self, obj: Json, subresource: str = "") -> Json:
        """Replace an object that was read."""
        return self._do(self.api.update(obj, subresource))

    def patch(self, kind: str, name: str, patch: Json, subresource: str = "") -> Json:
        """Apply a merge patch."""
        return self._do(self.api.patch(*self._key(kind, name), patch, subresource))

    def set_status(self, kind: str, name: str, **status: object) -> Json:
        """Write fields of the status."""
        return self.patch(kind, name, {"status": status}, "status")

    def delete(self, kind: str, name: str, grace_s: int | None = None) -> None:
        """Ask for deletion."""
        self._do(self.api.delete(*self._key(kind, name), grace_s))

    def evict(self, name: str) -> None:
        """Evict a pod."""
        self._do(self.api.evict(self.name, name))

    def bind(self, name: str, node: str) -> None:
        """Bind a pod."""
        self._do(self.api.bind(self.name, name, self.own(node)))

    def _key(self, kind: str, name: str) -> tuple[str, str, str]:
        return (kind, "", self.own(name)) if is_cluster_wide(kind) else (kind, self.name, name)

    # Nodes, pods and workloads.

    def add_node(self, name: str, cpu: str = "4", **spec: Any) -> None:
        """A node that is ready and empty; returns once nobody has anything to do for it any more."""
        self.create(self.node_object(name, cpu, **spec))
        self.until(lambda: {"unschedulable"} >= {key for key, _ in self.system_taints(name)}, f"node {name} is ready")

    def add_silent_node(self, name: str, cpu: str = "4") -> None:
        """A node of which nothing is heard, so that pods on it neither start nor end."""
        machine = self.node_object(name, cpu)
        del machine["metadata"]["annotations"]
        machine["status"]["conditions"][0]["status"] = "Unknown"
        self.create(machine)

    def node_object(self, name: str, cpu: str = "4", *, finalizers: Sequence[str] = (), **spec: Any) -> Json:
        """A node that says it is ready, and whose pods start at once; `spec` may have `labels` too."""
        amounts = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        held = {LABEL: self.name, "kubernetes.io/hostname": self.own(name), **spec.pop("labels", {})}
        made = obj("v1", "Node", name, spec, labels=held, annotations={"kwok.x-k8s.io/node": "fake"})
        made["metadata"]["finalizers"] = [*finalizers]
        return {**made, "status": status}

    def system_taints(self, name: str) -> list[tuple[str, str]]:
        """The taints of a node that the control plane itself puts there, by key and effect."""
        prefix = "node.kubernetes.io/"
        taints = self.get("Node", name)["spec"].get("taints") or ()
        return sorted((t["key"].removeprefix(prefix), t["effect"]) for t in taints if t["key"].startswith(prefix))

    def add_pod(self, name: str, cpu: str = "100m", *, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
        """A pod labelled `app: alone` that may go to the nodes of this test."""
        held = {"app": "alone", **(labels or {})}
        return self.create(obj("v1", "Pod", name, self.pod_spec(cpu, **spec), labels=held))

    def pod_spec(self, cpu: str = "100m", **spec: Any) -> Json:
        """One container, on the nodes of this test."""
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
        return {"containers": [container], "nodeSelector": {LABEL: self.name}, **spec}

    def add_workload(
        self,
        kind: str,
        name: str = "web",
        *,
        pod: Json | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Json:
        """A workload of pods labelled `app` with its name; `pod` is what their spec has beside `pod_spec`."""
        template = {"metadata": {"labels": {"app": name}}, "spec": self.pod_spec(**(pod or {}))}
        selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
        version = "batch/v1" if kind == "Job" else "apps/v1"
        body = {"template": template, **selector, **spec}
        return self.create(obj(version, kind, name, body, annotations={**(annotations or {})}))

    def add_budget(self, app: str = "alone", **spec: Any) -> None:
        """A PodDisruptionBudget for the pods with that label, of that name; returns once they were counted."""
        body = {"selector": {"matchLabels": {"app": app}}, **spec}
        self.create(obj("policy/v1", "PodDisruptionBudget", app, body))
        self.until(lambda: "expectedPods" in self.get("PodDisruptionBudget", app).get("status", {}), "it is counted")

    def allowed(self, budget: str) -> int:
        """How many evictions a budget allows."""
        return int(self.get("PodDisruptionBudget", budget)["status"]["disruptionsAllowed"])

    def set_ready(self, name: str, is_ready: bool) -> None:
        """What the kubelet says when a pod's probe changes its mind."""
        held = self.get("Pod", name)["status"]["conditions"]
        changed = {"Ready": str(is_ready), "ContainersReady": str(is_ready)}
        self.set_status("Pod", name, conditions=[{**c, "status": changed.get(c["type"], c["status"])} for c in held])

    def place(self, name: str) -> str:
        """The short name of a pod's node; empty while it has none."""
        return self.short(self.get("Pod", name)["spec"].get("nodeName", ""))

    def places(self) -> dict[str, str]:
        """The node of each pod that is not on its way out."""
        pods = [pod for pod in self.all_of("Pod") if not is_deleting(pod)]
        return {pod["metadata"]["name"]: self.short(pod["spec"].get("nodeName", "")) for pod in pods}

    def pods(self) -> list[str]:
        """The names of the pods that are not on their way out."""
        return [pod["metadata"]["name"] for pod in self.all_of("Pod") if not is_deleting(pod)]

    def refusal(self, name: str) -> str:
        """What the scheduler says of a pod that fits nowhere; empty when it has said nothing of the kind."""
        condition = condition_of(self.get("Pod", name), "PodScheduled") or {}
        return str(condition["message"]) if condition.get("reason") == "Unschedulable" else ""

    def nomination(self, name: str) -> str:
        """The short name of the node that a pod is nominated to."""
        return self.short(self.get("Pod", name)["status"].get("nominatedNodeName", ""))

    def nominate(self, name: str, node: str) -> None:
        """Nominate a pod, as kube-scheduler does when it has made room by preemption."""
        self.patch("Pod", name, {"status": {"nominatedNodeName": self.own(node) if node else None}}, "status")

    def until_pods(self, count: int) -> None:
        """Wait until so many pods exist that are not on their way out."""
        self.until(lambda: len(self.pods()) == count, f"{count} pods")

    def until_places(self, *nodes: str) -> None:
        """Wait until those pods are on these nodes, a node named once for each; empty for one that waits."""
        self.until(lambda: sorted(self.places().values()) == sorted(nodes), f"pods on {nodes}")

    def until_bound(self, *names: str) -> None:
        """Wait until pods have a node."""
        self.until(lambda: all(self.place(name) for name in names), f"{', '.join(names)} bound")

    def until_refused(self, *names: str) -> None:
        """Wait until the scheduler has tried pods in vain."""
        self.until(lambda: all(self.refusal(name) for name in names), f"{', '.join(names)} refused")

    def until_ready(self, *names: str) -> None:
        """Wait until pods run and are ready."""
        self.until(lambda: all(is_ready(self.get("Pod", name)) for name in names), f"{', '.join(names)} ready")

    def until_gone(self, kind: str, *names: str, within_s: float = 60) -> None:
        """Wait until objects are gone."""
        self.until(lambda: not any(self.find(kind, name) for name in names), f"{', '.join(names)} gone", within_s)

    # Kerf's side.

    def write(self, act: Callable[[KubeWriter], Awaitable[T]]) -> T:
        """What a verb of Kerf's writer gives."""

        async def acted() -> T:
            return await act(self._writer)

        return self._do(acted())

    def change_node(self, name: str, change: Callable[[Node], Node]) -> Node:
        """Write a node by Kerf's writer; on a conflict look again as Kerf does, since others write it too."""
        while True:
            wanted = change(self.node(name))
            try:
                return self._do(self._writer.update_node(wanted))
            except Conflict:
                self.rest(POLL_S)

    def uncordon(self, name: str) -> None:
        """Open a node in one write, with the taint that the control plane has put there."""

        def opened(node: Node) -> Node:
            kept = tuple(taint for taint in node.taints if taint.key != "node.kubernetes.io/unschedulable")
            return replace(node, is_unschedulable=False, taints=kept)

        self.change_node(name, opened)

    def pod(self, name: str) -> Pod:
        """A pod as a controller knows it."""
        value = decode_object(self.get("Pod", name))
        assert isinstance(value, Pod)
        return value

    def node(self, name: str) -> Node:
        """A node as a controller knows it."""
        value = decode_object(self.get("Node", name))
        assert isinstance(value, Node)
        return value

    def claim(self, name: str = "claim") -> NodeClaim:
        """A claim as a controller knows it, created by Kerf's writer when it is not there."""
        raw = self.find("NodeClaim", name)
        if raw is None:
            self._made.append(("NodeClaim", self.own(name)))
            new = a_claim(self.own(name), pool=self.own("pool"), reached=())
            return self.write(lambda writer: writer.create_node_claim(new))
        value = decode_object(raw)
        assert isinstance(value, NodeClaim)
        return value

    # Watching.

    def follow(self) -> None:
        """Begin to read, or, once more with the same reader, begin anew; returns when it is synced."""
        self.stop_reading()
        self._told = []
        self._reader = self._reader or self._new_reader()
        self._reading = self._loop.create_task(self._read(self._reader.events()))
        self.until(lambda: any(isinstance(event, Synced) for event in self._told), "the reader is synced")

    async def _read(self, events: AsyncIterator[Report]) -> None:
        try:
            async for event in events:
                if not isinstance(event, Relisted):
                    self._told.append(event)
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def told(self, of: type[Object]) -> list[tuple[str, Any]]:
        """What the reader has told since `follow` of our objects: `has` or `lost`, and the value."""
        return [
            ("lost" if isinstance(event, Deleted) else "has", event.value)
            for event in self._told
            if not isinstance(event, Synced) and isinstance(event.value, of) and self._is_ours(event.value)
        ]

    def known(self, of: type[Object]) -> list[str]:
        """The short names of what is there, as far as the reader has told."""
        last = {self.short(value.name): what for what, value in self.told(of)}
        return sorted(name for name, what in last.items() if what == "has")

    def last_told(self, name: str) -> Node:
        """A node as it was told last."""
        node: Node = next(value for _, value in reversed(self.told(Node)) if value.name == self.own(name))
        return node

    def _is_ours(self, value: Object) -> bool:
        return self.name == value.namespace if isinstance(value, Pod) else value.name.startswith(self.name)

    def lose_history(self) -> None:
        """Make the reader list anew."""
        assert self._reader is not None
        self._do(self.api.lose_history(self._reader))

    # Time.

    def rest(self, seconds: float) -> None:
        """Let time pass."""
        self._do(asyncio.sleep(seconds))

    def until(self, condition: Callable[[], object], what: str, within_s: float = 60) -> None:
        """Let time pass until it holds; fails after `within_s`."""
        deadline_s = self._loop.time() + within_s
        while not condition():
            assert self._loop.time() < deadline_s, f"waited {within_s} s in vain: {what}"
            self.rest(POLL_S)

    def close(self) -> None:
        """End the reader; delete cluster-wide objects, and the pods that would wait for their nodes."""
        self.stop_reading()
        for pod in self.all_of("Pod"):
            with suppress(Exception):
                self.delete("Pod", pod["metadata"]["name"], 0)
        for kind, name in reversed(self._made):
            with suppress(Exception):
                self._do(self.api.patch(kind, "", name, {"metadata": {"finalizers": None}}, ""))
            with suppress(Exception):
                self._do(self.api.delete(kind, "", name, None))

    def stop_reading(self) -> None:
        """End the reading; a reader that is followed again knows what it has told."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._reading)
            self._reading = None

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        result: T = self._loop.run_until_complete(work)
        if self._reading is not None and self._reading.done():
            self._reading.result()
        return result


# What rules and objects are made of.


def rules() -> tuple[list[Rule], Callable[[Rule], Rule]]:
    """A list, and the decorator that adds a rule to it."""
    held: list[Rule] = []

    def rule(function: Rule) -> Rule:
        held.append(function)
        return function

    return held, rule


def obj(version: str, kind: str, name: str, spec: Json | None = None, **metadata: Any) -> Json:
    """An object with a spec."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec or {}}


def config_map(name: str, **metadata: Any) -> Json:
    """The plainest object there is."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def labelled(key: str, value: str | None) -> Json:
    """A patch of one label."""
    return {"metadata": {"labels": {key: value}}}
