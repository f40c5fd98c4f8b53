"""The words for why a node stays or goes: the only place that has them. Those of obstacles are Karpenter's."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from kerf.engine.disruption.causes import (
    Alternative,
    Broken,
    BudgetPrevents,
    DeletedByPlan,
    DisturbsMore,
    DoNotDisrupt,
    Drifts,
    Due,
    EmptyFor,
    FloorCostsLess,
    Going,
    GroupStays,
    HasExpired,
    HeldBudget,
    HoldsBuffer,
    InvalidSchedule,
    Keeping,
    Lacks,
    Leaving,
    LocalVolume,
    MarkedForDeletion,
    MinNodes,
    MissedDeadline,
    NeverConsolidated,
    NoAlternative,
    NodePoolBudget,
    Nominated,
    NoneInItsPlace,
    NoNodeClaim,
    NoNodePool,
    NoPlaceFound,
    NothingCheaper,
    NothingElseHasRoom,
    NotQuietYet,
    Obstacle,
    OfStaticPool,
    OnlyWhenEmpty,
    OthersFirst,
    PodComes,
    PodsFit,
    PriceUnknown,
    ProtectedPod,
    Repacked,
    RepackedInTurn,
    Replaced,
    ReplacementOf,
    ReplacesTooDear,
    RunComes,
    SeveralBudgets,
    Starting,
    SuccessorComes,
    Surplus,
    TakesPods,
    TooMuchBroken,
    Unconsolidatable,
    UnreadableFloor,
)
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.substitution import SPOT_TYPES
from kerf.engine.explain.causes import cause_text, counted, some, words
from kerf.engine.explain.launches import why_launched
from kerf.errors import MOST_SHOWN, cut
from kerf.model.bounds import MIN_NODES, bounds_of
from kerf.model.instancetypes import price_text
from kerf.model.nodeclaim import DO_NOT_DISRUPT, GPUS_HEALTHY
from kerf.model.nodepool import EXPIRED
from kerf.model.plan import Deletion, Plan
from kerf.model.policies import COST
from kerf.model.times import duration_text, instant_text


def obstacle_text(cause: Obstacle) -> str:
    """What forbids to disrupt a node, as events say it."""
    match cause:
        case MarkedForDeletion():
            return "node is deleting or marked for deletion"
        case DoNotDisrupt(is_of_claim):
            whose = " of its NodeClaim" if is_of_claim else ""
            return f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation{whose}'
        case Nominated():
            return "node is nominated for a pending pod"
        case ProtectedPod(pod, until_s):
            until = "" if until_s is None else f" until {instant_text(until_s)}"
            return f'pod {pod} has "{DO_NOT_DISRUPT}" annotation{until}'
        case SeveralBudgets(pod):
            return f"eviction does not support multiple PDBs (pod {pod})"
        case BudgetPrevents(namespace, name):
            return f"pdb {namespace}/{name} prevents pod evictions"
        case GroupStays():
            return _group_text(cause)
        case NoPlaceFound(pods):
            which = "its pod" if pods == 1 else f"one of its {pods} pods at least"
            return f"not all pods would schedule: {which} finds no place on other nodes, nor on what can be bought"
        case _:
            assert_never(cause)


def unconsolidatable_text(left: Unconsolidatable) -> str:
    """Why a node that may go to save money stays, in Karpenter's words where it has them."""
    match left.cause:
        case OnlyWhenEmpty(_, pool):
            return f'NodePool "{pool}" has consolidation policy WhenEmpty, but node is not empty'
        case NothingCheaper():
            return f"Can't replace with a cheaper node: see kerf explain node {left.node}"
        case _:
            return keeping_text(left.cause)


def _group_text(cause: GroupStays) -> str:
    """Which group keeps a node, and what would let it go."""
    are = "is" if cause.here == 1 else "are"
    text = (
        f"its pods belong to {cause.group}, which moves as a whole or not at all: {cause.here} of {cause.there} {are}"
    )
    text += f" here, the others on {some(cause.others)}"
    if cause.missing is not None:
        return f"{text}; {cause.missing} may not go now"
    if cause.pool is None:
        return text
    allowed = "none" if cause.allowed == 0 else f"only {cause.allowed}"
    return (
        f"{text}; {cause.nodes} nodes of NodePool {cause.pool} would go together, and its budgets allow {allowed} now"
    )


