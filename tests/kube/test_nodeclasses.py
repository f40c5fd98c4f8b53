"""EC2NodeClasses on an API server: read whole, and written in metadata and status alone."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kerf.kube.nodeclasses import KubeEC2NodeClasses
from kerf.ports import Conflict, NotFound
from tests.kube.fake_objects import FakeObjects

_T = TypeVar("_T")
HELD = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default", "annotations": {"mine": "1"}, "finalizers": ["other"]},
    "spec": {"role": "nodes", "kubelet": {"unknown": [1]}},
    "status": {"instanceProfile": "old", "conditions": []},
}


class _Server:
    """A server with an EC2NodeClass."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.fake = folder, FakeObjects()
        self.fake.api.create(HELD)

    def run(self, act: Callable[[KubeEC2NodeClasses], Awaitable[_T]]) -> _T:
        """What `act` gives."""

        async def connected() -> _T:
            async with self.fake.client(self._folder) as client:
                return await act(KubeEC2NodeClasses(client))

        return asyncio.run(connected())

    @property
    def stored(self) -> dict[str, Any]:
        """The EC2NodeClass now."""
        (found,) = self.fake.api.list("EC2NodeClass")
        return found


@pytest.fixture
def server(tmp_path: Path) -> _Server:
    """One of its own."""
    return _Server(tmp_path)


def test_the_object_is_read_as_it_is(server: _Server) -> None:
    """Unknown fields and all; one that is not there is NotFound."""
    found = server.run(lambda store: store.read("default"))

    assert (HELD["spec"], "EC2NodeClass") == (found["spec"], found["kind"])
    with pytest.raises(NotFound):
        server.run(lambda store: store.read("other"))


def test_marks_and_status_leave_the_rest_alone(server: _Server) -> None:
    """Annotations are added, finalizers and status put in the place of the old; a field of the status that is gone
    goes."""

    async def write(store: KubeEC2NodeClasses) -> None:
        held = await store.read("default")
        held = await store.mark(held, finalizers=["other", "ours"], annotations={"hash": "2"})
        await store.write_status(held, {"conditions": [], "subnets": [{"id": "s-1"}]})

    server.run(write)
    metadata = server.stored["metadata"]

    assert (["other", "ours"], {"mine": "1", "hash": "2"}) == (metadata["finalizers"], metadata["annotations"])
    assert {"conditions": [], "subnets": [{"id": "s-1"}]} == server.stored["status"]
    assert HELD["spec"] == server.stored["spec"]


def test_an_old_version_is_a_conflict(server: _Server) -> None:
    """Another wrote meanwhile: look again."""

    async def write(store: KubeEC2NodeClasses) -> None:
        held = await store.read("default")
        await store.mark(held, annotations={"hash": "1"})
        await store.write_status(held, {})

    with pytest.raises(Conflict):
        server.run(write)
