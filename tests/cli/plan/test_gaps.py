"""Dumps of some kinds: what the plan knows all the same, and what it says that it does not know."""

import json
from pathlib import Path

import pytest
import yaml

from kerf.cli.inputs.input import Source, read_input
from tests.cli.explain.test_patches import HASH, MAIN, a_deployment, a_node, a_pool, an_object, planned
from tests.cli.program import ROOT
from tests.patches import Object

RUNNING: Object = {"phase": "Running"}
SPEC: Object = {"containers": [{**MAIN, "resources": {"requests": {"cpu": "3"}}}]}


def a_pool_node() -> Object:
    """Node n1 of pool blue."""
    node = a_node()
    node["metadata"]["labels"].update({"karpenter.sh/nodepool": "blue", "karpenter.sh/capacity-type": "on-demand"})
    return node


def on_node(objects: list[Object]) -> list[Object]:
    """The same with the pod on n1."""
    *others, pod = objects
    return [*others, {**pod, "spec": {**pod["spec"], "nodeName": "n1"}}]


def with_more(objects: list[Object], replicas: int) -> list[Object]:
    """The same with so many replicas."""
    top, *others = objects
    return [{**top, "spec": {**top["spec"], "replicas": replicas}}, *others]


def test_without_claims_nodes_count_at_their_prices_and_against_limits() -> None:
    """By their label; none of them is removed, and the plan says so."""
    pool = a_pool()
    pool["spec"]["limits"] = {"nodes": "1"}
    pool["spec"]["disruption"] = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    objects = with_more(on_node(a_deployment(SPEC, RUNNING)), 2)

    done = planned([pool, a_pool_node(), *objects])

    assert "cost: 0.192 -> 0.192 USD/h" in done.stdout
    assert "limit nodes 1 of NodePool blue: 1 in use" in done.stdout
    assert "note: the input has no NodeClaims: 1 node (n1) of NodePools by label" in done.stdout
    assert "delete" not in planned([pool, a_pool_node(), *on_node(a_deployment(SPEC, RUNNING))[:1]]).stdout


def test_a_node_without_an_id_of_its_instance_is_one_node(tmp_path: Path) -> None:
    """Written by hand it may lack `spec.providerID`, by which a claim finds its node."""
    node = a_pool_node()
    node["spec"] = {}
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [a_pool(), node]}), encoding="utf-8")

    (found,) = read_input(Source(files=(str(path),), catalog="aws")).snapshot.nodes

    assert found.node is not None
    assert found.claim is not None


@pytest.mark.parametrize("has_hash", [True, False])
def test_without_replica_sets_pods_that_run_are_not_bought_for_again(has_hash: bool) -> None:
    """Their owner's name and their labels say whose they are."""
    top, _, pod = on_node(a_deployment(SPEC, RUNNING))
    assert HASH in pod["metadata"]["ownerReferences"][0]["name"]
    if not has_hash:
        del pod["metadata"]["labels"]["pod-template-hash"]

    done = planned([a_pool(), a_pool_node(), top, pod])

    assert "0 pods placed, 0 not" in done.stdout


def test_a_pod_of_another_with_such_a_name_is_not_taken_for_it() -> None:
    """Without the hash its labels must be those of the template."""
    top, _, pod = on_node(a_deployment(SPEC, RUNNING))
    pod["metadata"]["labels"] = {"app": "other"}

    assert "1 pod placed" in planned([a_pool(), a_pool_node(), top, pod]).stdout


def test_without_daemon_sets_the_plan_says_what_new_nodes_lack() -> None:
    """Their pods tell that there are some."""
    agent = an_object(
        "Pod", "agent-x", an_object("DaemonSet", "agent"), spec={**SPEC, "nodeName": "n1"}, status=RUNNING
    )
    done = planned([a_pool(), a_pool_node(), agent])

    assert "note: the input has no DaemonSets, though pods are of data/agent: what they ask is missing" in done.stdout


def test_without_priority_classes_the_plan_says_which_are_missing() -> None:
    """Pods that name one are planned, with the priority that they state."""
    named = {**SPEC, "priorityClassName": "high"}
    note = "note: the input has no PriorityClass high: its pods count with the priority that they state, or 0"

    new = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": named}

    assert note in planned([a_pool(), new]).stdout
    assert note in planned([a_pool(), *a_deployment(named)[:1]]).stdout
    assert note not in planned([a_pool(), an_object("Pod", "p", spec=SPEC)]).stdout


def test_without_pods_the_plan_says_that_nodes_count_as_empty() -> None:
    """Also where none of the pods has a node; explain says it too."""
    top = a_deployment(SPEC)[0]
    note = "note: the input has no pod with a node: 1 node (n1) count"

    assert note in planned([a_pool(), a_pool_node(), top]).stdout
    assert note in planned([a_pool(), a_pool_node(), top], "explain", "deployment/web", "-n", "data").stdout


