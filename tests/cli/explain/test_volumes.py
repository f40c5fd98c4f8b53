"""`kerf explain` of pods with volumes, and their plan made again from a dump."""

from pathlib import Path

from tests.cli.program import kerf

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: common}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
        - {key: topology.kubernetes.io/zone, operator: In, values: [ZONES]}
"""
PARTS = """\
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-1}
spec:
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1b]}]
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: gp3, volumeName: pv-1}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: more}, spec: {storageClassName: gp3}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: Pod
metadata: {name: db}
spec:
  containers: [{name: main, resources: {requests: {cpu: 1, memory: 1Gi}}}]
  volumes:
    - {name: data, persistentVolumeClaim: {claimName: data}}
    - {name: more, persistentVolumeClaim: {claimName: more}}
"""
IN_A, IN_B = (POOL.replace("ZONES", f"us-east-1{zone}") + PARTS for zone in "ab")


def test_the_claims_of_a_pod_are_named_with_what_they_ask() -> None:
    """The volume and its zone, or the class of a claim that waits."""
    lines = kerf("explain", "pod/db", "-f", "-", stdin=IN_B).stdout.splitlines()

    assert "  claim data: volume pv-1, topology.kubernetes.io/zone In [us-east-1b]" in lines
    assert "  claim more: not bound, of StorageClass gp3, on any node" in lines
    assert "us-east-1b" in lines[0]


def test_a_pod_whose_volume_is_elsewhere_says_where_and_what_helps() -> None:
    """The pool is to allow the zone; the patch is tried."""
    done = kerf("explain", "pod/db", "-f", "-", stdin=IN_A)

    assert 3 == done.returncode
    zone = "topology.kubernetes.io/zone"
    assert f"its volumes ask {zone} In [us-east-1b], NodePool common has {zone} In [us-east-1a]" in done.stdout
    assert f"hint: allow {zone} us-east-1b in NodePool common, where its volumes are" in done.stdout
    assert "kubectl patch nodepool common" in done.stdout


def test_a_dump_with_volumes_gives_the_same_plan(tmp_path: Path) -> None:
    """Nothing that decides is lost on the way."""
    dump = tmp_path / "dump.json"
    dump.write_text(kerf("snapshot", "-f", "-", stdin=IN_B).stdout, encoding="utf-8")

    assert kerf("plan", "-f", "-", stdin=IN_B).stdout == kerf("plan", "--replay", str(dump)).stdout


def test_nothing_of_it_is_said_to_be_not_planned() -> None:
    """Claim templates and ephemeral volumes neither."""
    made = kerf("plan", "-f", "-", stdin=IN_B + "    - {name: s, ephemeral: {volumeClaimTemplate: {spec: {}}}}\n")

    assert "as if it were not there" not in made.stdout + made.stderr
