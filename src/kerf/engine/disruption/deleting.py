"""The plan that takes nodes away and does nothing else."""

from kerf.engine.pricing import cards_in_use, cluster_price
from kerf.model.market import Market
from kerf.model.plan import Cost, Deletion, GpuUse, Plan
from kerf.model.snapshot import ClusterSnapshot


def deleting(snapshot: ClusterSnapshot, market: Market, deletions: tuple[Deletion, ...]) -> Plan:
    """What the cluster costs and which cards it has without these nodes. Cost: linear in nodes."""
    before = cluster_price(snapshot, market)
    paid, allocated = cards_in_use(snapshot, ())
    gone = {deletion.node for deletion in deletions}
    cards = sum(len(node.devices) for node in snapshot.nodes if node.name in gone)
    cost = Cost(market.currency, before, before - sum(d.saved_micro for d in deletions))
    return Plan("cost", cost, GpuUse(paid - cards, allocated), deletions=deletions)
