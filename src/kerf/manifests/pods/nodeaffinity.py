"""Node affinity, from a spec's dictionary, and why an API server would refuse it.

As for `topology`, a mistake is that of one pod. A live pod may have one, too: older servers took values that no label
can have, and no server looks at the numbers of Gt and Lt. kube-scheduler reads terms one by one; one that it cannot
read is met by no node, and the others count (component-helpers nodeaffinity, 1.36, with `labels.NewRequirement`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kerf.manifests.kinds import NODE_OPERATORS
from kerf.manifests.pods.topology import PREFERRED, REQUIRED, refused_fields, refused_operator, refused_weight
from kerf.manifests.schema import LABEL_KEY, LABEL_VALUE, Path, Problem, mistake
from kerf.model.constraints import NEVER, NODE_NAME, Requirement, Requirements, all_of

_Raw = Mapping[str, Any]


def node_affinity_of(raw: _Raw) -> tuple[tuple[Requirements, ...], tuple[tuple[int, Requirements], ...]]:
    """Required terms, of which one must hold, and preferred ones with their weights. NEVER stands for what none meets.

    Of required terms those that none meets are left out where others are left.
    """
    node = _stated(raw)
    required, terms = node.get(REQUIRED), []
    if required is not None:
        terms = [_term(each) for each in required.get("nodeSelectorTerms") or ()] or [NEVER]
    weighted = node.get(PREFERRED) or ()
    preferred = ((each.get("weight") or 0, _term(each.get("preference") or {})) for each in weighted)
    possible = tuple(term for term in terms if not term.is_never)
    return possible or tuple(terms[:1]), tuple(preferred)


def _stated(raw: _Raw) -> _Raw:
    return (raw.get("affinity") or {}).get("nodeAffinity") or {}


def _term(raw: _Raw) -> Requirements:
    expressions, fields = raw.get("matchExpressions") or (), raw.get("matchFields") or ()
    if (not expressions and not fields) or any(refused_fields(fields, ())):
        return NEVER
    if not all(map(_is_readable, expressions)):
        return NEVER
    names = (Requirement.of(NODE_NAME, field["operator"], field["values"]) for field in fields)
    stated, named = all_of(map(_requirement, expressions)), all_of(names)
    never = next((each for each in (stated, named) if each.is_never), None)
    return never or Requirements((*stated.values(), *named.values()))


def _requirement(raw: _Raw) -> Requirement:
    return Requirement.of(raw["key"], raw["operator"], raw.get("values") or ())


def _is_readable(raw: _Raw) -> bool:
    """Whether kube-scheduler can ask a node for it."""
    operator, values = raw.get("operator"), list(raw.get("values") or ())
    if not LABEL_KEY.accepts(raw.get("key")) or not all(map(LABEL_VALUE.accepts, values)):
        return False
    if operator in ("Gt", "Lt"):
        return len(values) == 1 and values[0].isascii() and values[0].isdigit() and int(values[0]) < 2**63
    return operator in NODE_OPERATORS and (operator in ("In", "NotIn")) == bool(values)


def refused_node_affinity(raw: _Raw) -> Iterator[Problem]:
    """Why the API server would refuse these parts of the spec (pkg/apis/core/validation, ValidateNodeSelectorTerm)."""
    node = _stated(raw)
    at: Path = ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    required = node.get(REQUIRED)
    if required is not None and not required.get("nodeSelectorTerms"):
        yield mistake(at, "at least one term", required.get("nodeSelectorTerms"))
    for index, term in enumerate((required or {}).get("nodeSelectorTerms") or ()):
        yield from _refused_term(term, (*at, index), reads_values=True)
    at = ("affinity", "nodeAffinity", PREFERRED)
    for index, weighted in enumerate(node.get(PREFERRED) or ()):
        yield from refused_weight(weighted, (*at, index))
        yield from _refused_term(weighted.get("preference") or {}, (*at, index, "preference"), reads_values=False)


def _refused_term(raw: _Raw, at: Path, *, reads_values: bool) -> Iterator[Problem]:
    for index, each in enumerate(raw.get("matchExpressions") or ()):
        yield from _refused_expression(each, (*at, "matchExpressions", index), reads_values=reads_values)
    yield from refused_fields(raw.get("matchFields") or (), (*at, "matchFields"))


def _refused_expression(raw: _Raw, at: Path, *, reads_values: bool) -> Iterator[Problem]:
    operator, values = raw.get("operator"), raw.get("values") or ()
    if not LABEL_KEY.accepts(raw.get("key")):
        yield mistake((*at, "key"), "a label key such as topology.kubernetes.io/zone", raw.get("key"))
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield mistake((*at, "values"), f"one value for {operator}", raw.get("values"))
    else:
        yield from refused_operator(raw, at, NODE_OPERATORS)
    for number, value in enumerate(values if reads_values else ()):
        if not LABEL_VALUE.accepts(value):
            yield mistake((*at, "values", number), LABEL_VALUE.expected, value)
