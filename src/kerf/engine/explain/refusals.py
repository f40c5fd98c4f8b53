"""Why a pod has no place: the stage it reached, the nearest miss, the missing quantity, the smallest change that helps.

The same checks that refused a pod in the plan are asked again, one row a pool (its nearest type) and one for the
nearest existing node, so that the answer cannot differ from the decision.
"""

import difflib
import json
from collections.abc import Sequence
from dataclasses import replace

from kerf.engine.devices import demand_of, rightful_family
from kerf.engine.explain import sharing as words
from kerf.engine.explain.hints import advise
from kerf.engine.explain.hints.situation import Situation, pod_patch
from kerf.engine.explain.hints.types import CAP, TYPO
from kerf.engine.fit import fit, nearest
from kerf.engine.shapes import Shape
from kerf.engine.supply import Candidate
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.groups import KUEUE_GATES
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit, Patch, Stage, Unplaced
from kerf.model.pods import Owner, Pod
from kerf.model.quantities import NODES, Resources, quantity_text
from kerf.sharing.family import Family, Refused


def refused_early(
    shapes: Sequence[Shape], families: tuple[Family, ...]
) -> tuple[tuple[Unplaced, ...], tuple[Shape, ...]]:
    """Pods that no node would help: invalid, held back, or not their scheduler's; and the shapes that are left."""
    unplaced: list[Unplaced] = []
    left: list[Shape] = []
    for shape in shapes:
        refusal = _refusal(shape, families)
        if refusal is None:
            left.append(shape)
            continue
        stage, reason, hint, patch = refusal
        unplaced.extend(
            Unplaced(pod.key, stage, reason, hint, pod_patch(replace(shape, pods=(pod,)), patch) if patch else None)
            for pod in shape.pods
        )
    return tuple(unplaced), tuple(left)


def _refusal(shape: Shape, families: tuple[Family, ...]) -> tuple[Stage, str, str, str] | None:
    if shape.pod.invalid:
        return Stage.INVALID, shape.pod.invalid, "", ""
    if shape.spec.scheduling_gates:
        gates = ", ".join(shape.spec.scheduling_gates)
        if any(gate in KUEUE_GATES for gate in shape.spec.scheduling_gates):
            hint = "it comes when its queue has quota for it: kubectl get workloads"
            return Stage.HELD, f"held by Kueue, which has not admitted it: {gates}", hint, ""
        return Stage.HELD, f"held back by scheduling gates: {gates}", "whoever set the gate must remove it", ""
    rightful = rightful_family(shape, families)
    if rightful is None:
        return None
    demand = demand_of(shape, rightful)
    if isinstance(demand, Refused):
        change = json.dumps(demand.change) if demand.change is not None else ""
        return demand.stage, words.reason(demand.cause), words.hint(demand.cause), change
    return None


def unplaced_pods(situation: Situation) -> tuple[Unplaced, ...]:
    """One entry for every pod that the purchase left over. Cost: shapes left x types."""
    found = []
    for shape, left in zip(situation.shapes, situation.purchase.left, strict=True):
        if left:
            found.extend(_explained(situation, Shape(shape.pods[len(shape) - left :])))
    return tuple(found)


def _explained(situation: Situation, shape: Shape) -> list[Unplaced]:
    by_pool = [_nearest_in(pool, shape, situation) for pool in _pools(situation)]
    on_nodes = situation.trial.misfits(shape)
    misfits = [m for m in by_pool if m is not None] + ([nearest(on_nodes)] if on_nodes else [])
    if not situation.snapshot.node_pools:
        reason = "there is no NodePool, so that nothing can be bought"
        stage = misfits[0].stage if misfits else Stage.REQUIREMENTS
        return [Unplaced(pod.key, stage, reason, "apply a NodePool", None, tuple(misfits)) for pod in shape.pods]
    if not misfits:
        misfits = [Misfit("the cluster", Stage.OFFERINGS, "no NodePool offers any instance type")]
    candidates = [m for m in by_pool if m is not None] or misfits
    worst = nearest(candidates)
    reason = _sentence(worst)
    help_ = advise(shape, worst, situation)
    stage, rows = nearest(misfits).stage, tuple(misfits)
    found: list[Unplaced] = []
    for pods in _by_owner(shape.pods):
        # A patch of a workload is for the one that makes the pod, though equal pods come from several.
        patch = pod_patch(Shape(pods), help_.change) if help_.change else help_.patch
        found.extend(Unplaced(pod.key, stage, reason, help_.hint, _for_pod(patch, pod.name), rows) for pod in pods)
    return found


def _by_owner(pods: Sequence[Pod]) -> list[tuple[Pod, ...]]:
    """The pods of each workload, in their order."""
    groups: dict[tuple[str, Owner | None], list[Pod]] = {}
    for pod in pods:
        groups.setdefault((pod.namespace, pod.owner), []).append(pod)
    return [tuple(members) for members in groups.values()]


