"""JobSets are the Jobs that their controller makes."""

from kerf.manifests.workloads.expansion import expand
from tests.manifests.texts import decoded, refused, said

JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: team}
spec:
  suspend: SUSPEND
  replicatedJobs:
    - name: driver
      template: {spec: {template: {spec: {containers: [{name: main}]}}}}
    - name: workers
      replicas: 2
      template:
        spec: {parallelism: 3, completions: 3, template: {spec: {containers: [{name: main CONTAINER}]}}}
"""


def job_set(suspend: str = "false", container: str = "") -> str:
    """One driver, and two Jobs of three workers."""
    return JOB_SET.replace("SUSPEND", suspend).replace("CONTAINER", container)


def test_a_job_set_has_the_pods_of_its_jobs() -> None:
    """Named as its controller names the Jobs: set, entry, number."""
    pods = expand(decoded(job_set()))

    assert ["team/train-driver-0-0", *(f"team/train-workers-{j}-{i}" for j in (0, 1) for i in (0, 1, 2))] == [
        pod.key for pod in pods
    ]
    assert "workers" == pods[-1].labels["jobset.sigs.k8s.io/replicatedjob-name"]


def test_a_suspended_job_set_has_none() -> None:
    """As each of its Jobs."""
    read = decoded(job_set(suspend="true"))

    assert (0, ["suspended by spec.suspend"] * 3) == (len(expand(read)), [w.suspended for w in read.workloads])


def test_jobs_that_are_there_are_not_counted_twice() -> None:
    """Nor are their pods: a dump has all three kinds."""
    made = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train-driver-0, namespace: team}\n"
    job = made + "spec: {template: {spec: {containers: [{name: main}]}}}"
    owner = "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train-workers-0, uid: j}]"
    there = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: x, namespace: team, {owner}}}\n"
    pods = expand(decoded(job_set(), job, there + "spec: {containers: [{name: main}]}"))

    assert 7 == len(pods)


def test_one_that_has_ended_has_none() -> None:
    """Its Jobs stay, or are gone for good."""
    assert () == expand(decoded(job_set() + "status: {terminalState: Completed}"))


def test_what_is_wrong_with_a_template_is_said_at_its_place() -> None:
    """Of the pods of each Job that is made of it."""
    said = refused(job_set(container=", resources: {limits: {cpu: x}}"))

    place = "spec.replicatedJobs[1].template.spec.template.spec.containers[0].resources.limits.cpu"
    assert 2 == said.count(f"{place}: expected a quantity")


def test_jobs_of_a_job_set_end_unless_it_says_otherwise() -> None:
    """Its webhook gives a template without restartPolicy OnFailure; Always is refused as in any Job."""
    always = "template: {spec: {restartPolicy: Always, containers: [{name: main}]}}"
    text = job_set().replace("template: {spec: {containers: [{name: main}]}}", always)

    why = "spec.replicatedJobs[0].template.spec.template.spec.restartPolicy: expected OnFailure or Never, got 'Always'"
    assert [why, "", ""] == [said(workload.template.invalid) for workload in decoded(text).workloads]
