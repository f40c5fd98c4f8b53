"""Topology spread and pod affinity, from a spec's dictionary, and why an API server would refuse them.

What single fields must be is checked here and not in the form of the spec: a mistake is that of one pod, which is
refused with a reason, and the others of the file are planned. The rules are those of the API server (kubernetes
pkg/apis/core/validation, `validateTopologySpreadConstraints` and `validatePodAffinityTerm`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kerf.manifests.kinds import LABEL_OPERATORS
from kerf.manifests.pods.selectors import selector_of
from kerf.manifests.schema import DNS_LABEL, LABEL_KEY, LABEL_VALUE, Path, Problem, mistake, no_word
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
    return NEVER if raw is not None and any(_refused_selector(raw, ())) else selector_of(raw)


def refused_topology(raw: _Raw) -> Iterator[Problem]:
    """Why the API server would refuse these parts of the spec. Paths count from the spec."""
    yield from _refused_spread(raw)
    yield from _refused_terms(raw)


def _refused_spread(raw: _Raw) -> Iterator[Problem]:
    seen = set()
    for index, each in enumerate(raw.get(SPREAD) or ()):
        at: Path = (SPREAD, index)
        yield from _refused_key(each, at)
        action = each.get("whenUnsatisfiable")
        if action not in _ACTIONS:
            yield no_word((*at, "whenUnsatisfiable"), _ACTIONS, action)
        if (each.get("maxSkew") or 0) < 1:
            yield mistake((*at, "maxSkew"), "at least 1", each.get("maxSkew"))
        least = each.get("minDomains")
        if least is not None and (least < 1 or action != _ACTIONS[0]):
            yield mistake((*at, "minDomains"), f"at least 1, and with {_ACTIONS[0]} only", least)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if each.get(name) not in (None, *_POLICIES):
                yield no_word((*at, name), _POLICIES, each[name])
        yield from _refused_selector(each.get("labelSelector"), (*at, "labelSelector"))
        yield from _refused_label_keys(each, at)
        pair = (each.get("topologyKey"), action)
        if pair in seen:
            expected = "a topologyKey that no other constraint with the same whenUnsatisfiable has"
            yield mistake((*at, "topologyKey"), expected, pair[0])
        seen.add(pair)


def _refused_terms(raw: _Raw) -> Iterator[Problem]:
    for kind in ("podAffinity", "podAntiAffinity"):
        stated = (raw.get("affinity") or {}).get(kind) or {}
        at: Path = ("affinity", kind, REQUIRED)
        for index, term in enumerate(stated.get(REQUIRED) or ()):
            yield from _refused_term(term, (*at, index))
        at = ("affinity", kind, PREFERRED)
        for index, weighted in enumerate(stated.get(PREFERRED) or ()):
            yield from refused_weight(weighted, (*at, index))
            yield from _refused_term(weighted.get("podAffinityTerm") or {}, (*at, index, "podAffinityTerm"))


def refused_weight(weighted: _Raw, at: Path) -> Iterator[Problem]:
    """Why the API server would refuse the weight of a preference."""
    if not 1 <= (weighted.get("weight") or 0) <= 100:
        yield mistake((*at, "weight"), "a weight from 1 to 100", weighted.get("weight"))


def _refused_term(raw: _Raw, at: Path) -> Iterator[Problem]:
    yield from _refused_key(raw, at)
    for index, namespace in enumerate(raw.get("namespaces") or ()):
        if not DNS_LABEL.accepts(namespace):
            yield mistake((*at, "namespaces", index), DNS_LABEL.expected, namespace)
    for name in ("labelSelector", "namespaceSelector"):
        yield from _refused_selector(raw.get(name), (*at, name))
    yield from _refused_label_keys(raw, at)


def _refused_key(raw: _Raw, at: Path) -> Iterator[Problem]:
    if not LABEL_KEY.accepts(raw.get("topologyKey")):
        expected = "a label key such as topology.kubernetes.io/zone"
        yield mistake((*at, "topologyKey"), expected, raw.get("topologyKey"))


def _refused_selector(raw: Any, at: Path) -> Iterator[Problem]:
    yield from refused_labels((raw or {}).get("matchLabels") or {}, (*at, "matchLabels"))
    for index, each in enumerate((raw or {}).get("matchExpressions") or ()):
        path: Path = (*at, "matchExpressions", index)
        if not LABEL_KEY.accepts(each.get("key")):
            yield mistake((*path, "key"), "a label key such as app.kubernetes.io/name", each.get("key"))
        for number, value in enumerate(each.get("values") or ()):
            if not LABEL_VALUE.accepts(value):
                yield mistake((*path, "values", number), LABEL_VALUE.expected, value)
        yield from refused_operator(each, path, LABEL_OPERATORS)


def refused_operator(raw: _Raw, at: Path, operators: Sequence[str]) -> Iterator[Problem]:
    """Why the API server would refuse the operator of an expression, or the number of values it has for that."""
    operator, values = raw.get("operator"), raw.get("values") or ()
    if operator not in operators:
        yield no_word((*at, "operator"), operators, operator)
    elif (operator in ("In", "NotIn")) != bool(values):
        wanted = "at least one value" if operator in ("In", "NotIn") else "no values"
        yield mistake((*at, "values"), f"{wanted} for {operator}", raw.get("values"))


def refused_labels(labels: Mapping[str, str], at: Path) -> Iterator[Problem]:
    """Why the API server would refuse a mapping of labels (apimachinery, ValidateLabels)."""
    for key, value in labels.items():
        if not LABEL_KEY.accepts(key):
            yield mistake((*at, key), LABEL_KEY.expected, key)
        if not LABEL_VALUE.accepts(value):
            yield mistake((*at, key), LABEL_VALUE.expected, value)


def _refused_label_keys(raw: _Raw, at: Path) -> Iterator[Problem]:
    """The selector may have a key of `mismatchLabelKeys`: `Exists` beside it leaves out pods without the label."""
    stated = raw.get("labelSelector")
    named = {*((stated or {}).get("matchLabels") or {})}
    named.update(each.get("key") for each in (stated or {}).get("matchExpressions") or ())
    named.update(raw.get("mismatchLabelKeys") or ())
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        if raw.get(name) and stated is None:
            yield mistake((*at, "labelSelector"), f"a selector, which {name} needs", None)
    for index, key in enumerate(raw.get("matchLabelKeys") or ()):
        if key in named:
            expected = "a key that neither the labelSelector nor another list has"
            yield mistake((*at, "matchLabelKeys", index), expected, key)
        named.add(key)


def refused_fields(fields: Iterable[_Raw], at: Path) -> Iterator[Problem]:
    """Why the API server would refuse `matchFields` of a node selector term."""
    for index, each in enumerate(fields):
        if each.get("key") != _NODE_NAME:
            yield mistake((*at, index, "key"), _NODE_NAME, each.get("key"))
        elif each.get("operator") not in ("In", "NotIn"):
            yield no_word((*at, index, "operator"), ("In", "NotIn"), each.get("operator"))
        elif len(each.get("values") or ()) != 1:
            yield mistake((*at, index, "values"), f"one value for {each['operator']}", each.get("values"))
