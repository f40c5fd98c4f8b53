"""What an API server adds to new pods: defaults of LimitRanges, priorities of PriorityClasses.

Only pods that a manifest describes and no server has seen need it; the rules are those of the plug-ins LimitRanger
and Priority.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from kerf.manifests.schema import Path, Problem, mistake
from kerf.model.opportunistic import PRIORITY, PRIORITY_CLASS
from kerf.model.pods import PodSpec
from kerf.model.quantities import CPU, NOTHING, Resources, quantity, quantity_text

_OF_CONTAINERS, _OF_PODS = "Container", "Pod"
_BUILT_IN_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
    PRIORITY_CLASS: PRIORITY,
}
"""Of every server, and the one that is applied with Kerf."""


@dataclass(frozen=True)
class AllowedRange:
    """What one entry of a LimitRange allows: each container (`kind` Container), or each pod in sum (Pod).

    `ratios` are how many times the request the limit may be, in thousandths, by resource.
    """

    kind: str
    most: Resources = NOTHING
    least: Resources = NOTHING
    ratios: Resources = NOTHING

    def broken(self, requests: Resources, limits: Resources, at: Path) -> Problem | None:
        """The first breach of what is asked at `at`; None without one."""
        for name, most in sorted(self.most.items()):
            limit, request = limits.get(name, 0), requests.get(name, 0)
            if name not in limits or limit > most:
                return self._problem((*at, "limits", name), f"at most {quantity_text(name, most)}, the max", limit)
            if request > most:
                return self._problem((*at, "requests", name), f"at most {quantity_text(name, most)}, the max", request)
        for name, least in sorted(self.least.items()):
            if requests.get(name, 0) < least:
                expected = f"at least {quantity_text(name, least)}, the min"
                return self._problem((*at, "requests", name), expected, requests.get(name, 0))
        for name, ratio in sorted(self.ratios.items()):
            limit, request = limits.get(name, 0), requests.get(name, 0)
            if not limit or not request or 1000 * limit > ratio * request:
                expected = f"at most {quantity_text(CPU, ratio)} times the request, the maxLimitRequestRatio"
                return self._problem((*at, "limits", name), expected, limit)
        return None

    def _problem(self, path: Path, expected: str, amount: int) -> Problem:
        whole = " for whole pods" if self.kind == _OF_PODS else ""
        got = quantity_text(str(path[-1]), amount) if amount else None
        return mistake(path, f"{expected} of a LimitRange of its namespace{whole}", got)


@dataclass(frozen=True)
class Defaults:
    """What new pods of one namespace get. `priority_class` is the class of pods that name none."""

    limits: Resources = NOTHING
    requests: Resources = NOTHING
    priorities: tuple[tuple[str, int], ...] = ()
    priority_class: str = ""
    bounds: tuple[AllowedRange, ...] = ()

    def out_of_range(self, spec: PodSpec) -> Problem | None:
        """Why LimitRanger refuses a pod whose containers have their defaults; None when it does not.

        Kubernetes 1.36, plugin/pkg/admission/limitranger, PodValidateLimitFunc. Ranges for claims are not looked at.
        """
        asked: list[tuple[str, Resources, Resources, Path]] = [
            (_OF_CONTAINERS, container.requests, container.limits, (part, index, "resources"))
            for part, containers in (("initContainers", spec.init_containers), ("containers", spec.containers))
            for index, container in enumerate(containers)
        ]
        whole = spec.requests_of_containers.replaced(spec.pod_requests)
        limits = spec.limits_of_containers.replaced(spec.pod_limits)
        asked.append((_OF_PODS, whole, limits, ("resources",)))
        found = (
            bounds.broken(requests, limits, at)
            for kind, requests, limits, at in asked
            for bounds in self.bounds
            if bounds.kind == kind
        )
        return next(filter(None, found), None)

    def priority_of(self, class_name: str, stated: int | None) -> int:
        """What a pod of the class gets, 0 without one; `stated` is its own, which counts where the class is absent."""
        found = self._priority(class_name)
        return (stated or 0) if found is None else found

    def priority_refused(self, class_name: str, stated: int | None) -> Problem | None:
        """Why the plug-in Priority refuses a pod of the class; None when it does not.

        An input without PriorityClasses may lack the kind, so a class that is absent there is taken for there.
        """
        found = self._priority(class_name)
        if found is None:
            names = [name for name, _ in self.priorities]
            meant = get_close_matches(class_name, names, 1)
            hint = f"is `{meant[0]}` meant?" if meant else ""
            absent = mistake(("priorityClassName",), "a PriorityClass that there is", class_name, hint)
            return absent if names else None
        if stated is None or stated == found:
            return None
        why = "which its PriorityClass gives" if class_name else "as without a priorityClassName"
        return mistake(("priority",), f"{found}, {why}", stated, "leave it out: the server fills it in")

    def is_absent(self, class_name: str) -> bool:
        """Whether neither the input nor every server has the class."""
        return self._priority(class_name) is None

    def _priority(self, class_name: str) -> int | None:
        """The value of a PriorityClass, 0 of none; None for one that was not given."""
        return {"": 0, **_BUILT_IN_PRIORITIES, **dict(self.priorities)}.get(class_name)


@dataclass(frozen=True)
class AdmissionDefaults:
    """Defaults by namespace, and those of every other namespace."""

    by_namespace: Mapping[str, Defaults] = field(default_factory=dict)
    elsewhere: Defaults = Defaults()

    def defaults(self, namespace: str) -> Defaults:
        """What new pods of `namespace` get."""
        return self.by_namespace.get(namespace, self.elsewhere)


def admission_of(priority_classes: list[dict[str, Any]], limit_ranges: list[dict[str, Any]]) -> AdmissionDefaults:
    """From the checked objects of both kinds; their order does not matter."""
    priorities = tuple(sorted((raw["metadata"]["name"], raw["value"]) for raw in priority_classes))
    # With several global defaults the API server takes the one of the smallest value.
    globals_ = sorted((raw["value"], raw["metadata"]["name"]) for raw in priority_classes if raw.get("globalDefault"))
    default_class = globals_[0][1] if globals_ else ""
    by_namespace: dict[str, Defaults] = {}
    for raw in sorted(limit_ranges, key=lambda one: str(one["metadata"]["name"])):
        namespace = raw["metadata"].get("namespace") or "default"
        held = by_namespace.get(namespace, Defaults(priorities=priorities, priority_class=default_class))
        limits, requests = _container_defaults(raw)
        by_namespace[namespace] = Defaults(
            limits.replaced(held.limits),
            requests.replaced(held.requests),
            priorities,
            default_class,
            (*held.bounds, *_bounds(raw)),
        )
    return AdmissionDefaults(by_namespace, Defaults(priorities=priorities, priority_class=default_class))


def _bounds(raw: dict[str, Any]) -> Iterator[AllowedRange]:
    for item in raw["spec"]["limits"]:
        most, least = (Resources.parse(item.get(name) or {}) for name in ("max", "min"))
        stated = item.get("maxLimitRequestRatio") or {}
        ratios = Resources({name: quantity(ratio, milli=True) for name, ratio in stated.items()})
        if item["type"] in (_OF_CONTAINERS, _OF_PODS) and (most or least or ratios):
            yield AllowedRange(item["type"], most, least, ratios)


def _container_defaults(raw: dict[str, Any]) -> tuple[Resources, Resources]:
    """(limits, requests) of a LimitRange: a limit defaults to `max`, a request to the limit, then to `min`."""
    limits, requests = NOTHING, NOTHING
    for item in raw["spec"]["limits"]:
        if item["type"] != "Container":
            continue
        given = {name: Resources.parse(item.get(name) or {}) for name in ("default", "defaultRequest", "max", "min")}
        most = given["max"].replaced(given["default"])
        limits = most.replaced(limits)
        requests = given["min"].replaced(most).replaced(given["defaultRequest"]).replaced(requests)
    return limits, requests
