"""ResourceQuotas that a sharing family enforces, counted as pods are planned.

HAMi refuses a pod over its namespace's quota whatever node there is, so that a node bought for it would stay empty. The
pods of a namespace are taken in queue order; those beyond the quota are left out before anything is bought.
"""

from collections.abc import Sequence

from kerf.engine.devices import demand_of
from kerf.engine.shapes import Shape
from kerf.model.plan import Stage, Unplaced
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Family


def within_quotas(
    shapes: Sequence[Shape], quotas: Sequence[ResourceQuota], families: tuple[Family, ...]
) -> tuple[tuple[Unplaced, ...], tuple[Shape, ...]]:
    """Pods over a quota, and the shapes that are left. Quotas of one namespace all hold."""
    if not quotas:
        return (), tuple(shapes)
    used = {(quota.namespace, quota.name): Resources(quota.used) for quota in quotas}
    unplaced: list[Unplaced] = []
    left: list[Shape] = []
    for shape in shapes:
        kept = []
        asked = _asked(shape, families)
        for pod in shape.pods:
            mine = [] if _is_booked(pod, families) else [q for q in quotas if q.namespace == pod.namespace]
            texts = [_over(quota, used[quota.namespace, quota.name], asked) for quota in mine]
            if any(texts):
                unplaced.append(_refused(pod, next(filter(None, texts))))
                continue
            kept.append(pod)
            for quota in mine:
                used[quota.namespace, quota.name] = used[quota.namespace, quota.name] + asked
        if kept:
            left.append(Shape(tuple(kept)))
    return tuple(unplaced), tuple(left)


def _is_booked(pod: Pod, families: tuple[Family, ...]) -> bool:
    """Whether its scheduler has counted it already."""
    return any(family.booked_node(pod) for family in families)


def _asked(shape: Shape, families: tuple[Family, ...]) -> Resources:
    """What one pod of the shape counts against a quota."""
    asked = Resources()
    for family in families:
        demand = demand_of(shape, family)
        if isinstance(demand, PodDemand) and not demand.is_empty:
            asked = asked + family.quota_asked(demand)
    return asked


def _over(quota: ResourceQuota, used: Resources, asked: Resources) -> str:
    for name in sorted(quota.hard):
        more = asked.get(name, 0)
        if more > 0 and used.get(name, 0) + more > quota.hard[name]:
            return (
                f"ResourceQuota {quota.namespace}/{quota.name}: {name} {quota.hard[name]}, "
                f"{used.get(name, 0)} used or planned, {more} more needed"
            )
    return ""


def _refused(pod: Pod, reason: str) -> Unplaced:
    hint = "no node would help: raise the quota, or wait until pods have ended"
    return Unplaced(pod.key, Stage.DEVICES, reason, hint)
