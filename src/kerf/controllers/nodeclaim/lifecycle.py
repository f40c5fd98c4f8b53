"""Launch, register, initialise, terminate a NodeClaim; a deadline on every stage.

The claim's conditions tell a person the stage it is in, since when, what is missing, and when it will be given up.
Nothing else is remembered: after a restart the next look at claim, node and instance finds the same stage.
"""

from collections.abc import Iterable
from dataclasses import replace

from kerf.cloudprovider import (
    CloudProvider,
    Instance,
    InsufficientCapacity,
    LaunchFailed,
    NodeClassNotReady,
    Withdrawn,
    reasons_text,
)
from kerf.config import Settings
from kerf.controllers.elapsed import Steady, passed_s
from kerf.controllers.market import MarketBook
from kerf.controllers.nodeclaim.following import Following
from kerf.controllers.nodeclaim.shortfall import LessThanPredicted
from kerf.controllers.nodeclaim.stages import (
    boot_log_text,
    consistent_condition,
    deadlines_of,
    message_of,
    waiting_condition,
)
from kerf.controllers.nodeclaim.termination import Termination
from kerf.controllers.nodepool.registration import REGISTRATION_FAILED, RegistrationHealth
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.explain.promises import broken_text
from kerf.engine.lifecycle import (
    ClaimStage,
    Progress,
    Shortfall,
    due_labels,
    is_learnt,
    is_settled,
    progress,
    shape_gaps,
    stage_of,
    timed_out,
)
from kerf.engine.supply.offered import pool_problem
from kerf.model import events
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.nodeclaim import (
    FALSE,
    INITIALIZED,
    INITIALIZED_LABEL,
    LAUNCHED,
    READY,
    REGISTERED,
    REGISTERED_LABEL,
    REGISTERED_LESS,
    TERMINATION_FINALIZER,
    TRUE,
    UNKNOWN,
    UNREGISTERED_TAINT,
    Condition,
    NodeClaim,
)
from kerf.model.nodes import Node
from kerf.model.promises import planned_type, read
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.ports import NotFound
from kerf.state import ClusterState

_MESSAGE_LENGTH = 300
_NODE_CLASS_NOT_READY = "NodeClassNotReady"
_REWORDED_S = 30.0
"""The words of a failure on a claim stay so long."""
_SOON_S = 1.0
"""Look again after so long for what the watch shows sooner."""


