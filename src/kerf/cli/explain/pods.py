"""Pods and the workloads that make them: where each goes, or why it has no place."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from kerf.cli.cards import Card, cards_of
from kerf.cli.explain.draining import Draining
from kerf.cli.explain.explanation import Explanation
from kerf.cli.inputs.input import ReadInput
from kerf.cli.plan.json import Json, launch_object, placement_object, unplaced_object
from kerf.cli.plan.nodecards import NodeCards
from kerf.cli.render import counted, patch_command, table
from kerf.engine.decision import Decision
from kerf.engine.disruption.keeping import Fates
from kerf.engine.draining import forced_from
from kerf.engine.explain.causes import misfit_text, missing_text
from kerf.engine.explain.counts import NodeCounts, NodeReasons
from kerf.engine.explain.draining import forced_text
from kerf.engine.explain.volumes import claim_lines
from kerf.model.gpu import Slice
from kerf.model.instancetypes import price_text
from kerf.model.plan import Launch, NodePlacement, Plan, Stage, Unplaced
from kerf.model.pods import Pod

RUNNING, ENDED, ENDING, NEW_NODE, ON_NODE, NO_PLACE, NOMINATED, DAEMON = (
    "running",
    "ended",
    "ending",
    "new-node",
    "on-node",
    "no-place",
    "nominated",
    "daemon",
)
"""Verdicts on a pod."""


class PodAnswers:
    """A decision and its plan, asked by pod."""

    def __init__(self, read: ReadInput, decision: Decision, plan: Plan) -> None:
        self.read, self.decision, self.plan = read, decision, plan
        self._cards: dict[str, tuple[Card, ...]] = {}

    @cached_property
    def fates(self) -> Fates:
        """What becomes of the nodes."""
        return Fates(self.read.world, self.plan)

    @cached_property
    def launches(self) -> dict[str, Launch]:
        """The node that is bought for a pod."""
        return {placed.pod: launch for launch in self.plan.launches for placed in launch.pods}

    @cached_property
    def placements(self) -> dict[str, NodePlacement]:
        """The node of the cluster on which a pod will be."""
        return {placement.pod.pod: placement for placement in self.plan.placements}

    @cached_property
    def unplaced(self) -> dict[str, Unplaced]:
        """Why a pod has no place."""
        return {unplaced.pod: unplaced for unplaced in self.plan.unplaced}

    @cached_property
    def _node_reasons(self) -> NodeReasons:
        return NodeReasons(self.decision)

    def counts(self, pod: Pod) -> NodeCounts | None:
        """Why the nodes that there are refuse a pod, by reason; None where that is not what keeps it waiting."""
        judged = self.unplaced[pod.key].stage not in (Stage.INVALID, Stage.HELD, Stage.SCHEDULER, Stage.WINDOWS)
        return self._node_reasons.of(pod) if judged else None

    def verdict(self, pod: Pod) -> str:
        """One of the words above."""
        if pod.is_ended:
            return ENDED
        if pod.node_name:
            return RUNNING
        if pod.deleted_s is not None:
            return ENDING
        found = ((self.launches, NEW_NODE), (self.placements, ON_NODE), (self.unplaced, NO_PLACE))
        has_room = bool(pod.nominated_to) and self.read.snapshot.node(pod.nominated_to) is not None
        return next((verdict for pods, verdict in found if pod.key in pods), NOMINATED if has_room else DAEMON)

    def home_of(self, key: str) -> str | None:
        """The node on which the plan has room for a pod, or the one that is bought for it; None where it has none."""
        placement, launch = self.placements.get(key), self.launches.get(key)
        if placement is not None:
            return f"node {placement.node}"
        return None if launch is None else f"a new node, {launch.name}: {launch.offering}"

    def cards(self, pod: Pod) -> list[Card]:
        """The cards of its node that a running pod holds a part of, with its part alone."""
        held = []
        for card in self._cards_of_node(pod.node_name):
            mine = tuple(holder for holder in card.holders if holder.pod == pod.key)
            if mine:
                held.append(Card(card.node, card.device, mine))
        return held

    def _cards_of_node(self, name: str) -> tuple[Card, ...]:
        if name not in self._cards:
            node = self.read.snapshot.node(name)
            self._cards[name] = () if node is None else cards_of(node, self.read.snapshot)
        return self._cards[name]


def explain_pods(keys: Iterable[str], answers: PodAnswers) -> list[Explanation]:
    """One answer a pod, in the order of `keys`."""
    return [_pod(answers.read.pods_by_key[key], answers) for key in keys]


def _pod(pod: Pod, answers: PodAnswers) -> Explanation:
    """Its verdict, then what its volumes are; nothing of those where it has none."""
    found, claims = _verdict(pod, answers), claim_lines(pod, answers.read.snapshot)
    if not claims:
        return found
    return replace(
        found, data={**found.data, "claims": claims}, lines=(*found.lines, *(f"  {each}" for each in claims))
    )


def _verdict(pod: Pod, answers: PodAnswers) -> Explanation:
    verdict = answers.verdict(pod)
    data: Json = {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "verdict": verdict}
    title = f"Pod {pod.key}"
    if verdict == NEW_NODE:
        launch = answers.launches[pod.key]
        return Explanation({**data, "launch": launch_object(launch)}, tuple(_launch_lines(title, pod, launch)))
    if verdict == ON_NODE:
        placement = answers.placements[pod.key]
        data["placement"] = placement_object(placement, NodeCards(answers.read.world))
        lines = [f"{title} goes to {placement.node}, which is there or on its way", *_slices(placement.pod.slices)]
        for relabel in answers.plan.relabels:
            if relabel.node == placement.node:
                lines.append(f"  the node gets another configuration of GPU sharing first: {relabel.why}")
        return Explanation(data, tuple(lines))
    if verdict == NO_PLACE:
        unplaced, counts = answers.unplaced[pod.key], answers.counts(pod)
        data["unplaced"] = unplaced_object(unplaced)
        if counts is not None:
            data["nodes"] = {"count": counts.nodes, "reasons": dict(counts.reasons), "ofPod": counts.of_pod}
        return Explanation(data, tuple(no_place(title, unplaced, counts)), True)
    if verdict == RUNNING:
        return _running(pod, data, answers)
    if verdict == NOMINATED:
        text = f"{title} has its room on node {pod.nominated_to}: its scheduler has nominated it there"
        why = (
            "it is bound once the pods that it replaces have ended and its volumes are there; nothing is bought for it"
        )
        return Explanation({**data, "node": pod.nominated_to}, (text, f"  {why}"))
    texts = {
        ENDED: f"has ended ({pod.phase}) and holds nothing",
        ENDING: "is being deleted and waits for no node",
        DAEMON: "belongs to a DaemonSet or to kubelet: no node is ever bought for it",
    }
    return Explanation(data, (f"{title} {texts[verdict]}",))


def _launch_lines(title: str, pod: Pod, launch: Launch) -> Iterator[str]:
    bought = launch.offering
    yield f"{title} gets a new node, {launch.name}: {bought}"
    pods = counted(len(launch.pods), "pod")
    yield f"  NodePool {launch.node_pool}, {price_text(launch.price_micro)} an hour, for {pods}"
    yield f"  why: {launch.why}"
    yield from _slices(next(placed.slices for placed in launch.pods if placed.pod == pod.key))


def _slices(slices: Sequence[Slice]) -> Iterator[str]:
    for part in slices:
        yield f"  GPU {part.device}: {part.memory_mib} MiB and {part.cores} cores for container {part.container}"


def no_place(title: str, unplaced: Unplaced, counts: NodeCounts | None = None) -> Iterator[str]:
    """Everything that is known of a pod without a place; `counts` are the reasons of the nodes that there are."""
    yield f"{title} has no place, stage {unplaced.stage.value}"
    yield f"  {unplaced.reason}"
    if unplaced.place:
        yield f"  at: {unplaced.place}"
    if counts is not None:
        yield f"  {counts}"
    if unplaced.misfits:
        yield ""
        rows = [(str(m.target), m.stage.value, missing_text(m) or "-", misfit_text(m)) for m in unplaced.misfits]
        yield from table(("TARGET", "STAGE", "MISSING", "REASON"), rows, indent="  ")
        yield ""
    if unplaced.hint:
        yield f"  hint: {unplaced.hint}"
    yield from (f"  {patch_command(patch)}" for patch in unplaced.patches)


def _running(pod: Pod, data: Json, answers: PodAnswers) -> Explanation:
    held = [(card, holder) for card in answers.cards(pod) for holder in card.holders]
    data["node"] = pod.node_name
    data["devices"] = [
        {
            "index": card.device.index,
            "id": card.device.id,
            "model": card.device.model,
            "memoryMiB": holder.memory_mib,
            "cores": holder.cores,
            "slots": holder.slots,
        }
        for card, holder in held
    ]
    by_name = "; its manifest names the node (nodeName), and no scheduler sees it" if pod.names_its_node else ""
    lines = [f"Pod {pod.key} is on node {pod.node_name}{by_name}"]
    lines += [
        f"  GPU {card.device.index} ({card.device.model or 'model unknown'}, {card.device.id}): "
        f"{holder.memory_mib} of {card.device.memory_mib} MiB, {holder.cores} of {card.device.cores} cores"
        for card, holder in held
    ]
    node = answers.read.snapshot.node(pod.node_name)
    if node is not None:
        drain, home = Draining(node, answers.read.snapshot), answers.home_of(pod.key)
        data["draining"], data["successor"] = drain.pod_data(pod.key), home
        lines += drain.pod_lines(pod.key)
        goes = not node.is_deleting and answers.fates.going(node) is not None
        forced = forced_from(node, answers.read.snapshot, answers.read.snapshot.taken_at_s) if goes else ()
        lines += [f"  its node goes: {forced_text([each])}" for each in forced if each.pod.key == pod.key]
        lines += [f"  made again, it goes to {home}"] if home is not None else []
    return Explanation(data, tuple(lines))
