"""Takes our pins and nominations away again where they no longer help.

A pin whose card is gone, or whose pod still waits after two minutes, keeps the pod from every other card.
"""

from collections.abc import Iterable

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.sharing.pinning import is_pinned, pinned_since, unpinned
from kerf.state import ClusterState


class Pins:
    """One pending pod at a time."""

    name = "pins"

    def __init__(self, state: ClusterState, ports: Ports, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Pending pods that we have pinned or nominated; those nominated to a node when it goes."""
        if isinstance(event, Synced):
            return tuple(pod.key for pod in self._state.pods() if _is_led(pod))
        value = event.value
        if isinstance(value, Node) and isinstance(event, Deleted):
            return tuple(p.key for p in self._state.pods() if _is_led(p) and p.nominated_node == value.name)
        return (value.key,) if isinstance(value, Pod) and not isinstance(event, Deleted) and _is_led(value) else ()

    async def reconcile(self, key: str) -> Result:
        """Look again when the pin's time is over; a nomination ends with its node."""
        pod = self._state.pod(key)
        if pod is None or not _is_led(pod):
            return DONE
        if pod.nominated_node and self._state.node(pod.nominated_node) is None:
            await self._ports.writer.nominate(pod, "")
        if not is_pinned(pod):
            return DONE
        left_s = pinned_since(pod) + self._settings.pin_deadline_s - self._ports.clock.now_s()
        if left_s > 0:
            return Result(left_s)
        await self._ports.writer.annotate_pod(pod, unpinned())
        return DONE


def _is_led(pod: Pod) -> bool:
    return pod.is_pending and (is_pinned(pod) or bool(pod.nominated_node))
