"""What the tests of the embedded cluster start from: an API in virtual time, and plain objects."""

import asyncio
from collections.abc import Callable
from typing import Any

from kerf.model.times import instant_text
from kerf.sim.clock import VirtualClock, VirtualLoop
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.objects import Json

START_S = 1_767_596_400  # 2026-01-05T07:00:00Z


class World:
    """An API in virtual time whose loop a test turns itself."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, START_S)
        self.api = InMemoryApi(self.clock)

    def at(self, after_s: float, act: Callable[[], object] = lambda: None) -> Any:
        """What `act` gives when the loop has come to `START_S + after_s`."""

        async def wait() -> object:
            await self.clock.sleep_until(START_S + after_s)
            result = act()
            await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(wait())


def config_map(name: str = "device-config", **data: str) -> Json:
    """A ConfigMap: the plainest object there is."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def node(name: str = "node-a", **metadata: Any) -> Json:
    """A Node without taints."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}, "spec": {}, "status": {"a": 1}}


def pod(name: str = "web-0", **spec: Any) -> Json:
    """A pod with one container."""
    body = {"containers": [{"name": "main"}], **spec}
    metadata = {"name": name, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def budget(**spec: Any) -> Json:
    """A PodDisruptionBudget named `web` for the pods labelled `app: web`."""
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": body}


def workload(kind: str, name: str = "web", **spec: Any) -> Json:
    """A workload of one-container pods labelled `app: web`."""
    group = "batch/v1" if "Job" in kind else "apps/v1"
    policy = {"restartPolicy": "Never"} if "Job" in kind else {}
    pods = {"containers": [{"name": "main", "image": "web:1"}], **policy}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pods}
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": body}


class Nodes:
    """Scheduler and kubelet in a few lines: a pod is bound at once, ready a second later, and ends in two.

    It goes to the node of `place` for its name, else to node-a; with None it stays pending.
    """

    def __init__(self, api: InMemoryApi, clock: VirtualClock) -> None:
        self._api, self._clock = api, clock
        self.place: dict[str, str | None] = {}
        api.subscribe(self._on_event)

    def _on_event(self, type_: str, obj: Json) -> None:
        if obj["kind"] != "Pod" or type_ == "DELETED":
            return
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        uid, node = obj["metadata"]["uid"], self.place.get(key[1], "node-a")
        if "deletionTimestamp" in obj["metadata"]:
            self._later(2, key, uid, lambda: self._api.remove_pod(*key))
        elif not obj["spec"].get("nodeName") and node is not None:
            self._later(0, key, uid, lambda: self._api.bind(*key, node))
        elif obj["spec"].get("nodeName") and "containerStatuses" not in obj["status"]:
            self._later(1, key, uid, lambda: self.set_phase(key[1], "Running", is_ready=True))

    def _later(self, delay_s: float, key: tuple[str, str], uid: str, act: Callable[[], None]) -> None:
        def act_if_same() -> None:
            pod = self._api.get("Pod", *key)
            is_bound = bool(pod and pod["spec"].get("nodeName"))
            if pod is not None and pod["metadata"]["uid"] == uid and (delay_s > 0) == is_bound:
                act()

        self._clock.call_at(self._clock.now_s() + delay_s, act_if_same)

    def set_phase(self, name: str, phase: str, *, is_ready: bool = False) -> None:
        """Let a pod run, succeed or fail now."""
        now = instant_text(self._clock.now_s())
        ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": now}
        status = {"phase": phase, "conditions": [ready], "containerStatuses": [{"name": "main"}]}
        self._api.patch("Pod", "default", name, {"status": status}, subresource="status")
