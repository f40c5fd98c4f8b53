"""Clusters of the disruption tests: nodes of ours that may go, each with its claim."""

from collections.abc import Iterable, Sequence
from typing import Any

from kerf.engine.disruption.candidates import Candidate, candidates
from kerf.model.market import Market
from kerf.model.nodeclaim import CONSOLIDATABLE, INITIALIZED, LAUNCHED, READY, REGISTERED, NodeClaim
from kerf.model.nodepool import Budget, Disruption, NodePool
from kerf.model.nodes import Node
from kerf.model.pods import RUNNING, Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot
from tests.engine.worlds import G5, M5, M5_2X

MARKET: Market = a_market(M5, M5_2X, G5)
REACHED = (LAUNCHED, REGISTERED, INITIALIZED, READY, CONSOLIDATABLE)


def pool_with(*budgets: Budget, name: str = "pool", **given: Any) -> NodePool:
    """A pool with these budgets (by default 10 %) that consolidates after no wait."""
    disruption = Disruption(0, budgets=budgets or (Budget(),), **given)
    return a_pool(name, disruption=disruption)


def free_pool(name: str = "pool", **given: Any) -> NodePool:
    """A pool whose budget allows everything."""
    return pool_with(Budget("100%"), name=name, **given)


def ours(name: str, *, pool: str = "pool", instance_type: str = "m5.xlarge", **given: Any) -> tuple[Node, NodeClaim]:
    """A node and its claim, which may go; `reached` and `deleted_s` are the claim's, the rest the node's."""
    of_claim = {key: given.pop(key) for key in ("reached", "deleted_s", "last_pod_event_s") if key in given}
    node = a_node(name, pool=pool, instance_type=instance_type, provider_id=f"i-{name}", **given)
    fields = {"reached": REACHED, **of_claim}
    claim = a_claim(name, pool=pool, instance_type=instance_type, provider_id=f"i-{name}", node_name=name, **fields)
    return node, claim


def on(node: str, name: str, **given: Any) -> Pod:
    """A pod that runs on a node."""
    return a_pod(name, node_name=node, phase=RUNNING, **given)


def a_cluster(
    pools: Iterable[NodePool], nodes: Sequence[tuple[Node, NodeClaim]], pods: Iterable[Pod] = (), **given: Any
) -> ClusterSnapshot:
    """A snapshot of those nodes with their claims and pods."""
    return a_snapshot(pools=pools, nodes=[n for n, _ in nodes], claims=[c for _, c in nodes], pods=pods, **given)


def may_go(snapshot: ClusterSnapshot) -> tuple[Candidate, ...]:
    """The candidates alone."""
    return candidates(snapshot)[0]
