"""What `kerf verify` does: it reads plan and input, puts the plan to the rules, and says which of them it breaks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kerf.cli.exits import DONE, FAILED
from kerf.cli.inputs.input import Source, read_input, selected
from kerf.cli.render import counted, emit
from kerf.cli.verify.planfile import DeletionRow, DeviceRow, LaunchRow, PlacementRow, PlanFile, micro, read_plan
from kerf.engine.explain.violations import RULES, violation_text
from kerf.engine.world import World
from kerf.model.causes import Cause
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.gpu import DeviceShape, Placement, Slice
from kerf.model.instancetypes import OfferingKey, price_text
from kerf.model.nodepool import EMPTY, UNDERUTILIZED
from kerf.model.plan import Deletion, Eviction, Launch, NodePlacement, PlacedPod, Repartition
from kerf.model.promises import planned_type
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import PlanRule, Violation, violation
from kerf.verify.check import violations
from kerf.verify.proposal import Proposal

API_VERSION = "kerf.dev/v1alpha1"
_CARD = 10_000


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
    found = [*_strange(plan), *violations(waiting), *_bound(plan, made, world)]
    if made.deletions or made.launches_for_going:
        going = Proposal(
            present,
            made.launches_for_going,
            coming=made.placements,
            bought=made.launches_for_waiting,
            deletions=made.deletions,
        )
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


def _bound(plan: PlanFile, made: "_Made", world: World) -> Iterator[Violation]:
    """The figures of the plan: what it costs, its bound by its own prices, and the cards that are paid for."""
    before, after = micro(plan.cost.per_hour_before), micro(plan.cost.per_hour_after)
    bought = sum(launch.price_micro for launch in (*made.launches_for_waiting, *made.launches_for_going))
    saved = sum(deletion.saved_micro for deletion in made.deletions)
    if after != before + bought - saved:
        yield violation(PlanRule.COST, "the plan", price_text(before + bought - saved), price_text(after))
    if plan.cost.per_hour_lower_bound is not None:
        least = micro(plan.cost.per_hour_lower_bound)
        if least > after:
            yield violation(PlanRule.BOUND, "the plan", f"at least the bound, {price_text(least)}", price_text(after))
    if plan.gpus.allocated > plan.gpus.paid:
        expected, got = f"at most {plan.gpus.paid:g} cards", f"{plan.gpus.allocated:g} cards"
        yield violation(PlanRule.ALLOCATED, "the plan", expected, got)
    for each in plan.lower_bound.prices if plan.lower_bound is not None else ():
        kind = world.supply.type_in(each.node_pool, each.instance_type)
        prices = {offering.price_micro for offering in kind.offerings} if kind is not None else set()
        of = f"bound, {each.node_pool}/{each.instance_type}"
        if micro(each.per_hour) not in prices:
            yield violation(PlanRule.BOUND, of, "a price of the type", price_text(micro(each.per_hour)))
        parts = sum(each.parts.values()) + each.cards * each.card
        if parts > each.per_hour + 1e-6:
            yield violation(PlanRule.BOUND, of, f"parts of {each.per_hour:g} at most", f"{parts:g}")


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
