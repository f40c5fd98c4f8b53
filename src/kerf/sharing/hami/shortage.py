"""What exactly is lacking where HAMi says only `1/1 CardInsufficientMemory`.

HAMi's reason counts cards; a user who must change a manifest needs the figure: how many MiB more one card would have to
have free. It is the smallest over the cards, never a sum, since a slice lives on one card.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from kerf.model.causes import Cause, Lack, Name
from kerf.model.gpu import DeviceState
from kerf.sharing.family import NoFit
from kerf.sharing.hami.fit import (
    CORDONED,
    CORES_EXHAUSTED,
    EXCLUSIVE,
    NO_CORES,
    NO_MEMORY,
    NO_MIG_PLACE,
    NO_SLOT,
    NOT_HEALTHY,
    OVER_QUOTA,
    TOO_FEW,
    VENDOR,
    WRONG_ID,
    WRONG_TYPE,
    Shortage,
)
from kerf.sharing.hami.options import MIG_MODE, HamiOptions
from kerf.sharing.nvidia.mig_geometry import ProfileStarts, free_starts

_IN_USE = (EXCLUSIVE, CORES_EXHAUSTED, NO_SLOT)
"""What one more GPU would help against, the most telling first."""
_OUT_OF_REACH = (OVER_QUOTA, CORDONED, NOT_HEALTHY)
"""What no quantity helps against, the most telling first."""


@dataclass(frozen=True, slots=True)
class NoCardTakes(Cause):
    """HAMi's scheduler takes no card of the node; `codes` are its own, sorted. By itself: no more is known."""

    codes: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class TooFewCards(NoCardTakes):
    """The container asks for more GPUs than the node has."""

    wanted: int
    there: int


@dataclass(frozen=True, slots=True)
class MemoryShort(NoCardTakes):
    """No card has that much memory free, on each of so many GPUs.

    `free_starts` is what a card in MIG mode still holds, here as below: None on a node that has none.
    """

    need_mib: int
    gpus: int
    largest_free_mib: int
    free_starts: tuple[ProfileStarts, ...] | None = None


@dataclass(frozen=True, slots=True)
class CoresShort(NoCardTakes):
    """No card has so many percent of its cores free, on each of so many GPUs."""

    need: int
    gpus: int
    most_free: int
    free_starts: tuple[ProfileStarts, ...] | None = None


@dataclass(frozen=True, slots=True)
class CardsOut(NoCardTakes):
    """Every card that would do is out for the reason that HAMi calls `code`."""

    code: Name
    free_starts: tuple[ProfileStarts, ...] | None = None


class CardRule(Enum):
    """What a pod's annotations may ask of a card."""

    USE_TYPES = "use-gputype"
    AVOID_TYPES = "nouse-gputype"
    MODE = "vgpu-mode"


@dataclass(frozen=True, slots=True)
class WrongCards(NoCardTakes):
    """No card is as the pod's annotation asks: `asked` are its entries, `here` the types or modes that are there."""

    rule: CardRule
    asked: tuple[Name, ...]
    here: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class CardsNotNamed(NoCardTakes):
    """The pod names GPUs by UUID which are not here; with none `asked`, it excludes each that is."""

    asked: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class ProfilesTooSmall(NoCardTakes):
    """No MIG profile of the card has that much memory."""

    need_mib: int
    largest_mib: int


@dataclass(frozen=True, slots=True)
class NoFreeStart(NoCardTakes):
    """Of the MIG profiles with that much memory none has a start that is free; `free_starts` is what is left."""

    need_mib: int
    profiles: tuple[ProfileStarts, ...]
    free_starts: tuple[ProfileStarts, ...]


