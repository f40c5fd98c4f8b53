"""Workloads become the pods that their controllers would make."""

import pytest

from kerf.errors import InputError
from kerf.manifests.workloads.expansion import expand, with_replicas
from kerf.model.constraints import Taint
from kerf.model.pods import Owner
from tests.lint.looking import codes, looked
from tests.manifests.texts import decoded, left_out, pod_text, refused, said

TEMPLATE = "template: {metadata: {labels: {app: a}}, spec: {containers: [{name: main}]}}"
ENDING = "template: {spec: {restartPolicy: Never, containers: [{name: main}]}}"
VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1"}


def workload(kind: str, spec: str = "", metadata: str = "", template: str = TEMPLATE) -> str:
    """A workload `default/w` in YAML."""
    body = ", ".join(part for part in (spec, template) if part)
    version = VERSIONS.get(kind, "apps/v1")
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: w, {metadata}}}\nspec: {{{body}}}"


def names(*texts: str) -> list[str]:
    """The names of all pods after expansion."""
    return [pod.key for pod in expand(decoded(*texts))]


@pytest.mark.parametrize(
    "kind, spec, expected",
    [
        ("Deployment", "replicas: 3", ["default/w-0", "default/w-1", "default/w-2"]),
        ("Deployment", "", ["default/w-0"]),
        ("Deployment", "replicas: 0", []),
        ("ReplicaSet", "replicas: 2", ["default/w-0", "default/w-1"]),
        ("StatefulSet", "replicas: 2, ordinals: {start: 5}", ["default/w-5", "default/w-6"]),
        ("Job", "", ["default/w-0"]),
        ("Job", "parallelism: 2, completions: 5", ["default/w-0", "default/w-1"]),
        ("Job", "parallelism: 5, completions: 2", ["default/w-0", "default/w-1"]),
        ("Job", "parallelism: 2", ["default/w-0", "default/w-1"]),
        ("Job", "parallelism: 2, suspend: true", []),
    ],
)
def test_a_workload_has_as_many_pods_as_its_controller_keeps(kind: str, spec: str, expected: list[str]) -> None:
    """Named in order, as `default/w-0`, `-1`, ..."""
    assert expected == names(workload(kind, spec))


def test_a_finished_part_of_a_job_is_not_run_again() -> None:
    """Of five completions four are done."""
    assert ["default/w-0"] == names(workload("Job", "parallelism: 3, completions: 5") + "\nstatus: {succeeded: 4}")


def test_a_cron_job_has_no_pods_until_it_is_asked() -> None:
    """Its schedule is a matter of time, which a plan does not look at."""
    template = f"schedule: 0 8 * * *, jobTemplate: {{spec: {{{ENDING}}}}}"
    read = decoded(workload("CronJob", template=template))

    assert ([], ["w-0", "w-1"]) == (
        list(expand(read)),
        [pod.name for pod in expand(with_replicas(read, "cronjob/default/w=2"))],
    )


def test_expanded_pods_carry_template_owner_and_place() -> None:
    """They have no uid, so that admission is emulated for them."""
    (pod,) = expand(decoded(workload("Deployment", metadata="namespace: ns, uid: d")))

    assert ("ns", {"app": "a"}, Owner("Deployment", "w", "d"), "", "in.yaml:1:1") == (
        pod.namespace,
        pod.labels,
        pod.owner,
        pod.uid,
        pod.source,
    )


def test_a_daemon_set_is_no_pod_and_tolerates_starting_nodes() -> None:
    """It takes room on every node instead."""
    read = decoded(workload("DaemonSet"))
    tolerations = read.daemon_sets[0].pod.spec.tolerations

    assert () == expand(read)
    assert read.daemon_sets[0].pod.is_daemon
    assert any(t.tolerates(Taint("node.kubernetes.io/not-ready", "", "NoExecute")) for t in tolerations)


def live(name: str, owner: str, more: str = "") -> str:
    """A live pod with this owner."""
    metadata = f"uid: {name}, ownerReferences: [{{{owner}, controller: true}}], {more}"
    return pod_text(metadata=metadata).replace("name: p", f"name: {name}")


