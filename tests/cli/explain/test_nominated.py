"""A pod that its scheduler has nominated to a node: `plan` and `explain` agree that it has its room there."""

import json
from pathlib import Path

import pytest

from kerf.cli.main import run

CLUSTER = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: cpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {karpenter.sh/nodepool: cpu, node.kubernetes.io/instance-type: m5.xlarge, kubernetes.io/arch: amd64,
    kubernetes.io/os: linux, karpenter.sh/capacity-type: on-demand, topology.kubernetes.io/zone: us-east-1a,
    kubernetes.io/hostname: n1, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}
status:
  allocatable: {cpu: "4", memory: 14Gi, pods: "58"}
  capacity: {cpu: "4", memory: 14Gi, pods: "58"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Pod
metadata: {name: nominee, uid: u1}
spec: {priority: 100, containers: [{name: main, image: x, resources: {requests: {cpu: "3"}}}]}
status: {phase: Pending, nominatedNodeName: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: other, uid: u2}
spec: {containers: [{name: main, image: x, resources: {requests: {cpu: "3"}}}]}
status: {phase: Pending}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The cluster as a file."""
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER, encoding="utf-8")
    return str(file)


def test_a_plan_leaves_a_nominated_pod_its_room_and_buys_for_the_other(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One node, for the pod that has none."""
    assert 0 == run(["plan", "-f", path, "-o", "json"])
    plan = json.loads(capsys.readouterr().out)

    assert [["default/other"]] == [launch["pods"] for launch in plan["launches"]]
    assert ([], []) == (plan["placements"], plan["unplaced"])


def test_explain_says_where_a_pod_is_nominated(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And that nothing is bought for it."""
    assert 0 == run(["explain", "pod", "nominee", "-f", path])
    said = capsys.readouterr().out

    assert "Pod default/nominee has its room on node n1: its scheduler has nominated it there" in said
    assert "nothing is bought for it" in said
