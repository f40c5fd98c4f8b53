"""The controllers' deadlines hold in a plan: a node that never got what it waits for is no place for a pod."""

import json
from pathlib import Path

import pytest

from kerf.cli.main import run

CLUSTER = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: gpu}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  creationTimestamp: "2026-11-01T00:00:00Z"
  labels: {{karpenter.sh/nodepool: gpu, node.kubernetes.io/instance-type: g5.xlarge, kubernetes.io/arch: amd64,
    kubernetes.io/os: linux, karpenter.sh/capacity-type: on-demand, topology.kubernetes.io/zone: us-east-1a}}
spec: {{providerID: "aws:///us-east-1a/i-1"}}
status:
  allocatable: {{cpu: "3920m", memory: 14Gi, pods: "58"{gpus}}}
  capacity: {{cpu: "4", memory: 15Gi, pods: "58"{gpus}}}
  conditions: [{{type: Ready, status: "True", lastTransitionTime: "2026-11-01T00:00:00Z"}}]
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: c1
  uid: c1
  creationTimestamp: "2026-11-01T00:00:00Z"
  labels: {{karpenter.sh/nodepool: gpu, node.kubernetes.io/instance-type: g5.xlarge, kubernetes.io/arch: amd64,
    kubernetes.io/os: linux, karpenter.sh/capacity-type: on-demand, topology.kubernetes.io/zone: us-east-1a}}
spec:
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
  requirements: []
  resources: {{requests: {{nvidia.com/gpu: "1"}}}}
status:
  providerID: "aws:///us-east-1a/i-1"
  nodeName: n1
  capacity: {{cpu: "4", memory: 15Gi, pods: "58", nvidia.com/gpu: "1"}}
  allocatable: {{cpu: "3920m", memory: 14Gi, pods: "58", nvidia.com/gpu: "1"}}
  conditions:
    - {{type: Launched, status: "True", lastTransitionTime: "2026-11-01T00:00:00Z"}}
    - {{type: Registered, status: "{registered}", lastTransitionTime: "2026-11-01T00:00:00Z"}}
    - {{type: Initialized, status: "{initialised}", lastTransitionTime: "2026-11-01T00:00:00Z"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: job, creationTimestamp: "2026-11-01T00:00:00Z"}}
spec: {{containers: [{{name: main, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}
status: {{phase: Pending}}
"""
GPU = ', nvidia.com/gpu: "1"'


def planned(path: Path, capsys: pytest.CaptureFixture[str], now: str, **parts: str) -> tuple[int, int, str]:
    """How many nodes are bought, how many pods go on nodes that are there, and what is said beside."""
    given = {"gpus": "", "registered": "True", "initialised": "Unknown", **parts}
    file = path / "cluster.yaml"
    file.write_text(CLUSTER.format(**given), encoding="utf-8")
    assert 0 == run(["plan", "-f", str(file), "--now", now, "-o", "json"])
    out = capsys.readouterr()
    plan = json.loads(out.out)
    return len(plan["launches"]), len(plan["placements"]), out.err


def test_a_node_whose_gpu_is_awaited_takes_the_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its devices have ten minutes."""
    assert (0, 1, "") == planned(tmp_path, capsys, "2026-11-01T00:09:00Z")


def test_a_node_that_never_got_its_gpu_takes_no_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The controllers have given its claim up by then, so another node is bought, and the plan says why."""
    launches, placements, said = planned(tmp_path, capsys, "2026-11-01T02:00:00Z")

    assert (1, 0) == (launches, placements)
    assert "1 NodeClaim (c1) has missed a deadline and is given up: no pod goes on its node" in said


def test_a_node_that_has_all_takes_the_pod_however_late(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is still unsaid on its claim is not missing."""
    assert (0, 1, "") == planned(tmp_path, capsys, "2026-11-01T02:00:00Z", gpus=GPU)


def test_explain_says_that_the_node_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And what it has waited for, until when: nobody has deleted it, and it did not begin to wait then."""
    planned(tmp_path, capsys, "2026-11-01T02:00:00Z")
    assert 0 == run(["explain", "node", "n1", "-f", str(tmp_path / "cluster.yaml"), "--now", "2026-11-01T02:00:00Z"])
    said = capsys.readouterr().out

    assert "still starting" not in said
    assert 'Resource "nvidia.com/gpu" was requested but not registered: 0 of 1' in said
    assert "Node n1: given-up, goes" in said
    assert "waited until 2026-11-01T00:10:00Z to be Initialized" in said
    assert "goes: it is given up: its deadline to be Initialized was 2026-11-01T00:10:00Z" in said
    assert "waits since" not in said
    assert "it is being deleted" not in said
