"""One line of `kerf doctor`."""

from dataclasses import dataclass

OK, LOOK, FAILED, LEFT_OUT = "ok", "check", "failed", "-"
"""It is as it should be; it works, and needs a look; Kerf cannot work; it could not be checked."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was looked at, what was found, and what to do; `hint` is empty where there is nothing to do."""

    name: str
    status: str
    found: str
    hint: str = ""
