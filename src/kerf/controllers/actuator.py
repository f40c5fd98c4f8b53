"""Decision | Command -> calls. The only place that acts on either; a Plan, which has their words, is never acted on.

Before each act it looks whether the state still shows what was decided from; what has changed is left to the
next pass. Claims are taken into the state as soon as they are created, so no second pass buys them again before
the watch shows them.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from kerf.controllers.conditions import complaint
from kerf.controllers.deciding import Buyers
from kerf.controllers.disrupted import count_disrupted, snake_case
from kerf.controllers.gates import Gates
from kerf.controllers.latest import LatestPlan
from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.explain.disruption import removal_text
from kerf.engine.explain.launches import why_launched, why_relabelled
from kerf.model import events
from kerf.model.nodeclaim import (
    DISRUPTED_TAINT,
    DISRUPTION_REASON,
    FALSE,
    FOLLOW,
    INITIALIZED,
    MIN_VALUES_RELAXED,
    READY,
    RELABELLED,
    REPLACED_BY,
    REPLACES,
    TRUE,
    UNKNOWN,
    Condition,
    NodeClaim,
)
from kerf.model.nodepool import LIMITS_REACHED, NodePool
from kerf.model.nodes import Node
from kerf.model.placeholders import is_virtual
from kerf.model.plan import RESERVE, Deletion, Launch, PlacedPod, Repartition
from kerf.model.poolhash import stamp
from kerf.model.promises import Promises, read, with_price, written
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.times import instant_text
from kerf.ports import AlreadyExists, Clock, Conflict, KubeWriter, NotFound, Recorder
from kerf.state import ClusterState
from kerf.telemetry import CLAIMS_CREATED, DISRUPTION_FAILURES


class Acts(Protocol):
    """What the deciding controllers hand their decisions and commands to; none of them has words yet."""

    async def launch(self, decision: Decision) -> None:
        """Buy what the decision launches."""
        ...

    async def exchange(self, command: Command, snapshot: ClusterSnapshot) -> None:
        """Take nodes away; buy others first for those that go in their favour."""
        ...

    async def open(self, decision: Decision) -> None:
        """Make the room that opportunistic pods must give back, and open the gates of pods that are let in."""
        ...

    async def release(self, node: Node) -> None:
        """Open a node again that was tainted for a deletion which is no more."""
        ...

    async def tell_limit(self, pool: NodePool, message: str) -> None:
        """Say on a pool which limit keeps pods waiting, or with an empty message that none does."""
        ...


class Actuator:
    """Carries out launches and deletions."""

    def __init__(
        self, state: ClusterState, writer: KubeWriter, recorder: Recorder, clock: Clock, one_age_s: float
    ) -> None:
        self._state, self._writer, self._recorder, self._clock = state, writer, recorder, clock
        self._gates = Gates(state, writer, recorder, clock)
        self._latest = LatestPlan(state, writer, one_age_s)
        # Claims whose replacements are being created; after a restart none is, and what is half done is taken back.
        self._under_way: set[str] = set()

    async def open(self, decision: Decision) -> None:
        """See Gates."""
        await self._gates.open(decision)

    async def launch(self, decision: Decision) -> None:
        """Create a claim for each launch whose pods still wait or that is for none, relabel nodes, and tell all of it.

        Pins first: one whose card has been taken by another pod keeps its own from the place that was found instead.
        """
        snapshot, launches = decision.world.snapshot, decision.launches
        await self._latest.let_move(decision)
        for relabel in decision.relabels:
            await self._relabel(relabel, snapshot.taken_at_s)
        await self._buy(launches, snapshot)
        await self._latest.keep(decision)

    async def exchange(self, command: Command, snapshot: ClusterSnapshot) -> None:
        """Delete nodes that go for no others; mark those that wait for others, then create the claims of these.

        In that order: a crash in between leaves marks that name claims which do not exist, and such are taken back.
        """
        currency = command.cost.currency
        claims, taken = dict[str, NodeClaim](), set[str]()
        for launch in command.launches:
            pool = snapshot.pool(launch.node_pool)
            if pool is not None:
                claim = claims[launch.name] = self._claim_of(launch, pool, snapshot.taken_at_s, taken)
                taken.add(claim.name)
        waiting = [each for each in command.deletions if each.replaced_by and claims.keys() >= {*each.replaced_by}]
        self._under_way.update(each.claim for each in waiting)
        try:
            for deletion in waiting:
                names = [claims[name].name for name in deletion.replaced_by]
                await self._mark(deletion, names, removal_text(deletion, currency))
            for launch in command.launches:
                if launch.name in claims:
                    made = await self._create(claims[launch.name])
                    for old in launch.replaces:
                        self._recorder.record(events.replacing(old, made.name, why_launched(launch)))
        finally:
            self._under_way.difference_update(each.claim for each in waiting)
        for deletion in command.deletions:
            if not deletion.replaced_by:
                # What another controller has just written is decided again, and stops no other.
                with suppress(Conflict):
                    await self._delete(deletion, removal_text(deletion, currency))

    async def _mark(self, deletion: Deletion, names: Sequence[str], why: str) -> None:
        """Keep new pods off a node that goes once the nodes of these claims are up, and say why."""
        claim = self._state.claim(deletion.claim)
        if claim is None or claim.is_deleting:
            return
        await self._close(deletion.node)
        marked = replace(claim, annotations={**claim.annotations, REPLACED_BY: ",".join(names)})
        claim = await self._writer.update_node_claim(marked)
        reason = Condition(DISRUPTION_REASON, TRUE, deletion.reason, why, self._clock.now_s())
        self._state.note(await self._writer.update_node_claim_status(claim.with_condition(reason)))

    def is_under_way(self, claim: str) -> bool:
        """Whether nodes are being bought for that claim's now: not all of their claims are there yet."""
        return claim in self._under_way

    async def take_back(self, claim: NodeClaim, why: str) -> None:
        """Open the node of a claim that was to be replaced, and say why it stays."""
        left = {key: value for key, value in claim.annotations.items() if key != REPLACED_BY}
        reason = claim.condition(DISRUPTION_REASON)
        DISRUPTION_FAILURES.labels("replace", reason.reason.lower() if reason is not None else "", "").inc()
        said = Condition(DISRUPTION_REASON, FALSE, "ReplacementFailed", why, self._clock.now_s())
        claim = await self._writer.update_node_claim_status(claim.with_condition(said))
        node = self._state.node_of(claim)
        # Said before the last mark of it is gone: killed in between, Kerf says it once more.
        self._recorder.record(events.disruption_blocked("NodeClaim", claim.name, why))
        if node is not None:
            self._recorder.record(events.disruption_blocked("Node", node.name, why))
        self._state.note(await self._writer.update_node_claim(replace(claim, annotations=left)))
        if node is not None:
            await self.release(node)

    async def _close(self, name: str) -> None:
        node = self._state.node(name)
        if node is not None and DISRUPTED_TAINT not in node.taints:
            self._state.note(await self._writer.update_node(replace(node, taints=(*node.taints, DISRUPTED_TAINT))))

    async def _buy(self, launches: Sequence[Launch], snapshot: ClusterSnapshot) -> None:
        """Create a claim for each launch whose pods still wait or that is for none, and say so."""
        buyers, counts = Buyers(snapshot, self._state), _nodes_by_pool(snapshot)
        totals = {name: sum(1 for each in launches if each.node_pool == name) for name in counts}
        for launch in launches:
            pool = snapshot.pool(launch.node_pool)
            waiting = [p.pod for p in launch.pods if buyers.waits(p.pod)]
            if pool is None or (launch.pods and not waiting):
                continue
            claim = await self._create(self._claim_of(launch, pool, snapshot.taken_at_s))
            if not launch.pods:
                self._recorder.record(events.below_floor(pool.name, claim.name, why_launched(launch)))
            before = counts.get(pool.name, 0)
            after = before + totals.get(pool.name, 0)
            for pod in waiting:
                if is_virtual(pod):
                    continue
                self._recorder.record(events.triggered_scale_up(pod, claim.name, pool, before, after))
                # One that leaves its node never goes there itself.
                if not buyers.leaves(pod):
                    self._recorder.record(events.nominated(pod, f"nodeclaim/{claim.name}"))

    async def _relabel(self, relabel: Repartition, now_s: float) -> None:
        """Start the node's initialisation again, under other labels; nothing where a pod has come to use a GPU there.

        Only the claim is written: the lifecycle labels the node, and goes on with it after a restart.
        """
        claim, node = self._state.claim(relabel.claim), self._state.node(relabel.node)
        joined = self._state.cluster_node(relabel.node)
        if claim is None or claim.is_deleting or node is None or joined is None:
            return
        if any(device.used_slots for device in joined.devices):
            return
        promised = written(Promises(_with_cards(relabel.pods), devices=relabel.devices))
        annotations = {**promised, FOLLOW: RESERVE, RELABELLED: instant_text(now_s)}
        changed = replace(
            claim, labels={**claim.labels, **relabel.labels}, annotations={**claim.annotations, **annotations}
        )
        stored = await self._writer.update_node_claim(changed)
        text = "the node is given another configuration of GPU sharing"
        again = stored.with_condition(Condition(INITIALIZED, UNKNOWN, "Relabelled", text, now_s))
        again = again.with_condition(Condition(READY, UNKNOWN, "Relabelled", text, now_s))
        self._state.note(await self._writer.update_node_claim_status(again))
        self._recorder.record(events.relabelled(node.name, why_relabelled(relabel)))

    def _claim_of(self, launch: Launch, pool: NodePool, now_s: float, taken: Collection[str] = ()) -> NodeClaim:
        """The claim of a launch, by a name that is not `taken` and that no other claim has.

        Names have few digits, and in a large fleet one comes up again. A node that waits for another would wait for
        one that does not come in its place.
        """
        made, number = claim_of(launch, pool, now_s), 0
        while made.name in taken or self._is_another(made):
            number += 1
            made = replace(made, name=_name(made.name, pool.name, number))
        return made

    def _is_another(self, made: NodeClaim) -> bool:
        """Whether a claim of that name is there which was made for something else."""
        there = self._state.claim(made.name)
        if there is None:
            return False
        return there.replaces != made.replaces or read(there.annotations).pods != read(made.annotations).pods

    async def _create(self, claim: NodeClaim) -> NodeClaim:
        try:
            created = await self._writer.create_node_claim(claim)
        except AlreadyExists:
            return claim
        self._state.note(created)
        CLAIMS_CREATED.labels(claim.node_pool).inc()
        return created

    async def _delete(self, deletion: Deletion, why: str) -> None:
        """Keep new pods off the node, say why it goes, and delete its claim; the lifecycle drains it."""
        claim = self._state.claim(deletion.claim)
        if claim is None or claim.is_deleting:
            return
        await self._close(deletion.node)
        reason = Condition(DISRUPTION_REASON, TRUE, deletion.reason, why, self._clock.now_s())
        await self.end(await self._writer.update_node_claim_status(claim.with_condition(reason)))

    async def end(self, claim: NodeClaim) -> None:
        """Delete a claim for the reason that it bears."""
        reason, node = claim.condition(DISRUPTION_REASON), self._state.node_of(claim)
        why = f"{reason.reason}: {reason.message}" if reason is not None else "it is needed no more"
        self._recorder.record(events.disruption_terminating("NodeClaim", claim.name, why))
        if node is not None:
            self._recorder.record(events.disruption_terminating("Node", node.name, why))
        try:
            await self._writer.delete_node_claim(claim)
        except NotFound:
            return
        self._state.note(replace(claim, deleted_s=self._clock.now_s()))
        why = reason.reason if reason is not None else ""
        count_disrupted(claim, why, snake_case(why), self._state.pool(claim.node_pool))

    async def release(self, node: Node) -> None:
        """Open a node again that an earlier life tainted and did not come to delete."""
        taints = tuple(taint for taint in node.taints if taint.key != DISRUPTED_TAINT.key)
        self._state.note(await self._writer.update_node(replace(node, taints=taints)))

    async def tell_limit(self, pool: NodePool, message: str) -> None:
        """Set the pool's condition LimitsReached where it says something else; one that never was is not set False."""
        condition = complaint(pool, LIMITS_REACHED, message, "WithinLimits", self._clock.now_s())
        if condition is not None:
            await self._writer.update_node_pool_status(pool.name, None, (condition,))


