"""Pods and pools that do not agree: taints, labels, node affinity."""

from collections.abc import Iterable
from dataclasses import replace

from kerf.engine.explain.hints.models import of_pod
from kerf.engine.explain.hints.situation import Advice, Situation, changing_pod, changing_pool, expressions_of
from kerf.engine.explain.typelabels import nearest_values
from kerf.engine.place.shapes import Shape
from kerf.errors import brief
from kerf.model.constraints import (
    HOSTNAME,
    INSTANCE_TYPE,
    NO_EXECUTE,
    NODE_NAME,
    RESERVATION_LABELS,
    WELL_KNOWN,
    Requirement,
    Requirements,
    Taint,
    Toleration,
    is_label_value,
    is_reserved,
    untolerated,
)
from kerf.model.nodeclaim import COMING_LABELS
from kerf.model.nodepool import NodePool
from kerf.model.pods import PodSpec

_OF_ADMISSION = tuple(
    (f"node.kubernetes.io/{taint}", "Exists", NO_EXECUTE, 300) for taint in ("not-ready", "unreachable")
)


def tolerate(taints: Iterable[Taint], shape: Shape, situation: Situation) -> Advice:
    """The tolerations that the pod lacks, with those that it has."""
    hint, spec, change = with_tolerations(taints, shape.spec)
    return changing_pod(hint, shape, spec, change, situation)


def with_tolerations(taints: Iterable[Taint], spec: PodSpec) -> tuple[str, PodSpec, dict[str, object]]:
    """The hint, the spec with what it lacks for these taints, and the merge patch of the spec."""
    missing = [taint for taint in sorted(taints) if untolerated((taint,), spec.tolerations) is not None]
    added = tuple(Toleration(t.key, "Equal", t.value, t.effect) for t in missing)
    hint = f"add a toleration for {', '.join(map(str, missing))} to the pod"
    changed = replace(spec, tolerations=(*spec.tolerations, *added))
    entries = [_toleration_entry(each) for each in changed.tolerations if not _is_of_admission(each)]
    return hint, changed, {"tolerations": entries}


def _is_of_admission(held: Toleration) -> bool:
    """Whether the API server gave it to the pod (DefaultTolerationSeconds): it gives it to the next one too."""
    return (held.key, held.operator, held.effect, held.seconds) in _OF_ADMISSION


def _toleration_entry(held: Toleration) -> dict[str, object]:
    """As a manifest has it: the list is replaced as a whole, so nothing of an entry may be lost."""
    texts = {"key": held.key, "operator": held.operator, "value": held.value, "effect": held.effect}
    entry: dict[str, object] = {name: text for name, text in texts.items() if text}
    return entry if held.seconds is None else {**entry, "tolerationSeconds": held.seconds}


def agree(pool: NodePool, key: str, shape: Shape, situation: Situation) -> Advice:
    """Pod and pool differ on a label: the pod takes the pool's value, or the pool gets a label it does not have."""
    held = pool.template_requirements().intersect(COMING_LABELS).get(key)
    if key in (NODE_NAME, HOSTNAME) and held is None:
        return Advice("a new node has a name of its own: it can only be on a node that is there")
    if held is None:
        asked = next((a[key] for a in shape.spec.alternatives if key in a), None)
        if asked is not None and key in WELL_KNOWN and key != HOSTNAME:
            return Advice(f"no node of NodePool {pool.name} has {asked}")
        sold = None if asked is None else take_sold_value(pool, asked, shape, situation)
        if sold is not None:
            # A pool that names its types lacks the one that the pod asks for.
            names_types = INSTANCE_TYPE in pool.requirements and not pool.requirements[INSTANCE_TYPE].complement
            return Advice(f"no node of NodePool {pool.name} has {asked}") if names_types else sold
        if asked is not None and any(key in each.requirements for each in situation.market.types_of(pool.node_class)):
            return Advice(f"no node of NodePool {pool.name} has {asked}")
        if asked is None or asked.complement or not asked.values or key in WELL_KNOWN:
            return Advice(f"no node of NodePool {pool.name} has the label {key}")
        if key in RESERVATION_LABELS:
            return Advice(f"no reservation that NodePool {pool.name} may use has {asked}")
        if is_reserved(key):
            return Advice(f"no node of NodePool {pool.name} has the label {key}, which no NodePool may set")
        value = min(filter(is_label_value, asked.values), default=None)
        if value is None:
            return Advice(
                f"no node can have the label {key} that it asks: {brief(min(asked.values))} is no label value"
            )
        hint = f'add the label {key}: "{value}" to the template of NodePool {pool.name}, if its nodes deserve it'
        changed = replace(pool, labels={**pool.labels, key: value})
        return changing_pool(hint, changed, {"template": {"metadata": {"labels": {key: value}}}})
    if held.complement or not held.values:
        return Advice(f"NodePool {pool.name} has {held}")
    return take_value(held, shape, situation)


def take_sold_value(pool: NodePool, asked: Requirement, shape: Shape, situation: Situation) -> Advice | None:
    """The pod asks for the nearest value that types of the pool have of their own label; None where they have none."""
    sold = nearest_values(asked, situation.supply.by_pool.get(pool.name, ()))
    if not sold:
        return None
    hint = f'no node of NodePool {pool.name} can have {asked}: let the pod ask {asked.key} "{sold[0]}"'
    return take_value(Requirement.of(asked.key, "In", sold[:1]), shape, situation, hint=hint)


def take_value(
    held: Requirement, shape: Shape, situation: Situation, owner: str = "the NodePool has", *, hint: str = ""
) -> Advice:
    """The pod asks for a value of `held`, whatever it asks of that label now; other GPUs that it gets are named."""
    value = min(held.values)
    changed, change = with_value(shape.spec, held.key, value)
    cards = of_pod(shape, changed, situation.evidence.world)
    text = (hint or f'{owner} {held}: let the pod ask {held.key} "{value}"') + cards
    return replace(changing_pod(text, shape, changed, change, situation), is_exchange=bool(cards))


def with_value(spec: PodSpec, key: str, value: str) -> tuple[PodSpec, dict[str, object]]:
    """The spec that asks for the value of a label of which it asks another, and the merge patch of the spec."""
    if key in spec.node_selector:
        fixed = spec.node_selector.without((key,)).intersect(Requirements.of_labels({key: value}))
        return replace(spec, node_selector=fixed), {"nodeSelector": {key: value}}
    # Terms that differed in this label alone are the same now: a patch says each once.
    terms = tuple(dict.fromkeys(_with_value(term, key, value) for term in spec.affinity))
    required = {"nodeSelectorTerms": [{"matchExpressions": _expressions(term)} for term in terms]}
    change = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    return replace(spec, affinity=terms), dict[str, object](change)


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
