"""The smallest change that would place a pod, as a sentence and, where one exists, as a merge patch.

A patch is only given when planning again with it places the pod.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml

from kerf.engine.devices import rightful_family
from kerf.engine.filling import Purchase
from kerf.engine.fit import fit
from kerf.engine.limits import Ledger
from kerf.engine.packing import cheapest_nodes
from kerf.engine.shapes import Shape
from kerf.engine.supply import Candidate, Supply, supply
from kerf.engine.trial import Trial
from kerf.engine.virtual import window_of
from kerf.model.constraints import ARCH, INSTANCE_TYPE, NODE_POOL, WELL_KNOWN, Requirement, Requirements, untolerated
from kerf.model.instancetypes import price_text
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.plan import FAMILY, NEVER_SHOWN, Misfit, Patch, Stage
from kerf.model.pods import is_virtual
from kerf.model.quantities import Resources, quantity_text
from kerf.model.snapshot import ClusterSnapshot

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Pod": (),
    "CronJob": ("jobTemplate", "spec", "template", "spec"),
    "Job": ("template", "spec"),
    "Deployment": ("template", "spec"),
    "ReplicaSet": ("template", "spec"),
    "StatefulSet": ("template", "spec"),
}
"""Where the pod's spec stands in the spec of the object that makes it."""
TYPO = "misspelt type: "
"""Begin of a misfit's detail that names an unknown instance type and the nearest known one."""
CAP = "price cap: "
"""Begin of a misfit's detail that names an instance type which is too dear for the pool."""
_MOST_SEARCHED = 2_000
"""Pods for which a smaller limit is searched for; beyond it the limit that the plan would use is named."""


_GPU_RESOURCES = "nvidia.com/"
_MOST_CONFIGURATIONS = 30
"""How many configurations of GPU sharing are tried for a pod; each is a look at all that the pool offers."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A hint, and the patch that carries it out; both may be missing.

    `change` is the pod's own change where the patch is of a pod: equal pods of another workload need it there.
    """

    hint: str = ""
    patch: Patch | None = None
    change: str = ""


Buy = Callable[[Sequence[Shape], Sequence[Candidate], Ledger], Purchase]
"""How nodes are chosen: the cheapest, or as Karpenter does."""


@dataclass(frozen=True)
class Situation:
    """What a plan knew when it was done: `before` and `after` are the limits without and with its launches."""

    snapshot: ClusterSnapshot
    market: Market
    supply: Supply
    trial: Trial
    before: Ledger
    after: Ledger
    purchase: Purchase
    shapes: tuple[Shape, ...]
    buy: Buy = cheapest_nodes
    _advice: dict[str, Advice] = field(default_factory=dict)


def advise(shape: Shape, misfit: Misfit, situation: Situation) -> Advice:
    """What would help pods of the shape, judged by the misfit that came furthest.

    Of room that a window keeps there is no pod that could be patched.
    """
    found = _advise(shape, misfit, situation)
    if not is_virtual(shape.pod.key) or (found.patch is not None and found.patch.kind == "NodePool"):
        return found
    if misfit.stage == Stage.REQUIREMENTS and misfit.detail == NODE_POOL:
        return Advice(f"name a NodePool that there is in spec.nodePools of CapacityWindow {window_of(shape.pod.key)}")
    return Advice(found.hint)


def _advise(shape: Shape, misfit: Misfit, situation: Situation) -> Advice:
    pool = situation.snapshot.pool(misfit.node_pool)
    if pool is None:
        return Advice()
    if pool.bounds.invalid and misfit.stage == Stage.OFFERINGS:
        return Advice(f"mend the annotation of NodePool {pool.name}")
    if misfit.stage == Stage.LIMITS:
        return _raise_limit(pool, misfit.detail, situation)
    if misfit.stage == Stage.TAINTS:
        return _tolerate(pool, shape, situation)
    if misfit.stage == Stage.REQUIREMENTS:
        return _agree(pool, misfit.detail, shape, situation)
    if misfit.stage == Stage.DEVICES and misfit.detail.startswith(FAMILY):
        return _select(pool, shape, situation)
    if misfit.stage in (Stage.DEVICES, Stage.RESOURCES):
        return (
            _asking_otherwise(misfit)
            or _configure(pool, shape, situation)
            or _as_the_reason_says(pool, misfit)
            or _larger_type(pool, shape, situation)
        )
    if misfit.stage == Stage.OFFERINGS and misfit.detail.startswith(TYPO):
        return _spelt_right(pool, shape, misfit.detail, situation)
    if misfit.stage == Stage.OFFERINGS and misfit.detail.startswith(CAP):
        return _raise_cap(pool, shape, misfit.detail, situation)
    if misfit.stage == Stage.OFFERINGS and pool.invalid:
        return Advice(f"mend NodePool {pool.name}: until then it takes no nodes")
    if misfit.stage == Stage.OFFERINGS:
        return Advice(
            "allow further instance types, zones or capacity types in NodePool "
            f"{pool.name}, or wait until the offering is back"
        )
    return Advice()


