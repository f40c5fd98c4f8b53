"""A NodePool: what it may still launch, at which prices, and what stands in its way."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.cli.explain.explanation import Explanation
from kerf.cli.inputs.input import ReadInput
from kerf.cli.plan.json import Json
from kerf.cli.render import counted, some, table
from kerf.engine.buy.limits import Ledger
from kerf.engine.disruption.budgets import Census, holding
from kerf.engine.disruption.causes import Ending, NodePoolBudget, NoneInItsPlace
from kerf.engine.disruption.ending import endings
from kerf.engine.disruption.staticdrift import in_its_place
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.disruption import budgets_text, going_text, in_its_place_text
from kerf.engine.supply.offered import OfferedType, pool_problem
from kerf.engine.supply.pricing import present_price
from kerf.model.instancetypes import price_number, price_text
from kerf.model.nodepool import DRIFTED, EMPTY, UNDERUTILIZED, NodePool
from kerf.model.plan import Plan, Repartition
from kerf.model.quantities import NOTHING, quantity_text
from kerf.model.times import duration_text, instant_text

_MOST_TYPES = 10
_MOST_NODES = 3
_MOST_OVER_CAP = 3


@dataclass(frozen=True)
class _Pool:
    """A pool with all that is asked of it."""

    pool: NodePool
    read: ReadInput
    plan: Plan

    @cached_property
    def problem(self) -> str:
        problem = pool_problem(self.pool, self.read.snapshot.node_classes, assume_ready=True)
        return "" if problem is None else cause_text(problem)

    @cached_property
    def offered_types(self) -> tuple[OfferedType, ...]:
        world = self.read.world
        if self.pool.replicas is not None:
            # It offers pods nothing; its own nodes are bought of these.
            world = world.with_pools((replace(self.pool, replicas=None),))
        return world.supply.by_pool.get(self.pool.name, ())

    @cached_property
    def over_price_cap(self) -> list[OfferedType]:
        """Types of which a price cap leaves offerings out, the cheapest of those first."""
        supply = self.read.world.supply
        mine = [c for c in (*supply.available, *supply.unavailable) if c.pool.name == self.pool.name]
        capped = (c for c in mine if c.over_price_cap)
        return sorted(capped, key=lambda c: (c.over_price_cap[0].price_micro, c.kind.name))

    @cached_property
    def unknown(self) -> list[tuple[str, str]]:
        """Types that the pool names and that cannot be bought, with why."""
        market = self.read.market
        missing = [name for name in sorted(self.pool.named_types) if market.find(name, self.pool.node_class) is None]
        return [(name, market.not_sold.get(name, "unknown instance type")) for name in missing]

    @cached_property
    def limits(self) -> list[tuple[str, int, int, int]]:
        """Resource, limit, in use, added by the plan: as the ledger counts, by which launches are refused."""
        ledger = Ledger.of(self.read.world)
        used, limits = ledger.used(self.pool.name), ledger.limit(self.pool.name) or NOTHING
        for launch in self.plan.launches:
            ledger.charge(launch.node_pool, launch.charge)
        planned = ledger.used(self.pool.name) - used
        return [(name, limits[name], used.get(name, 0), planned.get(name, 0)) for name in sorted(limits)]

    @cached_property
    def nodes(self) -> list[tuple[str, int]]:
        """Nodes of the pool and those on their way, with their prices."""
        held = self.read.snapshot.nodes
        mine = [node for node in held if node.claim is not None and node.claim.node_pool == self.pool.name]
        return [(node.name, present_price(node, self.read.world.supply)) for node in mine]

    @cached_property
    def relabels(self) -> list[Repartition]:
        """Idle nodes of it that are to show their GPUs otherwise."""
        return [relabel for relabel in self.plan.relabels if relabel.node_pool == self.pool.name]

    @cached_property
    def ending(self) -> dict[str, Ending]:
        """Its nodes that go at once whatever budgets say, as `kerf explain node` has it, with why."""
        return {name: cause for name, cause in endings(self.read.snapshot).items() if name in dict(self.nodes)}

    def ending_lines(self) -> Iterator[str]:
        """The same, a line a reason."""
        by_why: dict[str, list[str]] = {}
        for name, cause in sorted(self.ending.items()):
            by_why.setdefault(going_text(cause), []).append(name)
        for why, names in by_why.items():
            yield f"{some(names, _MOST_NODES)} {'goes' if len(names) == 1 else 'go'} at once: {why}"

    @cached_property
    def may_go(self) -> dict[str, int | None]:
        """How many nodes the budgets let go now, by reason; None: any number."""
        census = Census.of(self.read.snapshot)
        reasons = (EMPTY, UNDERUTILIZED, DRIFTED) if self.pool.replicas is None else (DRIFTED,)
        # For drift others come first, for consolidation they may, and an empty node goes without.
        found = {reason: census.allowed(self.pool, reason, are_replaced=reason != EMPTY) for reason in reasons}
        return found if self.not_replaced is None else {**found, DRIFTED: 0}

    @cached_property
    def not_replaced(self) -> NoneInItsPlace | None:
        """Why none of its nodes that drift could have another in its place, where that one comes first."""
        is_at_floor = self.pool.replicas is not None or Census.of(self.read.snapshot).spare(self.pool) == 0
        if not self.nodes or not is_at_floor or self.pool.bounds.invalid_floor:
            return None
        return in_its_place(self.read.world, self.pool)

    def opens_text(self, reason: str) -> str:
        """From when closed budgets let a node go, where a schedule says so; empty for others."""
        held = holding(self.read.snapshot, self.pool, reason)
        if not isinstance(held, NodePoolBudget) or held.opens_s is None:
            return ""
        return f" before {instant_text(held.opens_s)}"

    def held_lines(self) -> Iterator[str]:
        """Which budgets let none of its nodes go now, a line a reason; a share of no nodes is no news."""
        if self.pool.invalid_schedule:
            yield f"lets no node go: {self.pool.invalid_schedule}"
            return
        if self.not_replaced is not None:
            yield f"0 when {DRIFTED}: {in_its_place_text(self.not_replaced, 'their')}"
        for reason in self.may_go:
            held = holding(self.read.snapshot, self.pool, reason)
            if not isinstance(held, NodePoolBudget):
                continue
            if self.nodes or any(each.nodes in ("0", "0%") for each in held.budgets):
                yield f"0 when {reason} by its disruption budgets: {budgets_text(held)}"


def explain_pool(pool: NodePool, read: ReadInput, plan: Plan) -> Explanation:
    """Limits, use, types with prices, problems."""
    asked = _Pool(pool, read, plan)
    return Explanation(_data(asked), tuple(_lines(asked)))


def _data(asked: _Pool) -> Json:
    pool = asked.pool
    return {
        "kind": "NodePool",
        "name": pool.name,
        "weight": pool.weight,
        "problem": asked.problem,
        "nodes": [name for name, _ in asked.nodes],
        "perHour": price_number(sum(price for _, price in asked.nodes)),
        "launches": [launch.name for launch in asked.plan.launches if launch.node_pool == pool.name],
        "limits": [
            {
                "resource": name,
                "limit": quantity_text(name, limit),
                "used": quantity_text(name, used),
                "planned": quantity_text(name, planned),
            }
            for name, limit, used, planned in asked.limits
        ],
        "consolidationPolicy": pool.disruption.policy,
        "consolidateAfter": duration_text(pool.disruption.consolidate_after_s),
        "disruptionsAllowed": asked.may_go,
        "instanceTypes": [_type_object(offered) for offered in asked.offered_types],
        "notOffered": [{"instanceType": name, "why": why} for name, why in asked.unknown],
        "tooDear": [{"instanceType": c.kind.name, "why": _excess(c)} for c in asked.over_price_cap],
        "minNodes": pool.bounds.min_nodes,
        "replicas": pool.replicas,
        "ending": [{"node": name, "why": going_text(cause)} for name, cause in sorted(asked.ending.items())],
        "relabels": [each.node for each in asked.relabels],
    }


def _type_object(offered: OfferedType) -> Json:
    first = offered.offerings[0] if offered.offerings else None
    return {
        "instanceType": offered.kind.name,
        "capacityType": first.capacity_type if first is not None else None,
        "zone": first.zone if first is not None else None,
        "perHour": price_number(offered.price_micro) if first is not None else None,
        "gpus": offered.kind.gpu_count,
    }


def _lines(asked: _Pool) -> Iterator[str]:
    pool, currency = asked.pool, asked.read.market.currency
    price = price_text(sum(price for _, price in asked.nodes))
    bought = sum(1 for launch in asked.plan.launches if launch.node_pool == pool.name)
    yield f"NodePool {pool.name}: {counted(len(asked.nodes), 'node')}, {price} {currency}/h, {bought} to be launched"
    if asked.problem:
        yield f"  takes no nodes: {asked.problem}"
    for name, why in asked.unknown:
        yield f"  {name}: {why}"
    if pool.bounds.invalid_floor:
        yield f"  {pool.bounds.invalid_floor}; none of its nodes is removed until then"
    elif pool.bounds.min_nodes:
        yield f"  keeps {counted(pool.bounds.min_nodes, 'node')}, empty or not"
    yield f"  weight {pool.weight}; {_disruption(asked)}"
    yield from (f"  {line}" for line in (*asked.ending_lines(), *asked.held_lines()))
    for launch in asked.plan.launches:
        if launch.node_pool == pool.name and launch.replaces:
            yield f"  {launch.name} {launch.why}"
    for relabel in asked.relabels:
        yield f"  node {relabel.node} gets another configuration of GPU sharing: {relabel.why}"
    if asked.limits:
        yield ""
        rows = [
            (name, *(quantity_text(name, amount) for amount in (limit, used, planned)))
            for name, limit, used, planned in asked.limits
        ]
        yield from table(("LIMIT", "AT", "USED", "PLANNED"), rows, indent="  ")
    yield ""
    yield from _type_lines(asked)
    for offered in asked.over_price_cap[:_MOST_OVER_CAP]:
        yield f"  {offered.kind.name}: {_excess(offered)}"
    more = len(asked.over_price_cap) - _MOST_OVER_CAP
    if more > 0:
        yield f"  and {counted(more, 'type')} above the cap"


def _excess(offered: OfferedType) -> str:
    excess = offered.pool.bounds.excess(offered.kind, offered.over_price_cap[0].price_micro)
    return "" if excess is None else cause_text(excess)


def _disruption(asked: _Pool) -> str:
    settings = asked.pool.disruption
    after = duration_text(settings.consolidate_after_s)
    budgets = ", ".join(
        f"{'any number' if number is None else number} when {reason}{asked.opens_text(reason)}"
        for reason, number in asked.may_go.items()
    )
    if asked.pool.replicas is not None:
        kept = counted(asked.pool.replicas, "node")
        return f"static: keeps {kept}, in use or not (spec.replicas); may go now: {budgets}"
    return f"{settings.policy} after {after}; may go now: {budgets}"


def _type_lines(asked: _Pool) -> Iterator[str]:
    shown = asked.offered_types[:_MOST_TYPES]
    if not shown:
        yield "  it offers no instance type"
        return
    rows = []
    for offered in shown:
        first = offered.offerings[0] if offered.offerings else None
        where = (first.capacity_type, first.zone) if first is not None else ("sold out", "-")
        gpus = str(offered.kind.gpu_count or "-")
        rows.append((offered.kind.name, *where, price_text(offered.price_micro), gpus))
    yield from table(("TYPE", "CAPACITY", "ZONE", f"{asked.read.market.currency}/H", "GPUS"), rows, indent="  ")
    more = len(asked.offered_types) - len(shown)
    if more:
        yield f"  and {counted(more, 'more type')}"
