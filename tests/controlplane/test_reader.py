"""The reader on a real API server: what a compaction hides and what a frozen server keeps back is told all the same."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from uuid import uuid4

import pytest

from kerf.kube.client import ClusterTarget, KubeClient
from kerf.kube.reader import KubeReader, follow
from kerf.kube.reflector import Pace
from kerf.kube.resources import NODE_POOLS, NODES
from kerf.model.nodes import Node
from kerf.model.snapshot import Deleted, Event, Relisted, Synced, Upserted
from tests.kube.fake_server import on_loop, until
from tools.controlplane.server import ControlPlane

WATCHED = (follow(NODES, is_required=True), follow(NODE_POOLS))


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """The reader takes what lives from the collector's sight; a test run has more to come."""
    yield
    gc.unfreeze()


def create(plane: ControlPlane, name: str) -> None:
    """A node that nobody runs."""
    plane.request("POST", "/api/v1/nodes", {"metadata": {"name": name}}).good(name)


@asynccontextmanager
async def reading(plane: ControlPlane, pace: Pace) -> AsyncIterator[tuple[KubeReader, list[Event]]]:
    """A reader that has synced, and what it tells."""
    client, events = await KubeClient.connect(ClusterTarget(str(plane.kubeconfig()))), list[Event]()
    reader = KubeReader(client, WATCHED, pace=pace)

    async def read() -> None:
        async for event in reader.events():
            if not isinstance(event, Relisted):
                events.append(event)

    task = asyncio.create_task(read())
    try:
        await until(lambda: Synced() in events)
        yield reader, events
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await client.close()


def told(events: list[Event], mark: str) -> list[str]:
    """Which nodes of a test came and went, each form of an object once: `+stays`, `-goes`."""
    found: dict[tuple[str, str], None] = {}
    for event in events:
        if isinstance(event, Upserted | Deleted) and isinstance(event.value, Node) and mark in event.value.name:
            sign = "+" if isinstance(event, Upserted) else "-"
            found[sign + event.value.name.removesuffix(mark), event.value.uid] = None
    return [name for name, _ in found]


@on_loop
async def test_what_happened_behind_a_compaction_is_no_gap_and_no_phantom(control_plane: ControlPlane) -> None:
    """The server has forgotten what the watch missed; the list tells what differs."""
    mark = f"-{uuid4().hex[:8]}"
    for name in ("stays", "goes", "returns"):
        create(control_plane, name + mark)
    async with reading(control_plane, Pace(missing_s=1)) as (reader, events):
        assert {"+stays", "+goes", "+returns"} == set(told(events, mark))
        del events[:]
        # The loop stands still meanwhile, so that the reader sees nothing of it.
        control_plane.kill_apiserver()
        control_plane.start_apiserver()
        for name in ("goes", "returns"):
            control_plane.delete("Node", name + mark)
        create(control_plane, "returns" + mark)
        control_plane.compact()
        await until(lambda: "-goes" in told(events, mark))
        assert ["-returns", "+returns", "-goes"] == [name for name in told(events, mark) if name != "+stays"]
        assert 1 <= reader.health()[0].relists
    for name in ("stays", "returns"):
        control_plane.delete("Node", name + mark)


@on_loop
async def test_a_frozen_server_is_noticed_and_followed_again(control_plane: ControlPlane) -> None:
    """Nothing is heard of it, readiness says so, and afterwards everything is told."""
    mark = f"-{uuid4().hex[:8]}"
    pace = replace(Pace(), silence_s=1, most_backoff_s=0.5)
    async with reading(control_plane, pace) as (reader, events):
        control_plane.pause("kube-apiserver")
        try:
            await until(lambda: "silent" in reader.health()[0].problem(2))
        finally:
            control_plane.resume("kube-apiserver")
        await asyncio.to_thread(create, control_plane, "late" + mark)
        await until(lambda: ["+late"] == told(events, mark))
        await until(lambda: "" == reader.health()[0].problem(2))
    control_plane.delete("Node", "late" + mark)
