"""Selectors of labels and of nodes, read from documents as kube-scheduler reads them, apart from Kerf's own algebra.

A selector that Kerf's requirements misread would else be misread twice, and no test could tell. Sources of Kubernetes
1.36: apimachinery `pkg/labels/selector.go`, component-helpers `scheduling/corev1/nodeaffinity`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kerf.sim.objects import Json

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NAME = "metadata.name"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of a selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Labels) -> bool:
        """Whether labels fulfil it; an unknown operator is never fulfilled."""
        value = labels.get(self.key)
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        if self.operator in ("Exists", "DoesNotExist"):
            return (value is not None) == (self.operator == "Exists")
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        bound = next(iter(self.values), "")
        if len(self.values) != 1 or not _is_number(bound) or not _is_number(value):
            return False
        if self.operator == "Gt":
            return int(value) > int(bound)
        return self.operator == "Lt" and int(value) < int(bound)


def _is_number(value: str) -> bool:
    """Whether Go reads it as a number of 64 bits (strconv.ParseInt)."""
    return _INTEGER.fullmatch(value) is not None and -(2**63) <= int(value) < 2**63


def _conditions(raws: Iterable[Json] | None) -> tuple[Expression, ...]:
    return tuple(Expression(raw["key"], raw["operator"], frozenset(raw.get("values") or ())) for raw in raws or ())


def _equalities(labels: Labels | None) -> tuple[Expression, ...]:
    return tuple(Expression(key, "In", frozenset((value,))) for key, value in (labels or {}).items())


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A label selector; `conditions` None: it selects nothing, empty: everything."""

    conditions: tuple[Expression, ...] | None = None

    @classmethod
    def of(cls, raw: Json | None) -> "LabelSelector":
        """From the field of a document; a missing one selects nothing."""
        if raw is None:
            return cls()
        return cls((*_equalities(raw.get("matchLabels")), *_conditions(raw.get("matchExpressions"))))

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return self.conditions == ()

    def matches(self, labels: Labels) -> bool:
        """Whether it selects what has these labels."""
        return self.conditions is not None and all(condition.holds(labels) for condition in self.conditions)

    def narrowed(self, labels: Labels) -> "LabelSelector":
        """It, for what has these labels too; one that selects nothing stays so."""
        return self if self.conditions is None else LabelSelector((*_equalities(labels), *self.conditions))


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector; `names` None: some field cannot be read, and then no node matches."""

    conditions: tuple[Expression, ...]
    names: tuple[Expression, ...] | None = ()

    @classmethod
    def of(cls, raw: Json) -> "NodeTerm":
        """From a document."""
        fields = _conditions(raw.get("matchFields"))
        are_read = all(
            field.key == _NAME and field.operator in ("In", "NotIn") and len(field.values) == 1 for field in fields
        )
        return cls(_conditions(raw.get("matchExpressions")), fields if are_read else None)

    def matches(self, name: str, labels: Labels) -> bool:
        """Whether a node matches; an empty term matches none."""
        if self.names is None or not (self.names or self.conditions):
            return False
        fields = {_NAME: name}
        return all(c.holds(labels) for c in self.conditions) and all(field.holds(fields) for field in self.names)

    @property
    def only_names(self) -> frozenset[str] | None:
        """The names that its fields allow; None when they fix none."""
        found: frozenset[str] | None = None
        for field in self.names or ():
            if field.operator == "In":
                found = field.values if found is None else found & field.values
        return found


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """What a pod requires of a node's labels and name; `terms` None: its affinity requires nothing."""

    selector: tuple[Expression, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    def matches(self, name: str, labels: Labels) -> bool:
        """Whether a node has what is required: the node selector, and one of the terms."""
        if not all(condition.holds(labels) for condition in self.selector):
            return False
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)

    @property
    def only_names(self) -> frozenset[str] | None:
        """The names of nodes that every term fixes (a DaemonSet's pods); None when some term fixes none."""
        found: set[str] = set()
        for term in self.terms or ():
            names = term.only_names
            if names is None:
                return None
            found |= names
        return frozenset(found) if self.terms else None


ANYWHERE = NodeTerms()
"""What most pods require: nothing."""


def node_terms(spec: Json) -> NodeTerms:
    """What the spec of a pod requires of nodes."""
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    selector = spec.get("nodeSelector")
    if not required and not selector:
        return ANYWHERE
    return _read(json.dumps((selector, required), sort_keys=True))


@lru_cache(maxsize=4096)
def _read(text: str) -> NodeTerms:
    selector, required = json.loads(text)
    raws = (required or {}).get("nodeSelectorTerms")
    return NodeTerms(_equalities(selector), None if required is None else tuple(NodeTerm.of(raw) for raw in raws or ()))


def volume_terms(raw: Json | None) -> tuple[NodeTerm, ...] | None:
    """The terms of a volume's node affinity, of which one must match; None when it has none."""
    required = (raw or {}).get("required")
    if required is None:
        return None
    return tuple(NodeTerm.of(term) for term in required.get("nodeSelectorTerms") or ())
