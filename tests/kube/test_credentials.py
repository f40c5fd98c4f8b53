"""The way to the server, as the environment says it and as kubectl would take it."""

from pathlib import Path

import pytest
from aiohttp import web

from kerf.kube.client import ClusterTarget, KubeClient
from tests.cli.canned import kubeconfig
from tests.kube.fake_server import on_loop


class Listener:
    """Answers everything, and notes what it was asked, from whom, and for which host."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.address = ""

    async def __aenter__(self) -> "Listener":
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.address = f"127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append((request.host, request.headers.get("Authorization", "")))
        return web.json_response({})


async def ask(config: str) -> None:
    """For the version, over a connection of its own."""
    client = await KubeClient.connect(ClusterTarget(config))
    try:
        await client.fetch("/version")
    finally:
        await client.close()


@on_loop
async def test_the_proxy_of_the_environment_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else could find this host."""
    async with Listener() as proxy:
        monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
        await ask(kubeconfig(tmp_path, "http://cluster.invalid"))
    assert [("cluster.invalid", "Bearer t")] == proxy.asked


@on_loop
async def test_what_needs_no_proxy_goes_straight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though there is one."""
    async with Listener() as server:
        monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        await ask(kubeconfig(tmp_path, f"http://{server.address}"))
    assert [(server.address, "Bearer t")] == server.asked


@on_loop
async def test_a_password_kept_for_curl_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ~/.netrc that names the host of the API server neither replaces the token nor stops the request."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with Listener() as server:
        await ask(kubeconfig(tmp_path, f"http://{server.address}"))
    assert [(server.address, "Bearer t")] == server.asked
