"""`kerf plan --calendar 7d`: who has which capacity when, and what it costs."""

from collections.abc import Iterator

from kerf.cli.inputs.input import ReadInput
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.render import counted, table
from kerf.engine.study.calendar import CalendarEntry, calendar, total_micro
from kerf.manifests.encode import requirement_list
from kerf.manifests.windows.encode import gpu_hours_text
from kerf.model.constraints import Requirements
from kerf.model.instancetypes import price_number, price_text
from kerf.model.schedules import local_text
from kerf.model.times import duration_text, instant_text
from kerf.model.windows import CapacityWindow


def calendar_of(read: ReadInput, seconds: float) -> tuple[CalendarEntry, ...]:
    """The openings from the moment of the input on."""
    return calendar(read.world, read.snapshot.taken_at_s + seconds)


def calendar_object(entries: tuple[CalendarEntry, ...], read: ReadInput) -> Json:
    """The calendar as JSON."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Calendar",
        "currency": read.market.currency,
        "openings": [
            {
                "window": entry.window.name,
                "opensAt": instant_text(entry.opens_s),
                "closesAt": instant_text(entry.closes_s),
                "timeZone": entry.window.time_zone,
                "leadTime": duration_text(entry.lead_s),
                "pods": {
                    "requirements": requirement_list(entry.window.selector),
                    "namespaces": list(entry.window.namespaces),
                },
                "warm": sum(warm.replicas for warm in entry.window.warm),
                "gpuHours": None if entry.window.quota is None else gpu_hours_text(entry.window.quota.card_seconds),
                "nodes": entry.nodes,
                "unplaced": entry.kept.unserved,
                "cost": price_number(entry.cost_micro),
            }
            for entry in entries
        ],
        "cost": price_number(total_micro(entries)),
    }


def calendar_lines(entries: tuple[CalendarEntry, ...], read: ReadInput) -> Iterator[str]:
    """The calendar as a table."""
    if not entries:
        yield "no CapacityWindow opens in that time"
        return
    currency = read.market.currency
    headers = ("OPENS", "CLOSES", "WINDOW", "FOR", "WARM", "QUOTA", "NODES", currency)
    rows = [
        (
            local_text(entry.opens_s, entry.window.time_zone),
            local_text(entry.closes_s, entry.window.time_zone).removesuffix(f" {entry.window.time_zone}"),
            entry.window.name,
            selector_text(entry.window),
            _warm(entry),
            quota_text(entry.window),
            _nodes(entry),
            price_text(entry.cost_micro),
        )
        for entry in entries
    ]
    yield from table(headers, rows)
    yield ""
    total = price_text(total_micro(entries))
    yield f"cost: {total} {currency} for what {counted(len(entries), 'opening')} keep ready, lead times included,"
    yield "      each reckoned as if no node were there; what pods need beyond that comes on top"


def selector_text(window: CapacityWindow) -> str:
    """Whose window it is."""
    where = f" in {', '.join(window.namespaces)}" if window.namespaces else ""
    return f"{_labels(window.selector)}{where}"


def _labels(selector: Requirements) -> str:
    return ", ".join(f"{key}={value}" for key, value in selector.labels().items()) or str(selector)


def _warm(entry: CalendarEntry) -> str:
    replicas = sum(warm.replicas for warm in entry.window.warm)
    return f"{replicas}, {duration_text(entry.lead_s)} before" if replicas else "-"


def quota_text(window: CapacityWindow) -> str:
    """What its pods may use in one opening."""
    if window.quota is None:
        return "-"
    return f"{gpu_hours_text(window.quota.card_seconds)} GPU-hours a {window.quota.per.lower()}"


def _nodes(entry: CalendarEntry) -> str:
    missing = entry.kept.unserved
    return str(entry.nodes) if not missing else f"{entry.nodes}, {counted(missing, 'place')} missing"
