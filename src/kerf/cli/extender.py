"""What `kerf hami-extender` does: it answers as HAMi's scheduler extender and webhook, beside a real kube-scheduler.

HAMi itself cannot be had everywhere, and where it can it needs nodes with cards. This one decides as HAMi does (its
recorded verdicts are its tests), so a plan can be tried against a scheduler that does not know Kerf.
"""

import asyncio
import os
import random
import signal
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from aiohttp import web

from kerf.cli.exits import DONE, ClusterUnreachable
from kerf.errors import InputError
from kerf.kube.client import ClusterTarget, Forbidden, KubeClient, Unauthorized, Unreachable
from kerf.kube.reader import KubeReader
from kerf.kube.reflector import FollowedResource
from kerf.kube.resources import CONFIG_MAPS, HAMI, NODES, PODS, RESOURCE_QUOTAS, Access, Resource, access
from kerf.sharing.hami.config import CONFIG_MAP
from kerf.sim.hami.extender import Extender, ExtenderCache, follow
from kerf.sim.hami.server import application
from kerf.telemetry import configure, logger

GET_POD, PATCH_POD = access("get", PODS, by=HAMI), access("patch", PODS, by=HAMI)
GET_NODE, PATCH_NODE = access("get", NODES, by=HAMI), access("patch", NODES, by=HAMI)
BIND_POD = access("create", PODS, "binding", by=HAMI)

Json = dict[str, Any]


def _followed(resource: Resource, *names: str) -> FollowedResource:
    return FollowedResource(
        access("list", resource, names=names, by=HAMI), access("watch", resource, names=names, by=HAMI), True
    )


WATCHED = (_followed(PODS), _followed(NODES), _followed(RESOURCE_QUOTAS), _followed(CONFIG_MAPS, CONFIG_MAP))
"""What HAMi follows; without any of it its answers would be wrong."""


class KubeHamiApi:
    """`kerf.sim.hami.extender.HamiApi` over a connection."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get_pod(self, namespace: str, name: str) -> Json:
        """The pod as it is now."""
        return await self._call(GET_POD, namespace, name)

    async def get_node(self, name: str) -> Json:
        """The node as it is now."""
        return await self._call(GET_NODE, "", name)

    async def patch_pod(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """A merge patch of the pod."""
        await self._call(PATCH_POD, namespace, name, patch)

    async def patch_node(self, name: str, patch: Mapping[str, Any]) -> None:
        """A merge patch of the node."""
        await self._call(PATCH_NODE, "", name, patch)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Create the Binding; the server refuses it for a pod of another uid."""
        metadata = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self._call(BIND_POD, namespace, name, body)

    async def _call(self, verb: Access, namespace: str, name: str, body: Mapping[str, Any] | None = None) -> Json:
        answer: Json = msgspec.json.decode(await self._client.call(verb, namespace=namespace, name=name, body=body))
        return answer


@dataclass(frozen=True, slots=True)
class _Service:
    """Where and how to serve, and the file that gets the URL."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    url_file: str | None

    async def serve(self, extender: Extender) -> None:
        """Serve until it is cancelled; say where once the cache is complete."""
        runner = web.AppRunner(application(extender), access_log=None)
        await runner.setup()
        try:
            await self._listen(runner)
            host, port = runner.addresses[0][:2]
            await extender.cache.synced.wait()
            self._tell(f"{'https' if self.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}")
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        try:
            await web.TCPSite(runner, self.host, self.port, ssl_context=self.tls).start()
        except OSError as error:
            raise InputError(f"--address {self.host}:{self.port}: {error.strerror or error}") from error

    def _tell(self, url: str) -> None:
        logger("hami").info("serving", url=url)
        if self.url_file is not None:
            # In one step, so no reader gets half of the file.
            half = Path(f"{self.url_file}.{os.getpid()}")
            half.write_text(f"{url}\n", encoding="utf-8")
            half.replace(self.url_file)


def serve(flags: dict[str, Any]) -> int:
    """Answer until a signal asks to stop; the exit code. Raises UsageError, InputError and ClusterUnreachable."""
    host, port = _address(flags["address"])
    tls = _tls(flags["tls_cert"], flags["tls_key"])
    configure("text", "info")
    lots = random.Random(flags["seed"]) if flags["ties"] == "random" else None
    target = ClusterTarget(flags["kubeconfig"], flags["context"])
    return asyncio.run(_main(target, _Service(host, port, tls, flags["url_file"]), lots))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--address: expected HOST:PORT, got {text!r}")
    return host.strip("[]"), int(port)


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--tls-cert and --tls-key: expected both or neither")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise InputError(f"--tls-cert {certificate}, --tls-key {key}: cannot be used: {error}") from error
    return context


async def _main(target: ClusterTarget, service: _Service, lots: random.Random | None) -> int:
    try:
        client = await KubeClient.connect(target)
        try:
            for followed in WATCHED:
                # Asked once beforehand, because a reader would wait for ever for what is forbidden.
                await client.call(followed.listing, params={**followed.selector, "limit": 1})
            return await _run(client, service, lots)
        finally:
            await client.close()
    except (Unreachable, Unauthorized, Forbidden) as error:
        raise ClusterUnreachable(str(error)) from error


async def _run(client: KubeClient, service: _Service, lots: random.Random | None) -> int:
    """Follow the cluster and answer until a signal asks to stop."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    cache = ExtenderCache(time.time)
    extender = Extender(cache, KubeHamiApi(client), time.time, lots)
    tasks = [
        asyncio.create_task(follow(KubeReader(client, WATCHED), cache)),
        asyncio.create_task(service.serve(extender)),
        asyncio.create_task(stopping.wait()),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return DONE