@pytest.mark.parametrize(
    "others",
    [
        [
            workload("ReplicaSet", "replicas: 3", "ownerReferences: [{kind: Deployment, name: w}]").replace(
                "name: w, ", "name: w-5f, ", 1
            )
        ],
        [],
    ],
)
def test_live_pods_are_not_expanded_again(others: list[str]) -> None:
    """Deployment, its ReplicaSet (given or not) and two of three pods: one pod is missing."""
    texts = [live(f"w-5f-{n}", "kind: ReplicaSet, name: w-5f", "labels: {pod-template-hash: 5f}") for n in "ab"]

    assert ["default/w-5f-a", "default/w-5f-b", "default/w-0"] == names(
        workload("Deployment", "replicas: 3"), *texts, *others
    )


def test_pods_that_go_or_have_ended_are_replaced() -> None:
    """A StatefulSet's names that still exist are not given twice."""
    going = live("w-0", "kind: StatefulSet, name: w", "deletionTimestamp: 2026-01-05T07:00:00Z")

    assert ["default/w-0", "default/w-1"] == names(workload("StatefulSet", "replicas: 1"), going)


def test_a_selector_that_does_not_select_the_template_makes_the_pods_invalid() -> None:
    """The API server would refuse the Deployment."""
    (pod,) = expand(decoded(workload("Deployment", "selector: {matchLabels: {app: b}}")))

    path = "spec.template.metadata.labels.app"
    assert f"{path}: expected app In [b], as the selector of its Deployment asks, got 'a'" == said(pod.invalid)


def test_claim_templates_name_a_claim_for_each_pod() -> None:
    """`<template>-<pod>`, of the class that the template names; one without a name makes none."""
    template = "{metadata: {name: data}, spec: {storageClassName: fast}}"
    (pod,) = expand(decoded(workload("StatefulSet", f"volumeClaimTemplates: [{template}, {{}}]")))

    (claim,) = pod.spec.claim_templates
    assert (f"data-{pod.name}", "fast") == (claim.claim_of(pod.name), claim.storage_class)
    assert () == pod.spec.not_planned


def test_errors_in_a_template_name_the_whole_path() -> None:
    """From the root of the document."""
    broken = TEMPLATE.replace("[{name: main}]", "[{name: 3}]")

    assert (
        'spec.template.spec.containers[0].name: expected text that is not empty, got 3 (hint: quote it: "3")'
        in refused(workload("Deployment", template=broken))
    )
    found = decoded(workload("CronJob", template=f"schedule: '@daily', jobTemplate: {{spec: {{{broken}}}}}"))
    assert () == found.workloads
    assert "left out: in.yaml:4:" in found.warnings[0]
    assert "spec.jobTemplate.spec.template.spec.containers[0].name: expected" in found.warnings[0]


@pytest.mark.parametrize(
    "kind, pods, broken, place",
    [
        ("Deployment", 1, "replicas: -1, ", "spec.replicas: expected a whole number from 0 to 1000000, got -1"),
        ("StatefulSet", 2, "replicas: 2, ordinals: 3, ", "spec.ordinals: expected a mapping, got 3"),
        ("ReplicaSet", 3, "replicas: 3, selector: [], ", "spec.selector: expected a mapping, got <a list of 0>"),
        ("Job", 4, "parallelism: 4, completions: 0.5, ", "spec.completions: expected a whole number of at least 0"),
    ],
)
def test_pods_of_a_workload_that_no_server_takes_say_why(kind: str, pods: int, broken: str, place: str) -> None:
    """As many as it asks for where that can be read, else one; the others of the input are planned."""
    found = decoded(workload(kind, template=f"{broken}{TEMPLATE}"))

    assert [pods] == [each.replicas for each in found.workloads]
    assert place in said(found.workloads[0].template.invalid)


def test_a_workload_without_a_name_is_left_out() -> None:
    """Nothing could be said of its pods; a live one, which a server has taken, is an error."""
    text = workload("Deployment", template=TEMPLATE)

    assert "metadata.name: expected text of lower-case letters" in left_out(text.replace("name: w", "name: W_W"))
    with pytest.raises(InputError):
        decoded(text.replace("name: w", "name: W_W, uid: u"))


@pytest.mark.parametrize(
    "setting, expected",
    [
        ("deployment/default/w=many", "expected KIND/NAMESPACE/NAME=NUMBER, got 'many'"),
        ("deployment/default/w", "expected KIND/NAMESPACE/NAME=NUMBER"),
        ("deployment/default/w=-1", "got '-1'"),
        (
            "deployment/default/v=1",
            "expected one of the workloads there (deployment/default/w), got 'deployment/default/v'",
        ),
    ],
)
def test_replicas_of_nothing_or_no_number_are_refused(setting: str, expected: str) -> None:
    """The error lists what there is."""
    with pytest.raises(InputError) as error:
        with_replicas(decoded(workload("Deployment")), setting)

    assert expected in str(error.value)


