"""Whose a pool's cards are, by what the input says of device plugins."""

from pathlib import Path

import pytest

from kerf.cli.main import run
from tests.scenarios.documents import planned

POOLS = """
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: cpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: ["c5.xlarge"]}
        - {key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    metadata: {labels: {gpu: "on"}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: ["g5.xlarge"]}
        - {key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}
"""
TIME_SLICING = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: time-slicing-config, namespace: gpu-operator}
data:
  any: |-
    version: v1
    sharing:
      timeSlicing:
        renameByDefault: true
        resources: [{name: nvidia.com/gpu, replicas: 6}]
"""
HAMI_MAP = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hami-scheduler-device, namespace: kube-system}
data: {device-config.yaml: "nvidia: {}"}
"""
DAEMON = """
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: gpu-operator}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec: {containers: [{name: plugin, image: nvcr.io/nvidia/k8s-device-plugin:v0.17.4}]}
"""


def pods(number: int, asked: str, spec: str = "") -> str:
    """A Deployment of so many pods that ask for that."""
    return f"""
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: app, namespace: default}}
spec:
  replicas: {number}
  selector: {{matchLabels: {{app: app}}}}
  template:
    metadata: {{labels: {{app: app}}}}
    spec:
      {spec}
      containers: [{{name: main, image: app, resources: {{requests: {{cpu: 100m}}, limits: {{{asked}}}}}}}]
"""


def test_a_pool_labelled_for_hami_is_nvidias_where_only_nvidias_plugin_is_configured() -> None:
    """A5, the finding: 6 pods of 6 were refused; they share one card."""
    plan = planned(POOLS + TIME_SLICING + pods(6, "nvidia.com/gpu.shared: 1"))

    assert (0, ["g5.xlarge"]) == (plan.exit_code, plan.bought)
    assert any("does not make its cards HAMi's" in note for note in plan.plan["notes"])


def test_the_same_pool_is_hamis_once_its_config_map_is_there() -> None:
    """A5: other evidence of HAMi beats NVIDIA's configuration, and nothing is assumed."""
    plan = planned(POOLS + TIME_SLICING + HAMI_MAP + pods(6, "nvidia.com/gpumem: 3000"))

    assert ["g5.xlarge"] == plan.bought
    assert [] == [note for note in plan.plan["notes"] if "HAMi" in note]


@pytest.mark.parametrize(("asked", "is_assumed"), [("nvidia.com/gpu: 1", True), ("nvidia.com/gpumem: 3000", False)])
def test_what_rests_on_the_label_alone_is_said(asked: str, is_assumed: bool) -> None:
    """A5: an assumption is a note; pods that ask for HAMi's resources are evidence, so it is none then."""
    notes = planned(POOLS + pods(1, asked)).plan["notes"]

    assert is_assumed == any("which this plan assumes" in note for note in notes)


def test_pods_that_ask_for_no_gpu_need_no_note_of_it() -> None:
    """A plan without a GPU rests on no family."""
    assert [] == [note for note in planned(POOLS + pods(1, "memory: 1Gi")).plan["notes"] if "HAMi" in note]


TAINTED = POOLS + "      taints: [{key: gpu, value: only, effect: NoSchedule}]\n"


def test_the_reason_is_that_of_the_pool_that_has_what_the_pod_asks() -> None:
    """A5: a GPU pool's refusal goes before "c5.xlarge has no GPU", and its smaller change is what is advised."""
    (pod,) = planned(TAINTED + HAMI_MAP + pods(1, "nvidia.com/gpu: 1")).plan["unplaced"]

    assert "taints" == pod["stage"]
    assert "c5.xlarge" not in pod["reason"]
    assert "Deployment" == pod["patch"]["kind"]
    assert "tolerations" in pod["patch"]["patch"]


def test_where_no_pool_has_a_gpu_that_is_the_reason() -> None:
    """Then the nearest is what it was: there is nothing else to say."""
    only_cpu = POOLS[: POOLS.rindex("---")]
    (pod,) = planned(only_cpu + pods(1, "nvidia.com/gpu: 1")).plan["unplaced"]

    assert "c5.xlarge" in pod["reason"]


def test_a_refused_slice_in_nvidias_cluster_shows_how_to_say_that_hami_is_there() -> None:
    """The label is there already, so the patch is the annotation that goes before every label."""
    (pod,) = planned(POOLS + DAEMON + pods(1, "nvidia.com/gpumem: 3000")).plan["unplaced"]

    assert "annotate NodePool gpu with kerf.dev/gpu-sharing: hami, if HAMi has its cards" == pod["hint"]
    assert {"kind": "NodePool", "name": "gpu"}.items() <= pod["patch"].items()


SHARED = POOLS.replace('metadata: {labels: {gpu: "on"}}', "metadata: {labels: {any: thing}}")
MIG = """
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: mig}
spec:
  template:
    metadata: {labels: {nvidia.com/mig.config: all-1g.5gb}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: ["p4d.24xlarge"]}
        - {key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}
"""
POLICY = """
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {%s}
"""
TWO_CONFIGS = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plugin-config, namespace: gpu-operator}
data:
  any: |-
    version: v1
    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 3}]}}
  other: |-
    version: v1
    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}
