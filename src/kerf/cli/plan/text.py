"""A Plan as text: what is bought and removed and why, the cost, and every pod that has no place.

Rows that say the same of several nodes become one, so a plan of a thousand nodes can be read.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kerf.cli.output.screen import current
from kerf.cli.plan.nodecards import NodeCards
from kerf.cli.render import counted, patch_command, percent_text, some, table
from kerf.engine.explain.causes import room_text
from kerf.engine.world import World
from kerf.model.causes import RoomLimited
from kerf.model.gpu import Slice
from kerf.model.instancetypes import price_text
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Deletion, Eviction, Launch, Patch, Plan, Repartition, Unplaced
from kerf.model.snapshot import ClusterSnapshot


def plan_lines(plan: Plan, world: World, *, is_wide: bool = False) -> Iterator[str]:
    """The lines of `-o table`, and with zones and cards of `-o wide`."""
    snapshot, screen = world.snapshot, current()
    if screen.is_drawn and not plan.is_empty and screen.has_headers:
        from kerf.cli.plan.beforeafter import before_after

        yield from before_after(plan, snapshot, screen)
        yield ""
    rows = [
        *(_relabel_row(relabel, is_wide) for relabel in plan.relabels),
        *_launch_rows(plan.launches, is_wide),
        *(_deletion_row(deletion, snapshot, is_wide) for deletion in plan.deletions),
    ]
    if rows:
        money = f"{plan.cost.currency}/H"
        wide = ("NAME", "ZONE", "CAPACITY", "FOLLOW") if is_wide else ()
        yield from table(("NODEPOOL", "ACTION", "TARGET", *wide, money, "PODS", "WHY"), rows)
        yield ""
    if is_wide:
        yield from _choices(plan)
        yield from _cards(plan, NodeCards(world))
    yield from totals(plan)
    yield ""
    yield from _pods(plan, is_wide)
    if plan.notes:
        yield ""
        yield from (f"note: {note}" for note in plan.notes)


def _launch_rows(launches: Sequence[Launch], is_wide: bool) -> Iterator[tuple[str, ...]]:
    if is_wide:
        yield from map(_wide_row, launches)
        return
    for _, equal in groupby(launches, _row_key):
        same = list(equal)
        first, times = same[0], f"{len(same)} x " if len(same) > 1 else ""
        target = f"{times}{first.offering.instance_type}, {first.offering.capacity_type}"
        pods = sum(len(launch.pods) for launch in same)
        total = price_text(first.price_micro * len(same))
        why = f"each: {first.why}" if times else first.why
        yield (first.node_pool, "launch", target, total, str(pods), why)


def _row_key(launch: Launch) -> tuple[str, str, str, int, int, str]:
    """What a row shows; the zone is not in it."""
    bought = launch.offering
    kind = (launch.node_pool, bought.instance_type, bought.capacity_type)
    return (*kind, launch.price_micro, len(launch.pods), launch.why)


def _wide_row(launch: Launch) -> tuple[str, ...]:
    bought = launch.offering
    target = _with_alternatives(bought.instance_type, launch)
    where = (launch.name, bought.zone, bought.capacity_type, launch.follow)
    return (
        launch.node_pool,
        "launch",
        target,
        *where,
        price_text(launch.price_micro),
        str(len(launch.pods)),
        launch.why,
    )


def _with_alternatives(name: str, launch: Launch) -> str:
    return f"{name} (or {some(launch.alternatives)})" if launch.alternatives else name


def _relabel_row(relabel: Repartition, is_wide: bool) -> tuple[str, ...]:
    wide = ("", "", "", "") if is_wide else ()
    return (relabel.node_pool, "relabel", relabel.node, *wide, "0.00", str(len(relabel.pods)), relabel.why)


def _deletion_row(deletion: Deletion, snapshot: ClusterSnapshot, is_wide: bool) -> tuple[str, ...]:
    node = snapshot.node(deletion.node)
    labels = node.labels if node is not None else {}
    zone, capacity = (labels.get(k, "") for k in ("topology.kubernetes.io/zone", "karpenter.sh/capacity-type"))
    wide = (deletion.claim, zone, capacity, "") if is_wide else ()
    saved = f"-{price_text(deletion.saved_micro)}" if deletion.saved_micro else "0.00"
    action = "replace" if deletion.replaced_by else "delete"
    return (deletion.node_pool, action, deletion.node, *wide, saved, str(len(deletion.moved)), deletion.why)


def _choices(plan: Plan) -> list[str]:
    """What each launch costs a pod, and the same pods on the next best type; equal rows are one."""
    launches = [(launch, launch.runner_up) for launch in plan.launches if launch.runner_up is not None]
    rows = dict.fromkeys(
        (
            launch.node_pool,
            launch.offering.instance_type,
            str(len(launch.pods)),
            price_text(launch.price_micro // max(1, len(launch.pods))),
            f"{f'{other.nodes} x ' if other.nodes > 1 else ''}{other.instance_type}",
            price_text(other.price_micro // max(1, len(launch.pods))),
        )
        for launch, other in launches
    )
    money = f"{plan.cost.currency}/H A POD"
    return [*table(("NODEPOOL", "TYPE", "PODS", money, "NEXT BEST", money), rows), ""] if rows else []


def _cards(plan: Plan, cards: NodeCards) -> list[str]:
    """One row a slice, for every card that this plan puts one on, and for cards it buys idle."""
    rows = []
    for launch in plan.launches:
        slices = [part for pod in launch.pods for part in pod.slices]
        for index, shape in enumerate(launch.devices):
            mine = [part for part in slices if part.device == index]
            card = (launch.name, str(index), shape.model.name, f"{shape.memory_mib} MiB")
            rows += [(*card, p.pod, p.container, _size(p), str(p.cores)) for p in mine] or [(*card, "-", "-", "-", "-")]
    for placement in plan.placements:
        for p in placement.pod.slices:
            held = cards.of(placement.node)[p.device]
            card = (placement.node, str(p.device), held.model, f"{held.memory_mib} MiB")
            rows.append((*card, p.pod, p.container, _size(p), str(p.cores)))
    headers = ("NODE", "GPU", "MODEL", "MEMORY", "POD", "CONTAINER", "SLICE", "CORES")
    return [*table(headers, rows), ""] if rows else []


def _size(part: Slice) -> str:
    """The memory of a slice; a turn of a time-sliced card has none of its own."""
    return f"{part.memory_mib} MiB" if part.memory_mib else part.resource


def totals(plan: Plan) -> Iterator[str]:
    """Cost with its bound, and GPUs with their kerf."""
    cost = plan.cost
    text = f"cost: {price_text(cost.before_micro)} -> {price_text(cost.after_micro)} {cost.currency}/h"
    bound = cost.bound_micro
    if plan.launches and bound is not None and bound == cost.after_micro:
        text += f"; lower bound {price_text(bound)}: this plan is optimal"
    elif plan.launches and bound:
        over = percent_text(cost.after_micro - bound, bound)
        text += f"; lower bound {price_text(bound)}: this plan is at most {over} above the cheapest possible"
    yield text
    if plan.gpus.paid:
        paid, allocated = (
            f"{part / 10_000:.4f}".rstrip("0").rstrip(".") for part in (plan.gpus.paid, plan.gpus.allocated)
        )
        unused = percent_text(plan.gpus.paid - plan.gpus.allocated, plan.gpus.paid)
        yield f"GPUs: {paid} paid, {allocated} allocated, kerf {unused}"


def _pods(plan: Plan, is_wide: bool) -> Iterator[str]:
    # Pods of a node that is replaced have a place now.
    found = [pod.pod for launch in plan.launches if not launch.replaces for pod in launch.pods]
    found += [placement.pod.pod for placement in plan.placements]
    kept = sum(map(is_virtual, found))
    places = f", {counted(kept, 'place')} kept" if kept else ""
    placed = counted(len(found) - kept, "pod")
    yield f"{placed} placed{places}, {len(plan.unplaced)} not" + (":" if plan.unplaced else "")
    yield from unplaced_lines(plan.unplaced)
    if plan.placements and not is_wide:
        yield from _placement_lines(plan)
    elif plan.placements:
        yield from (f"  {p.pod.pod} goes to {p.node}, which is there or on its way" for p in plan.placements)
    yield from map(_eviction_line, plan.evictions)


def _eviction_line(eviction: Eviction) -> str:
    by = "preempted by the scheduler" if eviction.by_scheduler else "evicted by Kerf"
    return f"  {eviction.pod} on {eviction.node} gives its place to {eviction.for_pod}, {by}"


def _placement_lines(plan: Plan) -> Iterator[str]:
    by_node = sorted((placement.node, placement.pod.pod) for placement in plan.placements)
    for node, held in groupby(by_node, lambda pair: pair[0]):
        pods = [pod for _, pod in held]
        yield f"  {some(pods)} {'goes' if len(pods) == 1 else 'go'} to {node}, which is there or on its way"


def unplaced_lines(unplaced: Sequence[Unplaced]) -> Iterator[str]:
    """Pods without a place: those of one reason together, each reason with what would help."""
    groups: dict[tuple[str, str, str, tuple[Patch, ...]], list[Unplaced]] = {}
    for one in unplaced:
        # What keeps room begins with its own name, which the row has: many requests of a tenant are one row.
        shared = room_text(one.cause) if isinstance(one.cause, RoomLimited) else one.reason
        groups.setdefault((one.stage.value, shared, one.hint, one.patches), []).append(one)
    for (stage, shared, hint, _), pods in groups.items():
        reason = pods[0].reason if len(pods) == 1 else shared
        yield f"  {some([one.pod for one in pods])}  {stage}: {reason}"
        places = list(dict.fromkeys(one.place for one in pods if one.place))
        if places:
            yield f"    at: {some(places)}"
        if hint:
            yield f"    hint: {hint}"
        yield from (f"    {patch_command(patch)}" for patch in pods[0].patches)
