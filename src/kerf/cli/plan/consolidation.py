"""`kerf plan --consolidate`: the steps in which nodes would go, what each saves and moves, and the fleet's bound."""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass

from kerf.cli.inputs.gaps import unread_budgets
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.render import counted, percent_text, some, table
from kerf.engine.disruption.candidates import moving
from kerf.engine.disruption.causes import Keeping
from kerf.engine.disruption.ending import endings
from kerf.engine.disruption.keeping import Fates
from kerf.engine.disruption.repacking import SETTLES_S
from kerf.engine.draining import Awaited, drain_of, forced_from
from kerf.engine.explain.alike import alike_text, kind_of
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.disruption import explained, going_text, keeping_text
from kerf.engine.explain.draining import forced_text, held_text
from kerf.engine.study.steps import MOST_STEPS, ConsolidationStep
from kerf.engine.supply.pricing import cluster_price
from kerf.engine.world import World
from kerf.model.eviction import Budgets
from kerf.model.instancetypes import price_number, price_text
from kerf.model.plan import Cost, Plan
from kerf.model.snapshot import ClusterNode
from kerf.model.times import duration_text, instant_text

_MOST_NODES = 3


def steps_object(
    found: Sequence[ConsolidationStep], world: World, bound_micro: int | None, more: Sequence[str] = ()
) -> Json:
    """All steps, and what stands against others; `more` are notes of the caller."""
    before, after = _prices(found, world)
    return {
        "apiVersion": API_VERSION,
        "kind": "Consolidation",
        "currency": world.market.currency,
        "perHourBefore": price_number(before),
        "perHourAfter": price_number(after),
        "perHourLowerBound": None if bound_micro is None else price_number(bound_micro),
        "podsMoved": sum(step.moved for step in found),
        "steps": [_object(step) for step in found],
        "forced": [
            {"pod": each.pod.key, "node": node, "deletedFrom": instant_text(each.deleted_from_s or 0)}
            for node, forced in _forced(found, world)
            for each in forced
        ],
        "expiring": [{"node": node, "at": instant_text(at_s)} for node, at_s in _expiring(found, world)],
        "staying": [{"node": each.node, "why": each.text} for each in _staying(found, world)],
        "notes": [*_notes(found, world), *more],
    }


def _object(step: ConsolidationStep) -> Json:
    plan = explained(step.command)
    claims = {each.claim: each.node for each in plan.deletions}
    return {
        "reason": plan.deletions[0].reason,
        "nodes": [
            {
                "node": each.node,
                "nodePool": each.node_pool,
                "launches": list(each.replaced_by),
                "moves": [{"pod": place.pod.pod, "node": place.node} for place in each.moved],
                "why": each.why,
            }
            for each in plan.deletions
        ],
        "launches": [
            {
                "name": each.name,
                "nodePool": each.node_pool,
                "instanceType": each.offering.instance_type,
                "replaces": [claims[name] for name in each.replaces if name in claims],
                "pods": [placed.pod for placed in each.pods],
            }
            for each in plan.launches
        ],
        "podsMoved": step.moved,
        "podsWithoutPlace": list(step.homeless),
        "perHourSaved": price_number(step.before_micro - step.after_micro),
        "perHourAfter": price_number(step.after_micro),
    }


def _prices(found: Sequence[ConsolidationStep], world: World) -> tuple[int, int]:
    if found:
        return found[0].before_micro, found[-1].after_micro
    present = cluster_price(world.snapshot.nodes, world.supply)
    return present, present


@dataclass(frozen=True)
class _Stays:
    """Why a node stays: `cause`, None where it is about to go and `why` says so; so many pods `come` to it meanwhile.

    These are counted beside the others: a reader knows those that are there now.
    """

    node: str
    cause: Keeping | None
    why: str
    come: int = 0

    @property
    def text(self) -> str:
        return self.why + _come(self.come, "it")

    @property
    def kind(self) -> Hashable:
        return self.why if self.cause is None else kind_of(self.cause)


def _staying(found: Sequence[ConsolidationStep], world: World) -> list[_Stays]:
    """Why each node that is there now stays once all steps are done."""
    after = found[-1].after if found else world
    fates = Fates(after, Plan("", Cost(world.market.currency, 0, 0)))
    now = {node.name: len(moving(node)) for node in world.snapshot.nodes}
    left = (node for node in after.snapshot.nodes if node.name in now and node.node is not None)
    ends, budgets, now_s = (
        endings(world.snapshot),
        Budgets(world.snapshot.disruption_budgets),
        world.snapshot.taken_at_s,
    )
    return [
        _Stays(node.name, None, f"{cause_text(ends[node.name])}: {_once(node, budgets, now_s)}")
        if node.name in ends
        else _stays(node, fates, len(moving(node)) - now[node.name])
        for node in left
    ]


def _once(node: ClusterNode, budgets: Budgets, now_s: float) -> str:
    """When a node goes that nothing but its pods keeps."""
    held = held_text(drain_of(node.pods, budgets, now_s), now_s)
    return f"it goes once pods that may not be evicted have ended{held and f' ({held})'}"


def _stays(node: ClusterNode, fates: Fates, come: int) -> _Stays:
    going = fates.going(node)
    if going is not None:
        return _Stays(node.name, None, going_text(going), come)
    cause = fates.keeping(node)
    return _Stays(node.name, cause, keeping_text(cause), come)


def _come(pods: int, where: str) -> str:
    return f" ({counted(pods, 'pod')} {'comes' if pods == 1 else 'come'} to {where} in the steps)" if pods > 0 else ""


