"""The status of a CapacityWindow as the API has it. Instants lose their fractions there."""

from collections import Counter
from typing import Any

from kerf.manifests.encode import condition_list
from kerf.model.times import duration_text, instant_text
from kerf.model.windows import CapacityWindow, WindowStatus

Object = dict[str, Any]
_GPU_HOUR = 36_000_000


def window_status(window: CapacityWindow) -> Object:
    """The whole status; what is not known is left out."""
    status = window.status
    instants = {
        "opensAt": status.opens_s,
        "closesAt": status.closes_s,
        "lastOpenedAt": status.last_opened_s,
        "lastClosedAt": status.last_closed_s,
    }
    made: Object = {
        "phase": status.phase,
        **{name: instant_text(seconds) for name, seconds in instants.items() if seconds is not None},
        "observedGeneration": status.observed_generation,
    }
    if window.warm:
        made["warm"] = {"asked": status.warm_asked, "ready": status.warm_ready}
    if status.lead_time_s is not None:
        made["leadTime"] = duration_text(status.lead_time_s)
    if status.lead_times_s:
        made["leadTimes"] = [{"nodeClaim": claim, "seconds": seconds} for claim, seconds in status.lead_times_s]
    if window.quota is not None:
        made["used"] = _used(status)
        made["reservations"] = [
            {
                "namespace": held.namespace,
                "name": held.pod.partition("/")[2],
                "uid": held.uid,
                "share": held.share,
                "since": instant_text(held.since_s),
                "until": instant_text(held.until_s),
            }
            for held in status.reservations
        ]
    made["conditions"] = [
        {**condition, "observedGeneration": status.observed_generation}
        for condition in condition_list(status.conditions)
    ]
    return made


def _used(status: WindowStatus) -> list[Object]:
    """By namespace what ended pods have used, and with it what is reserved for the others."""
    settled = Counter(dict(status.settled))
    charged = settled.copy()
    for held in status.reservations:
        charged[held.namespace] += held.amount
    return [
        {"namespace": namespace, "gpuHours": gpu_hours_text(charged[namespace]), "settled": settled[namespace]}
        for namespace in sorted(charged)
    ]


def gpu_hours_text(card_seconds: int) -> str:
    """GPU-hours with up to three decimals, rounded up, of ten-thousandths of a card times seconds."""
    milli = -(-card_seconds * 1000 // _GPU_HOUR)
    return f"{milli / 1000:.3f}".rstrip("0").rstrip(".")
