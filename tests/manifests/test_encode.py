"""What Kerf writes to the API."""

from typing import Any

from kerf.manifests.decode import decode_object
from kerf.manifests.encode import (
    condition_list,
    event_object,
    node_claim_object,
    node_merged,
    node_pool_status,
    node_pool_status_merged,
)
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, Requirement, Requirements, Taint
from kerf.model.events import triggered_scale_up
from kerf.model.nodeclaim import TERMINATION_FINALIZER, UNREGISTERED_TAINT, Condition
from kerf.model.nodes import Node
from kerf.model.quantities import Resources
from kerf.testing.builders import NOON_S, a_claim, a_pool


def test_a_claim_is_written_in_karpenters_form() -> None:
    """karpenter.sh/v1 with its owner, as any reader of NodeClaims expects it."""
    claim = a_claim(
        reached=(),
        labels={},
        requirements=Requirements([Requirement.of(INSTANCE_TYPE, "In", ["g5.2xlarge", "g5.xlarge"])]),
        requests=Resources({"cpu": 1500, "memory": 2**30, "pods": 3}),
        taints=(Taint("gpu", "true"),),
        startup_taints=(UNREGISTERED_TAINT,),
        finalizers=(TERMINATION_FINALIZER,),
        expire_after_s=None,
        termination_grace_period_s=90,
    )

    assert {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{"key": INSTANCE_TYPE, "operator": "In", "values": ["g5.2xlarge", "g5.xlarge"]}],
        "resources": {"requests": {"cpu": "1500m", "memory": "1Gi", "pods": "3"}},
        "taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}],
        "startupTaints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
        "expireAfter": "Never",
        "terminationGracePeriod": "1m30s",
    } == node_claim_object(claim)["spec"]
    assert {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "name": "pool",
        "uid": "pool-uid",
        "blockOwnerDeletion": True,
    } == node_claim_object(claim, "pool-uid")["metadata"]["ownerReferences"][0]


def test_the_status_of_a_claim_states_what_is_known() -> None:
    """Conditions need a reason in the API; instants are RFC 3339 in UTC."""
    launched = Condition("Launched", "True", since_s=NOON_S)
    claim = a_claim(conditions=(launched,), provider_id="i-1", capacity=Resources({"pods": 58}))

    assert {
        "conditions": [
            {
                "type": "Launched",
                "status": "True",
                "reason": "Launched",
                "message": "",
                "lastTransitionTime": "2026-01-05T12:00:00Z",
            }
        ],
        "providerID": "i-1",
        "capacity": {"pods": "58"},
    } == node_claim_object(claim)["status"]


def raw_node() -> dict[str, Any]:
    """A node as the API shows it, with fields that Kerf does not read."""
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-01-05T07:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "resourceVersion": "1", "labels": {"a": "b"}, "managedFields": [{}]},
        "spec": {"podCIDR": "10.0.0.0/24", "taints": [taint], "unschedulable": True},
        "status": {"capacity": {"pods": "58"}},
    }


def test_a_node_is_written_without_touching_what_is_not_ours() -> None:
    """A held taint keeps its time, or eviction would start to count anew."""
    node = Node("n", {"c": "d"}, taints=(Taint("node.kubernetes.io/unreachable", "", "NoExecute"), Taint("x")))

    assert {
        **raw_node(),
        "metadata": {"name": "n", "resourceVersion": "1", "labels": {"c": "d"}, "managedFields": [{}]},
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "taints": [raw_node()["spec"]["taints"][0], {"key": "x", "effect": "NoSchedule"}],
        },
    } == node_merged(raw_node(), node)


def test_a_node_that_was_not_changed_is_written_as_it_was() -> None:
    """Decode, merge: nothing is lost."""
    node = decode_object(raw_node())

    assert isinstance(node, Node)
    assert raw_node() == node_merged(raw_node(), node)


def test_a_pool_status_counts_nodes_among_resources() -> None:
    """Karpenter's counter does the same."""
    assert {"resources": {"cpu": "8", "nodes": "1"}, "nodes": 1, "conditions": []} == node_pool_status(
        Resources({"nodes": 1, "cpu": 8000}), ()
    )
    assert 0 == node_pool_status(Resources(), ())["nodes"]


def test_two_writers_of_a_pool_do_not_take_each_others_conditions_away() -> None:
    """Nor the resources, where one of them does not count any."""
    counted = node_pool_status_merged({}, Resources({"nodes": 2}), [Condition("Ready", "True")])
    told = node_pool_status_merged(counted, None, [Condition("LimitsReached", "True", message="full")])
    again = node_pool_status_merged(told, Resources({"nodes": 3}), [Condition("Ready", "False")])

    assert (2, 3) == (told["nodes"], again["nodes"])
    assert {("LimitsReached", "True"), ("Ready", "False")} == {(c["type"], c["status"]) for c in again["conditions"]}


def test_conditions_stand_in_the_order_of_the_stages() -> None:
    """A column shows the first that is not True: the stage that is awaited, never the sum of all."""
    types = ["Ready", "Drifted", "Registered", "Consolidatable", "Initialized", "Launched"]

    assert ["Launched", "Registered", "Initialized", "Consolidatable", "Drifted", "Ready"] == [
        written["type"] for written in condition_list([Condition(name, "True") for name in types])
    ]


def test_the_same_event_has_the_same_name() -> None:
    """After a restart it is written again, and must not be there twice."""
    occurrence = triggered_scale_up("default/p", "claim-1", a_pool("pool", limits={"nodes": 10}), 0, 2)
    written = event_object(occurrence, NOON_S)

    assert written == event_object(occurrence, NOON_S + 0.5)
    assert written["metadata"]["name"] != event_object(occurrence, NOON_S + 1)["metadata"]["name"]
    assert {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default"} == written["involvedObject"]
    assert "pod triggered scale-up: [{pool 0->2 (max: 10)}]" == written["message"]


def test_events_of_cluster_objects_stand_in_the_default_namespace() -> None:
    """Where kubectl describe looks for them."""
    occurrence = triggered_scale_up("default/p", "c", a_pool(), 0, 1)
    about_claim = type(occurrence)(("NodeClaim", "c"), "Normal", "Launched", "", ("c",))

    assert ("default", "karpenter.sh/v1") == (
        event_object(about_claim, NOON_S)["metadata"]["namespace"],
        event_object(about_claim, NOON_S)["involvedObject"]["apiVersion"],
    )


def test_bounds_are_written_with_operators_every_version_knows() -> None:
    """Gte and Lte are young; only a bound of zero needs one."""
    several = Requirements(
        [
            Requirement("a", True, frozenset({"7"}), at_least=3, at_most=9),
            Requirement("b", True, at_least=0),
            Requirement("c", min_values=2, values=frozenset({"x", "y"})),
            Requirement.of(CAPACITY_TYPE, "Exists"),
            Requirement.of("z", "DoesNotExist"),
        ]
    )

    assert [
        {"key": "a", "operator": "Gt", "values": ["2"]},
        {"key": "a", "operator": "Lt", "values": ["10"]},
        {"key": "a", "operator": "NotIn", "values": ["7"]},
        {"key": "b", "operator": "Gte", "values": ["0"]},
        {"key": "c", "operator": "In", "values": ["x", "y"], "minValues": 2},
        {"key": CAPACITY_TYPE, "operator": "Exists"},
        {"key": "z", "operator": "DoesNotExist"},
    ] == node_claim_object(a_claim(requirements=several))["spec"]["requirements"]
