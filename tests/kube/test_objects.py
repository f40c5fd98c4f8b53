"""Plain objects over HTTP: pages, selectors, and a watch that ends rather than miss anything."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kerf.errors import ApiError
from kerf.kube.objects import KubeObjects
from kerf.kube.resources import CONFIG_MAPS, KWOK, NODES, PODS, declared
from kerf.ports import NotFound
from tests.kube.fake_server import FakeServer, Refusal, serving

Heard = tuple[str, list[str]]


@asynccontextmanager
async def watching(server: FakeServer) -> AsyncIterator["asyncio.Queue[Heard | Exception | None]"]:
    """What a watch of nodes says, as (what, names), then None or the error with which it ends."""
    heard: asyncio.Queue[Heard | Exception | None] = asyncio.Queue()

    async def follow(store: KubeObjects) -> None:
        try:
            async for what, objects in store.watch("Node", labels="kerf.dev/kwok-instance=here"):
                heard.put_nowait((what, names(objects)))
            heard.put_nowait(None)
        except ApiError as error:
            heard.put_nowait(error)

    async with serving(server) as client:
        task = asyncio.create_task(follow(KubeObjects(client)))
        yield heard
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(objects: Sequence[dict[str, Any]]) -> list[str]:
    """Their names, in order."""
    return [obj["metadata"]["name"] for obj in objects]


def test_a_list_has_every_page_and_says_what_it_holds() -> None:
    """700 nodes come in two pages; each item has the kind that the API leaves out of lists."""
    server = FakeServer()
    for number in range(700):
        server.put(NODES, f"node-{number:03d}")

    async def act() -> Sequence[dict[str, Any]]:
        async with serving(server) as client:
            return await KubeObjects(client).list("Node", labels="a=b")

    found = asyncio.run(act())
    assert [f"node-{number:03d}" for number in range(700)] == names(found)
    assert {("v1", "Node")} == {(obj["apiVersion"], obj["kind"]) for obj in found}
    assert ["a=b", "a=b"] == [query["labelSelector"] for query in server.asked("list", NODES)]


def test_a_watch_lists_and_then_shows_each_change() -> None:
    """Cut into pieces of seven bytes on its way, and with bookmarks between."""
    server = FakeServer(chunk=7)
    server.put(NODES, "a")

    async def act() -> list[Heard | Exception | None]:
        async with watching(server) as heard:
            told = [await heard.get()]
            server.put(NODES, "b")
            server.put(NODES, "a", labels={"x": "y"})
            server.remove(NODES, "a")
            return [*told, *[await heard.get() for _ in range(3)]]

    expected = [("LISTED", ["a"]), ("ADDED", ["b"]), ("MODIFIED", ["a"]), ("DELETED", ["a"])]
    assert expected == asyncio.run(act())
    assert "kerf.dev/kwok-instance=here" == server.asked("watch", NODES)[0]["labelSelector"]


def test_a_watch_begins_with_every_page() -> None:
    """The second page is more of what exists, not all that exists."""
    server = FakeServer()
    for number in range(700):
        server.put(NODES, f"node-{number:03d}")

    async def act() -> list[Heard | Exception | None]:
        async with watching(server) as heard, asyncio.timeout(10):
            return [await heard.get() for _ in range(2)]

    listed = [f"node-{number:03d}" for number in range(700)]
    assert [("LISTED", listed[:500]), ("ADDED", listed[500:])] == asyncio.run(act())


def test_a_watch_ends_when_its_version_is_forgotten() -> None:
    """410 inside the stream: whoever watches lists anew."""
    server = FakeServer()
    server.put(NODES, "a")

    async def act() -> Heard | Exception | None:
        async with watching(server) as heard:
            await heard.get()
            server.put(CONFIG_MAPS, "other")
            server.compact()
            return await heard.get()

    assert asyncio.run(act()) is None


@pytest.mark.parametrize("how", ["cut", "refuse"])
def test_a_watch_that_breaks_says_so(how: str) -> None:
    """Cut in the middle of an object, or refused: an error, and nothing of half an object."""
    server = FakeServer()
    if how == "refuse":
        server.script("watch", NODES, Refusal(500))

    async def act() -> Heard | Exception | None:
        async with watching(server) as heard:
            await heard.get()
            while how == "cut" and not server.watches:
                await asyncio.sleep(0.01)
            server.cut()
            return await heard.get()

    assert isinstance(asyncio.run(act()), ApiError)


def test_an_object_that_is_not_there_is_not_found() -> None:
    """The errors are those of the ports."""
    server = FakeServer()
    server.standing[PODS.path("default", "p")] = Refusal(404)

    async def act() -> None:
        async with serving(server) as client:
            await KubeObjects(client).get("Pod", "default", "p")

    with pytest.raises(NotFound):
        asyncio.run(act())


def test_only_what_the_acted_out_cloud_needs_is_declared() -> None:
    """No update, no eviction, no secrets: what it may do is read from here."""
    assert {"configmaps", "daemonsets", "leases", "nodes", "pods"} == {each.resource.plural for each in declared(KWOK)}
    assert {"get", "list", "watch", "create", "patch", "delete"} == {each.verb for each in declared(KWOK)}
