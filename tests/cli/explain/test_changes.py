"""`kerf explain` tells of what the same plan changes: nodes that are replaced, and nodes that are labelled anew."""

from kerf.cli.explain.nodes import explain_node
from kerf.cli.explain.pods import PodAnswers, explain_pods
from kerf.cli.explain.pools import explain_pool
from kerf.cli.inputs.input import ReadInput
from kerf.engine.decide import decide
from kerf.engine.disruption.pricecaps import propose
from kerf.engine.explain.disruption import explained
from kerf.engine.explain.plan import plan as provision
from kerf.engine.world import World
from kerf.manifests.decoded import Decoded
from kerf.model.market import Market
from kerf.model.plan import Plan
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_market, a_snapshot
from tests.engine.buy import test_relabelling as relabelling
from tests.engine.buy.test_configuration_choice import LONE, config_map, pods
from tests.engine.disruption import test_pricecaps as caps
from tests.engine.disruption.clusters import MARKET, may_go


def answers(snapshot: ClusterSnapshot, market: Market, plan: Plan) -> PodAnswers:
    """What `kerf explain` looks answers up in."""
    decision = decide(World(snapshot, market))
    return PodAnswers(ReadInput(Decoded(), snapshot.pending, snapshot, market), decision, plan)


def test_a_node_above_its_cap_goes_and_its_pool_names_what_comes() -> None:
    """The node goes once its successor is up."""
    snapshot = caps.with_pods(caps.capped())
    (command, *_) = propose(World(snapshot, MARKET), may_go(snapshot))
    plan = explained(command)
    known = answers(snapshot, MARKET, plan)

    node = explain_node("Node", snapshot.nodes[0], known)
    assert "goes" == node.data["verdict"]
    assert "price 0.384 > cap 0.25" in node.data["why"]
    pool = explain_pool(snapshot.node_pools[0], known.read, plan)
    assert "  launch-0 takes 1 pod of node dear, which then goes" in pool.lines


def test_a_node_with_new_labels_is_shown_on_its_pods_and_its_pool() -> None:
    """Why there is no launch."""
    waiting, node = pods({"mig-3g.20gb": 1}), relabelling.cut_node()
    maps = (config_map(), relabelling.MIXED)
    snapshot = a_snapshot(pools=[relabelling.POOL], pods=waiting, nodes=[node], config_maps=maps)
    market = a_market(LONE)
    known = answers(snapshot, market, provision(snapshot, market))

    (pod,) = explain_pods([waiting[0].key], known)
    told = "gets another configuration of GPU sharing"
    assert any(f"the node {told} first: 1 pod needs 1 nvidia.com/mig-3g.20gb" in line for line in pod.lines)
    pool = explain_pool(relabelling.POOL, known.read, known.plan)
    assert any(f"node n {told}: 1 pod needs" in line for line in pool.lines)
    assert ["n"] == pool.data["relabels"]
