"""Nodes, NodeClasses, budgets, quotas, and what holds for all documents together."""

import itertools
import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kerf.manifests.decode import decode
from kerf.manifests.decoded import Decoded
from kerf.manifests.read import Documents, parse
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import Condition
from kerf.model.quantities import Resources
from kerf.model.resourcequotas import QuotaScope
from kerf.model.snapshot import ConfigMap, NodeClass, ResourceQuota
from kerf.model.times import instant_s
from tests.manifests.texts import decoded, pod_text, pool_text, refusal

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n, labels: {gpu: "on"}, creationTimestamp: 2026-01-05T07:00:00Z}
spec:
  providerID: aws:///i-1
  unschedulable: true
  taints: [{key: a, effect: NoExecute, timeAdded: 2026-01-05T07:00:00Z}]
status:
  capacity: {cpu: 4, memory: 16164784Ki, ephemeral-storage: 20893676Ki, pods: 58, nvidia.com/gpumem: 23028}
  allocatable: {cpu: 3920m, memory: 15147952Ki, ephemeral-storage: "18181869946", pods: 58, nvidia.com/gpumem: 23028}
  conditions: [{type: Ready, status: "False", lastTransitionTime: 2026-01-05T07:05:00Z}]
"""


def test_a_node_is_read_whole() -> None:
    """The node of document 003 (003-6), with the sums its mock device plugin announces."""
    (node,) = decoded(NODE).nodes

    assert (3920, 15147952 * 1024, 18181869946, 58) == tuple(
        node.allocatable[name] for name in ("cpu", "memory", "ephemeral-storage", "pods")
    )
    assert Resources({"cpu": 4000}) == node.capacity.without(set(node.capacity) - {"cpu"})
    assert ((Taint("a", "", "NoExecute"),), "aws:///i-1", True) == (
        node.taints,
        node.provider_id,
        node.is_unschedulable,
    )
    assert (False, node.created_s + 300) == (node.is_ready, node.ready_since_s)


def test_a_node_keeps_its_conditions_without_their_words() -> None:
    """Type, status, reason and the time of the last change, by type: a heartbeat and new words change nothing."""
    status = """
    - {type: Ready, status: "True", reason: KubeletReady, lastTransitionTime: 2026-01-05T07:05:00Z,
       lastHeartbeatTime: %s, message: %s}
    - {type: AcceleratedHardwareReady, status: "False", reason: NvidiaXID79, lastTransitionTime: 2026-01-05T07:06:00Z}
    """
    metadata = "apiVersion: v1\nkind: Node\nmetadata: {name: n, creationTimestamp: 2026-01-05T07:00:00Z}\nstatus:\n"
    said = [status % ("2026-01-05T08:00:00Z", "is up"), status % ("2026-01-05T08:05:00Z", "is up for 5m")]
    (node,), (later,) = (decoded(f"{metadata}  conditions:{each}").nodes for each in said)

    assert node == later
    assert (
        Condition("AcceleratedHardwareReady", "False", "NvidiaXID79", since_s=node.created_s + 360),
        Condition("Ready", "True", "KubeletReady", since_s=node.created_s + 300),
    ) == node.conditions
    assert (node.conditions[0], None) == (node.condition("AcceleratedHardwareReady"), node.condition("DiskPressure"))


def test_a_condition_of_a_node_may_have_any_status() -> None:
    """As for the API server: what an agent writes must not hide the node from those who plan with it."""
    conditions = "[{type: Ready, status: 'True'}, {type: FabricReady, status: degraded}]"
    (node,) = decoded(f"apiVersion: v1\nkind: Node\nmetadata: {{name: n}}\nstatus: {{conditions: {conditions}}}").nodes

    assert (True, ["degraded", "True"]) == (node.is_ready, [each.status for each in node.conditions])


@pytest.mark.parametrize("metadata, is_ready", [("name: n", True), ("name: n, uid: u", False)])
def test_a_node_without_conditions_is_ready_only_in_a_manifest(metadata: str, is_ready: bool) -> None:
    """A live node without a Ready condition has just registered."""
    (node,) = decoded(f"apiVersion: v1\nkind: Node\nmetadata: {{{metadata}}}").nodes

    assert is_ready is node.is_ready


@pytest.mark.parametrize(
    "status, expected",
    [
        ("{}", NodeClass("karpenter.k8s.aws", "EC2NodeClass", "default")),
        (
            "{conditions: [{type: Ready, status: 'False', message: no subnets}]}",
            NodeClass("karpenter.k8s.aws", "EC2NodeClass", "default", False, "no subnets"),
        ),
    ],
)
def test_a_node_class_is_ready_unless_it_says_otherwise(status: str, expected: NodeClass) -> None:
    """Its spec is its vendor's and not looked into."""
    text = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: {role: x}\nstatus: "

    (found,) = decoded(text + status).node_classes
    assert expected == replace(found, conditions=())