def a_claim(pool: str = "blue") -> Object:
    """The initialised NodeClaim of n1."""
    stages = ("Launched", "Registered", "Initialized", "Ready")
    conditions = [{"type": stage, "status": "True"} for stage in stages]
    labels = {"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": "m5.xlarge"}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "blue-1", "labels": labels},
        "spec": {"nodeClassRef": reference, "requirements": []},
        "status": {"nodeName": "n1", "providerID": "aws:///a/i-1", "conditions": conditions},
    }


def test_without_nodes_the_plan_says_what_is_not_known_of_their_pods_and_claims() -> None:
    """What pods use, and cards that could take more; `kerf nodes` says that the Node is gone."""
    objects = [a_pool(), a_claim(), *on_node(a_deployment(SPEC, RUNNING))]

    done = planned(objects)

    assert "note: the input has no Node n1 of 1 pod (data/" in done.stdout
    assert "note: the input has no Node of 1 NodeClaim (blue-1) with the condition Initialized: they" in done.stdout
    assert "no-node" in planned(objects, "nodes").stdout


def test_without_the_pool_of_claims_the_plan_says_so() -> None:
    """Nothing is bought from it and none of its nodes goes."""
    done = planned([a_pool(), a_claim("red"), a_pool_node()])

    assert "note: the input has no NodePool red of 1 NodeClaim (blue-1): these nodes count at their" in done.stdout


@pytest.mark.parametrize(("labels", "is_said"), [({}, True), ({"app": "other"}, False)])
def test_pods_without_owners_that_look_like_a_workloads_are_said(labels: Object, is_said: bool) -> None:
    """By name and labels; they may be planned once more."""
    top, _, pod = on_node(a_deployment(SPEC, RUNNING))
    del pod["metadata"]["ownerReferences"]
    pod["metadata"]["labels"].update(labels)

    done = planned([a_pool(), a_pool_node(), top, pod])

    assert is_said == ("of the input without ownerReferences may be of deployment/data/web: they do not" in done.stdout)


def test_a_whole_input_has_no_such_note() -> None:
    """Nor has one without nodes."""
    top = a_deployment(SPEC)[0]

    assert "the input has no" not in planned([a_pool(), top]).stdout


def test_of_pods_whose_manifest_names_a_node_it_is_said_why_nothing_is_bought() -> None:
    """Whether there is such a node, too. Of pods that run, and so have one, it is not."""
    top = a_deployment({**SPEC, "nodeName": "n9"})[0]

    done = planned([a_pool(), a_pool_node(), top])
    told = planned([a_pool(), a_pool_node(), top], "explain", "deployment/web", "-n", "data")
    running = planned([a_pool(), a_pool_node(), *on_node(a_deployment(SPEC, RUNNING))])

    assert (
        "note: Deployment data/web names node n9 (nodeName): no scheduler sees the pod, and nothing is bought; no node "
        "of that name is known" in done.stdout
    )
    assert "launch" not in done.stdout
    assert "their manifest names the node (nodeName): no scheduler sees them" in told.stdout
    assert "(nodeName)" not in running.stdout


def test_a_pool_of_a_provider_that_is_not_known_is_planned_and_named() -> None:
    """Else another cloud's prices would pass for its own."""
    pool = a_pool()
    pool["spec"]["template"]["spec"]["nodeClassRef"]["group"] = "karpenter.azure.com"

    said = "note: NodePool blue: Kerf knows no provider of karpenter.azure.com, so its types and prices are those of"
    assert said in planned([pool, *a_deployment(SPEC, RUNNING)]).stdout


