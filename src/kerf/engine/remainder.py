"""What a try has left, for groups that come after it one by one: nodes there are, nodes it bought, limits."""

from collections.abc import Sequence

import numpy as np

from kerf.engine.buy.filling import Purchase
from kerf.engine.decision import Refusal
from kerf.engine.outcome import Outcome
from kerf.engine.place.fit import fit
from kerf.engine.place.shapes import Readings, Shape, group
from kerf.engine.place.target import Room
from kerf.engine.placing import find_places, unbought
from kerf.engine.supply.offered import OfferedType
from kerf.model.plan import Misfit
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY

_MOST_TYPES = 20
"""Types of one pool that are tried for a shape, the cheapest a pod: a dearer one would only be chosen beside others."""


class Remainder:
    """Takes pods all or none. `everyone` is the try with the pods of all groups: it knows which may be planned for."""

    def __init__(self, made: Outcome, everyone: Outcome) -> None:
        self._made, self._everyone = made, everyone
        self._trial, self._ledger = made.trial.copy(), made.ledger.copy()
        self._new = [(node.load.offered, node.load.room) for node in made.bought]
        self._usable = {pod.key: pod for shape in everyone.planned_for for pod in shape.pods}
        self._takers: dict[int, tuple[OfferedType, ...]] = {}
        self._readings = Readings.of(made.world.snapshot)
        self._requests = {each.key for each in made.world.snapshot.provisioning_requests}

    def after(self, made: Outcome) -> "Remainder":
        """What another try has left."""
        other = Remainder(made, self._everyone)
        other._takers = self._takers
        return other

    def take(self, pods: Sequence[Pod], needed: int) -> tuple[int, Refusal | None]:
        """Give the pods places that they keep where at least `needed` find one; none where fewer do.

        How many found one, and what stopped the first of the others where it was too few. Pods that go by other pods
        find places on nodes that are there, and none on nodes to be bought: in which domains these are and who is on
        them is decided for all pods at once, so a whole try answers for them. Pods that only others go by find them
        everywhere; what that breaks, the whole try at the end shows. Cost: one look at each node that has cpu and
        memory enough for a shape, and at its twenty cheapest types.
        """
        mark, ledger, new = self._trial.mark(), self._ledger.copy(), list(self._new)
        known = (self._usable[pod.key] for pod in pods if pod.key in self._usable)
        shapes = group(known, self._readings)
        places = find_places(self._trial, shapes, {})
        tied = tuple(shape for shape in places.left if self._trial.ledger.concerns(shape))
        left = self._on_new_nodes([shape for shape in places.left if shape not in tied])
        purchase = self._buy(left)
        purchase.left += map(len, tied)
        left += tied
        placed = sum(map(len, shapes)) - sum(purchase.left) - sum(map(len, places.unbought))
        if placed >= needed:
            return placed, None
        first = self._first(
            pods,
            (
                *unbought(self._trial, places.unbought, self._requests),
                *self._made.left_over(left, purchase, self._trial, self._ledger),
            ),
        )
        self._trial.undo_to(mark)
        self._ledger, self._new = ledger, new
        return placed, first

    def _on_new_nodes(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Pods on nodes that were bought for others; the shapes of those that are left."""
        left: list[Shape] = []
        for shape in shapes:
            waiting = list(shape.pods)
            for number, (offered, room) in enumerate(self._new):
                while waiting and (after := _added(offered, room, shape)) is not None:
                    waiting.pop(0)
                    room = after
                self._new[number] = offered, room
            if waiting:
                left.append(Shape(tuple(waiting)))
        return tuple(left)

    def _buy(self, shapes: Sequence[Shape]) -> Purchase:
        takers = dict.fromkeys(offered for shape in shapes for offered in self._takers_of(shape))
        allowed = [offered for offered in takers if self._ledger.room_for(offered) != 0]
        purchase = self._made.buy(shapes, sorted(allowed, key=lambda c: c.order), self._ledger)
        self._new += [(load.offered, load.room) for load, times in purchase.loads for _ in range(times)]
        return purchase

    def _takers_of(self, shape: Shape) -> tuple[OfferedType, ...]:
        """The types that hold a pod of the shape: of each pool the cheapest a pod."""
        key = id(shape.spec)
        if key not in self._takers:
            holding, available = self._made.world.holding, self._made.world.supply.available
            held = holding.alone(shape, holding.kind(shape))[holding.rows(available)]
            found = np.flatnonzero(held)
            prices = np.array([available[at].price_micro for at in found.tolist()], dtype=np.int64)
            # What is available stands in order of price, pool and type, so equal prices a pod do, too.
            cheapest = found[np.argsort(prices // held[found], kind="stable")]
            by_pool: dict[str, list[OfferedType]] = {available[at].pool.name: [] for at in found.tolist()}
            for at in cheapest.tolist():
                by_pool[available[at].pool.name].append(available[at])
            self._takers[key] = tuple(offered for each in by_pool.values() for offered in each[:_MOST_TYPES])
        return self._takers[key]

    def _first(self, pods: Sequence[Pod], refusals: Sequence[Refusal]) -> Refusal | None:
        """What stopped the first of the pods."""
        refused = {pod.key: each for each in (*self._everyone.turned_away, *refusals) for pod in each.pods}
        return next((refused[pod.key] for pod in pods if pod.key in refused), None)


def _added(offered: OfferedType, room: Room, shape: Shape) -> Room | None:
    """The room with one pod more; None where it does not fit, or the node could not be bought for it any more."""
    asked = shape.requests
    if any(asked.get(name, 0) > max(0, room.free.get(name, 0)) for name in (CPU, MEMORY)):
        return None
    result = fit(offered.target, room, shape)
    if isinstance(result, Misfit) or offered.offering_for(result.room.requirements) is None:
        return None
    return result.room