def _for_pod(patch: Patch | None, name: str) -> Patch | None:
    return replace(patch, name=name) if patch is not None and patch.kind == "Pod" else patch


def _pools(situation: Situation) -> list[NodePool]:
    return sorted(situation.snapshot.node_pools, key=lambda pool: pool.order)


def _sentence(misfit: Misfit) -> str:
    """The misfit as one sentence with its figures."""
    where = misfit.target
    if misfit.stage == Stage.DEVICES and misfit.told:
        return f"{misfit.detail} ({where})"
    if misfit.stage == Stage.RESOURCES and misfit.detail:
        return f"{misfit.reason}: {misfit.detail}, {misfit.missing} missing ({where})"
    return misfit.reason if where.partition("/")[0] in misfit.reason else f"{misfit.reason} ({where})"


def _nearest_in(pool: NodePool, shape: Shape, situation: Situation) -> Misfit | None:
    """The pool's answer: its nearest type's misfit; None when it would take the pod after all."""
    problem = dict(situation.supply.pool_problems).get(pool.name)
    if problem:
        return Misfit(f"NodePool {pool.name}", Stage.OFFERINGS, f"NodePool {pool.name} takes no nodes: {problem}")
    candidates = situation.supply.by_pool.get(pool.name, ())
    unavailable = [c for c in situation.supply.unavailable if c.pool.name == pool.name]
    misfits = [_misfit(candidate, shape, situation) for candidate in (*candidates, *unavailable)]
    if not misfits:
        return _nothing_offered(pool, situation.market)
    return nearest([m for m in misfits if m is not None]) if any(misfits) else None


def _misfit(candidate: Candidate, shape: Shape, situation: Situation) -> Misfit | None:
    result = fit(candidate.target, candidate.room, shape)
    if isinstance(result, Misfit):
        return result
    name = candidate.target.name
    exceeded = situation.after.exceeded_by(candidate)
    if exceeded:
        return Misfit(
            name,
            Stage.LIMITS,
            limit_text(exceeded[0], candidate, situation),
            _more_needed(exceeded[0], candidate),
            detail=exceeded[0],
            shortfall=candidate.price_micro,
        )
    if candidate.refused:
        dear = candidate.too_dear[0].price_micro if candidate.too_dear else 0
        return Misfit(
            name,
            Stage.OFFERINGS,
            candidate.refused,
            detail=f"{CAP}{candidate.kind.name}" if candidate.too_dear and not candidate.sold_out else "",
            shortfall=candidate.price_micro or dear,
        )
    if candidate.offering_for(result.room.requirements) is None:
        asked = result.room.requirements
        return Misfit(name, Stage.OFFERINGS, f"no offering is left for {asked}", shortfall=candidate.price_micro)
    return None


def limit_text(resource: str, candidate: Candidate, situation: Situation) -> str:
    """The limit with its figures: what it is, what is in use, what this plan adds, what one more node needs."""
    pool = candidate.pool.name
    limit = (situation.after.limit(pool) or Resources()).get(resource, 0)
    used = situation.before.used(pool).get(resource, 0)
    planned = situation.after.used(pool).get(resource, 0) - used
    in_use = f"{quantity_text(resource, used)} in use, " if used else ""
    return (
        f"limit {resource} {quantity_text(resource, limit)} of NodePool {pool}: {in_use}"
        f"{quantity_text(resource, planned)} planned, {_more_needed(resource, candidate)} more needed"
    )


def _more_needed(resource: str, candidate: Candidate) -> str:
    return quantity_text(resource, 1 if resource == NODES else candidate.capacity[resource])


def _nothing_offered(pool: NodePool, market: Market) -> Misfit:
    """No type of the market passes the pool's requirements: name the culprit where it is a type."""
    named = pool.requirements.get(INSTANCE_TYPE)
    where = f"NodePool {pool.name}"
    if named is None or named.complement:
        return Misfit(where, Stage.OFFERINGS, f"no instance type here satisfies the requirements of {where}")
    texts, detail = [], ""
    for name in sorted(named.values):
        if market.find(name) is not None:
            texts.append(f"{name} does not satisfy the other requirements")
        elif name in market.not_sold:
            texts.append(f"{name}: {market.not_sold[name]}")
        else:
            close = difflib.get_close_matches(name, [t.name for t in market.types], 1)
            texts.append(f"unknown instance type {name}" + (f" (nearest known: {close[0]})" if close else ""))
            detail = detail or (f"{TYPO}{name} -> {close[0]}" if close else "")
    return Misfit(where, Stage.OFFERINGS, f"{where} offers no instance type: " + "; ".join(texts), detail=detail)
