"""Pods of nodes that go, planned for before they are evicted: each is to be made again, and must find room then.

As Karpenter does with nodes that are deleted (`CurrentlyReschedulablePods`). Such a pod counts as one that waits, and
no longer where it runs. So it is planned with all that its successor will ask: on a node that stays, on one that is on
its way, or on one that is bought. The claim of that node promises the place to the pod that still runs, and the next
plan finds it there again: nothing is bought twice. Once the pod is evicted its successor waits in its place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import inf

from kerf.engine.lifecycle import drain_deadline_s
from kerf.model.eviction import Budgets, is_protected, protected_until_s
from kerf.model.nodeclaim import DISRUPTION_REASON, INSTANCE_ENDS
from kerf.model.nodepool import UNHEALTHY
from kerf.model.pods import PENDING, Pod, PodDemand
from kerf.model.provisioningrequests import consumed_request
from kerf.model.quantities import NOTHING, Resources
from kerf.model.rejections import REJECTED
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, ResourceQuota
from kerf.model.windows import OPEN, WINDOW_LABEL
from kerf.sharing.family import Occupant
from kerf.sharing.hami.pinning import without_pin
from kerf.sharing.registry import demand_of, families_of

AHEAD_S = 300.0
"""So long before a pod that is held will have to go a place is looked for: a GPU node takes minutes to start."""


def moves(pod: Pod) -> bool:
    """Whether the pod would need another place: of those that are ending only a StatefulSet's comes back by itself.

    An opportunistic pod has no right to any: a node with nothing else on it counts as empty.
    """
    comes_back = pod.owner is not None and pod.owner.kind == "StatefulSet"
    return not pod.is_daemon and not pod.is_opportunistic and not pod.is_ended and (pod.deleted_s is None or comes_back)


def unbound(pod: Pod) -> Pod:
    """The pod as its controller will make it again: without node, and without what a scheduler wrote on it."""
    annotations = {k: v for k, v in pod.annotations.items() if not k.startswith("hami.io/vgpu-")}
    return replace(pod, node_name="", phase=PENDING, annotations=annotations, nominated_node="", deleted_s=None)


def leaving_pods(snapshot: ClusterSnapshot) -> tuple[tuple[Pod, ClusterNode], ...]:
    """The pods that will be evicted and made again, each with its node that goes; by node, then by key.

    Not those that `moves` leaves out, nor those that Karpenter leaves out: do-not-disrupt, a budget that never allows
    an eviction, or several budgets, keep them there, unless the node is broken, the cloud ends its instance, or that
    ends soon (`AHEAD_S`). Nor those of which no plan is made beforehand: a window that is not open or a request judges
    a pod when it comes, and one that its scheduler has refused before may be refused again. Cost: linear in nodes, and
    in the pods of those that go.
    """
    now_s = snapshot.taken_at_s
    return tuple((pod, node) for pod, node, from_s in _going(snapshot) if from_s <= now_s)


def next_leaving_s(snapshot: ClusterSnapshot) -> float:
    """When the next of the pods that are held begins to count among them; infinite where none does. Cost: the same."""
    return min((from_s for _, _, from_s in _going(snapshot) if from_s > snapshot.taken_at_s), default=inf)


def _going(snapshot: ClusterSnapshot) -> Iterator[tuple[Pod, ClusterNode, float]]:
    """The pods of nodes that go and of which a plan can be made, and from when on it is made."""
    going = [node for node in snapshot.nodes if node.is_deleting and node.pods]
    if any(_waits_for_others(node) for node in going):
        there = {node.claim.name for node in snapshot.nodes if node.claim is not None}
        going = [node for node in going if not _waits_for_others(node) or _names(node) <= there]
    budgets, now_s = Budgets(snapshot.disruption_budgets if going else ()), snapshot.taken_at_s
    is_let_in = _of_open_window(snapshot)
    for node in going:
        end_s = _end_s(node, now_s)
        for pod in node.pods:
            if moves(pod) and (is_planned(pod) or (is_let_in(pod) and is_planned(_as_let_in(pod)))):
                yield pod, node, _leaves_from_s(pod, end_s, budgets, now_s)


def _waits_for_others(node: ClusterNode) -> bool:
    """Whether the node goes once others are up."""
    return node.claim is not None and not node.claim.is_deleting and bool(node.claim.replaced_by)


def _names(node: ClusterNode) -> set[str]:
    """The claims for which the node waits. It is marked before these are made, so a plan that comes in between must
    not buy for its pods; and where one of them has failed, the node stays."""
    return set(node.claim.replaced_by) if node.claim is not None else set()


def is_planned(pod: Pod) -> bool:
    """Whether a plan may be made for the pod before it is evicted: it waits for no window and no request then, and its
    scheduler has not refused it before."""
    return WINDOW_LABEL not in pod.labels and not consumed_request(pod) and REJECTED not in pod.annotations


def are_judged_later(pods: Iterable[Pod], snapshot: ClusterSnapshot) -> bool:
    """Whether one of the pods may find no place again, whatever room there is: a window that is not open, or a request
    that others take the room of, judges it when it comes. Cost: linear in pods."""
    is_let_in = _of_open_window(snapshot)
    return any(consumed_request(pod) or (WINDOW_LABEL in pod.labels and not is_let_in(pod)) for pod in pods)


def _of_open_window(snapshot: ClusterSnapshot) -> Callable[[Pod], bool]:
    """Whether a window that is open now selects the pod, and lets it in again when it is made again."""
    windows = [window for window in snapshot.windows if window.status.phase == OPEN]
    return lambda pod: any(window.selects(pod.namespace, pod.labels) for window in windows)


def _as_let_in(pod: Pod) -> Pod:
    """The pod as one that no window judges."""
    return replace(pod, labels={key: value for key, value in pod.labels.items() if key != WINDOW_LABEL})


def without_windows(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The snapshot as if there were no windows: pods on nodes that one lets in again are like others, and what windows
    keep free is free. Cost: linear in nodes and pods where a window is open."""
    is_let_in, nodes = _of_open_window(snapshot), list[ClusterNode]()
    for node in snapshot.nodes if snapshot.windows else ():
        let_in = {pod.key for pod in node.pods if WINDOW_LABEL in pod.labels and is_let_in(pod)}
        pods = (_as_let_in(pod) if pod.key in let_in else pod for pod in node.pods)
        nodes.append(replace(node, pods=tuple(pods)) if let_in else node)
    return replace(snapshot, nodes=tuple(nodes) or snapshot.nodes, windows=(), windowed=(), cron_jobs=())


