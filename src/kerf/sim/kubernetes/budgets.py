"""PodDisruptionBudgets: how many pods may go just now, counted from the pods themselves.

Follows the disruption controller and the eviction handler of Kubernetes: what should be there comes from the owner's
`replicas` (not from the pods that happen to exist), percentages round up, and a pod that never became ready may
go whatever the budget says as long as the ready ones suffice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import is_not

from kerf.errors import ApiError
from kerf.ports import EvictionBlocked
from kerf.sim.objects import (
    Json,
    ObjectLookup,
    controller_of,
    is_deleting,
    is_ended,
    is_ready,
    name_of,
    phase_of,
    selected,
    uid_of,
)


@dataclass(frozen=True, slots=True)
class BudgetCount:
    """Pods that a budget expects, wants healthy, and finds healthy; `allowed` may be evicted now."""

    expected: int
    desired: int
    healthy: int
    allowed: int


class _NoScale(Exception):
    """The controller of a pod has no number of replicas (a Job): the budget then allows nothing."""


def count_budget(objects: ObjectLookup, budget: Json) -> BudgetCount:
    """What `budget` allows at this moment."""
    spec = budget["spec"]
    pods = [pod for pod in _covered_pods(objects, budget) if not is_ended(pod)]
    healthy = sum(1 for pod in pods if is_ready(pod) and not is_deleting(pod))
    try:
        expected, desired = _expected_and_desired(objects, spec, pods)
    except _NoScale:
        return BudgetCount(len(pods), len(pods), healthy, 0)
    return BudgetCount(expected, desired, healthy, max(0, healthy - desired) if expected > 0 else 0)


def check_eviction(objects: ObjectLookup, pod: Json) -> None:
    """Raises EvictionBlocked while a budget forbids the eviction, ApiError when several budgets cover the pod."""
    if is_ended(pod) or is_deleting(pod) or phase_of(pod) == "Pending":
        return
    covering = [budget for budget in objects.list("PodDisruptionBudget") if _covers(budget, pod)]
    if len(covering) > 1:
        raise ApiError(
            f"pod {name_of(pod)} has more than one PodDisruptionBudget, which the eviction subresource does not support"
        )
    for budget in covering:
        count = count_budget(objects, budget)
        if not is_ready(pod) and _lets_unready_go(budget, count):
            continue
        if count.allowed <= 0:
            raise EvictionBlocked(
                f"cannot evict pod {name_of(pod)}: the disruption budget {name_of(budget)} needs {count.desired} "
                f"healthy pods and has {count.healthy} currently"
            )


def _lets_unready_go(budget: Json, count: BudgetCount) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return count.healthy >= count.desired > 0


def _covers(budget: Json, pod: Json) -> bool:
    return bool(covered(budget, [pod]))


def covered(budget: Json, objects: Iterable[Json]) -> list[Json]:
    """Those in the namespace of a budget whose labels it selects."""
    namespace = budget["metadata"]["namespace"]
    return selected(budget["spec"].get("selector"), (o for o in objects if o["metadata"]["namespace"] == namespace))


def _covered_pods(objects: ObjectLookup, budget: Json) -> list[Json]:
    label = _label_of(budget)
    if label is None:
        return covered(budget, objects.list("Pod"))
    return covered(budget, objects.pods_with(budget["metadata"]["namespace"], *label))


def _label_of(budget: Json) -> tuple[str, str] | None:
    """A label that all of a budget's pods have; None where its selector names none."""
    selector = budget["spec"].get("selector") or {}
    return next(iter((selector.get("matchLabels") or {}).items()), None)


class Covering:
    """The budgets that cover an object, found by its labels. Of many budgets few are asked."""

    def __init__(self, objects: ObjectLookup) -> None:
        self._objects = objects
        self._specs: list[Json] = []
        self._by_label: dict[tuple[str, str, str], list[int]] = {}
        self._others: list[int] = []

    def of(self, obj: Json) -> list[Json]:
        """Those that are there now, by namespace and name."""
        budgets = self._objects.list("PodDisruptionBudget")
        specs = [each["spec"] for each in budgets]
        # Their statuses change all the time, and no spec ever changes in place.
        if len(specs) != len(self._specs) or any(map(is_not, specs, self._specs)):
            self._index(budgets)
        metadata = obj["metadata"]
        found = list(self._others)
        for label in (metadata.get("labels") or {}).items():
            found += self._by_label.get((metadata["namespace"], *label), ())
        return [budgets[at] for at in sorted(found) if _covers(budgets[at], obj)]

    def _index(self, budgets: list[Json]) -> None:
        self._specs, self._by_label, self._others = [each["spec"] for each in budgets], {}, []
        for at, budget in enumerate(budgets):
            label = _label_of(budget)
            if label is None:
                self._others.append(at)
            else:
                self._by_label.setdefault((budget["metadata"]["namespace"], *label), []).append(at)


def _expected_and_desired(objects: ObjectLookup, spec: Json, pods: list[Json]) -> tuple[int, int]:
    if "maxUnavailable" in spec:
        expected = _expected_scale(objects, pods)
        return expected, max(0, expected - scaled(spec["maxUnavailable"], expected))
    least = spec.get("minAvailable", 0)
    expected = len(pods) if isinstance(least, int) else _expected_scale(objects, pods)
    return expected, scaled(least, expected)


def scaled(value: int | str, total: int, *, round_up: bool = True) -> int:
    """An absolute number as it is, a percentage of `total` rounded."""
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * total
    return -(-share // 100) if round_up else share // 100


def _expected_scale(objects: ObjectLookup, pods: list[Json]) -> int:
    """The sum of `replicas` over the pods' controllers; pods without a controller do not count."""
    scales: dict[str, int] = {}
    for pod in pods:
        reference = controller_of(pod)
        if reference is None:
            continue
        owner = objects.get(reference["kind"], pod["metadata"]["namespace"], reference["name"])
        while owner is not None and (above := controller_of(owner)) is not None:
            owner = objects.get(above["kind"], pod["metadata"]["namespace"], above["name"])
        if owner is None:
            continue
        if owner["kind"] not in ("Deployment", "ReplicaSet", "StatefulSet"):
            raise _NoScale
        scales[uid_of(owner)] = owner["spec"].get("replicas", 1)
    return sum(scales.values())
