"""From a plan to calls: what is written, and what is left alone because it has changed since."""

from dataclasses import replace

import pytest

from kerf.engine.decision import Decision
from kerf.engine.disruption.causes import EmptyFor
from kerf.engine.disruption.command import Command
from kerf.engine.options import DEFAULT
from kerf.engine.world import World
from kerf.model.constraints import Requirement, Requirements
from kerf.model.gpu import Slice
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import DISRUPTED_TAINT
from kerf.model.plan import Cost, Deletion, Launch, PlacedPod
from kerf.model.quantities import Resources
from kerf.sim.objects import Json
from kerf.testing.builders import a_market, cards
from tests.controllers.cluster import Cluster, pod, pool
from tests.sim.world import START_S

OFFERING = OfferingKey("g5.xlarge", "us-east-1a", "on-demand")
TYPES = Requirements([Requirement.of("node.kubernetes.io/instance-type", "In", ["g5.12xlarge", "g5.xlarge"])])
GONE = Deletion("node-1", "gpu-1", "gpu", 4_000_000, "Empty", EmptyFor(600))


def launch(*pods: str, name: str = "launch-0") -> Launch:
    """A node with one card for these pods."""
    placed = tuple(PlacedPod(f"default/{p}", (Slice(f"default/{p}", "main", 0, "gpu-0", 1000, 50),)) for p in pods)
    asked = Resources({"cpu": 1000, "nvidia.com/gpu": len(pods)})
    return Launch(name, "gpu", OFFERING, 4_000_000, placed, TYPES, asked, cards(1), ("g5.12xlarge",), "pin")


def act(cluster: Cluster, *launches: Launch) -> None:
    """Carry out a plan of these launches, decided on the cluster as it was last read."""
    world = World(cluster.state.snapshot(START_S), a_market())
    cluster.done(cluster.actuator.launch(Decision(world, DEFAULT, Cost("USD", 0, 0), launches=launches)))


def take_away(cluster: Cluster, *deletions: Deletion) -> None:
    """Carry out a command that only takes nodes away."""
    command = Command(Cost("USD", 8_000_000, 4_000_000), deletions=deletions)
    cluster.done(cluster.actuator.exchange(command, cluster.state.snapshot(cluster.clock.now_s())))


def created(cluster: Cluster) -> Json:
    """The one claim there is."""
    (obj,) = cluster.api.list("NodeClaim")
    return obj


def test_a_claim_asks_for_what_kubelet_shows_and_never_for_slices(cluster: Cluster) -> None:
    """Requests are the launch's; the types that hold the same pods are alternatives of one requirement."""
    cluster.put(pool(), pod("a"), pod("b"))
    cluster.read()
    act(cluster, launch("a", "b"))

    spec = created(cluster)["spec"]
    assert {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}} == spec["resources"]
    wanted = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.12xlarge", "g5.xlarge"]}
    assert [wanted] == spec["requirements"]


@pytest.mark.parametrize("is_relaxed, noted", [(True, "true"), (False, None)])
def test_a_claim_with_too_few_types_is_annotated(cluster: Cluster, is_relaxed: bool, noted: str | None) -> None:
    """As Karpenter does under the policy BestEffort."""
    cluster.put(pool(), pod("a"))
    cluster.read()
    act(cluster, replace(launch("a"), is_relaxed=is_relaxed))

    assert noted == created(cluster)["metadata"]["annotations"].get("karpenter.sh/nodeclaim-min-values-relaxed")


def test_a_claim_says_what_it_was_bought_for(cluster: Cluster) -> None:
    """Pods with their cards, the offering, the cards that must register, and how the plan is followed."""
    cluster.put(pool(), pod("a"), pod("b"))
    cluster.read()
    act(cluster, launch("a", "b"))

    noted = created(cluster)["metadata"]["annotations"]
    assert {
        "kerf.dev/planned-pods": '{"default/a": [0], "default/b": [0]}',
        "kerf.dev/planned-offering": "g5.xlarge/us-east-1a/on-demand",
        "kerf.dev/predicted-devices": '[{"model": "A10G", "registeredAs": "NVIDIA A10G", "memoryMiB": 22888}]',
        "kerf.dev/follow": "pin",
    } == {key: value for key, value in noted.items() if key.startswith("kerf.dev/")}
    assert {"karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"} < noted.keys()


def test_a_claim_takes_over_what_its_pool_promises(cluster: Cluster) -> None:
    """Labels, taints, startup taints and the grace period of the template; pool, class and finalizer."""
    taint = {"key": "gpu", "effect": "NoSchedule"}
    template = {"taints": [taint], "startupTaints": [{**taint, "key": "cni"}], "terminationGracePeriod": "1h"}
    cluster.put(pool(labels={"team": "ml"}, template=template), pod("a"))
    cluster.read()
    act(cluster, launch("a"))

    claim = created(cluster)
    owned = {"karpenter.sh/nodepool": "gpu", "karpenter.k8s.aws/ec2nodeclass": "default"}
    assert {"team": "ml", **owned} == claim["metadata"]["labels"]
    assert ["karpenter.sh/termination"] == claim["metadata"]["finalizers"]
    assert template == {field: claim["spec"][field] for field in template}