def _leaves_from_s(pod: Pod, end_s: float, budgets: Budgets, now_s: float) -> float:
    """From when on a plan is made for the pod: at once where nothing holds it for ever, else a while before it ends
    that something does: do-not-disrupt for a time, or the drain of its node, which leaves each pod its own grace."""
    if not is_held(pod, budgets, now_s):
        return -inf
    forced_s = end_s - pod.spec.termination_grace_s
    protected_s = protected_until_s(pod)
    is_free_then = now_s < protected_s < forced_s and not _is_held_by_budgets(pod, budgets)
    return (protected_s if is_free_then else forced_s) - AHEAD_S


def _end_s(node: ClusterNode, now_s: float) -> float:
    """When the drain of a node that goes ends whatever holds it; of one that waits for others, as if it began now."""
    claim = node.claim
    if claim is None:
        return inf
    reason = claim.condition(DISRUPTION_REASON)
    if _is_repaired(node) or (reason is not None and reason.reason in INSTANCE_ENDS and claim.deleted_s is not None):
        return -inf
    if claim.deleted_s is None:
        return inf if claim.termination_grace_period_s is None else now_s + claim.termination_grace_period_s
    deadline_s = drain_deadline_s(claim)
    return inf if deadline_s is None else deadline_s


def is_held(pod: Pod, budgets: Budgets, now_s: float) -> bool:
    """Whether the pod would need another place and no eviction is ever allowed: do-not-disrupt, a budget that always
    refuses, or several budgets."""
    if not moves(pod):
        return False
    return is_protected(pod, now_s) or _is_held_by_budgets(pod, budgets)


def _is_held_by_budgets(pod: Pod, budgets: Budgets) -> bool:
    covering = budgets.covering(pod)
    return len(covering) > 1 or any(budget.always_holds(pod) for budget in covering)


def _is_repaired(node: ClusterNode) -> bool:
    """Whether the node goes because it is broken, and takes its pods with it."""
    claim = node.claim
    if claim is None or not claim.has_broken_node:
        return False
    reason = claim.condition(DISRUPTION_REASON)
    return claim.deleted_s is None or (reason is not None and reason.reason == UNHEALTHY)


def with_leaving(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The snapshot in which those pods wait, and are on no node; the very same where there are none.

    Applied twice it changes nothing more. Cost: see `leaving_pods`.
    """
    found = leaving_pods(snapshot)
    if not found:
        return snapshot
    homes = {pod.key: node.name for pod, node in found}
    nodes = tuple(_without(node, homes) if node.is_deleting else node for node in snapshot.nodes)
    coming = (without_pin(unbound(pod)) for pod, _ in found)
    pending = tuple(sorted((*snapshot.pending, *coming), key=lambda pod: pod.key))
    grouped = tuple(pod for pod in snapshot.grouped if pod.key not in homes)
    return replace(
        snapshot,
        nodes=nodes,
        pending=pending,
        grouped=grouped,
        quotas=_without_use(snapshot, [pod for pod, _ in found]),
        leaving={**snapshot.leaving, **homes},
    )


def _without_use(snapshot: ClusterSnapshot, leaving: Iterable[Pod]) -> tuple[ResourceQuota, ...]:
    """The quotas without what these pods hold: their successors hold it in their place."""
    held: dict[str, Resources] = {}
    for pod, family in product(leaving, families_of(snapshot) if snapshot.quotas else ()):
        demand = demand_of(pod, family)
        occupant = Occupant(pod, demand if isinstance(demand, PodDemand) else None)
        held[pod.namespace] = held.get(pod.namespace, NOTHING) + family.quota_used([occupant])
    quotas = ((each, held.get(each.namespace, NOTHING)) for each in snapshot.quotas)
    return tuple(
        replace(each, used={name: amount - own.get(name, 0) for name, amount in each.used.items()}) if own else each
        for each, own in quotas
    )


def _without(node: ClusterNode, homes: Mapping[str, str]) -> ClusterNode:
    return replace(node, pods=tuple(pod for pod in node.pods if pod.key not in homes))
