"""The exception tree.

    KerfError                      anything Kerf raises on purpose
    +-- InputError                 the user's input cannot be used: exit code 2
    |   +-- DecodeError            one document does not have the form we read
    |   +-- DecodeErrors           several of them, so one does not hide the next
    |   +-- ConfigError            a setting is unknown or has the wrong form
    +-- CloudError                 a cloud refused (see cloudprovider.py for what each makes us do)
    +-- ApiError                   the Kubernetes API refused (see ports.py)

A pod that nothing can hold is no error: it is a result, `plan.Unplaced`.
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_SHOWN = 80
"""Characters that an error shows of a value."""
_MOST_WORDS = 200
"""Characters of our own words about a value, which stand in angle brackets."""
_MOST_ELSEWHERE = 600
"""Characters of each other part of an error: file names and field names can be long, and are wanted whole."""
_MOST_BITS = 200
_CUT = "..."


@dataclass(frozen=True, slots=True)
class _Mark:
    """A bracket or comma between values."""

    text: str


def brief(value: object, most: int = MOST_SHOWN) -> str:
    """`repr(value)`, cut to `most` characters before it is made.

    Cost: at most `most` parts are looked at, however large, deep or endless the value is. An object that is neither
    plain nor an instant is shown by its type alone.
    """
    text = ""
    for piece in _pieces(value, most):
        text += piece
        if len(text) > most:
            return cut(text, most)
    return text


def cut(text: str, most: int) -> str:
    """The text, in at most so many characters; three dots stand for what is left out."""
    return text if len(text) <= most else text[: most - len(_CUT)] + _CUT


def _pieces(value: object, most: int) -> Iterator[str]:
    """The parts of a repr, in their order; made one by one, and on a list of our own, since values can be endless."""
    waiting: list[Iterator[object]] = [iter((value,))]
    while waiting:
        each = next(waiting[-1], waiting)
        if each is waiting:
            waiting.pop()
        elif isinstance(each, _Mark):
            yield each.text
        elif isinstance(each, Mapping):
            waiting.append(_of_mapping(each))
        elif isinstance(each, list | tuple):
            waiting.append(_of_sequence(each))
        else:
            yield _scalar(each, most)


def _of_mapping(value: Mapping[object, object]) -> Iterator[object]:
    yield _Mark("{")
    for number, (key, held) in enumerate(value.items()):
        if number:
            yield _Mark(", ")
        yield key
        yield _Mark(": ")
        yield held
    yield _Mark("}")


def _of_sequence(value: Sequence[object]) -> Iterator[object]:
    begin, end = "[]" if isinstance(value, list) else "()"
    yield _Mark(begin)
    for number, held in enumerate(value):
        if number:
            yield _Mark(", ")
        yield held
    yield _Mark(",)" if end == ")" and len(value) == 1 else end)


def _scalar(value: object, most: int) -> str:
    if isinstance(value, str | bytes):
        return repr(value[: most + 1])
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "<a very large number>"
    if value is None or isinstance(value, int | float | datetime.date):
        return repr(value)
    return f"<{cut(type(value).__name__, most)}>"


def _is_small(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_SHOWN
    return value is None or isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= _MOST_BITS)


class KerfError(Exception):
    """Anything Kerf raises on purpose; its text is meant for the operator."""


class InputError(KerfError):
    """What the user gave cannot be used; the command line exits with 2."""


class DecodeError(InputError):
    """A document does not have the form we read.

    `place` is `file:line:col` as far as known, `path` the field (`spec.limits.cpu`). The text has the order
    place, path, expected, got, hint. `got` is shown as `brief` does; text in angle brackets is our own words about it.
    The attribute `got` is the value where it is small, else what is shown of it, in angle brackets.
    """

    def __init__(self, path: str, expected: str, got: object, *, place: str = "", hint: str = "") -> None:
        path, expected, place, hint = (cut(text, _MOST_ELSEWHERE) for text in (path, expected, place, hint))
        shown = cut(got, _MOST_WORDS) if isinstance(got, str) and got.startswith("<") else brief(got)
        # What is large stays with the document: errors are kept, logged and sent on.
        kept = got if _is_small(got) else shown if shown.startswith("<") else f"<{shown}>"
        self.path, self.expected, self.got, self.place, self.hint = path, expected, kept, place, hint
        where = f"{place}: " if place else ""
        field = f"{path}: " if path else ""
        super().__init__(f"{where}{field}expected {expected}, got {shown}" + (f" (hint: {hint})" if hint else ""))


class DecodeErrors(InputError):
    """Every document that could not be decoded, in the order of the input."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


class ConfigError(InputError):
    """A setting that does not exist or has the wrong form; the text names flag, variable and file key."""


class CloudError(KerfError):
    """The cloud did not do what it was asked; subclasses are in `kerf.cloudprovider`."""


class ApiError(KerfError):
    """The Kubernetes API did not do what it was asked; subclasses are in `kerf.ports`."""
