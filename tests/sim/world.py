"""What the tests of the embedded cluster start from: an API in virtual time, and plain objects."""

import asyncio
from collections.abc import Callable
from typing import Any

from kerf.sim.api import InMemoryApi
from kerf.sim.clock import VirtualClock, VirtualLoop
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
