"""Which instance types a NodePool allows, and which requirements and labels of its template keep the others out.

A label of the template is a requirement too, as in Karpenter (`NewNodeClaimTemplate`): its value is what every node of
the pool has, so a type with another one is none of the pool's. Of a label that no type has it says nothing of types.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kerf.model.constraints import INSTANCE_TYPE, RESERVATION_LABELS, Requirement, Requirements
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool


@dataclass(frozen=True, slots=True)
class KeepingOut:
    """What of a pool keeps types out: requirements of its spec, and labels of its template; each by key."""

    asked: tuple[Requirement, ...] = ()
    labels: tuple[Requirement, ...] = ()


NOTHING_OUT = KeepingOut()


def allowed_types(pool: NodePool, types: Sequence[InstanceType]) -> tuple[InstanceType, ...]:
    """The types that the pool's requirements and labels admit, offerings and overlays aside; in the order of `types`.

    None where a label contradicts a requirement. Cost: types x requirements.
    """
    wanted = pool.template_requirements().without_min_values()
    if any(map(_is_never, wanted.values())):
        return ()
    named = wanted.get(INSTANCE_TYPE)
    defined = [each for key, each in wanted.items() if _is_of_types(pool, key)]
    return tuple(
        kind
        for kind in types
        if (named is None or named.has(kind.name))
        and wanted.conflict(kind.requirements) is None
        and not any(_is_undefined(kind, each) for each in defined)
        and (not kind.is_fractional or _names_fraction(wanted, kind))
    )


def excluding(pool: NodePool, kind: InstanceType) -> KeepingOut:
    """What of the pool keeps the type out; names of types aside, where its requirements alone have them."""
    own, labels = pool.requirements.without_min_values(), Requirements.of_labels(pool.node_labels)
    asked, labelled = list[Requirement](), list[Requirement]()
    for key in sorted(own.keys() | labels.keys()):
        mine, stated = own.get(key), labels.get(key)
        if key == INSTANCE_TYPE and stated is None:
            continue
        is_never = mine is not None and stated is not None and _is_never(mine.intersect(stated))
        is_out = mine is not None and _keeps_out(pool, mine, kind)
        if mine is not None and (is_out or is_never):
            asked.append(mine)
        if stated is not None and (is_never or (not is_out and _keeps_out(pool, stated, kind))):
            labelled.append(stated)
    return KeepingOut(tuple(asked), tuple(labelled))


def unsatisfiable(pool: NodePool, types: Sequence[InstanceType]) -> KeepingOut:
    """What of the pool keeps all types out together; nothing of it could be left out.

    Nothing where there is a type that it allows. Cost: types x requirements.
    """
    wanted = pool.template_requirements().without_min_values()
    whole = [kind for kind in types if not kind.is_fractional or _names_fraction(wanted, kind)]
    found = [excluding(pool, kind) for kind in whole]
    keeping_out = [{each.key for each in (*out.asked, *out.labels)} for out in found]
    keys: set[str] = set().union(*keeping_out)
    if not all(keeping_out):
        return NOTHING_OUT
    for key in sorted(keys):
        if all(keeps_out - {key} for keeps_out in keeping_out):
            keys = keys - {key}
            keeping_out = [keeps_out - {key} for keeps_out in keeping_out]
    asked = {each.key: each for out in found for each in out.asked if each.key in keys}
    labels = {each.key: each for out in found for each in out.labels if each.key in keys}
    return KeepingOut(
        tuple(asked[key] for key in sorted(asked)),
        tuple(labels[key] for key in sorted(labels)),
    )


def _keeps_out(pool: NodePool, requirement: Requirement, kind: InstanceType) -> bool:
    key = requirement.key
    if key == INSTANCE_TYPE:
        return not requirement.has(kind.name)
    held = kind.requirements.get(key)
    if held is not None:
        return requirement.excludes(held)
    return _is_never(requirement) or (_is_of_types(pool, key) and _is_undefined(kind, requirement))


def _is_never(requirement: Requirement) -> bool:
    """Whether no node satisfies it, neither with a value nor without the label."""
    return requirement.is_empty and not requirement.allows_absence


def _is_undefined(kind: InstanceType, requirement: Requirement) -> bool:
    # A requirement on a label of the cloud (gpu-count Gt 0) leaves out types that do not have the label at all.
    return requirement.key not in kind.requirements and not requirement.allows_absence


def _is_of_types(pool: NodePool, key: str) -> bool:
    """Whether it is a label that the cloud gives its types.

    Which reservation is asked for is a question of a type's offerings, and the NodeClass is none of the type.
    """
    of_cloud = key.partition("/")[0] in ("karpenter.k8s.aws", "karpenter.k8s.alibabacloud", "karpenter.kwok.sh")
    return of_cloud and key not in RESERVATION_LABELS and key != pool.node_class.label


def _names_fraction(wanted: Requirements, kind: InstanceType) -> bool:
    for key, requirement in wanted.items():
        if requirement.complement:
            continue
        if key == INSTANCE_TYPE and kind.name in requirement.values:
            return True
        if key.endswith("/instance-family") and kind.family in requirement.values:
            return True
    return False