def keeping_text(cause: Keeping) -> str:
    """Why a node stays."""
    match cause:
        case NoNodeClaim():
            return "it has no NodeClaim, so it is not Kerf's to remove"
        case NoNodePool(pool):
            return f"its NodePool {pool} does not exist"
        case Starting():
            return "it is still starting; a node may go once it is initialised"
        case RunComes(cron_job):
            return f"it is kept ready for the next run of CronJob {cron_job}"
        case HoldsBuffer(buffer):
            return f"it has buffer pods: CapacityBuffer {buffer} has room there"
        case PodComes(pod):
            return f"pod {pod} is to go on it"
        case SuccessorComes(pod):
            return f"pod {pod} is being made again, and its place is here"
        case ReplacementOf(node):
            return f"it was bought in place of node {node}, whose pods are still to come"
        case LocalVolume(pod, volume):
            return f"pod {pod} has the volume {volume}, which is a part of this node and would stay behind"
        case NothingElseHasRoom(pods, is_spot):
            return f"{_pods(pods)} on it and would find no place on other nodes{SPOT_KEPT if is_spot else ''}"
        case PriceUnknown():
            return "its price is not known, so nothing would be saved"
        case DisturbsMore(pool):
            return (
                f"its pods fit on other nodes, and by consolidationPolicy Balanced of NodePool {pool} their move would "
                "disturb more than it saves"
            )
        case OthersFirst(is_empty):
            if is_empty:
                return "it is empty and may go; the plan takes others first"
            return "its pods fit on other nodes, and it may go; the plan takes another first"
        case Due(why, holds, closed):
            end = "and goes in its turn, once its pods have a place" + (f"; {cause_text(closed)}" if closed else "")
            return f"{due_text(why)}, {end if holds is None else f'and stays: {_hold_text(holds)}'}"
        case TooMuchBroken() | NoneInItsPlace():
            return _hold_text(cause)
        case OfStaticPool(pool, replicas):
            return f"NodePool {pool} is static: it keeps {counted(replicas, 'node')}, in use or not (spec.replicas)"
        case NeverConsolidated() | NotQuietYet() | OnlyWhenEmpty() | UnreadableFloor() | MinNodes():
            return _setting_text(cause)
        case InvalidSchedule() | NodePoolBudget():
            return _setting_text(cause)
        case _:
            return obstacle_text(cause)


def _hold_text(
    cause: Obstacle | TooMuchBroken | InvalidSchedule | NodePoolBudget | MinNodes | UnreadableFloor | NoneInItsPlace,
) -> str:
    """What keeps a node that is to go."""
    match cause:
        case TooMuchBroken(pool, broken, nodes):
            return f"more than a fifth of NodePool {pool} is broken, {broken} of {nodes} nodes"
        case NoneInItsPlace():
            return in_its_place_text(cause, "its")
        case InvalidSchedule() | NodePoolBudget() | MinNodes() | UnreadableFloor():
            return _setting_text(cause)
        case _:
            return obstacle_text(cause)


def in_its_place_text(cause: NoneInItsPlace, whose: str) -> str:
    """Why no node can come in `whose` place: of one node `its`, of those of a pool `their`."""
    goes = "it goes" if whose == "its" else "they go"
    why = cause_text(cause.obstacle)
    keeps = f"keeps {counted(cause.nodes, 'node')} ({MIN_NODES})" if cause.nodes else "is static"
    return f"NodePool {cause.pool} {keeps} and can have no other node in {whose} place before {goes}: {why}"


def due_text(why: Broken | Drifts) -> str:
    """Why a node is to go, as a clause of its own."""
    if isinstance(why, Drifts):
        return drift_text(why.reason)
    if why.condition == GPUS_HEALTHY:
        return f"a GPU of it is broken ({why.condition})"
    return f"its condition {why.condition} has been bad for longer than its provider tolerates"


def _setting_text(
    cause: NeverConsolidated
    | NotQuietYet
    | OnlyWhenEmpty
    | UnreadableFloor
    | MinNodes
    | InvalidSchedule
    | NodePoolBudget,
) -> str:
    """Which setting of its pool keeps a node."""
    match cause:
        case NeverConsolidated(pool):
            return f"consolidateAfter of NodePool {pool} is Never"
        case NotQuietYet(after_s, left_s):
            left = duration_text(int(left_s))
            return (
                f"consolidateAfter is {duration_text(after_s)}: it may go in {left}, unless a pod comes or goes on it"
            )
        case OnlyWhenEmpty(pods, pool):
            return f"{_pods(pods)} on it and consolidationPolicy of NodePool {pool} is WhenEmpty"
        case UnreadableFloor(pool, stated):
            return f"NodePool {pool} lets no node go: {bounds_of({MIN_NODES: stated}).invalid_floor}"
        case MinNodes(pool, nodes):
            return f"NodePool {pool} keeps {nodes} nodes, empty or not ({MIN_NODES})"
        case InvalidSchedule(pool, mistake):
            return f"NodePool {pool} lets no node go: {mistake}"
        case NodePoolBudget(pool, reason, opens_s, going):
            if opens_s is not None:
                until = f"before {instant_text(opens_s)}"
            elif going:
                until = f"while {counted(going, 'node')} of it {'goes or is' if going == 1 else 'go or are'} not ready"
            else:
                until = "at any time"
            text = f"the disruption budgets of NodePool {pool} let no further node go for the reason {reason} {until}"
            return f"{text}: {budgets_text(cause)}" if cause.budgets else text
        case _:
            assert_never(cause)


