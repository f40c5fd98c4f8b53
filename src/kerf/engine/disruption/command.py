"""Command: nodes to take away, and nodes to buy in their place first; what each method proposes."""

from dataclasses import dataclass, field, replace

from kerf.engine.disruption.exchanges import with_exchanges
from kerf.engine.supply.pricing import cards_bought, cards_in_use, cards_of, cluster_price
from kerf.engine.world import World
from kerf.model.plan import Cost, Deletion, GpuUse, Launch


@dataclass(frozen=True)
class Command:
    """What one method does at once, without its words. `cost` and `gpus` are those of the cluster after it.

    A node whose deletion names launches goes once these are up, and stays where one of them fails.
    """

    cost: Cost
    gpus: GpuUse = field(default_factory=GpuUse)
    deletions: tuple[Deletion, ...] = ()
    launches: tuple[Launch, ...] = ()


def deleting(world: World, deletions: tuple[Deletion, ...]) -> Command:
    """Take these nodes away: what the cluster costs and which cards it has without them. Cost: linear in nodes."""
    named, _ = with_exchanges(world, deletions, ())
    return _deleting(world, named)


def _deleting(world: World, deletions: tuple[Deletion, ...]) -> Command:
    before = cluster_price(world.snapshot.nodes, world.supply)
    paid, allocated = cards_in_use(world.snapshot, world.market)
    gone = {deletion.node for deletion in deletions}
    cards = cards_of((node for node in world.snapshot.nodes if node.name in gone), world.market)
    cost = Cost(world.market.currency, before, before - sum(d.saved_micro for d in deletions))
    return Command(cost, GpuUse(paid - cards, allocated), deletions)


def replacing(world: World, deletions: tuple[Deletion, ...], launches: tuple[Launch, ...]) -> Command:
    """The same, with nodes that are bought first. Cost: linear in nodes."""
    deletions, launches = with_exchanges(world, deletions, launches)
    gone = _deleting(world, deletions)
    cost = replace(gone.cost, after_micro=gone.cost.after_micro + sum(launch.price_micro for launch in launches))
    return Command(cost, replace(gone.gpus, paid=gone.gpus.paid + cards_bought(launches)), deletions, launches)
