"""What an input lacks, as dumps of some kinds do: what can be known without it, and what follows where it cannot.

A file with pods and without the objects beside them reads like a cluster in which nothing else is. So what pods and
nodes say of absent objects is looked at: their owners, and the labels that Karpenter gives a node.
"""

from collections.abc import Sequence
from dataclasses import replace

from kerf.cli.render import counted, some
from kerf.manifests.decoded import Decoded
from kerf.model.constraints import NODE_POOL
from kerf.model.nodeclaim import INITIALIZED, LAUNCHED, READY, REGISTERED, TRUE, Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node

_MOST = 3
_ASSUMED = "kerf.dev/assumed-claim"


def with_claims(decoded: Decoded) -> Decoded:
    """The same with a claim for each node of a pool that is there, where the input has no NodeClaim at all.

    So their prices and amounts count. Nothing says since when such a node is quiet, so none of them is consolidated.
    """
    if decoded.node_claims:
        return decoded
    pools = {pool.name: pool for pool in decoded.node_pools}
    nodes = ((node, pools.get(node.labels.get(NODE_POOL, ""))) for node in decoded.nodes)
    return replace(decoded, node_claims=tuple(_claim_of(node, pool) for node, pool in nodes if pool is not None))


def _claim_of(node: Node, pool: NodePool) -> NodeClaim:
    return NodeClaim(
        node.name,
        pool.name,
        pool.node_class,
        pool.requirements,
        labels=node.labels,
        annotations={_ASSUMED: ""},
        provider_id=node.provider_id,
        node_name=node.name,
        created_s=node.created_s,
        capacity=node.capacity,
        allocatable=node.allocatable,
        conditions=tuple(Condition(stage, TRUE, stage) for stage in (INITIALIZED, LAUNCHED, READY, REGISTERED)),
    )


def is_assumed(claim: NodeClaim) -> bool:
    """Whether it is one of those, and none of the input."""
    return _ASSUMED in claim.annotations


def gaps(decoded: Decoded, place: str) -> list[str]:
    """What the input, as it was read, seems to lack, and what follows for a plan; empty where it seems whole."""
    return [*filter(None, (_no_claims(decoded, place), _no_daemon_sets(decoded, place), _no_pods(decoded, place)))]


def _no_claims(decoded: Decoded, place: str) -> str:
    pools = {pool.name for pool in decoded.node_pools}
    nodes = [node.name for node in decoded.nodes if node.labels.get(NODE_POOL, "") in pools]
    if decoded.node_claims or not nodes:
        return ""
    return (
        f"the {place} has no NodeClaims: {_of(nodes, 'node')} of NodePools by label, which count at their prices and "
        "against limits; none of them is removed, and nodes that are on their way are not known"
    )


def _no_daemon_sets(decoded: Decoded, place: str) -> str:
    pods = (pod for pod in decoded.pods if pod.owner is not None and pod.owner.kind == "DaemonSet" and not pod.is_ended)
    owners = sorted({f"{pod.namespace}/{pod.owner.name}" for pod in pods if pod.owner is not None})
    if decoded.daemon_sets or not owners:
        return ""
    return (
        f"the {place} has no DaemonSets, though pods are of {some(owners, _MOST)}: "
        "what they ask is missing on new nodes, which may hold fewer pods than planned"
    )


def _no_pods(decoded: Decoded, place: str) -> str:
    if not decoded.nodes or any(pod.node_name for pod in decoded.pods):
        return ""
    names = [node.name for node in decoded.nodes]
    return (
        f"the {place} has no pod with a node: {_of(names, 'node')} count as empty, "
        "so pods may be planned where others run"
    )


def _of(names: Sequence[str], noun: str) -> str:
    return f"{counted(len(names), noun)} ({some(sorted(names), _MOST)})"
