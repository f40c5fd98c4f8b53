"""F12: `/metrics` names namespaces and pods, so it may be kept for those who may get it."""

import asyncio
from collections.abc import Mapping

import aiohttp
import pytest

from kerf.cli.run.command import run
from kerf.cli.run.serving import METRICS_PATH, Refusing, Serving
from kerf.kube.decisions import AccessRefusal, Doorkeeper
from tests.kube.fake_server import connected
from tests.kube.test_decisions import Reviewing


def scraped(refusing: Refusing | None, headers: Mapping[str, str]) -> tuple[int, str]:
    """Status and body of `/metrics`."""

    async def asked() -> tuple[int, str]:
        serving = Serving(list, lambda: None, refusing=refusing)
        try:
            _, metrics = await serving.start("", "127.0.0.1:0")
            url = f"http://{metrics}{METRICS_PATH}"
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
                return response.status, await response.text()
        finally:
            await serving.stop()

    return asyncio.run(asked())


async def _by_name(authorization: str) -> AccessRefusal | None:
    return None if authorization == "Bearer good" else AccessRefusal(401, "expected a bearer token")


@pytest.mark.parametrize(
    ("refusing", "headers", "status"),
    [
        (None, {}, 200),
        (_by_name, {}, 401),
        (_by_name, {"Authorization": "Bearer bad"}, 401),
        (_by_name, {"Authorization": "Bearer good"}, 200),
        (_by_name, {"X-Kerf-Authorization": "Bearer good"}, 200),
    ],
)
def test_metrics_are_for_all_unless_they_are_protected(
    refusing: Refusing | None, headers: Mapping[str, str], status: int
) -> None:
    """Then a caller who may not get them sees no name of anything."""
    found, body = scraped(refusing, headers)

    assert (status, status == 200) == (found, "kerf_pending_pods" in body)


def test_the_api_server_is_asked_for_the_path_of_the_metrics() -> None:
    """One who may get decisions may not therefore get metrics."""
    server = Reviewing()

    async def asked() -> AccessRefusal | None:
        async with connected(server.answer) as client:
            return await Doorkeeper(client, METRICS_PATH).refusal("Bearer good")

    assert asyncio.run(asked()) is None
    assert {"path": "/metrics", "verb": "get"} == server.asked[1]["nonResourceAttributes"]


def test_protection_is_off_by_default() -> None:
    """A scraper without a token would see nothing from one version to the next."""
    given = run.make_context("run", [], resilient_parsing=True).params

    assert not given["metrics_auth"]