WITH_CLAIM: Object = {**SPEC, "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}]}


def a_volume_claim(name: str) -> Object:
    """A PersistentVolumeClaim that is not bound."""
    return {**an_object("PersistentVolumeClaim", name, spec={"accessModes": ["ReadWriteOnce"]}), "apiVersion": "v1"}


def test_a_pod_with_a_claim_is_planned_where_no_claim_was_read() -> None:
    """As with StorageClasses that a file lacks; the note says what the claim was taken to ask."""
    done = planned([a_pool(), *a_deployment(WITH_CLAIM)])

    assert "1 pod placed, 0 not" in done.stdout
    assert "note: 1 pod with PersistentVolumeClaim models, and the input has no PersistentVolumeClaim: " in done.stdout


def test_a_claim_is_missing_where_others_were_read() -> None:
    """A file with claims has all of them: this one is to be made."""
    done = planned([a_pool(), a_volume_claim("other"), *a_deployment(WITH_CLAIM)])

    assert 'persistentvolumeclaim "models" not found' in done.stdout
    assert "hint: no node would help: create the claim" in done.stdout


def over_time(*more: Object, mounts: bool = False) -> list[Object]:
    """The cluster of the guide in which one node is replaced and its two pods move; they mount a claim."""
    text = (ROOT / "examples/nodes-over-time/cluster.yaml").read_text(encoding="utf-8")
    objects: list[Object] = [each for each in yaml.safe_load_all(text) if each]
    for each in objects:
        if mounts and each["kind"] == "Pod" and each["spec"].get("nodeName") == "large":
            each["spec"]["volumes"] = WITH_CLAIM["volumes"]
    return [*objects, *more]


def steps_of(objects: list[Object]) -> str:
    """What `kerf plan --consolidate` prints of them at the hour of the guide."""
    return planned(objects, "plan", "--consolidate", "--now", "2026-01-05T08:00:00Z").stdout


def test_a_pod_that_runs_stays_where_its_claims_were_not_read() -> None:
    """Its volume may be in the zone of its node alone; without the mount its node is replaced."""
    objects, now = over_time(mounts=True), ("--now", "2026-01-05T08:00:00Z")
    steps = planned(objects, "plan", "--consolidate", "-o", "json", *now).data["steps"]
    note = "the input has no PersistentVolumeClaims of 2 pods (default/shop-0, default/shop-1) with a node"

    assert "large" not in [each["node"] for step in steps for each in step["nodes"]]
    assert note in planned(objects, "plan", *now).stdout


BUDGET: Object = {
    **an_object(
        "PodDisruptionBudget", "cache", spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": "none"}}}
    ),
    "apiVersion": "policy/v1",
}


def test_without_budgets_it_is_said_whose_pods_they_might_hold() -> None:
    """Both where the steps are listed and in a plan; a file with one budget has all of them."""
    note = "note: the input has no PodDisruptionBudget: whether one holds the 2 pods of large is not known"

    assert note in steps_of(over_time())
    assert note in planned(over_time(), "plan", "--now", "2026-01-05T08:00:00Z").stdout
    assert "PodDisruptionBudget" not in steps_of(over_time(BUDGET))


def beside_q(kind: str, selector: Object) -> list[Object]:
    """Pod q of namespace q, with a label, on n1, and a pod of another namespace that is to be with it, or away."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"x": "y"}},
        "namespaceSelector": selector,
    }
    spec: Object = {**SPEC, "affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    there = an_object("Pod", "q", spec={"containers": [MAIN], "nodeName": "n1"}, status=RUNNING)
    there["metadata"].update({"namespace": "q", "labels": {"x": "y"}, "uid": "q"})
    node = a_pool_node()
    return [a_pool(), node, {**there, "apiVersion": "v1"}, *a_deployment(spec)]


def a_namespace(name: str, labels: Object) -> Object:
    """A Namespace with labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


TEAM: Object = {"matchLabels": {"team": "q"}}
UNREAD = "whether a namespaceSelector of"


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_without_namespaces_it_is_said_that_selectors_of_them_are_not_known_to_take_any(kind: str) -> None:
    """Their labels are not there to be asked; those of each that pods name are needed, and then no note is."""
    objects = beside_q(kind, TEAM)
    both = [a_namespace("q", {"team": "q"}), a_namespace("data", {})]

    assert (
        f"note: the input has no Namespace data, q: {UNREAD} deployment/data/web, pod data/web-"
        in planned(objects).stdout
    )
    assert (
        f"note: the input has no Namespace q: {UNREAD} deployment/data/web, pod data/web-"
        in planned([*objects, both[1]]).stdout
    )
    assert UNREAD not in planned([*objects, *both]).stdout


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {"kubernetes.io/metadata.name": "q"}}])
def test_a_namespace_that_a_pod_names_is_there_with_its_name(selector: Object) -> None:
    """The server gives every one that label, so nothing is missing, and the pods on n1 and of q are together."""
    done = planned(beside_q("podAffinity", selector))

    assert UNREAD not in done.stdout
    assert "goes to n1" in done.stdout


def test_where_a_namespace_was_not_read_no_pod_is_to_change() -> None:
    """The hint asks for the Namespace: with its label the pod has a place as it is."""
    objects = beside_q("podAffinity", TEAM)
    told = "hint: add Namespace q to the input: whether the namespaceSelector of the pod affinity takes namespace q"

    assert told in planned(objects).stdout
    assert "kubectl patch" not in planned(objects).stdout
    assert "goes to n1" in planned([*objects, a_namespace("q", {"team": "q"})]).stdout
