"""Pods of a trace: when each comes, how long it runs, and what it asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kerf.sim.objects import Json

HAMI, WHOLE = "hami", "whole"
SHARING = (HAMI, WHOLE)
GPU, PERCENT, MEMORY_MIB = "nvidia.com/gpu", "nvidia.com/gpumem-percentage", "nvidia.com/gpumem"


@dataclass(frozen=True)
class PodForm:
    """What pods ask for: the limits of one container, and labels. Pods of one form share the value."""

    limits: Mapping[str, str]
    labels: Mapping[str, str]

    def object(self) -> Json:
        """The part of a Pod that is the same for all of them, not to be changed."""
        container = {"name": "main", "image": "trace", "resources": {"limits": dict(self.limits)}}
        return {"labels": dict(self.labels), "spec": {"restartPolicy": "Never", "containers": [container]}}


class TimedPod(NamedTuple):
    """A pod that comes `came_s` seconds into the trace, by the trace's own clock.

    It runs for `runs_s` seconds once it has started; None: until the end. `name` is a name of Kubernetes.
    """

    name: str
    came_s: int
    runs_s: int | None
    form: PodForm


class PodForms:
    """Makes forms, one value for all that are equal."""

    def __init__(self, sharing: str) -> None:
        self._sharing = sharing
        self._made: dict[tuple[tuple[str, str], ...], PodForm] = {}

    def form(self, limits: Mapping[str, str], labels: Mapping[str, str] | None = None) -> PodForm:
        """The form with these limits; without HAMi a share of a card is a whole one."""
        kept = {name: amount for name, amount in limits.items() if self._sharing == HAMI or name not in _OF_A_CARD}
        key = (*sorted(kept.items()), *sorted((labels or {}).items()))
        if key not in self._made:
            self._made[key] = PodForm(kept, dict(labels or {}))
        return self._made[key]


_OF_A_CARD = (PERCENT, MEMORY_MIB)
