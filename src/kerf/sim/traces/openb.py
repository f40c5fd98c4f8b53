"""openb: pods of a cluster that shares GPUs (alibaba/clusterdata, cluster-trace-gpu-v2023).

A pod asks for `num_gpu` cards, of one of them perhaps only `gpu_milli` thousandths. It runs in the trace from
`scheduled_time` to `deletion_time`, seconds of the trace's clock; a pod that was never scheduled has never run.
"""

from collections.abc import Iterator

from kerf.sim.traces.names import OPENB
from kerf.sim.traces.rows import Table, TraceRow
from kerf.sim.traces.timedpods import GPU, PERCENT, PodForm, PodForms, TimedPod

NAME = OPENB
COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
HINTS = {"scheduled_time": "its multigpu files have no times, so there is nothing to replay"}

NEVER_RAN = "left out, since they were never scheduled in the trace"
NAMES_MODELS = "models of GPUs that they name (gpu_spec) are not asked for"


def pods(table: Table, forms: PodForms, notes: dict[str, int]) -> Iterator[TimedPod]:
    """The pods in the order of the file; `notes` counts what was left out."""
    for row in table.rows():
        if row.text("gpu_spec"):
            notes[NAMES_MODELS] = notes.get(NAMES_MODELS, 0) + 1
        if not row.text("scheduled_time"):
            notes[NEVER_RAN] = notes.get(NEVER_RAN, 0) + 1
            continue
        came_s, began_s, ended_s = row.whole("creation_time"), row.whole("scheduled_time"), row.whole("deletion_time")
        if ended_s < began_s:
            raise row.error("deletion_time", f"a time from scheduled_time ({began_s}) on", ended_s)
        yield TimedPod(row.filled("name"), came_s, ended_s - began_s, _form(row, forms))


def _form(row: TraceRow, forms: PodForms) -> PodForm:
    amounts = {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"}
    gpus, milli = row.whole("num_gpu", 1024), row.whole("gpu_milli", 1000)
    if not gpus:
        return forms.form(amounts)
    if not milli:
        raise row.error("gpu_milli", "from 1 to 1000 thousandths of a card", milli)
    # HAMi counts whole percents; rounded up, the pod has what it asks for.
    return forms.form({**amounts, GPU: str(gpus), PERCENT: str(-(-milli // 10))})
