"""What a decision is made from: the cluster at one moment, the market, and what both together offer."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from kerf.engine.leaving import with_leaving
from kerf.engine.options import DEFAULT, Options
from kerf.engine.place.volumes import Volumes
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import Supply, supply
from kerf.engine.supply.warmstart import WarmStart
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod
from kerf.model.policies import IGNORE
from kerf.model.snapshot import ClusterSnapshot


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A snapshot and a market. Frozen, so a decision can be made from it in another thread, and explained later.

    `options` are how what is decided of it all is to be planned, in the place of nodes that go, too: unless they ignore
    preferences no pod is moved to where less of what it prefers holds.
    """

    snapshot: ClusterSnapshot
    market: Market
    options: Options = DEFAULT
    known: Holding | None = None
    """What another world has found of types most of which are also of this one; None where nothing is known."""
    kept: WarmStart | None = None
    """What the last decision has left to this one; None where nothing is to be kept of this one either."""
    replaces_spot: bool = False
    """Whether spot nodes may be replaced by spot nodes (Karpenter's gate SpotToSpotConsolidation)."""
    repairs_at_once: bool = False
    """Whether broken nodes go whatever budgets say, and before others come (Karpenter's rule up to 1.14)."""
    monitored: frozenset[tuple[str, str]] = frozenset()
    """Conditions of nodes by which they are repaired, each with its bad status; none where nodes are not repaired."""

    @property
    def ignores_preferences(self) -> bool:
        """Whether what pods prefer is left out."""
        return self.options.preferences == IGNORE

    @cached_property
    def supply(self) -> Supply:
        """Everything that could be bought."""
        return supply(self.snapshot, self.market)

    @cached_property
    def volumes(self) -> Volumes:
        """What the volumes of pods ask, as far as a decision has looked."""
        return Volumes(self.snapshot)

    @cached_property
    def holding(self) -> Holding:
        """What the types of the supply hold of pods, as far as a purchase has asked."""
        available = self.supply.available
        if self.kept is not None and self.known is None:
            return self.kept.holding(available)
        return Holding(available) if self.known is None else self.known.beside(available)

    def left(self) -> WarmStart | None:
        """What decisions that were made from it leave to the next; as it was kept where none has asked for a type."""
        asked: Holding | None = vars(self).get("holding")
        return self.kept if self.kept is None or asked is None else WarmStart.of(asked)

    def with_leaving(self) -> "World":
        """The same where pods of nodes that go wait already (`engine.leaving`); the very same where there are none."""
        snapshot = with_leaving(self.snapshot)
        return self if snapshot is self.snapshot else replace(self, snapshot=snapshot)

    def with_pending(self, pods: tuple[Pod, ...]) -> "World":
        """The same with these pods that wait, with what is known of the types."""
        return self.of(replace(self.snapshot, pending=pods))

    def with_pools(self, pools: Iterable[NodePool]) -> "World":
        """The same with these pools in the place of those of their names, with what is known of the types of others."""
        changed = {pool.name: pool for pool in pools}
        node_pools = tuple(changed.get(pool.name, pool) for pool in self.snapshot.node_pools)
        return self.of(replace(self.snapshot, node_pools=node_pools))

    def of(self, snapshot: ClusterSnapshot) -> "World":
        """Another snapshot on the same market, with what is known of the types."""
        return replace(self, snapshot=snapshot, known=vars(self).get("holding", self.known))