def _together(stay: Sequence[_Stays]) -> str:
    """Why nodes stay for causes of one kind."""
    if len(stay) == 1:
        return stay[0].text
    causes = [each.cause for each in stay if each.cause is not None]
    why = alike_text(causes) if causes else stay[0].why
    return why + _come(sum(max(0, each.come) for each in stay), "them")


def _forced(found: Sequence[ConsolidationStep], world: World) -> list[tuple[str, tuple[Awaited, ...]]]:
    """By node that goes, or whose time is over, the pods that would hold its drain for ever, if it begins now."""
    return forced_of(
        {each.node for step in found for each in step.command.deletions} | endings(world.snapshot).keys(), world
    )


def forced_of(names: Collection[str], world: World) -> list[tuple[str, tuple[Awaited, ...]]]:
    """By node of these the pods that would hold its drain for ever, if it begins now and its time is over."""
    nodes = (node for node in world.snapshot.nodes if node.name in names and not node.is_deleting)
    forced = ((node.name, forced_from(node, world.snapshot, world.snapshot.taken_at_s)) for node in nodes)
    return [each for each in forced if each[1]]


def _expiring(found: Sequence[ConsolidationStep], world: World) -> list[tuple[str, float]]:
    """Nodes that are there now, stay, and end at the age that their claims state, each with when, the next first."""
    after = found[-1].after if found else world
    there = {node.name for node in world.snapshot.nodes}
    claims = ((node.name, node.claim) for node in after.snapshot.nodes if node.name in there and node.node is not None)
    ages = ((name, claim.expires_s) for name, claim in claims if claim is not None and not claim.is_deleting)
    coming = ((name, at_s) for name, at_s in ages if at_s is not None and at_s > world.snapshot.taken_at_s)
    return sorted(coming, key=lambda each: (each[1], each[0]))


def _notes(found: Sequence[ConsolidationStep], world: World) -> Iterator[str]:
    """What the steps leave out."""
    if len(found) == MOST_STEPS:
        yield f"{MOST_STEPS} steps are shown; there may be more"
    if any(launch.replaces for step in found for launch in step.command.launches):
        rest = duration_text(int(SETTLES_S))
        yield f"new nodes in the place of others are not replaced for {rest}; what happens to them later is not shown"
    yield from _arrived(found, world)
    yield from unread_budgets(world.snapshot, [each.node for step in found for each in step.command.deletions])
    for name, forced in _forced(found, world)[:_MOST_NODES]:
        yield f"the drain of {name} ends by terminationGracePeriod: {forced_text(forced)}"
    expiring = _expiring(found, world)
    if expiring:
        node, at_s = expiring[0]
        when = f"{node} at {instant_text(at_s)}"
        if len(expiring) == 1:
            yield f"1 node that stays ends by expireAfter: {when}"
        else:
            yield f"{len(expiring)} nodes that stay end by expireAfter: the first is {when}"


def _arrived(found: Sequence[ConsolidationStep], world: World) -> Iterator[str]:
    """That pods which wait count as there, where that lets a node go that stays for them until then."""
    waiting = {pod.key for pod in world.snapshot.pending}
    commands = [step.command for step in found]
    moved = {place.pod.pod for each in commands for deletion in each.deletions for place in deletion.moved}
    moved |= {placed.pod for each in commands for launch in each.launches for placed in launch.pods}
    keys = sorted(moved & waiting)
    if keys:
        waits, them = ("that waits counts", "it") if len(keys) == 1 else ("that wait count", "them")
        yield (
            f"{counted(len(keys), 'pod')} ({some(keys, _MOST_NODES)}) {waits} as there, and a step moves {them} on: "
            f"until then the node stays that is to take {them}, and `kerf plan` has what is done now"
        )


def _bound_text(after_micro: int, bound_micro: int | None) -> str:
    """How far from the bound that is; empty where none is known."""
    if not bound_micro:
        return ""
    over = max(0, after_micro - bound_micro)
    how = f"at most {percent_text(over, bound_micro)} above the cheapest possible" if over else "the cheapest possible"
    return f"; lower bound {price_text(bound_micro)}, so it is {how}"


def steps_lines(
    found: Sequence[ConsolidationStep], world: World, bound_micro: int | None, more: Sequence[str] = ()
) -> Iterator[str]:
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
        before, after = _prices(found, world)
        text = f"cost: {price_text(before)} -> {price_text(after)} {currency}/h, {counted(_moved(found), 'pod')} moved"
        yield f"{text}{_bound_text(after, bound_micro)}"
    else:
        yield "no node would go"
        _, now = _prices(found, world)
        if now:
            yield f"cost: {price_text(now)} {currency}/h{_bound_text(now, bound_micro)}"
    yield from (f"note: {note}" for note in (*_notes(found, world), *more))
    alike: dict[Hashable, list[_Stays]] = {}
    for each in _staying(found, world):
        alike.setdefault(each.kind, []).append(each)
    if alike:
        yield ""
        rows = (
            (some([each.node for each in stay], _MOST_NODES), str(len(stay)), _together(stay))
            for stay in alike.values()
        )
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
        _why(plan) + (f"; {counted(len(step.homeless), 'pod')} of theirs would wait" if step.homeless else ""),
    )


def _why(plan: Plan) -> str:
    """Why the nodes go; of several that go for several causes that of the first, by its name."""
    first = plan.deletions[0]
    return first.why if all(each.why == first.why for each in plan.deletions) else f"{first.node}: {first.why}"