def _patch_pool(pool: NodePool, change: Mapping[str, object]) -> Patch:
    return Patch("NodePool", pool.name, json.dumps({"spec": change}, sort_keys=True))


def pod_patch(shape: Shape, text: str) -> Patch | None:
    """A patch of the pod (`spec: ...` as YAML or JSON), moved to the object that makes such pods.

    None when that object is unknown.
    """
    owner = shape.pod.owner
    kind = owner.kind if owner is not None else "Pod"
    if kind not in _TEMPLATES:
        return None
    change: object = yaml.safe_load(text).get("spec", {})
    for step in reversed(_TEMPLATES[kind]):
        change = {step: change}
    name = owner.name if owner is not None else shape.pod.name
    return Patch(kind, name, json.dumps({"spec": change}, sort_keys=True), shape.pod.namespace)


def _changing_pod(hint: str, shape: Shape, change: Mapping[str, object]) -> Advice:
    text = json.dumps({"spec": change})
    return Advice(hint, pod_patch(shape, text), text)


def places(shape: Shape, pool: NodePool, situation: Situation) -> bool:
    """Whether the pool, as given, offers a type that takes the shape, can be bought, and is within its limits."""
    return any(situation.after.room_for(candidate) != 0 for candidate in _takers(shape, pool, situation))


def _takers(shape: Shape, pool: NodePool, situation: Situation) -> list[Candidate]:
    others = tuple(pool if p.name == pool.name else p for p in situation.snapshot.node_pools)
    offered = supply(replace(situation.snapshot, node_pools=others), situation.market).by_pool.get(pool.name, ())
    takers = []
    for candidate in offered:
        result = fit(candidate.target, candidate.room, shape)
        if isinstance(result, Misfit):
            continue
        if candidate.offering_for(result.room.requirements) is not None:
            takers.append(candidate)
    return takers


def _raise_limit(pool: NodePool, resource: str, situation: Situation) -> Advice:
    if pool.name + resource in situation._advice:
        return situation._advice[pool.name + resource]
    found, left = _smallest_limits(pool, situation)
    if not found:
        advice = Advice(f"raise limit {resource} of NodePool {pool.name}")
    else:
        pods = sum(len(s) for s in situation.shapes)
        texts = ", ".join(
            f"{quantity_text(name, amount)} is the smallest {name} limit" for name, amount in found.items()
        )
        everyone = f"{pods - left} of {pods} pods" if left else "the pod" if pods == 1 else f"all {pods} pods"
        limits = {name: quantity_text(name, amount) for name, amount in found.items()}
        advice = Advice(
            f"{texts} of NodePool {pool.name} that places {everyone}", _patch_pool(pool, {"limits": limits})
        )
    situation._advice[pool.name + resource] = advice
    return advice


def _smallest_limits(pool: NodePool, situation: Situation) -> tuple[dict[str, int], int]:
    """The limits of the pool that must rise for as many pods as without limits, each to the least that does it.

    Also how many pods are left even so, because of something else.
    """
    limits = pool.limits or Resources()
    least, needed = _bought_with(pool, None, situation)
    rising = {name: needed.get(name, 0) for name, limit in limits.items() if needed.get(name, 0) > limit}
    if sum(len(s) for s in situation.shapes) > _MOST_SEARCHED:
        return rising, least
    for name in sorted(rising):
        low, high = limits[name] + 1, rising[name]
        while low < high:
            middle = (low + high) // 2
            enough = _bought_with(pool, limits.replaced({**rising, name: middle}), situation)[0] <= least
            low, high = (low, middle) if enough else (middle + 1, high)
        rising[name] = high
    return rising, least


def _bought_with(pool: NodePool, limits: Resources | None, situation: Situation) -> tuple[int, Resources]:
    """How many pods are left under other limits of the pool, and what it counts then."""
    pools = [replace(p, limits=limits) if p.name == pool.name else p for p in situation.snapshot.node_pools]
    ledger = Ledger(pools, {p.name: situation.before.used(p.name) for p in pools})
    purchase = situation.buy(situation.shapes, situation.supply.candidates, ledger)
    return sum(purchase.left), ledger.used(pool.name)


