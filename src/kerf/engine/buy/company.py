"""Nodes for pods that must share one: affinity that goes by `kubernetes.io/hostname`.

Such pods are bought for before all others: one node after the other, each with a pod that the others may be with, and
as many of those as it holds. Pods that may only be with each other get one node, because the scheduler puts no second
one of them anywhere else. What room is left there goes to other pods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.flexibility import asks
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.spreading import Colocated, Unassigned
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts, Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Name
from kerf.model.constraints import HOSTNAME
from kerf.model.plan import Stage
from kerf.model.topology import NoRoomBeside


@dataclass
class Shared:
    """The nodes, what is left of the shapes for others to buy for, and the pods that found no room beside others."""

    purchase: Purchase
    kept: list[Unassigned] = field(default_factory=list)


def shared_nodes(
    companies: Sequence[Colocated],
    shapes: Sequence[Shape],
    offered_types: Sequence[OfferedType],
    ledger: Ledger,
    holding: Holding,
) -> Shared:
    """Nodes for pods that must share them; charges `ledger`. Cost: nodes times types."""
    found = Shared(Purchase(left=[len(shape) for shape in shapes]))
    filler = Filler(shapes, holding, keeps_choice=any(map(asks, offered_types)))
    apart = {number for company in companies for number in (*company.seekers, *company.anchors)}
    for company in companies:
        while (load := _next(company, filler, offered_types, found.purchase.left, ledger)) is not None:
            first = np.array(load.counts)
            others = np.array([0 if n in apart else left for n, left in enumerate(found.purchase.left)])
            load = filler.fill_first(load.offered, first, others) or load
            found.purchase.loads.append((load, 1))
            ledger.charge(load.offered.pool.name, load.charge)
            for number, count in load.held:
                found.purchase.left[number] -= count
            if not company.anchors:
                break
        _keep(company, shapes, found)
    return found


def _next(
    company: Colocated, filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int], ledger: Ledger
) -> Load | None:
    """The node that holds most of the pods, then that of the heaviest pool, then a reserved one, then the cheapest."""
    first = np.zeros(len(left), dtype=np.int64)
    anchor = next((number for number in company.anchors if left[number]), None)
    if company.anchors and anchor is None:
        return None
    if anchor is not None:
        first[anchor] = 1
    seekers = np.zeros(len(left), dtype=np.int64)
    for number in company.seekers:
        seekers[number] = left[number]
    best: tuple[tuple[int, int, bool, int, str, str], Load] | None = None
    for offered in offered_types:
        load = filler.fill_first(offered, *((seekers, first) if anchor is None else (first, seekers)))
        if load is None or ledger.room_for(offered, load.charge) == 0:
            continue
        counts = load.counts
        held = sum(counts[number] for number in company.seekers)
        if held:
            price = load.offering.price_micro
            names = offered.pool.name, offered.kind.name
            key = (-held, -offered.pool.weight, not offered.reservation, price, *names)
            if best is None or key < best[0]:
                best = key, load
    return None if best is None else best[1]


def _keep(company: Colocated, shapes: Sequence[Shape], found: Shared) -> None:
    """Refuse the pods that are left: no other node may have them."""
    held = sum(len(shapes[n]) - found.purchase.left[n] for n in company.seekers)
    if not held:
        # No node at all can be bought for them: the search says why.
        return
    reach = next(r for k, r in zip(company.check.keys, company.check.tally.reaches, strict=True) if k == HOSTNAME)
    names = () if reach.namespace_selector is not None else tuple(map(Name, sorted(reach.namespaces)))
    for number in company.seekers:
        left, shape = found.purchase.left[number], shapes[number]
        if left:
            cause = NoRoomBeside(reach.selector, names, held)
            found.kept.append(Unassigned(shape.pods[len(shape) - left :], Stage.AFFINITY, cause))
            found.purchase.left[number] = 0


def rest(shapes: Sequence[Shape], bought: Purchase) -> tuple[tuple[int, ...], Amounts]:
    """Numbers of the shapes of which some pods are left to buy for, and how many the purchase took of each shape."""
    taken = np.zeros(len(shapes), dtype=np.int64)
    for load, times in bought.loads:
        for number, count in load.held:
            taken[number] += count * times
    return tuple(n for n, left in enumerate(bought.left) if left), taken
