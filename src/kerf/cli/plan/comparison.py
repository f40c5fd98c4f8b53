"""`kerf plan --compare`: what other requests would cost, side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kerf.cli.plan.json import API_VERSION, Json, unplaced_object
from kerf.cli.plan.text import unplaced_lines
from kerf.cli.render import counted, table
from kerf.engine.explain.plan import explain
from kerf.engine.study.sizing.compare import FIRST, Asked, Variant, changed_spec
from kerf.errors import InputError
from kerf.model.instancetypes import price_number, price_text
from kerf.model.pods import Pod, PodSpec
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
_FORM = 'expected RESOURCE=QUANTITY[,...], such as "cpu=900m,memory=2Gi" or "CONTAINER:cpu=900m"'


def requests_of(flag: str, texts: Sequence[str]) -> tuple[Asked, ...]:
    """The requests that each text of a flag names. Raises InputError."""
    return tuple(_parsed(f"{flag} {text}", text) for text in texts)


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


def check_containers(pods: Sequence[Pod], asked: Sequence[Asked], place: str) -> None:
    """Raises InputError for a container that none of the pods has, with those that they have."""
    known = {each.name for spec in _specs(pods) for each in (*spec.containers, *spec.init_containers)}
    for name in (name for requests in asked for name in requests if name):
        if pods and name not in known:
            expected = f"a container of a pod that waits ({', '.join(sorted(known))})"
            raise InputError(f"--compare: expected {expected}, got {name!r}, which none in the {place} has")


def compared_with_care(pods: Sequence[Pod], asked: Sequence[Asked]) -> Iterator[str]:
    """What to know of the figures: which container asks for what is given, and where another one decides."""
    several = sum(1 for pod in pods if len(pod.spec.containers) > 1)
    if several and any(FIRST in requests for requests in asked):
        pods_text = counted(several, "pod")
        yield f"{pods_text} of several containers: the first asks for what is given; CONTAINER:cpu=1 names one"
    for requests in asked:
        unmoved = {id(spec) for spec in _specs(pods) if _is_decided_by_init(spec, requests)}
        number = sum(1 for pod in pods if id(pod.spec) in unmoved)
        if number:
            yield f"{requests_text(requests)}: of {counted(number, 'pod')} an init container asks for more, and decides"


def _specs(pods: Sequence[Pod]) -> list[PodSpec]:
    return list({id(pod.spec): pod.spec for pod in pods}.values())


def _is_decided_by_init(spec: PodSpec, requests: Asked) -> bool:
    """Whether what starts a pod asks for as much of a named resource as all that runs then, or more."""
    changed = changed_spec(spec, requests)
    alone = replace(changed, init_containers=tuple(each for each in changed.init_containers if each.is_sidecar))
    names = {name for amounts in requests.values() for name in amounts}
    return any(changed.requests.get(name, 0) > alone.requests.get(name, 0) for name in names)


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
