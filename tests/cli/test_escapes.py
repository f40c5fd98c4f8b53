"""No command prints what an object hides in its text: escape sequences, and letters that turn the line."""

import pytest

from tests.cli.program import kerf

EVIL = "\\u001b[2J\\u202e\\u009b31m"
INPUT = f"""
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: any, annotations: {{kerf.dev/gpu-sharing: "{EVIL}", kerf.dev/max-price-per-hour: "{EVIL}"}}}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge, "{EVIL}"]}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: claim, labels: {{karpenter.sh/nodepool: any}}, annotations: {{kerf.dev/planned-pods: "{EVIL}"}}}}
spec: {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}, requirements: []}}
status: {{conditions: [{{type: Launched, status: "False", reason: Evil, message: "{EVIL}"}}]}}
---
apiVersion: kerf.dev/v1alpha1
kind: CapacityWindow
metadata: {{name: night}}
spec:
  schedule: "0 1 * * *"
  duration: 1h
  timeZone: "{EVIL}"
  pods: {{selector: {{matchLabels: {{kerf.dev/window: night}}}}}}
---
apiVersion: v1
kind: "{EVIL}"
metadata: {{name: odd}}
---
apiVersion: v1
kind: Pod
metadata:
  name: pod
  annotations: {{autoscaling.x-k8s.io/consume-provisioning-request: "{EVIL}", nvidia.com/use-gputype: "{EVIL}"}}
spec:
  schedulerName: "{EVIL}"
  containers: [{{name: main, image: x, resources: {{limits: {{nvidia.com/gpu: 1, nvidia.com/gpumem: 1000}}}}}}]
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "-o", "wide"),
        ("plan", "-o", "json"),
        ("plan", "-o", "yaml"),
        ("explain", "pod/pod"),
        ("explain", "nodepool/any"),
        ("explain", "nodeclaim/claim"),
        ("explain", "capacitywindow/night"),
        ("lint",),
        ("gpus",),
        ("nodes",),
    ],
    ids=" ".join,
)
def test_no_control_character_is_printed(arguments: tuple[str, ...]) -> None:
    """On stdout and on stderr, whatever the form."""
    done = kerf(*arguments, "-f", "-", stdin=INPUT)

    shown = done.stdout + done.stderr
    assert "u001b[2J" in shown or "x1b[2J" in shown or arguments[0] in ("gpus", "nodes")
    assert set() == {each for each in shown if each != "\n" and not each.isprintable()}
