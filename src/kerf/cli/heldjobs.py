"""Jobs that their own deadline ends while a window holds their pods.

A Job's `activeDeadlineSeconds` counts from the moment its controller sees it, whether its pods may start or not. So a
Job of two hours that is submitted five hours before its window opens is dead when it does.
"""

from collections.abc import Iterator

from kerf.cli.inputs.input import ReadInput
from kerf.cli.inputs.wanted import is_of
from kerf.engine.decision import Refusal
from kerf.engine.headroom.windows.phases import Windows, is_held
from kerf.manifests.decoded import Workload
from kerf.model.times import duration_text
from kerf.model.windows import WindowClosed

_REMEDY = "put activeDeadlineSeconds into the pod template, where it counts from the start on a node"


def deadline_notes(read: ReadInput) -> tuple[str, ...]:
    """One line for each Job that ends before the window opens that holds its pods, in the order of the input."""
    windows = Windows(read.snapshot)
    if not windows.windows:
        return ()
    texts = ((workload, deadline_text(workload, read, windows)) for workload in read.decoded.workloads)
    return tuple(f"Job {workload.namespace}/{workload.name}: {text}" for workload, text in texts if text)


def deadline_text(workload: Workload, read: ReadInput, windows: Windows | None = None) -> str:
    """That a Job ends before its window opens, and what helps; empty where it does not."""
    if workload.kind != "Job" or workload.deadline_s is None or workload.suspended:
        return ""
    now_s = read.snapshot.taken_at_s
    ends_s = (workload.started_s or now_s) + workload.deadline_s
    closed = next(_closed(workload, read, windows or Windows(read.snapshot)), None)
    if closed is None or closed.opens_s < ends_s:
        return ""
    left = duration_text(max(0, int(ends_s - now_s)))
    return (
        f"its activeDeadlineSeconds ends it in {left}, and window {closed.window} opens in "
        f"{duration_text(closed.wait_s)}: a Job's clock runs while its pods are held; {_REMEDY}"
    )


def _closed(workload: Workload, read: ReadInput, windows: Windows) -> Iterator[WindowClosed]:
    """Why its pods are held, for each that is."""
    for pod in read.snapshot.pending:
        if is_held(pod) and is_of(pod, workload, read.decoded.workloads):
            verdict = windows.verdict(pod)
            if isinstance(verdict, Refusal) and isinstance(verdict.cause, WindowClosed):
                yield verdict.cause
