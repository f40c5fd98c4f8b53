"""Which windows are open, and which of the pods that wait for one may come.

A window's phase follows from its schedule and the instant of the snapshot, and from what its status remembers: an
opening that began goes on until its end, and one that is over does not begin again, however clocks are set.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.engine.decision import Refusal
from kerf.model.causes import Cause, Name, Quoted, TargetKind, TargetName
from kerf.model.plan import Misfit, Stage
from kerf.model.pods import Pod, PodSpec
from kerf.model.schedules import due_times
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.windows import (
    ALLOW,
    CLOSED,
    OPEN,
    PER_NAMESPACE,
    WARMING,
    WINDOW_GATE,
    WINDOW_LABEL,
    CapacityWindow,
    NoWindowLabel,
    NoWindowSelects,
    WindowClosed,
    WindowElsewhere,
    WindowInvalid,
    WindowNeverOpens,
    WindowQuotaExhausted,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """The phase of a window (Closed, Warming or Open), and its opening: the present one, or the next.

    Both instants are None where there is none any more.
    """

    phase: str
    opens_s: float | None = None
    closes_s: float | None = None


def turn_of(window: CapacityWindow, now_s: float) -> Turn:
    """Where a window stands. One that is invalid is closed for ever."""
    if window.invalid or window.deleted_s is not None:
        return Turn(CLOSED)
    status = window.status
    is_known = status.observed_generation == window.generation
    began_s = status.last_opened_s
    if began_s is not None and status.last_closed_s is None:
        closes_s = _closing_of(window, began_s, is_known)
        if closes_s is not None and now_s < closes_s:
            return Turn(OPEN, began_s, closes_s)
    # A window that was changed may open again what it has closed: its author wants it so.
    floor_s = began_s if began_s is not None and is_known else None
    for opens_s in due_times(window.schedule, window.time_zone, now_s - window.duration_s - 1):
        closes_s = opens_s + window.duration_s
        if closes_s <= now_s or (floor_s is not None and opens_s <= floor_s):
            continue
        if opens_s <= now_s:
            return Turn(OPEN, opens_s, closes_s)
        # What was learned meanwhile must not let go again what an opening has begun to keep.
        is_begun = is_known and status.phase == WARMING and status.opens_s == opens_s
        is_warming = is_begun or now_s >= opens_s - window.lead_s
        return Turn(WARMING if is_warming else CLOSED, opens_s, closes_s)
    return Turn(CLOSED)


def _closing_of(window: CapacityWindow, opened_s: float, is_known: bool) -> float | None:
    """When an opening that began ends; None where the window, changed meanwhile, has no such opening."""
    if is_known:
        return window.status.closes_s
    again = next(due_times(window.schedule, window.time_zone, opened_s - 1), None)
    return opened_s + window.duration_s if again == opened_s else None


def next_change_s(window: CapacityWindow, now_s: float) -> float | None:
    """When the phase changes next by the clock alone; None for never."""
    turn = turn_of(window, now_s)
    if turn.opens_s is None:
        return None
    if turn.phase == OPEN:
        return turn.closes_s
    return turn.opens_s if turn.phase == WARMING else turn.opens_s - window.lead_s


def is_held(pod: Pod) -> bool:
    """Whether a pod waits for a window; one that no API has seen is taken as the admission policy would make it."""
    if pod.uid:
        return WINDOW_GATE in pod.spec.scheduling_gates
    return WINDOW_LABEL in pod.labels and not pod.node_name


@dataclass(frozen=True, slots=True)
class Passed:
    """A waiting pod that a window lets through, without its gate; `window` None where none charges it."""

    pod: Pod
    window: CapacityWindow | None
    turn: Turn


class Windows:
    """All windows of a snapshot at its instant."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._now_s = snapshot.taken_at_s
        self.windows = snapshot.windows
        self.turns = {window.name: turn_of(window, self._now_s) for window in self.windows}
        self._found: dict[tuple[str, int], tuple[CapacityWindow, ...]] = {}
        self._specs: dict[int, tuple[PodSpec, PodSpec]] = {}

    def of(self, pod: Pod) -> tuple[CapacityWindow, ...]:
        """The windows that select a pod, those first whose pods come first."""
        if WINDOW_LABEL not in pod.labels:
            return ()
        key = (pod.namespace, id(pod.labels))
        if key not in self._found:
            found = (window for window in self.windows if window.selects(pod.namespace, pod.labels))
            self._found[key] = tuple(sorted(found, key=lambda w: (-w.queue_priority, w.name)))
        return self._found[key]

    def charges(self, pod: Pod) -> bool:
        """Whether a quota binds a pod that has no gate, and none has let it in yet."""
        mine = [window for window in self.of(pod) if window.quota is not None] if pod.uid else []
        return bool(mine) and not any(held.uid == pod.uid for window in mine for held in window.status.reservations)

    def open_for(self, pod: Pod) -> tuple[CapacityWindow, ...]:
        """Those of them that are open."""
        return tuple(window for window in self.of(pod) if self.turns[window.name].phase == OPEN)

    def ranked(self, pod: Pod) -> Pod:
        """The pod with the priority of the open window that comes first."""
        first = next(iter(self.open_for(pod)), None)
        return pod if first is None or not first.queue_priority else replace(pod, queue_priority=first.queue_priority)

    def verdict(self, pod: Pod) -> tuple[CapacityWindow, ...] | Refusal:
        """The windows that may let a held pod through, the first first; or why none does."""
        mine = self.of(pod)
        passing = self.open_for(pod) or tuple(w for w in mine if w.outside == ALLOW and not w.invalid)
        return passing or self._why_held(pod, mine)

    def _why_held(self, pod: Pod, mine: tuple[CapacityWindow, ...]) -> Refusal:
        if not mine:
            return _held(pod, self._not_found(pod))
        valid = [window for window in mine if not window.invalid]
        if not valid:
            return _held(pod, WindowInvalid(Name(mine[0].name), Quoted(mine[0].invalid)), (mine[0].name,))
        closed = [(w, opens_s) for w in valid if (opens_s := self.turns[w.name].opens_s) is not None]
        if not closed:
            return _held(pod, WindowNeverOpens(Name(valid[0].name)), (valid[0].name,))
        causes = [(opens_s, w.name, self._closed(w, opens_s)) for w, opens_s in closed]
        first = min(causes, key=lambda each: each[:2])[2]
        return _held(pod, first, misfits=tuple(_misfit(cause) for _, _, cause in causes))

    def _closed(self, window: CapacityWindow, opens_s: float) -> WindowClosed:
        wait_s = max(0, int(opens_s - self._now_s))
        return WindowClosed(Name(window.name), opens_s, Name(window.time_zone), wait_s)

    def _not_found(self, pod: Pod) -> Cause:
        label = pod.labels.get(WINDOW_LABEL)
        if label is None:
            return NoWindowLabel()
        elsewhere = [w for w in self.windows if w.selector.unsatisfied_by(pod.labels) is None]
        if not elsewhere:
            return NoWindowSelects(Name(label), tuple(Name(window.name) for window in self.windows))
        namespaces = tuple(Name(namespace) for namespace in elsewhere[0].namespaces)
        return WindowElsewhere(Name(elsewhere[0].name), namespaces, Name(pod.namespace))

    def opened(self, pod: Pod) -> Pod:
        """The pod without the gate, and with its window's priority."""
        held = self._specs.get(id(pod.spec))
        if held is None:
            gates = tuple(gate for gate in pod.spec.scheduling_gates if gate != WINDOW_GATE)
            held = self._specs[id(pod.spec)] = (pod.spec, replace(pod.spec, scheduling_gates=gates))
        return self.ranked(replace(pod, spec=held[1]))


