"""One answer of `kerf explain`, as data and as text."""

from dataclasses import dataclass

from kerf.cli.plan.json import Json


@dataclass(frozen=True)
class Explanation:
    """What is known of one object; `needs_look` when it is, or has, a pod without a place."""

    data: Json
    lines: tuple[str, ...]
    needs_look: bool = False
