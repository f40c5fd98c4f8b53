"""Cases that a new user ran into: each was wrong once."""

import pytest

from tests.scenarios.documents import GPU_POOLS, HAMI, kerf, manifests, planned, replicas

POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  containers: [{name: main, image: app, resources: {limits: {%s}}}]
"""
RENAMED = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hami-scheduler-device, namespace: kube-system}
data:
  device-config.yaml: |
    nvidia: {resourceCountName: example.com/vgpu}
"""


def test_a_renamed_count_of_hami_is_what_pods_ask_by() -> None:
    """The ConfigMap's resource names hold for new nodes too."""
    asking = manifests(HAMI[:1]) + RENAMED + POD % "example.com/vgpu: 1, nvidia.com/gpumem: 9000"

    assert ["g5.xlarge"] == planned(asking).bought


def test_a_renamed_count_does_not_fit_a_node_without_cards() -> None:
    """Nobody else knows the name: a pool that HAMi does not select buys nothing."""
    asking = manifests(HAMI[:1], ('labels: {gpu: "on"}', "labels: {}")) + RENAMED + POD % "example.com/vgpu: 1"

    assert [] == planned(asking).bought


def test_the_smallest_limit_is_that_of_the_strategy() -> None:
    """000-4 with first-fit: Karpenter charges the larger type, so that its limit must be larger."""
    sizes = ('["g5.2xlarge"]', '["g5.xlarge", "g5.2xlarge"]')
    hint = planned(manifests(GPU_POOLS, sizes), "--strategy", "first-fit").plan["unplaced"][0]["hint"]
    limit = hint.split()[0]
    patched = planned(manifests(GPU_POOLS, sizes, ("cpu: 10", f"cpu: {limit}")), "--strategy", "first-fit")

    assert [] == patched.plan["unplaced"]


@pytest.mark.parametrize(
    ("bounds", "limits", "reason", "got"),
    [
        ('max: {cpu: "1"}', "cpu: 3", "limits.cpu: expected at most 1, the max of", "3"),
        ('min: {cpu: "1"}', "cpu: 100m", "requests.cpu: expected at least 1, the min of", "100m"),
    ],
)
def test_a_pod_that_a_limit_range_refuses_is_invalid(bounds: str, limits: str, reason: str, got: str) -> None:
    """Nothing is bought for a pod that the API server would not take."""
    text = f"""
---
apiVersion: v1
kind: LimitRange
metadata: {{name: small, namespace: default}}
spec: {{limits: [{{type: Container, {bounds}}}]}}
"""
    outcome = planned(manifests(GPU_POOLS[:1]) + text + POD % limits)

    said = f"spec.containers[0].resources.{reason} a LimitRange of its namespace, got '{got}'"
    assert [("invalid", said)] == [(pod["stage"], pod["reason"]) for pod in outcome.plan["unplaced"]]


def test_a_misspelt_instance_type_is_fixed_by_a_patch() -> None:
    """The nearest known name, tried before it is printed; five such nodes are more than the limit allows."""
    (pod, *_) = planned(manifests(GPU_POOLS, ('"g5.2xlarge"', '"g5.2xlarg"'))).plan["unplaced"]

    limit = "40 is the smallest cpu limit of NodePool gpu-pool-1 that places all 5 pods"
    assert f"write g5.2xlarge instead of g5.2xlarg in NodePool gpu-pool-1; and {limit}" == pod["hint"]
    assert '"g5.2xlarge"' in pod["patch"]["patch"]


def test_a_tainted_hami_pool_says_that_the_device_plugin_must_tolerate_it() -> None:
    """HAMi's chart gives its device plugin no tolerations: such a node would never register a card."""
    tainted = (
        "    spec:\n      nodeClassRef",
        "    spec:\n      taints: [{key: gpu, effect: NoSchedule}]\n      nodeClassRef",
    )
    notes = planned(manifests(HAMI, tainted), *replicas(1)).plan["notes"]

    assert [True] == ["device plugin" in note and "gpu:NoSchedule" in note for note in notes if "taint" in note]


def test_pods_with_different_patches_are_not_shown_as_one() -> None:
    """Two Deployments that do not tolerate a taint need a patch each."""
    tainted = (
        "    spec:\n      nodeClassRef",
        "    spec:\n      taints: [{key: a, effect: NoSchedule}]\n      nodeClassRef",
    )
    second = manifests(GPU_POOLS[1:], ("name: gpu-app", "name: other"))
    _, printed = kerf("plan", manifests(GPU_POOLS, tainted) + "\n---\n" + second)

    assert ["gpu-app", "other"] == [w for w in ("gpu-app", "other") if f"kubectl patch deployment {w} " in printed]
