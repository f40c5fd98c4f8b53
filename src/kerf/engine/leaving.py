"""Pods of nodes that go, planned for before they are evicted: each is to be made again, and must find room then.

As Karpenter does with nodes that are deleted (`CurrentlyReschedulablePods`). Such a pod counts as one that waits, and
no longer where it runs. So it is planned with all that its successor will ask: on a node that stays, on one that is on
its way, or on one that is bought. The claim of that node promises the place to the pod that still runs, and the next
plan finds it there again: nothing is bought twice. Once the pod is evicted its successor waits in its place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product

from kerf.model.eviction import Budgets, is_protected
from kerf.model.nodeclaim import DISRUPTION_REASON
from kerf.model.nodepool import UNHEALTHY
from kerf.model.pods import PENDING, Pod, PodDemand
from kerf.model.provisioningrequests import consumed_request
from kerf.model.quantities import NOTHING, Resources
from kerf.model.rejections import REJECTED
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, ResourceQuota
from kerf.model.windows import WINDOW_LABEL
from kerf.sharing.family import Occupant
from kerf.sharing.hami.pinning import without_pin
from kerf.sharing.registry import demand_of, families_of


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
    an eviction, or several budgets, keep them there, unless the node is broken and its drain ends all the same. Nor
    those of which no plan is made beforehand: a window or a request judges a pod when it comes, and one that its
    scheduler has refused before may be refused again. Cost: linear in nodes, and in the pods of those that go.
    """
    going = [node for node in snapshot.nodes if node.is_deleting and node.pods]
    if not going:
        return ()
    budgets, now_s = Budgets(snapshot.disruption_budgets), snapshot.taken_at_s
    return tuple((pod, node) for node in going for pod in node.pods if _leaves(pod, node, budgets, now_s))


def is_planned(pod: Pod) -> bool:
    """Whether a plan may be made for the pod before it is evicted: it waits for no window and no request then, and its
    scheduler has not refused it before."""
    return WINDOW_LABEL not in pod.labels and not consumed_request(pod) and REJECTED not in pod.annotations


def _leaves(pod: Pod, node: ClusterNode, budgets: Budgets, now_s: float) -> bool:
    if not is_planned(pod):
        return False
    return moves(pod) and (_is_repaired(node) or not is_held(pod, budgets, now_s))


def is_held(pod: Pod, budgets: Budgets, now_s: float) -> bool:
    """Whether the pod would need another place and no eviction is ever allowed: do-not-disrupt, a budget that always
    refuses, or several budgets."""
    if not moves(pod):
        return False
    if is_protected(pod, now_s):
        return True
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
