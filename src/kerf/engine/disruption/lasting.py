"""Prices by which moves are judged: those that last.

A price that goes to and fro is answered too late each time: the move is paid for, and the price is back. So a price
that has changed counts once what is saved by it has come to what a move costs. Each further change within a day makes
that four times as long, and until then the offering counts for what it has cost on average: a node that stays for a day
costs that. A node that goes is judged by the less of this and its present price, and one that is bought by the more.
"""

from kerf.engine.supply.pricing import bought_as, present_price
from kerf.engine.world import World
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import REMEMBERED_S, PriceHistory
from kerf.model.plan import Launch
from kerf.model.snapshot import ClusterNode

_PAID_S = 900
"""A move has paid for itself once the price of the more expensive node for so long is saved. A new node is paid for
some minutes before it has pods, and these start once more; what is lost by waiting is no more than this again."""
_AGAIN = 4
"""So many times as long after each further change."""


def node_price(node: ClusterNode, world: World) -> int:
    """What an hour of a node that may go counts for, in micro-units: no more than it costs now."""
    price = present_price(node, world.supply)
    return min(price, _lasting(bought_as(node), price, world)) if world.market.price_histories else price


def launch_price(launch: Launch, world: World) -> int:
    """What an hour of a node to buy counts for, in micro-units: no less than it costs now."""
    price = launch.price_micro
    return max(price, _lasting(launch.offering, price, world)) if world.market.price_histories else price


def _lasting(offering: OfferingKey, price_micro: int, world: World) -> int:
    """`price_micro` is what it costs in its pool: NodeOverlays change it by as much as the price that lasts."""
    history = world.market.price_history_of.get(offering)
    if history is None or not history.price_micro:
        return price_micro
    return price_micro * _counted(history, world.snapshot.taken_at_s) // history.price_micro


def _counted(history: PriceHistory, now_s: float) -> int:
    since_s = now_s - history.changed_s
    if since_s >= REMEMBERED_S:
        return history.price_micro
    is_first = history.changes <= 1
    before_micro = history.before_micro if is_first else history.mean_micro
    highest_micro = max(before_micro, history.price_micro)
    due = _PAID_S * _AGAIN ** min(history.changes - 1, 30) * highest_micro
    if since_s * abs(history.price_micro - before_micro) >= due:
        return history.price_micro
    if is_first:
        return before_micro
    earlier_s = min(history.for_s, REMEMBERED_S - since_s)
    return round((before_micro * earlier_s + history.price_micro * since_s) / max(1.0, earlier_s + since_s))
