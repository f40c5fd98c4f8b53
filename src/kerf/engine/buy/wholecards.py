"""Types once for each number of their cards that pods with several whole cards take.

A bound that buys nodes in parts mixes what no node can: pods that take all eight cards and little cpu, with slices that
need much of it. On a real node the first leave no card for the second, and their cpu is lost. So a node whose pods with
several whole cards take four of eight is one kind of node, with four cards left for all others, and one where they take
all is another. Every node is of exactly one kind, hence pods still cost no less.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kerf.engine.buy.relaxation import SUMS_OF_CARDS, Relaxation, TypeGroup
from kerf.engine.supply.holding import Amounts, Bools

WHOLE_CARDS = "whole cards"
"""The resource of such pods: of a node as many as they take there."""


def by_whole_cards(relaxation: Relaxation) -> Relaxation:
    """The same with a type for each number of cards that pods may take so, in the order of types and numbers.

    The relaxation itself where no pod takes several cards whole. Cost: shapes times the types that are made.
    """
    if not any(group.whole_cards.any() for group in relaxation.groups):
        return relaxation
    of_cards = np.array([name in SUMS_OF_CARDS for name in relaxation.resources], dtype=np.bool_)
    kinds = [(at, taken) for at in range(len(relaxation.types)) for taken in _numbers(relaxation, at)]
    source: Amounts = np.array([at for at, _ in kinds], dtype=np.int64)
    taken: Amounts = np.array([number for _, number in kinds], dtype=np.int64)
    cards = relaxation.cards[source]
    left = cards - taken
    amounts = relaxation.amounts[source]
    # Cards are alike wherever some are taken, so their sums are the same multiple of each.
    some = taken > 0
    amounts[np.ix_(some, of_cards)] = amounts[np.ix_(some, of_cards)] // cards[some, None] * left[some, None]
    takes = relaxation.takes[:, source]
    for column, (at, number) in enumerate(kinds):
        group = relaxation.groups[int(relaxation.group[at])]
        takes[:, column] &= group.whole_cards <= number
        if not left[column]:
            takes[:, column] &= (group.whole_cards > 0) | ~_asks_cards(group, of_cards)
    return Relaxation(
        relaxation.demand,
        (*relaxation.resources, WHOLE_CARDS),
        tuple(_apart(group, of_cards) for group in relaxation.groups),
        tuple(relaxation.types[at] for at in source.tolist()),
        relaxation.group[source],
        np.column_stack([amounts, taken]),
        left,
        tuple(relaxation.price_micro[at] for at in source.tolist()),
        np.ascontiguousarray(takes),
    )


def whole_cards_of(relaxation: Relaxation, number: int) -> int | None:
    """How many cards such pods take on nodes of the type; None where that makes no difference to any pod there."""
    if relaxation.resources[-1:] != (WHOLE_CARDS,):
        return None
    group = relaxation.groups[int(relaxation.group[number])]
    return int(relaxation.amounts[number, -1]) if group.whole_cards.any() else None


def _numbers(relaxation: Relaxation, at: int) -> Iterator[int]:
    """How many cards of a node pods may take so together, none first."""
    asked = relaxation.groups[int(relaxation.group[at])].whole_cards
    each = sorted(set(asked[(asked > 0) & relaxation.takes[:, at]].tolist()))
    can = np.zeros(int(relaxation.cards[at]) + 1, dtype=np.bool_)
    can[0] = True
    for number in range(1, len(can)):
        can[number] = any(can[number - count] for count in each if count <= number)
    yield from np.flatnonzero(can).tolist()


def _asks_cards(group: TypeGroup, of_cards: Bools) -> Bools:
    found: Bools = np.logical_or(group.slices.any(axis=1), group.asked[:, of_cards].any(axis=1))
    return found


def _apart(group: TypeGroup, of_cards: Bools) -> TypeGroup:
    """The group where such pods ask for whole cards, and for nothing else of cards."""
    asked, slices = group.asked.copy(), group.slices.copy()
    several = group.whole_cards > 0
    asked[np.ix_(several, of_cards)] = 0
    slices[several] = 0
    return replace(group, asked=np.column_stack([asked, group.whole_cards]), slices=slices)
