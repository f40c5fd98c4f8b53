"""Nodes and claims: the stage one is in and what it lacks, who is on it, and why it stays or goes."""

from collections.abc import Iterator

from kerf.cli.cards import cards_of
from kerf.cli.explain.draining import Draining
from kerf.cli.explain.explanation import Explanation
from kerf.cli.explain.pods import PodAnswers
from kerf.cli.inputs.input import ReadInput
from kerf.cli.inputs.naming import WORKLOADS
from kerf.cli.inventory import card_object, created_s, holder_text, pool_of
from kerf.cli.plan.json import Json
from kerf.cli.prices import price_cell, price_of
from kerf.cli.render import counted, some, table
from kerf.cli.stages import Prospect, age_text, missing, prospect, stage_of
from kerf.engine.disruption.budgets import Census
from kerf.engine.disruption.causes import Alternative
from kerf.engine.draining import Awaited, forced_from
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.disruption import alternative_text
from kerf.engine.explain.draining import forced_text
from kerf.engine.explain.promises import broken_text
from kerf.engine.lifecycle import timed_out
from kerf.engine.study.usage.overload import MEASURED, crowd_text, crowds, load_of, load_text
from kerf.engine.supply.caps import excess
from kerf.model import promises
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kerf.model.gpu import DeviceState
from kerf.model.instancetypes import price_number
from kerf.model.nodepool import DRIFTED, EMPTY, REPLACE_EXPIRED, UNDERUTILIZED
from kerf.model.snapshot import ClusterNode
from kerf.model.times import duration_text, instant_text

_MOST_PODS = 5
_MOST_CROWDS = 3
_BEGINS = {"now": "if its drain begins now", "expired": "once it has expired"}


def explain_node(kind: str, node: ClusterNode, answers: PodAnswers) -> Explanation:
    """A Node or a NodeClaim; both are shown with all that is known of the pair."""
    read = answers.read
    future, load = prospect(node, answers.fates), load_of(node, read.usage)
    coming = [placement.pod.pod for placement in answers.plan.placements if placement.node == node.name]
    over_cap = excess(node, read.snapshot.pool(pool_of(node)), read.world.supply)
    name = node.claim.name if kind == "NodeClaim" and node.claim is not None else node.name
    data: Json = {
        "kind": kind,
        "name": name,
        "node": node.node.name if node.node is not None else None,
        "nodeClaim": node.claim.name if node.claim is not None else None,
        "nodePool": pool_of(node),
        "instanceType": node.labels.get(INSTANCE_TYPE, ""),
        "capacityType": node.labels.get(CAPACITY_TYPE, ""),
        "zone": node.labels.get(ZONE, ""),
        "perHour": price_of(node, read),
        "priceCap": None if over_cap is None else cause_text(over_cap),
        "stage": stage_of(node),
        "missing": _missing(node, read),
        "conditions": _conditions(node),
        "pods": [pod.key for pod in node.pods],
        "coming": coming,
        "devices": [card_object(card) for card in cards_of(node, read.snapshot)],
        "problem": cause_text(node.problem) if node.problem is not None else "",
        "unreadable": _unreadable(node),
        "requestedPercent": None if load is None else {name: load.requested_percent(name) for name in MEASURED},
        "usedPercent": None if load is None else {name: load.used_percent(name) for name in MEASURED},
        "overloaded": [] if load is None else list(load.overloaded()),
        "verdict": future.verdict,
        "why": future.why,
        "alternative": _alternative(node, answers),
        "expiresAt": None if _expires_s(node) is None else instant_text(_expires_s(node) or 0),
        "quietSecondsLeft": None if future.quiet_s is None else int(future.quiet_s),
        "disruptionsAllowed": _budgets(node, read),
        "draining": Draining(node, read.snapshot).data(),
        "forced": [
            {"pod": each.pod.key, "drainBegins": begins, "deletedFrom": instant_text(each.deleted_from_s or 0)}
            for begins, forced in _forced(node, answers).items()
            for each in forced
        ],
    }
    return Explanation(data, tuple(_lines(f"{kind} {name}", node, answers, future, coming)))