def test_a_node_class_that_is_being_deleted_is_not_ready() -> None:
    """Whatever its conditions say: nothing is launched of it any more, as by Karpenter."""
    metadata = "{name: default, deletionTimestamp: 2026-01-05T12:00:00Z, finalizers: [karpenter.k8s.aws/termination]}"
    status = "{conditions: [{type: Ready, status: 'True'}]}"
    text = f"apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {metadata}\nstatus: {status}"

    (found,) = decoded(text).node_classes
    assert (False, "it is being deleted") == (found.is_ready, found.reason)


@pytest.mark.parametrize(
    "spec, status, allowed",
    [
        ("minAvailable: 2", "{}", 1),
        ("minAvailable: 50%", "{}", 1),
        ("maxUnavailable: 1", "{}", 1),
        ("maxUnavailable: 34%", "{}", 2),
        ("maxUnavailable: 0", "{}", 0),
        ("minAvailable: 2", "{disruptionsAllowed: 3}", 3),
    ],
)
def test_a_budget_without_status_counts_its_running_pods(spec: str, status: str, allowed: int) -> None:
    """Three running pods; percentages are rounded up, as the disruption controller does."""
    pods = [
        pod_text(metadata="uid: u, labels: {app: a}", status="phase: Running").replace("name: p", f"name: p{n}")
        for n in "123"
    ]
    budget = f"""
        apiVersion: policy/v1
        kind: PodDisruptionBudget
        metadata: {{name: b}}
        spec: {{selector: {{matchLabels: {{app: a}}}}, {spec}}}
        status: {status}
    """
    (read,) = decoded(budget, *pods).disruption_budgets

    assert allowed == read.disruptions_allowed


def test_a_budget_without_a_selector_covers_nothing() -> None:
    """policy/v1: null selects no pods, an empty selector all of them."""
    text = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: "
    some = decoded(pod_text()).pods[0]

    assert not decoded(text + "{minAvailable: 1}").disruption_budgets[0].covers(some)
    assert decoded(text + "{selector: {}}").disruption_budgets[0].covers(some)


def test_config_maps_and_quotas_are_read() -> None:
    """HAMi's configuration, and the quotas it enforces."""
    read = decoded(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: kube-system}\ndata: {a.yaml: 'x: 1'}",
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: "
        "{hard: {limits.nvidia.com/gpumem: 4k, requests.cpu: 2}}",
    )

    assert (ConfigMap("kube-system", "c", {"a.yaml": "x: 1"}),) == read.config_maps
    assert (ResourceQuota("default", "q", {"limits.nvidia.com/gpumem": 4000, "requests.cpu": 2000}),) == read.quotas


def test_scopes_of_a_quota_are_read() -> None:
    """Both lists, which all must select a pod; without an operator a scope is there or not."""
    read = decoded(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec:\n  scopes: [NotTerminating]\n"
        "  scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [b, a]}]}"
    )

    scopes = QuotaScope("NotTerminating"), QuotaScope("PriorityClass", "In", ("a", "b"))
    assert (ResourceQuota("default", "q", {}, scopes=scopes),) == read.quotas


def test_kinds_that_are_not_read_are_counted() -> None:
    """001's autoscaler and pod monitor; also a StatefulSet that is not Kubernetes' own."""
    other = "apiVersion: {}\nkind: {}\nmetadata: {{name: x}}"

    assert {"HorizontalPodAutoscaler": 2, "StatefulSet": 1} == decoded(
        other.format("autoscaling/v2", "HorizontalPodAutoscaler"),
        other.format("autoscaling/v2", "HorizontalPodAutoscaler"),
        other.format("apps.kruise.io/v1", "StatefulSet"),
        other.format("v1", "Namespace"),
    ).skipped_kinds


@pytest.mark.parametrize("version, kind, expected", [("v1", "Deployment", "apps/v1"), ("apps/v1", "Job", "batch/v1")])
def test_a_kind_in_a_wrong_group_is_refused(version: str, kind: str, expected: str) -> None:
    """It would be missed silently."""
    assert f"apiVersion: expected {expected}, got '{version}'" in refusal(
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}"
    )


def test_two_documents_of_one_object_are_refused() -> None:
    """Nobody knows which is meant; the error names both places."""
    assert "in.yaml:9:18: metadata.name: expected one Pod of this name, the first stands at in.yaml:1:1, got 'p'" == (
        refusal(pod_text(), pod_text())
    )


def test_the_order_of_documents_does_not_matter() -> None:
    """Every tuple is in name order, and a LimitRange may stand after the pods it changes."""
    limits = "{type: Container, default: {cpu: 2}}"
    texts = [
        pod_text(metadata="uid: u"),
        pod_text().replace("name: p", "name: a"),
        f"apiVersion: v1\nkind: LimitRange\nmetadata: {{name: l}}\nspec: {{limits: [{limits}]}}",
        NODE,
    ]
    readings = [decoded(*order) for order in itertools.permutations(texts)]
    shapes = {tuple((pod.name, pod.spec) for pod in read.pods) for read in readings}

    assert 1 == len(shapes)
    assert {("a", "p")} == {tuple(pod.name for pod in read.pods) for read in readings}


