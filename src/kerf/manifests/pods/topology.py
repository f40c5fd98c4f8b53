"""Topology spread and pod affinity, from a spec's dictionary, and why an API server would refuse them.

What single fields must be is checked here and not in the form of the spec: a mistake is that of one pod, which is
refused with a reason, and the others of the file are planned. The rules are those of the API server (kubernetes
pkg/apis/core/validation, `validateTopologySpreadConstraints` and `validatePodAffinityTerm`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kerf.errors import brief
from kerf.manifests.kinds import LABEL_OPERATORS
from kerf.manifests.pods.selectors import selector_of
from kerf.manifests.schema import LABEL_KEY, LABEL_VALUE, Path, path_text
from kerf.model.constraints import NEVER, Requirements
from kerf.model.topology import NO_AFFINITY, SPREAD, PodAffinity, PodAffinityTerm, TopologySpreadConstraint

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_NODE_NAME = "metadata.name"

_Raw = Mapping[str, Any]


def spread_of(raw: _Raw) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints of a spec, in their order; a mistake in one counts as `refused_topology` says."""
    return tuple(_spread(each) for each in raw.get(SPREAD) or ())


def _spread(raw: _Raw) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        raw.get("topologyKey") or "",
        raw.get("maxSkew") or 0,
        _selector(raw.get("labelSelector")),
        (raw.get("whenUnsatisfiable") or _ACTIONS[0]) == _ACTIONS[0],
        raw.get("minDomains") or 1,
        tuple(sorted(raw.get("matchLabelKeys") or ())),
        (raw.get("nodeAffinityPolicy") or "Honor") == "Honor",
        (raw.get("nodeTaintsPolicy") or "Ignore") == "Honor",
    )


def pod_affinity_of(raw: _Raw, kind: str, *, is_live: bool) -> PodAffinity:
    """`podAffinity` or `podAntiAffinity` of a spec. Of a live pod a server has put label keys into the selectors."""
    stated = (raw.get("affinity") or {}).get(kind) or {}
    if not stated.get(REQUIRED) and not stated.get(PREFERRED):
        return NO_AFFINITY
    required = tuple(_term(each, is_live) for each in stated.get(REQUIRED) or ())
    weighted = stated.get(PREFERRED) or ()
    preferred = ((each.get("weight") or 0, _term(each.get("podAffinityTerm") or {}, is_live)) for each in weighted)
    return PodAffinity(required, tuple(preferred))


def _term(raw: _Raw, is_live: bool) -> PodAffinityTerm:
    namespaces = raw.get("namespaceSelector")
    return PodAffinityTerm(
        raw.get("topologyKey") or "",
        _selector(raw.get("labelSelector")),
        tuple(sorted(set(raw.get("namespaces") or ()))),
        None if namespaces is None else _selector(namespaces),
        () if is_live else tuple(sorted(raw.get("matchLabelKeys") or ())),
        () if is_live else tuple(sorted(raw.get("mismatchLabelKeys") or ())),
    )


def _selector(raw: Any) -> Requirements:
    """The selector; NEVER for one that no server would take: it is refused with its pod."""
    return NEVER if raw is not None and _refused_selector(raw, ()) else selector_of(raw)


def refused_topology(raw: _Raw) -> str:
    """Why the API server would refuse these parts of the spec; empty when it would not."""
    found = (refusal for refusals in (_refused_spread(raw), _refused_terms(raw)) for refusal in refusals)
    return next(found, "")


def _refused_spread(raw: _Raw) -> Iterator[str]:
    seen = set()
    for index, each in enumerate(raw.get(SPREAD) or ()):
        at: Path = (SPREAD, index)
        yield from _refused_key(each, at)
        action = each.get("whenUnsatisfiable")
        if action not in _ACTIONS:
            yield _not((*at, "whenUnsatisfiable"), f"one of {', '.join(_ACTIONS)}", action)
        if (each.get("maxSkew") or 0) < 1:
            yield _not((*at, "maxSkew"), "at least 1", each.get("maxSkew"))
        least = each.get("minDomains")
        if least is not None and (least < 1 or action != _ACTIONS[0]):
            yield _not((*at, "minDomains"), "at least 1, and with DoNotSchedule only", least)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if each.get(name) not in (None, *_POLICIES):
                yield _not((*at, name), f"one of {', '.join(_POLICIES)}", each[name])
        yield from _refused_selector(each.get("labelSelector"), (*at, "labelSelector"))
        yield from _refused_label_keys(each, at, ("matchLabelKeys",))
        pair = (each.get("topologyKey"), action)
        if pair in seen:
            yield f"{path_text(at)}: a second constraint of {brief(pair[0])} with {brief(action)}"
        seen.add(pair)


