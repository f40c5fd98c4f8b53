"""The first plan that takes nodes away: each method is asked in turn, and one plan is carried out at a time.

The controller acts on this plan, and the command line shows the same one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kerf.engine.disruption import consolidation, emptiness, pricecaps
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import Blocked, Nominated
from kerf.engine.disruption.pricecaps import kept_for
from kerf.model.market import Market
from kerf.model.plan import NodePlacement, Plan
from kerf.model.pods import is_virtual
from kerf.model.snapshot import ClusterSnapshot

METHODS = (emptiness.propose, consolidation.propose, pricecaps.propose)
"""In the order in which they are asked, as Karpenter's; what is too dear is replaced where nothing can just go."""


def first_plan(
    snapshot: ClusterSnapshot,
    market: Market,
    candidates: Sequence[Candidate],
    placements: Callable[[], Iterable[NodePlacement]],
) -> tuple[Plan | None, tuple[Blocked, ...]]:
    """The first plan of the first method that has one, or None; and nodes that would go but for a pod that waits.

    `placements` are where the present plan puts pods on nodes. They are asked for only when a node is about to go. A
    node that gets one is no candidate, as in Karpenter, whose plans nominate nodes: a scheduler tries a pod again only
    after a while, and until then the node looks empty. Room that is kept for pods to be holds its node, too, and is no
    news.
    """
    may_go = [each for each in candidates if not kept_for(each, snapshot, market)]
    plan = _first(snapshot, market, may_go)
    if plan is None:
        return None, ()
    pods: dict[str, list[str]] = {}
    for placement in placements():
        pods.setdefault(placement.node, []).append(placement.pod.pod)
    held = [node for node in _nodes_of(plan, may_go) if node in pods]
    if not held:
        return plan, ()
    real = ((node, next((pod for pod in pods[node] if not is_virtual(pod)), "")) for node in held)
    blocked = tuple(Blocked(node, Nominated(pod)) for node, pod in real if pod)
    return _first(snapshot, market, [each for each in may_go if each.node.name not in pods]), blocked


def _first(snapshot: ClusterSnapshot, market: Market, candidates: Sequence[Candidate]) -> Plan | None:
    return next((plan for method in METHODS for plan in method(snapshot, market, candidates)), None)


def _nodes_of(plan: Plan, candidates: Iterable[Candidate]) -> Iterator[str]:
    """The nodes that the plan deletes or replaces."""
    yield from (deletion.node for deletion in plan.deletions)
    replaced = {launch.replaces for launch in plan.launches if launch.replaces}
    if replaced:
        yield from (each.node.name for each in candidates if each.claim.name in replaced)