class Lifecycle:
    """One claim at a time, from its creation to its end."""

    name = "lifecycle"

    def __init__(
        self,
        state: ClusterState,
        ports: Ports,
        book: MarketBook,
        settings: Settings,
        health: RegistrationHealth | None = None,
    ) -> None:
        self._state, self._ports, self._book = state, ports, book
        self._health = health or RegistrationHealth(state, ports)
        self._deadlines = deadlines_of(settings)
        self._cloud: CloudProvider = ports.cloud
        self._following = Following(state, ports, settings)
        self._termination = Termination(state, ports, book, settings)
        self._less = LessThanPredicted(state, ports, book, self._following, settings)
        self._worded_s: dict[str, float] = {}
        self._steady = Steady(ports.clock)
        # By the uid of a claim when its launch began here (`passed_s`).
        self._begun_s: dict[str, float] = {}
        self._cloud.launches_while(self._is_wanted)

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Claims that change, and those whose node or a pod on it does."""
        followed = self._following.keys(event, previous)
        if isinstance(event, Synced):
            return tuple(claim.name for claim in self._state.claims())
        value = event.value
        if isinstance(event, Deleted) and isinstance(value, NodeClaim):
            self._begun_s.pop(value.uid, None)
        if isinstance(value, NodeClaim):
            return (value.name, *followed)
        if isinstance(value, Node):
            claim = self._state.claim_of(value)
            return (claim.name,) if claim is not None else ()
        return (*self._termination.keys(event), *followed)

    async def reconcile(self, key: str) -> Result:
        """One step further, as far as what is there allows."""
        claim = self._state.claim(key)
        if claim is None:
            self._steady.forget(key)
            return DONE
        if claim.is_deleting:
            return await self._termination.step(claim)
        for broken in read(claim.annotations).broken:
            self._ports.recorder.record(events.promise_not_understood(claim.name, broken_text(broken)))
        node = self._state.node_of(claim)
        if node is not None and node.deleted_s is not None:
            # The node was deleted: its claim and instance go with it, as in Karpenter.
            await self._writer_delete(claim)
            return DONE
        stage = stage_of(claim)
        if stage is None:
            return DONE
        await self._following.hold(claim)
        if stage is ClaimStage.LAUNCHED:
            return await self._launch(claim)
        if stage is ClaimStage.REGISTERED:
            return await self._register(claim)
        return await self._initialise(claim)

    def _standing(self, claim: NodeClaim) -> tuple[Node | None, Progress]:
        """The claim's node as the watch has it now, and where a claim that is not initialised stands."""
        node = self._state.node_of(claim)
        standing = progress(claim, node, self._state.family_of(node, claim), self._deadlines)
        assert standing is not None
        return node, standing

    def _left_s(self, claim: NodeClaim, standing: Progress) -> float:
        """How much of the stage's time is left, whatever the clock is set to meanwhile."""
        return standing.deadline_s - self._steady.now_s(claim.name, (claim.uid, standing.deadline_s))

    def _is_overdue(self, claim: NodeClaim, standing: Progress) -> bool:
        return self._left_s(claim, standing) <= 0

    async def _launch(self, claim: NodeClaim) -> Result:
        _, standing = self._standing(claim)
        if claim.condition(LAUNCHED) is None:
            # Launched once the watch has shown this: during a launch that fails it would end our back-off. Its time
            # begins here: nothing has been tried before, however long the claim has been there by the server's clock.
            # It begins once: where the condition is lost, the claim does not get its time again.
            waited_s = passed_s() - self._begun_s.setdefault(claim.uid, passed_s())
            since_s = self._now() - waited_s
            begun = replace(standing, since_s=since_s, deadline_s=since_s + standing.deadline_s - standing.since_s)
            if waited_s >= standing.deadline_s - standing.since_s:
                return await self._give_up(claim, LAUNCHED, "the cloud has not launched it", begun)
            await self._say(claim, waiting_condition(begun, since_s))
            return Result(_SOON_S)
        if self._is_overdue(claim, standing):
            return await self._give_up(claim, LAUNCHED, "the cloud has not launched it", standing)
        try:
            instance = await self._cloud.create(claim)
        except InsufficientCapacity as error:
            self._book.mark_sold_out(error.reasons)
            self._ports.recorder.record(events.insufficient_capacity(claim.name, str(error)))
            await self._writer_delete(claim)
            return DONE
        except NodeClassNotReady as error:
            self._ports.recorder.record(events.node_class_not_ready(claim.name, str(error)))
            if self._is_bought_from(claim.node_pool):
                # The next plan would buy the same again, and so on: the claim stays, and is tried with back-off.
                await self._say_why_not(claim, _NODE_CLASS_NOT_READY, str(error))
                raise
            await self._writer_delete(claim)
            return DONE
        except LaunchFailed as error:
            await self._say_why_not(claim, error.reason, str(error))
            raise
        except Withdrawn:
            # What has touched the claim meanwhile makes us look again.
            return DONE
        return await self._launched(claim.name, instance)

    def _is_wanted(self, claim: NodeClaim) -> bool:
        """Whether a claim is still to be launched, as the watch has it now."""
        held = self._state.claim(claim.name)
        return held is not None and held.uid == claim.uid and not held.is_deleting

    async def _say_why_not(self, claim: NodeClaim, reason: str, text: str) -> None:
        """The last failure, each once, and seldom: our own write wakes us before the back-off.

        A cloud words the same failure differently (request ids), and two failures can take turns.
        """
        held, text, now_s = claim.condition(LAUNCHED), text[:_MESSAGE_LENGTH], self._now()
        is_said = held is not None and held.reason == reason and _words(held.message) == _words(text)
        if is_said or passed_s() < self._worded_s.get(claim.uid, float("-inf")) + _REWORDED_S:
            return
        kept = {uid: said_s for uid, said_s in self._worded_s.items() if said_s > passed_s() - _REWORDED_S}
        self._worded_s = {**kept, claim.uid: passed_s()}
        await self._save(claim, claim.with_condition(Condition(LAUNCHED, UNKNOWN, reason, text, now_s)))

    def _is_bought_from(self, node_pool: str) -> bool:
        """Whether the next plan may buy from the pool: its NodeClass does not say that it cannot be used."""
        pool, state = self._state.pool(node_pool), self._state
        if pool is None:
            return False
        return pool_problem(pool, state.node_classes(), assume_ready=state.assumes_node_classes) is None

    async def _launched(self, name: str, instance: Instance) -> Result:
        # The call took its time: write on the claim as it is now.
        claim = self._state.claim(name)
        if claim is None:
            return DONE
        if instance.sold_out:
            self._book.mark_sold_out(instance.sold_out)
            text = f"{reasons_text(instance.sold_out)}; launched {instance.offering} instead"
            self._ports.recorder.record(events.insufficient_capacity(name, text))
        labels = {**claim.labels, **instance.labels}
        # One that a user has made is drained like all others.
        finalizers = tuple(dict.fromkeys((*claim.finalizers, TERMINATION_FINALIZER)))
        claim = await self._ports.writer.update_node_claim(replace(claim, labels=labels, finalizers=finalizers))
        done = replace(
            claim, provider_id=instance.provider_id, capacity=instance.capacity, allocatable=instance.allocatable
        )
        done = done.with_condition(Condition(LAUNCHED, TRUE, LAUNCHED, "", self._now()))
        await self._save(claim, done)
        self._ports.recorder.record(events.stage_reached(name, LAUNCHED, f"launched {instance.offering}"))
        return Result(0)

    async def _register(self, claim: NodeClaim) -> Result:
        node, standing = self._standing(claim)
        if node is None:
            if self._is_overdue(claim, standing):
                return await self._give_up(claim, REGISTERED, "its node never registered with the cluster", standing)
            await self._say(claim, self._waiting(claim, standing))
            return Result(self._left_s(claim, standing))
        await self._adopt(claim, node)
        done = replace(claim, node_name=node.name).with_condition(
            Condition(REGISTERED, TRUE, REGISTERED, "", self._now())
        )
        await self._save(claim, done)
        self._ports.recorder.record(events.stage_reached(claim.name, REGISTERED, f"registered as node {node.name}"))
        await self._health.registered(claim.node_pool)
        return Result(0)

    async def _adopt(self, claim: NodeClaim, node: Node) -> None:
        """Give the node what its claim promises; keep pods off it while its plan needs following."""
        taints = [taint for taint in node.taints if taint.key != UNREGISTERED_TAINT.key]
        taints += [taint for taint in (*claim.taints, *claim.startup_taints) if taint not in taints]
        adopted = replace(
            node,
            labels={**node.labels, **claim.labels, REGISTERED_LABEL: "true"},
            annotations={**node.annotations, **claim.annotations},
            taints=tuple(taints),
            finalizers=tuple(dict.fromkeys((*node.finalizers, TERMINATION_FINALIZER))),
        )
        adopted = self._following.cordoned(claim, adopted)
        if adopted != node:
            self._state.note(await self._ports.writer.update_node(adopted))

    async def _initialise(self, claim: NodeClaim) -> Result:
        node = self._state.node_of(claim)
        if node is not None and (labels := due_labels(claim, node)):
            relabelled = self._following.cordoned(claim, replace(node, labels={**node.labels, **labels}))
            self._state.note(await self._ports.writer.update_node(relabelled))
            return Result(0)
        node, standing = self._standing(claim)
        await self._note_observed(claim, node)
        missing = standing.missing
        if missing is not None:
            if node is not None and await self._is_kept(claim, node, standing):
                return Result(0)
            if self._is_overdue(claim, standing):
                return await self._give_up(claim, INITIALIZED, message_of(missing), standing)
            await self._following.close(claim, node)
            await self._say(claim, self._waiting(claim, standing))
            return Result(self._left_s(claim, standing))
        assert node is not None
        if await self._following.let_elders_go_first(claim, node):
            return Result(0)
        again_s = await self._following.follow(claim, node)
        if again_s is not None:
            # Of all of them, not of each: every pod that is bound would cost a write.
            text = "Reserved for the pods it was bought for until they are bound"
            await self._say(claim, Condition(INITIALIZED, UNKNOWN, "Reserved", text, self._now()))
            return Result(again_s)
        node = self._state.node_of(claim) or node
        if node.labels.get(INITIALIZED_LABEL) != "true":
            await self._ports.writer.update_node(replace(node, labels={**node.labels, INITIALIZED_LABEL: "true"}))
        less = claim.annotations.get(REGISTERED_LESS, "")
        done = claim.with_condition(Condition(INITIALIZED, TRUE, INITIALIZED, less, self._now()))
        done = done.with_condition(Condition(READY, TRUE, READY, "", self._now()))
        done = done.with_condition(consistent_condition(shape_gaps(claim, node), self._now()))
        await self._save(claim, done)
        if not less:
            self._book.succeeded(claim.node_pool, planned_type(claim))
        self._ports.recorder.record(events.stage_reached(claim.name, INITIALIZED, f"node {node.name} can take pods"))
        return DONE

    async def _note_observed(self, claim: NodeClaim, node: Node | None) -> None:
        """Keep on the pool what a card of this type really registered, so no restart forgets it."""
        change = self._following.observed_change(claim, node)
        if change is not None:
            await self._ports.writer.annotate_node_pool(claim.node_pool, change)

    async def _is_kept(self, claim: NodeClaim, node: Node, standing: Progress) -> bool:
        """Whether the claim is kept with fewer or smaller cards than were predicted, for pods that can use them.

        Asked when what is missing is seen first, where nothing more is awaited, and when its time is over.
        """
        missing = standing.missing
        if not isinstance(missing, Shortfall):
            return False
        is_news = is_settled(claim, missing) and self._is_news(claim, self._waiting(claim, standing))
        if not (is_news or self._is_overdue(claim, standing)) or not await self._less.keep(claim, node, missing):
            return False
        # As for a claim that is given up: the type must not be bought again for the same pods at once.
        if not is_learnt(missing) or self._is_contradicted(claim):
            self._book.back_off(claim.node_pool, planned_type(claim), message_of(missing))
        return True

    def _waiting(self, claim: NodeClaim, standing: Progress) -> Condition:
        return waiting_condition(standing, self._now(), self._cloud.boot_log(claim))

    async def _give_up(self, claim: NodeClaim, stage: str, why: str, standing: Progress) -> Result:
        """A stage has missed its deadline: the claim goes, and its type backs off unless the next plan knows better."""
        missing = standing.missing
        assert missing is not None
        if not is_learnt(missing) or self._is_contradicted(claim):
            self._book.back_off(claim.node_pool, planned_type(claim), why)
        text, held = why + boot_log_text(missing, self._cloud.boot_log(claim)), claim.condition(stage)
        await self._save(claim, claim.with_condition(Condition(stage, FALSE, timed_out(stage), text, self._now())))
        self._ports.recorder.record(events.stage_overdue(claim.name, stage, text))
        await self._writer_delete(claim)
        if held is None or held.status != FALSE:
            # Once a claim, although the watch may show it again before its deletion.
            await self._note_failure(claim, stage, held, text)
        return DONE

    async def _note_failure(self, claim: NodeClaim, stage: str, held: Condition | None, text: str) -> None:
        """Tell the pool's health that no node of the claim has registered; what becomes of a node later is no such."""
        if stage == LAUNCHED and held is not None and held.message:
            await self._health.failed(claim.node_pool, held.reason, held.message)
        elif stage != INITIALIZED:
            await self._health.failed(claim.node_pool, REGISTRATION_FAILED, text)

    def _is_contradicted(self, claim: NodeClaim) -> bool:
        """Whether another node of the type has initialised with no less than this one was to have.

        The next plan goes by that one, and would buy the same again at once.
        """
        name, promised = claim.labels.get(INSTANCE_TYPE, ""), read(claim.annotations)
        others = (
            other
            for other in self._state.claims()
            if (other.node_pool, other.labels.get(INSTANCE_TYPE, "")) == (claim.node_pool, name)
        )
        return any(
            other.is_true(INITIALIZED)
            and not other.is_deleting
            and REGISTERED_LESS not in other.annotations
            and read(other.annotations).smallest_card_mib >= promised.smallest_card_mib
            for other in others
        )

    async def _writer_delete(self, claim: NodeClaim) -> None:
        try:
            await self._ports.writer.delete_node_claim(claim)
        except NotFound:
            return

    async def _say(self, claim: NodeClaim, condition: Condition) -> None:
        if self._is_news(claim, condition):
            await self._save(claim, claim.with_condition(condition))

    def _is_news(self, claim: NodeClaim, condition: Condition) -> bool:
        held = claim.condition(condition.type)
        said = None if held is None else (held.status, held.reason, held.message)
        return said != (condition.status, condition.reason, condition.message)

    async def _save(self, before: NodeClaim, claim: NodeClaim) -> None:
        if claim != before:
            self._state.note(await self._ports.writer.update_node_claim_status(claim))

    def _now(self) -> float:
        return self._ports.clock.now_s()


def _words(text: str) -> list[str]:
    """A failure without what differs each time: ids and numbers."""
    return [word for word in text.split() if not any(letter.isdigit() for letter in word)]
