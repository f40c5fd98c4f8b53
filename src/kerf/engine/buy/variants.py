"""Pods that ask the same of a node and differ only in the nodes that may have them.

Such shapes (pods of one size of which some name models, zones or pools) can take each other's places. With a row for
each of them a linear program finds node after node that differ in nothing but whose pods they are for. So columns have
places, and a row is about a set of nodes: they have at least as many places as there are pods that may go nowhere else.
If that holds for every union of sets that overlap, all pods have a place (Hall 1935). A shape without variants has one
row, its pods.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from kerf.engine.buy.relaxation import PLACES, Floats, Relaxation
from kerf.engine.supply.holding import Amounts, Bools

_NEARLY = 1e-6
_MOST_SETS = 24
"""Of nodes for pods of one kind. Without some unions pods may be left over, for whom full nodes are bought then."""


class SizeKinds:
    """Which shapes ask the same of every node that may have both; each kind is named by its first shape."""

    def __init__(self, relaxation: Relaxation, usual: Bools) -> None:
        """`usual` are the shapes that may have variants. Cost: shapes times groups of types."""
        count = len(relaxation.demand)
        self._relaxation = relaxation
        self.of: Amounts = np.arange(count)
        """By shape its kind."""
        asked = [_asked(relaxation, number) for number in range(len(relaxation.groups))]
        is_there = np.array(
            [relaxation.takes[:, relaxation.group == number].any(axis=1) for number in range(len(asked))]
        ).T
        known: dict[int, dict[int, bytes]] = {}
        by_size: dict[tuple[int, bytes], list[int]] = {}
        for shape in np.flatnonzero(usual).tolist():
            own = {number: asked[number][shape].tobytes() for number in np.flatnonzero(is_there[shape]).tolist()}
            candidates = sorted({kind for each in own.items() for kind in by_size.get(each, ())})
            kind = next((kind for kind in candidates if _agree(known[kind], own)), shape)
            self.of[shape] = kind
            for each in own.items() - known.setdefault(kind, {}).items():
                by_size.setdefault(each, []).append(kind)
            known[kind].update(own)
        self._first: list[Amounts] = [self._firsts(is_there[:, number]) for number in range(len(asked))]

    def _firsts(self, are_there: Bools) -> Amounts:
        """By kind its first shape that some type of a group takes; itself where there is none."""
        first = np.arange(len(self.of))
        shapes = np.flatnonzero(are_there)[::-1]
        first[self.of[shapes]] = shapes
        return first

    @property
    def count(self) -> int:
        """How many kinds there are."""
        return len(set(self.of.tolist()))

    def shown(self, number: int) -> Amounts:
        """By shape the one that stands for its kind on nodes of the type."""
        shown: Amounts = self._first[int(self._relaxation.group[number])][self.of]
        return shown

    def standing(self, number: int, shapes: Bools) -> Bools:
        """These shapes, each kind by the one that stands for it on nodes of the type."""
        found = np.zeros(len(self.of), dtype=np.bool_)
        found[self.shown(number)[shapes]] = True
        return found


def _asked(relaxation: Relaxation, number: int) -> Amounts:
    """By shape what it asks of the types of a group."""
    group = relaxation.groups[number]
    plain = [at for at in group.sums.tolist() if not relaxation.resources[at].startswith(PLACES)]
    return np.ascontiguousarray(np.concatenate([group.asked[:, plain], group.slices], axis=1))


def _agree(known: dict[int, bytes], own: dict[int, bytes]) -> bool:
    return all(known.get(number, size) == size for number, size in own.items())


class Rows:
    """Rows of a linear program for places on sets of nodes; the first are those of the shapes, in their order.

    Nodes are of so many units. What is said of a unit is by the shapes that stand for their kinds there.
    """

    def __init__(self, kinds: SizeKinds, demand: Amounts, able: Bools, shown: Sequence[Amounts]) -> None:
        """`able` is by unit and shape whether nodes may have it, `shown` by unit what stands for each shape there."""
        self._shown, self._shapes = shown, len(demand)
        packed = np.packbits(able, axis=0, bitorder="little").T
        masks = [int.from_bytes(column.tobytes(), "little") for column in packed]
        held = list(zip(kinds.of.tolist(), masks, strict=True))
        row = {each: at for at, each in enumerate(dict.fromkeys(held))}
        by_kind: dict[int, list[int]] = {}
        for kind, mask in list(row):
            by_kind.setdefault(kind, []).append(mask)
        for kind, sets in by_kind.items():
            if len(sets) > 1:
                sets += _unions(sets)[len(sets) :]
                for mask in sets:
                    row.setdefault((kind, mask), len(row))
        self._sizes = [mask.bit_count() for _, mask in row]
        self.own: Amounts = np.array([row[each] for each in held], dtype=np.int64)
        """By shape the row of its own set."""
        self.of_shape = [
            [row[kind, other] for other in by_kind[kind] if other == mask or (mask and mask & ~other == 0)]
            for kind, mask in held
        ]
        """By shape the rows that a pod of it counts in."""
        self.demand: Floats = np.zeros(len(row))
        for rows, count in zip(self.of_shape, demand.tolist(), strict=True):
            self.demand[rows] += float(count)
        self.has_variants = len(row) != self._shapes or kinds.count != self._shapes
        of_row = np.array([kind for kind, _ in row], dtype=np.int64)
        are_in = np.array([[mask >> unit & 1 for unit in range(len(able))] for _, mask in row], dtype=np.bool_)
        self._edges = [self._edges_of(unit, np.flatnonzero(are_in[:, unit]), of_row) for unit in range(len(able))]
        several = np.bincount(kinds.of, minlength=self._shapes)[kinds.of] > 1
        self._choices = [dict(self._choices_of(unit, able[unit] & several)) for unit in range(len(able))]

    def __len__(self) -> int:
        return len(self.demand)

    def _edges_of(self, unit: int, rows: Amounts, kinds: Amounts) -> tuple[Amounts, Amounts, Bools]:
        """Shapes that stand for their kinds and rows of their places there, in pairs; which rows hold all others."""
        order = np.lexsort((-rows, self.demand[rows], kinds[rows]))
        sorted_kinds = kinds[rows][order]
        is_last = np.ones(len(rows), dtype=np.bool_)
        is_last[:-1] = sorted_kinds[1:] != sorted_kinds[:-1]
        outer = np.zeros(len(kinds), dtype=np.bool_)
        outer[rows[order][is_last]] = True
        return self._shown[unit][kinds[rows]], rows, outer

    def _choices_of(self, unit: int, able: Bools) -> Iterator[tuple[int, tuple[int, ...]]]:
        """For each shape that stands for its kind those that may have its places, those with the fewest nodes first."""
        held: dict[int, list[int]] = {}
        for shape in np.flatnonzero(able).tolist():
            held.setdefault(int(self._shown[unit][shape]), []).append(shape)
        for shown, shapes in held.items():
            if shapes != [shown]:
                yield shown, tuple(sorted(shapes, key=lambda shape: (self._sizes[self.own[shape]], shape)))

    def prices(self, unit: int, by_row: Floats) -> Floats:
        """By shape what one of its places on a node is worth."""
        shapes, rows, _ = self._edges[unit]
        found: Floats = np.bincount(shapes, weights=by_row[rows], minlength=self._shapes).astype(np.float64)
        return found

    def places(self, unit: int, nodes: Amounts) -> Amounts:
        """By node and row the places of nodes, each by shape."""
        shapes, rows, _ = self._edges[unit]
        found = np.zeros((len(nodes), len(self)), dtype=np.int64)
        found[:, rows] = nodes[:, shapes]
        return found

    def cover(self, unit: int, uncovered: Floats, places: Amounts) -> None:
        """Take the pods of as many of each node as there are pods for, one node after the other."""
        outer = self._edges[unit][2]
        for counts in places:
            held = np.flatnonzero(counts)
            widest = held[outer[held]] if self.has_variants else held
            times = float((uncovered[widest] / counts[widest]).min())
            if times > _NEARLY:
                left = uncovered[held] - times * counts[held]
                uncovered[held] = np.maximum(left, 0.0) if self.has_variants else left

    def split(self, worth: Floats) -> Floats:
        """By row what places are worth, as near as that comes to what pods are worth by shape."""
        found, value = np.zeros(len(self)), np.zeros(len(self))
        np.maximum.at(value, self.own, worth)
        wider: dict[int, list[int]] = {}
        for shape, rows in enumerate(self.of_shape):
            wider[int(self.own[shape])] = rows
        for at in sorted(wider, key=lambda at: (-self._sizes[at], at)):
            found[at] = max(0.0, value[at] - sum(found[other] for other in wider[at] if other != at))
        return found

    def standing(self, unit: int, counts: Amounts) -> Amounts:
        """Nodes by shape, each kind's pods by the shape that stands for it."""
        found = np.zeros_like(counts)
        nodes, shapes = counts.nonzero()
        np.add.at(found, (nodes, self._shown[unit][shapes]), counts[nodes, shapes])
        return found

    def named(self, unit: int, counts: Amounts, turns: Amounts) -> tuple[Amounts, Amounts, dict[int, tuple[int, ...]]]:
        """A node by the shapes that have most nodes to choose from, with turns, and who else may have their places."""
        found, choices = counts, dict[int, tuple[int, ...]]()
        known = self._choices[unit]
        for shown in np.flatnonzero(counts).tolist() if known else ():
            able = known.get(shown)
            if able is not None:
                found = counts.copy() if found is counts else found
                found[shown], found[able[-1]] = 0, counts[shown]
                choices[able[-1]] = able
        return found, turns, choices


def _unions(sets: Sequence[int]) -> list[int]:
    """The sets, as bits, and the unions of those that overlap; no more than `_MOST_SETS` beyond the sets."""
    found, known = list(sets), set(sets)
    most, at = len(found) + _MOST_SETS, 0
    while at < len(found):
        for other in found[:at]:
            union = found[at] | other
            if found[at] & other and union not in known and len(found) < most:
                known.add(union)
                found.append(union)
        at += 1
    return found
