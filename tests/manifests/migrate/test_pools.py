"""Provisioners and v1beta1 pools: each field's place of today, and the defaults that are others today."""

import pytest

from kerf.manifests.migrate.objects import FieldOutcome
from kerf.manifests.migrate.requirements import Concern
from tests.manifests.migrate.migrating import TEMPLATE, migrated, outcomes, provisioner, row, spec_of

LINUX = [
    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
]
ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
ANY_TYPE = [
    {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
    {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
]
BETA = """
    apiVersion: karpenter.sh/v1beta1
    kind: NodePool
    metadata: {name: p}
    spec:
      template:
        spec:
          nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}
          requirements: []
"""


def test_a_bare_provisioner_keeps_its_defaults() -> None:
    """Nodes stay when empty, never expire, and are on-demand Linux of the usual families."""
    spec = spec_of(provisioner())

    assert {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"} == spec["disruption"]
    template = spec["template"]["spec"]
    assert "Never" == template["expireAfter"]
    assert [*LINUX, ON_DEMAND, *ANY_TYPE] == template["requirements"]
    assert {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"} == template["nodeClassRef"]


@pytest.mark.parametrize(
    ("lines", "policy", "after"),
    [
        ("ttlSecondsAfterEmpty: 300", "WhenEmpty", "300s"),
        ("ttlSecondsAfterEmpty: 0", "WhenEmpty", "0s"),
        ("consolidation: {enabled: true}", "WhenEmptyOrUnderutilized", "0s"),
        ("consolidation: {enabled: false}", "WhenEmpty", "Never"),
        ("consolidation: {enabled: false}\nttlSecondsAfterEmpty: 30", "WhenEmpty", "30s"),
        ("consolidation: {enabled: true}\nttlSecondsAfterEmpty: 30", "WhenEmptyOrUnderutilized", "30s"),
    ],
)
def test_when_empty_nodes_go(lines: str, policy: str, after: str) -> None:
    """001-14: the seconds as they were; without them never."""
    assert {"consolidationPolicy": policy, "consolidateAfter": after} == spec_of(provisioner(lines))["disruption"]


def test_two_ways_at_once_have_to_be_looked_at() -> None:
    """v1alpha5 refused consolidation beside ttlSecondsAfterEmpty."""
    made = migrated(provisioner("consolidation: {enabled: true}\nttlSecondsAfterEmpty: 30"))

    assert row(made, "spec.ttlSecondsAfterEmpty").needs_look


def test_an_age_becomes_a_duration() -> None:
    """With a note that expiry drains at once today."""
    lines = "ttlSecondsUntilExpired: 2592000"

    assert "2592000s" == spec_of(provisioner(lines))["template"]["spec"]["expireAfter"]
    assert "forceful" in row(migrated(provisioner(lines)), "spec.ttlSecondsUntilExpired").hint


def test_the_rest_of_a_provisioner_finds_its_place() -> None:
    """Labels, annotations, taints, startup taints, limits and weight."""
    spec = spec_of(
        provisioner("""
            labels: {team: a}
            annotations: {note: b, karpenter.sh/do-not-consolidate: "true"}
            taints: [{key: c, value: d, effect: NoSchedule}]
            startupTaints: [{key: e, value: "", effect: NoExecute}]
            limits: {resources: {cpu: 1000, memory: 1000Gi, nvidia.com/gpu: 1.0}}
            weight: 50
        """)
    )
    template = spec["template"]

    assert {"team": "a"} == template["metadata"]["labels"]
    assert {"note": "b", "karpenter.sh/do-not-disrupt": "true"} == template["metadata"]["annotations"]
    assert [{"key": "c", "value": "d", "effect": "NoSchedule"}] == template["spec"]["taints"]
    assert [{"key": "e", "effect": "NoExecute"}] == template["spec"]["startupTaints"]
    assert {"cpu": 1000, "memory": "1000Gi", "nvidia.com/gpu": "1.0"} == spec["limits"]
    assert 50 == spec["weight"]


def test_a_small_gpu_limit_says_what_it_limits() -> None:
    """001-8: the pool's total, and how to cap a node. A large one is plainly a total."""
    made = migrated(provisioner("limits: {resources: {nvidia.com/gpu: 4, amd.com/gpu: 400}}"))
    small = row(made, 'spec.limits.resources["nvidia.com/gpu"]')

    assert FieldOutcome.KEPT == small.outcome
    assert small.hint.endswith("add the requirement karpenter.k8s.aws/instance-gpu-count Lt 5")
    assert "" == row(made, 'spec.limits.resources["amd.com/gpu"]').hint


@pytest.mark.parametrize(
    ("requirement", "why", "hint"),
    [
        (
            "{key: accelerator/type, operator: In, values: [nvidia.com/gpu]}",
            "has no `/`",
            "gpu-manufacturer In [nvidia]",
        ),
        ("{key: a, operator: In, values: ['-x']}", "begins or ends with a sign", ""),
        ("{key: karpenter.sh/provisioner-name, operator: In, values: [p]}", "its own name", "karpenter.sh/nodepool"),
        ("{key: karpenter.sh/initialized, operator: Exists}", "reserved", "a domain of your own"),
        ("{key: kubernetes.io/hostname, operator: Exists}", "every node has another one", ""),
        ("{key: karpenter.k8s.aws/instance-pods, operator: Gt, values: ['4']}", "gone since 0.32", "maxPods"),
        ("{key: karpenter.k8s.aws/instance-price, operator: Lt, values: ['4']}", "unknown keys", "instance-family"),
        ("{key: a..b, operator: Exists, values: []}", "", ""),
        ("{key: a b/c, operator: Exists}", "no label key", ""),
        ("{key: a, operator: Gt, values: [x]}", "exactly one whole number", ""),
        ("{key: a, operator: In}", "needs a value", ""),
    ],
)
def test_a_requirement_that_selects_nothing(requirement: str, why: str, hint: str) -> None:
    """001-6: left out, with why, and what was probably meant; all others are kept."""
    made = migrated(provisioner(f"requirements: [{requirement}]"))
    found = row(made, "spec.requirements[0]")

    assert (FieldOutcome.NOT_KEPT if why else FieldOutcome.KEPT) == found.outcome
    assert why in found.why
    assert hint in found.hint
    assert found.needs_look is bool(why)
    assert "in.yaml:6:18" == found.place


def test_old_keys_of_kubernetes_are_written_as_today() -> None:
    """And what is no field of a requirement is told."""
    made = migrated(
        provisioner("requirements: [{key: beta.kubernetes.io/arch, operator: In, values: [arm64], minimum: 1}]")
    )

    assert {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]} == (
        made.objects[0].value["spec"]["template"]["spec"]["requirements"][0]
    )
    assert [FieldOutcome.CHANGED, FieldOutcome.NOT_KEPT] == outcomes(
        made, "spec.requirements[0]", "spec.requirements[0].minimum"
    )


def test_types_become_a_requirement_and_are_judged() -> None:
    """001-9: all stay; the one that is not sold is told, with what is."""

    def offers(name: str) -> Concern | None:
        return Concern(f"{name} is gone", "take g6") if name == "p3.2xlarge" else None

    made = migrated(provisioner("instanceTypes: [p3.2xlarge, g4dn.xlarge]"), offers=offers)
    found = row(made, "spec.instanceTypes")

    assert {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": ["p3.2xlarge", "g4dn.xlarge"],
    } == made.objects[0].value["spec"]["template"]["spec"]["requirements"][0]
    assert (FieldOutcome.CHANGED, True, "take g6") == (found.outcome, found.needs_look, found.hint)
    assert found.why.endswith("p3.2xlarge is gone")


@pytest.mark.parametrize(
    ("name", "told"), [("maxTasksPerNode", "replicas"), ("pollInterval", "batchIdleDuration"), ("price", "max-price")]
)
def test_keys_that_never_existed_say_what_to_use(name: str, told: str) -> None:
    """001-22, 001-24, 001-28."""
    found = row(migrated(provisioner(f"{name}: 2")), f"spec.{name}")

    assert (FieldOutcome.NOT_KEPT, True) == (found.outcome, found.needs_look)
    assert told in found.hint


def test_what_servers_write_is_left_out_and_needs_no_look() -> None:
    """A dump of a cluster migrates as the manifest does."""
    made = migrated(
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\n"
        "metadata: {name: p, uid: x, resourceVersion: '1', creationTimestamp: '2023-01-01T00:00:00Z', generation: 2,\n"
        "  annotations: {kubectl.kubernetes.io/last-applied-configuration: x}, finalizers: [a/b]}\n"
        "spec: {providerRef: {name: default}}\nstatus: {conditions: [{type: Ready, status: 'True'}]}"
    )

    assert {"name": "p"} == made.objects[0].value["metadata"]
    assert not made.needs_look


def test_a_beta_pool_moves_its_expiry_and_renames_its_policy() -> None:
    """And leaves out what is today's default."""
    spec = spec_of(BETA + "      disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 100h}")

    assert {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"} == spec["disruption"]
    assert {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [],
        "expireAfter": "100h",
    } == spec["template"]["spec"]
    assert "disruption" not in spec_of(BETA)


def test_pools_that_share_a_class_share_its_kubelet_or_get_their_own() -> None:
    """The settings of the kubelet belong to the class today."""
    same = spec_of(provisioner("kubeletConfiguration: {maxPods: 20, kubeReserved: {cpu: 1}}"), TEMPLATE, at=1)
    assert {"maxPods": 20, "kubeReserved": {"cpu": "1"}} == same["kubelet"]

    made = migrated(
        provisioner("kubeletConfiguration: {maxPods: 20}", "a"),
        provisioner("kubeletConfiguration: {maxPods: 30}", "b"),
        provisioner("kubeletConfiguration: {maxPods: 30}", "c"),
        TEMPLATE,
    )
    pools, classes = made.objects[:3], made.objects[3:]
    assert {"default": 20, "default-b": 30} == {
        new.value["metadata"]["name"]: new.value["spec"]["kubelet"]["maxPods"] for new in classes
    }
    assert ["default", "default-b", "default-b"] == [
        new.value["spec"]["template"]["spec"]["nodeClassRef"]["name"] for new in pools
    ]


def test_a_pool_without_settings_keeps_its_class_without_them() -> None:
    """The other pool gets one of its own."""
    made = migrated(provisioner("", "a"), provisioner("kubeletConfiguration: {maxPods: 30}", "b"), TEMPLATE)

    assert [False, True] == ["kubelet" in new.value["spec"] for new in made.objects[2:]]


def test_settings_of_a_class_that_is_not_in_the_input_are_reported() -> None:
    """Nobody knows then what else the class says."""
    found = row(migrated(provisioner("kubeletConfiguration: {maxPods: 30}")), "spec.kubeletConfiguration")

    assert (FieldOutcome.NOT_KEPT, True) == (found.outcome, found.needs_look)


def test_a_claim_of_beta_and_a_machine() -> None:
    """One is rewritten, the other is nobody's to write."""
    made = migrated(
        "apiVersion: karpenter.sh/v1beta1\nkind: NodeClaim\nmetadata: {name: c}\n"
        "spec: {nodeClassRef: {name: default}, requirements: [], resources: {requests: {cpu: 1}},\n"
        "  kubelet: {maxPods: 3}}",
        "apiVersion: karpenter.sh/v1alpha5\nkind: Machine\nmetadata: {name: m}\nspec: {a: b}",
    )

    assert ["NodeClaim c"] == [new.title for new in made.objects]
    assert {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"} == (
        made.objects[0].value["spec"]["nodeClassRef"]
    )
    assert FieldOutcome.NOT_KEPT == row(made, "spec.kubelet").outcome
    assert ["Machine m"] == [
        found.subject for found in made.rows if found.outcome is FieldOutcome.NOT_KEPT and not found.path
    ]
