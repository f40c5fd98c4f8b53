"""Instants and spans as people read them."""

import datetime


def wall_time(when_s: float) -> str:
    """An instant as people read it, in UTC."""
    return datetime.datetime.fromtimestamp(when_s, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration_text(seconds: float) -> str:
    """A span as people write it: `10m`, `1h5m`, `45s`; its two largest units."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    parts = [f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if n]
    return "".join(parts[:2]) or "0s"
