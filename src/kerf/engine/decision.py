"""Decision: what to do and what is refused, as values without a sentence.

A refusal carries its evidence as it stood when the pods were refused, so an explanation that is made later, or in
another thread, shows the figures that the decision was made from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from kerf.engine.buy.filling import Purchase
from kerf.engine.buy.following import Bought
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.packing import BRIEF, QUICK, Effort
from kerf.engine.options import Options
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial
from kerf.engine.supply.holding import Amounts
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model.causes import Cause, FloorUnmet, NoIdleCapacity, Paced
from kerf.model.large import Large
from kerf.model.market import TriedAlone
from kerf.model.plan import Admission, Cost, Eviction, GpuUse, Launch, Misfit, NodePlacement, Repartition, Stage
from kerf.model.pods import Pod
from kerf.model.preferences import Preference

Buy = Callable[[Sequence[Shape], Sequence[OfferedType], Ledger], Purchase]
"""How nodes are chosen: the cheapest, or as Karpenter does."""


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """What a purchase knew when it left pods over; copies, which nothing changes.

    `before` and `after` are the limits without and with what was bought, `left` how many pods of each of `shapes` got
    no node.
    """

    world: World
    trial: Trial
    before: Ledger
    after: Ledger
    shapes: tuple[Shape, ...]
    left: tuple[int, ...]
    buy: Buy

    def buy_in(self, world: World) -> Buy:
        """The same way of choosing in another world, which remembers what its own types hold."""
        if not isinstance(self.buy, partial) or "holding" not in self.buy.keywords:
            return self.buy
        return partial(self.buy.func, **{**self.buy.keywords, "holding": world.holding})

    @property
    def buy_quickly(self) -> Buy:
        """The same with little work, where it is only asked whether all get nodes: a yes holds, a no may not."""
        return self._buy_with(QUICK)

    @property
    def buy_briefly(self) -> Buy:
        """The same with less work, where it is asked how many get nodes."""
        return self._buy_with(BRIEF)

    def _buy_with(self, effort: Effort) -> Buy:
        if not isinstance(self.buy, partial) or "effort" not in self.buy.keywords:
            return self.buy
        return partial(self.buy.func, **{**self.buy.keywords, "effort": effort})

    @property
    def relaxes(self) -> bool:
        """Whether minValues may be relaxed."""
        return isinstance(self.buy, partial) and bool(self.buy.keywords.get("relaxes"))

    @cached_property
    def shares_limits(self) -> bool:
        """Whether some pool has a limit, and some shapes go by other pods: these are bought for in their turn."""
        if all(pool.limits is None for pool in self.world.snapshot.node_pools):
            return False
        return any(self.trial.ledger.concerns(Shape(shape.pods)) for shape in self.shapes)

    @cached_property
    def limited(self) -> Amounts:
        """Rows, in the world's `holding`, of the types that a limit allows no more of."""
        exceeded = (each for each in self.world.supply.available if self.after.exceeded_by(each))
        return self.world.holding.rows(exceeded)


@dataclass(frozen=True, eq=False)
class Refusal:
    """Pods that no action of the decision serves, and why.

    `stage` None: that of the nearest miss, which `evidence` shows. `first` is what the first pod of a group that gets
    nothing was refused for, None where no pod was refused.
    """

    pods: tuple[Pod, ...]
    stage: Stage | None
    cause: Cause
    misfits: tuple[Misfit, ...] = ()
    evidence: Evidence | None = None
    first: "Refusal | None" = None
    change: Mapping[str, object] | None = None

    @property
    def innermost(self) -> "Refusal":
        """Of a group's refusal that of its first pod; itself for every other."""
        return self.first if self.first is not None else self


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Large):
    """What to do. Every pending pod is in exactly one of launches, placements, refusals.

    The pods of a relabelled node are among the placements. `bought` are the loads of the launches for pods, which come
    first, in their order. `unmet_floors` are pools that keep fewer nodes than they should. `everyone` is what was
    refused before any group was left out; empty where none was. `notes` say what an operator should know beside it.
    `dropped` are preferences that pods have their places without, by their keys. `work` is what all its tries cost, in
    looks at a pod (`Outcome.work`). `kept` is what the next decision may begin with, None where the world has none.
    """

    world: World
    options: Options
    cost: Cost
    gpus: GpuUse = field(default_factory=GpuUse)
    launches: tuple[Launch, ...] = ()
    bought: tuple[Bought, ...] = ()
    placements: tuple[NodePlacement, ...] = ()
    relabels: tuple[Repartition, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    admissions: tuple[Admission, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    unmet_floors: tuple[FloorUnmet | Paced | TriedAlone, ...] = ()
    everyone: tuple[Refusal, ...] = ()
    pending: tuple[Pod, ...] = ()
    notes: tuple[Cause, ...] = ()
    dropped: Mapping[str, tuple[Preference, ...]] = field(default_factory=dict)
    work: int = 0
    kept: WarmStart | None = None

    @property
    def is_paced(self) -> bool:
        """Whether anything waits for time alone."""
        causes = (*(each.innermost.cause for each in self.refusals), *self.unmet_floors)
        return any(isinstance(cause, Paced) for cause in causes)

    @property
    def seeks_room(self) -> bool:
        """Whether an opportunistic pod waits for others to leave."""
        return any(isinstance(each.cause, NoIdleCapacity) for each in self.refusals)

    @cached_property
    def left(self) -> frozenset[str]:
        """The keys of the pods that get no place, but of those that only wait for their pool's next launches."""
        refusals = (each for each in self.refusals if not isinstance(each.innermost.cause, Paced))
        return frozenset([pod.key for refusal in refusals for pod in refusal.pods])

    @property
    def unserved(self) -> int:
        """How many pods get no place."""
        return sum(len(each.pods) for each in self.refusals)
