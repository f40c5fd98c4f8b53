"""What types hold of pods, worked out once for all pods that differ in cpu and memory alone.

A plan for groups fills the same types with hundreds of shapes, and again for each group that may or may not get
in. Taints, labels, offerings and cards answer all shapes of one kind alike: every family leaves cpu and memory to
kubelet. So they are asked once a kind and type, and what is left for a shape is division, for all types at once.
"""

import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kerf.engine.place.devices import Taken, asks_devices, demand_of, place_on_devices
from kerf.engine.place.fit import check_taints, narrowed
from kerf.engine.place.shapes import Kinds, Shape
from kerf.engine.supply.classes import Classes, asked_of, inherited, labels_asked
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.warmth import Warmth
from kerf.model.gpu import DeviceState, Slice
from kerf.model.plan import Misfit
from kerf.model.pods import PodDemand, port_in_conflict
from kerf.model.quantities import Resources
from kerf.sharing.shown import NEURON_CORES, NEURON_DEVICES

Amounts = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_Number = TypeVar("_Number", bound=np.integer[Any])
_UNKNOWN = -1
"""In the place of an answer that was not asked for yet."""
_MOST_KINDS, _MOST_STEPS, _MOST_NODES = 5_000, 20_000, 5_000
"""What a holding is carried on with at most: kinds and shapes of pods, steps of cards, and filled nodes."""
_FEW = 8
"""Rows of which each is asked about by itself."""
_NO_AMOUNT = -(2**63)
_MOST = 2**62
"""Amounts are cut to what an array of 64 bits can hold; no node has so much."""


class Cards:
    """Cards as they fill up: each state of a node's cards has a number, and one pod of a kind leads to the next."""

    def __init__(self) -> None:
        self._devices: list[tuple[DeviceState, ...]] = []
        self._after: dict[tuple[int, int], tuple[int, tuple[Slice, ...]] | None] = {}
        self._starts: dict[tuple[object, ...], int] = {}
        self._alike: dict[int, bool] = {}
        self._families: dict[int, object] = {}
        """Kept, so no others can get their identity."""

    def start(self, offered: OfferedType) -> int:
        """The state of an empty node of the type; types that take the same pods share it."""
        target = offered.target
        key = (offered.layout, target.quotas, id(target.families), target.no_devices is None)
        if key not in self._starts:
            self._families[id(target.families)] = target.families
            self._starts[key] = self._number(offered.room.devices)
        return self._starts[key]

    def _number(self, devices: tuple[DeviceState, ...]) -> int:
        self._devices.append(devices)
        return len(self._devices) - 1

    def __len__(self) -> int:
        return len(self._after)

    def devices(self, state: int) -> tuple[DeviceState, ...]:
        """The cards in a state."""
        return self._devices[state]

    def are_alike(self, state: int) -> bool:
        """Whether there are cards, and all are equal in all except their names."""
        if state not in self._alike:
            self._alike[state] = len({replace(d, id="", index=0) for d in self._devices[state]}) == 1
        return self._alike[state]

    def after(self, state: int, kind: int, shape: Shape, offered: OfferedType) -> tuple[int, tuple[Slice, ...]] | None:
        """The state with one pod more, and its slices under the name of some pod; None where no card takes it."""
        key = (state, kind)
        if key not in self._after:
            taken = place_on_devices(offered.target, self._devices[state], shape)
            known = (self._number(taken.devices), taken.slices) if isinstance(taken, Taken) else None
            self._after[key] = known
        return self._after[key]


