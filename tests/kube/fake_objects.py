"""An API server for writes: the in-memory API behind HTTP, with what a test adds between a read and a write.

It answers as the real one where a writer could notice: reasons and causes in a Status, 422 for another object's uid in
a patch of a built-in kind and no word about it for a custom resource (both tried with 1.36).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from kerf.errors import ApiError
from kerf.kube.client import ClusterTarget, KubeClient
from kerf.kube.resources import (
    CONFIG_MAPS,
    EC2_NODE_CLASSES,
    EVENTS,
    NODE_CLAIMS,
    NODE_OVERLAYS,
    NODE_POOLS,
    NODES,
    PODS,
    Resource,
)
from kerf.ports import AlreadyExists, Conflict, EvictionBlocked, NotFound, WriteRefused
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.objects import Json

START_S = 1_767_596_400  # 2026-01-05T07:00:00Z
_CUSTOM_RESOURCES: tuple[Resource, ...] = (EC2_NODE_CLASSES, NODE_CLAIMS, NODE_OVERLAYS, NODE_POOLS)
_KINDS = {each.plural: each.kind for each in (CONFIG_MAPS, EVENTS, NODES, PODS, *_CUSTOM_RESOURCES)}
_CUSTOM = {each.kind for each in _CUSTOM_RESOURCES}
_STATUSES = {NotFound: (404, "NotFound"), AlreadyExists: (409, "AlreadyExists"), Conflict: (409, "Conflict")}


class FakeClock:
    """A clock that stands until a test moves it; whatever is due comes in the loop's next turn."""

    def __init__(self) -> None:
        self.at_s: float = START_S

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return self.at_s

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """In the loop's next turn, whenever that is."""
        asyncio.get_running_loop().call_soon(callback)


class Seen(NamedTuple):
    """A request that came."""

    method: str
    path: str
    body: Json


class FakeObjects:
    """`api` is what is stored, `seen` what was asked; `before` is run ahead of each write, to meddle or to refuse.

    `before` may answer by itself; `loses_answers` carries a write out and breaks the connection.
    """

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.api = InMemoryApi(self.clock)
        self.seen: list[Seen] = []
        self.before: Callable[[Seen], Awaitable[web.Response | None]] | None = None
        self.loses_answers = False

    def writes(self) -> list[str]:
        """The writes that came, e.g. `PATCH pods/web-0/status`."""
        return [f"{s.method} {'/'.join(_parts(s.path)[1])}" for s in self.seen if s.method != "GET"]

    @asynccontextmanager
    async def client(self, folder: Path) -> AsyncIterator[KubeClient]:
        """A running server and a connection to it; `folder` takes the kubeconfig."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        client = await KubeClient.connect(ClusterTarget(str(_kubeconfig(folder, site.name))))
        try:
            yield client
        finally:
            await client.close()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        seen = Seen(request.method, request.path, json.loads(text) if text else {})
        self.seen.append(seen)
        if self.before is not None and seen.method != "GET":
            answer = await self.before(seen)
            if answer is not None:
                return answer
        try:
            done = web.json_response(self._done(seen, request.query.get("fieldSelector", "")))
        except EvictionBlocked as error:
            cause = {"reason": "DisruptionBudget", "message": str(error)}
            done = refusal(429, "TooManyRequests", "Cannot evict pod as it would violate the budget.", cause)
        except _Refused as error:
            cause = {"reason": "FieldValueInvalid", "message": str(error), "field": "metadata.uid"}
            done = refusal(422, "Invalid", str(error), cause)
        except WriteRefused as error:
            done = refusal(422, "Invalid", str(error))
        except ApiError as error:
            done = refusal(*_STATUSES.get(type(error), (500, "")), str(error))
        if self.loses_answers and seen.method != "GET":
            assert request.transport is not None
            request.transport.close()
        return done

    def _done(self, seen: Seen, selector: str) -> Json:
        namespace, (plural, *rest) = _parts(seen.path)
        kind, name, subresource = _KINDS[plural], rest[0] if rest else "", rest[1] if rest[1:] else ""
        if seen.method == "POST":
            return self._created(seen.body, namespace, name, subresource)
        if seen.method == "GET" and not name:
            wanted = selector.removeprefix("metadata.name=")
            items = [each for each in self.api.list(kind) if wanted in ("", each["metadata"]["name"])]
            return {"kind": f"{kind}List", "metadata": {"resourceVersion": "1"}, "items": items}
        found = self.api.get(kind, namespace, name)
        if found is None:
            raise NotFound(f'{plural} "{name}" not found')
        if seen.method == "GET":
            return found
        if seen.method == "PATCH":
            return self._patched(found, seen.body, subresource)
        self._require_uid(found, seen.body)
        self.api.delete(kind, namespace, name, grace_s=seen.body.get("gracePeriodSeconds"))
        return self.api.get(kind, namespace, name) or found

    def _created(self, obj: Json, namespace: str, name: str, subresource: str) -> Json:
        if subresource != "eviction":
            assert namespace == obj["metadata"].get("namespace", "")
            return self.api.create(obj)
        pod = self.api.get("Pod", namespace, name)
        if pod is None:
            raise NotFound(f'pods "{name}" not found')
        self._require_uid(pod, obj["deleteOptions"])
        self.api.evict(namespace, name)
        return {"kind": "Status", "status": "Success"}

    def _patched(self, found: Json, body: Json, subresource: str) -> Json:
        if isinstance(body, list):
            return self._patched(found, _merge_patch(found, body), subresource)
        metadata = dict(body.get("metadata", {}))
        uid = metadata.pop("uid", found["metadata"]["uid"])
        key = (found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"])
        if uid != found["metadata"]["uid"] and found["kind"] not in _CUSTOM:
            raise _Refused("metadata.uid: field is immutable")
        return self.api.patch(*key, {**body, "metadata": metadata}, subresource=subresource)

    def _require_uid(self, found: Json, options: Json) -> None:
        uid = options.get("preconditions", {}).get("uid", found["metadata"]["uid"])
        if uid != found["metadata"]["uid"]:
            raise Conflict(f"the UID in the precondition ({uid}) does not match the UID in record")


class _Refused(ApiError):
    """Another object's uid in a patch."""


def _merge_patch(found: Json, operations: list[Json]) -> Json:
    """The merge patch that does the same as a JSON patch of one test of the uid and one `add` to the spec."""
    uid, add = operations
    field, *place = add["path"].removeprefix("/spec/").split("/")
    value = [*found["spec"].get(field, ()), add["value"]] if place == ["-"] else add["value"]
    return {"metadata": {"uid": uid["value"]}, "spec": {field: value}}


def refusal(status: int, reason: str, message: str, *causes: Json, retry_after: str = "") -> web.Response:
    """A Status as the API server sends it."""
    headers = {"Retry-After": retry_after} if retry_after else {}
    body: dict[str, Any] = {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}
    return web.json_response({**body, "details": {"causes": list(causes)}}, status=status, headers=headers)


def _parts(path: str) -> tuple[str, list[str]]:
    """The namespace of a path, and plural, name and sub-resource."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    return (parts[1], parts[2:]) if parts[0] == "namespaces" else ("", parts)


def _kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": server}}],
        "users": [{"name": "fake", "user": {"token": "t"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
