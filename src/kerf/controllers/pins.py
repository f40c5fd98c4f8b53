"""Keeps nominations alive while they help, and takes pins and nominations away where they no longer do.

kube-scheduler clears the nomination of a pod whose attempt has failed, and one node that opens makes every waiting pod
try: those that were nominated to the next node lose their place there. On the other hand a pin whose card is gone, or
whose pod still waits after two minutes, keeps the pod from every other card.
"""

from collections.abc import Iterable

from kerf.config import Settings
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.buy.following import leaves_room
from kerf.model.nodeclaim import FOLLOW, INITIALIZED, TRUE, NodeClaim
from kerf.model.nodes import Node
from kerf.model.plan import NOMINATE, PIN
from kerf.model.pods import Pod
from kerf.model.promises import names, read
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.sharing.hami.pinning import is_held, is_pinned, pinned_since, unpinned
from kerf.state import ClusterState

_NUDGE_S = 3.0


class Pins:
    """One pending pod at a time."""

    name = "pins"

    def __init__(self, state: ClusterState, ports: Ports, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings
        # When a nomination was seen first, by pod; lost at a restart, which only means waiting again.
        self._seen_s: dict[str, float] = {}

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Pending pods that we have pinned or nominated; those nominated to a node when it goes."""
        if isinstance(event, Synced):
            return tuple(pod.key for pod in self._state.pending() if _is_led(pod))
        value = event.value
        if isinstance(value, NodeClaim):
            is_over = isinstance(event, Deleted) or value.is_deleting or value.is_true(INITIALIZED)
            return tuple(read(value.annotations).pods) if is_over and value.annotations.get(FOLLOW) == PIN else ()
        if isinstance(value, Node) and isinstance(event, Deleted):
            return tuple(p.key for p in self._state.pending() if p.nominated_node == value.name)
        if not isinstance(value, Pod) or isinstance(event, Deleted):
            return ()
        was_led = isinstance(previous, Pod) and _is_led(previous)
        return (value.key,) if _is_led(value) or was_led else ()

    async def reconcile(self, key: str) -> Result:
        """Look again when the pin's time is over; a nomination ends with its node."""
        pod = self._state.pod(key)
        if pod is None or not pod.is_pending:
            self._seen_s.pop(pod.uid if pod is not None else "", None)
            return DONE
        if not _is_led(pod):
            await self._nominate_again(pod)
            return DONE
        if pod.nominated_node:
            return await self._nominated(pod)
        if not is_pinned(pod):
            return DONE
        if is_held(pod) and self._is_awaited(pod):
            return Result(self._settings.pin_deadline_s)
        left_s = pinned_since(pod) + self._settings.pin_deadline_s - self._ports.clock.now_s()
        if left_s > 0 and not is_held(pod):
            return Result(left_s)
        await self._ports.writer.annotate_pod(pod, unpinned())
        return DONE

    def _is_awaited(self, pod: Pod) -> bool:
        """Whether a node on its way has the pod's card."""
        coming = (claim for claim in self._state.claims() if not claim.is_deleting and not claim.is_true(INITIALIZED))
        pinning = (claim for claim in coming if claim.annotations.get(FOLLOW) == PIN)
        return any(names(claim.annotations, pod.key) for claim in pinning)

    async def _nominated(self, pod: Pod) -> Result:
        """A nomination ends with its node; on a node that is open it is set anew while its pod waits.

        kube-scheduler does not try a pod again because room that others had kept by their nominations is free. It does
        when a nomination is taken away (its `EventAssignedPodDelete`), be it the pod's own.
        """
        node, now_s = self._state.node(pod.nominated_node), self._ports.clock.now_s()
        if node is None:
            await self._ports.writer.nominate(pod, "")
            return DONE
        claim = self._state.claim_of(node)
        if claim is None or not names(claim.annotations, pod.key):
            return DONE
        seen_s = self._seen_s.setdefault(pod.uid, now_s)
        if node.is_unschedulable or (now_s < seen_s + _NUDGE_S and self._has_room(node, pod)):
            return Result(_NUDGE_S)
        self._seen_s.pop(pod.uid)
        await self._ports.writer.nominate(pod, "")
        return DONE

    async def _nominate_again(self, pod: Pod) -> None:
        """Give a pod its place back on the node that was bought for it, while that node is new."""
        since_s = self._ports.clock.now_s() - self._settings.pin_deadline_s
        for claim in self._state.claims():
            opened = claim.condition(INITIALIZED)
            is_new = opened is not None and opened.status == TRUE and opened.since_s >= since_s
            if is_new and claim.annotations.get(FOLLOW) == NOMINATE and names(claim.annotations, pod.key):
                node = self._state.node(claim.node_name)
                if pod.is_pending and node is not None and self._has_room(node, pod):
                    await self._ports.writer.nominate(pod, node.name)
                return

    def _has_room(self, node: Node, pod: Pod) -> bool:
        return leaves_room(node, self._state.pods_on(node.name), pod)


def _is_led(pod: Pod) -> bool:
    """Whether a pending pod is pinned or nominated."""
    return pod.is_pending and (is_pinned(pod) or bool(pod.nominated_node))
