"""Makes the schedulers follow the plan.

A node whose plan needs following is cordoned from its registration until its cards are there. HAMi looks at cards and
picks among equal nodes at random, so there the pods are pinned to cards (`nvidia.com/use-gpuuuid`, marked
`kerf.dev/pinned` as ours). Neither scheduler knows who may go where. So a node becomes reserved in the write that ends
its cordon: a taint keeps off all pods but those of the plan, which tolerate it, until they have their places.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kerf.config import Settings
from kerf.controllers.latest import is_to_open
from kerf.controllers.nodeclaim.together import OpenedTogether
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.place.ages import elders
from kerf.engine.place.shapes import Readings
from kerf.engine.place.turns import turns
from kerf.model import events
from kerf.model.constraints import INSTANCE_TYPE, Taint
from kerf.model.nodeclaim import FOLLOW, INITIALIZED, OBSERVED_DEVICES, NodeClaim
from kerf.model.nodes import CORDON_TAINT, CORDONED_BY_KERF, RESERVED_FOR, Node, reservation
from kerf.model.plan import PIN, REPLAY, RESERVE
from kerf.model.pods import Pod
from kerf.model.promises import Promises, read, written
from kerf.model.rejections import REJECTED
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.ports import Conflict, NotFound, WriteRefused
from kerf.sharing.family import Occupant
from kerf.sharing.hami.pinning import hold, is_free, is_held, is_pinned, pin, unpinned, without_pin
from kerf.state import ClusterState, noted_observations
from kerf.telemetry import PODS_FOLLOWED, logger

_LONGEST_S = 10
"""A node of pinned pods opens after so long, even if a person keeps clearing the pins."""
_MOST_S = 600
"""A reserved node is open to all after so long, however busy the scheduler is with other planned pods."""
_AGAIN_S = 1.0
AS_PLANNED, OTHER_CARDS, OTHER_NODE = "as-planned", "other-cards", "other-node"


@dataclass
class _Opening:
    """A node that is being opened: since when, how many pods waited when it was looked at last, when the last of them
    came, and those refused.

    Lost at a restart, which only means to wait and to ask again.
    """

    since_s: float
    waiting: int
    came_s: float = 0
    refused: set[str] = field(default_factory=set)


class Following:
    """Cordon, then pin and uncordon, or reserve and release."""

    def __init__(self, state: ClusterState, ports: Ports, settings: Settings) -> None:
        self._state, self._ports, self._settings = state, ports, settings
        # By the uid of the claim.
        self._openings: dict[str, _Opening] = {}
        # When a pod of any reservation came to its place.
        self._progress_s = 0.0
        self._together = OpenedTogether(state, settings.one_age_s)

    def cordoned(self, claim: NodeClaim, node: Node) -> Node:
        """The node as it must register: cordoned by us when its plan needs following and no user cordoned it."""
        if claim.annotations.get(FOLLOW) not in (PIN, RESERVE) or node.is_unschedulable:
            return node
        return replace(node, is_unschedulable=True, annotations={**node.annotations, CORDONED_BY_KERF: "true"})

    async def close(self, claim: NodeClaim, node: Node | None) -> None:
        """Cordon a node that registered before a later plan chose to reserve it, while it can take no pods yet."""
        mode = claim.annotations.get(FOLLOW)
        if node is None or mode != RESERVE or node.annotations.get(FOLLOW) != REPLAY:
            return
        closed = self.cordoned(claim, replace(node, annotations={**node.annotations, FOLLOW: RESERVE}))
        self._state.note(await self._ports.writer.update_node(closed))

    async def let_elders_go_first(self, claim: NodeClaim, node: Node) -> bool:
        """Exchange planned pods of a node that is about to open for older equal ones; whether any was.

        Those that give way get the places of the others. After a crash between two of these writes a pod has two
        places or none, and the next plan finds it one: the room of all claims is the same.
        """
        if not is_to_open(claim, node) or claim.annotations.get(FOLLOW, REPLAY) == REPLAY:
            return False
        planned = read(claim.annotations).pods
        youngest_s = max((pod.created_s for key in planned if (pod := self._state.pod(key)) is not None), default=0.0)
        waiting = [pod for pod in self._state.pending() if pod.created_s <= youngest_s]
        if all(youngest_s - pod.created_s <= self._settings.one_age_s for pod in waiting):
            # A burst, as a rule: of 10,000 pods each is looked at for each of their nodes, and no closer than this.
            return False
        free = {pod.key: pod for pod in self._exchangeable(waiting, claim, node)}
        here = [pod for key in planned if (pod := free.get(key)) is not None]
        others = [pod for key, pod in free.items() if key not in planned]
        # By the key of each whose place another takes, that other's.
        readings = Readings.of(self._state.snapshot(0.0))
        elder_of = elders(here, others, self._settings.one_age_s, readings)
        if not elder_of:
            return False
        given_up = {name for elder in elder_of.values() for name in self._claims_named_by(elder)}
        await self._rename(claim, elder_of)
        for name in sorted(given_up):
            other = self._state.claim(name)
            if other is not None:
                await self._rename(other, {elder: pod for pod, elder in elder_of.items()})
        return True

    def _claims_named_by(self, pod: str) -> Iterable[str]:
        return (claim.name for claim in self._state.claims_for(pod))

    def _exchangeable(self, waiting: Iterable[Pod], claim: NodeClaim, node: Node) -> Iterator[Pod]:
        """Those that may yet go to this node or another.

        Pods of pinned nodes are held for these, so they change places among themselves alone.
        """
        family, is_pinning = self._state.family_of(node, claim), claim.annotations.get(FOLLOW) == PIN
        for pod in waiting:
            is_led = is_pinned(pod) and not is_held(pod)
            is_kept_off = bool(pod.spec.scheduling_gates) or not pod.unschedulable or REJECTED in pod.annotations
            if is_kept_off or is_led or pod.nominated_node or family.booked_node(pod):
                continue
            claims = [each for each in self._state.claims_for(pod.key) if not each.is_true(INITIALIZED)]
            modes = {each.annotations.get(FOLLOW) for each in claims}
            is_of_kind = modes == {PIN} if is_pinning else PIN not in modes and not is_pinned(pod)
            if is_of_kind and all(is_to_open(each, self._state.node_of(each)) for each in claims):
                yield without_pin(pod)

    async def _rename(self, claim: NodeClaim, names: Mapping[str, str]) -> None:
        """Give places that the claim promises to other pods."""
        pods = {names.get(key, key): cards for key, cards in read(claim.annotations).pods.items()}
        annotations = {**claim.annotations, **written(Promises(pods))}
        self._state.note(await self._ports.writer.update_node_claim(replace(claim, annotations=annotations)))

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """The claims that wait for a pod's pin or place, when it has come, or the pod is gone or made again; and those
        that waited for the pods of others."""
        return (*self._together.keys(event, self._ports.clock.now_s()), *self._waiting_for(event, previous))

    def _waiting_for(self, event: Event, previous: Watched | None) -> Iterable[str]:
        if isinstance(event, Synced) or not isinstance(event.value, Pod) or not self._openings:
            return ()
        before = _standing(previous) if isinstance(previous, Pod) else (False, False)
        if before == ((False, False) if isinstance(event, Deleted) else _standing(event.value)):
            return ()
        claims = self._state.claims_for(event.value.key)
        return tuple(claim.name for claim in claims if claim.uid in self._openings)

    async def hold(self, claim: NodeClaim) -> None:
        """Keep the pods that will be pinned off the cards that are planned for others, until their own are there.

        Once the node opens nothing more is held: a pod that is free by then has found another place.
        """
        if claim.annotations.get(FOLLOW) != PIN or not is_to_open(claim, self._state.node_of(claim)):
            return
        change = hold(self._ports.clock.now_s())
        for key in sorted(read(claim.annotations).pods):
            pod = self._state.pod(key)
            if pod is None or not pod.is_pending or not is_free(pod):
                continue
            try:
                await self._ports.writer.annotate_pod(pod, change, unless_present=tuple(sorted(change)))
            except (Conflict, NotFound):
                # The user's own wish stands, or the pod is gone.
                continue

    async def let_go(self, claim: NodeClaim, pods: Iterable[str]) -> None:
        """Take the pins from pods that the claim promises no more: kept, each would keep its pod from other cards."""
        if claim.annotations.get(FOLLOW) != PIN:
            return
        for key in pods:
            pod = self._state.pod(key)
            if pod is None or not pod.is_pending or not is_pinned(pod):
                continue
            try:
                await self._ports.writer.annotate_pod(pod, unpinned())
            except (Conflict, NotFound):
                # It is gone, or another by now.
                continue

    async def follow(self, claim: NodeClaim, node: Node) -> float | None:
        """Lead the pods that the claim was bought for to its node.

        None once it is open to all others; else in how many seconds to look again, where no pod's event comes before.
        """
        mode, is_reserved = claim.annotations.get(FOLLOW), reservation(claim.name) in node.taints
        again_s = None
        if mode == PIN:
            again_s = await self._pin(claim, node)
        elif mode == RESERVE and (is_reserved or CORDONED_BY_KERF in node.annotations):
            again_s = await self._reserve(claim, node)
        if again_s is None:
            self._openings.pop(claim.uid, None)
            await self._open(node)
        return again_s

    async def _reserve(self, claim: NodeClaim, node: Node) -> float | None:
        """Let the waiting pods in and reserve the node; None once none waits, or they wait in vain.

        They do when no pod of any reservation has come for as long as a pin may wait. kube-scheduler backs off for 10 s
        at most (its `podMaxBackoffSeconds`), but each node that opens makes it try every waiting pod: of 1,000 one
        waited a minute for its turn on a slow machine, and with 15 s for each node 840 lost their places.

        The tolerations come first: written after the taint, each pod would be tried in vain and back off. After a crash
        between two of these writes the next look goes on where they ended, since it goes by the objects alone.
        """
        taint, now_s = reservation(claim.name), self._ports.clock.now_s()
        pods = (self._state.pod(key) for key in sorted(read(claim.annotations).pods))
        waiting = [pod for pod in pods if pod is not None and pod.is_pending]
        opening = self._openings.setdefault(claim.uid, _Opening(now_s, len(waiting)))
        coming = [pod for pod in waiting if not self._together.is_kept_back(claim, pod)]
        for pod in coming:
            if taint.value not in pod.reserved_for and pod.uid not in opening.refused:
                await self._admit(pod, taint, opening)
        if taint not in node.taints:
            opening.since_s = now_s
        if len(waiting) < opening.waiting:
            self._progress_s = opening.came_s = now_s
        opening.waiting = len(waiting)
        # The others must not wait for a pod that can come only when the node is open to all.
        is_awaiting = any(pod.uid not in opening.refused for pod in waiting)
        others_s = self._together.held_since_s(claim, node)
        if not is_awaiting and others_s is None:
            return None
        progress_s = self._progress_s if is_awaiting else max(opening.came_s, others_s or 0)
        until_s = min(max(opening.since_s, progress_s) + self._settings.pin_deadline_s, opening.since_s + _MOST_S)
        if now_s >= until_s:
            return None
        await self._open(node, taint)
        return until_s - now_s

    async def _admit(self, pod: Pod, taint: Taint, opening: _Opening) -> None:
        """Give the pod its toleration. One that may have none waits until the node is open to all."""
        try:
            await self._ports.writer.tolerate(pod, taint)
        except (Conflict, NotFound):
            return
        except WriteRefused as error:
            opening.refused.add(pod.uid)
            logger("following").warning("no toleration", pod=pod.key, error=str(error))
            self._ports.recorder.record(events.not_reserved(pod.key, taint.value, str(error)))

    async def _open(self, node: Node, taint: Taint | None = None) -> None:
        """End our own cordon and our reservation, or begin one with the `taint`; a person's cordon stays.

        In one write: in between any pod could take the room.
        """
        ours = (CORDON_TAINT,) if CORDONED_BY_KERF in node.annotations else ()
        kept = tuple(each for each in node.taints if each.key not in (*ours, RESERVED_FOR))
        opened = replace(
            node,
            is_unschedulable=node.is_unschedulable and not ours,
            annotations={key: text for key, text in node.annotations.items() if key != CORDONED_BY_KERF},
            taints=kept if taint is None else (*kept, taint),
        )
        if opened != node:
            self._state.note(await self._ports.writer.update_node(opened))

    async def _pin(self, claim: NodeClaim, node: Node) -> float | None:
        """Pin the pods that are not; once all pins have come back by the watch the scheduler has them.

        The node is reserved until the last of them is bound: pods of later plans are not pinned, and would take the
        cards. Where the order of the pods matters, only those of the next turn are pinned, and the others stay off
        every card.
        """
        is_reserved = reservation(claim.name) in node.taints
        next_turns = self._turns(claim, node)
        if CORDONED_BY_KERF not in node.annotations and not is_reserved:
            # A person keeps it closed, or has opened it.
            await self._pinned(claim, node, [pod for turn in next_turns for pod in turn])
            return None
        marked = await self._pinned(claim, node, next_turns[0] if next_turns else ())
        now_s = self._ports.clock.now_s()
        opening = self._openings.setdefault(claim.uid, _Opening(now_s, marked))
        if marked and not is_reserved and now_s < opening.since_s + _LONGEST_S:
            return _AGAIN_S
        return await self._reserve(claim, node) if is_reserved or next_turns else None

    def _turns(self, claim: NodeClaim, node: Node) -> tuple[tuple[Pod, ...], ...]:
        """The planned pods that wait for cards which are there, in the turns in which they can have them.

        The first turn is empty while a pod of it is booked and not bound. HAMi forgets a booking whose binding fails,
        so a pod that came after it could have taken its card by then.
        """
        family, joined = self._state.family_of(node, claim), self._state.cluster_node(node.name)
        devices = joined.devices if joined is not None else ()
        there = {device.index for device in devices}
        plan = {key: frozenset(cards) for key, cards in read(claim.annotations).pods.items()}
        pods = (self._state.pod(key) for key, cards in plan.items() if cards <= there)
        pending = [pod for pod in pods if pod is not None and pod.is_pending]
        # What HAMi has booked for a pod is among what is used of the cards.
        waiting = [pod for pod in pending if not family.booked_node(pod)]
        found = turns(family, devices, node, plan, waiting)
        return ((), *found) if any(family.booked_node(pod) == node.name for pod in pending) else found

    async def _pinned(self, claim: NodeClaim, node: Node, pods: Iterable[Pod]) -> int:
        """How many of the pods had to be pinned."""
        family, marked = self._state.family_of(node, claim), 0
        ids = {device.index: device.id for device in family.inventory(node) or ()}
        planned = read(claim.annotations).pods
        for pod in sorted(pods, key=lambda pod: pod.key):
            if is_pinned(pod) and not is_held(pod):
                continue
            pinned = [ids[card] for card in planned[pod.key]]
            change = pin(pinned, self._ports.clock.now_s())
            foreign = () if is_held(pod) else tuple(sorted(change))
            try:
                await self._ports.writer.annotate_pod(pod, change, unless_present=foreign)
            except (Conflict, NotFound):
                # The user's own wish stands, or the pod is gone.
                continue
            marked += 1
            self._ports.recorder.record(events.pinned(pod.key, node.name, ", ".join(pinned)))
        return marked

    def observed_change(self, claim: NodeClaim, node: Node | None) -> Mapping[str, str | None] | None:
        """What to write on the pool when a card has registered less than was predicted or noted; None for nothing."""
        shapes = read(claim.annotations).devices
        pool = self._state.pool(claim.node_pool)
        if node is None or pool is None or not shapes:
            return None
        family = self._state.family_of(node, claim)
        cards = [d.memory_mib for d in family.inventory(node) or () if d.healthy and d.memory_mib > 0]
        registered = min(cards, default=0)
        smallest = min(shape.memory_mib for shape in shapes)
        # A family may scale what it registers; the note is of the card itself, as the catalogue's figure is.
        scaled = min((d.memory_mib for d in family.predict(shapes, node.labels, claim.annotations)), default=0)
        least = registered * smallest // scaled if scaled else 0
        name, noted = claim.labels.get(INSTANCE_TYPE, ""), noted_observations(pool)
        expected = min(noted.get(name, smallest), smallest)
        if not least or least >= expected:
            return None
        return {OBSERVED_DEVICES: json.dumps({**noted, name: least}, sort_keys=True)}


class Followed:
    """Counts whether pods were bound to the node and the cards that were bought for them."""

    name = "followed"

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Pods that have just been bound."""
        if isinstance(event, Synced) or not isinstance(event.value, Pod) or not isinstance(previous, Pod):
            return ()
        return (event.value.key,) if event.value.node_name and not previous.node_name else ()

    async def reconcile(self, key: str) -> Result:
        """Compare with the plan; a pod for which nothing was bought is not ours."""
        outcome = self._outcome(key)
        if outcome:
            PODS_FOLLOWED.labels(outcome).inc()
        return DONE

    def _outcome(self, key: str) -> str:
        pod = self._state.pod(key)
        node = self._state.node(pod.node_name) if pod is not None else None
        if pod is None or node is None:
            return ""
        claim = self._state.claim_of(node)
        planned = read(claim.annotations).pods if claim is not None else {}
        if claim is None or not self._state.claims_for(key):
            return ""
        # Pods of one shape are the same to the plan, so each may take the place of another.
        equals = [name for name in planned if name == key or _is_equal(self._state.pod(name), pod)]
        if not equals:
            return OTHER_NODE
        cards = self._cards(claim, node, pod)
        return AS_PLANNED if cards is None or any(cards == sorted(planned[name]) for name in equals) else OTHER_CARDS

    def _cards(self, claim: NodeClaim, node: Node, pod: Pod) -> list[int] | None:
        """The indexes of the cards that the pod holds; None where only kubelet knows."""
        family = self._state.family_of(node, claim)
        if family.selector is None:
            return None
        devices = family.occupied(family.inventory(node) or (), (Occupant(pod, None),))
        return [device.index for device in devices if device.used_slots]


def _standing(pod: Pod) -> tuple[bool, bool]:
    return is_pinned(pod) and not is_held(pod), pod.is_pending


def _is_equal(other: Pod | None, pod: Pod) -> bool:
    return other is not None and other.spec == pod.spec and other.namespace == pod.namespace
