"""Where a rule says too much or too little: each case was wrong once."""

import pytest

from tests.lint.looking import codes, looked

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: kubernetes.io/os, operator: In, values: [%s]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [%s]}
  disruption: {consolidateAfter: 10m}
"""
CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  amiSelectorTerms: [%s]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
"""
JOB = """\
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  %s
  template:
    metadata: {annotations: {karpenter.sh/do-not-disrupt: "true"}}
    spec: {restartPolicy: Never, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: o}
spec:
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g5.12xlarge]}]
  capacity: {nvidia.com/gpumem: "100000"}
"""


@pytest.mark.parametrize(
    "text, said",
    [
        (CLASS % "{alias: al2023@latest}", []),
        (CLASS % "{id: ami456}", ["KL001"]),
        (CLASS % "{alias: al2023@latest}, {tags: {a: b}}", ["KL001"]),
        (CLASS % "{alias: al2023@latest}" + "  amiFamilly: AL2\n", ["KL002"]),
        (CLASS % "{alias: al2023@latest}" + "  blockDeviceMappings: [{ebs: {volumeSize: 100}}]\n", ["KL001"]),
        (CLASS % "{alias: al2023@latest}" + f"  tags: {{{', '.join(f't{n}: a' for n in range(42))}}}\n", []),
        (CLASS % "{alias: al2023@latest}" + f"  tags: {{{', '.join(f't{n}: a' for n in range(43))}}}\n", ["KL001"]),
        ("apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {role: a}\n", ["KL001"]),
    ],
)
def test_the_form_of_an_ec2_node_class_is_looked_at(text: str, said: list[str]) -> None:
    """By Karpenter's own definition for AWS: ids, alternatives, unknown fields, what is required."""
    assert said == sorted({code for code in codes(looked(text)) if code in ("KL001", "KL002")})


def test_a_node_class_of_a_server_is_right_as_it_is() -> None:
    """It may be of a newer version."""
    live = (CLASS % "{id: ami456}").replace("{name: default}", "{name: default, uid: u}")

    assert "KL001" not in codes(looked(live))


@pytest.mark.parametrize("system, said", [("windows", False), ("linux", True)])
def test_of_windows_no_catalogue_knows_the_types(system: str, said: bool) -> None:
    """So it says nothing of them; an unknown family is a finding for Linux. A build of Windows says it as well."""
    assert said == ("KL023" in codes(looked(POOL % (system, "zz9"))))
    build = "node.kubernetes.io/windows-build, operator: " + ("Exists" if system == "windows" else "DoesNotExist")
    of_build = POOL.replace("kubernetes.io/os, operator: In, values: [%s]", build)
    assert said == ("KL023" in codes(looked(of_build % "zz9")))


@pytest.mark.parametrize("deadline, said", [("backoffLimit: 0", True), ("activeDeadlineSeconds: 120", False)])
def test_a_job_that_ends_by_itself_holds_no_node_for_ever(deadline: str, said: bool) -> None:
    """Two minutes, whatever its annotation says."""
    assert said == ("KL049" in codes(looked(POOL % ("linux", "g5") + JOB % deadline)))


def test_no_hint_leads_to_another_finding() -> None:
    """A sum over four cards is KL025, so KL035 does not propose it."""
    found = [each for each in looked(OVERLAY).findings if each.code == "KL035"]

    assert ["leave the overlay away: Kerf needs none"] == [each.hint for each in found]


@pytest.mark.parametrize(("gpus", "found"), [(4, 0), (16, 0), (6, 1), (3, 1)])
def test_a_number_of_gpus_must_be_a_multiple_of_the_cards(gpus: int, found: int) -> None:
    """Four cards shown four times each are 16; 6 are no way of sharing four."""
    text = OVERLAY.replace('nvidia.com/gpumem: "100000"', f'nvidia.com/gpu: "{gpus}"')
    wrong = [each for each in looked(text).findings if each.code == "KL035"]

    assert found == len(wrong)
    assert all(f"{gpus} is no multiple of that" in each.message for each in wrong)


@pytest.mark.parametrize(
    ("key", "hint"),
    [("renamebydefault", "is renameByDefault meant?"), ("colour", "known here are failRequestsGreater")],
)
def test_an_unknown_key_of_a_plugin_has_the_nearest_known_one(key: str, hint: str) -> None:
    """Whatever its case; where none is near, all that are known there."""
    text = f"version: v1\n    sharing: {{timeSlicing: {{{key}: true, resources: []}}}}\n"
    document = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: gpu-operator}\ndata:\n  a: |\n    " + text
    )
    (found,) = [each for each in looked(document).findings if each.code == "KL072"]

    assert found.message.startswith(f"sharing.timeSlicing.{key}: NVIDIA's device plugin does not know this key")
    assert found.hint.startswith(hint)