def _unreadable(node: ClusterNode) -> list[str]:
    """The annotations in which the claim promises something, and which have another form than Kerf writes."""
    return [broken_text(broken) for broken in promises.read(node.claim.annotations).broken] if node.claim else []


def _expires_s(node: ClusterNode) -> float | None:
    return None if node.claim is None or node.is_deleting else node.claim.expires_s


def _expiry_text(node: ClusterNode, read: ReadInput) -> str:
    """When it is as old as its claim states, and what happens then; empty where that is past or never comes."""
    at_s, claim = _expires_s(node), node.claim
    if at_s is None or claim is None or at_s <= read.snapshot.taken_at_s:
        return ""
    pool = read.snapshot.pool(claim.node_pool)
    after, left = duration_text(claim.expire_after_s), age_text(at_s - read.snapshot.taken_at_s)
    if pool is not None and pool.replaces_expired:
        then = f"then it has drifted ({REPLACE_EXPIRED}), and goes once others are up in its place"
    else:
        then = "then it goes, and no budget holds that back"
    return f"expires at {instant_text(at_s)}, in {left} (expireAfter {after}): {then}"


def _forced(node: ClusterNode, answers: PodAnswers) -> dict[str, tuple[Awaited, ...]]:
    """The pods that would hold its drain for ever, and that the end of the drain deletes, by when it begins."""
    snapshot, expires_s = answers.read.snapshot, _expires_s(node)
    goes = not node.is_deleting and answers.fates.going(node) is not None
    is_to_expire = expires_s is not None and expires_s > snapshot.taken_at_s
    return {
        "now": forced_from(node, snapshot, snapshot.taken_at_s) if goes else (),
        "expired": forced_from(node, snapshot, expires_s) if expires_s is not None and is_to_expire else (),
    }


def _missing(node: ClusterNode, read: ReadInput) -> Json | None:
    condition = missing(node, read.snapshot)
    if condition is None:
        return None
    since = instant_text(condition.since_s) if condition.since_s else None
    return {"step": condition.type, "reason": condition.reason, "message": condition.message, "since": since}


def _conditions(node: ClusterNode) -> list[Json]:
    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "since": instant_text(condition.since_s) if condition.since_s else None,
        }
        for condition in (node.claim.conditions if node.claim is not None else ())
    ]


def _alternative(node: ClusterNode, answers: PodAnswers) -> Json | None:
    found, currency = answers.fates.alternative(node), answers.read.market.currency
    if found is None:
        return None
    types = {str(name): number for name, number in found.types} if isinstance(found, Alternative) else {}
    price = price_number(found.price_micro) if isinstance(found, Alternative) else None
    nodes = list(found.nodes) if isinstance(found, Alternative) else []
    return {"instanceTypes": types, "nodes": nodes, "perHour": price, "why": alternative_text(found, currency)}


def _budgets(node: ClusterNode, read: ReadInput) -> dict[str, int | None]:
    """How many nodes of its pool may go now, by reason; None: any number."""
    pool, census = read.snapshot.pool(pool_of(node)), Census.of(read.snapshot)
    return {} if pool is None else {reason: census.allowed(pool, reason) for reason in (EMPTY, UNDERUTILIZED, DRIFTED)}


