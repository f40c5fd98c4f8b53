"""Which instance types a NodePool allows, and which of its requirements keep the others out."""

from collections.abc import Sequence

from kerf.model.constraints import INSTANCE_TYPE, RESERVATION_LABELS, Requirement, Requirements
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool


def allowed_types(pool: NodePool, types: Sequence[InstanceType]) -> tuple[InstanceType, ...]:
    """The types that the pool's requirements admit, offerings and overlays aside; in the order of `types`."""
    named = pool.requirements.get(INSTANCE_TYPE)
    wanted = pool.template_requirements().without_min_values()
    return tuple(
        kind
        for kind in types
        if (named is None or named.has(kind.name))
        and wanted.without(pool.labels).conflict(kind.requirements) is None
        and _defines(kind, pool)
        and (not kind.is_fractional or _names_fraction(pool, kind))
    )


def excluding(pool: NodePool, kind: InstanceType) -> tuple[Requirement, ...]:
    """The requirements of the pool that keep the type out, by key; names of types aside."""
    wanted, own = pool.template_requirements().without_min_values(), pool.requirements
    return tuple(
        wanted[key]
        for key in sorted(own)
        if key != INSTANCE_TYPE
        and (
            _is_undefined(kind, key, own[key])
            or (key not in pool.labels and Requirements([wanted[key]]).conflict(kind.requirements) is not None)
        )
    )


def unsatisfiable(pool: NodePool, types: Sequence[InstanceType]) -> tuple[Requirement, ...]:
    """Requirements of the pool that keep all types out together, by key; none of them could be left out of it.

    Empty where there is a type that they allow. Cost: types x requirements.
    """
    whole = [kind for kind in types if not kind.is_fractional or _names_fraction(pool, kind)]
    keeping_out = [{asked.key for asked in excluding(pool, kind)} for kind in whole]
    keys: set[str] = set().union(*keeping_out)
    if not all(keeping_out):
        return ()
    for key in sorted(keys):
        if all(keeps_out - {key} for keeps_out in keeping_out):
            keys = keys - {key}
            keeping_out = [keeps_out - {key} for keeps_out in keeping_out]
    wanted = pool.template_requirements().without_min_values()
    return tuple(wanted[key] for key in sorted(keys))


def _defines(kind: InstanceType, pool: NodePool) -> bool:
    return not any(_is_undefined(kind, key, requirement) for key, requirement in pool.requirements.items())


def _is_undefined(kind: InstanceType, key: str, requirement: Requirement) -> bool:
    # A requirement on a label of the cloud (gpu-count Gt 0) leaves out types that do not have the label at all.
    # Which reservation is asked for is a question of its offerings.
    is_undefined = key not in kind.requirements and key not in RESERVATION_LABELS
    return is_undefined and not requirement.allows_absence and _is_cloud_label(key)


def _is_cloud_label(key: str) -> bool:
    return key.partition("/")[0] in ("karpenter.k8s.aws", "karpenter.k8s.alibabacloud", "karpenter.kwok.sh")


def _names_fraction(pool: NodePool, kind: InstanceType) -> bool:
    for key, requirement in pool.requirements.items():
        if requirement.complement:
            continue
        if key == INSTANCE_TYPE and kind.name in requirement.values:
            return True
        if key.endswith("/instance-family") and kind.family in requirement.values:
            return True
    return False
