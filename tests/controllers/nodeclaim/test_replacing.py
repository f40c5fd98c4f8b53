"""A node goes once all that were bought in its place are up; where one of them fails, it stays."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kerf.controllers.nodeclaim.replacing import Replacing
from kerf.engine.disruption.causes import Drifts
from kerf.engine.disruption.command import Command
from kerf.manifests.encode import node_claim_status
from kerf.model.causes import Name
from kerf.model.constraints import Requirements
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import DISRUPTED_TAINT, INITIALIZED, REGISTERED_LESS, REPLACED_BY, TRUE, UNHEALTHY, Condition
from kerf.model.plan import Cost, Deletion, Launch, PlacedPod
from tests.controllers.cluster import STAGES, Cluster, pod, pool


def launch(name: str, *claims: str, pods: Sequence[str] = ()) -> Launch:
    """A node in the place of these claims' nodes."""
    planned = OfferingKey("g5.xlarge", "us-east-1a", "on-demand")
    placed = tuple(PlacedPod(key) for key in pods)
    return Launch(name, "gpu", planned, 4_000_000, placed, Requirements(), why="cheaper", replaces=claims)


def deletion(number: int, *launches: str) -> Deletion:
    """Of `gpu-N`, once these launches are up."""
    return Deletion(
        f"node-{number}",
        f"gpu-{number}",
        "gpu",
        0,
        "Drifted",
        Drifts(Name("NodePoolDrifted")),
        replaced_by=launches,
    )


def command(deletions: Sequence[Deletion], launches: Sequence[Launch]) -> Command:
    """Nothing else."""
    return Command(Cost("USD", 0, 0), launches=tuple(launches), deletions=tuple(deletions))


def begin(cluster: Cluster) -> None:
    """The controller, also in a second life."""
    cluster.start(Replacing(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings))


def start(cluster: Cluster, nodes: int = 1) -> None:
    """A pool with nodes, and the controller."""
    cluster.put(pool())
    for number in range(1, nodes + 1):
        cluster.running(number)
    begin(cluster)


def exchange(cluster: Cluster, made: Command) -> list[str]:
    """Act on the command; the names of the new claims."""
    before = set(cluster.names("NodeClaim"))
    cluster.done(cluster.actuator.exchange(made, cluster.state.snapshot(cluster.clock.now_s())))
    return sorted(set(cluster.names("NodeClaim")) - before)


def comes_up(cluster: Cluster, name: str) -> None:
    """The node of a claim is initialised."""
    claim = cluster.claim(name)
    for stage in STAGES:
        claim = claim.with_condition(Condition(stage, TRUE, stage, since_s=cluster.clock.now_s()))
    cluster.change("NodeClaim", name, status=node_claim_status(claim))


def going(cluster: Cluster) -> list[str]:
    """The claims that are being deleted."""
    return [obj["metadata"]["name"] for obj in cluster.api.list("NodeClaim") if "deletionTimestamp" in obj["metadata"]]


def test_the_old_node_is_closed_at_once_and_goes_when_the_new_one_is_up(cluster: Cluster) -> None:
    """All of it can be read on the claims."""
    start(cluster)
    (new,) = exchange(cluster, command([deletion(1, "launch-0")], [launch("launch-0", "gpu-1")]))

    assert (new,) == cluster.claim().replaced_by
    assert ("gpu-1",) == cluster.claim(new).replaces
    assert (DISRUPTED_TAINT,) == cluster.node().taints
    assert ("True", "Drifted", "the template of its NodePool has changed (NodePoolDrifted)") == cluster.condition(
        "DisruptionReason"
    )
    assert [f"launching NodeClaim {new} in its place: cheaper"] == cluster.said("Replacing")
    cluster.at(600)
    assert [] == going(cluster)

    comes_up(cluster, new)
    assert ["gpu-1"] == going(cluster)


def test_a_node_waits_for_all_of_its_own_and_for_no_others(cluster: Cluster) -> None:
    """Two are fed by the first launch, one of them by the second as well."""
    start(cluster, 2)
    launches = [launch("launch-0", "gpu-1", "gpu-2"), launch("launch-1", "gpu-2", pods=["default/q"])]
    exchange(cluster, command([deletion(1, "launch-0"), deletion(2, "launch-0", "launch-1")], launches))
    first, second = cluster.claim("gpu-2").replaced_by

    comes_up(cluster, first)
    assert ["gpu-1"] == going(cluster)
    comes_up(cluster, second)
    assert ["gpu-1", "gpu-2"] == going(cluster)


