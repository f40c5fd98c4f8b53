"""The exception tree.

    KerfError                      anything Kerf raises on purpose
    +-- InputError                 the user's input cannot be used: exit code 2
    |   +-- DecodeError            one document does not have the form we read
    |   +-- DecodeErrors           several of them, so that one does not hide the next
    |   +-- ConfigError            a setting is unknown or has the wrong form
    +-- CloudError                 a cloud refused (see cloudprovider.py for what each makes us do)
    +-- ApiError                   the Kubernetes API refused (see ports.py)

A pod that nothing can hold is no error: it is a result, `plan.Unplaced`.
"""

from collections.abc import Sequence


class KerfError(Exception):
    """Anything Kerf raises on purpose; its text is meant for the operator."""


class InputError(KerfError):
    """What the user gave cannot be used; the command line exits with 2."""


class DecodeError(InputError):
    """A document does not have the form we read.

    `place` is `file:line:col` as far as known, `path` the field (`spec.limits.cpu`). The text has the order
    place, path, expected, got, hint.
    """

    def __init__(self, path: str, expected: str, got: object, *, place: str = "", hint: str = "") -> None:
        self.path, self.expected, self.got, self.place, self.hint = path, expected, got, place, hint
        where = f"{place}: " if place else ""
        field = f"{path}: " if path else ""
        shown = got if isinstance(got, str) and got.startswith("<") else repr(got)
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