def unfit(shortage: Shortage, options: HamiOptions) -> NoFit:
    """HAMi's refusal, with the smallest quantity that is lacking on any one card."""
    codes, request = shortage.codes, shortage.request
    if TOO_FEW in codes:
        there = sum(VENDOR in device.model.upper() for device in shortage.devices)
        more = request.count - there
        return NoFit(TooFewCards(codes, request.count, there), (Lack(more, Name("GPU")),), more)
    nearest = min(_lacks(shortage), default=None)
    if nearest is None:
        return NoFit(_unmendable(shortage, options))
    _, amount, of, _, code = nearest
    return NoFit(_short(shortage, code, nearest[3]), (Lack(amount, of),), amount)


def _lacks(shortage: Shortage) -> Iterable[tuple[int, int, Name, int, Name]]:
    """For each card that a quantity would help: the lack in 1/10000 of the need, the lack, its unit; need and code.

    Of a card that is in use the need is a whole one, and the code's rank stands in its place.
    """
    for position, code in shortage.refusals:
        card = shortage.devices[position]
        if code == NO_MEMORY:
            need = shortage.request.memory_on(card)
            lack = need - card.free_memory_mib
            yield lack * 10_000 // max(1, need), lack, Name("MiB"), need, code
        elif code == NO_CORES:
            need = min(shortage.request.cores, 100)
            lack = need - card.free_cores
            yield lack * 10_000 // max(1, need), lack, Name("cores"), need, code
        elif code in _IN_USE:
            yield 10_000, 1, Name("GPU"), _IN_USE.index(code), code


def _short(shortage: Shortage, code: Name, need: int) -> Cause:
    codes, gpus = shortage.codes, shortage.request.count
    cut = next((card for card in shortage.devices if card.mode == MIG_MODE), None)
    free = None if cut is None else _free(cut)
    refused = [shortage.devices[position] for position, given in shortage.refusals if given == code]
    if code == NO_MEMORY:
        return MemoryShort(codes, need, gpus, max(card.free_memory_mib for card in refused), free)
    if code == NO_CORES:
        return CoresShort(codes, need, gpus, max(card.free_cores for card in refused), free)
    return CardsOut(codes, code, free)


def _unmendable(shortage: Shortage, options: HamiOptions) -> Cause:
    """Why no quantity would help."""
    codes, given = shortage.codes, {code for _, code in shortage.refusals}
    if WRONG_TYPE in given:
        return _wrong_cards(shortage, options)
    if NO_MIG_PLACE in given:
        return _no_instance(shortage)
    if WRONG_ID in given:
        return CardsNotNamed(codes, tuple(map(Name, options.use_ids or ())))
    code = next((code for code in _OUT_OF_REACH if code in given), None)
    return NoCardTakes(codes) if code is None else CardsOut(codes, code)


def _no_instance(shortage: Shortage) -> Cause:
    """The profiles that would do with their starts, none of which is free, and what still is on that card."""
    position = next(position for position, code in shortage.refusals if code == NO_MIG_PLACE)
    card = shortage.devices[position]
    need = shortage.request.memory_on(card)
    large = [p for p in card.profiles if p.memory_mib >= need]
    if not large:
        most = max((p.memory_mib for p in card.profiles), default=0)
        return ProfilesTooSmall(shortage.codes, need, most)
    fitting = tuple(ProfileStarts(Name(p.name), tuple(sorted(p.starts))) for p in large)
    return NoFreeStart(shortage.codes, need, fitting, _free(card))


def _free(card: DeviceState) -> tuple[ProfileStarts, ...]:
    free = free_starts(card.profiles, card.placements)
    return tuple(ProfileStarts(Name(name), starts) for name, starts in free.items())


def _wrong_cards(shortage: Shortage, options: HamiOptions) -> Cause:
    types = sorted({device.model for device in shortage.devices})
    if options.use_types is not None:
        rule, asked, here = CardRule.USE_TYPES, options.use_types, types
    elif options.mode is not None:
        rule, asked = CardRule.MODE, (options.mode,) if options.mode else ()
        here = sorted({device.mode for device in shortage.devices})
    else:
        rule, asked, here = CardRule.AVOID_TYPES, options.avoid_types or (), types
    return WrongCards(shortage.codes, rule, tuple(map(Name, asked)), tuple(map(Name, here)))