def _tolerate(pool: NodePool, shape: Shape, situation: Situation) -> Advice:
    missing = [taint for taint in sorted(pool.taints) if untolerated((taint,), shape.spec.tolerations) is not None]
    added = [{"key": t.key, "operator": "Equal", "value": t.value, "effect": t.effect} for t in missing]
    kept = [
        {"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect} for t in shape.spec.tolerations
    ]
    tolerations = [{k: v for k, v in entry.items() if v} for entry in (*kept, *added)]
    hint = f"add a toleration for {', '.join(map(str, missing))} to the pod"
    if not places(shape, replace(pool, taints=()), situation):
        return Advice(hint)
    return _changing_pod(hint, shape, {"tolerations": tolerations})


def _agree(pool: NodePool, key: str, shape: Shape, situation: Situation) -> Advice:
    """Pod and pool differ on a label: the pod takes the pool's value, or the pool gets a label it does not have."""
    held = pool.template_requirements().get(key)
    if held is None:
        asked = next((a[key] for a in shape.spec.alternatives if key in a), None)
        if asked is None or asked.complement or not asked.values or key in WELL_KNOWN:
            return Advice(f"no node of NodePool {pool.name} has the label {key}")
        value = min(asked.values)
        labels = {**pool.labels, key: value}
        hint = f'add the label {key}: "{value}" to the template of NodePool {pool.name}, if its nodes deserve it'
        works = places(shape, replace(pool, labels=labels), situation)
        patch = _patch_pool(pool, {"template": {"metadata": {"labels": {key: value}}}}) if works else None
        return Advice(hint, patch)
    if held.complement or not held.values:
        return Advice(f"NodePool {pool.name} has {held}")
    return _take_value(pool, held, shape, situation)


def _take_value(pool: NodePool, held: Requirement, shape: Shape, situation: Situation) -> Advice:
    value = min(held.values)
    hint = f'the NodePool has {held}: let the pod ask {held.key} "{value}"'
    spec = shape.spec
    if held.key in spec.node_selector:
        change: dict[str, object] = {"nodeSelector": {held.key: value}}
        fixed = spec.node_selector.without((held.key,)).intersect(Requirements.of_labels({held.key: value}))
        changed = replace(spec, node_selector=fixed)
    else:
        terms = tuple(_with_value(term, held.key, value) for term in spec.affinity)
        change = {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": _expressions(term)} for term in terms]
                    }
                }
            }
        }
        changed = replace(spec, affinity=terms)
    again = Shape((replace(shape.pod, spec=changed),))
    works = places(again, pool, situation)
    return _changing_pod(hint, shape, change) if works else Advice(hint)


def _with_value(term: Requirements, key: str, value: str) -> Requirements:
    if key not in term:
        return term
    return term.without((key,)).intersect(Requirements.of_labels({key: value}))


def _expressions(term: Requirements) -> list[dict[str, object]]:
    """A term as matchExpressions of a manifest."""
    found: list[dict[str, object]] = []
    for key in sorted(term):
        found.extend(expressions_of(term[key]))
    return found


def expressions_of(requirement: Requirement) -> list[dict[str, object]]:
    """One requirement as entries of a manifest: several where bounds and excluded values stand together."""
    entries: list[dict[str, object]] = []
    for operator, values in requirement.forms():
        given = {"values": list(values)} if values else {}
        entries.append({"key": requirement.key, "operator": operator, **given})
    return entries


def _select(pool: NodePool, shape: Shape, situation: Situation) -> Advice:
    """The pool's nodes are not the family's: its label selects them."""
    rightful = rightful_family(shape, situation.supply.families)
    if rightful is None or rightful.selector is None:
        return Advice()
    key, value = rightful.selector
    hint = f'add the label {key}: "{value}" to the template of NodePool {pool.name}'
    if pool.taints:
        hint += f", whose taint {min(pool.taints)} {rightful.title}'s device plugin must tolerate"
    if not places(shape, replace(pool, labels={**pool.labels, key: value}), situation):
        return Advice(hint)
    return Advice(hint, _patch_pool(pool, {"template": {"metadata": {"labels": {key: value}}}}))


def _configure(pool: NodePool, shape: Shape, situation: Situation) -> Advice | None:
    """A configuration of GPU sharing that the cluster has and under which the pool would take the pod."""
    if not any(name.startswith(_GPU_RESOURCES) for name in shape.requests):
        return None
    known = [labels for family in situation.supply.families for labels in family.configurations(shape.pod)]
    for labels in known[:_MOST_CONFIGURATIONS]:
        changed = replace(pool, labels={**pool.labels, **labels})
        if changed.labels != pool.labels and places(shape, changed, situation):
            named = ", ".join(f'{key}: "{value}"' for key, value in labels.items())
            hint = f"add the label {named} to the template of NodePool {pool.name}"
            return Advice(hint, _patch_pool(pool, {"template": {"metadata": {"labels": dict(labels)}}}))
    return None


def _asking_otherwise(misfit: Misfit) -> Advice | None:
    return Advice(misfit.hint) if misfit.hint else None


