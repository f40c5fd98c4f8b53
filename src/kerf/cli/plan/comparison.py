"""`kerf plan --compare`: what other requests would cost, side by side."""

from collections.abc import Iterator, Sequence

import click

from kerf.cli.plan.json import API_VERSION, Json, unplaced_object
from kerf.cli.plan.text import unplaced_lines
from kerf.cli.render import table
from kerf.engine.explain.plan import explain
from kerf.engine.study.sizing.compare import FIRST, Asked, Variant
from kerf.errors import InputError
from kerf.model.instancetypes import price_number, price_text
from kerf.model.quantities import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NOTHING,
    QuantityError,
    Resources,
    quantity_of,
    quantity_text,
)

AS_THEY_ARE = "as they are"
_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_FORM = 'expected RESOURCE=QUANTITY[,...], such as "cpu=900m,memory=2Gi"'


def requests_of(_: click.Context, option: click.Parameter, texts: Sequence[str]) -> tuple[Asked, ...]:
    """The requests that each `--compare` names. Raises InputError."""
    return tuple(_parsed(f"--{option.name} {text}", text) for text in texts)


def _parsed(place: str, text: str) -> Asked:
    amounts: dict[str, dict[str, int]] = {}
    for part in text.split(","):
        named, separator, quantity = (piece.strip() for piece in part.partition("="))
        container, _, name = named.rpartition(":")
        if not separator or not name or not quantity:
            raise InputError(f"{place}: {_FORM}, got {part.strip()!r}")
        if "/" not in name and name not in _PLAIN and not name.startswith("hugepages-"):
            known = ", ".join((*_PLAIN, "hugepages-SIZE"))
            raise InputError(f"{place}: expected {known} or DOMAIN/RESOURCE, got {name!r}")
        mine = amounts.setdefault(container, {})
        if name in mine:
            raise InputError(f"{place}: expected each resource once, got {name} twice")
        try:
            mine[name] = quantity_of(name, quantity)
        except QuantityError:
            raise InputError(
                f"{place}: expected a quantity such as 900m, 1.5 or 2Gi for {name}, got {quantity!r}"
            ) from None
        if mine[name] < 0:
            raise InputError(f"{place}: expected no negative quantity for {name}, got {quantity!r}")
    return {container: Resources(mine) for container, mine in amounts.items()}


def requests_text(requests: Asked) -> str:
    """`cpu 900m, memory 2Gi, cpu 100m in proxy`."""
    texts = (
        f"{name} {quantity_text(name, amount)}" + (f" in {container}" if container else "")
        for container, amounts in requests.items()
        for name, amount in amounts.items()
    )
    return ", ".join(texts) or AS_THEY_ARE


def _texts(amounts: Resources) -> dict[str, str]:
    return {name: quantity_text(name, amount) for name, amount in amounts.items()}


def comparison_object(variants: Sequence[Variant]) -> Json:
    """All variants; the first has no requests of its own."""
    items = [_object(variant) for variant in variants]
    return {"apiVersion": API_VERSION, "kind": "Comparison", "items": items}


def _object(variant: Variant) -> Json:
    least, most = variant.pods_a_node
    by_name = {container: _texts(amounts) for container, amounts in variant.requests.items() if container}
    return {
        "requests": _texts(variant.requests.get(FIRST, NOTHING)),
        **({"containers": by_name} if by_name else {}),
        "nodes": variant.nodes,
        "instanceTypes": [
            {"instanceType": name, "capacityType": capacity_type, "nodes": number}
            for (name, capacity_type), number in variant.types.items()
        ],
        "currency": variant.plan.cost.currency,
        "perHour": price_number(variant.price_micro),
        "podsPerNode": {"least": least, "most": most},
        "placed": variant.placed,
        "onExistingNodes": variant.on_nodes,
        "unplaced": [unplaced_object(each) for each in explain(variant.plan).unplaced],
    }


def comparison_lines(variants: Sequence[Variant]) -> Iterator[str]:
    """A row a variant, then the pods that have no place in it."""
    money = f"{variants[0].plan.cost.currency}/H"
    headers = ("REQUESTS", "NEW NODES", "TYPES", money, "PODS A NODE", "PLACED", "ON OLD NODES", "WAITING")
    yield from table(headers, (_row(variant) for variant in variants))
    for variant in variants:
        if variant.plan.unserved:
            yield ""
            yield f"{requests_text(variant.requests)}:"
            yield from unplaced_lines(explain(variant.plan).unplaced)


def _row(variant: Variant) -> tuple[str, ...]:
    least, most = variant.pods_a_node
    return (
        requests_text(variant.requests),
        str(variant.nodes),
        ", ".join(f"{number} x {name} {kind}" for (name, kind), number in variant.types.items()) or "-",
        price_text(variant.price_micro),
        "-" if not most else str(most) if least == most else f"{least} to {most}",
        str(variant.placed),
        str(variant.on_nodes),
        str(variant.plan.unserved),
    )
