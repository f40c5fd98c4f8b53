"""Prices by which moves are judged: those that last.

A price that goes to and fro is answered too late each time: the move is paid for, and the price is back. So a price
that has changed counts once it has cost as much as a move does, and a step that saves something by such a price alone
waits until it would have saved as much, and as much as it would cost if all prices went back to the worst of the day.
Each further change within a day makes that four times as long, and until then the offering counts for what it has cost
on average: a node that stays for a day costs that. A node that goes is judged by the less of this and its present
price, and one that is bought by the more. Nodes that came in the place of others and cost more since go again without
any of that, where what is bought was never as expensive.
"""

from collections.abc import Callable, Iterable, Sequence

from kerf.engine.supply.pricing import bought_as, present_price
from kerf.engine.world import World
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import REMEMBERED_S, PriceHistory
from kerf.model.plan import Launch
from kerf.model.promises import planned_price_micro
from kerf.model.snapshot import ClusterNode

_PAID_S = 900
"""A move has paid for itself once the price of the more expensive node for so long is saved. A new node is paid for
some minutes before it has pods, and these start once more; what is lost by waiting is no more than this again."""
_RETURN_S = 1_800
"""So long a price that goes back is paid until the pods have moved once more: what has come in the place of others is
left alone for twenty minutes, and a node has to start."""
_AGAIN = 4
"""So many times as long after each further change."""


def node_price(node: ClusterNode, world: World) -> int:
    """What an hour of a node that may go counts for, in micro-units: no more than it costs now."""
    price = present_price(node, world.supply)
    history = world.market.price_history_of.get(bought_as(node)) if world.market.price_histories else None
    if history is None or _has_turned(node, price, world):
        return price
    return min(price, _counted(history, price, world))


def saved_micro(nodes: Iterable[ClusterNode], launches: Sequence[Launch], world: World) -> int:
    """What is saved an hour, in micro-units, where these are bought in the place of the nodes; 0 or less where that has
    to last for longer. Cost: linear in both."""
    nodes = tuple(nodes)
    before = [(present_price(node, world.supply), bought_as(node)) for node in nodes]
    after = [(launch.price_micro, launch.offering) for launch in launches]
    now_micro = sum(price for price, _ in before) - sum(price for price, _ in after)
    known = world.market.price_history_of
    changed = [known[offering] for _, offering in (*before, *after) if offering in known]
    if not changed:
        return now_micro
    highest = _at(_highest, after, world)
    back_micro = sum(price for price, _ in before) - highest
    turned = (_has_turned(node, price, world) for node, (price, _) in zip(nodes, before, strict=True))
    if back_micro > 0 and all(turned):
        return back_micro
    counted, earlier = (
        sum(min(price, lasting(price, offering)) for price, offering in before)
        - sum(max(price, lasting(price, offering)) for price, offering in after)
        for lasting in (_lasting(world, _counted), _lasting(world, _earlier))
    )
    if earlier > 0 or counted <= 0:
        return counted
    since_s = world.snapshot.taken_at_s - max(each.changed_s for each in changed)
    paid = sum(price for price, _ in after) * _patience_s(max(each.changes for each in changed))
    paid += max(0, highest - _at(_lowest, before, world)) * _RETURN_S
    return counted if now_micro * since_s >= paid else 0


def _has_turned(node: ClusterNode, price_micro: int, world: World) -> bool:
    """Whether the node came in the place of others within a day and costs more since: what it came for may be over."""
    claim = node.claim
    if claim is None or not claim.replaces or world.snapshot.taken_at_s - claim.created_s >= REMEMBERED_S:
        return False
    bought_micro = planned_price_micro(claim)
    return bought_micro is not None and bought_micro < price_micro


def _at(rule: "_Rule", held: Iterable[tuple[int, OfferingKey]], world: World) -> int:
    """What these of a price and an offering come to by that rule."""
    lasting = _lasting(world, rule)
    return sum(lasting(price, offering) for price, offering in held)


def _lowest(history: PriceHistory, price_micro: int, world: World) -> int:
    return price_micro * history.lowest_micro // max(1, history.price_micro)


def _highest(history: PriceHistory, price_micro: int, world: World) -> int:
    return price_micro * history.highest_micro // max(1, history.price_micro)


_Rule = Callable[[PriceHistory, int, World], int]


def _lasting(world: World, rule: _Rule) -> Callable[[int, OfferingKey], int]:
    """What an offering of that price counts for."""
    known = world.market.price_history_of

    def lasting(price_micro: int, offering: OfferingKey) -> int:
        history = known.get(offering)
        return price_micro if history is None else rule(history, price_micro, world)

    return lasting


def _counted(history: PriceHistory, price_micro: int, world: World) -> int:
    """`price_micro` is what it costs in its pool, where that price has lasted; else what it cost before."""
    since_s = world.snapshot.taken_at_s - history.changed_s
    before_micro = _before(history, since_s)
    highest_micro = max(before_micro, history.price_micro)
    if since_s * abs(history.price_micro - before_micro) >= _patience_s(history.changes) * highest_micro:
        return price_micro
    return _earlier(history, price_micro, world)


def _earlier(history: PriceHistory, price_micro: int, world: World) -> int:
    """What it cost before. NodeOverlays change that by as much as the price of now."""
    if not history.price_micro:
        return price_micro
    since_s = world.snapshot.taken_at_s - history.changed_s
    before_micro = _before(history, since_s)
    if history.changes > 1:
        earlier_s = min(history.for_s, REMEMBERED_S - since_s)
        before_micro = round((before_micro * earlier_s + history.price_micro * since_s) / max(1.0, earlier_s + since_s))
    return price_micro * before_micro // history.price_micro


def _before(history: PriceHistory, since_s: float) -> int:
    """Before the last change, and on average where there were more; the price of now after a day without one."""
    if since_s >= REMEMBERED_S:
        return history.price_micro
    return history.before_micro if history.changes <= 1 else history.mean_micro


def _patience_s(changes: int) -> int:
    seconds: int = _PAID_S * _AGAIN ** min(changes - 1, 30)
    return seconds
