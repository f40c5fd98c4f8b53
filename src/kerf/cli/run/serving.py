"""`/healthz`, `/readyz`, `/metrics`, `/debug/decisions`: what a kubelet, Prometheus and people ask of a running Kerf.

Readiness says what Kerf really sees: a replica whose watches are silent decides on a past cluster, although
its process is in the best of health.
"""

import errno
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from kerf.errors import KerfError
from kerf.kube.decisions import PATH, TOKEN_HEADER, AccessRefusal
from kerf.telemetry import exposition

_STOP_S = 1.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


METRICS_PATH = "/metrics"
Refusing = Callable[[str], Awaitable[AccessRefusal | None]]
"""Why the caller with an Authorization header gets no answer; None for one who does."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How `/debug/decisions` is answered: `refusal` of a caller's header, and the `answer`, None while we follow."""

    refusal: Refusing
    answer: Callable[[], Mapping[str, Any] | None]


class Serving:
    """Two small servers; either address empty: not served. An address is `host:port`, port 0 takes a free one.

    Without `asking` no client reads decisions; without `refusing` each one reads metrics.
    """

    def __init__(
        self,
        problems: Callable[[], Sequence[str]],
        before_metrics: Callable[[], None],
        asking: Asking | None = None,
        refusing: Refusing | None = None,
    ) -> None:
        self._problems, self._before_metrics, self._asking, self._refusing = problems, before_metrics, asking, refusing
        self._runners: list[web.AppRunner] = []

    async def start(self, health_address: str, metrics_address: str) -> tuple[str, str]:
        """Serve; the addresses that were taken. Raises KerfError when one cannot be had."""
        health, metrics = web.Application(), web.Application()
        health.router.add_get("/healthz", self._healthz)
        health.router.add_get("/readyz", self._readyz)
        metrics.router.add_get(METRICS_PATH, self._metrics)
        if self._asking is not None:
            metrics.router.add_get(PATH, self._decisions)
        return (
            await self._serve(health, "--health-address", health_address),
            await self._serve(metrics, "--metrics-address", metrics_address),
        )

    async def stop(self) -> None:
        """Stop serving."""
        for runner in self._runners:
            await runner.cleanup()
        self._runners = []

    async def _serve(self, application: web.Application, flag: str, address: str) -> str:
        if not address:
            return ""
        host, _, port = address.rpartition(":")
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_STOP_S)
        self._runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, host.strip("[]") or None, int(port))
        try:
            await site.start()
        except OSError as error:
            # The error of a name that does not resolve has a number of another series.
            why = os.strerror(error.errno or 0) if error.errno in errno.errorcode else str(error.strerror)
            raise KerfError(f"{flag} {address}: {why}") from error
        taken = runner.addresses[0]
        return f"{taken[0]}:{taken[1]}"

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        problems = self._problems()
        if problems:
            return web.Response(status=503, text="".join(f"{problem}\n" for problem in problems))
        return web.Response(text="ok\n")

    async def _metrics(self, request: web.Request) -> web.Response:
        refusal = None if self._refusing is None else await self._refusing(_authorization(request))
        if refusal is not None:
            return web.Response(status=refusal.status, text=f"{refusal.why}\n")
        self._before_metrics()
        return web.Response(body=exposition(), headers={"Content-Type": METRICS_TYPE})

    async def _decisions(self, request: web.Request) -> web.Response:
        asking = self._asking
        if asking is None:
            raise web.HTTPNotFound
        refusal = await asking.refusal(_authorization(request))
        if refusal is not None:
            return web.json_response({"message": refusal.why}, status=refusal.status)
        answer = asking.answer()
        if answer is None:
            return web.json_response({"message": "this replica does not lead"}, status=503)
        return web.json_response(answer)


def _authorization(request: web.Request) -> str:
    # The API server's proxy takes Authorization away, because it is the caller's own.
    return request.headers.get(TOKEN_HEADER) or request.headers.get("Authorization") or ""