def budgets_text(cause: NodePoolBudget) -> str:
    """The budgets that let no node go, as their pool states them: `budgets[1] {nodes: "0", reasons: [Empty]}`."""
    return some([_budget_text(each) for each in cause.budgets])


def _budget_text(budget: HeldBudget) -> str:
    which, stated = "" if budget.index is None else f"budgets[{budget.index}] ", [f'nodes: "{budget.nodes}"']
    if budget.reasons:
        stated.append(f"reasons: [{', '.join(budget.reasons)}]")
    if budget.schedule:
        schedule = cut(budget.schedule, MOST_SHOWN)
        stated += [f'schedule: "{schedule}"', f"duration: {duration_text(budget.duration_s)}"]
    return f"{which}{{{', '.join(stated)}}}"


def blocking_budget_text(cause: InvalidSchedule | NodePoolBudget, reason: str) -> str:
    """The same as an event of the pool says it: Karpenter's words, then which budget, and until when."""
    text = f"No allowed disruptions for disruption reason {reason} due to blocking budget"
    if isinstance(cause, InvalidSchedule):
        return f"{text}: {cause.mistake}"
    until = "" if cause.opens_s is None else f", until {instant_text(cause.opens_s)}"
    return f"{text}: {budgets_text(cause)}{until}"


SPOT_KEPT = "; a spot node that costs less may take its place only with --spot-to-spot-consolidation On"
"""What is added where that is in the way of a node that costs less."""
_LACKS = {
    Lacks.SAVING: "it costs no less",
    Lacks.SPOT: "a spot node makes way for spot nodes only with --spot-to-spot-consolidation On",
    Lacks.SPOT_TYPES: f"a spot node makes way for one spot node only where {SPOT_TYPES} types cost less and hold all",
    Lacks.AGAIN: "that is a node of its own kind, for which no pod is moved",
    Lacks.PLAN: "of some of its pods no plan is made beforehand: a window, a request or their scheduler has a say",
    Lacks.TURNS: "pods would fit its cards only in an order, which pods that move do not keep",
    Lacks.DISPLACED: "pods like its own found no place when they were last moved, and are left alone for a while",
    Lacks.GROUP: "its pods belong to a group, which moves as a whole or not at all",
    Lacks.REST: "it came in place of others and is left alone for a while",
    Lacks.WORTH: "the move would throw away more work than it saves while the pods may be expected to run",
    Lacks.BALANCE: "by consolidationPolicy Balanced the move disturbs more than it saves",
    Lacks.PRICE: "prices changed within a day, and by what they are over time nothing is saved",
    Lacks.MARGIN: "what it saves is too little to act on",
    Lacks.ROOM: "pods that wait come first there, or a preference of its pods does not hold there",
    Lacks.NOTHING: "the next look at the whole fleet may take it",
}


def alternative_text(cause: Alternative | NoAlternative, currency: str) -> str:
    """What would take the pods of a node that stays, and why that is not bought."""
    match cause:
        case NoAlternative(pods):
            return f"none: nothing that could be bought takes {'its pod' if pods == 1 else f'its {pods} pods'}"
        case Alternative(_, types, price_micro, now_micro, lacks, nodes):
            named = [f"{number} x {name}" for name, number in types]
            named += [f"room on {'node' if len(nodes) == 1 else 'nodes'} {some(nodes)}"] if nodes else []
            if not named:
                return "none: Kerf makes no plan for its pods before they are made again"
            prices = f"{price_text(price_micro)} instead of {price_text(now_micro)} {currency}/h"
            return f"{' and '.join(named)} for {prices}; {_LACKS[lacks]}"
        case _:
            assert_never(cause)


