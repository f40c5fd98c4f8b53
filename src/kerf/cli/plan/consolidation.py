"""`kerf plan --consolidate`: the steps in which nodes would go, what each saves and moves, and the fleet's bound."""

from collections.abc import Iterator, Sequence

from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.render import counted, percent_text, some, table
from kerf.cli.stages import prospect
from kerf.engine.disruption.keeping import Fates
from kerf.engine.explain.disruption import explained
from kerf.engine.study.steps import MOST_STEPS, ConsolidationStep
from kerf.engine.world import World
from kerf.model.instancetypes import price_number, price_text
from kerf.model.plan import Cost, Plan

_MOST_NODES = 3


def steps_object(found: Sequence[ConsolidationStep], world: World, bound_micro: int | None) -> Json:
    """All steps, and what stands against others."""
    before, after = _prices(found)
    return {
        "apiVersion": API_VERSION,
        "kind": "Consolidation",
        "currency": world.market.currency,
        "perHourBefore": price_number(before),
        "perHourAfter": price_number(after),
        "perHourLowerBound": None if bound_micro is None else price_number(bound_micro),
        "podsMoved": sum(step.moved for step in found),
        "steps": [_object(step) for step in found],
        "staying": [{"node": node, "why": why} for node, why in _staying(found, world).items()],
    }


def _object(step: ConsolidationStep) -> Json:
    plan = explained(step.command)
    return {
        "reason": plan.deletions[0].reason,
        "nodes": [
            {"node": each.node, "nodePool": each.node_pool, "launches": list(each.replaced_by), "why": each.why}
            for each in plan.deletions
        ],
        "launches": [
            {"name": each.name, "nodePool": each.node_pool, "instanceType": each.offering.instance_type}
            for each in plan.launches
        ],
        "podsMoved": step.moved,
        "perHourSaved": price_number(step.before_micro - step.after_micro),
        "perHourAfter": price_number(step.after_micro),
    }


def _prices(found: Sequence[ConsolidationStep]) -> tuple[int, int]:
    return (found[0].before_micro, found[-1].after_micro) if found else (0, 0)


def _staying(found: Sequence[ConsolidationStep], world: World) -> dict[str, str]:
    """By name why each node that is there now stays once all steps are done."""
    after = found[-1].after if found else world
    fates = Fates(after, Plan("", Cost(world.market.currency, 0, 0)))
    there = {node.name for node in world.snapshot.nodes}
    left = (node for node in after.snapshot.nodes if node.name in there and node.node is not None)
    return {node.name: prospect(node, fates).why for node in left}


def steps_lines(found: Sequence[ConsolidationStep], world: World, bound_micro: int | None) -> Iterator[str]:
    """A row a step, then what they come to, then the nodes that stay, those together that do for the same reason."""
    currency = world.market.currency
    if found:
        headers = (
            "STEP",
            "REASON",
            "NODES",
            "NEW NODES",
            "PODS MOVED",
            f"SAVES {currency}/H",
            f"THEN {currency}/H",
            "WHY",
        )
        yield from table(headers, (_row(number, step) for number, step in enumerate(found, 1)))
        yield ""
        before, after = _prices(found)
        text = f"cost: {price_text(before)} -> {price_text(after)} {currency}/h, {counted(_moved(found), 'pod')} moved"
        if bound_micro:
            over = percent_text(max(0, after - bound_micro), bound_micro)
            text += f"; lower bound {price_text(bound_micro)}, so it is at most {over} above the cheapest possible"
        yield text
        if len(found) == MOST_STEPS:
            yield f"note: {MOST_STEPS} steps are shown; there may be more"
    else:
        yield "no node would go"
    by_why: dict[str, list[str]] = {}
    for node, why in _staying(found, world).items():
        by_why.setdefault(why, []).append(node)
    if by_why:
        yield ""
        rows = ((some(nodes, _MOST_NODES), str(len(nodes)), why) for why, nodes in by_why.items())
        yield from table(("STAYING", "NODES", "WHY"), rows)


def _moved(found: Sequence[ConsolidationStep]) -> int:
    return sum(step.moved for step in found)


def _row(number: int, step: ConsolidationStep) -> tuple[str, ...]:
    plan = explained(step.command)
    types: dict[str, int] = {}
    for launch in plan.launches:
        types[launch.offering.instance_type] = types.get(launch.offering.instance_type, 0) + 1
    return (
        str(number),
        plan.deletions[0].reason,
        some([each.node for each in plan.deletions]),
        ", ".join(f"{count} x {name}" for name, count in sorted(types.items())) or "-",
        str(step.moved),
        price_text(step.before_micro - step.after_micro),
        price_text(step.after_micro),
        plan.deletions[0].why,
    )
