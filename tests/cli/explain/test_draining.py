"""`kerf explain` of a node that is being drained: which pods it waits for, what holds each, and what would free it."""

from typing import Any

from tests.cli.program import POOL_003, files, kerf

CLAIM = """\
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: c1
  uid: u1
  creationTimestamp: "2026-01-05T07:00:00Z"
  deletionTimestamp: "2026-01-05T08:00:00Z"
  finalizers: [karpenter.sh/termination]
  labels: {karpenter.sh/nodepool: g5-nodepool, node.kubernetes.io/instance-type: g5.xlarge}
  annotations: {ANNOTATION}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements: []
status:
  providerID: p1
  nodeName: n1
  conditions:
    - {type: Launched, status: "True", lastTransitionTime: "2026-01-05T07:01:00Z"}
    - {type: Registered, status: "True", lastTransitionTime: "2026-01-05T07:02:00Z"}
    - {type: Initialized, status: "True", lastTransitionTime: "2026-01-05T07:03:00Z"}
CONDITION
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  uid: u2
  labels: {karpenter.sh/nodepool: g5-nodepool, node.kubernetes.io/instance-type: g5.xlarge}
spec: {providerID: p1, taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]}
status:
  allocatable: {cpu: "3920m", memory: 14Gi, pods: "58"}
  conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-05T07:02:30Z"}]
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: csi-1, uid: u3}
spec: {attacher: ebs.csi.aws.com, nodeName: n1, source: {persistentVolumeName: pv-1}}
status: {attached: true}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: team, uid: NAME, MORE}
spec: {nodeName: n1, containers: [{name: main}]}
status: {phase: Running}
"""
BUDGET = """\
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: team, uid: b}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
status: {disruptionsAllowed: 0}
"""
PROTECTED = 'annotations: {karpenter.sh/do-not-disrupt: "true"}'


def a_pod(name: str, more: str = "labels: {}") -> str:
    """A pod on the node, with more metadata."""
    return POD.replace("NAME", name).replace("MORE", more)


def explained(*pods: str, annotation: str = "", condition: str = "", output: str = "table") -> Any:
    """What is said of the claim at 08:01."""
    text = CLAIM.replace("ANNOTATION", annotation).replace("CONDITION", condition) + "".join(pods)
    arguments = ("-f", "-", *files(POOL_003), "--now", "2026-01-05T08:01:00Z", "-o", output)
    done = kerf("explain", "nodeclaim/c1", *arguments, stdin=text)
    return done.data["items"][0]["draining"] if output == "json" else done.stdout.splitlines()


def test_a_drain_shows_the_pods_that_hold_it_first() -> None:
    """Each with what would free it; then those that go by themselves."""
    lines = explained(a_pod("a"), a_pod("b", PROTECTED), a_pod("web-0", "labels: {app: web}"), BUDGET)

    start = lines.index("  drains: waits for 3 pods, 2 held; nothing sets it an end")
    assert [
        '    pod team/b has "karpenter.sh/do-not-disrupt" annotation; '
        "to free it: kubectl annotate pod -n team b karpenter.sh/do-not-disrupt-",
        "    pod team/web-0 is held by PodDisruptionBudget web, which never allows an eviction; "
        "to free it: let the budget allow a disruption",
        "    pod team/a is evicted",
    ] == lines[start + 1 : start + 4]


def test_a_drain_with_an_end_shows_it() -> None:
    """And when each pod is deleted, whatever holds it."""
    deadline = '{karpenter.sh/nodeclaim-termination-timestamp: "2026-01-05T08:10:00Z"}'.strip("{}")
    lines = explained(a_pod("b", PROTECTED), annotation=deadline)

    start = lines.index("  drains: waits for 1 pod, 1 held; by 2026-01-05T08:10:00Z all go")
    assert lines[start + 1].endswith("annotation; it is deleted at 2026-01-05T08:09:30Z whatever holds it")


def test_why_it_is_deleted_is_said() -> None:
    """In the word of the condition of its claim; one that was called off says nothing."""
    why = '    - {type: DisruptionReason, status: "STATUS", reason: Drifted, message: m}'
    gone, called_off = (explained(condition=why.replace("STATUS", status)) for status in ("True", "False"))

    assert ["  goes: it is being deleted (Drifted)"] == [line for line in gone if "goes:" in line]
    assert ["  goes: it is being deleted"] == [line for line in called_off if "goes:" in line]


