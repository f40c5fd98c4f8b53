"""DLRM: instances of recommendation services, with CPUs alone or a GPU (alibaba/clusterdata, cluster-trace-gpu-v2025).

An instance without `creation_time` was there before the trace began, and one without `deletion_time` outlives it.
RDMA, disk and the most instances of an application on one node have no counterpart here.
"""

from collections.abc import Iterator

from kerf.sim.traces.names import DLRM
from kerf.sim.traces.rows import Table
from kerf.sim.traces.timedpods import GPU, PERCENT, PodForms, TimedPod

NAME = DLRM
COLUMNS = (
    "instance_sn",
    "role",
    "app_name",
    "cpu_request",
    "gpu_request",
    "memory_request",
    "creation_time",
    "scheduled_time",
    "deletion_time",
)
HINTS: dict[str, str] = {}

LEFT_OUT = "RDMA, disk and the most of an application on one node (max_instance_per_node) are not asked for"


def pods(table: Table, forms: PodForms, notes: dict[str, int]) -> Iterator[TimedPod]:
    """The pods in the order of the file; memory is in GiB, times in seconds; `notes` counts what was left out."""
    for row in table.rows():
        came_s = int(row.optional("creation_time") or 0)
        began_s = int(row.optional("scheduled_time") or came_s)
        ended = row.optional("deletion_time")
        if ended is not None and ended < came_s:
            raise row.error("deletion_time", f"a time from creation_time ({came_s}) on", row.text("deletion_time"))
        limits = {"cpu": f"{round(row.number('cpu_request') * 1000)}m"}
        limits["memory"] = f"{round(row.number('memory_request') * 1024)}Mi"
        gpus = row.whole("gpu_request", 1024)
        if gpus:
            limits |= {GPU: str(gpus), PERCENT: "100"}
        labels = {"app": row.label("app_name"), "role": row.label("role")}
        notes[LEFT_OUT] = notes.get(LEFT_OUT, 0) + 1
        runs_s = None if ended is None else max(0, int(ended) - began_s)
        yield TimedPod(row.filled("instance_sn"), came_s, runs_s, forms.form(limits, labels))
