"""Limits of a NodePool, against the types it admits."""

from dataclasses import dataclass

from kerf.lint.context import LintContext, some_names
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import Subject
from kerf.manifests.schema import Path
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool
from kerf.model.quantities import NODES, NOTHING, quantity_text

_LIMITS: Path = ("spec", "limits")
_WANTED = 5
"""Nodes that a proposed limit holds."""


@dataclass(frozen=True)
class _Bound:
    """How many nodes the limits hold of the type of which they hold most, and by which; each counts `one` of it."""

    nodes: int
    limit: str
    kind: InstanceType
    one: int


def _bound(pool: NodePool, context: LintContext) -> _Bound | None:
    """None where nothing bounds the pool, or it admits no type. Of equal numbers the cheaper type counts."""
    limits = pool.limits or NOTHING
    best: _Bound | None = None
    kinds = context.types(pool)
    prices = {kind.name: min((o.price_micro for o in kind.offerings), default=0) for kind in kinds}
    for kind in sorted(kinds, key=lambda kind: (prices[kind.name], kind.name)):
        charges = {**context.charged(kind, pool), NODES: 1}
        counts = [(limit // charges[name], name) for name, limit in sorted(limits.items()) if charges.get(name, 0) > 0]
        if not counts:
            return None
        nodes, name = min(counts)
        if best is None or nodes > best.nodes:
            best = _Bound(nodes, name, kind, charges[name])
    return best


def _figures(pool: NodePool, bound: _Bound) -> tuple[str, str, str]:
    """The limit, what one node of the type counts, and a limit for several."""
    name = bound.limit
    one = bound.one
    limit = (pool.limits or NOTHING)[name]
    return quantity_text(name, limit), quantity_text(name, one), quantity_text(name, one * _WANTED)


@rule("KL012", "limit-holds-one-node", Severity.WARNING, ("NodePool",))
def limit_holds_one_node(subject: Subject, context: LintContext) -> Notes:
    """A limit of the pool can never hold a second node.

    A launch counts with the whole capacity of its type against `spec.limits`. `cpu: 10` holds one machine of 8 cores;
    the second is not launched, its pods stay pending, and Karpenter's log speaks of instance types although the limit
    is the cause. Limits bound the pool as a whole, not a node. To allow exactly one node say so: `limits: {nodes: 1}`.
    Document 000, line 4.
    """
    pool = subject.value
    bound = _bound(pool, context) if isinstance(pool, NodePool) and pool.replicas is None else None
    if isinstance(pool, NodePool) and bound is not None and bound.nodes == 1 and bound.limit != NODES:
        limit, one, several = _figures(pool, bound)
        message = f"limit {bound.limit} {limit} holds 1 x {bound.kind.name} ({one} {bound.limit}) and no second node"
        hint = f'{bound.limit}: "{several}" holds {_WANTED} of them; `nodes: 1` says that one is meant'
        yield Note((*_LIMITS, bound.limit), message, hint)


@rule("KL013", "limit-holds-no-node", Severity.ERROR, ("NodePool",))
def limit_holds_no_node(subject: Subject, context: LintContext) -> Notes:
    """A limit of the pool holds not even one node.

    Every type that the pool admits counts more than the limit, so nothing is ever launched. A limit of 0 is how a
    pool is switched off, and no finding. Document 000, line 4.
    """
    pool = subject.value
    bound = _bound(pool, context) if isinstance(pool, NodePool) and pool.replicas is None else None
    if (
        isinstance(pool, NodePool)
        and bound is not None
        and bound.nodes == 0
        and (pool.limits or NOTHING)[bound.limit] > 0
    ):
        limit, one, several = _figures(pool, bound)
        message = f"limit {bound.limit} {limit} holds no node: {bound.kind.name} counts {one}"
        yield Note((*_LIMITS, bound.limit), message, f'{bound.limit}: "{several}" holds {_WANTED} of them')


@rule("KL014", "limit-on-nothing", Severity.WARNING, ("NodePool",))
def limit_on_nothing(subject: Subject, context: LintContext) -> Notes:
    """A limit names a resource that no type of the pool has.

    It never binds: a pool that is to have four GPUs at most and limits `nvidia.com/gpus` has no bound at all. Resources
    are spelled as nodes show them: `cpu`, `memory`, `nvidia.com/gpu`; `nodes` counts nodes, and
    `kerf.dev/cost-per-hour` money. A node counts as many `nvidia.com/gpu` as it shows: replicas under time-slicing and
    MPS, slots under HAMi, which are ten a card unless its ConfigMap says otherwise. Where it shows none by that name
    its cards count.
    """
    pool = subject.value
    if not isinstance(pool, NodePool):
        return
    kinds = context.types(pool)
    held = {name for kind in kinds for name in context.charged(kind, pool)} | {NODES}
    for name in (pool.limits or {}) if kinds else ():
        if name not in held and not name.startswith("kerf.dev/"):
            close = nearest(name, sorted(held), 0.75)
            hint = f"is {close} meant?" if close else f"the types are {some_names(kinds)}"
            yield Note((*_LIMITS, name), f"limit {name} never binds: no type of the pool has it", hint, at_key=True)
