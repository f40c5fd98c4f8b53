"""Floors, price caps and pre-warming, by annotations of a NodePool."""

from collections.abc import Iterator

from kerf.engine.headroom.prewarm import prewarm_problem
from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import Subject
from kerf.manifests.schema import Path
from kerf.model.bounds import MAX_GPU_PRICE, MAX_LAUNCHES, MAX_PRICE, MIN_NODES, bounds_of
from kerf.model.cronjobs import PREWARM_CRON_JOBS
from kerf.model.nodepool import NodePool
from kerf.model.uses import uses_problems


@rule("KL059", "unreadable-annotation", Severity.ERROR, ("NodePool",))
def unreadable_annotation(subject: Subject, context: LintContext) -> Notes:
    """An annotation of a pool has not the form that Kerf reads.

    `kerf.dev/max-price-per-hour` and `kerf.dev/max-price-per-gpu-hour` are prices such as `0.90`, `kerf.dev/min-nodes`
    and `kerf.dev/max-launches-per-minute` are whole numbers, `kerf.dev/prewarm-cronjobs` is `auto` or a duration, and
    `kerf.dev/prewarm-namespaces`, `kerf.dev/booking-namespaces`, `kerf.dev/window-namespaces` and
    `kerf.dev/opportunistic-namespaces` are names of namespaces. A cap or a pace that cannot be read stops the pool, a
    floor that cannot be read keeps all of its nodes, and a list that cannot be read lets no namespace in: what was
    meant is not known.
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