def test_objects_without_a_creation_time_are_as_new_as_the_newest_instant() -> None:
    """So that nothing counts as expired only because its manifest has no time."""
    read = decoded(NODE, pool_text(), pod_text())

    assert read.nodes[0].created_s + 300 == read.newest_s == read.node_pools[0].created_s == read.pods[0].created_s


def test_without_any_instant_there_is_no_newest() -> None:
    """Then times stay zero."""
    assert (None, 0) == (decoded(pod_text()).newest_s, decoded(pod_text()).pods[0].created_s)


@dataclass(frozen=True)
class Placeless:
    """A document that counts as broken when it is asked for its line and column."""

    raw: Any
    source: str = "here"

    def value(self) -> Any:
        """The plain value."""
        return self.raw

    def place(self, path: object = (), *, at_key: bool = False) -> str:
        """Costs a search through the whole file."""
        raise AssertionError(f"{path} was looked for")

    def near(self, path: object = ()) -> str:
        """Costs less, and is not asked for either."""
        raise AssertionError(f"{path} was looked for")

    def written(self, path: object) -> str:
        """Costs as much."""
        raise AssertionError(f"{path} was looked for")

    def may_be(self, kind: str) -> bool:
        """Always perhaps."""
        return True


def test_a_document_that_decodes_is_never_searched_for_places() -> None:
    """Otherwise a list of 100,000 pods would cost hours instead of seconds."""
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}

    assert ["here"] == [pod.source for pod in decode(Documents((Placeless(raw),))).pods]


@pytest.mark.parametrize(
    ("spec", "is_blocking"),
    [
        ("maxUnavailable: 0", True),
        ("maxUnavailable: 0%", True),
        ("minAvailable: 100%", True),
        ("maxUnavailable: 1", False),
        ("minAvailable: 99%", False),
        ("minAvailable: 1", False),
    ],
)
def test_a_budget_that_never_allows_an_eviction_is_known_by_its_spec(spec: str, is_blocking: bool) -> None:
    """As Karpenter's: a number of pods may be reached, whatever its status says now."""
    text = f"""
        apiVersion: policy/v1
        kind: PodDisruptionBudget
        metadata: {{name: b}}
        spec: {{selector: {{matchLabels: {{app: a}}}}, {spec}}}
        status: {{disruptionsAllowed: 0}}
    """
    (read,) = decoded(text).disruption_budgets

    assert is_blocking == read.is_blocking


@pytest.mark.parametrize(("policy", "lets_go"), [("AlwaysAllow", True), ("IfHealthyBudget", False)])
def test_a_budget_that_lets_pods_go_that_are_not_ready_is_known(policy: str, lets_go: bool) -> None:
    """The default leaves it to the API, which counts what is healthy."""
    text = f"""
        apiVersion: policy/v1
        kind: PodDisruptionBudget
        metadata: {{name: b}}
        spec: {{selector: {{}}, maxUnavailable: 1, unhealthyPodEvictionPolicy: {policy}}}
    """
    (read,) = decoded(text).disruption_budgets

    assert lets_go == read.lets_unready_go


ENDING: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "web",
        "creationTimestamp": "2026-01-05T06:00:00Z",
        "deletionTimestamp": "2026-01-05T09:05:00Z",
        "deletionGracePeriodSeconds": 600,
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 900},
}


def ending(now: str | None = None, *, is_list: bool = True, grace: int | None = 600) -> Decoded:
    """A pod that ends at 09:05, as a server lists it or as a document of its own."""
    pod = {**ENDING, "metadata": {**ENDING["metadata"], "deletionGracePeriodSeconds": grace}}
    listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [pod]}
    text = json.dumps(listed if is_list else {"apiVersion": "v1", "kind": "Pod", **pod})
    return decode(parse(text, "in.json"), None if now is None else instant_s(now))


@pytest.mark.parametrize("is_list", [True, False])
def test_the_deletion_of_a_pod_is_as_old_as_its_grace(is_list: bool) -> None:
    """Its timestamp is the end of the grace, so an input is no older than ten minutes before; without the grace of the
    deletion that of the pod counts."""
    assert instant_s("2026-01-05T08:55:00Z") == ending(is_list=is_list).newest_s
    assert instant_s("2026-01-05T08:50:00Z") == ending(is_list=is_list, grace=None).newest_s


@pytest.mark.parametrize("is_list", [True, False])
def test_at_an_instant_before_its_deletion_a_pod_begins_to_end(is_list: bool) -> None:
    """It takes its grace from then on: no pod ends for hours that has ten minutes."""
    early, in_time = "2026-01-05T06:00:00Z", "2026-01-05T09:00:00Z"

    assert [instant_s(early) + 600] == [pod.deleted_s for pod in ending(early, is_list=is_list).pods]
    assert [instant_s("2026-01-05T09:05:00Z")] == [pod.deleted_s for pod in ending(in_time, is_list=is_list).pods]