@pytest.mark.parametrize("crashes", [False, True], ids=["", "restart"])
def test_a_node_that_is_sound_again_stays(cluster: Cluster, crashes: bool) -> None:
    """It was to go because it was broken. What was bought in its place goes."""
    start(cluster)
    sick = cluster.claim().with_condition(Condition(UNHEALTHY, TRUE, "Ready", since_s=cluster.clock.now_s()))
    cluster.change("NodeClaim", "gpu-1", status=node_claim_status(sick))
    repair = replace(deletion(1, "launch-0"), reason="Unhealthy")
    (new,) = exchange(cluster, command([repair], [launch("launch-0", "gpu-1")]))
    cluster.at(30)
    assert ((new,), []) == (cluster.claim().replaced_by, going(cluster))

    if crashes:
        cluster.crash()
    cluster.change("NodeClaim", "gpu-1", status=node_claim_status(cluster.claim().without_condition(UNHEALTHY)))
    if crashes:
        begin(cluster)
    said = ("False", "ReplacementFailed", "the node stays: it is sound again, before others are up in its place")
    assert ((), said) == (cluster.claim().replaced_by, cluster.condition("DisruptionReason"))
    assert ((), [new]) == (cluster.node().taints, going(cluster))


def test_nodes_that_wait_for_the_same_stay_all_where_one_launch_fails(cluster: Cluster) -> None:
    """As those of a group of pods: neither goes, though the other launch came up, and this ends, too."""
    start(cluster, 2)
    both = ("gpu-1", "gpu-2")
    launches = [launch("launch-0", *both), launch("launch-1", *both, pods=["default/q"])]
    made = command([deletion(at, "launch-0", "launch-1") for at in (1, 2)], launches)
    first, second = exchange(cluster, made)
    comes_up(cluster, first)
    assert [] == going(cluster)

    cluster.remove("NodeClaim", second)
    assert [(), ()] == [cluster.claim(name).replaced_by for name in both]
    assert {first} <= set(going(cluster)) <= {first, second}


def test_nodes_that_wait_for_the_same_go_together_or_not_at_all(cluster: Cluster) -> None:
    """Another pod has come to one of the new nodes, and no third may be bought: one of the two pods has no place."""
    cards = {"allocatable": {"cpu": 4, "memory": "16Gi", "pods": 10, "nvidia.com/gpu": 1}}
    cluster.put(pool(limits={"nodes": "4"}))
    for number in (1, 2):
        cluster.running(number, node=cards)
        cluster.put(pod(f"old-{number}", node=f"node-{number}"))
    begin(cluster)
    both = ("gpu-1", "gpu-2")
    launches = [launch("launch-0", *both, pods=["default/old-1"]), launch("launch-1", *both, pods=["default/old-2"])]
    news = exchange(cluster, command([deletion(at, "launch-0", "launch-1") for at in (1, 2)], launches))
    for number, name in enumerate(news, start=8):
        held = replace(cluster.claim(name), node_name=f"node-{number}", provider_id=f"i-{number}")
        cluster.change("NodeClaim", name, status=node_claim_status(held))
        cluster.joined(held, f"node-{number}", **cards)
    cluster.put(pod("another", node="node-8"))
    for name in news:
        comes_up(cluster, name)

    why = "the node stays: other pods have taken what was bought in its place, and nothing else has room"
    assert [(), ()] == [cluster.claim(name).replaced_by for name in both]
    assert [why] * 4 == cluster.said("DisruptionBlocked")
    assert [] == [name for name in going(cluster) if name in both]


def test_a_node_stays_where_the_new_one_registers_too_few_cards(cluster: Cluster) -> None:
    """No pod has come to the new node, and yet it is not what was planned: the pod would have no place."""
    cards = {"allocatable": {"cpu": 4, "memory": "16Gi", "pods": 10}}
    cluster.put(pool(limits={"nodes": "2"}))
    cluster.running(1, node={"allocatable": {**cards["allocatable"], "nvidia.com/gpu": 1}})
    cluster.put(pod("old-1", node="node-1"))
    begin(cluster)
    made = [launch("launch-0", "gpu-1", pods=["default/old-1"])]
    (new,) = exchange(cluster, command([deletion(1, "launch-0")], made))
    text = "1 GPU was predicted, 0 registered"
    annotations = {**cluster.claim(new).annotations, REGISTERED_LESS: text}
    held = replace(cluster.claim(new), node_name="node-8", provider_id="i-8", annotations=annotations)
    cluster.change("NodeClaim", new, metadata={"annotations": annotations}, status=node_claim_status(held))
    cluster.joined(held, "node-8", **cards)
    comes_up(cluster, new)

    why = f"the node stays: {new}: {text}, and nothing else has room"
    assert [why, why] == cluster.said("DisruptionBlocked")
    assert [new] == going(cluster)


