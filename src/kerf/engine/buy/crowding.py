"""Who may be with whom on one node to be bought, and how many of them: spread over nodes, and anti-affinity.

Such a constraint goes by `kubernetes.io/hostname`, whose domains are the nodes themselves. So it is a limit inside a
load: at most so many pods of a group where a certain pod is. An empty node has none, so a spread constraint allows
`maxSkew` of the pods that it counts; an anti-affinity term none of those that it means, or the pod alone.

A bought node is empty except for the pods of DaemonSets, which bind there before all others. Their anti-affinity, and
that of pods against them, can close each node of a type to these pods; then no such node is bought for them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kerf.engine.place.checks import Apart, Check, Even, Welcome
from kerf.engine.place.domains import Site
from kerf.engine.place.shapes import UNCROWDED, Crowding, Evenness, Shape
from kerf.engine.place.tallies import Tally
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Cause, Name
from kerf.model.constraints import HOSTNAME, WELL_KNOWN
from kerf.model.plan import Stage
from kerf.model.snapshot import DaemonSet
from kerf.model.topology import ANTI_AFFINITY, SPREAD, KeptOffByDaemonSet

_ANY_NUMBER = 1 << 62


class _Limit(NamedTuple):
    """How many pods of a tally one node may have, without those of `less` and with those of `more`; 0 for none, or the
    pod alone."""

    tally: Tally
    most: int
    less: Sequence[Tally] = ()
    more: Sequence[Tally] = ()


_Limits = list[_Limit]


class Headcount:
    """The pods of one node by group, and how many of each its pods allow."""

    __slots__ = ("_allowed", "_counts", "_even", "_full", "_held")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._allowed: dict[int, int] = {}
        self._even: dict[Evenness, None] = {}
        self._held = self._full = 0
        """The groups, as bits, of which a pod is there, and those of which no more may come."""

    def room(self, crowding: Crowding) -> int:
        """How many more such pods may come. Cost: where some may, the groups and limits of one of them."""
        if crowding.lone & self._held or crowding.members & self._full:
            return 0
        found = _ANY_NUMBER
        for group, most in crowding.most:
            held = self._counts.get(group, 0)
            if group in crowding.own:
                found = min(found, most - held)
            elif held > most:
                return 0
        for group in crowding.groups:
            if group in self._allowed:
                found = min(found, self._allowed[group] - self._counts.get(group, 0))
        if crowding.apart:
            counts = self._counts
            for group, less in crowding.apart:
                if counts.get(group, 0) > sum([counts.get(each, 0) for each in less]):
                    return 0
            if crowding.is_apart_itself:
                found = min(found, 1)
        for limit in crowding.even:
            held = limit.count(self._counts)
            if limit.means(crowding.own):
                found = min(found, limit.most - held)
            elif held > limit.most:
                return 0
        for limit in self._even:
            if limit.means(crowding.own):
                found = min(found, limit.most - limit.count(self._counts))
        return max(0, found)

    def add(self, crowding: Crowding, pods: int) -> None:
        """So many have come."""
        counts, allowed = self._counts, self._allowed
        for group in crowding.groups:
            counts[group] = counts.get(group, 0) + pods
        for group, most in crowding.most:
            allowed[group] = min(most, allowed.get(group, most))
        self._even.update(dict.fromkeys(crowding.even))
        self._held |= crowding.members
        # Only groups of these pods have become fuller.
        changed = {*crowding.groups, *(group for group, _ in crowding.most)}
        self._full |= sum(1 << g for g in changed if g in allowed and counts.get(g, 0) >= allowed[g])


def among(shapes: Iterable[Shape]) -> Crowding:
    """One of theirs that says which groups the pods of DaemonSets are in: all that do, say the same."""
    return next((shape.crowding for shape in shapes if shape.crowding.daemons), UNCROWDED)


def starting(offered: OfferedType, crowding: Crowding) -> Headcount:
    """The head count of a node of the type before any pod comes that is bought for."""
    found, here = Headcount(), {each.key for each in offered.daemon_sets} if crowding.daemons else frozenset[str]()
    for key, groups in crowding.daemons:
        if key in here:
            found.add(Crowding(groups), 1)
    return found


class Manners:
    """How shapes get on with each other and with the pods of DaemonSets on a node to be bought.

    `ledger` must have been asked for the `checks` of all shapes, and must expect the pods of DaemonSets.
    """

    def __init__(
        self,
        ledger: TopologyLedger,
        shapes: Sequence[Shape],
        checks: Sequence[Sequence[Check]],
        offered_types: Sequence[OfferedType],
    ) -> None:
        self._checks, self._offered_types = checks, offered_types
        self._daemons = _daemons(ledger, checks, offered_types)
        counting = [ledger.counting(shape) for shape in shapes]
        limits = self._binding([self._limits(found) for found in checks], shapes, counting)
        self._numbers: dict[int, int] = {}
        for tally in (tally for found in limits for limit in found for tally in _of_limit(limit)):
            self._numbers.setdefault(id(tally), len(self._numbers))
        self._beside = tuple(
            (key, groups)
            for key, (daemon, _) in self._daemons.items()
            if (groups := self._groups(ledger.counting(Shape((daemon.pod,)))))
        )
        self.crowdings = tuple(
            self._crowding(tallies, found) if self._numbers else UNCROWDED
            for tallies, found in zip(counting, limits, strict=True)
        )
        """Those of the shapes, in their order."""

    def open_rows(self, number: int, holding: Holding) -> npt.NDArray[np.bool_]:
        """By row, whether the pods of DaemonSets leave an empty node to the shape. Cost: rows, where they count."""
        crowding = self.crowdings[number]
        if not crowding.daemons:
            return np.ones(len(holding.types), dtype=np.bool_)
        rooms = (starting(offered, crowding).room(crowding) for offered in holding.types)
        return np.fromiter((room > 0 for room in rooms), dtype=np.bool_)

    def cause(self, number: int, offered: OfferedType) -> tuple[Stage, Cause]:
        """Why a node of the type takes no pod of the shape, though it is empty: which DaemonSet has a pod there."""
        here = [each.key for each in offered.daemon_sets if each.key in self._daemons]
        for check in self._checks[number]:
            for daemon, tallies in (self._daemons[key] for key in here):
                if _is_met(check, tallies) and self._is_of_load(check):
                    return check.stage, KeptOffByDaemonSet(Name(daemon.key), _relation(check), Name(check.keys[0]))
        raise AssertionError("no DaemonSet keeps the pods off")

    def _crowding(self, counting: Iterable[Tally], limits: Sequence[_Limit]) -> Crowding:
        groups = self._groups(counting)
        own, most, apart = frozenset(groups), dict[int, int](), dict[tuple[int, tuple[int, ...]], None]()
        even = dict[Evenness, None]()
        for tally, skew, less, more in limits:
            group = self._numbers[id(tally)]
            if skew and (less or more):
                left, added = (tuple([self._numbers[id(each)] for each in part]) for part in (less, more))
                even[Evenness(group, left, added, skew)] = None
                continue
            if less:
                apart[group, tuple(self._numbers[id(each)] for each in less)] = None
                continue
            # A pod that is itself one of those it must be away from is alone there.
            allowed = skew or int(group in own)
            most[group] = min(allowed, most.get(group, allowed))
        if not (groups or most or apart or even):
            return UNCROWDED
        return Crowding(groups, tuple(sorted(most.items())), tuple(apart), tuple(even), self._beside)

    def _binding(
        self, limits: Sequence[_Limits], shapes: Sequence[Shape], counting: Sequence[Iterable[Tally]]
    ) -> list[_Limits]:
        """The limits of each shape that more pods could exceed than there are: a pod alone in its group never does.

        Without this ten thousand pods, each of its own workload, are ten thousand groups, and each node asks all.
        """
        pods: Counter[int] = Counter()
        for shape, tallies in zip(shapes, counting, strict=True):
            for each in tallies:
                pods[id(each)] += len(shape)
        of_daemons = {number for _, tallies in self._daemons.values() for number in tallies}

        def is_binding(limit: _Limit, own: Counter[int]) -> bool:
            tally, most, less, more = limit
            if id(tally) in of_daemons:
                return True
            there, one = (
                each[id(tally)] - sum([each[id(other)] for other in less]) + sum([each[id(other)] for other in more])
                for each in (pods, own)
            )
            return there > (most or max(0, one))

        owns = (Counter(map(id, tallies)) for tallies in counting)
        return [[limit for limit in found if is_binding(limit, own)] for found, own in zip(limits, owns, strict=True)]

    def _groups(self, tallies: Iterable[Tally]) -> tuple[int, ...]:
        # One is there more than once for pods with as many terms of its kind.
        return tuple(sorted([self._numbers[id(tally)] for tally in tallies if id(tally) in self._numbers]))

    def _limits(self, checks: Iterable[Check]) -> _Limits:
        """The tallies that pods go by on one node, each with how many it may have; 0 where they must be away."""
        found: _Limits = []
        for check in filter(self._is_of_load, checks):
            if isinstance(check, Even):
                most = check.constraint.max_skew + self._least(check)
                found.append(_Limit(check.tally, most, check.less, check.more))
            elif isinstance(check, Apart | Welcome):
                found.append(_Limit(check.tally, 0, check.less))
                found += [_Limit(each, 0) for each in check.more]
        return found

    def _is_of_load(self, check: Check) -> bool:
        """Whether one node decides it. A DaemonSet's pod there is in the node's zone, too."""
        if check.keys == (HOSTNAME,):
            return True
        if not isinstance(check, Apart | Welcome) or check.keys[0] not in WELL_KNOWN:
            return False
        return any(id(each) in tallies for each in check.tallies for _, tallies in self._daemons.values())

    def _least(self, check: Even) -> int:
        """Pods that each node has of those that the constraint counts, for a DaemonSet runs one on each that counts."""
        held = {key for key, (_, tallies) in self._daemons.items() if _is_met(check, tallies)}
        if not held:
            return 0
        rule = replace(check.tally.rule, keys=())
        targets = ((each.target, each.daemon_sets) for each in self._offered_types)
        sites = ((Site("", {}, kinds=((target.requirements, target.taints),)), daemons) for target, daemons in targets)
        least = min(
            (sum(each.key in held for each in daemons) for site, daemons in sites if rule.counts(site)), default=0
        )
        return min(least, check.least) if check.tally.domains else least


def _daemons(
    ledger: TopologyLedger, checks: Iterable[Iterable[Check]], offered_types: Iterable[OfferedType]
) -> dict[str, tuple[DaemonSet, Counter[int]]]:
    """DaemonSets that some check goes by, by their keys, with how often their pods count in each tally."""
    used = {id(tally) for found in checks for check in found for tally in (*check.tallies, *check.less)}
    found = {}
    for daemon in (
        {each.key: each for offered in offered_types for each in offered.daemon_sets}.values() if used else ()
    ):
        tallies = Counter(id(tally) for tally in ledger.counting(Shape((daemon.pod,))) if id(tally) in used)
        if tallies:
            found[daemon.key] = daemon, tallies
    return found


def _of_limit(limit: _Limit) -> tuple[Tally, ...]:
    return (limit.tally, *limit.less, *limit.more)


def _is_met(check: Check, tallies: Mapping[int, int]) -> bool:
    """Whether a pod that counts so often in these tallies is one of those that the check is about."""
    held = sum([tallies.get(id(each), 0) for each in check.tallies])
    return held > sum([tallies.get(id(each), 0) for each in check.less])


def _relation(check: Check) -> Name:
    if isinstance(check, Even):
        return Name(SPREAD)
    return Name(ANTI_AFFINITY if isinstance(check, Apart) else "")