"""
ONE_CONFIG = TWO_CONFIGS[: TWO_CONFIGS.index("  other:")]


def test_instances_that_the_operators_strategy_does_not_show_are_not_bought_for() -> None:
    """C1: a p4d at 21.96 USD/h was planned for pods that never fit."""
    asking = pods(1, "nvidia.com/mig-1g.5gb: 1")

    refused = planned(MIG + POLICY % "mig: {strategy: single}" + asking)
    assert [] == refused.bought
    assert "nvidia.com/mig-1g.5gb" in refused.plan["unplaced"][0]["reason"]
    assert ["p4d.24xlarge"] == planned(MIG + POLICY % "mig: {strategy: mixed}" + asking).bought


def test_the_policys_default_configuration_is_that_of_nodes_without_a_label() -> None:
    """C1: seven pods share three nodes, and seven were planned."""
    named = POLICY % "devicePlugin: {config: {name: plugin-config, default: any}}"

    assert 3 == len(planned(SHARED + TWO_CONFIGS + named + pods(7, "nvidia.com/gpu: 1")).bought)


@pytest.mark.parametrize("spec", ["devicePlugin: {config: {name: plugin-config}}", "devicePlugin: {enabled: true}"])
def test_without_a_default_the_operator_shares_nothing(spec: str) -> None:
    """C1: three pods need three nodes, and one was planned: the operator's fallback is an empty configuration."""
    plan = planned(SHARED + ONE_CONFIG + POLICY % spec + pods(3, "nvidia.com/gpu: 1"))

    assert 3 == len(plan.bought)
    assert [] == [note for note in plan.plan["notes"] if "unknown" in note]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SHARED + ONE_CONFIG + pods(3, "nvidia.com/gpu: 1"), "which configuration of NVIDIA's device plugin nodes"),
        (MIG + pods(1, "nvidia.com/mig-1g.5gb: 1"), "the MIG strategy of NVIDIA's device plugin is unknown"),
        (
            SHARED + POLICY % "devicePlugin: {config: {name: x, default: any}}" + pods(1, "nvidia.com/gpu: 1"),
            "reads the ConfigMap x of its own namespace, and none was read there",
        ),
    ],
)
def test_what_a_plan_rests_on_and_nothing_says_is_said(text: str, expected: str) -> None:
    """C1: where neither a ClusterPolicy nor the plugin's DaemonSet, or the ConfigMap they name, is in the input."""
    (note,) = [note for note in planned(text).plan["notes"] if "NVIDIA" in note or "ClusterPolicy" in note]

    assert expected in note


def test_a_cluster_policy_of_another_project_is_passed_over() -> None:
    """Kyverno has a kind of the same name."""
    other = (POLICY % "rules: []").replace("nvidia.com/v1", "kyverno.io/v1")

    assert ["g5.xlarge"] == planned(SHARED + other + pods(1, "nvidia.com/gpu: 1")).bought


def test_a_tenants_device_plugin_is_named_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """F1: in a namespace that is no plugin's; a variable says where plugins are."""
    theirs = DAEMON.replace("gpu-operator", "team-a")
    plan = planned(POOLS + theirs + pods(1, "nvidia.com/gpumem: 3000"))

    assert ["g5.xlarge"] == plan.bought
    assert "note: not read: DaemonSet team-a/nvidia-device-plugin-daemonset: GPU plugins" in capsys.readouterr().err


NO_DEFAULT = POLICY % "devicePlugin: {config: {name: plugin-config}}"
SCENARIO = """
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {name: whose-cards}
spec:
  duration: 10m
  objects: [objects.yaml]
  expect:
    - {at: 9m, nodes: {nodePool: gpu, count: %d}}
    - {at: 9m, pods: {pending: 0, running: %d}}
"""


@pytest.mark.parametrize(
    ("objects", "nodes", "running"),
    [
        (POOLS + TIME_SLICING + pods(6, "nvidia.com/gpu.shared: 1"), 1, 6),
        (POOLS + TIME_SLICING + pods(6, "nvidia.com/gpumem: 3000"), 1, 6),
        (SHARED + ONE_CONFIG + NO_DEFAULT + pods(3, "nvidia.com/gpu: 1"), 3, 3),
    ],
    ids=["label-in-vain", "asked", "no-default"],
)
def test_the_simulated_cluster_goes_by_the_same_evidence(
    tmp_path: Path, objects: str, nodes: int, running: int
) -> None:
    """A5, C1: its device plugins and HAMi's webhook, so that what is planned comes true there."""
    (tmp_path / "objects.yaml").write_text(objects)
    (tmp_path / "scenario.yaml").write_text(SCENARIO % (nodes, running))

    assert 0 == run(["simulate", str(tmp_path / "scenario.yaml")])