@pytest.mark.parametrize(
    ("resource", "said"),
    [("acme.com/gpu-core", True), ("huawei.com/npu-core", True), ("acme.com/nic", False), ("amd.com/gpu", False)],
)
def test_shares_of_cards_are_recognised_by_name(resource: str, said: bool) -> None:
    """The same rule for vendors that are known and for those that are not; whole devices are none."""
    text = JOB % "activeDeadlineSeconds: 60"

    assert said == ("KL066" in codes(looked(text.replace("nvidia.com/gpu", resource))))


CLAIMING = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: main
      image: x
      resources: {requests: {cpu: 1, memory: 1Gi}, claims: [{name: gpu}]}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
"""
OF_A_CLASS = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: main
      image: x
      resources: {limits: {deviceclass.resource.kubernetes.io/gpu.nvidia.com: 1}, requests: {cpu: 1, memory: 1Gi}}
"""


@pytest.mark.parametrize(("text", "line"), [(CLAIMING, 9), (OF_A_CLASS, 8)])
def test_pods_with_resource_claims_are_said_to_get_no_node(text: str, line: int) -> None:
    """Whether they name a claim, or a class by a resource for which the scheduler makes one."""
    (found,) = [each for each in looked(text).findings if each.code == "KL066"]

    assert line == found.line
    assert "no node is bought for it" in found.message


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("priority: 9", "spec.priority: expected 0, as without a priorityClassName, got 9"),
        ("overhead: {cpu: 1}", "spec.overhead: expected nothing without a runtimeClassName"),
        ("volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]", "spec.volumes[0].hostPath: expected one source"),
    ],
)
def test_what_the_server_refuses_is_said_with_its_whole_path(spec: str, said: str) -> None:
    """What follows from the pod's form, and what admission says beside it."""
    text = f"""apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers: [{{name: main, image: "ubuntu:22.04", resources: {{requests: {{cpu: 1}}}}}}]
  {spec}
"""
    found = [each.message for each in looked(text).findings if each.code == "KL073"]

    assert 1 == len(found)
    assert f"the API server refuses it: {said}" in found[0]


def test_an_extended_resource_without_a_limit_is_said_once() -> None:
    """KL030 says it, and how to mend it."""
    text = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: main, image: "ubuntu:22.04", resources: {requests: {cpu: 1, nvidia.com/gpu: 1}}}]
"""
    assert {"KL030"} == {"KL030", "KL073"} & set(codes(looked(text)))


def test_hami_takes_the_keys_of_both_sections() -> None:
    """It reads one into the other; of a key it takes the last."""
    text = """apiVersion: v1
kind: ConfigMap
metadata: {name: hami-scheduler-device, namespace: kube-system}
data:
  device-config.yaml: |
    nvidia: {deviceSplitCount: 4}
    nvidia: {deviceMemoryScaling: 2}
"""
    assert any("HAMi takes the keys of both" in each.message for each in looked(text).findings)


def test_a_resource_of_kubernetes_own_domain_needs_no_limit() -> None:
    """The server counts it as native, and takes a request alone (`tests/controlplane/test_refused_pods.py`)."""
    text = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: main, image: "ubuntu:22.04", resources: {requests: {cpu: 1, kubernetes.io/batch-cpu: 1}}}]
"""
    assert set() == {"KL030", "KL073"} & set(codes(looked(text)))


@pytest.mark.parametrize("phase, said", [("Pending", True), ("Running", False)])
def test_a_pod_that_names_its_node_is_pinned_and_one_that_runs_there_is_not(phase: str, said: bool) -> None:
    """A dump without uids has pods with a node, too: a scheduler gave it to them."""
    pod = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: train}}
