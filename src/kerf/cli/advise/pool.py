"""`kerf advise pool NAME`: limits against use and their price, and types of the pool that serve no pod."""

from collections.abc import Iterator, Sequence
from typing import Any

from kerf.cli.exits import DONE
from kerf.cli.inputs.input import Source, read_input
from kerf.cli.inputs.naming import Wanted, kind_of
from kerf.cli.inputs.wanted import key_of
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.plan.planning import decided
from kerf.cli.render import apart, counted, emit, some, table
from kerf.engine.options import Options
from kerf.engine.study.sizing.pools import Filled, LimitReview, PoolReview, TypeReview, reviewed
from kerf.model.instancetypes import price_number, price_text
from kerf.model.quantities import COST_PER_HOUR, quantity_text

_FAR = 4
"""A limit of so many times what is used and planned is said to be far."""
_MOST_NAMED = 5


def show(names: Sequence[str], flags: dict[str, Any]) -> int:
    """Print the review of each NodePool; the exit code. Raises ObjectNotFound."""
    names = names[1:] if len(names) > 1 and kind_of(names[0]) == "nodepool" else names
    read = read_input(Source.of(flags), with_usage=True)
    pools = {each.name: each for each in read.snapshot.node_pools}
    found = [pools[key_of(Wanted("nodepool", name.rpartition("/")[2]), pools, read)] for name in names]
    _, plan = decided(read, Options(with_bound=False))
    reviews = [reviewed(pool, plan, read.world, read.usage) for pool in found]
    currency = read.market.currency
    items = [_object(review, currency) for review in reviews]
    several = {"apiVersion": API_VERSION, "kind": "PoolAdviceList", "items": items}
    emit(
        flags["output"],
        lambda: several if len(items) > 1 else items[0],
        lambda: apart(_lines(review, currency) for review in reviews),
    )
    return DONE


def _object(review: PoolReview, currency: str) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "PoolAdvice",
        "nodePool": review.pool.name,
        "currency": currency,
        "pods": review.pods,
        "limits": [_limit_object(limit) for limit in review.limits],
        "instanceTypes": [
            {
                "instanceType": each.instance_type,
                "perHour": price_number(each.price_micro),
                "nodes": each.nodes,
                "planned": each.planned,
                "podsThatFit": each.holds,
                "beaten": each.is_beaten,
            }
            for each in review.types
        ],
        "advice": list(_advice(review, currency)),
    }


def _limit_object(limit: LimitReview) -> Json:
    def text(amount: int | None) -> str | None:
        return None if amount is None else quantity_text(limit.resource, amount)

    def filled(each: Filled | None) -> Json | None:
        if each is None:
            return None
        return {"instanceType": each.instance_type, "nodes": each.nodes, "perHour": price_number(each.price_micro)}

    return {
        "resource": limit.resource,
        "limit": text(limit.limit),
        "used": text(limit.used),
        "planned": text(limit.planned),
        "requested": text(limit.requested),
        "measured": text(limit.measured),
        "filledCheapest": filled(limit.cheapest),
        "filledDearest": filled(limit.most_expensive),
    }


def _lines(review: PoolReview, currency: str) -> Iterator[str]:
    types = counted(len(review.types), "type")
    yield f"NodePool {review.pool.name}: {types}, {counted(review.pods, 'pod')} on its nodes or waiting"
    if review.limits:
        yield ""
        headers = ("LIMIT", "AT", "NODES", "PLANNED", "PODS ASK", "MEASURED", f"FILLED, {currency}/H", "WITH")
        yield from table(headers, map(_limit_row, review.limits), indent="  ")
    yield ""
    yield from (f"advice: {line}" for line in _advice(review, currency))


def _limit_row(limit: LimitReview) -> tuple[str, ...]:
    def text(amount: int | None) -> str:
        return "-" if amount is None else quantity_text(limit.resource, amount)

    cells = [text(each) for each in (limit.limit, limit.used, limit.planned, limit.requested, limit.measured)]
    ends = [each for each in (limit.cheapest, limit.most_expensive) if each is not None]
    distinct = list(dict.fromkeys(ends))
    prices = " to ".join(price_text(each.price_micro) for each in distinct) or "-"
    return (limit.resource, *cells, prices, " to ".join(f"{e.nodes} x {e.instance_type}" for e in distinct) or "-")


def _advice(review: PoolReview, currency: str) -> Iterator[str]:
    advice = [*_all_advice(review, currency)]
    yield from advice or ["nothing to change"]


def _all_advice(review: PoolReview, currency: str) -> Iterator[str]:
    if not review.limits:
        yield "it has no limit: nothing but the cloud's quota bounds what it costs"
    is_open = not any(limit.is_reached for limit in review.limits)
    for limit in review.limits:
        yield from _limit_advice(limit, currency, is_open=is_open)
    yield from _type_advice(review)


def _limit_advice(limit: LimitReview, currency: str, *, is_open: bool) -> Iterator[str]:
    """A limit is far only while the pool `is_open`: no other limit stops it before."""
    at, peak = quantity_text(limit.resource, limit.limit), quantity_text(limit.resource, limit.peak)
    if limit.is_shut:
        a_node = quantity_text(limit.resource, limit.a_node)
        yield f"limit {limit.resource} {at} allows no node of what counts against it: the smallest counts {a_node}"
    elif limit.cheapest is None and limit.resource != COST_PER_HOUR:
        yield f"limit {limit.resource} {at} bounds nothing: no type of the pool counts against it"
    elif limit.is_reached:
        a_node = quantity_text(limit.resource, limit.a_node)
        yield (
            f"limit {limit.resource} {at} is reached: {peak} in use or planned, and one more node counts {a_node}; "
            "pods that need one wait"
        )
    elif is_open and limit.peak * _FAR <= limit.limit and limit.most_expensive is not None:
        cost = price_text(limit.most_expensive.price_micro)
        yield (
            f"limit {limit.resource} {at} is far: {peak} in use or planned; filled with "
            f"{limit.most_expensive.instance_type} it would cost {cost} {currency}/h"
        )


def _type_advice(review: PoolReview) -> Iterator[str]:
    unused = [each for each in review.types if not each.nodes and not each.planned]
    yield from _named(unused, "not in use", len(review.types))
    if not review.pods:
        return
    yield from _named([e for e in unused if not e.holds], "hold none of the pods", len(review.types))
    beaten = [each for each in unused if each.is_beaten]
    yield from _named(beaten, "never cheapest: another type holds the same pods for no more", len(review.types))


def _named(types: Sequence[TypeReview], what: str, of: int) -> Iterator[str]:
    if types:
        names = some([each.instance_type for each in types], _MOST_NAMED)
        yield f"{len(types)} of {counted(of, 'type')} {what} ({names})"
