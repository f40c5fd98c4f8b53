"""Which preferences pods have their places without, in words."""

from collections.abc import Iterable
from functools import singledispatch

from kerf.engine.decision import Decision
from kerf.engine.explain.causes import cause_text, counted, some, words
from kerf.model.causes import Name
from kerf.model.constraints import Requirements
from kerf.model.pods import Pod
from kerf.model.preferences import (
    Preference,
    PreferenceDropped,
    PrefersAway,
    PrefersEven,
    PrefersNear,
    PrefersNode,
    PrefersUntainted,
)
from kerf.model.rejections import workload_of

_MOST = 8
"""So many preferences are named; any tenant may write as many as it likes."""


def dropped_notes(decision: Decision, pods: Iterable[Pod]) -> tuple[str, ...]:
    """One note for each preference that some of the pods have a place without, in the order of the pods."""
    found: dict[Preference, list[Pod]] = {}
    for pod in pods:
        for preference in decision.dropped.get(pod.key, ()):
            found.setdefault(preference, []).append(pod)
    notes = [cause_text(_dropped(*each)) for each in list(found.items())[:_MOST]]
    if len(found) > _MOST:
        notes.append(f"{counted(len(found) - _MOST, 'preference')} more could not be had with a place")
    return tuple(notes)


def _dropped(preference: Preference, pods: list[Pod]) -> PreferenceDropped:
    workloads = dict.fromkeys(map(workload_of, pods))
    names = sorted(f"{kind} {namespace}/{name}" for namespace, kind, name in workloads)
    return PreferenceDropped(preference, tuple(map(Name, names)), len(pods))


@words.register
def _(cause: PreferenceDropped) -> str:
    whose = f"{counted(cause.pods, 'pod')} ({some(cause.workloads)})"
    return f"{whose}: planned without a preference that could not be had with a place: {preferred(cause.preference)}"


@singledispatch
def preferred(preference: object) -> str:
    """The preference in words."""
    raise TypeError(f"expected a preference, got {type(preference).__name__}")


@preferred.register
def _(preference: PrefersNode) -> str:
    return f"node affinity, weight {preference.weight}: {preference.labels}"


@preferred.register
def _(preference: PrefersNear) -> str:
    meant = _selected(preference.term.selector)
    return f"podAffinity, weight {preference.weight}: in one {preference.term.key} with pods with {meant}"


@preferred.register
def _(preference: PrefersAway) -> str:
    meant = _selected(preference.term.selector)
    return f"podAntiAffinity, weight {preference.weight}: in no {preference.term.key} with pods with {meant}"


@preferred.register
def _(preference: PrefersEven) -> str:
    asked = preference.constraint
    meant = _selected(asked.selector)
    return f"topologySpreadConstraints, ScheduleAnyway: maxSkew {asked.max_skew} over {asked.key} of pods with {meant}"


@preferred.register
def _(preference: PrefersUntainted) -> str:
    return "no node with a PreferNoSchedule taint that is not tolerated"


def _selected(selector: Requirements) -> str:
    return "no labels at all" if selector.is_never else str(selector) or "any labels"