def _as_the_reason_says(pool: NodePool, misfit: Misfit) -> Advice | None:
    """Where cards would never be shown, and where nobody shows a shared GPU, asking for less helps nobody."""
    if misfit.detail == NEVER_SHOWN:
        return Advice(f"change labels or annotations of NodePool {pool.name}, or the ConfigMap, as the reason says")
    shared = misfit.reason.removeprefix("Insufficient ")
    if misfit.stage == Stage.RESOURCES and shared.startswith(_GPU_RESOURCES) and shared.endswith(".shared"):
        plain = shared.removesuffix(".shared")
        return Advice(f"ask for {plain}, or label the pool with a configuration that has renameByDefault and {plain}")
    return None


def _larger_type(pool: NodePool, shape: Shape, situation: Situation) -> Advice:
    """The cheapest type of the whole market that would take the pod, were it allowed in the pool."""
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement:
        return Advice(
            f"no instance type that NodePool {pool.name} allows is large enough; ask for less or allow others"
        )
    opened = replace(pool, requirements=pool.requirements.without((INSTANCE_TYPE,)))
    # A pod's image is built for one architecture: stay with that of the types that are allowed now.
    allowed = [kind for name in sorted(named.values) if (kind := situation.market.find(name)) is not None]
    architectures = {value for kind in allowed for value in kind.requirements[ARCH].values}
    takers = [c for c in _takers(shape, opened, situation) if c.kind.requirements[ARCH].values & architectures]
    if not takers:
        return Advice("no instance type that is sold here holds the pod; ask for less")
    best = min(takers, key=lambda c: c.order)
    memory = f" with {best.kind.devices[0].memory_mib} MiB a GPU" if best.kind.devices else ""
    price = f"{price_text(best.price_micro)} {situation.market.currency}/h"
    hint = f"allow instance type {best.kind.name} ({price}){memory} in NodePool {pool.name}"
    values = frozenset({*named.values, best.kind.name})
    widened = replace(
        pool,
        requirements=pool.requirements.without((INSTANCE_TYPE,)).intersect(
            Requirements([Requirement(INSTANCE_TYPE, False, values, min_values=named.min_values)])
        ),
    )
    works = places(shape, widened, situation)
    return Advice(
        hint, _patch_pool(pool, {"template": {"spec": {"requirements": _requirements_of(widened)}}}) if works else None
    )


def _raise_cap(pool: NodePool, shape: Shape, detail: str, situation: Situation) -> Advice:
    """The least cap under which the pool offers the type; on the template where that states it."""
    name = detail.removeprefix(CAP)
    refused = next((c for c in situation.supply.unavailable if (c.pool.name, c.kind.name) == (pool.name, name)), None)
    if refused is None:
        return Advice()
    needed = pool.bounds.needed_for(refused.kind, refused.too_dear[0])
    stated = ", ".join(f'{key}: "{value}"' for key, value in needed.items())
    hint = f"{stated} is the least cap of NodePool {pool.name} that lets {name} in; or allow a cheaper instance type"
    on_template = {key: value for key, value in needed.items() if key in pool.annotations}
    on_pool = {key: value for key, value in needed.items() if key not in pool.annotations}
    raised = replace(
        pool, annotations={**pool.annotations, **on_template}, own_annotations={**pool.own_annotations, **on_pool}
    )
    if not places(shape, raised, situation):
        return Advice(hint)
    change: dict[str, object] = {"metadata": {"annotations": on_pool}} if on_pool else {}
    if on_template:
        change["spec"] = {"template": {"metadata": {"annotations": on_template}}}
    return Advice(hint, Patch("NodePool", pool.name, json.dumps(change, sort_keys=True)))


def _spelt_right(pool: NodePool, shape: Shape, detail: str, situation: Situation) -> Advice:
    """An instance type that nobody sells, and the known name that is nearest."""
    wrong, right = detail.removeprefix(TYPO).split(" -> ")
    named = pool.requirements[INSTANCE_TYPE]
    values = (named.values - {wrong}) | {right}
    mended = replace(
        pool,
        requirements=pool.requirements.without((INSTANCE_TYPE,)).intersect(
            Requirements([replace(named, values=frozenset(values))])
        ),
    )
    works = places(shape, mended, situation)
    change = {"template": {"spec": {"requirements": _requirements_of(mended)}}}
    hint = f"write {right} instead of {wrong} in NodePool {pool.name}"
    return Advice(hint, _patch_pool(pool, change) if works else None)


def _requirements_of(pool: NodePool) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for key in sorted(pool.requirements):
        requirement = pool.requirements[key]
        for entry in expressions_of(requirement):
            if requirement.min_values is not None:
                entry = {**entry, "minValues": requirement.min_values}
            found.append(entry)
    return found