def exhausted(pod: Pod, window: CapacityWindow, wanted: int, left: int) -> Refusal:
    """That a window's quota does not allow a pod: what it would reserve and what is left, as quotas count."""
    assert window.quota is not None
    namespace = pod.namespace if window.quota.per == PER_NAMESPACE else ""
    return _held(pod, WindowQuotaExhausted(Name(window.name), Name(namespace), left, wanted), (window.name,))


def _held(pod: Pod, cause: Cause, windows: Sequence[str] = (), misfits: tuple[Misfit, ...] = ()) -> Refusal:
    rows = tuple(Misfit(TargetName(TargetKind.WINDOW, Name(name)), Stage.WINDOWS, cause) for name in windows)
    return Refusal((pod,), Stage.WINDOWS, cause, rows or misfits)


def _misfit(cause: WindowClosed) -> Misfit:
    return Misfit(TargetName(TargetKind.WINDOW, cause.window), Stage.WINDOWS, cause)


def charged(window: CapacityWindow) -> Mapping[str, int]:
    """By namespace, what is used and reserved of the quota of the present opening."""
    found = dict(window.status.settled)
    for held in window.status.reservations:
        found[held.namespace] = found.get(held.namespace, 0) + held.amount
    return found


def missing_pools(window: CapacityWindow, pools: Iterable[str]) -> tuple[str, ...]:
    """The NodePools that a window names and that do not exist, in its order."""
    there = frozenset(pools)
    return tuple(name for name in window.node_pools if name not in there)
