"""What both clusters offer to the rules beside Kerf's own ports: the plain verbs of an API server."""

from collections.abc import Sequence
from typing import Any, Protocol

from kerf.ports import KubeReader

Json = dict[str, Any]


class RawApi(Protocol):
    """The verbs of an API server; the errors are those of `kerf.ports`."""

    async def create(self, obj: Json) -> Json:
        """Create it; as it is stored."""
        ...

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """One object, None when there is none."""
        ...

    async def list(self, kind: str, namespace: str) -> Sequence[Json]:
        """The objects of a kind in a namespace."""
        ...

    async def update(self, obj: Json, subresource: str) -> Json:
        """Replace it."""
        ...

    async def patch(self, kind: str, namespace: str, name: str, patch: Json, subresource: str) -> Json:
        """Apply a merge patch."""
        ...

    async def delete(self, kind: str, namespace: str, name: str, grace_s: int | None) -> None:
        """Ask for deletion, in the background."""
        ...

    async def evict(self, namespace: str, name: str) -> None:
        """Evict a pod."""
        ...

    async def bind(self, namespace: str, name: str, node: str) -> None:
        """What a scheduler does at last."""
        ...

    async def lose_history(self, reader: KubeReader) -> None:
        """Make it impossible to go on with a watch that began earlier."""
        ...