def _nodes_by_pool(snapshot: ClusterSnapshot) -> dict[str, int]:
    counts = {pool.name: 0 for pool in snapshot.node_pools}
    for node in snapshot.nodes:
        if node.claim is not None and not node.is_deleting:
            counts[node.claim.node_pool] = counts.get(node.claim.node_pool, 0) + 1
    return counts


def claim_of(launch: Launch, pool: NodePool, now_s: float) -> NodeClaim:
    """The NodeClaim that a launch becomes. Slices are not among its requests: kubelet never shows them."""
    planned, offering = _with_cards(launch.pods), launch.offering
    rounds = {placed.pod: placed.round for placed in launch.pods if placed.round}
    # Nodes that are bought for no pod differ by their number in the plan alone.
    text = "|".join([pool.name, offering.instance_type, f"{now_s:.6f}", *(planned or [launch.name])])
    name = _name(text, pool.name)
    annotations = {
        **pool.annotations,
        **stamp(pool),
        **written(Promises(planned, offering, launch.devices, rounds=rounds)),
        FOLLOW: launch.follow,
    }
    if launch.replaces:
        annotations |= {REPLACES: ",".join(launch.replaces), **with_price(launch.price_micro)}
    if launch.is_relaxed:
        annotations[MIN_VALUES_RELAXED] = "true"
    return NodeClaim(
        name=name,
        node_pool=pool.name,
        node_class=pool.node_class,
        requirements=launch.requirements,
        requests=launch.requests,
        taints=(*pool.taints, *launch.taints),
        startup_taints=pool.startup_taints,
        labels={**pool.node_labels, **launch.labels},
        annotations=annotations,
        expire_after_s=pool.expire_after_s,
        termination_grace_period_s=pool.termination_grace_period_s,
    )


def _name(text: str, pool: str, number: int = 0) -> str:
    """A name for a claim of the pool; another one for each `number`."""
    digits = hashlib.sha256((f"{text}|{number}" if number else text).encode()).hexdigest()[:5]
    return f"{pool}-{digits}"


def _with_cards(pods: Iterable[PlacedPod]) -> dict[str, tuple[int, ...]]:
    """The pods by key, those of the first turn first, each with the indexes of its cards."""
    in_turns = sorted(pods, key=lambda placed: placed.turn)
    return {placed.pod: placed.cards for placed in in_turns}
