"""Writes on claims what the latest plan puts on their nodes, so a node that opens is for the pods that wait then.

A claim names the pods it was bought for. Pods that come while its node starts find room there in later plans, and
nothing keeps it for them. Only what came over a longer time is written: among pods of one age (`engine.place.ages`)
any order will do, and a burst costs no write more.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from kerf.engine.decision import Decision
from kerf.engine.place.ages import Peers, is_of_ages
from kerf.engine.place.shapes import Readings
from kerf.model.nodeclaim import FOLLOW, INITIALIZED, NodeClaim
from kerf.model.nodes import CORDONED_BY_KERF, RESERVED_FOR, Node
from kerf.model.placeholders import is_virtual
from kerf.model.plan import PIN, REPLAY, RESERVE, PlacedPod
from kerf.model.pods import Pod
from kerf.model.promises import Promises, read, written
from kerf.ports import Conflict, KubeWriter, NotFound
from kerf.sharing.hami.pinning import pinned_cards, unpinned
from kerf.state import ClusterState


@dataclass(frozen=True, slots=True)
class _Place:
    """A pod that waits, the key of its equals, and what it has on the claim of that name."""

    pod: Pod
    peers: Hashable
    placed: PlacedPod
    claim: str


class LatestPlan:
    """After each decision."""

    def __init__(self, state: ClusterState, writer: KubeWriter, one_age_s: float) -> None:
        self._state, self._writer, self._one_age_s = state, writer, one_age_s

    async def keep(self, decision: Decision) -> None:
        """Promise the places that pods of more than one age have on nodes to be. Cost: linear in the pods that wait."""
        if decision.options.follow != "auto":
            return
        found = list(self._places(decision))
        await self._hand_over(found)
        places = [place for place in found if place.peers is not None]
        waiting: dict[Hashable, list[Pod]] = {}
        for place in places:
            waiting.setdefault(place.peers, []).append(place.pod)
        in_order = {peers for peers, pods in waiting.items() if is_of_ages(pods, self._one_age_s)}
        on_claims: dict[str, list[_Place]] = {}
        for place in places:
            if place.peers in in_order and place.claim:
                on_claims.setdefault(place.claim, []).append(place)
        for name, kept in sorted(on_claims.items()):
            await self._promise(name, kept)
        for name in self._beside_others(places):
            await self._promise(name, ())

    async def _hand_over(self, places: Iterable[_Place]) -> None:
        """Promise to successors what was promised to pods that their nodes' end has evicted.

        A pod that is made again has another name. Unless its node is promised to it, the node opens to all as soon as
        it is up, and any pod may take the room. Only names change, so a crash loses nothing: the room of all claims is
        the same.
        """
        heirs: dict[str, list[_Place]] = {}
        for place in places:
            if place.claim and not self._state.claims_for(place.placed.pod):
                heirs.setdefault(place.claim, []).append(place)
        for name, left in sorted(heirs.items()):
            claim = self._state.claim(name)
            if claim is None or not is_to_open(claim, self._state.node_of(claim)):
                continue
            renamed: dict[str, tuple[int, ...]] = {}
            for key, cards in read(claim.annotations).pods.items():
                heir = next((each for each in left if self._succeeds(each, key, cards)), None)
                if heir is not None:
                    left.remove(heir)
                renamed[heir.placed.pod if heir is not None else key] = cards
            await self._write(claim, written(Promises(renamed)))

    def _succeeds(self, place: _Place, key: str, cards: tuple[int, ...]) -> bool:
        """Whether the pod was made in the place of one that ends, and has that one's cards now."""
        ending, heir = self._state.pod(key), place.pod
        if ending is None or ending.deleted_s is None or ending.owner is None:
            return False
        is_alike = ending.owner == heir.owner and ending.namespace == heir.namespace and ending.spec == heir.spec
        return is_alike and sorted(place.placed.cards) == sorted(cards)

    def _beside_others(self, places: Iterable[_Place]) -> list[str]:
        """The claims whose nodes would be open to all, and take pods of another kind that has come since."""
        kinds: dict[str, set[Hashable]] = {}
        fresh = set[Hashable]()
        for place in places:
            held = self._state.claim(place.claim) if place.claim else None
            if held is not None and place.placed.pod in read(held.annotations).pods:
                kinds.setdefault(place.claim, set()).add(place.peers)
            else:
                fresh.add(place.peers)
        return sorted(name for name, own in kinds.items() if fresh - own)

    async def let_move(self, decision: Decision) -> None:
        """Take the pins from pods that have another place now, and their promises from claims that pinned them.

        A pin whose card another pod has taken would keep its own from the place that was found instead, and a claim
        that goes on to promise the card would hold the pod or pin it there again.
        """
        nodes = {place.pod.pod: place.node for place in decision.placements}
        placed = (*(place.pod for place in decision.placements), *(p for each in decision.launches for p in each.pods))
        for each in placed:
            pod = self._state.pod(each.pod)
            cards = pinned_cards(pod) if pod is not None else frozenset()
            if pod is None or not cards or cards == {part.device_id for part in each.slices}:
                continue
            for claim in self._state.claims_for(pod.key):
                await self._move(claim, each, nodes.get(pod.key, ""))
            try:
                await self._writer.annotate_pod(pod, unpinned())
            except (Conflict, NotFound):
                # It is gone, or another by now.
                continue

    async def _move(self, claim: NodeClaim, placed: PlacedPod, node: str) -> None:
        """Promise the pod the cards that it has now on the claim's node, or none where it goes elsewhere."""
        if claim.annotations.get(FOLLOW) != PIN or claim.is_true(INITIALIZED) or claim.is_deleting:
            return
        pods = {key: cards for key, cards in read(claim.annotations).pods.items() if key != placed.pod}
        if node and node == claim.node_name:
            pods[placed.pod] = placed.cards
        await self._write(claim, written(Promises(pods)))

    def _places(self, decision: Decision) -> Iterable[_Place]:
        """Of the pods that wait for nodes to be; the claim of those that are bought for now has no name here."""
        snapshot = decision.world.snapshot
        peers = Peers(Readings.of(snapshot))
        claims = {node.name: node.claim.name for node in snapshot.nodes if node.claim and not node.is_initialized}
        found = [(place.pod, claims[place.node]) for place in decision.placements if place.node in claims]
        found += [(placed, "") for launch in decision.launches for placed in launch.pods]
        for placed, claim in found:
            pod = None if is_virtual(placed.pod) else self._state.pod(placed.pod)
            if pod is not None and pod.is_pending:
                yield _Place(pod, peers.of(pod), placed, claim)

    async def _promise(self, name: str, places: Iterable[_Place]) -> None:
        claim = self._state.claim(name)
        if claim is None or not is_to_open(claim, self._state.node_of(claim)):
            return
        await self._write(claim, self._renewed(claim, list(places)))

    async def _write(self, claim: NodeClaim, annotations: Mapping[str, str]) -> None:
        changed = replace(claim, annotations={**claim.annotations, **annotations})
        if changed == claim:
            return
        try:
            self._state.note(await self._writer.update_node_claim(changed))
        except (Conflict, NotFound):
            # The next plan looks again.
            return

    def _renewed(self, claim: NodeClaim, places: list[_Place]) -> Mapping[str, str]:
        """The annotations to write. A node whose pods no order leads elsewhere is reserved for them from now on."""
        promised = read(claim.annotations).pods
        bought_for = {place.peers for place in places if place.placed.pod in promised}
        # Which cards a pod takes beside others is for the plan that bought the node: there only its equals come.
        fresh = [p for p in places if p.placed.pod not in promised and (p.peers in bought_for or not p.placed.slices)]
        follow = claim.annotations.get(FOLLOW, REPLAY)
        renewed = {FOLLOW: RESERVE if follow == REPLAY else follow}
        if not fresh or follow == PIN:
            return renewed
        kept = {key: cards for key, cards in promised.items() if is_virtual(key) or self._is_waiting(key)}
        added = {p.placed.pod: p.placed.cards for p in fresh}
        return {**renewed, **written(Promises({**kept, **added}))}

    def _is_waiting(self, key: str) -> bool:
        pod = self._state.pod(key)
        return pod is not None and pod.is_pending


def is_to_open(claim: NodeClaim, node: Node | None) -> bool:
    """Whether the claim's node is to come, or is still closed to all, so who goes there can be settled."""
    if claim.is_deleting or claim.is_true(INITIALIZED):
        return False
    if node is None or claim.annotations.get(FOLLOW, REPLAY) == REPLAY:
        return True
    return CORDONED_BY_KERF in node.annotations and all(taint.key != RESERVED_FOR for taint in node.taints)
