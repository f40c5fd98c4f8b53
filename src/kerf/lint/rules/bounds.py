"""Floors, price caps and pre-warming, by annotations of a NodePool."""

from collections.abc import Iterator

from kerf.engine.headroom.prewarm import prewarm_problem
from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import Subject
from kerf.manifests.schema import Path
from kerf.model.bounds import MAX_GPU_PRICE, MAX_LAUNCHES, MAX_PRICE, MIN_NODES, bounds_of
from kerf.model.constraints import CAPACITY_TYPE
from kerf.model.cronjobs import PREWARM_CRON_JOBS
from kerf.model.instancetypes import InstanceType, Offering, price_text
from kerf.model.nodepool import NodePool
from kerf.model.quantities import NODES, NOTHING
from kerf.model.uses import uses_problems


@rule("KL059", "unreadable-annotation", Severity.ERROR, ("NodePool",))
def unreadable_annotation(subject: Subject, context: LintContext) -> Notes:
    """An annotation of a pool has not the form that Kerf reads.

    `kerf.dev/max-price-per-hour` and `kerf.dev/max-price-per-gpu-hour` are prices such as `0.90`, `kerf.dev/min-nodes`
    and `kerf.dev/max-launches-per-minute` are whole numbers, `kerf.dev/prewarm-cronjobs` is `auto` or a duration, and
    `kerf.dev/prewarm-namespaces`, `kerf.dev/booking-namespaces`, `kerf.dev/buffer-namespaces`,
    `kerf.dev/window-namespaces` and `kerf.dev/opportunistic-namespaces` are names of namespaces. A cap or a pace that
    cannot be read stops the pool, a floor that cannot be read keeps all of its nodes, and a list that cannot be read
    lets no namespace in: what was meant is not known.
    """
    del context
    pool = subject.value
    if not isinstance(pool, NodePool):
        return
    for key, why in _problems(pool):
        for start in (("spec", "template", "metadata"), ("metadata",)):
            at: Path = (*start, "annotations", key)
            if subject.text(*at):
                yield Note(at, why)
                break


@rule("KL068", "floor-above-limit", Severity.ERROR, ("NodePool",))
def floor_above_limit(subject: Subject, context: LintContext) -> Notes:
    """A pool is to keep more nodes than its limit allows.

    `kerf.dev/min-nodes` is how few nodes a pool has, `spec.limits.nodes` how many. Where the floor is above the limit
    it is never reached, and each pass says so again.
    """
    del context
    pool = subject.value
    most = (pool.limits or NOTHING).get(NODES) if isinstance(pool, NodePool) else None
    if isinstance(pool, NodePool) and most is not None and pool.bounds.min_nodes > most:
        message = f"{MIN_NODES} {pool.bounds.min_nodes} is above the limit of {most} nodes, and never reached"
        yield Note(_place(subject, MIN_NODES), message, f'nodes: "{pool.bounds.min_nodes}", or a lower floor')


@rule("KL069", "cap-below-every-price", Severity.ERROR, ("NodePool",))
def cap_below_every_price(subject: Subject, context: LintContext) -> Notes:
    """A price cap is below the price of everything that the pool admits.

    Nothing is ever bought for it: `kerf.dev/max-price-per-hour` bounds what a node costs, `kerf.dev/
    max-price-per-gpu-hour` what it costs for each of its GPUs. Looked at with the prices of the catalogue.
    """
    pool = subject.value
    if not isinstance(pool, NodePool) or not pool.bounds.has_cap:
        return
    offers = [(offering.price_micro, kind) for kind in context.types(pool) for offering in _sold(pool, kind)]
    if not offers or any(pool.bounds.excess(kind, price_micro) is None for price_micro, kind in offers):
        return
    price_micro, kind = min(offers, key=lambda offer: (offer[0], offer[1].name))
    key = MAX_PRICE if pool.bounds.max_price_micro is not None else MAX_GPU_PRICE
    message = f"every offering of the pool is above its cap; the cheapest is {kind.name} for {price_text(price_micro)}"
    yield Note(_place(subject, key), message, "raise the cap, or allow a cheaper type")


def _sold(pool: NodePool, kind: InstanceType) -> Iterator[Offering]:
    stated = pool.requirements.get(CAPACITY_TYPE)
    return (each for each in kind.offerings if stated is None or stated.has(each.capacity_type))


def _place(subject: Subject, key: str) -> Path:
    """Where an annotation of a pool stands, of the two places where it counts."""
    path: Path = ("spec", "template", "metadata", "annotations", key)
    return path if subject.text(*path) else ("metadata", "annotations", key)


def _problems(pool: NodePool) -> Iterator[tuple[str, str]]:
    stated = pool.stated_annotations
    for key in (MAX_PRICE, MAX_GPU_PRICE, MAX_LAUNCHES, MIN_NODES):
        if key in stated:
            alone = bounds_of({key: stated[key]})
            if alone.invalid or alone.invalid_floor:
                yield key, alone.invalid or alone.invalid_floor
    if prewarm := prewarm_problem(pool):
        yield PREWARM_CRON_JOBS, prewarm
    yield from uses_problems(stated)