def test_no_more_than_five_pods_are_shown() -> None:
    """The rest as a number."""
    lines = explained(*(a_pod(f"p{number}") for number in range(7)))

    assert "    and 2 pods more" in lines


def test_a_drained_node_shows_the_volumes_that_it_waits_for() -> None:
    """Once all pods are gone."""
    assert "  drained: waits for VolumeAttachments to go: csi-1" in explained()
    assert not any("VolumeAttachments" in line for line in explained(a_pod("a")))


def test_a_node_whose_instance_is_terminated_waits_for_no_pod() -> None:
    """Its drain is over."""
    done = '    - {type: InstanceTerminating, status: "True", lastTransitionTime: "2026-01-05T08:00:30Z"}'
    assert not any("drain" in line for line in explained(a_pod("a"), condition=done))


def test_as_json_it_has_the_same() -> None:
    """None for a node that is not being drained."""
    found = explained(a_pod("b", PROTECTED), output="json")
    why = 'pod team/b has "karpenter.sh/do-not-disrupt" annotation; '
    remedy = "to free it: kubectl annotate pod -n team b karpenter.sh/do-not-disrupt-"

    pods = [{"pod": "team/b", "why": why + remedy, "remedy": remedy}]
    assert {"deadline": None, "pods": pods, "volumeAttachments": ["csi-1"]} == found
    done = '    - {type: InstanceTerminating, status: "True", lastTransitionTime: "2026-01-05T08:00:30Z"}'
    assert explained(condition=done, output="json") is None


def of_pod(*pods: str, annotation: str = "", now: str = "2026-01-05T08:01:00Z", output: str = "table") -> Any:
    """What is said of the pod b, the first of them."""
    text = CLAIM.replace("ANNOTATION", annotation).replace("CONDITION", "") + "".join(pods)
    done = kerf("explain", "pod/b", "-n", "team", "-f", "-", *files(POOL_003), "--now", now, "-o", output, stdin=text)
    return done.data["items"][0] if output == "json" else done.stdout.splitlines()


DEADLINE = 'karpenter.sh/nodeclaim-termination-timestamp: "2026-01-05T08:10:00Z"'


def test_a_pod_on_a_node_that_drains_says_what_holds_it_and_by_when_it_goes() -> None:
    """The sentence of its node, and as JSON."""
    end = "it is deleted at 2026-01-05T08:09:30Z whatever holds it"
    said = 'pod team/b has "karpenter.sh/do-not-disrupt" annotation; ' + end
    held = a_pod("b", PROTECTED)
    assert f"  its node drains: {said}" in of_pod(held, annotation=DEADLINE)
    assert said == of_pod(held, annotation=DEADLINE, output="json")["draining"]["why"]


def test_what_is_bought_for_it_once_it_must_go_soon_is_named() -> None:
    """A node is bought for a held pod a few minutes before that is deleted, and not sooner."""
    held = a_pod("b", PROTECTED)
    early, late = (of_pod(held, annotation=DEADLINE, now=f"2026-01-05T08:0{minute}:00Z") for minute in (1, 8))

    assert [] == [line for line in early if "made again" in line]
    (line,) = (line for line in late if "made again" in line)
    assert line == "  made again, it goes to a new node, launch-0: g5.xlarge on-demand in us-east-1a"


def test_a_pod_on_a_node_that_stays_says_nothing_of_a_drain() -> None:
    """Its node is not deleted."""
    text = CLAIM.replace("ANNOTATION", "").replace("CONDITION", "")
    text = "\n".join(line for line in text.splitlines() if "deletionTimestamp" not in line and "taints" not in line)
    done = kerf(
        "explain", "pod/b", "-n", "team", "-f", "-", *files(POOL_003), "-o", "json", stdin=text + "\n" + a_pod("b")
    )

    (item,) = done.data["items"]
    assert (None, None) == (item["draining"], item["successor"])


def test_room_on_a_node_that_stays_is_named_as_well() -> None:
    """The plan puts what will be made again there."""
    other = CLAIM.partition("---\n")[2].partition("---\n")[0]
    for old, new in (("name: n1", "name: n2"), ("uid: u2", "uid: u4"), ("p1", "p2"), (", taints: [{", ", x: [{")):
        other = other.replace(old, new)
    other = other.replace(", x: [{key: karpenter.sh/disrupted, effect: NoSchedule}]", "")

    assert "  made again, it goes to node n2" in of_pod(a_pod("b"), f"---\n{other}")
