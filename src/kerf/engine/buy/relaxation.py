"""What a bound keeps of pods and types: amounts that are summed over a node, and pieces that must find place on a card.

Pods may be cut to pieces and nodes be bought in parts. But a pod takes its share of everything that is summed over a
node, and each of its slices a piece of one physical card, of which a node has as many as it has. Left out is what only
whole nodes know: which pods meet on one node, and that two slices of a container lie on two cards.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kerf.engine.buy.cardpatterns import Piece, instances, patterns
from kerf.engine.buy.filling import Filler
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts, Bools, measured
from kerf.engine.supply.offered import OfferedType
from kerf.model.gpu import DeviceState, Partition, Slice

Floats = npt.NDArray[np.float64]
_MOST_COUNTED_SHAPES = 32
"""Up to so many shapes the whole number of equal pods that a node holds is a resource of its own: it tightens the
bound where pods do not divide a node evenly, and costs a row a type and shape."""
PLACES = "places of shape "
"""What the names of such resources begin with."""
_MOST = 2**62
"""Amounts are cut to what an array of 64 bits can hold."""
_MEMORY, _CORES, _SLOTS = "card memory", "card cores", "card slots"
_MEMORY_OVER_HALF, _CORES_OVER_HALF = "cards over half in memory", "cards over half in cores"
SUMS_OF_CARDS = frozenset((_MEMORY, _CORES, _SLOTS, _MEMORY_OVER_HALF, _CORES_OVER_HALF))
"""Names of the resources that are sums over a node's cards."""


@dataclass(frozen=True, eq=False)
class TypeGroup:
    """Types on which pods ask the same: their nodes differ in amounts and in how many such cards they have.

    `asked` is by shape and resource of the relaxation, `slices` by shape and size of a piece; 0 where the shape fits on
    none of the types. `sizes` name the pieces and `counts` are the patterns of one card, by pattern and size; where it
    has no sizes, sums are all that is kept of cards. `whole_cards` is by shape how many cards a pod takes that have no
    room for another of these pods, where that is all it takes of cards, and several; else 0.
    """

    asked: Amounts
    sizes: tuple[Piece | str, ...]
    slices: Amounts
    counts: Amounts
    whole_cards: Amounts

    @cached_property
    def sums(self) -> Amounts:
        """The numbers of the resources of which some shape asks something."""
        return np.flatnonzero(self.asked.any(axis=0))


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Pods by shape (`demand`), the types by number, and what the pods ask of each.

    `resources` are names, by which `amounts` (type, resource) and `TypeGroup.asked` are ordered. `group` and `cards`
    are by type, `takes` by shape and type. Amounts are in the units of the model; a pod never asks more than a type
    that takes it has.
    """

    demand: Amounts
    resources: tuple[str, ...]
    groups: tuple[TypeGroup, ...]
    types: tuple[OfferedType, ...]
    group: Amounts
    amounts: Amounts
    cards: Amounts
    price_micro: tuple[int, ...]
    takes: Bools

    @cached_property
    def has(self) -> Floats:
        """`amounts` to divide by: where a type has none of a resource, no pod that it takes asks for any."""
        return np.maximum(self.amounts, 1).astype(np.float64)


def price_of(offered: OfferedType) -> int:
    """The least that it is sold for: its first offering may cost more (reserved comes before others at any price)."""
    return min(offering.price_micro for offering in offered.offerings)


def relaxed(filler: Filler, types: Sequence[OfferedType]) -> Relaxation:
    """The relaxation for the filler's shapes on these types. Cost: shapes x types, in arrays; cards once a kind."""
    shapes = filler.shapes
    alone = filler.held(range(len(shapes)))[filler.holding.rows(types)]
    names, keys = _Names(), dict[object, int]()
    group = np.array([keys.setdefault(_alike(each), len(keys)) for each in types], dtype=np.int64)
    drafts = [_Draft(filler, types, np.flatnonzero(group == number), alone, names) for number in range(len(keys))]
    if len(shapes) <= _MOST_COUNTED_SHAPES:
        for draft in drafts:
            draft.count_places()
    amounts = np.zeros((len(types), len(names.all)), dtype=np.int64)
    for draft in drafts:
        draft.fill_in(amounts)
    return Relaxation(
        np.array([len(shape) for shape in shapes], dtype=np.int64),
        names.all,
        tuple(draft.alike() for draft in drafts),
        tuple(types),
        group,
        amounts,
        np.array([len(each.room.devices) for each in types], dtype=np.int64),
        tuple(map(price_of, types)),
        np.ascontiguousarray(alone.T > 0),
    )