def test_replicas_change_one_workload() -> None:
    """003 is scaled 0 -> 3 in this way; the kind may be written as users write it."""
    read = with_replicas(decoded(workload("Deployment", "replicas: 0")), "Deployment/default/w=3")

    assert ["w-0", "w-1", "w-2"] == [pod.name for pod in expand(read)]


def test_one_run_of_a_cron_job_has_all_pods_that_it_runs_at_once() -> None:
    """`--replicas cronjob/x=1` is one run; two are twice as many."""
    job = "spec: {parallelism: 4, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}"
    text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\n"
    text += f"spec: {{schedule: 0 3 * * *, jobTemplate: {{{job}}}}}"
    cron_job = decoded(text)

    assert [4, 8, 0] == [len(expand(with_replicas(cron_job, f"cronjob/default/x={number}"))) for number in (1, 2, 0)]


def with_policy(policy: str) -> str:
    """A template with this restartPolicy, or with none."""
    stated = f"restartPolicy: {policy}, " if policy else ""
    return f"template: {{metadata: {{labels: {{app: a}}}}, spec: {{{stated}containers: [{{name: main}}]}}}}"


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "Job"])
@pytest.mark.parametrize("policy", ["", "Always", "OnFailure", "Never"])
def test_pods_of_a_workload_that_no_server_would_take_have_a_reason(kind: str, policy: str) -> None:
    """Those of a Job must end, those of the others must not; the other objects are planned."""
    pods = expand(decoded(workload(kind, template=with_policy(policy)), pod_text()))

    is_wrong = (policy in ("OnFailure", "Never")) != (kind == "Job")
    expected = "OnFailure or Never" if kind == "Job" else "Always"
    got = f"'{policy}'" if policy else "<nothing>"
    why = f"spec.template.spec.restartPolicy: expected {expected}, got {got}" if is_wrong else ""
    assert {"default/p": "", "default/w-0": why} == {pod.key: said(pod.invalid) for pod in pods}
    live = decoded(workload(kind, metadata="uid: u", template=with_policy(policy)))
    assert [None] == [pod.invalid for pod in expand(live)], "a server has taken it"


def test_a_cron_job_or_daemon_set_that_no_server_would_take_is_left_out() -> None:
    """They have no pods that could be refused, so a warning says where and why; the others count."""
    cron = workload("CronJob", template=f"schedule: '@daily', jobTemplate: {{spec: {{{with_policy('')}}}}}")
    daemon = workload("DaemonSet", template=with_policy("Never"))
    read = decoded(cron, daemon, pod_text())

    assert ((), (), 1) == (read.workloads, read.daemon_sets, len(read.pods))
    hint = "the API server refuses a {} with any other; without one it is Always"
    assert [
        "left out: in.yaml:4:96: spec.jobTemplate.spec.template.spec.restartPolicy: expected OnFailure or Never, "
        f"got <nothing> (hint: {hint.format('CronJob')})",
        "left out: in.yaml:9:71: spec.template.spec.restartPolicy: expected Always, got 'Never' "
        f"(hint: {hint.format('DaemonSet')})",
    ] == list(read.warnings)


@pytest.mark.parametrize("field, place", [("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")])
def test_the_pods_of_a_stateful_set_mount_its_claims(field: str, place: str) -> None:
    """Its controller makes the volumes; one of the template by the same name gives way."""
    text = f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  selector: {{matchLabels: {{app: db}}}}
  volumeClaimTemplates:
    - metadata: {{name: data}}
      spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      containers: [{{name: a, {field}: [{{name: data, {place}: /x}}]}}]
      volumes: [{{name: data, emptyDir: {{}}}}]
"""
    (workload,) = decoded(text).workloads

    assert workload.template.invalid is None
    assert ((), ["data"]) == (
        workload.template.spec.claims,
        [each.name for each in workload.template.spec.claim_templates],
    )
    assert "KL073" not in codes(looked(text))


def test_pods_that_name_their_node_wait_for_none() -> None:
    """They pass every scheduler, so that nothing may be bought for them."""
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeName: ghost, containers: [{name: a}]}
"""
    (workload,) = decoded(text).workloads

    assert "ghost" == workload.template.node_name
    assert not workload.template.is_pending
