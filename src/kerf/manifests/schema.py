"""Checks of plain values against the form of an API object, before anything is decoded.

One walk finds every wrong type, missing field and unknown name of an object, each with its path, so decoding can
take the form for granted and a user sees all errors at once. Unknown names are not errors: the API may be newer.

Nearly every object is right, and a path for each of its values costs more than a look at them. So a record is looked at
without paths first (`fits`), and walked only where that finds something to note.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Protocol

from kerf.errors import MOST_SHOWN, brief
from kerf.manifests.unfilled import unfilled_hint
from kerf.model.quantities import quantity_of
from kerf.model.times import duration_s, instant_s

Path = tuple[str | int, ...]

_MOST_BITS = 200
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_SUBDOMAIN = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_LABEL_KEY = re.compile(rf"(?:{_SUBDOMAIN}/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?", re.ASCII)
# As the CRDs of Karpenter have it: the name, too, may be of any length.
_QUALIFIED = re.compile(rf"(?:{_SUBDOMAIN}/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at `path`."""

    path: Path
    expected: str
    got: object
    hint: str = ""
    is_unquoted: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A field of a known object that we do not know; `nearest` is a known name like it, or empty."""

    path: Path
    nearest: str = ""


@dataclass
class Report:
    """What a walk has found so far. `newest_s` is the latest instant seen.

    `is_live`: the object comes from a server, which has taken it: mistakes that the server takes are none here.
    `doubts` are values that were left out because they cannot be true, or for which the object was left out.
    `refused` are mistakes in the pods of the object, for which a server would refuse them: it is read nevertheless, and
    its pods say the first of them (`Pod.invalid`).
    `known` is an earlier form of the object in which there was no problem, None for none: what both hold as one value
    is not looked into again.
    `root` is where the object stands in its document; `place_of` says where in the input a field of that is, and
    `written_of` how a scalar is written there.
    """

    problems: list[Problem] = field(default_factory=list)
    doubts: list[Problem] = field(default_factory=list)
    refused: list[Problem] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    newest_s: float = 0
    is_live: bool = False
    known: Any = None
    root: Path = ()
    place_of: Callable[[Path], str] = lambda _path: ""
    written_of: Callable[[Path], str] = lambda _path: ""

    def problem(self, path: Path, expected: str, got: object, hint: str = "") -> None:
        """Note that the value at `path` is not as expected."""
        is_unquoted = expected.startswith("text") and isinstance(got, bool | int | float)
        self.problems.append(Problem(path, expected, shown(got), unfilled_hint(got) or hint, is_unquoted))

    def doubt(self, path: Path, expected: str, got: object, hint: str = "") -> None:
        """Note that the value at `path` was left out."""
        self.doubts.append(mistake(path, expected, got, hint))


def mistake(path: Path, expected: str, got: object, hint: str = "") -> Problem:
    """A problem with what an error shows of the value."""
    return Problem(path, expected, shown(got), unfilled_hint(got) or hint)


def no_word(path: Path, words: Sequence[str], got: object) -> Problem:
    """That the value is none of these words; one that is like it is the hint."""
    meant = [word for word in words if isinstance(got, str) and word.casefold() == got.casefold()]
    meant = meant or (get_close_matches(got, words, 1) if isinstance(got, str) else [])
    return mistake(path, f"one of {', '.join(words)}", got, f"is `{meant[0]}` meant?" if meant else "")


class Schema(Protocol):
    """The form of a value."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        """Note in `report` where `value` is not of this form; never raises."""
        ...

    def fits(self, value: Any, report: Report) -> bool:
        """Whether `check` is certain to note nothing; of `report` only `newest_s` moves, as `check` moves it."""
        ...


def path_text(path: Path) -> str:
    """A path as people write it: `spec.containers[0].limits["nvidia.com/gpu"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]' if step.isprintable() else f"[{brief(step)}]"
    return text


def shown(value: object) -> object:
    """What an error shows of a value: itself, or its kind in angle brackets where it is large."""
    if value is None:
        return "<nothing>"
    if isinstance(value, dict):
        return "<a mapping>"
    if isinstance(value, list):
        return f"<a list of {len(value)}>"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "<a very large number>"
    # An error shows text that begins with a bracket as it is, which is meant for our own words only. Long text is cut
    # here, since problems are kept with all that they show.
    is_ours = isinstance(value, str) and (value.startswith("<") or len(value) > MOST_SHOWN)
    return f"<{brief(value)}>" if is_ours else value


class Scalar:
    """A value that `accepts` agrees to; it may raise ValueError instead of giving False."""

    def __init__(self, expected: str, accepts: Callable[[Any], bool]) -> None:
        self.expected, self._accepts = expected, accepts

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        if not self.accepts(value):
            report.problem(path, self.expected, value)

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        return self.accepts(value)

    def accepts(self, value: Any) -> bool:
        """Whether `value` is of this form."""
        try:
            return self._accepts(value)
        except ValueError:
            return False


class _Anything:
    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        return True


class _Instant:
    """The latest one is kept in the report, save those that lie ahead."""

    def __init__(self, *, is_ahead: bool = False) -> None:
        self._is_ahead = is_ahead

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        if not self.fits(value, report):
            report.problem(path, "an RFC 3339 instant such as 2026-01-05T07:00:00Z", value)

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        if not isinstance(value, str):
            return False
        try:
            seconds = instant_s(value)
        except ValueError:
            return False
        if seconds > report.newest_s and not self._is_ahead:
            report.newest_s = seconds
        return True


class _Quantities:
    """A map of resource names to amounts that are not negative."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        if not isinstance(value, dict):
            report.problem(path, "a mapping of resources to quantities", value)
            return
        for name, amount in value.items():
            if amount is None or not is_quantity(name, amount):
                report.problem((*path, name), "a quantity", amount, QUANTITY_HINT)
            elif quantity_of(name, amount) < 0:
                report.problem((*path, name), "a quantity that is not negative", amount)

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        if not isinstance(value, dict):
            return False
        return all(is_quantity(name, amount) and quantity_of(name, amount) >= 0 for name, amount in value.items())


def is_quantity(name: str, amount: object) -> bool:
    """Whether it is the text or number of a Kubernetes quantity."""
    if not isinstance(amount, str | int | float):
        return False
    try:
        quantity_of(name, amount)
    except (ValueError, OverflowError):
        return False
    return True


class ListOf:
    """A list of one form, of `least` to `most` items."""

    def __init__(self, item: Schema, least: int = 0, most: int | None = None) -> None:
        self._item, self._least, self._most = item, least, most

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        if not isinstance(value, list):
            report.problem(path, "a list", value)
            return
        if not self._has_length(value):
            most = "or more" if self._most is None else f"to {self._most}"
            report.problem(path, f"a list of {self._least} {most}", value)
        for index, item in enumerate(value):
            self._item.check(item, (*path, index), report)

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        if not isinstance(value, list) or not self._has_length(value):
            return False
        fits = self._item.fits
        return self._item is ANYTHING or all(fits(item, report) for item in value)

    def fits_beside(self, value: Any, known: Any, report: Report) -> bool:
        """As `fits`; `known` has fitted before, and what both hold as one value is not looked into again."""
        item = self._item
        if not isinstance(item, Record) or not isinstance(known, list) or not isinstance(value, list):
            return self.fits(value, report)
        if len(value) != len(known):
            return self.fits(value, report)
        return all(item.fits_beside(each, was, report) for each, was in zip(value, known, strict=True))

    def _has_length(self, value: list[Any]) -> bool:
        return len(value) >= self._least and (self._most is None or len(value) <= self._most)


class MapOf:
    """A mapping of at most `most` entries whose keys satisfy `key` and whose values have one form."""

    def __init__(self, value: Schema, key: Schema | None = None, most: int | None = None) -> None:
        self._value, self._key, self._most = value, key, most

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        if not isinstance(value, dict):
            report.problem(path, "a mapping", value)
            return
        if self._most is not None and len(value) > self._most:
            report.problem(path, f"at most {self._most} entries", len(value))
        for name, item in value.items():
            if self._key is not None:
                self._key.check(name, (*path, name), report)
            self._value.check(item, (*path, name), report)

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        if not isinstance(value, dict) or (self._most is not None and len(value) > self._most):
            return False
        fits = self._value.fits
        if self._key is not None:
            fits_key = self._key.fits
            return all(fits_key(name, report) and fits(item, report) for name, item in value.items())
        return all(fits(item, report) for item in value.values())


class Record:
    """A mapping with named fields. `null` means absent, as in the API; `is_open` lets other names pass unnoted."""

    def __init__(self, fields: Mapping[str, Schema], required: tuple[str, ...] = (), *, is_open: bool = False) -> None:
        self._fields, self._required, self._is_open = dict(fields), required, is_open
        self._looked_into = {name: schema.fits for name, schema in fields.items() if schema is not ANYTHING}
        self._parts = {name: schema for name, schema in fields.items() if isinstance(schema, Record | ListOf)}

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        if not isinstance(value, dict):
            return False
        if not self._is_open and not value.keys() <= self._fields.keys():
            return False
        for name, item in value.items():
            fits = self._looked_into.get(name)
            if fits is not None and item is not None and not fits(item, report):
                return False
        return all(value.get(name) is not None for name in self._required)

    def fits_beside(self, value: Any, known: Any, report: Report) -> bool:
        """As `fits`; `known` has fitted before, and what both hold as one value is not looked into again."""
        if not isinstance(value, dict) or not isinstance(known, dict):
            return self.fits(value, report)
        if not self._is_open and not value.keys() <= self._fields.keys():
            return False
        for name, item in value.items():
            was, fits = known.get(name), self._looked_into.get(name)
            if fits is None or item is None or item is was or (type(item) is str and item == was):
                continue
            part = self._parts.get(name)
            if not (fits(item, report) if part is None or was is None else part.fits_beside(item, was, report)):
                return False
        return all(value.get(name) is not None for name in self._required)

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        is_known = report.known is not None and not path
        if not (self.fits_beside(value, report.known, report) if is_known else self.fits(value, report)):
            self._walk(value, path, report)

    def _walk(self, value: Any, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.problem(path, "a mapping", value)
            return
        for name, item in value.items():
            schema = self._fields.get(name)
            if schema is None:
                if self._is_open:
                    continue
                nearest = get_close_matches(name, self._fields, 1)
                report.unknown.append(Unknown((*path, name), nearest[0] if nearest else ""))
            elif item is not None and schema is not ANYTHING:
                schema.check(item, (*path, name), report)
        for name in self._required:
            if value.get(name) is None:
                meant = get_close_matches(name, [key for key in value if key not in self._fields], 1)
                hint = f"is `{meant[0]}` meant as `{name}`?" if meant else ""
                report.problem((*path, name), "a value", None, hint)


def whole(least: int | None = None, most: int | None = None) -> Scalar:
    """A whole number within inclusive bounds."""
    bounds = {(True, False): f" of at least {least}", (True, True): f" from {least} to {most}"}
    words = "a whole number" + bounds.get((least is not None, most is not None), "")

    def accepts(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        return (least is None or value >= least) and (most is None or value <= most) and abs(value) < 2**53

    return Scalar(words, accepts)


def one_of(*words: str) -> Scalar:
    """One of some words; an empty one, which stands for nothing said, is not named."""
    return Scalar(f"one of {', '.join(filter(None, words))}", lambda value: isinstance(value, str) and value in words)


def known(names: str) -> dict[str, Schema]:
    """Fields that exist and that we do not look into."""
    return dict.fromkeys(names.split(), ANYTHING)


def _is_duration(value: object) -> bool:
    if not isinstance(value, str):
        return False
    duration_s(value)
    return True


def _matches(form: re.Pattern[str], most: int, *, kept: int = 16_384) -> Callable[[Any], bool]:
    # The same few thousand labels come with every node and pod, and a look is cheaper than a match.
    @lru_cache(maxsize=kept)
    def fits(value: str) -> bool:
        return form.fullmatch(value) is not None

    return lambda value: isinstance(value, str) and len(value) <= most and fits(value)


QUANTITY_HINT = "a number, or one with a suffix: m, k, M, G, Ki, Mi, Gi"
ANYTHING = _Anything()
TEXT = Scalar("text", lambda value: isinstance(value, str))
FILLED = Scalar("text that is not empty", lambda value: isinstance(value, str) and value != "")
BOOLEAN = Scalar("true or false", lambda value: isinstance(value, bool))
WHOLE = whole()
INT32 = Scalar("a whole number of 32 bits", lambda value: WHOLE.accepts(value) and -(2**31) <= value < 2**31)
INT64 = Scalar("a whole number of 64 bits", lambda value: type(value) is int and -(2**63) <= value < 2**63)
COUNT = whole(0)
INSTANT = _Instant()
INSTANT_AHEAD = _Instant(is_ahead=True)
QUANTITIES = _Quantities()
DURATION = Scalar("a duration such as 30s, 10m or 1h30m", lambda value: _is_duration(value) and value != "Never")
DURATION_OR_NEVER = Scalar("a duration such as 30s, 10m or 1h30m, or Never", lambda value: _is_duration(value))
NAME = Scalar("text of lower-case letters, digits, - and . (a Kubernetes name)", _matches(_NAME, 253, kept=1024))
DNS_LABEL = Scalar("at most 63 lower-case letters, digits and -", _matches(_DNS_LABEL, 63))
LABEL_KEY = Scalar("a label key such as example.com/name", _matches(_LABEL_KEY, 317))
# Of any length, so none of these is kept.
QUALIFIED_NAME = Scalar(
    "text such as example.com/name", lambda value: isinstance(value, str) and _QUALIFIED.fullmatch(value) is not None
)
LABEL_VALUE = Scalar("text that is a label value (at most 63 letters, digits, -, _ and .)", _matches(_LABEL_VALUE, 63))
LABELS = MapOf(LABEL_VALUE, LABEL_KEY)
TEXTS = MapOf(TEXT)
