"""Instants and durations as the Kubernetes API writes them.

Instants are seconds since the epoch; durations whole seconds, None for `Never`.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DURATION = re.compile(r"(?:\d+[smh])+", re.ASCII)
_PART = re.compile(r"(\d+)([smh])", re.ASCII)
_UNIT_S = {"s": 1, "m": 60, "h": 3600}
_GO_PART = re.compile(r"(\d*+)(?:\.(\d*+))?+([^\d.]*+)", re.ASCII)
_GO_UNIT_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_GO_UNIT_NS["h"] = 3600 * 10**9
_MOST_NS, _MOST_DIGITS = 2**63 - 1, 20
_LAST_S = 253_402_300_799
"""9999-12-31T23:59:59Z, the last instant that has a text."""
LONGEST_S = 2**63 // 10**9
"""292 years, the longest duration of Go."""


@lru_cache(maxsize=4096)
def instant_s(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 instant. Raises ValueError."""
    if _INSTANT.fullmatch(text) is None:
        raise ValueError(text)
    return datetime.fromisoformat(text.upper()).timestamp()


def instant_text(seconds: float) -> str:
    """RFC 3339 in UTC and whole seconds, as the API server stores instants; the last there is for later ones."""
    return _second_text(int(min(seconds, _LAST_S)))


@lru_cache(maxsize=4096)
def _second_text(second: int) -> str:
    # Conditions are written again and again with the times that they have.
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration_s(text: str) -> int | None:
    """Seconds of `1h30m`, at most 292 years; None for `Never`. Raises ValueError."""
    if text == "Never":
        return None
    if _DURATION.fullmatch(text) is None:
        raise ValueError(text)
    return min(sum(_whole(number) * _UNIT_S[unit] for number, unit in _PART.findall(text)), LONGEST_S)


def _whole(digits: str) -> int:
    # Python converts no text of thousands of digits.
    significant = digits.lstrip("0")
    return LONGEST_S if len(significant) > 12 else int(significant or "0")


def go_duration_s(text: str) -> float:
    """Seconds of a duration as Go reads it: `1h30m`, `1.5h`, `300ms`, `-5m`. Raises ValueError in the words of Go."""
    rest, amount, at = text[1:] if text[:1] in ("-", "+") else text, 0, 0
    if rest == "0":
        return 0.0
    while at < len(rest) or not rest:
        part = _GO_PART.match(rest, at)
        whole, fraction, unit = part.groups("") if part is not None else ("", "", "")
        if part is None or not whole + fraction:
            raise ValueError(f'time: invalid duration "{text}"')
        if unit not in _GO_UNIT_NS:
            missing = "missing unit" if not unit else f'unknown unit "{unit}"'
            raise ValueError(f'time: {missing} in duration "{text}"')
        # More digits of a fraction are less than a nanosecond; a whole of so many digits is more than Go counts.
        digits, after = whole.lstrip("0")[:_MOST_DIGITS] or "0", fraction[:_MOST_DIGITS]
        amount += int(digits) * _GO_UNIT_NS[unit] + int(after or "0") * _GO_UNIT_NS[unit] // 10 ** len(after)
        at = part.end()
    if amount > _MOST_NS:
        raise ValueError(f'time: invalid duration "{text}"')
    return (-amount if text[0] == "-" else amount) / 10**9


def duration_text(seconds: int | None) -> str:
    """The shortest such text; `Never` for None."""
    if seconds is None:
        return "Never"
    parts = (f"{seconds // 3600}h", f"{seconds % 3600 // 60}m", f"{seconds % 60}s")
    return "".join(part for part in parts if part[:-1] != "0") or "0s"