def test_a_launch_whose_pods_are_gone_is_skipped(cluster: Cluster) -> None:
    """One pod has ended and one found a place since the plan was made: nothing is bought for them."""
    cluster.put(pool(), pod("a"), pod("b"), pod("c", node="node-1"))
    cluster.remove("Pod", "a")
    cluster.read()
    act(cluster, launch("a"), launch("c"))
    assert [] == cluster.names("NodeClaim")

    act(cluster, launch("a", "b"))
    assert ["default/b"] == [p.occurrence.regards[1] for p in cluster.recorder.posted if "Trig" in p.occurrence.reason]


@pytest.mark.parametrize(("limits", "most"), [({"nodes": "10"}, "10"), ({"cpu": "100"}, "cpu 100"), ({}, "unlimited")])
def test_a_scale_up_is_reported_in_the_words_of_cluster_autoscaler(cluster: Cluster, limits: Json, most: str) -> None:
    """From the nodes there are to those there will be, over all launches of the pool; each pod is told its claim."""
    cluster.put(pool(limits=limits), pod("a"), pod("b"))
    cluster.running(1)
    cluster.read()
    act(cluster, launch("a"), launch("b"))

    assert [f"pod triggered scale-up: [{{gpu 1->3 (max: {most})}}]"] * 2 == cluster.said("TriggeredScaleUp")
    claims = [f"Pod should schedule on: nodeclaim/{name}" for name in cluster.names("NodeClaim") if name != "gpu-1"]
    assert sorted(claims) == sorted(cluster.said("Nominated"))


def test_a_claim_counts_before_the_watch_shows_it(cluster: Cluster) -> None:
    """No second pass may buy it again meanwhile; its uid is known."""
    cluster.put(pool(), pod("a"))
    cluster.read()
    act(cluster, launch("a"))

    assert [created(cluster)["metadata"]["uid"]] == [claim.uid for claim in cluster.state.claims()]


def test_the_same_launch_twice_makes_one_claim(cluster: Cluster) -> None:
    """A claim's name follows from pool, type, time and pods: an earlier life has made it already."""
    cluster.put(pool(), pod("a"))
    cluster.read()
    act(cluster, launch("a"))
    act(cluster, launch("a"))

    assert 1 == len(cluster.names("NodeClaim"))


def test_another_launch_of_the_same_name_gets_a_name_of_its_own(cluster: Cluster) -> None:
    """Names have few digits; a node that waits for another must not wait for a claim that is there already."""
    cluster.put(pool(), pod("a"))
    cluster.read()
    act(cluster, launch("a"))
    act(cluster, replace(launch("a"), replaces=("gpu-1",)))

    claims = [cluster.claim(name) for name in cluster.names("NodeClaim")]
    assert [(), ("gpu-1",)] == sorted(claim.replaces for claim in claims)


def test_a_node_that_goes_is_closed_and_says_why(cluster: Cluster) -> None:
    """The taint keeps pods off, the condition keeps the reason, and the claim waits for its drain."""
    cluster.put(pool())
    cluster.running(1)
    cluster.read()
    take_away(cluster, GONE)

    assert (DISRUPTED_TAINT,) == cluster.node().taints
    assert ("True", "Empty", "empty for 10m, saves 4.00 USD/h") == cluster.condition("DisruptionReason")
    assert cluster.claim().is_deleting
    said = [f"Disrupting {kind}: Empty: empty for 10m, saves 4.00 USD/h" for kind in ("NodeClaim", "Node")]
    assert said == cluster.said("DisruptionTerminating")


def test_a_deletion_of_a_claim_that_goes_is_skipped(cluster: Cluster) -> None:
    """Nothing is written and nothing is said twice; the same for a claim that is gone."""
    cluster.put(pool())
    cluster.running(1)
    cluster.remove("NodeClaim", "gpu-1")
    cluster.read()
    before = len(cluster.api.events)
    take_away(cluster, GONE, Deletion("node-2", "gpu-2", "gpu", 1, "Empty", EmptyFor(600)))

    assert before == len(cluster.api.events)


def test_a_released_node_keeps_all_its_other_taints(cluster: Cluster) -> None:
    """What an earlier life closed and did not come to delete is open again."""
    cluster.put(pool())
    cluster.running(1, node={"taints": (DISRUPTED_TAINT,)})
    cluster.read()
    cluster.done(cluster.actuator.release(cluster.node()))

    assert () == cluster.node().taints
