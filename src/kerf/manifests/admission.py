"""What an API server adds to new pods: defaults of LimitRanges, priorities of PriorityClasses.

Only pods that a manifest describes and no server has seen need it; the rules are those of the plug-ins LimitRanger
and Priority.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from kerf.manifests.schema import Path, Problem, mistake
from kerf.model.opportunistic import PRIORITY, PRIORITY_CLASS
from kerf.model.pods import Container
from kerf.model.quantities import NOTHING, Resources, quantity_text

_BUILT_IN_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
    PRIORITY_CLASS: PRIORITY,
}
"""Of every server, and the one that is applied with Kerf."""


@dataclass(frozen=True)
class Defaults:
    """What new pods of one namespace get. `priority_class` is the class of pods that name none."""

    limits: Resources = NOTHING
    requests: Resources = NOTHING
    priorities: tuple[tuple[str, int], ...] = ()
    priority_class: str = ""
    most: Resources = NOTHING
    least: Resources = NOTHING

    def out_of_range(self, container: Container, at: Path) -> Problem | None:
        """Why LimitRanger refuses the container at `at`; None when it does not."""
        for name, most in sorted(self.most.items()):
            limit, request = container.limits.get(name, 0), container.requests.get(name, 0)
            if max(limit, request) > most:
                part, asked = ("limits", limit) if limit > most else ("requests", request)
                expected = f"at most {quantity_text(name, most)}, the max of a LimitRange of its namespace"
                return mistake((*at, "resources", part, name), expected, quantity_text(name, asked))
        for name, least in sorted(self.least.items()):
            asked = container.requests.get(name, 0)
            if asked < least:
                expected = f"at least {quantity_text(name, least)}, the min of a LimitRange of its namespace"
                got = quantity_text(name, asked) if asked else None
                return mistake((*at, "resources", "requests", name), expected, got)
        return None

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
            _bounds(raw, "max").replaced(held.most),
            _bounds(raw, "min").replaced(held.least),
        )
    return AdmissionDefaults(by_namespace, Defaults(priorities=priorities, priority_class=default_class))


def _bounds(raw: dict[str, Any], name: str) -> Resources:
    """`max` or `min` of a LimitRange for containers."""
    found = NOTHING
    for item in raw["spec"]["limits"]:
        if item["type"] == "Container":
            found = found.replaced(Resources.parse(item.get(name) or {}))
    return found


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
