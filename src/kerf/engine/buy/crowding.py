"""Who may be with whom on one node to be bought, and how many of them: spread over nodes, and anti-affinity.

Such a constraint goes by `kubernetes.io/hostname`, whose domains are the nodes themselves. So it is a limit inside a
load: at most so many pods of a group where a certain pod is. An empty node has none, so a spread constraint allows
`maxSkew` of the pods that it counts; an anti-affinity term none of those that it means, or the pod alone.
"""

from collections.abc import Iterable, Mapping, Sequence

from kerf.engine.place.checks import Apart, Check, Even, Welcome
from kerf.engine.place.shapes import UNCROWDED, Crowding, Shape
from kerf.engine.place.tallies import Tally
from kerf.engine.place.topology import TopologyLedger
from kerf.model.constraints import HOSTNAME

_ANY_NUMBER = 1 << 62


class Headcount:
    """The pods of one node by group, and how many of each its pods allow."""

    __slots__ = ("_allowed", "_counts")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._allowed: dict[int, int] = {}

    def room(self, crowding: Crowding) -> int:
        """How many more such pods may come. Cost: the groups and limits of one of them."""
        found = _ANY_NUMBER
        for group, most in crowding.most:
            held = self._counts.get(group, 0)
            if group in crowding.groups:
                found = min(found, most - held)
            elif held > most:
                return 0
        for group in crowding.groups:
            if group in self._allowed:
                found = min(found, self._allowed[group] - self._counts.get(group, 0))
        return max(0, found)

    def add(self, crowding: Crowding, pods: int) -> None:
        """So many have come."""
        for group in crowding.groups:
            self._counts[group] = self._counts.get(group, 0) + pods
        for group, most in crowding.most:
            self._allowed[group] = min(most, self._allowed.get(group, most))


def most_alone(crowding: Crowding) -> int:
    """How many such pods an empty node may have."""
    return Headcount().room(crowding)


def crowdings(ledger: TopologyLedger, shapes: Sequence[Shape]) -> tuple[Crowding, ...]:
    """Those of the shapes, in their order. The ledger must have been asked for the checks of all of them."""
    limits = [_limits(ledger.checks(shape)) for shape in shapes]
    numbers: dict[int, int] = {}
    for tally, _ in (limit for found in limits for limit in found):
        numbers.setdefault(id(tally), len(numbers))
    if not numbers:
        return (UNCROWDED,) * len(shapes)
    return tuple(_crowding(ledger.counting(shape), found, numbers) for shape, found in zip(shapes, limits, strict=True))


def _crowding(counting: Iterable[Tally], limits: Sequence[tuple[Tally, int]], numbers: Mapping[int, int]) -> Crowding:
    groups = tuple(sorted({numbers[id(tally)] for tally in counting if id(tally) in numbers}))
    most: dict[int, int] = {}
    for tally, skew in limits:
        group = numbers[id(tally)]
        # A pod that is itself one of those it must be away from is alone there.
        allowed = skew or int(group in groups)
        most[group] = min(allowed, most.get(group, allowed))
    return Crowding(groups, tuple(sorted(most.items()))) if groups or most else UNCROWDED


def _limits(checks: Iterable[Check]) -> list[tuple[Tally, int]]:
    """The tallies of single nodes that pods go by, each with maxSkew; 0 where they must be away."""
    found: list[tuple[Tally, int]] = []
    for check in checks:
        if check.keys != (HOSTNAME,):
            continue
        if isinstance(check, Even):
            found.append((check.tally, check.constraint.max_skew))
        elif isinstance(check, Apart | Welcome):
            found.append((check.tally, 0))
    return found
