"""CapacityWindow (`kerf.dev/v1alpha1`): hours in which certain pods may run, and capacity that is ready for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.model.causes import Cause, Name, Quoted
from kerf.model.constraints import NO_SCHEDULE, Requirements, Taint
from kerf.model.nodeclaim import Condition
from kerf.model.pods import Pod

WINDOW_LABEL = "kerf.dev/window"
"""Label of the pods that windows select, and key of the taint of nodes that are kept for one."""
WINDOW_GATE = "kerf.dev/window"
"""Scheduling gate that the admission policy gives to pods with that label."""
ADMITTED = "kerf.dev/admitted-by"
"""Annotation of a pod whose gate was opened: `window@instant`, the opening that it was admitted in; outside of one
(`outside: Allow`) the window alone."""

CLOSED, WARMING, OPEN, CLOSING = "Closed", "Warming", "Open", "Closing"
HOLD, ALLOW = "Hold", "Allow"
FINISH, EVICT = "Finish", "Evict"
PER_NAMESPACE, PER_WINDOW = "Namespace", "Window"
OPEN_CONDITION, WARM_READY, QUOTA_EXHAUSTED = "Open", "WarmReady", "QuotaExhausted"

EVICTION_FINALIZER = "kerf.dev/eviction"
"""On a window with `atEnd: Evict` from its opening on until its pods are gone: deleted, it still ends as it says."""

FIRST_LEAD_S = 600
"""How long before its opening capacity is bought while no node of its pools has shown how long one takes."""
WHOLE_CARD = 10_000
"""Shares of a card are counted in ten-thousandths."""


@dataclass(frozen=True, slots=True)
class WindowInvalid(Cause):
    """The pod's window opens nothing."""

    window: Name
    problem: Quoted


@dataclass(frozen=True, slots=True)
class WindowNeverOpens(Cause):
    """The schedule of the pod's window has no instant to come."""

    window: Name


@dataclass(frozen=True, slots=True)
class WindowClosed(Cause):
    """The pod's window opens at `opens_s`, in `wait_s`."""

    window: Name
    opens_s: float
    time_zone: Name
    wait_s: int


@dataclass(frozen=True, slots=True)
class NoWindowLabel(Cause):
    """The gate waits for a window, and the pod lacks the label of one."""


@dataclass(frozen=True, slots=True)
class NoWindowSelects(Cause):
    """No window selects the pod's label; `there` are those that exist."""

    label: Name
    there: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class WindowElsewhere(Cause):
    """A window selects the label in other namespaces only."""

    window: Name
    namespaces: tuple[Name, ...]
    namespace: Name


@dataclass(frozen=True, slots=True)
class WindowQuotaExhausted(Cause):
    """The quota of the pod's window has less left than the pod would reserve, in ten-thousandths of a card-second.

    `namespace` is whose quota it is; empty where all pods of the window share one.
    """

    window: Name
    namespace: Name
    left: int
    wanted: int


@dataclass(frozen=True)
class WarmCapacity:
    """So many places for `pod`, ready when the window opens; `is_exclusive`: on nodes that only its pods may use."""

    replicas: int
    pod: Pod
    is_exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Quota:
    """What the pods of one opening may use, in ten-thousandths of a card times seconds, per namespace or in all."""

    card_seconds: int
    per: str = PER_NAMESPACE


@dataclass(frozen=True, slots=True)
class Reservation:
    """What an admitted pod may use of a quota: `share` of a card in ten-thousandths, from `since_s` to `until_s`."""

    pod: str
    uid: str
    share: int
    since_s: float
    until_s: float

    @property
    def namespace(self) -> str:
        """The namespace that is charged."""
        return self.pod.partition("/")[0]

    @property
    def amount(self) -> int:
        """What is held for it, as in a Quota."""
        return self.used(self.until_s)

    def used(self, now_s: float) -> int:
        """What it has used if it ended now, as in a Quota; also beyond what was reserved."""
        return self.share * max(0, int(now_s) - int(self.since_s))


@dataclass(frozen=True)
class WindowStatus:
    """What is known of a window from one moment to the next, and across restarts.

    `opens_s` and `closes_s` are of the opening that is warming or open, else of the next. `last_opened_s` and
    `last_closed_s` are of the latest that began; nothing before it begins again, however clocks are set. `settled` is
    what ended pods have used of its quota by namespace, `reservations` what is held for the others. `lead_times_s` are
    what nodes of its pools took, by claim, the latest last.
    """

    phase: str = ""
    opens_s: float | None = None
    closes_s: float | None = None
    last_opened_s: float | None = None
    last_closed_s: float | None = None
    lead_time_s: int | None = None
    lead_times_s: tuple[tuple[str, int], ...] = ()
    warm_asked: int = 0
    warm_ready: int = 0
    settled: tuple[tuple[str, int], ...] = ()
    reservations: tuple[Reservation, ...] = ()
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0

    def condition(self, name: str) -> Condition | None:
        """The condition of that type; None when it was never set."""
        return next((c for c in self.conditions if c.type == name), None)


@dataclass(frozen=True)
class CapacityWindow:
    """A window as its manifest states it, plus what the API knows of it.

    `namespaces` and `node_pools` empty mean any; `lead_time_s` None means learned; `eviction_deadline_s` None that
    PodDisruptionBudgets hold for ever. `invalid` says what of the spec cannot be followed although the API took it:
    such a window opens nothing.
    """

    name: str
    schedule: str
    time_zone: str
    duration_s: int
    selector: Requirements
    namespaces: tuple[str, ...] = ()
    node_pools: tuple[str, ...] = ()
    warm: tuple[WarmCapacity, ...] = ()
    lead_time_s: int | None = None
    outside: str = HOLD
    at_end: str = FINISH
    eviction_deadline_s: int | None = None
    queue_priority: int = 0
    quota: Quota | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int = 1
    created_s: float = 0
    deleted_s: float | None = None
    finalizers: tuple[str, ...] = ()
    status: WindowStatus = field(default=WindowStatus(), hash=False)
    invalid: str = ""

    @property
    def lead_s(self) -> int:
        """How long before an opening its capacity is bought: as stated, else as learned."""
        if self.lead_time_s is not None:
            return self.lead_time_s
        return FIRST_LEAD_S if self.status.lead_time_s is None else self.status.lead_time_s

    @property
    def is_ending_yet(self) -> bool:
        """Whether our finalizer holds it until its pods are evicted."""
        return EVICTION_FINALIZER in self.finalizers

    @property
    def taint(self) -> Taint:
        """What keeps others off the nodes of exclusive capacity."""
        return Taint(WINDOW_LABEL, self.name, NO_SCHEDULE)

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod of that namespace with those labels is one of its own."""
        if self.namespaces and namespace not in self.namespaces:
            return False
        return self.selector.unsatisfied_by(labels) is None


def admitted_text(window: str, opened_s: str) -> str:
    """The annotation of an admitted pod; `opened_s` is the instant as text, empty outside of any opening."""
    return f"{window}@{opened_s}" if opened_s else window


def admitted_by(pod: Pod) -> tuple[str, str]:
    """(window, instant of its opening as text) that a pod was admitted by; empty where there is none."""
    window, _, opened = pod.annotations.get(ADMITTED, "").partition("@")
    return window, opened