def going_text(cause: Going) -> str:
    """Why a node goes."""
    match cause:
        case DeletedByPlan(deletion):
            return deletion.why
        case Leaving(reason):
            return f"it is being deleted ({reason})" if reason else "it is being deleted"
        case MissedDeadline(stage, at_s):
            return f"it is given up: its deadline to be {stage} was {instant_text(at_s)}"
        case HasExpired() | Surplus():
            return cause_text(cause)
        case Replaced(claims):
            return f"it goes once {some(claims)} {'is' if len(claims) == 1 else 'are'} up, bought for its pods"
        case _:
            assert_never(cause)


def _pods(number: int) -> str:
    return "1 pod is" if number == 1 else f"{number} pods are"


_DRIFTS: Mapping[str, str] = {
    "NodePoolDrifted": "the template of its NodePool has changed",
    "RequirementsDrifted": "the requirements of its NodePool leave it out",
    "InstanceTypeNotFound": "its instance type is not sold any more",
    EXPIRED: "its expireAfter is over",
}


def drift_text(reason: str) -> str:
    """What a node is not any more; `reason` is that of its condition Drifted."""
    return f"{_DRIFTS.get(reason, 'its NodeClass has changed')} ({reason})"


def removal_text(deletion: Deletion, currency: str) -> str:
    """Why a node is taken away, what that saves, and which other GPUs its pods get."""
    return _removal_text(deletion, currency) + _exchange_text(deletion.exchanges)


def _exchange_text(exchanges: Iterable[tuple[str, str]]) -> str:
    """`; A10G -> T4` for pods that are moved to another model of GPU."""
    named = ", ".join(f"{old} -> {new}" for old, new in exchanges)
    return f"; {named}" if named else ""


def _removal_text(deletion: Deletion, currency: str) -> str:
    saves = f"saves {price_text(deletion.saved_micro)} {currency}/h"
    match deletion.cause:
        case EmptyFor(seconds):
            return f"empty for {duration_text(seconds)}, {saves}"
        case PodsFit(0):
            return f"the room that it keeps is found on other nodes, {saves}"
        case PodsFit(pods):
            return f"{pods} {'pod fits' if pods == 1 else 'pods fit'} on other nodes, {saves}"
        case Repacked(pods, nodes, bought, saved_micro):
            of_nodes = f" of {nodes} nodes" if nodes > 1 else ""
            verb, where = ("cost", f"less on {counted(bought, 'new node')}") if bought else ("fit", "on other nodes")
            what = counted(pods, "pod") if pods else "the room that is kept"
            who = f"{what}{of_nodes} {verb}{'s' if pods <= 1 else ''}"
            return f"{who} {where}, saves {price_text(saved_micro)} {currency}/h"
        case RepackedInTurn(pods, nodes, bought, saved_micro, going):
            where = f"on {counted(bought, 'new node')}" if bought else "on other nodes"
            what = f"{counted(pods, 'pod')} of these cost{'s' if pods == 1 else ''} less {where}"
            in_turn = f"{going} of {nodes} nodes at a time, as budgets allow"
            return f"{in_turn}: {what}, saves {price_text(saved_micro)} {currency}/h in the end"
        case FloorCostsLess(nodes, bought, saved_micro):
            costs = f"{counted(nodes, 'empty node')} of the floor cost{'s' if nodes == 1 else ''} less"
            return f"{costs} as {counted(bought, 'new node')}, saves {price_text(saved_micro)} {currency}/h"
        case Broken() | Drifts():
            return due_text(deletion.cause)
    return cause_text(deletion.cause)


@words.register
def _(cause: ReplacesTooDear) -> str:
    return (
        f"node {cause.node} of NodePool {cause.pool} costs too much: {cause_text(cause.excess)}; "
        f"what is bought for its pods saves {price_text(cause.saved_micro)} {cause.currency}/h"
    )


@words.register
def _(cause: HasExpired) -> str:
    return f"expireAfter {duration_text(cause.after_s)} is over"


@words.register
def _(cause: Surplus) -> str:
    return f"NodePool {cause.pool} states {counted(cause.replicas, 'replica')}"


@words.register
def _(cause: TakesPods) -> str:
    nodes, go = ("node", "goes") if len(cause.nodes) == 1 else ("nodes", "go")
    if not cause.pods:
        return f"comes in the place of {nodes} {some(cause.nodes)}, which then {go}"
    taken = f"takes {counted(cause.pods, 'pod')} of {nodes} {some(cause.nodes)}, which then {go}"
    return taken + _exchange_text(cause.exchanges)


def explained(command: Command) -> Plan:
    """A command as a plan that does nothing else."""
    deletions = tuple(replace(each, why=removal_text(each, command.cost.currency)) for each in command.deletions)
    launches = tuple(replace(each, why=why_launched(each)) for each in command.launches)
    return Plan(COST, command.cost, command.gpus, launches, deletions)
