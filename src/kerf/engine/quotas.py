"""ResourceQuotas that a sharing family enforces, counted as pods are planned.

HAMi refuses a pod over its namespace's quota whatever node there is, so that a node bought for it would stay empty. The
pods of a namespace are taken in queue order; those beyond the quota are left out before anything is bought.
"""

from collections.abc import Sequence

from kerf.engine.decision import Refusal
from kerf.engine.place.devices import demand_of
from kerf.engine.place.shapes import Shape
from kerf.model.causes import Name, OverResourceQuota
from kerf.model.plan import Stage
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Family


def within_quotas(
    shapes: Sequence[Shape], quotas: Sequence[ResourceQuota], families: tuple[Family, ...]
) -> tuple[tuple[Refusal, ...], tuple[Shape, ...]]:
    """Pods over a quota, and the shapes that are left. Quotas of one namespace all hold."""
    if not quotas:
        return (), tuple(shapes)
    used = {(quota.namespace, quota.name): Resources(quota.used) for quota in quotas}
    refusals: list[Refusal] = []
    left: list[Shape] = []
    for shape in shapes:
        kept = []
        asked = _asked(shape, families)
        for pod in shape.pods:
            mine = [] if _is_booked(pod, families) else [q for q in quotas if q.namespace == pod.namespace]
            over = (_over(quota, used[quota.namespace, quota.name], asked) for quota in mine)
            cause = next(filter(None, over), None)
            if cause is not None:
                refusals.append(Refusal((pod,), Stage.DEVICES, cause))
                continue
            kept.append(pod)
            for quota in mine:
                used[quota.namespace, quota.name] = used[quota.namespace, quota.name] + asked
        if kept:
            left.append(Shape(tuple(kept)))
    return tuple(refusals), tuple(left)


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


def _over(quota: ResourceQuota, used: Resources, asked: Resources) -> OverResourceQuota | None:
    for name in sorted(quota.hard):
        more = asked.get(name, 0)
        if more > 0 and used.get(name, 0) + more > quota.hard[name]:
            owner, resource = (Name(quota.namespace), Name(quota.name)), Name(name)
            return OverResourceQuota(*owner, resource, quota.hard[name], used.get(name, 0), more)
    return None
