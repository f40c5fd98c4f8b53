"""What Kerf does without when its role lacks it, and what it does not start without."""

import asyncio

import pytest
from aiohttp import web

from kerf.kube.preflight import Server, Unsuitable, preflight
from kerf.kube.rbac import needed
from tests.kube.fake_server import connected

KINDS = ("nodepools", "nodeclaims", "nodeoverlays")


def looked(*denied: str) -> Server:
    """The preflight on a server whose role has all but these resources."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/version":
            return web.json_response({"minor": "36", "gitVersion": "v1.36.3"})
        if request.method == "GET":
            return web.json_response({"resources": [{"name": name} for name in KINDS]})
        asked = (await request.json())["spec"]["resourceAttributes"]
        return web.json_response({"status": {"allowed": asked["resource"] not in denied}}, status=201)

    async def looking() -> Server:
        async with connected(answer) as client:
            return await preflight(client, [(each, "") for each in needed()], "kerf manifests --rbac --cloud kwok")

    return asyncio.run(looking())


@pytest.mark.parametrize("denied", ["tokenreviews", "subjectaccessreviews"])
def test_without_reviews_kerf_runs_and_answers_nothing(denied: str) -> None:
    """An older role is enough to run; the line says what is missing."""
    (text,) = looked(denied).degraded

    assert text.startswith("without answers at /debug/decisions: the role lacks {apiGroups: [")
    assert denied in text


def test_with_the_whole_role_nothing_is_missing() -> None:
    """No line then."""
    assert () == looked().degraded


def test_without_pods_nothing_works() -> None:
    """Then Kerf does not start."""
    with pytest.raises(Unsuitable, match="forbidden: the role lacks"):
        looked("pods", "tokenreviews")