class Holding:
    """The answers of types for kinds of pods, kept for every purchase of one decision.

    Types are rows, in the order in which they were first seen; they are kept, so no other can get the id of one.
    """

    def __init__(self, offered_types: Iterable[OfferedType] = (), before: "Holding | None" = None) -> None:
        self.cards: Cards = Cards() if before is None else before.cards
        self.types: list[OfferedType] = []
        self._rows: dict[int, int] = {}
        self._starts: list[int] = []
        self._layouts: list[int] = []
        self._families: list[int] = []
        self._known_families: dict[tuple[str, int], int] = {}
        self._first_of_family: list[int] = []
        self._known_layouts: dict[object, int] = {}
        self._offered: dict[str, Amounts] = {}
        self._capacities: dict[str, Amounts] = {}
        self._kinds, self._numbers = Kinds(are_sized=False), dict[object, int]()
        self._shapes: dict[tuple[int, Resources], int] = {}
        self._asked: dict[int, int] = {}
        self._known_asked: dict[Hashable, int] = {}
        self._admits: dict[int, npt.NDArray[np.int8]] = {}
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}
        self._alone: dict[tuple[int, Resources, int], Amounts] = {}
        self._partial: set[tuple[int, Resources, int]] = set()
        """The keys of `_alone` of which some row may not have been asked about."""
        self._most: dict[tuple[int, Resources], tuple[int, Amounts]] = {}
        """By kind and amounts, what types hold of so many pods; it answers for fewer, too."""
        self._quotients: dict[Resources, Amounts] = {}
        self._asks: dict[tuple[int, str, int], bool] = {}
        self.kept: dict[Hashable, object] = {}
        """What a purchase has worked out of the types, by its question: the next one may ask the same."""
        self._names = np.zeros(0, dtype=np.int64)
        self.splits: Any = None
        """What the last question for price splits was, and the answer."""
        self.fills: dict[tuple[int, Hashable, Hashable], Any] = {}
        """Nodes that were filled, by row and by pods in their order, where the holding is carried on."""
        self._older_fills: Mapping[tuple[int, Hashable, Hashable], Any] = {}
        """Those of earlier decisions that were not asked for again: they are forgotten when there are as many new."""
        self.findings: dict[tuple[int, Hashable], dict[Hashable, Any]] = {}
        """What was found of such nodes, by row and by the pods that they hold in the order in which they came."""
        self.turns: dict[Hashable, Any] = {}
        """Turns in which pods must come to cards."""
        self.takings: dict[Hashable, Any] = {}
        """What a pod takes of idle cards, by its kind and their state."""
        self.warmth: Warmth | None = None
        """What was kept of earlier decisions, where the caller carries that."""
        self._before, self._origins = before, np.zeros(0, dtype=np.int64)
        self.know(offered_types)
        if before is not None:
            # What is said of a kind of pods, or of a state of cards, is said by the same numbers in both.
            self._says_of_kinds(before)
            self._says_of_cards(before)
            known = before._rows
            self._origins = np.array([known.get(id(each), -1) for each in self.types], dtype=np.int64)
        self._classes: Classes = Classes(None if before is None else before._classes, self._origins)

    def beside(self, offered_types: Iterable[OfferedType]) -> "Holding":
        """The same of another supply. Types that both have keep the answers that are known by then.

        Cost: linear in the types; later, once for each answer that is asked for again, and the types that are new.
        """
        found = Holding(offered_types, self)
        found.warmth = self.warmth
        return found

    def _says_of_kinds(self, before: "Holding") -> None:
        self._kinds, self._numbers, self._shapes = before._kinds, before._numbers, before._shapes
        self._asked, self._known_asked, self._asks = before._asked, before._known_asked, before._asks

    def _says_of_cards(self, before: "Holding") -> None:
        self.cards, self._counts = before.cards, before._counts
        self.turns, self.takings = before.turns, before.takings

    def carried(self, offered_types: Sequence[OfferedType]) -> "Holding":
        """The same for the next decision, on the types of its supply, without counts of pods.

        What types say is carried on where they are the same types, so the two do not hold each other. Of cards nothing
        is, once that is much, and of filled nodes those that were asked for lately.
        """
        found = Holding()
        found._says_of_kinds(self)
        if len(self.cards) <= _MOST_STEPS:
            found._says_of_cards(self)
        found.know(offered_types)
        count = len(found.types)
        if len(self.types) >= count and all(map(operator.is_, self.types, found.types)):
            found._offered = {name: amounts[:count] for name, amounts in self._offered.items()}
            found._capacities = {name: amounts[:count] for name, amounts in self._capacities.items()}
            found._most = {asked: (most, counts[:count]) for asked, (most, counts) in self._most.items()}
            found._quotients = {requests: counts[:count] for requests, counts in self._quotients.items()}
            found._admits = {asked: answers[:count].copy() for asked, answers in self._admits.items()}
            # Rows beyond are of types that a window's taint made, and of others then; so these are no shared dicts.
            found.fills = {asked: made for asked, made in self.fills.items() if asked[0] < count}
            found.findings = {same: known for same, known in self.findings.items() if same[0] < count}
            found._older_fills = self._older_fills
            if len(found.fills) > _MOST_NODES // 2:
                found.fills, found.findings, found._older_fills = {}, {}, found.fills
        return found

    @property
    def is_full(self) -> bool:
        """Whether so many kinds of pods are known that the next decision should begin from nothing."""
        return max(len(self._shapes), len(self._quotients), self._kinds.size) > _MOST_KINDS

    def filled(self, asked: tuple[int, Hashable, Hashable]) -> tuple[Any] | None:
        """What is known of `fills`, also of earlier decisions; None where nothing is."""
        if asked not in self.fills:
            if asked not in self._older_fills:
                return None
            self.fills[asked] = self._older_fills[asked]
        return (self.fills[asked],)

    def know(self, offered_types: Iterable[OfferedType]) -> None:
        """Give types their rows at once: one by one the answers that are known grow row by row."""
        known = self._rows
        for offered in offered_types:
            if id(offered) not in known:
                self.row(offered)

    def row(self, offered: OfferedType) -> int:
        """The row of a type, a new one for one that was not seen before."""
        row = self._rows.setdefault(id(offered), len(self.types))
        if row == len(self.types):
            self.types.append(offered)
            self._starts.append(self.cards.start(offered))
            family = offered.target.family.name, id(offered.target.families)
            number = self._known_families.setdefault(family, len(self._known_families))
            if number == len(self._first_of_family):
                self._first_of_family.append(row)
            self._families.append(number)
            self._layouts.append(self._known_layouts.setdefault(offered.layout, len(self._known_layouts)))
        return row

    def rows(self, offered_types: Iterable[OfferedType]) -> Amounts:
        """The rows of types, in their order."""
        held = tuple(offered_types)
        self.know(held)
        known = self._rows
        return np.fromiter((known[id(offered)] for offered in held), dtype=np.int64, count=len(held))

    def layout(self, row: int) -> int:
        """A number that types have alike whose cards take the same pods."""
        return self._layouts[row]

    def start(self, row: int) -> int:
        """The state of the cards of an empty node."""
        return self._starts[row]

    def amounts(self, name: str) -> Amounts:
        """By row, what an empty node has of a resource; without bound where no sum over the node decides."""
        known = self._offered.get(name)
        if known is None or len(known) < len(self.types):
            there = None if self._before is None else self._before._offered.get(name)
            known = self._grown(known, there, np.full(len(self.types), _NO_AMOUNT, dtype=np.int64), _NO_AMOUNT)
            for row in np.flatnonzero(known == _NO_AMOUNT).tolist():
                offered = self.types[row]
                known[row] = _MOST if name in offered.target.uncounted else measured(offered.room.free, name)
            self._offered[name] = known
        return known

    def capacities(self, name: str) -> Amounts:
        """By row, what a launch charges of a resource against its pool's limits, at the least."""
        known = self._capacities.get(name, np.zeros(0, dtype=np.int64))
        if len(known) < len(self.types):
            amounts = [measured(offered.capacity, name) for offered in self.types[len(known) :]]
            known = self._capacities[name] = np.concatenate([known, np.array(amounts, dtype=np.int64)])
        return known

    def kind(self, shape: Shape) -> int:
        """The number of the pods' kind: equal for shapes that differ in cpu and memory alone."""
        pod = shape.pods[0]
        key = (pod.namespace, self._kinds.of(pod, shape.asked))
        return self._numbers.setdefault(key, len(self._numbers))

    def shape_number(self, shape: Shape) -> int:
        """A number that shapes have alike which ask for the same, however many pods they have."""
        return self._shapes.setdefault((self.kind(shape), shape.requests), len(self._shapes))

    def asks_devices(self, kind: int, shape: Shape, offered: OfferedType) -> bool:
        """Whether pods of the kind must be asked about the cards of the type."""
        target = offered.target
        key = (kind, target.family.name, id(target.families))
        if key not in self._asks:
            self._asks[key] = asks_devices(shape, target)
        return self._asks[key]

    def alone(self, shape: Shape, kind: int, rows: Amounts | None = None) -> Amounts:
        """By row, how many pods of the shape an empty node holds; 0 where none fits.

        With `rows` it is right for these alone. Cost: linear in those of them that were not asked about before.
        """
        many = _ahead(len(shape))
        key = (kind, shape.requests, many)
        known = self._alone.get(key)
        if known is None or len(known) < len(self.types):
            most, counts = self._most.get(key[:2], (0, None))
            if counts is not None and most >= len(shape) and len(counts) == len(self.types):
                return np.minimum(counts, len(shape))
            there = None if self._before is None else self._before._alone.get(key)
            known = self._grown(known, there, np.full(len(self.types), _UNKNOWN, dtype=np.int64), _UNKNOWN)
            self._alone[key] = known
            self._partial.add(key)
        if key in self._partial:
            wanted = np.arange(len(known)) if rows is None else rows
            new = wanted[known[wanted] == _UNKNOWN]
            known[new] = self._count(shape, kind, new, many)
            if rows is None:
                self._partial.discard(key)
                # Where no type is full, it has room for no more of any number.
                most = many if known.max(initial=0) >= many else _MOST
                if most >= self._most.get(key[:2], (0, known))[0]:
                    self._most[key[:2]] = most, known
        return np.minimum(known, len(shape))

    def lacking(self, shape: Shape) -> Bools:
        """By row, whether an empty node is too small for a pod of the shape."""
        lacking = np.zeros(len(self.types), dtype=np.bool_)
        for name, amount in shape.requests.items():
            if amount > 0:
                lacking |= self.amounts(name) < min(amount, _MOST)
        return lacking

    def _count(self, shape: Shape, kind: int, rows: Amounts, many: int) -> Amounts:
        """The counts of these rows, of so many pods."""
        most = 1 if shape.spec.host_ports else many
        counts = np.minimum(most, self.divided(shape.requests)[rows])
        counts *= self.admits(shape, kind, rows[counts > 0])[rows]
        asked = np.flatnonzero((counts > 0) & self._asking(shape, kind)[rows])
        if len(asked):
            # Cards in one state hold as many, whatever else their types have.
            states = np.fromiter((self._starts[row] for row in rows[asked].tolist()), dtype=np.int64, count=len(asked))
            _, firsts, numbers = np.unique(states, return_index=True, return_inverse=True)
            held = [self._count_devices(shape, kind, row, many) for row in rows[asked[firsts]].tolist()]
            counts[asked] = np.minimum(counts[asked], np.array(held, dtype=np.int64)[numbers])
        found: Amounts = np.maximum(counts, 0)
        return found

    def divided(self, requests: Resources) -> Amounts:
        """By row, how often an empty node has these amounts, where sums over the node decide."""
        known = self._quotients.get(requests, np.zeros(0, dtype=np.int64))
        if len(known) < len(self.types):
            counts = np.full(len(self.types), _MOST, dtype=np.int64)
            for name, amount in requests.items():
                if amount > 0:
                    np.minimum(counts, self.amounts(name) // min(amount, _MOST), out=counts)
            devices = sum(requests.get(name, 0) for name in NEURON_DEVICES)
            if devices > 0:
                # Types differ in the cores of a device, and so in what the pods take of them.
                each = np.array([offered.target.neuron_cores for offered in self.types], dtype=np.int64)
                cores = each * min(devices, _MOST // 1024) + min(requests.get(NEURON_CORES, 0), _MOST // 2)
                np.minimum(counts, self.amounts(NEURON_CORES) // np.maximum(cores, 1), out=counts, where=each > 0)
            known = self._quotients[requests] = counts
        return known

    def admits(self, shape: Shape, kind: int, rows: Amounts) -> Bools:
        """By row whether taints, labels, ports and offerings let pods of the kind onto a node; right for `rows`.

        Cost: one question for each class of types that the pods tell apart, asked once for all kinds that ask the same.
        """
        if kind not in self._asked:
            self._asked[kind] = self._known_asked.setdefault(asked_of(shape), len(self._known_asked))
        asked = self._asked[kind]
        answers = self._admits.get(asked)
        if answers is None or len(answers) < len(self.types):
            there = None if self._before is None else self._before._admits.get(asked)
            answers = self._grown(answers, there, np.full(len(self.types), _UNKNOWN, dtype=np.int8), _UNKNOWN)
            self._admits[asked] = answers
        new = rows[answers[rows] < 0]
        if len(new):
            alike = self._classes.of(labels_asked(shape), self.types, new)
            _, firsts, numbers = np.unique(alike, return_index=True, return_inverse=True)
            found = [admits_shape(shape, self.types[row]) for row in new[firsts].tolist()]
            answers[new] = np.array(found, dtype=np.int8)[numbers]
        return answers > 0

    def _grown(
        self,
        known: npt.NDArray[_Number] | None,
        there: npt.NDArray[_Number] | None,
        blank: npt.NDArray[_Number],
        unknown: int,
    ) -> npt.NDArray[_Number]:
        """`blank`, which is `unknown` in each row, with what is `known` here, else what was known `there`, before."""
        if known is None and there is not None:
            known = inherited(there, self._origins, unknown)
        if known is not None:
            blank[: len(known)] = known
        return blank

    def distinct(self, shape: Shape, rows: Amounts) -> list[int]:
        """Of rows of one pool the numbers of those that pods of the shape tell apart, in their order.

        Types that labels or taints refuse in one way differ in their names alone: the first by name is kept.
        Cost: linear in the rows, and one question for each class of types that the pods tell apart. Of a few rows all
        are kept: to ask about each costs less than to find out which are alike.
        """
        if len(rows) <= _FEW:
            return list(range(len(rows)))
        alike = self._classes.of(labels_asked(shape), self.types, rows)
        _, firsts, numbers = np.unique(alike, return_index=True, return_inverse=True)
        refused = np.array([is_kept_out(shape, self.types[row]) for row in rows[firsts].tolist()], dtype=np.bool_)
        found = np.flatnonzero(~refused[numbers])
        names = self._by_name[rows]
        nearest = [at[names[at].argmin()] for at in (np.flatnonzero(numbers == n) for n in np.flatnonzero(refused))]
        return sorted((*found.tolist(), *map(int, nearest)))

    @property
    def _by_name(self) -> Amounts:
        """By row the place of the type's name among all; equal for equal names."""
        if len(self._names) < len(self.types):
            names = [str(offered.target.name) for offered in self.types]
            self._names = np.unique(names, return_inverse=True)[1].astype(np.int64)
        return self._names

    def _asking(self, shape: Shape, kind: int) -> Bools:
        """By row whether pods of the kind must be asked about the cards of the type."""
        answers = [self.asks_devices(kind, shape, self.types[row]) for row in self._first_of_family]
        return np.array(answers, dtype=np.bool_)[self._families]

    def _count_devices(self, shape: Shape, kind: int, row: int, wanted: int) -> int:
        """How many pods of the kind, which ask for cards, idle cards hold; of more than are wanted it may say less."""
        state = self._starts[row]
        most, count = self._counts.get((kind, state), (0, 0))
        if most < wanted and count >= most:
            count = self._fill_devices(shape, kind, row, wanted)
            self._counts[kind, state] = wanted, count
        return count

    def _fill_devices(self, shape: Shape, kind: int, row: int, wanted: int) -> int:
        offered, state = self.types[row], self._starts[row]
        devices = self.cards.devices(state)
        demand = demand_of(shape, offered.target.family)
        # On equal idle cards one-card pods fill each alike: count one and multiply.
        if isinstance(demand, PodDemand) and _is_one_card(demand) and self.cards.are_alike(state):
            return _count_one_by_one(shape, offered, devices[:1], wanted) * len(devices)
        count = 0
        while count < wanted and (after := self.cards.after(state, kind, shape, offered)) is not None:
            count, state = count + 1, after[0]
        return count


def is_kept_out(shape: Shape, offered: OfferedType) -> bool:
    """Whether taints or labels keep pods of the shape off an empty node of the type."""
    kept_off = check_taints(offered.target, shape) is not None
    return kept_off or isinstance(narrowed(offered.target, offered.room, shape), Misfit)


def admits_shape(shape: Shape, offered: OfferedType) -> bool:
    """Whether an empty node of the type takes pods of the shape as far as amounts and cards do not decide."""
    if check_taints(offered.target, shape) is not None:
        return False
    if port_in_conflict(shape.spec.host_ports, offered.room.ports) is not None:
        return False
    requirements = narrowed(offered.target, offered.room, shape)
    return not isinstance(requirements, Misfit) and offered.offering_for(requirements) is not None


def measured(amounts: Mapping[str, int], name: str) -> int:
    """An amount, cut to what an array of 64 bits can hold."""
    return max(-_MOST, min(amounts.get(name, 0), _MOST))


def _is_one_card(demand: PodDemand) -> bool:
    requests = [container.request for container in demand.containers]
    return len(requests) == 1 and requests[0] is not None and requests[0].count == 1


def _ahead(pods: int) -> int:
    """For how many pods it is counted where there are so many: the next decision may have some more of them."""
    return 1 << (pods - 1).bit_length()


def _count_one_by_one(shape: Shape, offered: OfferedType, devices: tuple[DeviceState, ...], wanted: int) -> int:
    count = 0
    while count < wanted:
        taken = place_on_devices(offered.target, devices, shape)
        if not isinstance(taken, Taken):
            break
        devices = taken.devices
        count += 1
    return count
