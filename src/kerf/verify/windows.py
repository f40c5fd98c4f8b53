"""Pods that wait for a window, for a gate of others or for a request get no place before their time."""

from collections.abc import Iterator

from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.placeholders import is_virtual
from kerf.model.pods import Pod
from kerf.model.schedules import due_times
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.model.windows import ALLOW, WINDOW_GATE, WINDOW_LABEL, CapacityWindow
from kerf.verify.after import After

_OURS = (WINDOW_GATE, OPPORTUNISTIC)


def violations(after: After) -> Iterator[Violation]:
    """Pods that are held and get a place. Cost: linear in the pods that wait; nothing where none may be held."""
    snapshot = after.snapshot
    samples = snapshot.pending_samples
    if not any(pod.spec.scheduling_gates or WINDOW_LABEL in pod.labels or pod.invalid for pod in samples):
        return
    open_now = [window for window in snapshot.windows if is_open(window, snapshot)]
    letting = [window for window in snapshot.windows if window.outside == ALLOW and not window.invalid]
    for key, part in _places(after):
        pod = after.pods.get(key)
        if pod is None or is_virtual(key):
            continue
        others = [gate for gate in pod.spec.scheduling_gates if gate not in _OURS]
        if others or pod.invalid is not None:
            expected = "a pod that its scheduler may bind"
            got = f"gate {others[0]}" if others else "one that the API server refuses"
            yield violation(PlanRule.POD_HELD, key, expected, got, part)
        elif _is_held(pod) and not any(w.selects(pod.namespace, pod.labels) for w in (*open_now, *letting)):
            yield violation(PlanRule.WINDOW, key, "a window that is open for it", "none is", part)


def _places(after: After) -> Iterator[tuple[str, PlanPart]]:
    for launch in after.proposal.launches:
        part = PlanPart(PartKind.LAUNCH, launch.name)
        yield from ((placed.pod, part) for placed in launch.pods)
    for placement in after.proposal.placements:
        yield placement.pod.pod, PlanPart(PartKind.PLACEMENT, placement.pod.pod)


def _is_held(pod: Pod) -> bool:
    if pod.uid:
        return WINDOW_GATE in pod.spec.scheduling_gates
    return WINDOW_LABEL in pod.labels and not pod.node_name


def is_open(window: CapacityWindow, snapshot: ClusterSnapshot) -> bool:
    """Whether an opening of the window is under way: one that its status remembers, or by its schedule."""
    now_s, status = snapshot.taken_at_s, window.status
    if window.invalid or window.deleted_s is not None:
        return False
    if status.last_opened_s is not None and status.last_closed_s is None:
        closes_s = status.closes_s if status.closes_s is not None else status.last_opened_s + window.duration_s
        if now_s < max(closes_s, status.last_opened_s + window.duration_s):
            return True
    begun = next(due_times(window.schedule, window.time_zone, now_s - window.duration_s), None)
    return begun is not None and begun <= now_s