def _lines(title: str, node: ClusterNode, answers: PodAnswers, future: Prospect, coming: list[str]) -> Iterator[str]:
    read = answers.read
    labels = [node.labels[key] for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE) if node.labels.get(key)]
    known = price_of(node, read) is not None
    price = f"{price_cell(node, read)} {read.market.currency}/h" if known else "price unknown"
    age = age_text(read.snapshot.taken_at_s - created_s(node))
    yield f"{title}: {stage_of(node)}, {future.verdict}"
    yield f"  NodePool {pool_of(node) or 'none'}, {', '.join(labels) or 'type unknown'}, {price}, {age} old"
    over_cap = excess(node, read.snapshot.pool(pool_of(node)), read.world.supply)
    if over_cap is not None:
        kept = "this one is kept until its pods have a cheaper place"
        yield f"  {cause_text(over_cap)}: no further node is bought at it, and {kept}"
    condition = missing(node, read.snapshot)
    if condition is not None:
        # The condition of a stage that was not reached in time is as old as its end.
        is_over = condition.reason == timed_out(condition.type)
        since = f" {'until' if is_over else 'since'} {instant_text(condition.since_s)}" if condition.since_s else ""
        verb = "waited" if is_over else "waits"
        yield f"  {verb}{since} to be {condition.type}: {condition.message or condition.reason}"
    if node.problem is not None:
        yield f"  its cards cannot be planned with: {cause_text(node.problem)}"
    for unreadable in _unreadable(node):
        yield f"  its claim has an annotation that cannot be read, so it promises nothing: {unreadable}"
    yield f"  {future.verdict}: {future.why}"
    expiry = _expiry_text(node, read)
    if expiry:
        yield f"  {expiry}"
    for begins, forced in _forced(node, answers).items():
        if forced:
            yield f"  {_BEGINS[begins]}: {forced_text(forced)} (terminationGracePeriod)"
    other = answers.fates.alternative(node)
    if other is not None:
        yield f"  nearest alternative: {alternative_text(other, read.market.currency)}"
    yield from Draining(node, read.snapshot).lines()
    for relabel in answers.plan.relabels:
        if relabel.node == node.name:
            yield f"  gets another configuration of GPU sharing: {relabel.why}"
    yield f"  {counted(len(node.pods), 'pod')}{': ' if node.pods else ''}{some([p.key for p in node.pods], _MOST_PODS)}"
    if coming:
        yield f"  {counted(len(coming), 'pod')} to come: {some(coming, _MOST_PODS)}"
    yield from _load_lines(node, read)
    yield from _card_lines(node, read)
    yield from _condition_lines(node)


def _load_lines(node: ClusterNode, read: ReadInput) -> Iterator[str]:
    """Where much is used and little asked: how much, and whose pods ask too little."""
    load = load_of(node, read.usage)
    if load is None or not load.overloaded():
        return
    yield f"  overloaded: it {load_text(load, load.overloaded())}"
    for crowd in crowds(node.pods, read.usage, load.overloaded())[:_MOST_CROWDS]:
        asked = f"{crowd.kind.lower()}/{crowd.name} -n {crowd.namespace}"
        advice = f"; `kerf explain {asked}` advises a request" if crowd.kind.lower() in WORKLOADS else ""
        yield f"    {crowd_text(crowd, load.overloaded())}{advice}"


def _card_lines(node: ClusterNode, read: ReadInput) -> Iterator[str]:
    for card in cards_of(node, read.snapshot):
        held = card.device
        holders = ", ".join(map(holder_text, card.holders)) or "idle"
        broken = "" if held.healthy else "; unhealthy"
        memory = f"{held.used_memory_mib} of {held.memory_mib} MiB, " if held.memory_mib else ""
        yield (
            f"  GPU {held.index} ({held.model or 'model unknown'}): {memory}"
            f"{held.used_cores} of {held.cores} cores, {_places(held)}; {holders}{broken}"
        )


def _places(device: DeviceState) -> str:
    """How many pods the card takes and has: slots, or MIG instances by profile."""
    if device.slots or not device.partitions:
        return f"{device.used_slots} of {device.slots} slots"
    return ", ".join(f"{part.used} of {part.count} {part.profile or part.resource}" for part in device.partitions)


def _condition_lines(node: ClusterNode) -> Iterator[str]:
    conditions = node.claim.conditions if node.claim is not None else ()
    if conditions:
        yield ""
        rows = [
            (c.type, c.status, instant_text(c.since_s) if c.since_s else "-", c.message or c.reason or "-")
            for c in conditions
        ]
        yield from table(("CONDITION", "STATUS", "SINCE", "MESSAGE"), rows, indent="  ")
