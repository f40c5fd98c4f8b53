"""G2, G3: nothing is planned for a pod that its scheduler has rejected; then one of its workload is tried elsewhere."""

from dataclasses import replace

from kerf.engine.decide import decide
from kerf.engine.explain.plan import explain
from kerf.engine.world import World
from kerf.model.plan import Stage
from kerf.model.pods import Owner, Pod
from kerf.model.rejections import REJECTED, Rejection, asked_by, written
from kerf.testing.builders import a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type


def rejected(name: str = "p", again_s: float = 400, owner: Owner | None = None) -> Pod:
    """A pod that its scheduler refused on node-1."""
    pod = a_pod(name, uid=name, owner=owner, cpu=1, unschedulable="0/1 nodes are available.")
    held = Rejection(name, asked_by(pod), 'it "says" no', ("node-1",), (), 1, 100, again_s)
    return replace(pod, annotations={REJECTED: str(written(held)[REJECTED])})


def world(*pods: Pod, now_s: float = 200) -> World:
    """One node with room for all, and a pool."""
    snapshot = a_snapshot(pools=(a_pool(),), nodes=(a_node("node-1"),), pods=pods, taken_at_s=now_s)
    return World(snapshot, a_market(an_instance_type()))


def test_nothing_is_planned_for_a_rejected_pod_and_it_says_why() -> None:
    """Neither the node that has room nor another; the hint names the instant."""
    decision = decide(world(rejected()))
    (unplaced,) = explain(decision).unplaced

    assert ((), ()) == (decision.placements, decision.launches)
    assert Stage.SCHEDULER == unplaced.stage
    assert (
        'default-scheduler refuses it on node node-1, where the plan has room for it: "it "says" no"' == unplaced.reason
    )
    assert unplaced.hint.endswith("or until 1970-01-01T00:06:40Z")


def test_after_the_pause_it_goes_to_another_node() -> None:
    """The one that was refused still has room; the claim of the new one asks for no host name."""
    decision = decide(world(rejected(), now_s=400))

    assert () == decision.placements
    (launch,) = decision.launches
    assert ["default/p"] == [placed.pod for placed in launch.pods]
    assert "kubernetes.io/hostname" not in launch.requirements


def test_of_one_workload_one_pod_is_tried_at_a_time() -> None:
    """The first in the queue; the others say for whom they wait."""
    owner = Owner("ReplicaSet", "web")
    decision = decide(world(rejected("b", owner=owner), rejected("a", owner=owner), now_s=400))

    assert ["default/a"] == [placed.pod for launch in decision.launches for placed in launch.pods]
    assert ["default/b"] == [entry.pod for entry in explain(decision).unplaced]
    assert "pod default/a of its workload is tried first" in explain(decision).unplaced[0].reason


def test_workloads_do_not_wait_for_each_other() -> None:
    """Pods of another owner, or namespace, are tried beside them."""
    decision = decide(world(rejected("b", owner=Owner("Job", "b")), rejected("a", owner=Owner("Job", "a")), now_s=400))

    assert ["default/a", "default/b"] == sorted(placed.pod for launch in decision.launches for placed in launch.pods)


def test_of_a_type_whose_last_node_failed_one_is_launched() -> None:
    """F9: the pods of the others wait, and say why."""
    pods = [a_pod(name, uid=name, cpu=4) for name in "ab"]
    snapshot = a_snapshot(pools=(a_pool(),), pods=pods, taken_at_s=200)
    market = a_market(an_instance_type(), probed=frozenset({("pool", "m5.xlarge")}))
    decision = decide(World(snapshot, market))
    (waiting,) = explain(decision).unplaced

    assert ["default/a"] == [placed.pod for launch in decision.launches for placed in launch.pods]
    assert "the last nodes of m5.xlarge failed in NodePool pool, so one is tried first" == waiting.reason
