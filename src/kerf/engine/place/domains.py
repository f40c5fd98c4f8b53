"""Nodes as topology sees them: which domain each is in, and which of them count for a spread constraint."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kerf.model.constraints import (
    ALIASES,
    HOSTNAME,
    NODE_NAME,
    WELL_KNOWN,
    Requirements,
    Taint,
    Toleration,
    untolerated,
)

Lasting = Mapping[str, frozenset[str]]
"""Domains by topology key."""

_FEW_NODES = 4
"""Nodes of a domain, on average, with which going by domains still saves something."""


@dataclass(frozen=True, eq=False)
class Site:
    """A node. `unsettled` are labels that it will have with values that are still to be chosen.

    `kinds` are set where it stands for all nodes that may be bought with these labels: what each kind of them promises
    beside, and its taints. `answers` are those of rules that were asked about it then.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    unsettled: frozenset[str] = frozenset()
    kinds: tuple[tuple[Requirements, tuple[Taint, ...]], ...] = ()
    answers: "dict[NodeRule, bool]" = field(default_factory=dict, repr=False)

    def will_have(self, key: str) -> bool:
        """Whether it is in a domain of the key that is not known yet."""
        return key in self.unsettled


def settled_site(name: str, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> Site:
    """A node that is there."""
    return Site(name, labels, taints)


def coming_site(name: str, stated: Requirements, taints: tuple[Taint, ...]) -> Site:
    """A node on its way: a label that has one value is fixed, others that it gets are open. Its name is its own."""
    labels = {HOSTNAME: name, **stated.labels()}
    labels |= {old: labels[new] for old, new in ALIASES.items() if new in labels}
    return Site(name, labels, taints, frozenset((*stated, *WELL_KNOWN)) - labels.keys())


@dataclass(frozen=True, slots=True)
class NodeRule:
    """Which nodes count for a spread constraint (kubernetes podtopologyspread, `calPreFilterState`).

    A node counts that has all `keys`, whose labels satisfy one of `alternatives`, and whose taints `tolerations`
    tolerate; None for the last two where the constraint ignores them.
    """

    keys: tuple[str, ...]
    alternatives: tuple[Requirements, ...] | None
    tolerations: tuple[Toleration, ...] | None

    def counts(self, site: Site) -> bool:
        """Whether the node counts."""
        if any(key not in site.labels for key in self.keys):
            return False
        if site.kinds:
            return self._may_count(site)
        if self.tolerations is not None and untolerated(site.taints, self.tolerations) is not None:
            return False
        return self.alternatives is None or self._is_wanted(site)

    def _may_count(self, site: Site) -> bool:
        """Whether a node to be may count: labels that are still open do not stand against it."""
        tolerations, open_to = self.tolerations, self.alternatives
        if open_to is not None:
            fixed = Requirements.of_labels({key: value for key, value in site.labels.items() if key != HOSTNAME})
            open_to = tuple(wanted for wanted in open_to if wanted.conflict(fixed) is None)
            if not open_to:
                return False
        return any(
            (tolerations is None or untolerated(taints, tolerations) is None)
            and (
                open_to is None
                or any(wanted.undefined(stated) is None and wanted.conflict(stated) is None for wanted in open_to)
            )
            for stated, taints in site.kinds
        )

    def _is_wanted(self, site: Site) -> bool:
        # Requirements have new spellings of old labels.
        held = {**{ALIASES.get(key, key): value for key, value in site.labels.items()}, NODE_NAME: site.name}
        assert self.alternatives is not None
        return any(alternative.unsatisfied_by(held) is None for alternative in self.alternatives)


class Domains:
    """The domains of some nodes by topology key, each key looked at when it is first asked for.

    `lasting` are by key those that stay domains when their last node goes, because others can be bought there.
    """

    def __init__(self, sites: Sequence[Site], lasting: Lasting) -> None:
        self.sites, self.lasting = tuple(sites), lasting
        self._values: dict[str, tuple[str | None, ...]] = {}
        self._known: dict[str, tuple[str | None, ...]] = {}
        self._places: dict[str, tuple[int, ...]] = {}
        self._cells: dict[tuple[str, ...], npt.NDArray[np.int64]] = {}
        self._fine: dict[str, bool] = {}
        self._counting: dict[NodeRule, tuple[bool, ...]] = {}
        self._counted: dict[tuple[NodeRule, str], tuple[str | None, ...]] = {}
        self._sizes: dict[tuple[NodeRule, str], Counter[str]] = {}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {site.name: number for number, site in enumerate(self.sites)}

    def number(self, name: str) -> int:
        """The number of the node of that name. Raises KeyError where there is none."""
        return self._numbers[name]

    def of(self, key: str) -> tuple[str | None, ...]:
        """By number of a node its domain; None for one that is in none, or in one that is not known yet."""
        if key not in self._values:
            self._values[key] = tuple(site.labels.get(key) for site in self.sites)
        return self._values[key]

    def known(self, key: str) -> tuple[str | None, ...]:
        """The same, where all nodes that get no such label are one domain, the empty one; None for what is open."""
        if key not in self._known:
            pairs = zip(self.of(key), self.sites, strict=True)
            self._known[key] = tuple(
                "" if value is None and not site.will_have(key) else value for value, site in pairs
            )
        return self._known[key]

    def is_fine(self, key: str) -> bool:
        """Whether a domain of the key has so few nodes that going by domains saves nothing."""
        if key not in self._fine:
            found = [value for value in self.of(key) if value is not None]
            self._fine[key] = len(found) < _FEW_NODES * len(set(found))
        return self._fine[key]

    def places(self, key: str) -> tuple[int, ...]:
        """By number of a node that of its domain; nodes in none have one, those in one that is not known another."""
        if key not in self._places:
            numbers: dict[str | bool, int] = {}
            known = zip(self.of(key), self.sites, strict=True)
            apart = (site.will_have(key) if value is None else value for value, site in known)
            self._places[key] = tuple(numbers.setdefault(each, len(numbers)) for each in apart)
        return self._places[key]

    def cells(self, keys: tuple[str, ...]) -> npt.NDArray[np.int64]:
        """By number of a node that of its cell, equal for nodes in the same domain of each key. Linear in the nodes,
        once."""
        if keys not in self._cells:
            numbers: dict[tuple[int, ...], int] = {}
            rows = zip(*map(self.places, keys), strict=True)
            self._cells[keys] = np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int64)
        return self._cells[keys]

    def counting(self, rule: NodeRule) -> tuple[bool, ...]:
        """By number of a node whether it counts. Linear in nodes, once a rule."""
        if rule not in self._counting:
            self._counting[rule] = self._worked_out(rule)
        return self._counting[rule]

    def counted(self, rule: NodeRule, key: str) -> tuple[str | None, ...]:
        """As `of`, but None for a node that does not count."""
        if (rule, key) not in self._counted:
            pairs = zip(self.of(key), self.counting(rule), strict=True)
            self._counted[rule, key] = tuple(value if counts else None for value, counts in pairs)
        return self._counted[rule, key]

    def _worked_out(self, rule: NodeRule) -> tuple[bool, ...]:
        read = set(rule.keys).union(*(rule.alternatives or ()))
        spellings = {old for old, new in ALIASES.items() if new in read}
        known: dict[object, bool] = {}
        found = []
        for site in self.sites:
            if site.kinds:
                if rule not in site.answers:
                    site.answers[rule] = rule.counts(site)
                found.append(site.answers[rule])
                continue
            # Nodes that are equal in what is read are asked once.
            like = (
                tuple(site.labels.get(key) for key in (*sorted(read), *sorted(spellings))),
                site.taints if rule.tolerations is not None else (),
                site.name if NODE_NAME in read else "",
            )
            if like not in known:
                known[like] = rule.counts(site)
            found.append(known[like])
        return tuple(found)

    def sizes(self, rule: NodeRule, key: str) -> Counter[str]:
        """How many nodes that count each domain of the key has; the caller copies before it changes it."""
        if (rule, key) not in self._sizes:
            pairs: Iterable[tuple[str | None, bool]] = zip(self.of(key), self.counting(rule), strict=True)
            self._sizes[rule, key] = Counter(value for value, counts in pairs if counts and value is not None)
        return self._sizes[rule, key]
