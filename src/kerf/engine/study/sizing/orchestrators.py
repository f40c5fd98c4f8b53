"""Which orchestrator started many runs at once, and which of its own settings says how many may run.

The settings are named as the documentation of each has them: docs.dagster.io, guides/operate/managing-concurrency
(run-queue-limits, run-tag-limits); the Argo Workflows user guide (workflow-controller-configmap.yaml, Limiting
parallelism); airflow.apache.org, configuration reference, section core, and Pools. The labels are those that they put
on pods themselves: dagster-k8s, the workflow controller, Airflow's Kubernetes executor.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kerf.model.pods import Pod


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """`run_label` separates runs, `group_label` says what they are runs of; `name_prefix` begins its Jobs' names."""

    name: str
    run_label: str
    group_label: str
    knobs: tuple[str, ...]
    requests: str
    name_prefix: str = ""

    def started(self, pod: Pod) -> bool:
        """Whether the pod is of one of its runs."""
        if self.run_label in pod.labels and self.group_label in pod.labels:
            return True
        return bool(self.name_prefix) and pod.owner is not None and pod.owner.name.startswith(self.name_prefix)


DAGSTER = Orchestrator(
    "Dagster",
    "dagster/run-id",
    "dagster/job",
    (
        "concurrency.runs.max_concurrent_runs in dagster.yaml limits runs in progress",
        "concurrency.runs.tag_concurrency_limits limits them by tag",
    ),
    "tag dagster-k8s/config of the job, container_config.resources",
    "dagster-run",
)
ARGO = Orchestrator(
    "Argo Workflows",
    "workflows.argoproj.io/workflow",
    "workflows.argoproj.io/workflow",
    (
        "spec.parallelism of a Workflow limits its pods",
        "parallelism and namespaceParallelism in the ConfigMap workflow-controller-configmap limit workflows",
    ),
    "container.resources of the template",
)
AIRFLOW = Orchestrator(
    "Airflow",
    "task_id",
    "dag_id",
    (
        "[core] parallelism limits tasks of a scheduler, max_active_tasks_per_dag those of a DAG",
        "[core] max_active_runs_per_dag limits runs of a DAG, the slots of a pool the tasks in it",
    ),
    "executor_config pod_override of the task, or the pod_template_file",
)
ORCHESTRATORS = (DAGSTER, ARGO, AIRFLOW)


@dataclass(frozen=True, slots=True)
class Batch:
    """Pods of one orchestrator that run at once: how many, made by how many owners (none: bare), of which groups."""

    orchestrator: Orchestrator
    pods: int
    owners: int
    groups: tuple[str, ...]


def batches(pods: Iterable[Pod]) -> tuple[Batch, ...]:
    """What each orchestrator has started of these pods, ended ones aside."""
    held = [pod for pod in pods if not pod.is_ended]
    found = []
    for orchestrator in ORCHESTRATORS:
        mine = [pod for pod in held if orchestrator.started(pod)]
        if mine:
            owners = {(pod.namespace, pod.owner.kind, pod.owner.name) for pod in mine if pod.owner is not None}
            groups = {pod.labels[orchestrator.group_label] for pod in mine if orchestrator.group_label in pod.labels}
            found.append(Batch(orchestrator, len(mine), len(owners), tuple(sorted(groups))))
    return tuple(found)