def test_a_launch_that_fails_takes_its_own_nodes_back(cluster: Cluster) -> None:
    """The node is open again and says why; what was bought beside it for it alone goes; others go on."""
    start(cluster, 2)
    launches = [
        launch("launch-0", "gpu-1"),
        launch("launch-1", "gpu-1", pods=["default/p"]),
        launch("launch-2", "gpu-2", pods=["default/q"]),
    ]
    exchange(cluster, command([deletion(1, "launch-0", "launch-1"), deletion(2, "launch-2")], launches))
    (lost, beside), (other,) = cluster.claim("gpu-1").replaced_by, cluster.claim("gpu-2").replaced_by
    cluster.remove("NodeClaim", lost)

    assert REPLACED_BY not in cluster.claim("gpu-1").annotations
    assert ((), (DISRUPTED_TAINT,)) == (cluster.node("node-1").taints, cluster.node("node-2").taints)
    assert ("False", "ReplacementFailed") == cluster.condition("DisruptionReason")[:2]
    why = f"the node stays: {lost} was to come in its place, and did not"
    assert [why, why] == cluster.said("DisruptionBlocked")
    assert beside in going(cluster)
    comes_up(cluster, other)
    assert "gpu-2" in going(cluster)
    assert "gpu-1" not in going(cluster)


def test_a_new_node_that_has_pods_already_stays(cluster: Cluster) -> None:
    """It is as any other then."""
    start(cluster)
    exchange(
        cluster,
        command(
            [deletion(1, "launch-0", "launch-1")],
            [launch("launch-0", "gpu-1"), launch("launch-1", "gpu-1", pods=["default/p"])],
        ),
    )
    lost, kept = cluster.claim().replaced_by
    comes_up(cluster, kept)
    held = cluster.claim(kept)
    cluster.change("NodeClaim", kept, status=node_claim_status(replace(held, node_name="node-9", provider_id="i-9")))
    cluster.joined(replace(held, provider_id="i-9"), "node-9")
    cluster.put(pod("x", node="node-9"))
    cluster.remove("NodeClaim", lost)

    assert kept not in going(cluster)


@pytest.mark.parametrize("named", ["", "gone", "gone,other"])
def test_a_mark_that_names_no_claim_is_taken_back(cluster: Cluster, named: str) -> None:
    """A crash between the mark and the claims, or a person: nothing stays closed for ever."""
    cluster.put(pool())
    cluster.running(annotations={REPLACED_BY: named}, node={"taints": (DISRUPTED_TAINT,)})
    begin(cluster)

    assert (REPLACED_BY in cluster.claim().annotations, cluster.node().taints) == (False, ())
    assert [] == going(cluster)


def test_a_claim_that_is_not_in_its_place_is_not_waited_for(cluster: Cluster) -> None:
    """It would never say that it is up, and the node would wait for ever."""
    start(cluster, nodes=2)
    cluster.change("NodeClaim", "gpu-1", metadata={"annotations": {REPLACED_BY: "gpu-2"}})
    cluster.at(5)

    assert REPLACED_BY not in cluster.claim("gpu-1").annotations
    assert "the node stays: gpu-2 was to come in its place, and did not" in cluster.said("DisruptionBlocked")


def test_a_restart_goes_on(cluster: Cluster) -> None:
    """Whenever it comes."""
    start(cluster)
    (new,) = exchange(cluster, command([deletion(1, "launch-0")], [launch("launch-0", "gpu-1")]))
    cluster.crash()
    comes_up(cluster, new)
    begin(cluster)

    assert ["gpu-1"] == going(cluster)
    assert cluster.claim(new).is_true(INITIALIZED)


def test_a_node_that_a_person_deletes_meanwhile_goes_by_itself(cluster: Cluster) -> None:
    """The new one stays: the pods of the old come there."""
    start(cluster)
    (new,) = exchange(cluster, command([deletion(1, "launch-0")], [launch("launch-0", "gpu-1")]))
    cluster.remove("NodeClaim", "gpu-1")
    cluster.at(cluster.now_s + 5)

    assert ["gpu-1"] == going(cluster)
    assert new in cluster.names("NodeClaim")
