"""`kerf gpus` on a terminal: each physical card as a bar, with a letter for each pod that holds a part of it."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kerf.cli.cards import Card, Holder
from kerf.cli.output.bars import lettered, parts_bar
from kerf.cli.output.screen import Screen
from kerf.cli.output.tables import Shown, styled, wrapped
from kerf.model.gpu import DeviceState
from kerf.model.printable import one_line

_WIDEST, _NARROWEST = 40, 12
_BESIDE = 42
"""Columns that the figures beside a bar take."""
_WHOLE_SLICES = 8


def pictures(cards: Sequence[tuple[str, Card]], screen: Screen) -> Iterator[Shown]:
    """The lines for cards, each with the pool of its node; cards of a node that stand together share a title.

    Cards of one model without a holder, one after the other, are one line.
    """
    width = _WIDEST if screen.width is None else max(_NARROWEST, min(_WIDEST, screen.width - _BESIDE))
    for number, ((node, pool), same) in enumerate(groupby(cards, lambda each: (each[1].node, each[0]))):
        held = [card for _, card in same]
        if number:
            yield Shown("")
        of_pool = f" ({one_line(pool)})" if pool else ""
        yield from _title(one_line(node), f"{of_pool}: {_models(held)}", screen)
        for is_idle, run in groupby(held, _idle_key):
            drawn = _held if is_idle is None else _idle
            yield from drawn(list(run), width, screen)


def _title(node: str, rest: str, screen: Screen) -> Iterator[Shown]:
    """A node with its pool and cards, on several lines where one is too narrow."""
    first, *more = wrapped(node + rest, screen.width or len(node + rest))
    yield Shown(styled(node, "bold", screen) + first[len(node) :] if first.startswith(node) else first)
    yield from (Shown(f"  {line}") for text in more for line in wrapped(text, max(1, (screen.width or 2) - 2)))


def _models(cards: Sequence[Card]) -> str:
    kinds: dict[str, int] = {}
    for card in cards:
        name = f"{one_line(card.device.model) or 'GPU'}{_size(card.device)}"
        kinds[name] = kinds.get(name, 0) + 1
    return ", ".join(f"{number} x {name}" for name, number in kinds.items())


def _size(device: DeviceState) -> str:
    return f", {device.memory_mib} MiB" if device.memory_mib else ""


def _idle_key(card: Card) -> tuple[str, int] | None:
    """What idle cards that share a line have in common; None for a card that is used, or not healthy."""
    device = card.device
    is_idle = not card.holders and device.is_idle and device.healthy and not device.cordoned
    return (device.model, device.memory_mib) if is_idle else None


def _idle(cards: Sequence[Card], width: int, screen: Screen) -> Iterator[Shown]:
    first, last = cards[0].device.index, cards[-1].device.index
    indexes = str(first) if first == last else f"{first}-{last}"
    yield Shown(f"  {indexes:<4}{parts_bar((), 1, width, screen)}  idle")


def _held(cards: Sequence[Card], width: int, screen: Screen) -> Iterator[Shown]:
    for card in cards:
        device = card.device
        parts = [(number, _share(each, device)) for number, each in enumerate(card.holders)]
        yield Shown(f"  {device.index:<4}{parts_bar(parts, 1, width, screen)}  {_figures(device, screen)}")
        if device.placements:
            yield Shown(f"      {_instances(device)}")
        names = [one_line(each.pod) for each in card.holders]
        widest = max(map(len, names), default=0)
        for number, (name, each) in enumerate(zip(names, card.holders, strict=True)):
            text = f"{name:<{widest}}  {_part(each)}"
            room = max(1, (screen.width or 10_000) - 8)
            first, *more = wrapped(text, room)
            yield Shown(f"      {lettered(number, screen)} {first}")
            yield from (Shown(f"        {line.strip()}") for line in more if line.strip())


def _share(holder: Holder, device: DeviceState) -> float:
    """The part of the card that the holder takes from others: of its memory where it has some, else cores or slots."""
    if device.memory_mib and holder.memory_mib:
        return holder.memory_mib / device.memory_mib
    if holder.cores and device.cores:
        return holder.cores / device.cores
    return holder.slots / device.slots if device.slots else 0.0


def _figures(device: DeviceState, screen: Screen) -> str:
    parts = []
    if device.memory_mib:
        parts.append(f"{device.used_memory_mib} of {device.memory_mib} MiB")
    parts.append(f"cores {device.used_cores}/{device.cores}")
    if not device.healthy:
        parts.append(styled("not healthy", "bold red", screen))
    elif device.cordoned:
        parts.append(styled("cordoned", "yellow", screen))
    return "  ".join(parts)


def _instances(device: DeviceState) -> str:
    """MIG instances where they stand, a slice of memory being three columns: `MIG [2g  ]·  ·  [3g        ]`."""
    ends = [start + profile.size for profile in device.profiles for start in profile.starts]
    slices = max([_WHOLE_SLICES, *ends, *(each.start + each.size for each in device.placements)])
    drawn = ["·  "] * slices
    for each in sorted(device.placements, key=lambda placed: placed.start):
        room = each.size * 3 - 2
        text = f"[{each.profile.partition('.')[0][:room]:<{room}}]"
        for number, index in enumerate(each.slices):
            drawn[index] = text[number * 3 : number * 3 + 3]
    return "MIG " + "".join(drawn).rstrip()


def _part(holder: Holder) -> str:
    parts = [f"{holder.memory_mib} MiB"] if holder.memory_mib else []
    parts += [f"{holder.cores} cores"] if holder.cores else []
    parts = parts or [f"{holder.slots} slots" if holder.slots != 1 else "1 slot"]
    return ", ".join(parts if holder.is_bound else [*parts, "booked, not bound"])