spec: {{nodeName: n1, containers: [{{name: main, resources: {{requests: {{cpu: 1}}}}}}]}}
status: {{phase: {phase}}}
"""
    assert said == ("KL043" in codes(looked(pod)))


@pytest.mark.parametrize(
    ("value", "is_ignored"),
    [
        ("true", False),
        ("4h", False),
        ("1h30m", False),
        ("false", False),
        ("True", True),
        ("", True),
        ("0s", True),
        ("-1h", True),
    ],
)
def test_do_not_disrupt_of_a_pod_is_true_or_a_time(value: str, is_ignored: bool) -> None:
    """As where it is decided whether the pod may be evicted."""
    found = codes(looked((JOB.removeprefix("---\n") % "completions: 1").replace('"true"', f'"{value}"')))

    assert is_ignored == ("KL077" in found)


def test_do_not_disrupt_of_a_pool_is_true_alone() -> None:
    """Nodes know no time."""
    text = POOL.replace(
        "template:\n", 'template:\n    metadata: {annotations: {karpenter.sh/do-not-disrupt: "4h"}}\n', 1
    )

    assert "KL077" in codes(looked(text % ("linux", "g5")))


@pytest.mark.parametrize("value", ["4h", "true"])
def test_do_not_disrupt_of_a_node_is_true_alone(value: str) -> None:
    """As on a pool."""
    text = 'apiVersion: v1\nkind: Node\nmetadata: {name: n, annotations: {karpenter.sh/do-not-disrupt: "%s"}}\n'

    assert (value != "true") == ("KL077" in codes(looked(text % value)))


@pytest.mark.parametrize(
    ("budget", "at"),
    [
        ('{nodes: "0"}', ["nodes"]),
        ('{nodes: "0", schedule: "@hourly", duration: 2h}', ["duration"]),
        ('{nodes: "0%", schedule: "@hourly", duration: 1h}', ["duration"]),
        ('{nodes: "0", schedule: "@hourly", duration: 59m}', []),
        ('{nodes: "0", schedule: "0 * * * mon-fri", duration: 2h}', []),
        ('{nodes: "0", reasons: [Drifted], schedule: "@hourly", duration: 2h}', []),
        ('{nodes: "1", schedule: "@hourly", duration: 2h}', []),
    ],
)
def test_a_budget_that_counts_again_before_it_ends_counts_at_all_hours(budget: str, at: list[str]) -> None:
    """The end of one time is not the beginning of another: `@hourly` for `1h` leaves no moment out."""
    text = f"""apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: web}}
spec:
  disruption: {{consolidateAfter: 10m, budgets: [{budget}]}}
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements: [{{key: kubernetes.io/arch, operator: In, values: [amd64]}}]
"""
    assert at == [each.path.rpartition(".")[2] for each in looked(text).findings if each.code == "KL047"]


@pytest.mark.parametrize(
    ("group", "kind", "at"),
    [
        ("karpenter.k8s.aws", "EC2NodeClass", []),
        ("karpenter.k8s.awz", "EC2NodeClass", ["group"]),
        ("karpenter.k8s.aws", "EC2Nodeclass", ["kind"]),
        ("karpenter.k8s.alibabacloud", "EC2NodeClass", ["kind"]),
        ("karpenter.azure.com", "AKSNodeClass", []),
        ("karpenter.k8s.gcp", "GCENodeClass", []),
        ("karpenter.example.org", "NodeClass", []),
    ],
)
def test_a_node_class_of_another_provider_is_no_misspelt_one(group: str, kind: str, at: list[str]) -> None:
    """What is like none that is known is another's."""
    text = (POOL % ("linux", "g5")).replace(
        "group: karpenter.k8s.aws, kind: EC2NodeClass", f"group: {group}, kind: {kind}"
    )

    assert at == [each.path.rpartition(".")[2] for each in looked(text).findings if each.code == "KL079"]


ABOVE = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: c%s}
spec:
  schedule: "@daily"
  jobTemplate:
    metadata: {labels: {a: b}%s}
    spec:
      template:
        metadata: {labels: {a: b}%s}
        spec:
          restartPolicy: Never
          containers: [{name: main, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]
"""


@pytest.mark.parametrize(
    ("key", "reader"),
    [
        ("nvidia.com/use-gputype", "HAMi reads"),
        ("hami.io/node-scheduler-policy", "HAMi reads"),
        ("gpu-fraction", "KAI Scheduler reads"),
        ("karpenter.sh/do-not-disrupt", "Karpenter and Kerf read"),
        ("kerf.dev/restart-cost", "Kerf reads"),
    ],
)
def test_annotations_of_pods_are_looked_for_above_them(key: str, reader: str) -> None:
    """On the object and on the Jobs of a CronJob; on the template, or where the template has it as well, they count."""
    stated = f', annotations: {{{key}: "true"}}'

    for places in ((stated, "", ""), ("", stated, "")):
        (found,) = [each for each in looked(ABOVE % places).findings if each.code == "KL083"]
        assert found.message == f"{key} does nothing on a CronJob: {reader} it of pods"
    for places in (("", "", stated), (stated, "", stated)):
        assert "KL083" not in codes(looked(ABOVE % places))


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("nvidia.com/use-gpu-type", "nvidia.com/use-gputype"),
        ("hami.io/gpu-schedular-policy", "hami.io/gpu-scheduler-policy"),
        ("hami.io/vgpu-node", ""),
        ("hami.io/bind-time", ""),
        ("nvidia.com/use-gputype", ""),
        ("example.com/use-gputypes", ""),
    ],
)
def test_an_annotation_that_is_nearly_one_of_hamis_is_said(key: str, meant: str) -> None:
    """What HAMi writes itself, and what is far from all of its annotations, is none."""
    found = [
        each for each in looked(ABOVE % ("", "", f", annotations: {{{key}: A10}}")).findings if each.code == "KL082"
    ]

    assert ([f"is {meant} meant?"] if meant else []) == [each.hint for each in found]