def _refused_terms(raw: _Raw) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        stated = (raw.get("affinity") or {}).get(kind) or {}
        at: Path = ("affinity", kind, REQUIRED)
        for index, term in enumerate(stated.get(REQUIRED) or ()):
            yield from _refused_term(term, (*at, index))
        at = ("affinity", kind, PREFERRED)
        for index, weighted in enumerate(stated.get(PREFERRED) or ()):
            if not 1 <= (weighted.get("weight") or 0) <= 100:
                yield _not((*at, index, "weight"), "from 1 to 100", weighted.get("weight"))
            yield from _refused_term(weighted.get("podAffinityTerm") or {}, (*at, index, "podAffinityTerm"))


def _refused_term(raw: _Raw, at: Path) -> Iterator[str]:
    yield from _refused_key(raw, at)
    for name in ("labelSelector", "namespaceSelector"):
        yield from _refused_selector(raw.get(name), (*at, name))
    yield from _refused_label_keys(raw, at, ("matchLabelKeys", "mismatchLabelKeys"))


def _refused_key(raw: _Raw, at: Path) -> Iterator[str]:
    if not LABEL_KEY.accepts(raw.get("topologyKey")):
        yield _not((*at, "topologyKey"), "a label key such as topology.kubernetes.io/zone", raw.get("topologyKey"))


def _refused_selector(raw: Any, at: Path) -> list[str]:
    refused = list(refused_labels((raw or {}).get("matchLabels") or {}, (*at, "matchLabels")))
    for index, each in enumerate((raw or {}).get("matchExpressions") or ()):
        operator, values = each.get("operator"), each.get("values") or ()
        if not LABEL_KEY.accepts(each.get("key")):
            path = (*at, "matchExpressions", index, "key")
            refused.append(_not(path, "a label key such as app.kubernetes.io/name", each.get("key")))
        for number, value in enumerate(values):
            if not LABEL_VALUE.accepts(value):
                path = (*at, "matchExpressions", index, "values", number)
                refused.append(_not(path, LABEL_VALUE.expected, value))
        if operator not in LABEL_OPERATORS:
            path = (*at, "matchExpressions", index, "operator")
            refused.append(_not(path, f"one of {', '.join(LABEL_OPERATORS)}", operator))
        elif (operator in ("In", "NotIn")) != bool(values):
            wanted = "at least one value" if operator in ("In", "NotIn") else "no values"
            refused.append(f"{path_text((*at, 'matchExpressions', index, 'values'))} must have {wanted} for {operator}")
    return refused


def refused_labels(labels: Mapping[str, str], at: Path) -> Iterator[str]:
    """Why the API server would refuse a mapping of labels (apimachinery, ValidateLabels)."""
    for key, value in labels.items():
        if not LABEL_KEY.accepts(key):
            yield f"{path_text(at)}: a key must be {LABEL_KEY.expected}, got {brief(key)}"
        if not LABEL_VALUE.accepts(value):
            yield _not((*at, key), LABEL_VALUE.expected, value)


def _refused_label_keys(raw: _Raw, at: Path, names: Iterable[str]) -> Iterator[str]:
    stated = raw.get("labelSelector")
    named = {*((stated or {}).get("matchLabels") or {})}
    named.update(each.get("key") for each in (stated or {}).get("matchExpressions") or ())
    for name in names:
        keys = raw.get(name) or ()
        if keys and stated is None:
            yield f"{path_text((*at, name))} needs a labelSelector"
        for key in keys:
            if key in named:
                yield f"{path_text((*at, name))}: {brief(key)} stands in the labelSelector or in another list too"
            named.add(key)


def refused_fields(fields: Iterable[_Raw], at: Path) -> Iterator[str]:
    """Why the API server would refuse `matchFields` of a node selector term."""
    for index, each in enumerate(fields):
        if each.get("key") != _NODE_NAME:
            yield _not((*at, index, "key"), _NODE_NAME, each.get("key"))
        elif each.get("operator") not in ("In", "NotIn") or len(each.get("values") or ()) != 1:
            yield f"{path_text((*at, index))} must be In or NotIn with one value"


def _not(path: Path, expected: str, got: object) -> str:
    return f"{path_text(path)} must be {expected}, got {brief(got) if got is not None else 'nothing'}"
