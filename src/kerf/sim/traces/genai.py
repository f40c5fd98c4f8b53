"""GenAI: requests to models that make images (alibaba/clusterdata, cluster-trace-v2026-GenAI).

That is a load and no list of pods. Each base model is served by replicas of its own: in each ten minutes as many run as
keep them busy for 60 % of the time, with the seconds that the requests took. A replica holds a slice of GPU memory for
its model. The trace does not say how large a model is: 24, 32 or 40 GiB by its name, as the memory of the trace's
containers spreads.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator

from kerf.sim.traces.names import GENAI
from kerf.sim.traces.rows import Table
from kerf.sim.traces.timedpods import GPU, MEMORY_MIB, PodForms, TimedPod

NAME = GENAI
COLUMNS = ("gmt_create", "exec_time_seconds", "checkpoint_model_version_id")
HINTS: dict[str, str] = {}

NO_MODEL = "left out, since they name no model"

STEP_S, BUSY = 600, 0.6
SLICES_MIB = (24 * 1024, 32 * 1024, 40 * 1024)
CPU, MEMORY = "4", "16Gi"
"""What a replica asks besides: an assumption, for the trace does not say."""


def pods(table: Table, forms: PodForms, notes: dict[str, int]) -> Iterator[TimedPod]:
    """The replicas by model and number; time 0 is the first request. `notes` counts requests without a model.

    Cost: memory for each model in each ten minutes, not for each request.
    """
    busy_s: dict[str, Counter[int]] = {}
    for row in table.rows():
        at_s, model = row.instant_s("gmt_create"), row.text("checkpoint_model_version_id")
        if not model:
            notes[NO_MODEL] = notes.get(NO_MODEL, 0) + 1
            continue
        if model not in busy_s:
            busy_s[row.label("checkpoint_model_version_id")] = Counter()
        busy_s[model][at_s // STEP_S] += round(row.number("exec_time_seconds"))
    first = min((min(steps) for steps in busy_s.values()), default=0)
    for model in sorted(busy_s):
        limits = {"cpu": CPU, "memory": MEMORY, GPU: "1", MEMORY_MIB: str(slice_mib(model))}
        form = forms.form(limits, {"model": model})
        wanted = {step - first: -(-seconds // int(STEP_S * BUSY)) for step, seconds in busy_s[model].items() if seconds}
        yield from (TimedPod(f"{model}-{n}", *times, form) for n, times in enumerate(_replicas(wanted)))


def slice_mib(model: str) -> int:
    """The memory of a replica's slice; of the model's name alone."""
    return SLICES_MIB[hashlib.sha256(model.encode()).digest()[0] % len(SLICES_MIB)]


def _replicas(wanted: dict[int, int]) -> Iterator[tuple[int, int]]:
    """(came_s, runs_s) of replicas, of which so many run in each step; the last to come is the first to go."""
    running: list[int] = []
    for step in sorted({at for each in wanted for at in (each, each + 1)}):
        now = wanted.get(step, 0)
        while len(running) > now:
            came = running.pop()
            yield came * STEP_S, (step - came) * STEP_S
        running += [step] * (now - len(running))
