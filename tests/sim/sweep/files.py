"""A small sweep in a folder: one type of machine, pods without a GPU."""

from pathlib import Path

SCENARIO = """
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {name: tiny}
spec:
  duration: 20m
  objects: [pool.yaml]
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
SWEEP = """
apiVersion: kerf.dev/v1alpha1
kind: Sweep
metadata: {name: tiny}
spec:
  scenario: scenario/s.yaml
  policies:
    - {name: batches}
    - {name: at-once, settings: {batch-idle: 0s}, disruption: {consolidateAfter: 2m}}
  traces:
    - {name: morning, file: pods.csv, copies: 2, boundEvery: 5m}
  seeds: [1, 2, 3]
  prices:
    - {name: list}
    - {name: up, factor: 1.5, instanceType: "m5.*"}
"""
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n" + "".join(
    f"p{n},1500,1024,0,0,{n * 60},{n * 60 + 200},{n * 60}\n" for n in range(8)
)


def write(folder: Path, text: str = SWEEP) -> str:
    """The file of the sweep; its scenario and trace are beside it."""
    (folder / "scenario").mkdir(exist_ok=True)
    (folder / "scenario" / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "scenario" / "pool.yaml").write_text(POOL, encoding="utf-8")
    (folder / "pods.csv").write_text(PODS, encoding="utf-8")
    (folder / "sweep.yaml").write_text(text, encoding="utf-8")
    return str(folder / "sweep.yaml")
