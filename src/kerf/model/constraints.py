"""Requirements as set algebra, taints and tolerations.

A requirement is a set of allowed label values: a finite set (`In`), the complement of one (`NotIn`, `Exists`), or a
complement cut by integer bounds (`Gt`, `Lt`, `Gte`, `Lte`). Intersections of those are again of that form, so
"pod and pool and type and offering agree" is one fold.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, chain

from kerf.errors import cut

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
WINDOWS_BUILD = "node.kubernetes.io/windows-build"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
"""Which reservation a node of the capacity type `reserved` takes; other nodes have no such label."""
RESERVATION_TYPE = "karpenter.k8s.aws/capacity-reservation-type"
RESERVATION_INTERRUPTIBLE = "karpenter.k8s.aws/capacity-reservation-interruptible"
RESERVATION_LABELS = (RESERVATION, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE)
"""Labels that only nodes have which take a reservation."""
ZONE_ID = "topology.k8s.aws/zone-id"
"""The name of a zone that is the same in all accounts; each zone has one."""
NODE_NAME = ".metadata.name"
"""The name of a node among its labels, for `matchFields`: no label begins with a dot."""
NODE_POOL = "karpenter.sh/nodepool"

ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}
"""Old spellings that mean the same label of a node; they are read as the new one (Karpenter's NormalizedLabels)."""

WELL_KNOWN = frozenset({NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, HOSTNAME, WINDOWS_BUILD})
"""Labels that a pod may ask for although its NodePool does not mention them: every node gets them."""

_RESERVED = "karpenter.sh"


def is_reserved(key: str) -> bool:
    """Whether no NodePool may set the label or require it: the node's name, and what Karpenter keeps for itself."""
    return key == HOSTNAME or (key.partition("/")[0].endswith(_RESERVED) and key != CAPACITY_TYPE)


_LABEL_VALUE = re.compile(r"(?!.{64})([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?", re.ASCII)


def is_label_value(value: str) -> bool:
    """Whether a node can have it as the value of a label (apimachinery validation, IsValidLabelValue)."""
    return _LABEL_VALUE.fullmatch(value) is not None


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def _number(value: str) -> int | None:
    """The value of a label as Gt and Lt read it (Go: strconv.ParseInt); None where it is no number of 64 bits."""
    number = int(value) if _INTEGER.fullmatch(value) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")


_MOST_LISTED = 600
"""Characters of a list that is shown: a manifest may make it as long as it likes."""


def _listed(texts: Sequence[str]) -> str:
    """The texts, and how many more there are where they are too many to be read."""
    lengths = accumulate(len(text) + 2 for text in texts)
    shown = max(1, sum(length <= _MOST_LISTED for length in lengths))
    more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
    return ", ".join(texts[:shown]) + more


@dataclass(frozen=True, slots=True)
class Requirement:
    """The set of values that label `key` may have.

    `complement` False: one of `values` (none of them: the label must be absent). True: any value but `values`, and
    within the inclusive integer bounds when there are some; a value that is no integer is outside any bound.
    `needs_label`: an intersection of which one side does not hold without the label, though the set alone would.
    """

    key: str
    complement: bool = False
    values: frozenset[str] = frozenset()
    at_least: int | None = None
    at_most: int | None = None
    min_values: int | None = None
    needs_label: bool = False

    @classmethod
    def of(cls, key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None) -> "Requirement":
        """Of a label of nodes, in the form of a manifest; the caller has checked operator and the number of values."""
        return cls.spelt(ALIASES.get(key, key), operator, values, min_values)

    @classmethod
    def spelt(cls, key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None) -> "Requirement":
        """The same of a label of other objects, of which two spellings are two labels."""
        if operator in ("In", "NotIn"):
            return cls(key, operator == "NotIn", frozenset(values), min_values=min_values)
        if operator in ("Exists", "DoesNotExist"):
            return cls(key, operator == "Exists", min_values=min_values)
        bound = int(next(iter(values)))
        low = {"Gt": bound + 1, "Gte": bound}.get(operator)
        high = {"Lt": bound - 1, "Lte": bound}.get(operator)
        return cls(key, True, at_least=low, at_most=high, min_values=min_values)

    @property
    def allows_absence(self) -> bool:
        """Whether a node without the label satisfies it (`NotIn`, `DoesNotExist`)."""
        if self.needs_label:
            return False
        if not self.complement:
            return not self.values
        return bool(self.values) and self.at_least is None and self.at_most is None

    @property
    def is_empty(self) -> bool:
        """Whether no value satisfies it."""
        if not self.complement:
            return not self.values
        return self.at_least is not None and self.at_most is not None and self.at_least > self.at_most

    @property
    def first_value(self) -> str | None:
        """The first of its values, or the least number that it allows; None where a node need not have the label."""
        if not self.complement:
            return min(self.values, default=None)
        if self.allows_absence:
            return None
        number = self.at_least if self.at_least is not None else min(0, self.at_most or 0)
        while str(number) in self.values:
            number += 1
        return str(number) if self.has(str(number)) else None

    def has(self, value: str) -> bool:
        """Whether a node whose label is `value` satisfies it."""
        return (value in self.values) != self.complement and self._within(value)

    def _within(self, value: str) -> bool:
        if self.at_least is None and self.at_most is None:
            return True
        number = _number(value)
        return number is not None and not (
            (self.at_least is not None and number < self.at_least)
            or (self.at_most is not None and number > self.at_most)
        )

    def intersect(self, other: "Requirement") -> "Requirement":
        """What satisfies both; the stricter `min_values` stays."""
        found = self._both(other)
        if found.allows_absence and not (self.allows_absence and other.allows_absence):
            # Exists and NotIn, or sets that have no value in common: by its values alone it would be NotIn, or
            # DoesNotExist, which a node without the label satisfies.
            return replace(found, needs_label=True)
        return found

    def excludes(self, other: "Requirement") -> bool:
        """Whether no node satisfies both: they have no value in common, and not both hold without the label."""
        return self._is_disjoint(other) and not (self.allows_absence and other.allows_absence)

    def _is_disjoint(self, other: "Requirement") -> bool:
        if self.complement and other.complement:
            low = max((b for b in (self.at_least, other.at_least) if b is not None), default=None)
            high = min((b for b in (self.at_most, other.at_most) if b is not None), default=None)
            return low is not None and high is not None and low > high
        finite, rest = (other, self) if self.complement else (self, other)
        return not any(map(rest.has, finite.values))

    def _both(self, other: "Requirement") -> "Requirement":
        low = max((b for b in (self.at_least, other.at_least) if b is not None), default=None)
        high = min((b for b in (self.at_most, other.at_most) if b is not None), default=None)
        least = max((m for m in (self.min_values, other.min_values) if m is not None), default=None)
        if self.complement and other.complement:
            return Requirement(self.key, True, self.values | other.values, low, high, least)
        finite = self if not self.complement else other
        kept = frozenset(v for v in finite.values if self.has(v) and other.has(v))
        return Requirement(self.key, False, kept, min_values=least)

    def forms(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(operator, values) whose intersection it is, as manifests write them.

        Bounds become Gt and Lt, which every version of the CRD knows; Gte only where Gt would need a negative number.
        """
        values = tuple(sorted(self.values))
        exists: list[tuple[str, tuple[str, ...]]] = [("Exists", ())] if self.needs_label else []
        if not self.complement:
            return (("In" if values else "DoesNotExist", values), *exists)
        found = exists
        if self.at_least is not None:
            found.append(("Gt", (str(self.at_least - 1),)) if self.at_least > 0 else ("Gte", (str(self.at_least),)))
        if self.at_most is not None:
            found.append(("Lt", (str(self.at_most + 1),)))
        if values:
            found.append(("NotIn", values))
        return tuple(found) or (("Exists", ()),)

    def __str__(self) -> str:
        parts = [f"{self.key} Exists"] if self.needs_label else []
        if not self.complement:
            own = f"{self.key} In [{_listed(sorted(self.values))}]" if self.values else f"{self.key} DoesNotExist"
            return " and ".join([own, *parts])
        if self.at_least is not None:
            parts.append(f"{self.key} Gte {self.at_least}")
        if self.at_most is not None:
            parts.append(f"{self.key} Lte {self.at_most}")
        if self.values:
            parts.append(f"{self.key} NotIn [{_listed(sorted(self.values))}]")
        return " and ".join(parts) or f"{self.key} Exists"


@lru_cache(maxsize=4096)
def _of_label(key: str, value: str) -> Requirement:
    """One object for the label of a thousand nodes."""
    return Requirement.of(key, "In", (value,))


class Requirements(Mapping[str, Requirement]):
    """One requirement a key; immutable. A key that is absent allows everything."""

    __slots__ = ("_by_key", "_hash", "_needed")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        by_key: dict[str, Requirement] = {}
        for requirement in requirements:
            held = by_key.get(requirement.key)
            by_key[requirement.key] = requirement if held is None else held.intersect(requirement)
        self._by_key = by_key
        self._hash: int | None = None
        self._needed: frozenset[str] | None = None

    @property
    def needed(self) -> frozenset[str]:
        """The labels without which a node does not satisfy it."""
        if self._needed is None:
            self._needed = frozenset(key for key, asked in self._by_key.items() if not asked.allows_absence)
        return self._needed

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> "Requirements":
        """Each label of a node as a set of one value."""
        return cls(_of_label(key, value) for key, value in labels.items())

    @classmethod
    def spelt(cls, labels: Mapping[str, str]) -> "Requirements":
        """The same of labels of other objects than nodes: see `Requirement.spelt`."""
        return cls(Requirement.spelt(key, "In", (value,)) for key, value in labels.items())

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._by_key.values()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirements) and self._by_key == other._by_key

    def __repr__(self) -> str:
        return f"Requirements({self})"

    def __str__(self) -> str:
        return _listed([str(self._by_key[key]) for key in sorted(self._by_key)])

    def intersect(self, other: "Requirements") -> "Requirements":
        """What satisfies both."""
        return Requirements([*self._by_key.values(), *other._by_key.values()])

    def without(self, keys: Iterable[str]) -> "Requirements":
        """The same without some keys."""
        gone = set(keys)
        return Requirements(r for k, r in self._by_key.items() if k not in gone)

    def without_min_values(self) -> "Requirements":
        """The same sets, for a caller that does not count distinct values."""
        return Requirements(replace(r, min_values=None) for r in self._by_key.values())

    @property
    def is_never(self) -> bool:
        """Whether nothing satisfies it: it is NEVER, or what `all_of` makes of a contradiction."""
        return "" in self._by_key

    @property
    def contradiction(self) -> tuple[str, ...]:
        """The two requirements that contradict each other, as text, where `all_of` has met such."""
        return tuple(sorted(self._by_key[""].values)) if self.is_never else ()

    def conflict(self, other: "Requirements") -> tuple[Requirement, Requirement] | None:
        """The first pair, by key, that has no value in common; None when there is none.

        Two requirements that both allow the label's absence never conflict.
        """
        mine, theirs = self._by_key, other._by_key
        apart = [key for key in mine.keys() & theirs.keys() if mine[key].excludes(theirs[key])]
        key = min(apart, default=None)
        return None if key is None else (mine[key], theirs[key])

    def undefined(self, defined: "Requirements", well_known: frozenset[str] = WELL_KNOWN) -> Requirement | None:
        """The first requirement, by key, on a label that a new node will not have; None when there is none."""
        lacking = self.needed - defined._by_key.keys() - well_known
        return self._by_key[min(lacking)] if lacking else None

    def decided(self, defined: "Requirements", well_known: frozenset[str] = WELL_KNOWN) -> "Requirements":
        """The same without what is said of labels that a new node will not have, which every such node satisfies.

        What `undefined` finds must have been refused before.
        """
        vain = self._by_key.keys() - defined._by_key.keys() - well_known
        return self.without(vain) if vain else self

    def labels(self) -> dict[str, str]:
        """The labels that are fixed to one value, by key."""
        return {
            key: next(iter(held.values))
            for key, held in sorted(self._by_key.items())
            if not held.complement and len(held.values) == 1
        }

    def own_labels(self) -> dict[str, str]:
        """A value for each label that a node must have and that neither kubelet nor a cloud gives it, by key.

        As Karpenter labels a node by the requirements of its NodeClaim (scheduling.Requirements.Labels); where several
        values would do, the first of them, or the least number within bounds.
        """
        found: dict[str, str] = {}
        for key, held in sorted(self._by_key.items()):
            value = None if key in WELL_KNOWN or key in ALIASES or is_reserved(key) else held.first_value
            if value is not None:
                found[key] = value
        return found

    def unsatisfied_by(self, labels: Mapping[str, str]) -> Requirement | None:
        """The first requirement, by key, that a node with `labels` does not satisfy; None when it satisfies all."""
        for key in sorted(self._by_key):
            value = labels.get(key)
            requirement = self._by_key[key]
            if not (requirement.allows_absence if value is None else requirement.has(value)):
                return requirement
        return None


ANYTHING = Requirements()
_MOST_SHOWN = 200
"""Characters of a requirement that a contradiction keeps; a list of values may be endless."""
NEVER = Requirements([Requirement.of("", "Exists")])
"""What no node and no pod satisfies: no label has an empty key."""


def all_of(requirements: Iterable[Requirement]) -> Requirements:
    """What satisfies all of them; what nothing satisfies where two contradict each other: see `contradiction`.

    A plain intersection of `In` and `NotIn` the same value would ask for the label's absence, which neither allows.
    """
    held: dict[str, Requirement] = {}
    for requirement in requirements:
        before = held.get(requirement.key)
        if before is None:
            held[requirement.key] = requirement
            continue
        both = before.intersect(requirement)
        if both.is_empty and not (before.allows_absence and requirement.allows_absence):
            apart = (before, requirement) if requirement.key else (before,)
            texts = (each.values if not each.key else (cut(str(each), _MOST_SHOWN),) for each in apart)
            return Requirements([Requirement("", values=frozenset(chain.from_iterable(texts)))])
        held[requirement.key] = both
    return Requirements(held.values())


NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A taint of a node; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod; an empty key with Exists tolerates everything, an empty effect any effect.

    `seconds` is how long it holds against NoExecute, None for ever. It says nothing of where a pod may start, so pods
    that differ in it alone are equal.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = field(default=None, compare=False)

    def tolerates(self, taint: Taint) -> bool:
        """Whether it lets a pod onto a node with `taint` (core/v1 helper of the same name)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], *, heeds_preferred: bool = False
) -> Taint | None:
    """The first taint, sorted, that keeps a pod off, or None. PreferNoSchedule does only where it is heeded."""
    held = tuple(tolerations)
    for taint in sorted(taints):
        counts = heeds_preferred or taint.effect != PREFER_NO_SCHEDULE
        if counts and not any(t.tolerates(taint) for t in held):
            return taint
    return None
