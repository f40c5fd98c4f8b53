"""What `kerf verify` does: it reads plan and input, puts the plan to the rules, and says which of them it breaks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kerf.cli.exits import DONE, FAILED
from kerf.cli.inputs.input import Source, read_input, selected
from kerf.cli.render import counted, emit
from kerf.cli.verify.planfile import (
    DeletionRow,
    DeviceRow,
    LaunchRow,
    PlacementRow,
    PlanFile,
    ProofRow,
    micro,
    read_plan,
)
from kerf.engine.explain.violations import RULES, violation_text
from kerf.engine.world import World
from kerf.model.causes import Cause
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.gpu import DeviceShape, Placement, Slice
from kerf.model.instancetypes import InstanceType, OfferingKey, price_text
from kerf.model.nodepool import EMPTY, UNDERUTILIZED
from kerf.model.plan import Deletion, Eviction, Launch, NodePlacement, PlacedPod, Repartition
from kerf.model.promises import planned_type
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import PlanRule, Violation, violation
from kerf.verify.after import After
from kerf.verify.check import violations
from kerf.verify.figures import gpu_use
from kerf.verify.offers import price_of
from kerf.verify.proposal import Proposal

API_VERSION = "kerf.dev/v1alpha1"
_CARD = 10_000
_NEAR = 1e-6
"""Amounts of a proof are rounded to nine decimals."""


def show(path: str, output: str, flags: dict[str, Any]) -> int:
    """Print what is wrong with the plan; the exit code. Raises InputError and ClusterUnreachable."""
    plan, namespace = read_plan(path), None if flags["all_namespaces"] else flags["namespace"]
    whole = read_input(Source.of(flags))
    found = checked(plan, selected(whole, namespace, flags["selector"]).world, whole.world)
    emit(output, lambda: _object(found, plan), lambda: _lines(found, plan))
    return FAILED if found else DONE


def checked(plan: PlanFile, meant: World, present: World) -> tuple[Violation, ...]:
    """Each breach once: of what is decided for pods that wait, and of nodes that go beside it.

    `meant` has only those of the pods that wait which the plan is for, `present` all of them.
    """
    world = meant.with_leaving()
    made = _Made(plan, world)
    waiting = Proposal(
        world,
        made.launches_for_waiting,
        made.placements,
        relabels=made.relabels,
        evictions=made.evictions,
        refused=frozenset(row.pod for row in plan.unplaced),
    )
    going = Proposal(
        present,
        made.launches_for_going,
        coming=made.placements,
        bought=made.launches_for_waiting,
        deletions=made.deletions,
    )
    found = [*_strange(plan), *violations(waiting), *_figures(plan, made, waiting, going), *_bound(plan, world)]
    if going.deletions or going.launches:
        found += violations(going)
    return tuple(dict.fromkeys(found))


def _strange(plan: PlanFile) -> Iterator[Violation]:
    """Slices that are printed for pods which their row does not place."""
    rows = [(each.name, each.pods, each.devices) for each in plan.launches]
    moves = [each for deletion in (*plan.deletions, *plan.replacements) for each in deletion.moves]
    rows += [(f"{each.pod} on node {each.node}", [each.pod], each.devices) for each in (*plan.placements, *moves)]
    for name, pods, devices in rows:
        strange = {part.pod for device in devices for part in device.slices} - {*pods}
        for pod in sorted(strange):
            yield violation(PlanRule.CARD_REQUEST, name, "slices of the pods that it places", f"one of {pod}")


def _figures(plan: PlanFile, made: "_Made", waiting: Proposal, going: Proposal) -> Iterator[Violation]:
    """The figures of the plan: what it costs at the prices of the market, and the cards that are paid for."""
    after, present = After(waiting), After(going)
    if plan.cost.currency != after.world.market.currency:
        yield violation(PlanRule.COST, "the plan", f"amounts in {after.world.market.currency}", plan.cost.currency)
    before, total = micro(plan.cost.per_hour_before), micro(plan.cost.per_hour_after)
    now = sum(price_of(present, node) for node in going.snapshot.nodes if node.claim is not None)
    if before != now:
        yield violation(PlanRule.COST, "the nodes that are there", price_text(now), price_text(before))
    for deletion in made.deletions:
        node = going.snapshot.node(deletion.node)
        price = price_of(present, node) if node is not None else 0
        if deletion.saved_micro != price:
            of, got = f"node {deletion.node}", price_text(deletion.saved_micro)
            yield violation(PlanRule.COST, of, f"its price, {price_text(price)}", got)
    bought = sum(launch.price_micro for launch in (*waiting.launches, *going.launches))
    saved = sum(deletion.saved_micro for deletion in made.deletions)
    if total != before + bought - saved:
        yield violation(PlanRule.COST, "the plan", price_text(before + bought - saved), price_text(total))
    paid, (least, most) = round(plan.gpus.paid * _CARD), _cards_paid(after, present)
    if not least <= paid <= most:
        expected = f"{least / _CARD:g} cards paid for" + (f", or up to {most / _CARD:g}" if most > least else "")
        yield violation(PlanRule.ALLOCATED, "the plan", expected, f"{plan.gpus.paid:g}")
    allocated = _cards_allocated(after)
    if round(plan.gpus.allocated * _CARD) < allocated:
        expected = f"at least {allocated / _CARD:g} cards allocated"
        yield violation(PlanRule.ALLOCATED, "the plan", expected, f"{plan.gpus.allocated:g}")
    if plan.gpus.allocated > plan.gpus.paid:
        expected, got = f"at most {plan.gpus.paid:g} cards", f"{plan.gpus.allocated:g} cards"
        yield violation(PlanRule.ALLOCATED, "the plan", expected, got)


def _cards_paid(after: After, present: After) -> tuple[int, int]:
    """The cards of nodes that stay and of those that are bought, in 1/10000 of one: without those of nodes on their way
    that none has registered yet, and with them."""
    least = gpu_use(present).paid
    for launch in (*after.proposal.launches, *present.proposal.launches):
        least += _cards_of(after.kind(launch.node_pool, launch.offering.instance_type))
    coming = 0
    for node in present.snapshot.nodes:
        if node.claim is not None and not node.devices and not node.is_initialized:
            coming += _cards_of(present.world.market.find(planned_type(node.claim), node.claim.node_class))
    return least, least + coming


def _cards_allocated(after: After) -> int:
    """How much of the cards pods hold that are there or get a place, in 1/10000 of one; DaemonSets may hold more."""
    found = gpu_use(after).allocated
    sites = [(site, len(launches)) for site, launches in after.bought]
    sites += [(site, 1) for site in after.there if site.node is not None and not site.node.devices]
    for site, number in sites:
        cards = {card.index: card for card in site.devices}
        for part in (part for placed, _ in site.placed for part in placed.parts if part.device in cards):
            cards[part.device] = cards[part.device].taking(part.memory_mib, part.cores)
        kind = after.kind(site.pool, site.labels.get(INSTANCE_TYPE, ""))
        for index, card in cards.items():
            found += number * card.allocated_percent_points * (kind.eighths_of(index) if kind is not None else 8) // 8
    return found


def _cards_of(kind: InstanceType | None) -> int:
    return sum(shape.eighths * _CARD // 8 for shape in kind.devices) if kind is not None else 0


def _bound(plan: PlanFile, world: World) -> Iterator[Violation]:
    """Whether the bound is what its proof says, and the proof what the plan and its own prices allow.

    What nodes cost is never less than what pods are worth, so no pod is worth more than the parts of a node that holds
    it. That its prices are the best ones is not asked.
    """
    before, total = micro(plan.cost.per_hour_before), micro(plan.cost.per_hour_after)
    stated, proof = plan.cost.per_hour_lower_bound, plan.lower_bound
    least = micro(stated) if stated is not None else None
    if least is not None and least > total:
        yield violation(PlanRule.BOUND, "the plan", f"at least the bound, {price_text(least)}", price_text(total))
    if proof is None:
        if least is not None and least > before:
            yield violation(PlanRule.BOUND, "the bound", "prices that prove it", "none")
        return
    if least is None or least != before + micro(proof.per_hour):
        expected = price_text(before + micro(proof.per_hour))
        yield violation(PlanRule.BOUND, "the bound", expected, "none" if least is None else price_text(least))
    if proof.worth and not (proof.prices or proof.whole_nodes):
        yield violation(PlanRule.BOUND, "the bound", "prices that prove it", "none")
    yield from _worths(plan, proof)
    for each in proof.prices:
        kind = world.supply.type_in(each.node_pool, each.instance_type)
        prices = {offering.price_micro for offering in kind.offerings} if kind is not None else set()
        of = f"bound, {each.node_pool}/{each.instance_type}"
        if micro(each.per_hour) not in prices:
            yield violation(PlanRule.BOUND, of, "a price of the type", price_text(micro(each.per_hour)))
        if each.total > each.per_hour + _NEAR:
            yield violation(PlanRule.BOUND, of, f"parts of {each.per_hour:g} at most", f"{each.total:g}")


def _worths(plan: PlanFile, proof: ProofRow) -> Iterator[Violation]:
    """Whether pods are worth as much as the bound, and none is worth more than the node that the plan has it on."""
    worth = sum(each.pods * each.per_hour for each in proof.worth)
    # Nodes are whole: what they cost is a multiple of what divides their prices, which is no more than the price of
    # any that is of use.
    most = max(proof.least_node_per_hour, worth + proof.least_node_per_hour)
    if proof.per_hour > most + _NEAR:
        yield violation(
            PlanRule.BOUND, "the bound", f"at most what its pods are worth, {most:g}", f"{proof.per_hour:g}"
        )
    parts: dict[tuple[str, str], float] = {}
    for price in proof.prices:
        kind = (price.node_pool, price.instance_type)
        parts[kind] = max(parts.get(kind, 0), price.total)
    whole = {(each.node_pool, each.instance_type) for each in proof.whole_nodes}
    launches = {pod: launch for launch in plan.launches for pod in launch.pods}
    placed = sum(len(launch.pods) for launch in plan.launches)
    if sum(each.pods for each in proof.worth) > placed:
        number = sum(each.pods for each in proof.worth)
        yield violation(PlanRule.BOUND, "the bound", f"at most the {placed} pods that nodes are bought for", number)
    for each in proof.worth:
        launch = launches.get(each.pod)
        if launch is None:
            yield violation(PlanRule.BOUND, f"bound, {each.pod}", "a pod that a node is bought for", "another")
            continue
        kind = (launch.node_pool, launch.instance_type)
        most = launch.per_hour if kind in whole else parts.get(kind, launch.per_hour)
        if not 0 <= each.per_hour <= most + _NEAR:
            of = f"bound, {each.pod} on {launch.name}"
            yield violation(PlanRule.BOUND, of, f"at most its node's parts, {most:g}", f"{each.per_hour:g}")


@dataclass(frozen=True, eq=False)
class _Made:
    """The plan of the file as the values of a decision."""

    plan: PlanFile
    world: World

    @property
    def snapshot(self) -> ClusterSnapshot:
        """The cluster that it was made for."""
        return self.world.snapshot

    @cached_property
    def launches_for_waiting(self) -> tuple[Launch, ...]:
        """Those that are bought for pods that wait, or for none."""
        return tuple(_launch(row, self.world) for row in self.plan.launches if not row.replaces)

    @cached_property
    def launches_for_going(self) -> tuple[Launch, ...]:
        """Those that come in the place of nodes."""
        return tuple(_launch(row, self.world) for row in self.plan.launches if row.replaces)

    @cached_property
    def placements(self) -> tuple[NodePlacement, ...]:
        """Pods on nodes that are there."""
        return tuple(map(_placement, self.plan.placements))

    @cached_property
    def relabels(self) -> tuple[Repartition, ...]:
        """Idle nodes with another configuration, with the cards that their types have."""
        found = []
        for row in self.plan.relabels:
            node = self.snapshot.node(row.node)
            claim = node.claim.name if node is not None and node.claim is not None else ""
            pods = tuple(PlacedPod(pod) for pod in row.pods)
            found.append(Repartition(row.node, claim, row.node_pool, row.labels, self._cards_of(row.node), pods))
        return tuple(found)

    def _cards_of(self, name: str) -> tuple[DeviceShape, ...]:
        node = self.snapshot.node(name)
        claim = node.claim if node is not None else None
        kind = self.world.market.find(planned_type(claim), claim.node_class) if claim is not None else None
        return kind.devices if kind is not None else ()

    @cached_property
    def evictions(self) -> tuple[Eviction, ...]:
        """Pods that make room."""
        return tuple(Eviction(row.pod, row.node, row.for_pod, row.by == "scheduler") for row in self.plan.evictions)

    @cached_property
    def deletions(self) -> tuple[Deletion, ...]:
        """Nodes that go."""
        return tuple(self._deletion(row) for row in (*self.plan.deletions, *self.plan.replacements))

    def _deletion(self, row: DeletionRow) -> Deletion:
        node = self.snapshot.node(row.node)
        claim = node.claim.name if node is not None and node.claim is not None else ""
        moved = tuple(map(_placement, row.moves))
        reason = row.reason or (UNDERUTILIZED if moved or row.launches else EMPTY)
        saved, launches = micro(row.per_hour_saved), tuple(row.launches)
        return Deletion(row.node, claim, row.node_pool, saved, reason, Cause(), moved, replaced_by=launches)


def _offering(row: LaunchRow, world: World) -> OfferingKey:
    """What is bought; of several that differ in their reservation the one at that price."""
    kind = world.supply.type_in(row.node_pool, row.instance_type)
    wanted = (row.zone, row.capacity_type, micro(row.per_hour))
    same = [
        offering
        for offering in (kind.offerings if kind is not None else ())
        if (offering.zone, offering.capacity_type, offering.price_micro) == wanted
    ]
    plain = OfferingKey(row.instance_type, row.zone, row.capacity_type)
    return same[0].key_of(row.instance_type) if same else plain


def _launch(row: LaunchRow, world: World) -> Launch:
    types = (row.instance_type, *row.alternatives)
    asked = [(INSTANCE_TYPE, types), (CAPACITY_TYPE, (row.capacity_type,)), (ZONE, (row.zone,))]
    slices = _slices(row.devices)
    return Launch(
        row.name,
        row.node_pool,
        _offering(row, world),
        micro(row.per_hour),
        tuple(PlacedPod(pod, tuple(slices.get(pod, ()))) for pod in row.pods),
        Requirements(Requirement.of(key, "In", values) for key, values in asked),
        alternatives=tuple(row.alternatives),
        labels=row.labels,
        replaces=tuple(row.replaces),
    )


def _placement(row: PlacementRow) -> NodePlacement:
    return NodePlacement(PlacedPod(row.pod, tuple(_slices(row.devices).get(row.pod, ()))), row.node)


def _slices(devices: Sequence[DeviceRow]) -> Mapping[str, list[Slice]]:
    found: dict[str, list[Slice]] = {}
    for device in devices:
        for row in device.slices:
            place = Placement(row.profile, row.start, 0) if row.profile else None
            part = Slice(
                row.pod, row.container, device.index, "", row.memory_mib, row.cores, place, resource=row.resource
            )
            found.setdefault(row.pod, []).append(part)
    return found


def _object(found: Sequence[Violation], plan: PlanFile) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Verification",
        "holds": not found,
        "launches": len(plan.launches),
        "placements": len(plan.placements),
        "deletions": len(plan.deletions) + len(plan.replacements),
        "breaches": [
            {"rule": each.rule.value, "object": each.object, "expected": each.expected, "got": each.got}
            for each in found
        ],
    }


def _lines(found: Sequence[Violation], plan: PlanFile) -> Iterable[str]:
    what = ", ".join(
        (
            counted(len(plan.launches), "node") + " to buy",
            counted(len(plan.placements), "placement"),
            counted(len(plan.deletions) + len(plan.replacements), "node") + " to delete",
        )
    )
    if not found:
        return [f"the plan holds: {what}"]
    rules = list(dict.fromkeys(each.rule for each in found))
    lines = [f"the plan breaks {counted(len(rules), 'rule')}: {what}", ""]
    for rule in rules:
        lines.append(f"{rule}: {RULES[rule]}")
        lines += [f"  {violation_text(each).partition(': ')[2]}" for each in found if each.rule == rule]
    return lines
