"""The form of `kerf.dev/v1alpha1` CapacityWindow, and its rules that no single field can state.

As with Karpenter's objects, what a server takes and no controller could follow is an error in a manifest, and a verdict
on a live object, which says so in its status and opens nothing.
"""

from typing import Any

from kerf.errors import DecodeError
from kerf.manifests.kinds import CONDITIONS, SELECTOR, TEMPLATE_METADATA, object_of
from kerf.manifests.schema import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    DURATION,
    FILLED,
    INSTANT,
    NAME,
    TEXT,
    ListOf,
    Record,
    Report,
    Scalar,
    one_of,
    path_text,
    whole,
)
from kerf.model.quantities import quantity
from kerf.model.schedules import first_overlap, has_zone, local_text, schedule_problem
from kerf.model.times import duration_s
from kerf.model.windows import ALLOW, EVICT, FINISH, HOLD, PER_NAMESPACE, PER_WINDOW, WINDOW_LABEL

Object = dict[str, Any]
MOST_PRIORITY, MOST_REPLICAS = 1_000_000_000, 10_000
_LEAST_S = 60
_MOST_GPU_HOURS = 10**9


def _is_gpu_hours(value: object) -> bool:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return False
    return 0 <= quantity(value, milli=True) <= _MOST_GPU_HOURS * 1000


GPU_HOURS = Scalar('a quantity of GPU-hours such as "40" or 500m', _is_gpu_hours)
_WARM = Record(
    {
        "replicas": whole(1, MOST_REPLICAS),
        "template": Record({"metadata": TEMPLATE_METADATA, "spec": ANYTHING}, ("spec",)),
        "exclusive": BOOLEAN,
    },
    ("replicas", "template"),
)
CAPACITY_WINDOW = object_of(
    Record(
        {
            "schedule": FILLED,
            "timeZone": FILLED,
            "duration": DURATION,
            "nodePools": ListOf(NAME, 0, 50),
            "warm": ListOf(_WARM, 0, 20),
            "leadTime": DURATION,
            "pods": Record({"selector": SELECTOR, "namespaces": ListOf(NAME, 0, 100)}, ("selector",)),
            "outside": one_of(HOLD, ALLOW),
            "atEnd": one_of(FINISH, EVICT),
            "evictionDeadline": DURATION,
            "queuePriority": whole(0, MOST_PRIORITY),
            "quota": Record({"gpuHours": GPU_HOURS, "per": one_of(PER_NAMESPACE, PER_WINDOW)}, ("gpuHours",)),
        },
        ("schedule", "duration", "pods"),
    ),
    Record(
        {
            "phase": TEXT,
            "opensAt": INSTANT,
            "closesAt": INSTANT,
            "lastOpenedAt": INSTANT,
            "lastClosedAt": INSTANT,
            "leadTime": DURATION,
            "leadTimes": ListOf(Record({"nodeClaim": FILLED, "seconds": COUNT}, ("nodeClaim", "seconds"))),
            "warm": Record({"asked": COUNT, "ready": COUNT}),
            "used": ListOf(Record({"namespace": NAME, "gpuHours": GPU_HOURS, "settled": COUNT}, ("namespace",))),
            "reservations": ListOf(
                Record(
                    {
                        "namespace": NAME,
                        "name": NAME,
                        "uid": FILLED,
                        "share": COUNT,
                        "since": INSTANT,
                        "until": INSTANT,
                    },
                    ("namespace", "name", "uid", "share", "since", "until"),
                )
            ),
            "observedGeneration": COUNT,
            "conditions": CONDITIONS,
        },
        is_open=True,
    ),
)


def check_window(raw: Object, report: Report) -> None:
    """What the API server refuses by its rules; in a manifest also what no controller could follow."""
    spec = raw["spec"]
    if not _requires_label(spec["pods"]["selector"]):
        report.problem(
            ("spec", "pods", "selector"),
            f"a selector that requires the label {WINDOW_LABEL}",
            spec["pods"]["selector"],
            f"only pods with that label are held: add {WINDOW_LABEL} to matchLabels",
        )
    if not report.is_live:
        _note_unusable(raw, report)


def window_verdict(raw: Object) -> str:
    """Why a live window opens nothing; empty when nothing is wrong with it."""
    report = Report()
    _note_unusable(raw, report)
    return "; ".join(str(DecodeError(path_text(p.path), p.expected, p.got, hint=p.hint)) for p in report.problems)


def _requires_label(selector: Object) -> bool:
    expressions = selector.get("matchExpressions") or ()
    return WINDOW_LABEL in (selector.get("matchLabels") or {}) or any(
        each["key"] == WINDOW_LABEL and each["operator"] in ("In", "Exists") for each in expressions
    )


def _note_unusable(raw: Object, report: Report) -> None:
    spec = raw["spec"]
    schedule, zone, duration = spec["schedule"], spec.get("timeZone") or "UTC", duration_s(spec["duration"]) or 0
    problem = schedule_problem(schedule)
    if problem:
        expected = "five fields of cron, or a macro such as @daily"
        report.problem(("spec", "schedule"), f"{expected} ({problem})", schedule)
    if not has_zone(zone):
        hint = "names are those of the IANA database, such as Europe/Berlin or Asia/Shanghai"
        report.problem(("spec", "timeZone"), "a time zone", zone, hint)
    if duration < _LEAST_S:
        report.problem(("spec", "duration"), "at least 1m", spec["duration"])
    overlap = first_overlap(schedule, zone, duration) if not report.problems else None
    if overlap is not None:
        first, second = (local_text(instant, zone) for instant in overlap)
        expected = f"less than the time between two openings, such as {first} and {second}"
        hint = "the duration is elapsed time: a day on which clocks are set forward has 23 hours"
        report.problem(("spec", "duration"), expected, spec["duration"], hint)
    quota = spec.get("quota")
    if quota is not None and quantity(quota["gpuHours"], milli=True) == 0:
        hint = "a window that no pod may use: leave the quota out, or delete the window"
        report.problem(("spec", "quota", "gpuHours"), "more than 0", quota["gpuHours"], hint)
    _note_exclusive(raw, report)


def _note_exclusive(raw: Object, report: Report) -> None:
    """The pods of exclusive capacity tolerate its taint by their label, which must be the window's name then."""
    spec, name = raw["spec"], raw["metadata"]["name"]
    labels = spec["pods"]["selector"].get("matchLabels") or {}
    if any(warm.get("exclusive") for warm in spec.get("warm") or ()) and labels.get(WINDOW_LABEL) != name:
        path = ("spec", "pods", "selector", "matchLabels", WINDOW_LABEL)
        report.problem(path, f"{name}, for exclusive capacity", labels.get(WINDOW_LABEL))
