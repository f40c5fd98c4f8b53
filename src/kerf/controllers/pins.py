"""Takes pins away where they no longer help.

A pin whose card is gone, or whose pod still waits after two minutes for a node that is open to all, keeps the pod from
every other card. On a pod that has its cards a pin says what is no longer so for a person, and for a copy of the pod.
"""

from collections.abc import Iterable

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.model.nodeclaim import FOLLOW, INITIALIZED, NodeClaim
from kerf.model.nodes import reservation
from kerf.model.plan import PIN
from kerf.model.pods import Pod
from kerf.model.promises import read
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.sharing.hami.pinning import is_held, is_past, is_pinned, pinned_since, unpinned
from kerf.state import ClusterState


class Pins:
    """One pod at a time."""

    name = "pins"

    def __init__(self, state: ClusterState, ports: Ports, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Pods that we have pinned and that wait or have their cards, and those that a claim no longer pins."""
        if isinstance(event, Synced):
            return tuple(pod.key for pod in self._state.pods() if is_pinned(pod) and (pod.is_pending or is_past(pod)))
        value = event.value
        if isinstance(value, NodeClaim):
            is_over = isinstance(event, Deleted) or value.is_deleting or value.is_true(INITIALIZED)
            return tuple(read(value.annotations).pods) if is_over and value.annotations.get(FOLLOW) == PIN else ()
        if not isinstance(value, Pod) or isinstance(event, Deleted):
            return ()
        return (value.key,) if is_pinned(value) and (value.is_pending or is_past(value)) else ()

    async def reconcile(self, key: str) -> Result:
        """Take the pin away when its time is over."""
        pod = self._state.pod(key)
        if pod is not None and is_past(pod) and not pod.is_ended:
            await self._ports.writer.annotate_pod(pod, unpinned())
            return DONE
        if pod is None or not pod.is_pending or not is_pinned(pod):
            return DONE
        if self._is_awaited(pod):
            return Result(self._settings.pin_deadline_s)
        left_s = pinned_since(pod) + self._settings.pin_deadline_s - self._ports.clock.now_s()
        if left_s > 0 and not is_held(pod):
            return Result(left_s)
        await self._ports.writer.annotate_pod(pod, unpinned())
        return DONE

    def _is_awaited(self, pod: Pod) -> bool:
        """Whether a node on its way has the pod's card, or keeps it for the pod.

        That ends by itself: see `Following`, which counts from the last pod that came. HAMi binds a few pods a second,
        so of a thousand that are pinned at once some have their turn after minutes.
        """
        for claim in self._state.claims_for(pod.key):
            if claim.annotations.get(FOLLOW) != PIN or claim.is_deleting or claim.is_true(INITIALIZED):
                continue
            node = self._state.node_of(claim)
            if is_held(pod) or (node is not None and reservation(claim.name) in node.taints):
                return True
        return False
