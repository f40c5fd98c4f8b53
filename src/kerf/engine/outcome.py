"""What comes of one try to place pods and to buy nodes for the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter

from kerf.engine.admitting import NotAdmitted
from kerf.engine.buy.filling import Purchase
from kerf.engine.buy.firstfit import first_fit
from kerf.engine.buy.following import Bought
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.packing import BRIEF, QUICK, Effort, cheapest_nodes
from kerf.engine.decision import Buy, Evidence, Refusal
from kerf.engine.headroom.windows.admission import Judged
from kerf.engine.options import DEFAULT, Options
from kerf.engine.place.preferences import Forms
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial
from kerf.engine.placing import Places
from kerf.engine.world import World
from kerf.model.causes import Cause, NotBought
from kerf.model.gpu import DeviceState
from kerf.model.plan import Launch, Repartition
from kerf.model.policies import COST
from kerf.model.preferences import Preference

_KEY = attrgetter("key")
_LOOKS_OF_A_SHAPE, _NODES_OF_A_LOOK, _TYPES_OF_A_LOOK, _CELLS_OF_A_LOOK = 4, 5, 8, 32
"""Looks at a pod in the time that a shape costs beside its pods; nodes that are made ready, types that are asked, and
cells that are asked for one pod, in the time of one."""


@dataclass
class Outcome:
    """`trial` and `ledger` are as they stand after the try, `before` is the ledger before it.

    `promised` are the cards of nodes before any pod was placed. `planned_for` are the shapes that were tried, and
    `turned_away` what was refused before; `refusals` are all. `dropped` are preferences, by key of the pod that has or
    seeks its place without them; `forms` are all that there are.
    """

    world: World
    trial: Trial
    waiting: Judged
    ledger: Ledger
    places: Places
    promised: Mapping[str, tuple[DeviceState, ...]]
    quotas: NotAdmitted = field(default_factory=NotAdmitted)
    options: Options = DEFAULT
    planned_for: tuple[Shape, ...] = ()
    turned_away: tuple[Refusal, ...] = ()
    relabels: tuple[Repartition, ...] = ()
    launches: tuple[Launch, ...] = ()
    bought: tuple[Bought, ...] = ()
    notes: tuple[Cause, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    forms: Forms = field(default_factory=Forms)
    dropped: dict[str, tuple[Preference, ...]] = field(default_factory=dict)
    looks: int = 0
    """How often a cell was asked for a pod that goes by others."""
    before: Ledger = field(init=False)
    _bought_for: set[str] = field(init=False, default_factory=set)
    _counted: int = field(init=False, default=0)
    """Of how many nodes that are bought the pods are among these."""

    def __post_init__(self) -> None:
        self.before = self.ledger.copy()

    @cached_property
    def buy(self) -> Buy:
        """How nodes are chosen."""
        return _buyer(self.world, self.options)

    @cached_property
    def buy_briefly(self) -> Buy:
        """The same with little work: what one attempt among several would get."""
        return _buyer(self.world, self.options, BRIEF)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key, the best first: pods that are left, price of what is bought, nodes."""
        unserved = sum(len(each.pods) for each in self.refusals)
        return unserved, sum(node.load.offering.price_micro for node in self.bought), len(self.bought)

    @property
    def work(self) -> int:
        """What the try cost, in looks at a pod: pods that wait, nodes, and shapes, each of which is asked of all types
        that are sold; and cells that were asked for pods that go by others. The same on every machine."""
        nodes = len(self.world.snapshot.nodes) // _NODES_OF_A_LOOK
        types = len(self.world.supply.available) // _TYPES_OF_A_LOOK
        asked = (_LOOKS_OF_A_SHAPE + types) * len(self.planned_for)
        return len(self.waiting.pods) + nodes + asked + self.looks // _CELLS_OF_A_LOOK

    @property
    def are_preferring(self) -> bool:
        """Whether some pods had preferences that were heeded."""
        return any(len(self.forms.of(shape.spec)) > 1 for shape in self.planned_for)

    @property
    def is_short(self) -> bool:
        """Whether pods have no place for which one was sought."""
        return len(self.refusals) > len(self.turned_away)

    def holds(self, key: str) -> bool:
        """Whether the pod has a place."""
        return key in self.places.found or key in self.bought_for

    @property
    def bought_for(self) -> set[str]:
        """The keys of the pods that nodes are bought for; most plans are not asked for them."""
        for node in self.bought[self._counted :]:
            self._bought_for.update(map(_KEY, node.pods))
        self._counted = len(self.bought)
        return self._bought_for

    @bought_for.setter
    def bought_for(self, keys: set[str]) -> None:
        self._bought_for, self._counted = keys, len(self.bought)

    def left_over(self, shapes: tuple[Shape, ...], purchase: Purchase, trial: Trial, ledger: Ledger) -> list[Refusal]:
        """One refusal for each shape of which a purchase left pods over, with `trial` and `ledger` as evidence."""
        if not any(purchase.left):
            return []
        copies = trial.copy(), self.before.copy(), ledger.copy()
        buy = _buyer(self.world, replace(self.options, quick=False))
        known = Evidence(self.world, *copies, shapes, tuple(purchase.left), buy)
        return [
            Refusal(shape.pods[len(shape) - left :], None, NotBought(), evidence=known)
            for shape, left in zip(shapes, purchase.left, strict=True)
            if left
        ]


def _buyer(world: World, options: Options, effort: Effort | None = None) -> Buy:
    if options.strategy != COST:
        return partial(first_fit, relaxes=options.relaxes)
    if effort is None or options.quick:
        effort = QUICK if options.quick else Effort(options.rounds)
    return partial(cheapest_nodes, holding=world.holding, relaxes=options.relaxes, effort=effort)
