"""Preferences treated as required, and dropped one by one in Karpenter's order until there is a place.

The order is that of karpenter's pkg/controllers/provisioning/scheduling/preferences.go: preferred pod affinity, pod
anti-affinity and node affinity, of each the heaviest term first, then spread with ScheduleAnyway, last the taints of
PreferNoSchedule. Of node affinity only the heaviest term counts at a time (pkg/scheduling/requirements.go), and none
narrows over which nodes a spread counts. Karpenter also drops required terms of node affinity, which are alternatives:
Kerf tries all of them at once, so there is nothing to drop.

A form is the spec of a pod with some of its preferences. Forms are made once a spec, never a pod.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeVar

from kerf.engine.place.shapes import Shape
from kerf.model.constraints import ANYTHING, PREFER_NO_SCHEDULE, Taint
from kerf.model.pods import PodSpec
from kerf.model.preferences import (
    Preference,
    PrefersAway,
    PrefersEven,
    PrefersNear,
    PrefersNode,
    PrefersUntainted,
    Wish,
)
from kerf.model.topology import TopologySpreadConstraint

_T = TypeVar("_T")
_MOST = 32
"""So many preferences of a pod are heeded: of more, those that are dropped first never count."""


@dataclass(frozen=True, eq=False)
class Form:
    """The spec of pods with what is left of their preferences, and those that were dropped before; the first has all.

    The last form is the pods' own spec, which asks for none.
    """

    spec: PodSpec
    dropped: tuple[Preference, ...] = ()


class Forms:
    """The forms of specs, made once each. `taints` are those of nodes there are and that can be bought.

    Forms with a preference of which `can_hold` says no are left out: nothing takes a pod in them.
    """

    def __init__(
        self,
        taints: Iterable[Taint] = (),
        *,
        are_ignored: bool = False,
        can_hold: Callable[[Preference], bool] = lambda _: True,
    ) -> None:
        self._are_ignored, self._can_hold = are_ignored, can_hold
        self._taints = tuple(dict.fromkeys(taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE))
        # The spec is kept beside its forms: an identity is free again once its object is gone.
        self._known: dict[int, tuple[PodSpec, tuple[Form, ...]]] = {}

    def of(self, spec: PodSpec) -> tuple[Form, ...]:
        """The forms, with all preferences first; its own spec alone where it has none or they are ignored."""
        if self._are_ignored:
            return (Form(spec),)
        held = self._known.get(id(spec))
        if held is None:
            held = self._known[id(spec)] = spec, tuple(self._made(spec))
        return held[1]

    def _made(self, spec: PodSpec) -> Iterator[Form]:
        order = in_order(spec, is_avoiding=self._is_avoiding(spec))
        vain = max((at for at, each in enumerate(order, 1) if not self._can_hold(each)), default=0)
        for dropped in range(max(vain, len(order) - _MOST), len(order)):
            yield Form(replace(spec, wish=_wish(order[dropped:])), order[:dropped])
        yield Form(spec, order)

    def _is_avoiding(self, spec: PodSpec) -> bool:
        """Whether there is a taint that it would rather not meet."""
        return any(not any(each.tolerates(taint) for each in spec.tolerations) for taint in self._taints)


def formed(shape: Shape, form: Form) -> Shape:
    """The pods of the shape in a form of their spec."""
    return shape if form.spec is shape.spec else Shape(shape.pods, form.spec)


def in_order(spec: PodSpec, *, is_avoiding: bool = False) -> tuple[Preference, ...]:
    """All preferences of a spec, the first to be dropped first."""
    found: list[Preference] = [PrefersNear(*each) for each in _heaviest(spec.pod_affinity.preferred)]
    found += [PrefersAway(*each) for each in _heaviest(spec.pod_anti_affinity.preferred)]
    found += [PrefersNode(*each) for each in _heaviest(spec.preferred)]
    found += map(PrefersEven, _spread_in_order(spec.spread))
    if is_avoiding:
        found.append(PrefersUntainted())
    return tuple(found)


def _heaviest(terms: Sequence[tuple[int, _T]]) -> list[tuple[int, _T]]:
    return sorted(terms, key=itemgetter(0), reverse=True)


def _spread_in_order(constraints: Sequence[TopologySpreadConstraint]) -> Iterator[TopologySpreadConstraint]:
    """Each time the first of them; the last takes its place in the list, as Karpenter removes it."""
    left = list(constraints)
    while (at := next((n for n, each in enumerate(left) if not each.is_required), None)) is not None:
        yield left[at]
        left[at] = left[-1]
        left.pop()


def _wish(kept: Sequence[Preference]) -> Wish:
    return Wish(
        next((each.labels for each in kept if isinstance(each, PrefersNode)), ANYTHING),
        tuple(each.term for each in kept if isinstance(each, PrefersNear)),
        tuple(each.term for each in kept if isinstance(each, PrefersAway)),
        tuple(each.constraint for each in kept if isinstance(each, PrefersEven)),
        any(isinstance(each, PrefersUntainted) for each in kept),
    )