class _Names:
    """Resources by number, in the order in which they were first asked for."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self._known.setdefault(name, len(self._known))

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self._known)


def _alike(offered: OfferedType) -> tuple[object, ...]:
    """What types have in common on which pods ask the same."""
    target, devices = offered.target, offered.room.devices
    cards = {replace(device, id="", index=0, numa=0) for device in devices}
    # Of cards that are not alike only sums over the node are kept.
    counted = target.family.name, id(target.families), target.neuron_cores
    return *counted, target.quotas, tuple(cards) if len(cards) < 2 else devices


@dataclass(frozen=True)
class _Taking:
    """What one pod takes of cards: summed over the node, and piece by piece; `is_whole`: the pieces are all of it.

    `is_counted`: no node holds more such pods than one that holds nothing else. `slots` are those that it takes of all
    cards.
    """

    sums: tuple[tuple[str, int], ...]
    pieces: tuple[Piece | str, ...]
    is_whole: bool
    is_counted: bool
    slots: int


class _Draft:
    """One group of types while it is looked at; `held` are the numbers of its types, `alone` by type and shape."""

    def __init__(
        self, filler: Filler, types: Sequence[OfferedType], held: Amounts, alone: Amounts, names: _Names
    ) -> None:
        self._types, self._held, self._alone, self._names = types, held, alone, names
        self._devices = types[int(held[0])].room.devices
        self._summed: dict[str, int] = {}
        self._entries: list[tuple[int, int, int]] = []
        self._places: list[tuple[int, int]] = []
        self._takings: dict[int, _Taking] = {}
        self._uncounted: list[int] = []
        numbers = np.flatnonzero((alone[held] > 0).any(axis=0))
        self._numbers: list[int] = numbers.tolist()
        known: dict[Hashable, _Taking] = filler.holding.takings
        firsts: list[int] = held[(alone[np.ix_(held, numbers)] > 0).argmax(axis=0)].tolist()
        for number, at in zip(self._numbers, firsts, strict=True):
            offered, shape = types[at], filler.shapes[number]
            for name, amount in shape.counted(offered.target.counting).items():
                if amount > 0:
                    self._ask(number, name, amount)
            recipe = filler.recipe(number, offered)
            if recipe.asks_devices:
                key = recipe.kind, filler.holding.start(filler.holding.row(offered))
                if key not in known:
                    known[key] = _taking(filler, number, offered)
                self._takings[number] = known[key]
        self._shapes = len(filler.shapes)
        self._sizes, self._slices, self._counts, is_exact = self._cut()
        self._whole_cards = self._taken_whole()
        if not is_exact or not all(taking.is_whole for taking in self._takings.values()):
            for number, taking in self._takings.items():
                for name, amount in taking.sums:
                    self._ask(number, name, amount)

    def _ask(self, number: int, name: str, amount: int) -> None:
        at = self._summed.setdefault(name, self._names.of(name))
        self._entries.append((number, at, amount))

    def _cut(self) -> tuple[tuple[Piece | str, ...], Amounts, Amounts, bool]:
        """The sizes of pieces, what each shape asks of them, the patterns of one card, and whether these are exact."""
        none = (), np.zeros((self._shapes, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.int64), False
        asked = list(dict.fromkeys(piece for taking in self._takings.values() for piece in taking.pieces))
        if not asked:
            return none
        card, sizes, of = self._devices[0], tuple[Piece | str, ...](), tuple[int, ...]()
        names = tuple(sorted(piece for piece in asked if isinstance(piece, str)))
        if names:
            counts, is_exact = instances(names, card.profiles), False
            sizes, of = names, tuple(names.index(piece) for piece in asked if isinstance(piece, str))
            if counts is None or len(names) < len(asked):
                return none
        else:
            # In their own order, for which the last answers are kept.
            pieces = tuple(sorted(piece for piece in asked if not isinstance(piece, str)))
            found = patterns(pieces, card.memory_mib, card.cores, card.slots)
            number_of = dict(zip(pieces, found.of, strict=True))
            of = tuple(number_of[piece] for piece in asked if not isinstance(piece, str))
            sizes, counts, is_exact = found.sizes, found.counts, found.is_exact
        place = dict(zip(asked, of, strict=True))
        slices = np.zeros((self._shapes, len(sizes)), dtype=np.int64)
        for number, taking in self._takings.items():
            for piece in taking.pieces:
                slices[number, place[piece]] += 1
        return sizes, slices, counts, is_exact

    def _taken_whole(self) -> Amounts:
        """By shape: see `TypeGroup.whole_cards`."""
        found = np.zeros(self._shapes, dtype=np.int64)
        if not _are_alike(self._devices):
            return found
        card = self._devices[0]
        if card.slots == 1 and not card.partitions and not card.profiles:
            for number, taking in self._takings.items():
                found[number] = taking.slots if taking.slots > 1 else 0
            return found
        pieces = {piece for taking in self._takings.values() for piece in taking.pieces}
        for number, taking in self._takings.items():
            if len(taking.pieces) > 1 and taking.is_whole and all(_fills(card, each, pieces) for each in taking.pieces):
                found[number] = len(taking.pieces)
        return found

    def count_places(self) -> None:
        """Let the whole number of equal pods on a node be a resource, where it is the most that any node holds."""
        for number in self._numbers:
            taking = self._takings.get(number)
            if taking is None or taking.is_counted:
                at = self._names.of(f"{PLACES}{number}")
                self._entries.append((number, at, 1))
                self._places.append((number, at))

    def fill_in(self, amounts: Amounts) -> None:
        """What nodes of the types have of everything that is asked of them."""
        for at in self._held.tolist():
            offered = self._types[at]
            cards = _of_cards(offered.room.devices)
            for name, resource in self._summed.items():
                amounts[at, resource] = cards.get(name, 0) if name in cards else measured(offered.room.free, name)
            for number, resource in self._places:
                amounts[at, resource] = self._alone[at, number]

    def alike(self) -> TypeGroup:
        """The group, once all names are known."""
        asked = np.zeros((self._shapes, len(self._names.all)), dtype=np.int64)
        for number, resource, amount in self._entries:
            asked[number, resource] = min(amount, _MOST)
        return TypeGroup(asked, self._sizes, self._slices, self._counts, self._whole_cards)


def _fills(card: DeviceState, piece: Piece | str, others: Iterable[Piece | str]) -> bool:
    """Whether a card with the piece has no room for any of the others."""
    if isinstance(piece, str):
        return False
    memory, cores = piece
    sizes = [other for other in others if not isinstance(other, str)]
    return all(memory + m > card.memory_mib or cores + c > card.cores for m, c in sizes)


def _of_cards(devices: Sequence[DeviceState]) -> dict[str, int]:
    """What a node has of all that is summed over its cards."""
    found = {
        _MEMORY: sum(device.memory_mib for device in devices),
        _CORES: sum(device.cores for device in devices),
        _SLOTS: sum(device.slots for device in devices),
        _MEMORY_OVER_HALF: len(devices),
        _CORES_OVER_HALF: len(devices),
    }
    for device in devices:
        for part in device.partitions:
            name = _part(part)
            found[name] = found.get(name, 0) + part.count
    return found


def _part(part: Partition) -> str:
    return f"parts {part.resource}"


def _taking(filler: Filler, number: int, offered: OfferedType) -> _Taking:
    """What one pod of the shape takes of an empty node that holds it."""
    holding, shape, before = filler.holding, filler.shapes[number], offered.room.devices
    after = holding.cards.after(
        holding.start(holding.row(offered)), filler.recipe(number, offered).kind, shape, offered
    )
    assert after is not None
    devices, slices = holding.cards.devices(after[0]), after[1]
    pairs = [(b, a) for b, a in zip(before, devices, strict=True) if a.used_slots > b.used_slots]
    slots = sum(a.used_slots - b.used_slots for b, a in pairs)
    if any(device.partitions for device in before):
        return _of_parts(pairs, slots)
    pieces = _pieces(shape, before, slices)
    taken = (
        sum(a.used_memory_mib - b.used_memory_mib for b, a in pairs),
        sum(a.used_cores - b.used_cores for b, a in pairs),
    )
    sums = [(_SLOTS, slots)] if any(device.slots for device in before) else []
    # Where a slice is comes from one way to fill the node: two on one card can be on two cards as well. So a card
    # counts as one over half where a single slice makes it so, and only slices of one container last equally long.
    is_plain = len({part.container for part in slices}) == 1
    over = _over_half(before, slices) if is_plain else []
    if any(device.slots != 1 for device in before):
        if _are_alike(before):
            sums += [(_MEMORY, taken[0]), (_CORES, taken[1])]
        elif not any(device.profiles for device in before):
            sums += [(_MEMORY, sum(_least_memory(before, part) for part in slices if is_plain)), (_CORES, taken[1])]
        sums += [(_MEMORY_OVER_HALF, sum(m for m, _ in over)), (_CORES_OVER_HALF, sum(c for _, c in over))]
    sizes = [piece for piece in pieces if not isinstance(piece, str)]
    return _Taking(
        tuple((name, amount) for name, amount in sums if amount > 0),
        pieces,
        (*map(sum, zip(*sizes, strict=True)), len(sizes)) == (*taken, slots),
        # Pods that take several cards in part may leave gaps when they come alone, which others' order avoids.
        is_plain and (len(slices) == 1 or all(m or c for m, c in over)),
        slots,
    )


def _of_parts(pairs: Sequence[tuple[DeviceState, DeviceState]], slots: int) -> _Taking:
    """What it takes of cards that were cut beforehand: their parts by resource, whichever cards these are of.

    `pairs` are cards before and after. No sum over cards says more, and how many such pods a node holds is exact.
    """
    parts: dict[str, int] = {}
    for before, after in pairs:
        for old, new in zip(before.partitions, after.partitions, strict=True):
            parts[_part(old)] = parts.get(_part(old), 0) + new.used - old.used
    taken = tuple((name, amount) for name, amount in parts.items() if amount > 0)
    return _Taking(taken, (), is_whole=False, is_counted=True, slots=slots)


def _over_half(devices: Sequence[DeviceState], slices: Sequence[Slice]) -> list[tuple[bool, bool]]:
    """Of each slice whether it takes more than half of the memory, and of the cores, of any card."""
    memory_mib, cores = max(each.memory_mib for each in devices), max(each.cores for each in devices)
    if any(device.profiles for device in devices) and not _are_alike(devices):
        return [(False, False) for _ in slices]
    return [(2 * _least_memory(devices, part) > memory_mib, 2 * part.cores > cores) for part in slices]


def _least_memory(devices: Sequence[DeviceState], part: Slice) -> int:
    """MiB that the slice takes at least, whichever card it lies on: it may have asked for a percentage of one."""
    has = {device.index: device.memory_mib for device in devices}
    return part.memory_mib * min(has.values()) // max(1, has[part.device])


def _are_alike(devices: Sequence[DeviceState]) -> bool:
    return len({replace(device, id="", index=0, numa=0) for device in devices}) == 1


def _pieces(shape: Shape, devices: Sequence[DeviceState], slices: Sequence[Slice]) -> tuple[Piece | str, ...]:
    """What each slice takes of one card; none where only sums are kept.

    Init containers end before the others begin: of those that alone ask for cards, the one that asks most.
    """
    first = devices[0]
    if not _are_alike(devices) or first.partitions or (first.slots == 1 and not first.profiles):
        return ()
    initial = {container.name for container in shape.spec.init_containers}
    by_container: dict[str, list[Slice]] = {}
    for part in slices:
        by_container.setdefault(part.container, []).append(part)
    kept = [part for name, held in by_container.items() if name not in initial for part in held]
    if not kept:
        kept = max(by_container.values(), key=lambda held: sum(part.memory_mib for part in held))
    if first.profiles:
        named = [part.placement.profile for part in kept if part.placement is not None]
        return tuple(named) if len(named) == len(kept) else ()
    return tuple((part.memory_mib, part.cores) for part in kept)
