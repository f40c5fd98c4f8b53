"""ResourceQuotas that a sharing family enforces, counted as pods are planned.

HAMi refuses a pod over its namespace's quota whatever node there is, so a node bought for it would stay empty. The
pods of a namespace are taken in queue order; those beyond the quota are left out before anything is bought.
"""

from collections.abc import Callable, Mapping, Sequence

from kerf.engine.decision import Refusal
from kerf.engine.place.devices import demands, quota_limits
from kerf.engine.place.shapes import Shape
from kerf.model.causes import Name, OverResourceQuota
from kerf.model.plan import Stage
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Family


def within_quotas(
    shapes: Sequence[Shape],
    quotas: Sequence[ResourceQuota],
    families: tuple[Family, ...],
    most_cards: Callable[[Family], int],
) -> tuple[tuple[Refusal, ...], tuple[Shape, ...]]:
    """Pods over a quota, and the shapes that are left. Quotas of one namespace all hold.

    `most_cards` says how many cards a node of a family has at most, on which depends what a pod holds.
    """
    if not quotas:
        return (), tuple(shapes)
    used = {(quota.namespace, quota.name): Resources(quota.used) for quota in quotas}
    limits = {(quota.namespace, quota.name): quota_limits(quota, families) for quota in quotas}
    refusals: list[Refusal] = []
    left: list[Shape] = []
    sizes: dict[str, int] = {}
    for shape in shapes:
        kept = []
        asked, held = Resources(), Resources()
        for family, demand in demands(shape, families):
            if family.name not in sizes:
                sizes[family.name] = most_cards(family)
            asked = asked + family.quota_asked(demand)
            held = held + family.quota_held(demand, sizes[family.name])
        for pod in shape.pods:
            mine = [] if _is_booked(pod, families) else [q for q in quotas if q.namespace == pod.namespace]
            keys = [(quota.namespace, quota.name) for quota in mine]
            over = (_over(key, limits[key], used[key], asked) for key in keys)
            cause = next(filter(None, over), None)
            if cause is not None:
                refusals.append(Refusal((pod,), Stage.DEVICES, cause))
                continue
            kept.append(pod)
            for key in keys:
                used[key] = used[key] + held
        if kept:
            left.append(Shape(tuple(kept)))
    return tuple(refusals), tuple(left)


def _is_booked(pod: Pod, families: tuple[Family, ...]) -> bool:
    """Whether its scheduler has counted it already."""
    return any(family.booked_node(pod) for family in families)


def _over(
    quota: tuple[str, str], limits: Mapping[str, int], used: Resources, asked: Resources
) -> OverResourceQuota | None:
    for name in sorted(limits):
        more = asked.get(name, 0)
        if more > 0 and used.get(name, 0) + more > limits[name]:
            return OverResourceQuota(Name(quota[0]), Name(quota[1]), Name(name), limits[name], used.get(name, 0), more)
    return None
